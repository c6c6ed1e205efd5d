//! Owns the notebook's histogram of the tool's %Ef. It refuses to weigh: a row is a row.

use serde::Serialize;

use super::super::error::SlabError;
use super::super::input::SlabInput;
use super::bins::NumpyHistogram;
use super::frame::NotebookFrame;
use super::reason::NotebookDifference;

/// The notebook's bins.
const TOOL_HISTOGRAM_BINS: usize = 60;

/// %Ef of all rows, in bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NotebookToolHistogram {
    /// The notebook's: printed percentages of the rows that it keeps.
    pub notebook: NumpyHistogram,
    /// Ours in the same bins: exact percentages of all rows that lie within them; null where the page size is unknown.
    pub ours: Option<NumpyHistogram>,
    /// Why they differ.
    pub reasons: Vec<NotebookDifference>,
}

/// Makes the histogram.
///
/// # Errors
/// No `slabinfo-tool` rows.
pub fn notebook_tool_histogram(input: &SlabInput) -> Result<NotebookToolHistogram, SlabError> {
    let frame = NotebookFrame::read(input)?;
    let printed: Vec<_> = frame.kept_rows().map(|(row, _)| (row.percent as f64, 1)).collect();
    let exact =
        |row: &super::frame::NotebookToolRow| row.exact.map(|ratio| (ratio.percent().unwrap_or(100.0), 1));
    let exact: Option<Vec<_>> = frame.all_rows().iter().map(exact).collect();
    let notebook = NumpyHistogram::from_values(&printed, TOOL_HISTOGRAM_BINS);
    let ours = exact.map(|exact| notebook.with_same_bins(&exact));
    let reasons = frame.mean_differences().into_iter().chain([NotebookDifference::CachesAlike]).collect();
    Ok(NotebookToolHistogram { notebook, ours, reasons })
}
