//! Owns growth: what there was before, the peak, what stayed after the end, and how fast it went. It refuses to call
//! it a leak: a slope whose interval excludes zero is what it says.

use perflab_model::Nanos;
use serde::Serialize;

use super::error::SlabError;
use super::phase::Phase;
use super::recording::Recording;
use super::slope::slope;
use super::timeline::bytes_of_caches;

pub use super::slope::Slope;

/// How to look for growth.
#[derive(Debug, Clone, PartialEq)]
pub struct GrowthOptions {
    /// The baseline ends here; without it, where the first iteration began, or after a tenth of the run.
    pub baseline_until: Option<Nanos>,
    /// The end begins here; without it, where the last iteration ended, or with the last tenth.
    pub end_from: Option<Nanos>,
    /// Caches that are told one by one.
    pub top: usize,
    /// Tell these caches (see [`Recording::find`]) in place of those that grew most.
    pub only: Option<Vec<usize>>,
    /// Confidence of the slopes' intervals, inside (0, 1).
    pub confidence: f64,
}

impl Default for GrowthOptions {
    fn default() -> Self {
        GrowthOptions { baseline_until: None, end_from: None, top: 10, only: None, confidence: 0.95 }
    }
}

/// Growth of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Growth {
    /// The window before.
    pub baseline: Window,
    /// The window after.
    pub end: Window,
    /// All caches together.
    pub total: Grown,
    /// The caches that grew most from baseline to peak, largest first.
    pub contributors: Vec<Grown>,
    /// Growth from baseline to the end of all other caches together, bytes.
    pub others_retained: f64,
    /// Iterations, as marks.
    pub phases: Vec<Phase>,
    /// S of all caches during each of them; one without a tick in it is left out.
    pub during: Vec<During>,
}

/// S of all caches during one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct During {
    /// Which.
    pub phase: Phase,
    /// S at the last tick before it began, or where there is none, at its first; bytes.
    pub before: u64,
    /// Largest S within it, bytes.
    pub peak: u64,
    /// S at its last tick, bytes.
    pub end: u64,
    /// end - before, bytes.
    pub growth: i64,
}

/// A stretch of ticks; its bytes are the median over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    /// First tick.
    pub from: Nanos,
    /// Last tick.
    pub to: Nanos,
    /// Ticks.
    pub ticks: usize,
}

/// S of one cache, or of all, over the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Grown {
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
    pub slope: Option<Slope>,
}

/// Looks for growth.
///
/// # Errors
/// A run without ticks, a confidence outside (0, 1).
pub fn growth(recording: &Recording, options: &GrowthOptions) -> Result<Growth, SlabError> {
    let windows = Windows::of(recording, options)?;
    let bytes = bytes_of_caches(recording);
    let mut sum = vec![0_u64; recording.ticks().len()];
    for bytes in &bytes {
        sum.iter_mut().zip(bytes).for_each(|(sum, bytes)| *sum = sum.saturating_add(*bytes));
    }
    let grown = |bytes: &Vec<u64>| windows.grown(bytes, recording.ticks());
    let mut caches: Vec<(usize, Grown)> = Vec::with_capacity(bytes.len());
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
        let slope =
            slope(recording.ticks(), bytes.get(number).map_or(&[], Vec::as_slice), options.confidence)?;
        let cache = recording.caches().get(number);
        let name = cache.map(|cache| cache.label()).unwrap_or_default();
        let members = cache.map(|cache| cache.members()).unwrap_or_default();
        contributors.push(Grown { name, members, slope, ..found });
    }
    let total = Grown { slope: slope(recording.ticks(), &sum, options.confidence)?, ..grown(&sum)? };
    let others_retained = others.iter().map(|(_, found)| found.retained).sum();
    let phases = recording.phases().to_vec();
    let during = phases.iter().filter_map(|phase| during(phase, recording.ticks(), &sum)).collect();
    Ok(Growth {
        baseline: windows.baseline.1,
        end: windows.end.1,
        total,
        contributors,
        others_retained,
        phases,
        during,
    })
}

fn during(phase: &Phase, ticks: &[Nanos], bytes: &[u64]) -> Option<During> {
    let begin = ticks.partition_point(|at| *at < phase.start);
    let inside = bytes.get(begin..ticks.partition_point(|at| *at <= phase.end))?;
    let (first, end) = (*inside.first()?, *inside.last()?);
    let before = begin.checked_sub(1).and_then(|number| bytes.get(number)).copied().unwrap_or(first);
    let size = i64::try_from(end.abs_diff(before)).unwrap_or(i64::MAX);
    let growth = if end < before { -size } else { size };
    Some(During { phase: phase.clone(), before, peak: inside.iter().copied().max()?, end, growth })
}

/// Ticks before and after, as a range each.
struct Windows {
    baseline: (std::ops::Range<usize>, Window),
    end: (std::ops::Range<usize>, Window),
}

impl Windows {
    fn of(recording: &Recording, options: &GrowthOptions) -> Result<Self, SlabError> {
        let ticks = recording.ticks();
        let none = || SlabError::NoRows { monitor: "slabinfo", hint: "the run has no tick" };
        let (first, last) = (ticks.first().ok_or_else(none)?, ticks.last().ok_or_else(none)?);
        let tenth = last.since(*first).0 / 10;
        let began = recording.phases().iter().map(|phase| phase.start).min();
        let ended = recording.phases().iter().map(|phase| phase.end).max();
        let until = options.baseline_until.or(began).unwrap_or(Nanos(first.0.saturating_add(tenth)));
        let from = options.end_from.or(ended).unwrap_or(Nanos(last.0.saturating_sub(tenth)));
        // A window holds at least the tick at its end of the run.
        let before = ticks.partition_point(|at| *at < until).max(1);
        let after = ticks.partition_point(|at| *at < from).min(ticks.len() - 1);
        Ok(Windows { baseline: window(ticks, 0..before), end: window(ticks, after..ticks.len()) })
    }

    fn grown(&self, bytes: &[u64], ticks: &[Nanos]) -> Result<Grown, SlabError> {
        let (mut peak_bytes, mut peak_at) = (0, ticks.first().copied().unwrap_or_default());
        for (bytes, at) in bytes.iter().zip(ticks).filter(|(bytes, _)| **bytes > 0) {
            if *bytes > peak_bytes {
                (peak_bytes, peak_at) = (*bytes, *at);
            }
        }
        let baseline_bytes = median(bytes.get(self.baseline.0.clone()).unwrap_or_default())?;
        let end_bytes = median(bytes.get(self.end.0.clone()).unwrap_or_default())?;
        Ok(Grown {
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

fn window(ticks: &[Nanos], range: std::ops::Range<usize>) -> (std::ops::Range<usize>, Window) {
    let at = |number: usize| ticks.get(number).copied().unwrap_or_default();
    let found = Window { from: at(range.start), to: at(range.end.saturating_sub(1)), ticks: range.len() };
    (range, found)
}

fn median(bytes: &[u64]) -> Result<f64, SlabError> {
    let values: Vec<f64> = bytes.iter().map(|bytes| *bytes as f64).collect();
    let failed = |source| SlabError::Statistic { subject: "median of a window".into(), source };
    perflab_stats::median(&values).map_err(failed)
}
