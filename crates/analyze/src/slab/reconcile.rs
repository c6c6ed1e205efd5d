//! Owns the account against /proc/meminfo: what the kernel calls Slab, and what its caches add up to. It refuses to
//! explain the rest away: large kmallocs (above two pages, straight from the page allocator; counted as unreclaimable
//! slab by current kernels) and the time between the two readings stay in the residual.

use perflab_model::Nanos;
use perflab_model::series::Series;
use serde::Serialize;

use super::columns::{Ints, at, in_time, ints};
use super::error::SlabError;
use super::ratio::{signed, unsigned};
use super::recording::{Recording, with_rows};

/// meminfo against the caches, tick by tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reconciliation {
    /// One a tick of the slab rows.
    pub points: Vec<Residual>,
    /// Median of meminfo's Slab - S over the ticks, bytes.
    pub median: f64,
}

/// One tick: meminfo's value, ours, and the rest; all bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Residual {
    /// CLOCK_MONOTONIC of the slab rows.
    pub at: Nanos,
    /// How much later (earlier if below zero) meminfo was read; nanoseconds.
    pub skew: i64,
    /// `Slab` against S of all caches.
    pub slab: Part,
    /// `SReclaimable` against S of reclaimable caches.
    pub reclaimable: Option<Part>,
    /// `SUnreclaim` against S of all others whose kind is known.
    pub unreclaimable: Option<Part>,
    /// S of caches of which it is not known whether they are reclaimable; it is in neither part.
    #[serde(serialize_with = "unsigned")]
    pub unknown_bytes: u128,
}

/// meminfo = caches + residual, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Part {
    /// meminfo's value.
    pub meminfo: u64,
    /// S of the caches.
    #[serde(serialize_with = "unsigned")]
    pub caches: u128,
    /// meminfo - caches.
    #[serde(serialize_with = "signed")]
    pub residual: i128,
}

/// Sets every tick against the meminfo row nearest in time.
///
/// # Errors
/// No `meminfo` with rows that say `Slab`.
pub fn reconcile(recording: &Recording, meminfo: Option<&Series>) -> Result<Reconciliation, SlabError> {
    let none = SlabError::NoRows { monitor: "meminfo", hint: "record it beside slabinfo" };
    let meminfo = with_rows(meminfo).ok_or(none.clone())?;
    let readings = readings(meminfo);
    let sums = sums(recording);
    let point = |(at, sums): (&Nanos, &Sums)| Some(residual(*at, sums, nearest(&readings, *at)?));
    let points: Vec<Residual> = recording.ticks().iter().zip(&sums).filter_map(point).collect();
    let values: Vec<f64> = points.iter().map(|point| point.slab.residual as f64).collect();
    let median = perflab_stats::median(&values).map_err(|_| none)?;
    Ok(Reconciliation { points, median })
}

/// S of one tick by kind, bytes.
#[derive(Clone, Copy, Default)]
struct Sums {
    reclaimable: u128,
    unreclaimable: u128,
    unknown: u128,
}

fn sums(recording: &Recording) -> Vec<Sums> {
    let kind = |cache: usize| recording.caches().get(cache)?.attributes.as_ref()?.reclaimable;
    let mut sums = vec![Sums::default(); recording.ticks().len()];
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
struct Reading {
    at: Nanos,
    slab: u64,
    reclaimable: Option<u64>,
    unreclaimable: Option<u64>,
}

fn readings(meminfo: &Series) -> Vec<Reading> {
    let column = |name| -> Ints { ints(meminfo, name) };
    let (slab, reclaimable, unreclaimable) = (column("Slab"), column("SReclaimable"), column("SUnreclaim"));
    let reading = |row: usize| {
        Some(Reading {
            at: at(meminfo, row),
            slab: slab.count(row)?,
            reclaimable: reclaimable.count(row),
            unreclaimable: unreclaimable.count(row),
        })
    };
    in_time(meminfo).into_iter().filter_map(reading).collect()
}

fn nearest(readings: &[Reading], at: Nanos) -> Option<&Reading> {
    let after = readings.partition_point(|reading| reading.at < at);
    let candidates = readings.get(after.saturating_sub(1)..(after + 1).min(readings.len()))?;
    candidates.iter().min_by_key(|reading| reading.at.0.abs_diff(at.0))
}

fn residual(at: Nanos, sums: &Sums, reading: &Reading) -> Residual {
    let distance = i64::try_from(reading.at.0.abs_diff(at.0)).unwrap_or(i64::MAX);
    let all = sums.reclaimable + sums.unreclaimable + sums.unknown;
    let known = sums.reclaimable + sums.unreclaimable > 0;
    let split = |meminfo: Option<u64>, caches| meminfo.filter(|_| known).map(|value| part(value, caches));
    Residual {
        at,
        skew: if reading.at < at { -distance } else { distance },
        slab: part(reading.slab, all),
        reclaimable: split(reading.reclaimable, sums.reclaimable),
        unreclaimable: split(reading.unreclaimable, sums.unreclaimable),
        unknown_bytes: sums.unknown,
    }
}

fn part(meminfo: u64, caches: u128) -> Part {
    let ours = i128::try_from(caches).unwrap_or(i128::MAX);
    Part { meminfo, caches, residual: i128::from(meminfo).saturating_sub(ours) }
}
