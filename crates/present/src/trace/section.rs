//! What a report says about the single operations of a run: sentences, pictures as static SVG, and what its viewer needs
//! to go down to a single operation.

use serde::Serialize;

use crate::chart::{Scene, SceneSurface};

/// One part: a comparison of two levels, or one trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceSection {
    heading: String,
    lines: Vec<String>,
    figures: Vec<String>,
    /// The viewer's data, see [`super::zoom`]; empty where there is none.
    zoom: String,
}

impl TraceSection {
    /// A part with its heading, sentences (backticks around names) and pictures.
    #[must_use]
    pub fn new(heading: &str, lines: Vec<String>, pictures: &[Scene]) -> Self {
        let figures = pictures.iter().map(|picture| picture.to_svg(SceneSurface::Inline)).collect();
        TraceSection { heading: heading.into(), lines, figures, zoom: String::new() }
    }

    /// The same with a view that goes down to the single operation.
    #[must_use]
    pub fn with_zoom(self, zoom: String) -> Self {
        TraceSection { zoom, ..self }
    }
}
