//! What a report is made from, and why it can fail.

use perflab_model::RunRecord;
use perflab_model::series::RowRuns;
use serde::Serialize;

use crate::chart::scene::{Scene, SceneSurface};

/// One run with its series.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportRun {
    /// The run.
    pub record: RunRecord,
    /// What its monitors recorded; the order is kept.
    pub series: Vec<RowRuns>,
    /// What its targets printed beside their streams (errors, consoles), where an iteration failed: all of it.
    pub consoles: Option<String>,
}

/// Everything that one report shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReportData {
    /// The page's heading; the first study's title where empty.
    pub title: String,
    /// What was compared, in the order of the page.
    pub comparisons: Vec<perflab_analyze::Comparison>,
    /// The runs, the baseline first.
    pub runs: Vec<ReportRun>,
    /// Their profiles, where there are any.
    pub flames: Option<crate::flame::viewer::FlameViewerData>,
    /// Sections about single operations that they traced.
    pub traces: Vec<TraceSection>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Nothing to show.
    #[error("a report needs at least one run")]
    NoRuns,
    /// The page's template refused its data: a mistake of ours.
    #[error("the report's page cannot be filled: {0}")]
    Page(#[from] minijinja::Error),
    /// The data cannot be written as JSON.
    #[error("the report's data cannot be written: {0}")]
    Data(#[from] serde_json::Error),
}

/// One part: a comparison of two levels, or one trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceSection {
    heading: String,
    lines: Vec<String>,
    figures: Vec<String>,
    /// The viewer's data, see [`crate::operations::viewer`]; empty where there is none.
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
