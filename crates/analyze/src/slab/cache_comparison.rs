//! Bytes per cache between runs: their samples, their noise floor, their rows.
//!
//! Bytes of every cache in every iteration become samples, so that runs are compared by the same code as any metric
//! ([`compare_sides`](crate::compare_sides)). Only the noise floor is new: changes up to it are noise whatever the
//! statistics say, and it is at least one slab, as no cache can hold less.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use perflab_model::{
    Case, Direction, IterationRecord, Nanos, Outcome, RunRecord, Sample, SharedStr, Slot, Unit,
};
use serde::Serialize;

use crate::compare::change::{ChangeScale, MetricChange};
use crate::compare::comparison::{Comparison, SideSummary, Verdict, VerdictRow};
use crate::compare::gate::Gate;
use crate::compare::options::{AnalysisOptions, ComparisonSide};
use crate::method_description::MethodDescription;
use crate::slab::recording::{SlabError, SlabRecording, tick_weights};
use crate::slab::timeline::bytes_by_cache;

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
#[derive(Debug, Clone, PartialEq)]
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
    /// Changes up to here are noise whatever the statistics say, bytes; see [`MethodDescription::SlabNoiseFloor`].
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
/// As [`compare_sides`](crate::compare_sides): a side without runs, no candidate, no case in common, options out of range.
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
        crate::compare::pipeline::compare_sides(&first, &all.collect::<Vec<_>>(), &options.options)
    };
    let mut mean = judged(BytesMeasure::Mean)?;
    let (peak, end) = (rows_by_key(judged(BytesMeasure::Peak)?), rows_by_key(judged(BytesMeasure::End)?));
    mean.notes.push(MethodDescription::SlabNoiseFloor);
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
    let all = change.cache == ALL_CACHES;
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
    let is_change = matches!(row.verdict, Verdict::Better | Verdict::Worse | Verdict::Differs);
    let same = if row.between_runs.is_some() { Verdict::SameHere } else { Verdict::Same };
    let within_floor = small && is_change;
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
        verdict: if within_floor { same } else { row.verdict },
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

/// What the floors are made of.
struct NoiseFloors {
    /// Bytes of the largest slab of each cache.
    slab: BTreeMap<String, u64>,
    /// Noise of ticks of each cache, the largest of all runs.
    ticks: BTreeMap<String, f64>,
}

impl NoiseFloors {
    fn from_samples(sides: &[&SlabSide], measured: &[Vec<CacheSamples>]) -> Self {
        let mut slab: BTreeMap<String, u64> = BTreeMap::new();
        let mut ticks: BTreeMap<String, f64> = BTreeMap::new();
        let runs = sides.iter().flat_map(|side| &side.runs).zip(measured.iter().flatten());
        for (run, measured) in runs {
            for cache in run.recording.caches() {
                let noise = ticks.entry(cache.label()).or_default();
                *noise = noise.max(measured.cache_noise(&cache.label()));
            }
            for row in run.recording.rows() {
                let Some(cache) = run.recording.caches().get(row.cache) else { continue };
                match slab.get_mut(&cache.name) {
                    Some(bytes) => *bytes = row.bytes_per_slab.max(*bytes),
                    None => drop(slab.insert(cache.name.clone(), row.bytes_per_slab)),
                }
            }
            let all = ticks.entry(ALL_CACHES.into()).or_default();
            *all = all.max(measured.cache_noise(ALL_CACHES));
        }
        NoiseFloors { slab, ticks }
    }

    fn row_floor(&self, row: &VerdictRow) -> f64 {
        let name = row.metric.split('#').next().unwrap_or_default();
        let one_slab = self.slab.get(name).copied().unwrap_or(0) as f64;
        let noise = pooled_repetition_sd(row).or_else(|| self.ticks.get(&row.metric).copied()).unwrap_or(0.0);
        one_slab.max(2.0 * noise)
    }
}

