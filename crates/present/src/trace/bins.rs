//! Bins of neighbouring operations: how many, the shortest, the longest and which one that was; and below them every
//! operation by itself, its time as a step on a logarithmic scale. Owns this arithmetic and its bytes; refuses to average.

use std::io::Write as _;

use crate::report::encode_base64;

/// Steps that a byte holds; 0 says that the row is no operation of this kind.
pub(super) const STEPS: usize = 250;

/// Some neighbouring rows of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OperationBin {
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
pub(super) fn bin_operations(
    rows: u32,
    width: u32,
    dots: impl Iterator<Item = (u32, i64)>,
) -> Vec<OperationBin> {
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
pub(super) fn pack_bins(bins: &[OperationBin], width: u32) -> String {
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
pub(super) struct LogSteps {
    /// nanoseconds of step 1
    pub low: f64,
    /// each step is so many times the one before
    pub ratio: f64,
}

impl LogSteps {
    pub(super) fn new(low: i64, high: i64, steps: usize) -> Self {
        let (low, high) = (low.max(1) as f64, high.max(2) as f64);
        let span = (high / low).max(1.0).ln();
        LogSteps { low, ratio: (span / (steps - 1) as f64).exp().max(1.000_001) }
    }

    fn step_of(self, time: i64) -> u8 {
        let step = ((time.max(1) as f64 / self.low).ln() / self.ratio.ln()).round();
        step.clamp(0.0, (STEPS - 1) as f64) as u8 + 1
    }

    /// A byte for each row.
    pub(super) fn pack_steps(self, rows: u32, dots: impl Iterator<Item = (u32, i64)>) -> String {
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
pub(super) fn push_leb128(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Compressed (RFC 1951), as text.
pub(super) fn deflate_base64(bytes: &[u8]) -> String {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
    // Memory does not refuse to be written to.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    encode_base64(&written.unwrap_or_default())
}
