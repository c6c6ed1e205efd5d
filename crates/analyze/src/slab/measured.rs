//! Owns the samples that slab rows give: bytes of every cache in every iteration, so that runs are compared by the same
//! code as any other metric. It refuses verdicts.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use perflab_model::{
    Case, Direction, IterationRecord, Nanos, Outcome, RunRecord, Sample, SharedStr, Slot, Unit,
};

use super::recording::{SlabRecording, tick_weights};
use super::timeline::bytes_by_cache;

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
pub(super) enum BytesMeasure {
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
pub(super) struct CacheSamples {
    windows: Vec<(Sample, [BytesByLabel; 3])>,
    /// Noise of ticks, see [`CacheSamples::cache_noise`].
    noise: BytesByLabel,
}

impl CacheSamples {
    /// Measures iterations, or where `whole` the run as one.
    pub(super) fn from_repetition(repetition: &SlabRepetition, whole: bool) -> Self {
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
    pub(super) fn labels(&self) -> BTreeSet<&String> {
        let peaks = self.windows.iter().flat_map(|(_, [_, peak, _])| peak);
        peaks.filter(|(_, bytes)| **bytes > 0.0).map(|(label, _)| label).collect()
    }

    /// Robust standard deviation of the steps of S from tick to tick, bytes: what a cache does by itself.
    pub(super) fn cache_noise(&self, label: &str) -> f64 {
        self.noise.get(label).copied().unwrap_or(0.0)
    }

    /// A run that holds nothing but these samples; a cache that is not there holds 0 bytes.
    pub(super) fn to_run_record(
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
pub(super) fn has_iterations(repetition: &SlabRepetition) -> bool {
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
    plan.slots = vec![Slot { case: 0, iteration: 0, block: 0, warmup: false, boot: 0 }];
    plan.factors.clear();
    record.iterations.clear();
}
