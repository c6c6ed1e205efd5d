//! Owns the question "which caches hold more or fewer bytes?" between runs or groups of runs. It refuses statistics of
//! its own: bytes become samples, and samples are judged by [`crate::compare_caches()`]; only the noise floor in bytes is new.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::error::SlabError;
use super::floor::{NOISE_FLOOR_METHOD, NoiseFloors};
use super::measured::{BytesMeasure, CacheSamples, SlabRepetition, has_iterations};
use crate::comparison::{ChangeScale, Comparison, MetricChange, Verdict, VerdictRow};
use crate::{AnalysisOptions, ComparisonSide, Gate};

/// One side: runs that are repetitions of one another.
#[derive(Debug, Clone)]
pub struct SlabSide<'a> {
    /// What people call it.
    pub name: String,
    /// Its runs, at least one.
    pub runs: Vec<SlabRepetition<'a>>,
}

/// How to compare slabs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SlabCompareOptions {
    /// Confidence and margin.
    pub options: AnalysisOptions,
    /// Compare whole runs, not iterations; so it is anyway where a run has none.
    pub whole_runs: bool,
}

/// Bytes per cache, side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlabComparison {
    /// Whether whole runs were compared, or iterations.
    pub whole_runs: bool,
    /// One a case, cache and candidate; the largest change in bytes first, all caches together before.
    pub caches: Vec<CacheChange>,
    /// By S on average over time, as any comparison: warnings, facts, notes and runs are there.
    pub mean: Comparison,
}

/// One cache: baseline against one candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheChange {
    /// Label of the cache, or `all caches`.
    pub cache: String,
    /// All names that share its slabs, of all runs.
    pub members: Vec<String>,
    /// The case.
    pub subject: String,
    /// Name of the candidate.
    pub candidate_name: String,
    /// S on average over time: the row that decides.
    pub mean: VerdictRow,
    /// The largest S.
    pub peak: Option<VerdictRow>,
    /// S at the last tick.
    pub end: Option<VerdictRow>,
    /// Change of the mean in bytes, with its interval; null where a side has no value.
    pub bytes: Option<BytesChange>,
    /// Changes up to here are noise whatever the statistics say, bytes; see [`SlabComparison`] notes.
    pub floor: f64,
    /// The mean's verdict; `same` for a change within the floor.
    pub verdict: Verdict,
    /// Whether the change was cut to `same` by the floor.
    pub within_floor: bool,
}

/// A change in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BytesChange {
    /// candidate - baseline; of a ratio, times the baseline's median.
    pub value: f64,
    /// Lower limit; null without an interval.
    pub low: Option<f64>,
    /// Upper limit.
    pub high: Option<f64>,
}

/// Compares slab bytes of one side with others.
///
/// # Errors
/// As [`crate::compare_caches()`]: a side without runs, no candidate, no case in common, options out of range.
pub fn compare_caches(
    baseline: &SlabSide,
    candidates: &[SlabSide],
    options: &SlabCompareOptions,
) -> Result<SlabComparison, SlabError> {
    let sides: Vec<&SlabSide> = std::iter::once(baseline).chain(candidates).collect();
    let whole = options.whole_runs || !sides.iter().flat_map(|side| &side.runs).all(has_iterations);
    let measured: Vec<Vec<CacheSamples>> = sides
        .iter()
        .map(|side| side.runs.iter().map(|run| CacheSamples::from_repetition(run, whole)).collect())
        .collect();
    let labels: BTreeSet<&String> = measured.iter().flatten().flat_map(CacheSamples::labels).collect();
    let judged = |measure| {
        let side = |(side, measured): (&&SlabSide, &Vec<CacheSamples>)| ComparisonSide {
            name: side.name.clone(),
            runs: side
                .runs
                .iter()
                .zip(measured)
                .map(|(run, m)| m.to_run_record(run, &labels, measure, whole))
                .collect(),
        };
        let mut all = sides.iter().zip(&measured).map(side);
        let first =
            all.next().unwrap_or_else(|| ComparisonSide { name: baseline.name.clone(), runs: Vec::new() });
        crate::compare_sides(&first, &all.collect::<Vec<_>>(), &options.options)
    };
    let mut mean = judged(BytesMeasure::Mean)?;
    let (peak, end) = (rows_by_key(judged(BytesMeasure::Peak)?), rows_by_key(judged(BytesMeasure::End)?));
    mean.notes.push(NOISE_FLOOR_METHOD.into());
    let (members, floors) = (members_by_label(&sides), NoiseFloors::from_samples(&sides, &measured));
    let change = |row: &VerdictRow| CacheChange {
        members: members.get(&row.metric).map(|names| names.iter().cloned().collect()).unwrap_or_default(),
        peak: peak.get(&cache_change_key(row)).cloned(),
        end: end.get(&cache_change_key(row)).cloned(),
        ..apply_noise_floor(row, floors.row_floor(row))
    };
    let mut caches: Vec<CacheChange> = mean.rows.iter().map(change).collect();
    caches.sort_by(|a, b| change_rank(b).total_cmp(&change_rank(a)).then_with(|| a.cache.cmp(&b.cache)));
    Ok(SlabComparison { whole_runs: whole, caches, mean })
}

