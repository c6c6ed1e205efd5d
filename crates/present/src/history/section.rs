//! Owns the history as the report's template reads it: a figure and texts. It refuses series beyond the first dozen with
//! steps: a page is read by people.

use perflab_analyze::MetricHistories;
use perflab_analyze::history::MetricHistory;
use serde::Serialize;

use super::{history_chart, steps_grid};
use crate::chart::SceneSurface;

/// As many figures stand on a page.
const MOST: usize = 12;

/// The histories of a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistorySection {
    figures: Vec<String>,
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
    notes: Vec<String>,
}

impl HistorySection {
    /// Figures of the series that have steps, or of the first ones; the table of all steps.
    #[must_use]
    pub fn from_history(history: &MetricHistories) -> Self {
        let stepped: Vec<&MetricHistory> =
            history.series.iter().filter(|one| !one.steps.is_empty()).collect();
        let all: Vec<&MetricHistory> = history.series.iter().collect();
        let wanted = if stepped.is_empty() { all } else { stepped };
        let left_out = wanted.len().saturating_sub(MOST);
        let figures = wanted
            .into_iter()
            .take(MOST)
            .map(|series| history_chart(history, series).to_svg(SceneSurface::Inline));
        let (titles, rows) = steps_grid(history).rows_as_text();
        let more = (left_out > 0).then(|| format!("{left_out} further series have no figure here"));
        let notes = history.notes.iter().cloned().chain(more).collect();
        HistorySection { figures: figures.collect(), titles, rows, notes }
    }
}
