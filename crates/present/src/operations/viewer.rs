//! What the report's viewer needs to go from all operations down to a single one, in a given number of bytes.
//!
//! Bins of neighbouring operations say how many there are, the shortest, the longest and which one that was; below them
//! is every operation by itself, its time as a step on a logarithmic scale. Nothing is averaged. Where the bytes do not
//! suffice, exactness of ordinary times goes first, single ordinary operations then; never the longest of any bin, nor
//! an outlier among the longest 20,000.

use std::io::Write as _;

use perflab_analyze::operations::{OperationClock, OperationReport, OutlierExplanation, OutlierOperation};
use perflab_model::operation::OperationColumns;
use serde::Serialize;

use crate::operations::grids;
use crate::operations::scenes::{CauseColours, MOST_MARKS};
use crate::packed_column::{embed_json, encode_base64};

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
    /// a byte a row; empty where single operations are left out
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
    let colours = CauseColours::new(report, &[]);
    let named = report.causes.iter().enumerate().map(|(index, cause)| CauseColour {
        name: cause.name.clone(),
        colour: colours.cause_colour(OutlierExplanation::Cause(index)).hex(),
        outliers: cause.share.outliers,
    });
    let rest =
        [("mixed", &report.mixed), ("unexplained", &report.unexplained)].map(|(name, share)| CauseColour {
            name: name.into(),
            colour: colours.cause_colour(OutlierExplanation::Mixed).hex(),
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
            OutlierExplanation::Cause(index) => index,
            OutlierExplanation::Mixed => report.causes.len(),
            OutlierExplanation::Unexplained => report.causes.len() + 1,
        };
        push_leb128(&mut bytes, cause as u64);
    }
    deflate_base64(&bytes)
}

/// Steps that a byte holds; 0 says that the row is no operation of this kind.
const STEPS: usize = 250;

/// Some neighbouring rows of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OperationBin {
    /// operations of the kind that is shown
    pub count: u32,
    /// nanoseconds
    pub shortest: i64,
    /// nanoseconds
    pub longest: i64,
    /// the row of the longest, the first of equals
    pub row: u32,
}

/// The bins of `width` rows each; `dots` come in the order of rows.
fn bin_operations(rows: u32, width: u32, dots: impl Iterator<Item = (u32, i64)>) -> Vec<OperationBin> {
    let none = OperationBin { count: 0, shortest: 0, longest: 0, row: 0 };
    let mut bins = vec![none; rows.div_ceil(width) as usize];
    for (row, time) in dots {
        let Some(bin) = bins.get_mut((row / width) as usize) else { continue };
        if bin.count == 0 || time > bin.longest {
            (bin.longest, bin.row) = (time, row);
        }
        bin.shortest = if bin.count == 0 { time } else { bin.shortest.min(time) };
        bin.count += 1;
    }
    bins
}

/// Column by column: counts, then of bins with operations the shortest, what the longest is above it, the place of that one.
fn pack_bins(bins: &[OperationBin], width: u32) -> String {
    let mut bytes = Vec::new();
    let filled = || bins.iter().filter(|bin| bin.count > 0);
    bins.iter().for_each(|bin| push_leb128(&mut bytes, u64::from(bin.count)));
    filled().for_each(|bin| push_leb128(&mut bytes, bin.shortest.max(0) as u64));
    filled().for_each(|bin| push_leb128(&mut bytes, bin.longest.saturating_sub(bin.shortest).max(0) as u64));
    filled().for_each(|bin| push_leb128(&mut bytes, u64::from(bin.row % width)));
    deflate_base64(&bytes)
}

/// A logarithmic scale of `steps` steps from `low` up.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LogSteps {
    /// nanoseconds of step 1
    pub low: f64,
    /// each step is so many times the one before
    pub ratio: f64,
}

impl LogSteps {
    pub(crate) fn new(low: i64, high: i64, steps: usize) -> Self {
        let (low, high) = (low.max(1) as f64, high.max(2) as f64);
        let span = (high / low).max(1.0).ln();
        LogSteps { low, ratio: (span / (steps - 1) as f64).exp().max(1.000_001) }
    }

    fn step_of(self, time: i64) -> u8 {
        let step = ((time.max(1) as f64 / self.low).ln() / self.ratio.ln()).round();
        step.clamp(0.0, (STEPS - 1) as f64) as u8 + 1
    }

    /// A byte for each row.
    fn pack_steps(self, rows: u32, dots: impl Iterator<Item = (u32, i64)>) -> String {
        let mut bytes = vec![0; rows as usize];
        for (row, time) in dots {
            if let Some(byte) = bytes.get_mut(row as usize) {
                *byte = self.step_of(time);
            }
        }
        deflate_base64(&bytes)
    }
}

/// Groups of seven bits, the low ones first (LEB128).
fn push_leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Compressed (RFC 1951), as text.
fn deflate_base64(bytes: &[u8]) -> String {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
    // Memory does not refuse to be written to.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    encode_base64(&written.unwrap_or_default())
}
