//! What a report says about the single operations of a run: sentences, and pictures as static SVG.

use serde::Serialize;

use crate::chart::{Scene, Surface};

/// One part: a comparison of two levels, or one trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceSection {
    heading: String,
    lines: Vec<String>,
    figures: Vec<String>,
}

impl TraceSection {
    /// A part with its heading, sentences (backticks around names) and pictures.
    #[must_use]
    pub fn new(heading: &str, lines: Vec<String>, pictures: &[Scene]) -> Self {
        let figures = pictures.iter().map(|picture| picture.svg(Surface::Inline)).collect();
        TraceSection { heading: heading.into(), lines, figures }
    }
}
