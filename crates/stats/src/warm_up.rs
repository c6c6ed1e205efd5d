//! From which iteration on a process runs steadily, and its series cut into segments of steady mean and variance.
//!
//! Not every process settles, and iterations before are not dropped here: the caller decides. A segment must earn its
//! penalty, so short wiggles are none.

use crate::descriptive::{BetterDirection, coefficient_of_variation, mean, quantile_of_sorted};
use crate::error::{StatsError, check_above_zero, check_at_least, check_open_fraction, sorted_sample};

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
    /// The segments, in iterations as passed.
    pub segments: Vec<SeriesSegment>,
    /// Iterations left out of the search as spikes.
    pub spikes: Vec<usize>,
}

/// A beginning that is worse than the steady state that follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUpPeriod {
    /// How many values it has.
    pub values: usize,
    /// Their mean, in the unit of the values.
    pub before: f64,
    /// The mean of those that follow.
    pub steady: f64,
}

/// Of all pairs of a value before and one after, how many must be worse before: 0.5 where nothing differs, 0.71 is a large
/// effect (Vargha and Delaney, "A critique and improvement of the CL common language effect size statistics", Journal of
/// Educational and Behavioral Statistics 25, 2000). And of what the beginning takes more than later values, how much must be
/// theirs.
const MOST_OF_IT: f64 = 0.8;

/// Which share of all pairs is worse before; ties count half.
fn share_of_worse_pairs(before: &[f64], steady: &[f64], better: BetterDirection) -> f64 {
    let worse = |before: f64, after: f64| match better {
        BetterDirection::Lower => before > after,
        BetterDirection::Higher => before < after,
    };
    let score = |one: f64, other: f64| match worse(one, other) {
        true => 1.0,
        false if one == other => 0.5,
        false => 0.0,
    };
    let all: f64 = before.iter().flat_map(|one| steady.iter().map(move |other| score(*one, *other))).sum();
    all / (before.len() * steady.len()) as f64
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
    /// first and the last 100 never) are left out, the rest is cut into [`find_segments`], and each segment is compared with the
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
        let (pattern, from) = self.classify_segments(&found, values.len(), better);
        Ok(SteadyState { pattern, from, segments: found, spikes })
    }

    /// The beginning that is to be left out: [`classify`](WarmupRules::classify) finds that values become steady, and better than
    /// before, within the first half, and nearly every value before is worse than nearly every one after: a beginning in which one
    /// value is far off has another mean, and is no warm-up. A later step is none either.
    ///
    /// # Errors
    /// As [`classify`](WarmupRules::classify).
    pub fn find_warm_up(
        &self,
        in_time_order: &[f64],
        better: BetterDirection,
    ) -> Result<Option<WarmUpPeriod>, StatsError> {
        let state = self.classify(in_time_order, better)?;
        let is_warm_up = state.pattern == WarmupPattern::WarmUp;
        let from = state.from.filter(|from| is_warm_up && *from > 0 && 2 * from <= in_time_order.len());
        let Some((segment, steady)) = from.map(|from| in_time_order.split_at(from)) else { return Ok(None) };
        let steady_mean = mean(steady)?;
        let excess = |part: &[f64]| part.iter().map(|value| value - steady_mean).sum::<f64>();
        // A segment has two values at least: of a first one that is slow alone, the second is not.
        for length in (1..=segment.len()).rev() {
            let before = segment.get(..length).unwrap_or(segment);
            let carries = excess(before) / excess(segment) >= MOST_OF_IT;
            if carries && share_of_worse_pairs(before, steady, better) >= MOST_OF_IT {
                let (values, before) = (length, mean(before)?);
                return Ok(Some(WarmUpPeriod { values, before, steady: steady_mean }));
            }
        }
        Ok(None)
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

/// Fewest values of a segment: one has no variance.
const SHORTEST_SEGMENT: usize = 2;

/// Most values: the search takes time with their square where nothing changes.
const MOST_VALUES: usize = 10_000;

/// Least variance of a segment, in variances of the whole: a constant segment must not weigh infinitely much.
const LEAST_VARIANCE: f64 = 1e-6;

/// A segment of iterations with one mean and one variance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesSegment {
    /// Its first value, from 0.
    pub start: usize,
    /// One past its last value.
    pub end: usize,
    /// Mean, in the unit of the values.
    pub mean: f64,
    /// Standard deviation with n in the denominator, in the unit of the values.
    pub sd: f64,
}

