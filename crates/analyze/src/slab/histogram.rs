//! Owns how efficiencies are spread, by rows and by bytes. It refuses to drop what lies outside: torn rows above
//! 100 % and caches without slabs are counted beside the bins.

use serde::Serialize;

use super::recording::SlabRecording;
use super::usage::{SlabUsage, saturating_product};

/// Efficiencies (U / S) of all rows in equal bins from 0 to 100 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EfficiencyHistogram {
    /// From 0 to 100 %; the last contains 100 % itself.
    pub bins: Vec<EfficiencyBin>,
    /// Rows above 100 %: torn.
    pub above: EfficiencyBin,
    /// Rows of caches without slabs, which have no efficiency.
    pub empty_rows: usize,
}

/// Rows whose efficiency lies in [low, high).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EfficiencyBin {
    /// Lower limit, per cent.
    pub low: f64,
    /// Upper limit, per cent; null for no limit.
    pub high: Option<f64>,
    /// Rows: one a cache a tick.
    pub rows: usize,
    /// Slab bytes of these rows, on average over the run's time.
    pub bytes: f64,
}

/// Makes the histogram with that many bins, at least one.
#[must_use]
pub fn efficiency_histogram(recording: &SlabRecording, bins: usize) -> EfficiencyHistogram {
    let count = bins.max(1);
    let elapsed = recording.elapsed_weights();
    let all = elapsed.weight_of(0..recording.ticks().len());
    let mut found = vec![(0_usize, 0_u128); count + 1];
    let mut empty_rows = 0;
    for row in recording.rows() {
        let usage = row.usage();
        let Some(number) = bin_of(&usage, count) else {
            empty_rows += row.tick_count();
            continue;
        };
        if let Some((rows, bytes)) = found.get_mut(number) {
            *rows += row.tick_count();
            *bytes =
                bytes.saturating_add(saturating_product(usage.slab_bytes, elapsed.weight_of(row.ticks())));
        }
    }
    let limit = |number: usize| 100.0 * number as f64 / count as f64;
    let bin = |(number, (rows, bytes)): (usize, (usize, u128))| {
        let high = (number < count).then(|| limit(number + 1));
        EfficiencyBin { low: limit(number), high, rows, bytes: bytes as f64 / all.max(1) as f64 }
    };
    let mut bins: Vec<EfficiencyBin> = found.into_iter().enumerate().map(bin).collect();
    let above = bins.pop().unwrap_or(EfficiencyBin { low: 100.0, high: None, rows: 0, bytes: 0.0 });
    EfficiencyHistogram { bins, above, empty_rows }
}

/// The bin in integers, so that a limit belongs to one side on every machine; `count` stands for above 100 %.
fn bin_of(usage: &SlabUsage, count: usize) -> Option<usize> {
    let exact = usage.used_bytes.checked_mul(count as u128)?.checked_div(usage.slab_bytes)?;
    let number = usize::try_from(exact).unwrap_or(count);
    match usage.used_bytes == usage.slab_bytes {
        true => Some(count - 1),
        false => Some(number.min(count)),
    }
}