/// Pooled standard deviation of the repetitions, where both sides have several.
fn pooled_repetition_sd(row: &VerdictRow) -> Option<f64> {
    let sd = |summary: Option<&SideSummary>| {
        let values: Vec<f64> = summary?.values.iter().map(|point| point.value).collect();
        perflab_stats::sd(&values).ok()
    };
    let (ours, theirs) = (sd(row.baseline.as_ref())?, sd(row.candidate.as_ref())?);
    Some(ours.powi(2).midpoint(theirs.powi(2)).sqrt())
}

/// The name under which all caches together are compared.
pub const ALL_CACHES: &str = "all caches";

/// One run, ready to be compared.
#[derive(Debug, Clone, Copy)]
pub struct SlabRepetition<'a> {
    /// The run.
    pub record: &'a RunRecord,
    /// Its slab rows.
    pub recording: &'a SlabRecording,
}

/// What is measured of a cache's slab bytes in a window of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BytesMeasure {
    /// sum S*dt / sum dt
    Mean,
    /// the largest S
    Peak,
    /// S at the last tick
    End,
}

/// One value a cache: its label and bytes.
type BytesByLabel = BTreeMap<String, f64>;

/// All caches of one run, in each of its windows.
struct CacheSamples {
    windows: Vec<(Sample, [BytesByLabel; 3])>,
    /// Noise of ticks, see [`CacheSamples::cache_noise`].
    noise: BytesByLabel,
}

impl CacheSamples {
    /// Measures iterations, or where `whole` the run as one.
    fn from_repetition(repetition: &SlabRepetition, whole: bool) -> Self {
        let recording = repetition.recording;
        let (labels, bytes) = bytes_by_label(recording);
        let windows = iteration_windows(repetition, whole).into_iter().filter_map(|(sample, from, to)| {
            let ticks = recording.ticks();
            let range = ticks.partition_point(|at| *at < from)..ticks.partition_point(|at| *at <= to);
            let inside = ticks.get(range.clone()).filter(|inside| !inside.is_empty())?;
            let weights = tick_weights(inside);
            let mut found: [BytesByLabel; 3] = Default::default();
            for (label, bytes) in labels.iter().zip(&bytes) {
                let bytes = bytes.get(range.clone())?;
                for (values, value) in found.iter_mut().zip(measure_bytes(bytes, &weights)) {
                    values.insert(label.clone(), value);
                }
            }
            Some((sample, found))
        });
        let windows = windows.collect();
        let noise = labels.iter().zip(&bytes).map(|(label, bytes)| (label.clone(), robust_tick_noise(bytes)));
        CacheSamples { windows, noise: noise.collect() }
    }

    /// Labels of caches that ever had a slab in a window.
    pub(crate) fn labels(&self) -> BTreeSet<&String> {
        let peaks = self.windows.iter().flat_map(|(_, [_, peak, _])| peak);
        peaks.filter(|(_, bytes)| **bytes > 0.0).map(|(label, _)| label).collect()
    }

    /// Robust standard deviation of the steps of S from tick to tick, bytes: what a cache does by itself.
    fn cache_noise(&self, label: &str) -> f64 {
        self.noise.get(label).copied().unwrap_or(0.0)
    }

    /// A run that holds nothing but these samples; a cache that is not there holds 0 bytes.
    fn to_run_record(
        &self,
        repetition: &SlabRepetition,
        labels: &BTreeSet<&String>,
        measure: BytesMeasure,
        whole: bool,
    ) -> RunRecord {
        let mut record = repetition.record.clone();
        if whole {
            merge_into_one_case(&mut record);
        }
        let sample = |sample: &Sample, values: &BytesByLabel, label: &str| Sample {
            metric: label.into(),
            value: values.get(label).copied().unwrap_or(0.0),
            ..sample.clone()
        };
        let of_window = |(window, values): &(Sample, [BytesByLabel; 3])| {
            let [mean, peak, end] = values;
            let values = match measure {
                BytesMeasure::Mean => mean,
                BytesMeasure::Peak => peak,
                BytesMeasure::End => end,
            };
            labels.iter().map(|label| sample(window, values, label)).collect::<Vec<_>>()
        };
        record.samples = self.windows.iter().flat_map(of_window).collect();
        record
    }
}

