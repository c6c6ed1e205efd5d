//! What the report's viewer needs to go from all operations down to a single one, in a given number of bytes. Owns what
//! is left out when the bytes do not suffice: exactness of ordinary times first, single ordinary operations then; never
//! the longest of any bin, nor an outlier among the longest 20,000. Refuses to draw.

use perflab_analyze::trace::{OperationClock, OperationReport, OutlierOperation};
use perflab_model::trace::OperationColumns;
use serde::Serialize;

use super::bins::{LogSteps, STEPS, bin_operations, deflate_base64, pack_bins, push_leb128};
use super::grids;
use super::picture::{MOST_MARKS, cause_colour};
use crate::report::page_json as embed_json;

/// Bytes of one trace in a report.
pub const MOST_BYTES: usize = 2_000_000;
/// Of the longest, those that say what happened in them.
const MOST_NOTES: usize = 1_000;
/// Rows of a bin, and steps of single operations below it (0: none), from the finest on.
const FINENESS: [(u32, usize); 8] =
    [(16, STEPS), (16, 125), (32, 62), (32, 31), (32, 0), (128, 0), (1024, 0), (8192, 0)];

/// The viewer's data: see `web/src/zoom/data.ts`.
#[derive(Debug, Serialize)]
struct OperationViewerData<'a> {
    title: &'a str,
    operation: &'a str,
    clock: &'static str,
    rows: u32,
    operations: usize,
    width: u32,
    low: f64,
    ratio: f64,
    /// a byte a row; empty where single operations are not told
    steps: String,
    bins: String,
    /// the longest outliers in the order of rows: rows (differences), then times, then causes
    outliers: String,
    outlier_count: usize,
    causes: Vec<CauseColour>,
    notes: Vec<(u32, String)>,
}

#[derive(Debug, Serialize)]
struct CauseColour {
    name: String,
    colour: String,
    outliers: usize,
}

/// The viewer's data as JSON, finest first that fits into `most` bytes; the coarsest where none does.
#[must_use]
pub fn operation_viewer_data(
    operations: &OperationColumns,
    report: &OperationReport,
    title: &str,
    most: usize,
) -> String {
    let mut shown: Vec<&OutlierOperation> = report.outliers.iter().collect();
    shown.sort_by_key(|outlier| std::cmp::Reverse(outlier.time));
    shown.truncate(MOST_MARKS);
    let note =
        |outlier: &&OutlierOperation| (outlier.row, grids::operation_description(operations, outlier.row));
    let notes: Vec<(u32, String)> = shown.iter().take(MOST_NOTES).map(note).collect();
    shown.sort_by_key(|outlier| outlier.row);
    let rows = report.operation_times().last().map_or(0, |(row, _)| row + 1);
    let mut zoom = OperationViewerData {
        title,
        operation: &report.operation,
        clock: if report.clock == OperationClock::OnCpu { "time on the CPU" } else { "time on the wall" },
        rows,
        operations: report.operations,
        width: 0,
        low: 0.0,
        ratio: 0.0,
        steps: String::new(),
        bins: String::new(),
        outliers: pack_outliers(report, &shown),
        outlier_count: shown.len(),
        causes: cause_colours(report),
        notes,
    };
    let mut text = String::new();
    for (width, steps) in FINENESS {
        zoom.width = width;
        zoom.bins = pack_bins(&bin_operations(rows, width, report.operation_times()), width);
        zoom.steps.clear();
        if steps > 0 {
            let scale = LogSteps::new(report.shortest, report.longest, steps);
            (zoom.low, zoom.ratio) = (scale.low, scale.ratio);
            zoom.steps = scale.pack_steps(rows, report.operation_times());
        }
        // Text and numbers only: nothing that JSON has no word for.
        text = embed_json(&zoom).unwrap_or_default();
        if text.len() <= most {
            break;
        }
    }
    text
}

/// The causes by their index, then what several made, then what none explains.
fn cause_colours(report: &OperationReport) -> Vec<CauseColour> {
    let named = report.causes.iter().enumerate().map(|(index, cause)| CauseColour {
        name: cause.name.clone(),
        colour: cause_colour(perflab_analyze::trace::OutlierExplanation::Cause(index)).hex(),
        outliers: cause.share.outliers,
    });
    let rest =
        [("mixed", &report.mixed), ("unexplained", &report.unexplained)].map(|(name, share)| CauseColour {
            name: name.into(),
            colour: cause_colour(perflab_analyze::trace::OutlierExplanation::Mixed).hex(),
            outliers: share.outliers,
        });
    named.chain(rest).collect()
}

fn pack_outliers(report: &OperationReport, shown: &[&OutlierOperation]) -> String {
    let mut bytes = Vec::new();
    let mut before = 0;
    for outlier in shown {
        push_leb128(&mut bytes, u64::from(outlier.row - before));
        before = outlier.row;
    }
    shown.iter().for_each(|outlier| push_leb128(&mut bytes, outlier.time.max(0) as u64));
    for outlier in shown {
        let cause = match outlier.verdict {
            perflab_analyze::trace::OutlierExplanation::Cause(index) => index,
            perflab_analyze::trace::OutlierExplanation::Mixed => report.causes.len(),
            perflab_analyze::trace::OutlierExplanation::Unexplained => report.causes.len() + 1,
        };
        push_leb128(&mut bytes, cause as u64);
    }
    deflate_base64(&bytes)
}
