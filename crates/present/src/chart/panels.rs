//! Figures below one another, as one.

use crate::chart::scene::{Scene, SceneMark, ScenePoint, TITLE, title_text};
use crate::chart::typeface;

/// Figures from the top, below a title where there is one.
#[must_use]
pub fn stack_panels(title: Option<&str>, panels: Vec<Scene>) -> Scene {
    let width = panels.iter().map(|panel| panel.width).fold(0.0, f64::max);
    let mut marks = Vec::new();
    let mut height = 0.0;
    let mut described: Vec<String> = Vec::new();
    if let Some(title) = title {
        marks.push(title_text(16.0, 26.0, typeface::shorten_to_width(title, TITLE, width - 32.0)));
        described.push(title.to_owned());
        height = 30.0;
    }
    for panel in panels {
        marks.extend(panel.marks.into_iter().map(|mark| moved_down(mark, height)));
        height += panel.height;
        described.push(panel.description);
    }
    Scene { width, height, description: described.join(". "), marks }
}

fn moved_down(mut mark: SceneMark, by: f64) -> SceneMark {
    let down = |at: &mut ScenePoint| at.y += by;
    match &mut mark {
        SceneMark::Rect { at, .. } | SceneMark::Dots { at, .. } | SceneMark::Text { at, .. } => down(at),
        SceneMark::Area { points, .. } | SceneMark::Line { points, .. } => points.iter_mut().for_each(down),
    }
    mark
}