/// The segments that minimise Σ n (ln 2πσ̂² + 1) + penalty for each step, in time order: normal values whose mean and
/// variance change together. Found by dynamic programming with the pruning of Killick, Fearnhead and Eckley, "Optimal
/// detection of changepoints with a linear computational cost" (PELT), Journal of the American Statistical Association
/// 107 (2012). The penalty is in units of twice the log-likelihood; Barrett et al. (OOPSLA 2017) take 15 ln n. All
/// values equal are one segment.
///
/// # Errors
/// Fewer than two values, more than 10,000, one that is not finite, a penalty that is not above zero, squares that
/// overflow.
pub fn find_segments(in_time_order: &[f64], penalty: f64) -> Result<Vec<SeriesSegment>, StatsError> {
    let values = check_at_least(in_time_order, SHORTEST_SEGMENT)?;
    check_above_zero("penalty", penalty)?;
    let n = check_length(values)?.len();
    let sums = RunningSums::from_values(values)?;
    let starts = best_segment_starts(&sums, n, penalty);
    let mut found = Vec::new();
    let mut end = n;
    while end > 0 {
        let start = starts[end];
        found.push(sums.segment(start, end));
        end = start;
    }
    found.reverse();
    Ok(found)
}

/// Passes a series that is not too long to search.
fn check_length(values: &[f64]) -> Result<&[f64], StatsError> {
    let n = values.len();
    if n > MOST_VALUES {
        return Err(StatsError::TooMany { limit: MOST_VALUES * MOST_VALUES, got: n.saturating_mul(n) });
    }
    Ok(values)
}

/// For each end, where its last segment starts.
fn best_segment_starts(sums: &RunningSums, n: usize, penalty: f64) -> Vec<usize> {
    let mut cost = vec![f64::INFINITY; n + 1];
    let mut starts = vec![0; n + 1];
    cost[0] = -penalty;
    let mut open: Vec<usize> = vec![0];
    for end in SHORTEST_SEGMENT..=n {
        for start in open.iter().copied().filter(|start| start + SHORTEST_SEGMENT <= end) {
            let here = cost[start] + sums.cost(start, end) + penalty;
            if here < cost[end] {
                (cost[end], starts[end]) = (here, start);
            }
        }
        // A start that is worse than a cut at `cut` stays worse for all ends that leave room for a segment after it, as
        // cutting a segment never costs more but for the penalty.
        let cut = end + 1 - SHORTEST_SEGMENT;
        open.retain(|start| {
            start + SHORTEST_SEGMENT > cut || cost[*start] + sums.cost(*start, cut) < cost[cut]
        });
        open.push(end);
    }
    starts
}

/// Running sums of the values and their squares around the mean of all.
struct RunningSums {
    centre: f64,
    first: Vec<f64>,
    second: Vec<f64>,
    least: f64,
}

impl RunningSums {
    fn from_values(values: &[f64]) -> Result<Self, StatsError> {
        let centre = crate::descriptive::mean(values)?;
        let (mut first, mut second) = (vec![0.0], vec![0.0]);
        let (mut sum, mut squares) = (0.0, 0.0);
        for value in values {
            sum += value - centre;
            squares += (value - centre).powi(2);
            first.push(sum);
            second.push(squares);
        }
        let least = crate::error::finite_or_overflow(squares)? / values.len() as f64 * LEAST_VARIANCE;
        Ok(Self { centre, first, second, least })
    }

    fn moments(&self, start: usize, end: usize) -> (f64, f64) {
        let n = (end - start) as f64;
        let mean = (self.first[end] - self.first[start]) / n;
        (mean, ((self.second[end] - self.second[start]) / n - mean * mean).max(0.0))
    }

    /// -2 log-likelihood at the best mean and the best variance that is not below the least.
    fn cost(&self, start: usize, end: usize) -> f64 {
        let found = self.moments(start, end).1;
        let variance = found.max(self.least);
        // Where all values are equal nothing can be gained.
        if variance == 0.0 {
            return 0.0;
        }
        (end - start) as f64 * ((std::f64::consts::TAU * variance).ln() + found / variance)
    }

    fn segment(&self, start: usize, end: usize) -> SeriesSegment {
        let (mean, variance) = self.moments(start, end);
        SeriesSegment { start, end, mean: mean + self.centre, sd: variance.sqrt() }
    }
}
