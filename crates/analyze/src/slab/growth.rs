//! Growth of slab bytes: the baseline, the peak, what stayed after the end, and the slope.
//!
//! A slope whose interval excludes zero is what it says, not yet a leak. The slope is a robust one over all pairs, so
//! ticks are batched until a sort of all pairs is cheap enough.

use perflab_model::Nanos;
use perflab_stats::StatsError;
use serde::Serialize;

use super::recording::SlabRecording;
use super::timeline::bytes_by_cache;
use crate::slab::recording::{IterationSpan, SlabError};

/// How to look for growth.
#[derive(Debug, Clone, PartialEq)]
pub struct SlabGrowthOptions {
    /// The baseline ends here; without it, where the first iteration began, or after a tenth of the run.
    pub baseline_until: Option<Nanos>,
    /// The end begins here; without it, where the last iteration ended, or with the last tenth.
    pub end_from: Option<Nanos>,
    /// Caches that are listed one by one.
    pub top: usize,
    /// Tell these caches (see [`SlabRecording::find_caches`]) in place of those that grew most.
    pub only: Option<Vec<usize>>,
    /// Confidence of the slopes' intervals, inside (0, 1).
    pub confidence: f64,
}

impl Default for SlabGrowthOptions {
    fn default() -> Self {
        SlabGrowthOptions { baseline_until: None, end_from: None, top: 10, only: None, confidence: 0.95 }
    }
}

/// Growth of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlabGrowth {
    /// The window before.
    pub baseline: TickWindow,
    /// The window after.
    pub end: TickWindow,
    /// All caches together.
    pub total: CacheGrowth,
    /// The caches that grew most from baseline to peak, largest first.
    pub contributors: Vec<CacheGrowth>,
    /// Growth from baseline to the end of all other caches together, bytes.
    pub others_retained: f64,
    /// Iterations, as marks.
    pub phases: Vec<IterationSpan>,
    /// S of all caches during each of them; one without a tick in it is left out.
    pub during: Vec<PhaseGrowth>,
}

/// S of all caches during one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhaseGrowth {
    /// Which.
    pub phase: IterationSpan,
    /// S at the last tick before it began, or where there is none, at its first; bytes.
    pub before: u64,
    /// Largest S within it, bytes.
    pub peak: u64,
    /// S at its last tick, bytes.
    pub end: u64,
    /// end - before, bytes.
    pub growth: i64,
}

/// A range of ticks; its bytes are the median over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TickWindow {
    /// First tick.
    pub from: Nanos,
    /// Last tick.
    pub to: Nanos,
    /// Ticks.
    pub ticks: usize,
}

/// S of one cache, or of all, over the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheGrowth {
    /// Label of the cache; empty for all.
    pub name: String,
    /// All names that share its slabs.
    pub members: Vec<String>,
    /// Median of S over the baseline window, bytes.
    pub baseline_bytes: f64,
    /// Largest S of the run, bytes.
    pub peak_bytes: u64,
    /// When that was first reached.
    pub peak_at: Nanos,
    /// peak - baseline, bytes.
    pub peak_growth: f64,
    /// Median of S over the window after, bytes.
    pub end_bytes: f64,
    /// end - baseline, bytes: what stayed.
    pub retained: f64,
    /// Slope of S over the whole run; null with fewer than two ticks.
    pub slope: Option<GrowthSlope>,
}

/// Looks for growth.
///
/// # Errors
/// A run without ticks, a confidence outside (0, 1).
pub fn slab_growth(recording: &SlabRecording, options: &SlabGrowthOptions) -> Result<SlabGrowth, SlabError> {
    let windows = GrowthWindows::choose(recording, options)?;
    let bytes = bytes_by_cache(recording);
    let mut sum = vec![0_u64; recording.ticks().len()];
    for bytes in &bytes {
        sum.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(*bytes));
    }
    let grown = |bytes: &Vec<u64>| windows.cache_growth(bytes, recording.ticks());
    let mut caches: Vec<(usize, CacheGrowth)> = Vec::with_capacity(bytes.len());
    for (number, bytes) in bytes.iter().enumerate() {
        caches.push((number, grown(bytes)?));
    }
    caches.sort_by(|a, b| b.1.peak_growth.total_cmp(&a.1.peak_growth));
    let (caches, others): (Vec<_>, Vec<_>) = match &options.only {
        Some(only) => caches.into_iter().partition(|(number, _)| only.contains(number)),
        None => {
            let others = caches.split_off(options.top.min(caches.len()));
            (caches, others)
        }
    };
    let mut contributors = Vec::with_capacity(caches.len());
    for (number, found) in caches {
        let slope = growth_slope(
            recording.ticks(),
            bytes.get(number).map_or(&[], Vec::as_slice),
            options.confidence,
        )?;
        let cache = recording.caches().get(number);
        let name = cache.map(|cache| cache.label()).unwrap_or_default();
        let members = cache.map(|cache| cache.members()).unwrap_or_default();
        contributors.push(CacheGrowth { name, members, slope, ..found });
    }
    let total =
        CacheGrowth { slope: growth_slope(recording.ticks(), &sum, options.confidence)?, ..grown(&sum)? };
    let others_retained = others.iter().map(|(_, found)| found.retained).sum();
    let phases = recording.iteration_spans().to_vec();
    let during = phases.iter().filter_map(|phase| phase_growth(phase, recording.ticks(), &sum)).collect();
    Ok(SlabGrowth {
        baseline: windows.baseline.1,
        end: windows.end.1,
        total,
        contributors,
        others_retained,
        phases,
        during,
    })
}

