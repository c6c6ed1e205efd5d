//! Owns the slope of a series that grows, robust against spikes. It refuses to extrapolate: the interval holds for
//! the stretch that was seen.

use crate::StatsError;
use crate::centre::{median, median_of_sorted};
use crate::correlation::effective_size;
use crate::hodges_lehmann::check_memory;
use crate::interval::{InferenceMethod, IntervalEstimate, RankCut, tail_probability};
use crate::sample::{check_at_least, check_paired, finite_or_overflow};

/// Slope of y over x: the median of the slopes of all pairs of points, in units of y per unit of x.
///
/// The limits are slopes counted in from both ends of the sorted list, after Sen (Journal of the American Statistical
/// Association 63, 1968, section 5): as many as Kendall's statistic may differ from zero, by the normal approximation,
/// with ties in x out of the count. Ties in y are not, which makes the interval no narrower. Points of a series depend
/// on the ones before: the variance is multiplied by n / [`effective_size`] of the residuals in time order, as for the
/// trend test of Hamed and Rao (Journal of Hydrology 204, 1998), with the first lag alone.
///
/// Without an interval where there are too few points for it.
///
/// # Errors
/// Samples of different length, fewer than two points, a value that is not finite, all x equal, a slope that overflows,
/// more pairs than fit into memory, a confidence outside (0, 1).
pub fn theil_sen(x: &[f64], y: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    let (x, y) = check_paired(x, y)?;
    let n = check_at_least(x, 2)?.len();
    check_memory(n.saturating_mul(n - 1) / 2)?;
    let slopes = pairwise_slopes(x, y)?;
    if slopes.is_empty() {
        return Err(StatsError::NoSpread);
    }
    let tail = tail_probability(confidence)?;
    let sd = kendall_variance(x)?.sqrt() * variance_inflation(x, y, median_of_sorted(&slopes))?.sqrt();
    // The number of slopes below the true one is (pairs - K) / 2 for Kendall's K, which has this spread.
    let cut = if n >= 4 { RankCut::from_normal(slopes.len() as f64 / 2.0, sd / 2.0, tail) } else { None };
    Ok(IntervalEstimate::from_sorted(&slopes, cut, InferenceMethod::Normal))
}

/// Of all pairs with different x, ascending.
fn pairwise_slopes(x: &[f64], y: &[f64]) -> Result<Vec<f64>, StatsError> {
    let points: Vec<(f64, f64)> = x.iter().copied().zip(y.iter().copied()).collect();
    let mut slopes = Vec::with_capacity(points.len() * points.len().saturating_sub(1) / 2);
    for (index, (x1, y1)) in points.iter().enumerate() {
        for (x2, y2) in points.iter().skip(index + 1).filter(|(x2, _)| x2 != x1) {
            slopes.push(finite_or_overflow((y2 - y1) / (x2 - x1))?);
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    Ok(slopes)
}

/// n (n - 1) (2n + 5) / 18 without the ties in x.
fn kendall_variance(x: &[f64]) -> Result<f64, StatsError> {
    let sorted = crate::sample::sorted_sample(x)?;
    let of = |count: usize| (count * (count - 1) * (2 * count + 5)) as f64;
    let tied: f64 = sorted.chunk_by(|a, b| a == b).map(|ties| of(ties.len())).sum();
    Ok((of(sorted.len()) - tied) / 18.0)
}

/// n over the number of independent residuals; 1 where that cannot be told.
fn variance_inflation(x: &[f64], y: &[f64], slope: f64) -> Result<f64, StatsError> {
    let residuals: Vec<f64> = x.iter().zip(y).map(|(x, y)| y - slope * x).collect();
    let centre = median(&residuals)?;
    let residuals: Vec<f64> = residuals.iter().map(|residual| residual - centre).collect();
    Ok(effective_size(&residuals).map_or(1.0, |effective| x.len() as f64 / effective))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ConfidenceInterval;

    const SCIPY: (f64, f64, f64) = (2.1, 1.971_428_571_428_571_3, 2.2);

    #[test]
    fn as_scipy_has_it_where_points_are_independent() -> Result<(), StatsError> {
        // scipy 1.17.1, theilslopes(y, x, 0.95); residuals that alternate earn no inflation.
        let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let y = [1.0, 3.4, 4.9, 7.7, 9.1, 11.8, 13.0, 16.1, 17.2, 20.3];
        let found = theil_sen(&x, &y, 0.95)?;
        assert!((found.value - SCIPY.0).abs() < 1e-12, "{found:?}");
        let Some(ConfidenceInterval { low, high, level }) = found.interval else {
            return Err(StatsError::Empty);
        };
        assert!((low - SCIPY.1).abs() < 1e-12 && (high - SCIPY.2).abs() < 1e-12, "{found:?}");
        assert!(level >= 0.95);
        Ok(())
    }

    #[test]
    fn a_spike_does_not_move_it() -> Result<(), StatsError> {
        let x: Vec<f64> = (0..40).map(f64::from).collect();
        let mut y: Vec<f64> = x.iter().map(|x| 3.0 * x + 7.0).collect();
        y[20] = 1e9;
        let found = theil_sen(&x, &y, 0.95)?;
        assert!((found.value - 3.0).abs() < 1e-9);
        Ok(())
    }

    #[test]
    fn a_walk_gets_a_wider_interval_than_as_many_independent_points() -> Result<(), StatsError> {
        let x: Vec<f64> = (0..60).map(f64::from).collect();
        let noise = |i: usize| ((i * 7919 + 13) % 101) as f64 / 101.0 - 0.5;
        let independent: Vec<f64> = (0..60).map(noise).collect();
        let walk: Vec<f64> = (0..60).map(|i| 0.4 * (i as f64 / 2.0).sin()).collect();
        let width = |y: &[f64]| theil_sen(&x, y, 0.95).map(|found| found.interval.map(|i| i.half_width()));
        let naive = kendall_variance(&x)?;
        assert!(variance_inflation(&x, &walk, 0.0)? > 5.0 && naive > 0.0);
        assert!(variance_inflation(&x, &independent, 0.0)? < 2.0);
        assert!(width(&walk)? > width(&independent)?);
        Ok(())
    }

    #[test]
    fn nothing_grows_and_few_points() -> Result<(), StatsError> {
        let flat = theil_sen(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[5.0; 6], 0.9)?;
        assert_eq!((flat.value, flat.interval.map(|i| (i.low, i.high))), (0.0, Some((0.0, 0.0))));
        assert_eq!(theil_sen(&[1.0, 2.0], &[1.0, 2.0], 0.95)?.interval, None);
        assert_eq!(theil_sen(&[1.0, 1.0], &[1.0, 2.0], 0.95), Err(StatsError::NoSpread));
        assert!(theil_sen(&[1.0], &[1.0], 0.95).is_err());
        assert!(theil_sen(&[0.0, 1e-300], &[0.0, 1e300], 0.95).is_err());
        Ok(())
    }
}
