//! A picture as shapes at positions, after scales and data.

use crate::chart::dot_grid::DotGrid;
use crate::chart::palette::RgbColour;

/// What a figure lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SceneSurface {
    /// A file of its own: dark text on a white ground, so that it reads in a dark viewer too.
    Paper,
    /// Inside a page: no ground, and text in the page's own colour.
    Inline,
}

/// A place, in pixels from the upper left corner.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScenePoint {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
}

/// The colour of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MarkInk {
    /// that of text
    Text,
    /// that of text which explains
    Faint,
    /// that of grid lines
    Grid,
    /// its own
    Own(RgbColour),
    /// its own, half transparent
    Pale(RgbColour),
    /// its own, nearly transparent: an area behind lines
    Wash(RgbColour),
}

/// Which point of a text stands at its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextAnchor {
    /// its first letter
    Start,
    /// its middle
    Middle,
    /// its end
    End,
}

/// One mark.
#[derive(Debug, Clone, PartialEq)]
pub enum SceneMark {
    /// A filled rectangle.
    Rect {
        /// upper left corner
        at: ScenePoint,
        /// pixels
        width: f64,
        /// pixels
        height: f64,
        /// its colour
        ink: MarkInk,
        /// what a pointer shows
        title: String,
    },
    /// A filled polygon.
    Area {
        /// its corners
        points: Vec<ScenePoint>,
        /// its colour
        ink: MarkInk,
        /// what a pointer shows
        title: String,
    },
    /// A line through points.
    Line {
        /// its points
        points: Vec<ScenePoint>,
        /// its colour
        ink: MarkInk,
        /// pixels
        width: f64,
        /// broken into dashes
        dashed: bool,
        /// what a pointer shows
        title: String,
    },
    /// Very many dots, as an image.
    Dots {
        /// upper left corner
        at: ScenePoint,
        /// pixels of the grid for each of the scene's
        scale: f64,
        /// the grid
        pixels: DotGrid,
    },
    /// A text on one line.
    Text {
        /// where its base line begins, is centred or ends
        at: ScenePoint,
        /// which of the three
        anchor: TextAnchor,
        /// pixels from base line to base line
        size: f64,
        /// its colour
        ink: MarkInk,
        /// the text
        text: String,
    },
}

/// A figure, laid out.
#[derive(Debug, Clone, PartialEq)]
pub struct Scene {
    /// Pixels.
    pub width: f64,
    /// Pixels.
    pub height: f64,
    /// What the figure shows, for people who cannot see it.
    pub description: String,
    /// Back to front.
    pub marks: Vec<SceneMark>,
}

/// Pixels of ordinary text.
pub(crate) const TEXT: f64 = 12.0;

/// Pixels of a title.
pub(crate) const TITLE: f64 = 16.0;

#[cfg(test)]
impl Scene {
    /// Its texts, back to front.
    pub(crate) fn texts(&self) -> Vec<&str> {
        let texts = self.marks.iter().filter_map(|mark| match mark {
            SceneMark::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

pub(crate) fn text_mark(x: f64, y: f64, anchor: TextAnchor, text: impl Into<String>) -> SceneMark {
    SceneMark::Text { at: ScenePoint { x, y }, anchor, size: TEXT, ink: MarkInk::Text, text: text.into() }
}

pub(crate) fn faint_text(x: f64, y: f64, anchor: TextAnchor, text: impl Into<String>) -> SceneMark {
    SceneMark::Text { at: ScenePoint { x, y }, anchor, size: TEXT, ink: MarkInk::Faint, text: text.into() }
}

pub(crate) fn title_text(x: f64, y: f64, text: impl Into<String>) -> SceneMark {
    SceneMark::Text {
        at: ScenePoint { x, y },
        anchor: TextAnchor::Start,
        size: TITLE,
        ink: MarkInk::Text,
        text: text.into(),
    }
}

pub(crate) fn line_mark(from: (f64, f64), to: (f64, f64), ink: MarkInk, dashed: bool) -> SceneMark {
    let points = [from, to].map(|(x, y)| ScenePoint { x, y }).to_vec();
    SceneMark::Line { points, ink, width: 1.0, dashed, title: String::new() }
}

/// A rectangle between two corners, whichever way round they are.
pub(crate) fn rect_mark(a: (f64, f64), b: (f64, f64), ink: MarkInk, title: impl Into<String>) -> SceneMark {
    SceneMark::Rect {
        at: ScenePoint { x: a.0.min(b.0), y: a.1.min(b.1) },
        width: (a.0 - b.0).abs(),
        height: (a.1 - b.1).abs(),
        ink,
        title: title.into(),
    }
}
