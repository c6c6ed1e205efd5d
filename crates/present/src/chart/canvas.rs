//! Owns short words for marks. It refuses layout: its callers know the places.

use super::scene::{MarkInk, SceneMark, ScenePoint, TextAnchor};

/// Pixels of ordinary text.
pub(super) const TEXT: f64 = 12.0;
/// Pixels of a title.
pub(super) const TITLE: f64 = 16.0;

pub(super) fn text_mark(x: f64, y: f64, anchor: TextAnchor, text: impl Into<String>) -> SceneMark {
    SceneMark::Text { at: ScenePoint { x, y }, anchor, size: TEXT, ink: MarkInk::Text, text: text.into() }
}

pub(super) fn faint_text(x: f64, y: f64, anchor: TextAnchor, text: impl Into<String>) -> SceneMark {
    SceneMark::Text { at: ScenePoint { x, y }, anchor, size: TEXT, ink: MarkInk::Faint, text: text.into() }
}

pub(super) fn title_text(x: f64, y: f64, text: impl Into<String>) -> SceneMark {
    SceneMark::Text {
        at: ScenePoint { x, y },
        anchor: TextAnchor::Start,
        size: TITLE,
        ink: MarkInk::Text,
        text: text.into(),
    }
}

pub(super) fn line_mark(from: (f64, f64), to: (f64, f64), ink: MarkInk, dashed: bool) -> SceneMark {
    let points = [from, to].map(|(x, y)| ScenePoint { x, y }).to_vec();
    SceneMark::Line { points, ink, width: 1.0, dashed, title: String::new() }
}

/// A rectangle between two corners, whichever way round they are.
pub(super) fn rect_mark(a: (f64, f64), b: (f64, f64), ink: MarkInk, title: impl Into<String>) -> SceneMark {
    SceneMark::Rect {
        at: ScenePoint { x: a.0.min(b.0), y: a.1.min(b.1) },
        width: (a.0 - b.0).abs(),
        height: (a.1 - b.1).abs(),
        ink,
        title: title.into(),
    }
}
