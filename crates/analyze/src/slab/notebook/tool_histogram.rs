//! Owns the notebook's histogram of the tool's %Ef. It refuses to weigh: a row is a row.

use serde::Serialize;

use super::super::error::SlabError;
use super::super::input::Input;
use super::bins::Bins;
use super::frame::Frame;
use super::reason::Reason;

/// The notebook's bins.
const BINS: usize = 60;

/// %Ef of all rows, in bins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolHistogram {
    /// The notebook's: printed percentages of the rows that it keeps.
    pub notebook: Bins,
    /// Ours in the same bins: exact percentages of all rows that lie within them; null where the page size is unknown.
    pub ours: Option<Bins>,
    /// Why they differ.
    pub reasons: Vec<Reason>,
}

/// Makes the histogram.
///
/// # Errors
/// No `slabinfo-tool` rows.
pub fn histogram(input: &Input) -> Result<ToolHistogram, SlabError> {
    let frame = Frame::read(input)?;
    let printed: Vec<_> = frame.kept().map(|(row, _)| (row.percent as f64, 1)).collect();
    let exact = |row: &super::frame::ToolRow| row.exact.map(|ratio| (ratio.percent().unwrap_or(100.0), 1));
    let exact: Option<Vec<_>> = frame.all().iter().map(exact).collect();
    let notebook = Bins::of(&printed, BINS);
    let ours = exact.map(|exact| notebook.with(&exact));
    let reasons = frame.reasons().into_iter().chain([Reason::CachesAlike]).collect();
    Ok(ToolHistogram { notebook, ours, reasons })
}
