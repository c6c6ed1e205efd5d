//! Owns the question from which iteration on a process runs steadily. It refuses to assume that it ever does, and to
//! drop the iterations before: the caller decides.

use crate::StatsError;
use crate::best_of::BetterDirection;
use crate::centre::quantile_of_sorted;
use crate::relative_spread::coefficient_of_variation;
use crate::sample::{check_above_zero, check_at_least, check_open_fraction, sorted_sample};
use crate::segments::{SeriesSegment, check_length, find_segments};

/// Iterations around each that decide whether it is a spike, after Barrett et al.
const SPIKE_WINDOW: usize = 200;

/// What the iterations of one process do over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WarmupPattern {
    /// Steady from the first iteration on.
    Flat,
    /// Becomes steady, and is then better than all that came before.
    WarmUp,
    /// Becomes steady, but was better before.
    SlowDown,
    /// Still changes near the end.
    NoSteadyState,
}

/// Answer of [`WarmupRules::classify`].
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyState {
    /// What the process does.
    pub pattern: WarmupPattern,
    /// First iteration of the steady state, from 0; `None` without one.
    pub from: Option<usize>,
    /// The stretches, in iterations as passed.
    pub segments: Vec<SeriesSegment>,
    /// Iterations left out of the search as spikes.
    pub spikes: Vec<usize>,
}

/// How to judge; the defaults are those of Barrett et al. but for `margin`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmupRules {
    /// Penalty of a step in units of ln n: 15.
    pub penalty: f64,
    /// Stretches whose mean is within this fraction of the last one's count as the same. Barrett et al. take the larger of
    /// its variance and 1 ms, which depends on the unit; the default here is 1 %.
    pub margin: f64,
    /// Share of the iterations, at the end, that must be steady: 0.25.
    pub tail: f64,
}

impl Default for WarmupRules {
    fn default() -> Self {
        Self { penalty: 15.0, margin: 0.01, tail: 0.25 }
    }
}

impl WarmupRules {
    /// Classifies the iterations of one process. Spikes (beyond median ± 3 (P90 - P10) of the 200 iterations around, the
    /// first and the last 100 never) are left out, the rest is cut into [`find_segments`], and each stretch is compared with the
    /// last. Source: Barrett, Bolz-Tereick, Killick, Mount and Tratt, "Virtual machine warmup blows hot and cold",
    /// Proceedings of the ACM on Programming Languages 1 (OOPSLA), 2017, sections 4.2 and 4.3.
    ///
    /// # Errors
    /// Fewer than eight iterations or more than 10,000, a value that is not finite, a penalty or margin that is not above
    /// zero, a tail outside (0, 1), an overflow.
    pub fn classify(
        &self,
        in_time_order: &[f64],
        better: BetterDirection,
    ) -> Result<SteadyState, StatsError> {
        let values = check_length(check_at_least(in_time_order, 8)?)?;
        check_above_zero("penalty", self.penalty)?;
        check_above_zero("margin", self.margin)?;
        check_open_fraction("tail", self.tail)?;
        let spikes = find_spikes(values)?;
        let kept: Vec<usize> =
            (0..values.len()).filter(|index| spikes.binary_search(index).is_err()).collect();
        let quiet: Vec<f64> = kept.iter().map(|index| values[*index]).collect();
        let mut found = find_segments(&quiet, self.penalty * (quiet.len() as f64).ln())?;
        for segment in &mut found {
            segment.start = if segment.start == 0 { 0 } else { kept[segment.start] };
            segment.end = kept.get(segment.end).copied().unwrap_or(values.len());
        }
        let (course, from) = self.classify_segments(&found, values.len(), better);
        Ok(SteadyState { pattern: course, from, segments: found, spikes })
    }

    fn classify_segments(
        &self,
        segments: &[SeriesSegment],
        n: usize,
        better: BetterDirection,
    ) -> (WarmupPattern, Option<usize>) {
        let Some(last) = segments.last() else { return (WarmupPattern::NoSteadyState, None) };
        let same =
            |segment: &&SeriesSegment| (segment.mean - last.mean).abs() <= self.margin * last.mean.abs();
        let from = segments.iter().rev().take_while(same).last().map_or(last.start, |first| first.start);
        if from == 0 {
            return (WarmupPattern::Flat, Some(0));
        }
        if from as f64 > n as f64 * (1.0 - self.tail) {
            return (WarmupPattern::NoSteadyState, None);
        }
        let beats_last = |segment: &SeriesSegment| match better {
            BetterDirection::Lower => segment.mean < last.mean,
            BetterDirection::Higher => segment.mean > last.mean,
        };
        let was_better = segments.iter().filter(|segment| !same(segment)).any(beats_last);
        (if was_better { WarmupPattern::SlowDown } else { WarmupPattern::WarmUp }, Some(from))
    }
}

/// First iteration of `window` in a row whose coefficient of variation is below `limit` (a fraction, such as 0.02), or
/// `None` where there are none: the rule of Georges, Buytaert and Eeckhout, "Statistically rigorous Java performance
/// evaluation", OOPSLA 2007, section 4.2. It cannot see a slow drift: [`WarmupRules::classify`] can.
///
/// # Errors
/// Fewer iterations than the window, a window of fewer than two, a value that is not finite or not above zero on average,
/// a limit that is not above zero.
pub fn first_steady_by_variation(
    in_time_order: &[f64],
    window: usize,
    limit: f64,
) -> Result<Option<usize>, StatsError> {
    let values = check_at_least(in_time_order, window.max(2))?;
    check_above_zero("limit", limit)?;
    for (start, values) in values.windows(window.max(2)).enumerate() {
        if coefficient_of_variation(values)? < limit {
            return Ok(Some(start));
        }
    }
    Ok(None)
}

fn find_spikes(values: &[f64]) -> Result<Vec<usize>, StatsError> {
    let mut found = Vec::new();
    for (start, window) in values.windows(SPIKE_WINDOW).enumerate() {
        let sorted = sorted_sample(window)?;
        let [low, middle, high] = [0.1, 0.5, 0.9].map(|fraction| quantile_of_sorted(&sorted, fraction));
        let index = start + SPIKE_WINDOW / 2;
        if (values[index] - middle).abs() > 3.0 * (high - low) {
            found.push(index);
        }
    }
    Ok(found)
}
