//! Owns short words for marks. It refuses layout: its callers know the places.

use super::scene::{Anchor, Ink, Mark, Point};

/// Pixels of ordinary text.
pub(super) const TEXT: f64 = 12.0;
/// Pixels of a title.
pub(super) const TITLE: f64 = 16.0;

pub(super) fn text(x: f64, y: f64, anchor: Anchor, text: impl Into<String>) -> Mark {
    Mark::Text { at: Point { x, y }, anchor, size: TEXT, ink: Ink::Text, text: text.into() }
}

pub(super) fn faint(x: f64, y: f64, anchor: Anchor, text: impl Into<String>) -> Mark {
    Mark::Text { at: Point { x, y }, anchor, size: TEXT, ink: Ink::Faint, text: text.into() }
}

pub(super) fn title(x: f64, y: f64, text: impl Into<String>) -> Mark {
    Mark::Text { at: Point { x, y }, anchor: Anchor::Start, size: TITLE, ink: Ink::Text, text: text.into() }
}

pub(super) fn rule(from: (f64, f64), to: (f64, f64), ink: Ink, dashed: bool) -> Mark {
    let points = [from, to].map(|(x, y)| Point { x, y }).to_vec();
    Mark::Line { points, ink, width: 1.0, dashed, title: String::new() }
}

/// A rectangle between two corners, whichever way round they are.
pub(super) fn rect(a: (f64, f64), b: (f64, f64), ink: Ink, title: impl Into<String>) -> Mark {
    Mark::Rect {
        at: Point { x: a.0.min(b.0), y: a.1.min(b.1) },
        width: (a.0 - b.0).abs(),
        height: (a.1 - b.1).abs(),
        ink,
        title: title.into(),
    }
}