/// Labels of all caches and of their sum, each with S at every tick.
fn bytes_by_label(recording: &SlabRecording) -> (Vec<String>, Vec<Vec<u64>>) {
    let mut bytes = bytes_by_cache(recording);
    let mut sum = vec![0_u64; recording.ticks().len()];
    for bytes in &bytes {
        sum.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(*bytes));
    }
    bytes.push(sum);
    let mut labels: Vec<String> = recording.caches().iter().map(|cache| cache.label()).collect();
    labels.push(ALL_CACHES.into());
    (labels, bytes)
}

/// Mean over time, peak, end.
fn measure_bytes(bytes: &[u64], weights: &[u128]) -> [f64; 3] {
    let weight: u128 = weights.iter().sum();
    let sum: u128 = bytes.iter().zip(weights).map(|(bytes, weight)| u128::from(*bytes) * weight).sum();
    let peak = bytes.iter().max().copied().unwrap_or(0);
    let end = bytes.last().copied().unwrap_or(0);
    [sum as f64 / weight.max(1) as f64, peak as f64, end as f64]
}

fn robust_tick_noise(bytes: &[u64]) -> f64 {
    let step = |pair: &[u64]| match pair {
        [before, after] => *after as f64 - *before as f64,
        _ => 0.0,
    };
    let steps: Vec<f64> = bytes.windows(2).map(step).collect();
    perflab_stats::robust_sd(&steps).unwrap_or(0.0)
}

/// Every measured iteration that ended well, or the whole run: a sample without a metric, and its time.
fn iteration_windows(repetition: &SlabRepetition, whole: bool) -> Vec<(Sample, Nanos, Nanos)> {
    let ticks = repetition.recording.ticks();
    if whole {
        let (from, to) = (ticks.first().copied(), ticks.last().copied());
        let (from, to) = (from.unwrap_or_default(), to.unwrap_or_default());
        return vec![(window_sample(0, 0, from, to), from, to)];
    }
    let plan = &repetition.record.manifest.plan;
    let window = |iteration: &IterationRecord| {
        let slot = plan.slots.get(iteration.slot as usize).filter(|slot| !slot.warmup)?;
        let ended = iteration.outcome == Outcome::Ok;
        let (from, to) = (iteration.start, iteration.end);
        ended.then(|| (window_sample(slot.case, slot.iteration, from, to), from, to))
    };
    repetition.record.iterations.iter().filter_map(window).collect()
}

fn window_sample(case: u32, iteration: u32, start: Nanos, end: Nanos) -> Sample {
    Sample {
        boot: 0,
        target: None,
        case,
        iteration,
        metric: SharedStr::default(),
        value: 0.0,
        unit: Unit::new("bytes"),
        direction: Direction::Lower,
        primary: true,
        start,
        end,
    }
}

/// Whether a run has iterations to measure.
fn has_iterations(repetition: &SlabRepetition) -> bool {
    !iteration_windows(repetition, false).is_empty()
}

/// Makes the whole run one iteration of one case, which all runs have in common.
fn merge_into_one_case(record: &mut RunRecord) {
    let plan = &mut record.manifest.plan;
    plan.cases = vec![Case {
        workload: "whole run".into(),
        uses: "slab".into(),
        point: IndexMap::new(),
        parameters: IndexMap::new(),
        environment: IndexMap::new(),
        levels: IndexMap::new(),
    }];
    plan.slots = vec![Slot { case: 0, iteration: 0, block: 0, warmup: false, boot: 0, layout: None }];
    plan.factors.clear();
    record.iterations.clear();
}