fn phase_growth(phase: &IterationSpan, ticks: &[Nanos], bytes: &[u64]) -> Option<PhaseGrowth> {
    let begin = ticks.partition_point(|at| *at < phase.start);
    let inside = bytes.get(begin..ticks.partition_point(|at| *at <= phase.end))?;
    let (first, end) = (*inside.first()?, *inside.last()?);
    let before = begin.checked_sub(1).and_then(|number| bytes.get(number)).copied().unwrap_or(first);
    let size = i64::try_from(end.abs_diff(before)).unwrap_or(i64::MAX);
    let growth = if end < before { -size } else { size };
    Some(PhaseGrowth { phase: phase.clone(), before, peak: inside.iter().copied().max()?, end, growth })
}

/// Ticks before and after, as a range each.
struct GrowthWindows {
    baseline: (std::ops::Range<usize>, TickWindow),
    end: (std::ops::Range<usize>, TickWindow),
}

impl GrowthWindows {
    fn choose(recording: &SlabRecording, options: &SlabGrowthOptions) -> Result<Self, SlabError> {
        let ticks = recording.ticks();
        let none = || SlabError::NoRows { monitor: "slabinfo", hint: "the run has no tick" };
        let (first, last) = (ticks.first().ok_or_else(none)?, ticks.last().ok_or_else(none)?);
        let tenth = last.since(*first).0 / 10;
        let began = recording.iteration_spans().iter().map(|phase| phase.start).min();
        let ended = recording.iteration_spans().iter().map(|phase| phase.end).max();
        let until = options.baseline_until.or(began).unwrap_or(Nanos(first.0.saturating_add(tenth)));
        let from = options.end_from.or(ended).unwrap_or(Nanos(last.0.saturating_sub(tenth)));
        // A window holds at least the tick at its end of the run.
        let before = ticks.partition_point(|at| *at < until).max(1);
        let after = ticks.partition_point(|at| *at < from).min(ticks.len() - 1);
        Ok(GrowthWindows {
            baseline: tick_window(ticks, 0..before),
            end: tick_window(ticks, after..ticks.len()),
        })
    }

    fn cache_growth(&self, bytes: &[u64], ticks: &[Nanos]) -> Result<CacheGrowth, SlabError> {
        let (mut peak_bytes, mut peak_at) = (0, ticks.first().copied().unwrap_or_default());
        for (bytes, at) in bytes.iter().zip(ticks).filter(|(bytes, _)| **bytes > 0) {
            if *bytes > peak_bytes {
                (peak_bytes, peak_at) = (*bytes, *at);
            }
        }
        let baseline_bytes = median_bytes(bytes.get(self.baseline.0.clone()).unwrap_or_default())?;
        let end_bytes = median_bytes(bytes.get(self.end.0.clone()).unwrap_or_default())?;
        Ok(CacheGrowth {
            name: String::new(),
            members: Vec::new(),
            baseline_bytes,
            peak_bytes,
            peak_at,
            peak_growth: peak_bytes as f64 - baseline_bytes,
            end_bytes,
            retained: end_bytes - baseline_bytes,
            slope: None,
        })
    }
}

fn tick_window(ticks: &[Nanos], range: std::ops::Range<usize>) -> (std::ops::Range<usize>, TickWindow) {
    let at = |number: usize| ticks.get(number).copied().unwrap_or_default();
    let found = TickWindow { from: at(range.start), to: at(range.end.saturating_sub(1)), ticks: range.len() };
    (range, found)
}

fn median_bytes(bytes: &[u64]) -> Result<f64, SlabError> {
    let values: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64).collect();
    let failed = |source| SlabError::Statistic { subject: "median of a window".into(), source };
    perflab_stats::median(&values).map_err(failed)
}

/// Batches of ticks that a slope is made of, at most: 120 give 7,140 pairs.
const MOST_BATCHES: usize = 120;

/// Bytes per second (Theil and Sen; see [`perflab_stats::theil_sen`]).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GrowthSlope {
    /// Median of the slopes between all pairs of ticks.
    pub bytes_per_second: f64,
    /// Lower limit; null where there are too few independent ticks for one.
    pub low: Option<f64>,
    /// Upper limit.
    pub high: Option<f64>,
    /// The level that the limits really have.
    pub level: Option<f64>,
}

impl GrowthSlope {
    /// Whether the interval lies above zero.
    #[must_use]
    pub fn is_growing(&self) -> bool {
        self.low.is_some_and(|low| low > 0.0)
    }
}

/// Of batches of ticks, each with its median time and bytes.
fn growth_slope(ticks: &[Nanos], bytes: &[u64], confidence: f64) -> Result<Option<GrowthSlope>, SlabError> {
    let first = ticks.first().copied().unwrap_or_default();
    if ticks.last().copied().unwrap_or_default() <= first {
        return Ok(None);
    }
    let batch = ticks.len().div_ceil(MOST_BATCHES).max(1);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (ticks, bytes) in ticks.chunks(batch).zip(bytes.chunks(batch)) {
        let seconds: Vec<f64> = ticks.iter().map(|at| at.since(first).seconds()).collect();
        let bytes: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64).collect();
        x.push(perflab_stats::median(&seconds).map_err(statistic_error)?);
        y.push(perflab_stats::median(&bytes).map_err(statistic_error)?);
    }
    let found = match perflab_stats::theil_sen(&x, &y, confidence) {
        Err(perflab_stats::StatsError::NoSpread | perflab_stats::StatsError::TooFew { .. }) => {
            return Ok(None);
        }
        found => found.map_err(statistic_error)?,
    };
    Ok(Some(GrowthSlope {
        bytes_per_second: found.value,
        low: found.interval.map(|interval| interval.low),
        high: found.interval.map(|interval| interval.high),
        level: found.interval.map(|interval| interval.level),
    }))
}

fn statistic_error(source: StatsError) -> SlabError {
    SlabError::Statistic { subject: "slope".into(), source }
}