impl SlabComparison {
    /// The changes that a gate does not accept; changes within the noise floor are accepted always.
    #[must_use]
    pub fn violations(&self, gate: &Gate) -> Vec<&CacheChange> {
        let hit: BTreeSet<CacheChangeKey> =
            self.mean.violations(gate).into_iter().map(cache_change_key).collect();
        self.caches
            .iter()
            .filter(|change| !change.within_floor && hit.contains(&cache_change_key(&change.mean)))
            .collect()
    }
}

/// Case, cache and candidate.
type CacheChangeKey = (String, String, String);

fn cache_change_key(row: &VerdictRow) -> CacheChangeKey {
    (row.subject.clone(), row.metric.clone(), row.candidate_name.clone())
}

fn rows_by_key(comparison: Comparison) -> BTreeMap<CacheChangeKey, VerdictRow> {
    comparison.rows.into_iter().map(|row| (cache_change_key(&row), row)).collect()
}

fn change_rank(change: &CacheChange) -> f64 {
    let all = change.cache == super::measured::ALL_CACHES;
    if all { f64::INFINITY } else { change.bytes.map_or(0.0, |bytes| bytes.value.abs()) }
}

/// The names behind each label, of all runs.
fn members_by_label(sides: &[&SlabSide]) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for cache in sides.iter().flat_map(|side| &side.runs).flat_map(|run| run.recording.caches()) {
        found.entry(cache.label()).or_default().extend(cache.members());
    }
    found
}

fn apply_noise_floor(row: &VerdictRow, floor: f64) -> CacheChange {
    let bytes = row.change.as_ref().and_then(|change| change_in_bytes(row, change));
    // Through logarithms and back, a change of exactly one slab is a hair off.
    let small = bytes.is_some_and(|bytes| bytes.value.abs() <= floor * (1.0 + 1e-9));
    let within_floor = small && matches!(row.verdict, Verdict::Better | Verdict::Worse);
    CacheChange {
        cache: row.metric.clone(),
        members: Vec::new(),
        subject: row.subject.clone(),
        candidate_name: row.candidate_name.clone(),
        mean: row.clone(),
        peak: None,
        end: None,
        bytes,
        floor,
        verdict: if within_floor { Verdict::Same } else { row.verdict },
        within_floor,
    }
}

fn change_in_bytes(row: &VerdictRow, change: &MetricChange) -> Option<BytesChange> {
    let scale = match change.scale {
        ChangeScale::Ratio => row.baseline.as_ref()?.median,
        ChangeScale::Absolute => 1.0,
    };
    Some(BytesChange {
        value: change.value * scale,
        low: change.interval.map(|interval| interval.low * scale),
        high: change.interval.map(|interval| interval.high * scale),
    })
}
