//! Owns the cutting of one process's iterations into stretches of steady mean and variance. It refuses short wiggles: a
//! stretch must earn its penalty.

use crate::StatsError;
use crate::sample::{check_above_zero, check_at_least};

/// Fewest values of a stretch: one has no variance.
const SHORTEST_SEGMENT: usize = 2;
/// Most values: the search takes time with their square where nothing changes.
const MOST_VALUES: usize = 10_000;
/// Least variance of a stretch, in variances of the whole: a constant stretch must not weigh infinitely much.
const LEAST_VARIANCE: f64 = 1e-6;

/// A stretch of iterations with one mean and one variance.
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

/// The stretches that minimise Σ n (ln 2πσ̂² + 1) + penalty for each step, in time order: normal values whose mean and
/// variance change together. Found by dynamic programming with the pruning of Killick, Fearnhead and Eckley, "Optimal
/// detection of changepoints with a linear computational cost" (PELT), Journal of the American Statistical Association
/// 107 (2012). The penalty is in units of twice the log-likelihood; Barrett et al. (OOPSLA 2017) take 15 ln n, which
/// [`find_segments_by_default`] does. All values equal are one stretch.
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

/// [`find_segments`] with the penalty 15 ln n of Barrett et al., "Virtual machine warmup blows hot and cold", OOPSLA 2017.
///
/// # Errors
/// As [`find_segments`].
pub fn find_segments_by_default(in_time_order: &[f64]) -> Result<Vec<SeriesSegment>, StatsError> {
    check_at_least(in_time_order, SHORTEST_SEGMENT)?;
    find_segments(in_time_order, 15.0 * (in_time_order.len() as f64).ln())
}

/// Passes a series that is not too long to search.
pub(crate) fn check_length(values: &[f64]) -> Result<&[f64], StatsError> {
    let n = values.len();
    if n > MOST_VALUES {
        return Err(StatsError::TooMany { limit: MOST_VALUES * MOST_VALUES, got: n.saturating_mul(n) });
    }
    Ok(values)
}

/// For each end, where its last stretch starts.
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
        // A start that is worse than a cut at `cut` stays worse for all ends that leave room for a stretch after it, as
        // cutting a stretch never costs more but for the penalty.
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
        let centre = crate::centre::mean(values)?;
        let (mut first, mut second) = (vec![0.0], vec![0.0]);
        let (mut sum, mut squares) = (0.0, 0.0);
        for value in values {
            sum += value - centre;
            squares += (value - centre).powi(2);
            first.push(sum);
            second.push(squares);
        }
        let least = crate::sample::finite_or_overflow(squares)? / values.len() as f64 * LEAST_VARIANCE;
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
