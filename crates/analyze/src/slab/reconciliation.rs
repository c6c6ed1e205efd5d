//! The account against /proc/meminfo: what the kernel calls Slab, and what its caches add up to.
//!
//! The rest is not explained away: large kmallocs (above two pages, straight from the page allocator; counted as
//! unreclaimable slab by current kernels) and the time between the two readings stay in the residual.

use perflab_model::Nanos;
use perflab_model::series::Series;
use serde::Serialize;

use crate::slab::recording::{SlabError, SlabRecording, non_empty};
use crate::slab::recording_reader::{row_time, rows_in_time_order};
use crate::slab::usage::{serialize_signed, serialize_unsigned};

/// meminfo against the caches, tick by tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeminfoReconciliation {
    /// One a tick of the slab rows.
    pub points: Vec<MeminfoResidual>,
    /// Median of meminfo's Slab - S over the ticks, bytes.
    pub median: f64,
}

/// One tick: meminfo's value, ours, and the rest; all bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MeminfoResidual {
    /// CLOCK_MONOTONIC of the slab rows.
    pub at: Nanos,
    /// How much later (earlier if below zero) meminfo was read; nanoseconds.
    pub skew: i64,
    /// `Slab` against S of all caches.
    pub slab: ReconciledBytes,
    /// `SReclaimable` against S of reclaimable caches.
    pub reclaimable: Option<ReconciledBytes>,
    /// `SUnreclaim` against S of all others whose kind is known.
    pub unreclaimable: Option<ReconciledBytes>,
    /// S of caches of which it is not known whether they are reclaimable; it is in neither part.
    #[serde(serialize_with = "serialize_unsigned")]
    pub unknown_bytes: u128,
}

/// meminfo = caches + residual, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ReconciledBytes {
    /// meminfo's value.
    pub meminfo: u64,
    /// S of the caches.
    #[serde(serialize_with = "serialize_unsigned")]
    pub caches: u128,
    /// meminfo - caches.
    #[serde(serialize_with = "serialize_signed")]
    pub residual: i128,
}

/// Sets every tick against the meminfo row nearest in time.
///
/// # Errors
/// No `meminfo` with rows that say `Slab`.
pub fn reconcile_with_meminfo(
    recording: &SlabRecording,
    meminfo: Option<&Series>,
) -> Result<MeminfoReconciliation, SlabError> {
    let none = SlabError::NoRows { monitor: "meminfo", hint: "record it beside slabinfo" };
    let meminfo = non_empty(meminfo).ok_or(none.clone())?;
    let readings = meminfo_slab_rows(meminfo);
    let sums = slab_bytes_by_tick(recording);
    let point = |(at, sums): (&Nanos, &TickSlabBytes)| {
        Some(meminfo_residual(*at, sums, nearest_row(&readings, *at)?))
    };
    let points: Vec<MeminfoResidual> = recording.ticks().iter().zip(&sums).filter_map(point).collect();
    let values: Vec<f64> = points.iter().map(|point| point.slab.residual as f64).collect();
    let median = perflab_stats::median(&values).map_err(|_| none)?;
    Ok(MeminfoReconciliation { points, median })
}

/// S of one tick by kind, bytes.
#[derive(Clone, Copy, Default)]
struct TickSlabBytes {
    reclaimable: u128,
    unreclaimable: u128,
    unknown: u128,
}

fn slab_bytes_by_tick(recording: &SlabRecording) -> Vec<TickSlabBytes> {
    let kind = |cache: usize| recording.caches().get(cache)?.attributes.as_ref()?.reclaimable;
    let mut sums = vec![TickSlabBytes::default(); recording.ticks().len()];
    for row in recording.rows() {
        let bytes = u128::from(row.slabs) * u128::from(row.bytes_per_slab);
        for sums in sums.get_mut(row.ticks()).unwrap_or_default() {
            *match kind(row.cache) {
                Some(true) => &mut sums.reclaimable,
                Some(false) => &mut sums.unreclaimable,
                None => &mut sums.unknown,
            } += bytes;
        }
    }
    sums
}

/// One row of meminfo.
struct MeminfoSlabRow {
    at: Nanos,
    slab: u64,
    reclaimable: Option<u64>,
    unreclaimable: Option<u64>,
}

fn meminfo_slab_rows(meminfo: &Series) -> Vec<MeminfoSlabRow> {
    let [slab, reclaimable, unreclaimable] =
        ["Slab", "SReclaimable", "SUnreclaim"].map(|name| meminfo.named_column::<i64>(name));
    let reading = |row: usize| {
        Some(MeminfoSlabRow {
            at: row_time(meminfo, row),
            slab: slab.count(row)?,
            reclaimable: reclaimable.count(row),
            unreclaimable: unreclaimable.count(row),
        })
    };
    rows_in_time_order(meminfo).into_iter().filter_map(reading).collect()
}

fn nearest_row(readings: &[MeminfoSlabRow], at: Nanos) -> Option<&MeminfoSlabRow> {
    let after = readings.partition_point(|reading| reading.at < at);
    let candidates = readings.get(after.saturating_sub(1)..(after + 1).min(readings.len()))?;
    candidates.iter().min_by_key(|reading| reading.at.0.abs_diff(at.0))
}

fn meminfo_residual(at: Nanos, sums: &TickSlabBytes, reading: &MeminfoSlabRow) -> MeminfoResidual {
    let distance = i64::try_from(reading.at.0.abs_diff(at.0)).unwrap_or(i64::MAX);
    let all = sums.reclaimable + sums.unreclaimable + sums.unknown;
    let known = sums.reclaimable + sums.unreclaimable > 0;
    let split =
        |meminfo: Option<u64>, caches| meminfo.filter(|_| known).map(|value| reconciled_bytes(value, caches));
    MeminfoResidual {
        at,
        skew: if reading.at < at { -distance } else { distance },
        slab: reconciled_bytes(reading.slab, all),
        reclaimable: split(reading.reclaimable, sums.reclaimable),
        unreclaimable: split(reading.unreclaimable, sums.unreclaimable),
        unknown_bytes: sums.unknown,
    }
}

fn reconciled_bytes(meminfo: u64, caches: u128) -> ReconciledBytes {
    let ours = i128::try_from(caches).unwrap_or(i128::MAX);
    ReconciledBytes { meminfo, caches, residual: i128::from(meminfo).saturating_sub(ours) }
}
