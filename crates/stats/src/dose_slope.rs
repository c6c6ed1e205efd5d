//! What a dose does to a response, by the slope of a line in each block: each holds a value at every dose, measured close together.
//!
//! Drift and the luck of a block shift all of its values, and leave its slope alone. Slopes of blocks are pooled by ranks, so that one
//! block that was disturbed counts as one.

use crate::error::{StatsError, check_sample, finite_or_overflow};
use crate::interval::IntervalEstimate;
use crate::signed_rank::{WalshAverages, signed_rank};
use crate::student_t::t_two_sided;

/// Fewest doses of which a line can be told from a curve.
const FEWEST_FOR_CURVE: usize = 3;

/// The line through a response over doses.
#[derive(Debug, Clone, PartialEq)]
pub struct DoseSlope {
    /// Units of the response for one of the dose; without an interval where there are too few blocks for it.
    pub slope: IntervalEstimate,
    /// Two-sided p-value of none.
    pub p: f64,
    /// Of three doses or more: what a parabola has that a line has not.
    pub curvature: Option<DoseCurvature>,
    /// Blocks.
    pub blocks: usize,
}

/// How a response departs from a line.
#[derive(Debug, Clone, PartialEq)]
pub struct DoseCurvature {
    /// Two-sided p-value of a line.
    pub p: f64,
    /// The slope from each dose to the next.
    pub steps: Vec<IntervalEstimate>,
}

/// Fits a line over `doses`, ascending, to `blocks`, each with a value at every one of them, in their order.
///
/// The slope of a block weighs the difference of the highest and the lowest dose, that of the next two, and so on, each by its distance: for even
/// doses that is least squares, and for any doses it is as likely to be too high as too low by an amount, however skewed the noise is, as long as no dose
/// changes its shape. So the pseudo-median of the slopes, with the interval that inverts the signed-rank test (Hodges and Lehmann 1963), holds its level;
/// slopes of least squares over uneven doses are skewed with the noise, and miss it. The curvature of a block is its contrast with the second
/// orthogonal polynomial over the doses (Fisher, Statistical Methods for Research Workers, section 27), which is skewed in any case:
/// its mean is tested by Student's t.
///
/// # Errors
/// Fewer than two doses, doses that do not ascend; no block, or one with another number of values; a value that is not finite.
pub fn dose_slope(doses: &[f64], blocks: &[Vec<f64>], confidence: f64) -> Result<DoseSlope, StatsError> {
    let doses = check_sample(doses)?;
    if doses.len() < 2 {
        return Err(StatsError::TooFew { needed: 2, got: doses.len() });
    }
    if doses.windows(2).any(|pair| pair.first() >= pair.last()) {
        return Err(StatsError::NoSpread);
    }
    for block in blocks {
        if check_sample(block)?.len() != doses.len() {
            return Err(StatsError::Unpaired { left: doses.len(), right: block.len() });
        }
    }
    let line = line_contrast(doses);
    let (slope, p) = pool_contrasts(&apply_contrast(blocks, &line)?, confidence)?;
    let curvature = match doses.len() {
        FEWEST_FOR_CURVE.. => {
            let p = curve_p(blocks, &curve_contrast(doses))?;
            let step = |at: usize| {
                let (from, to) = (doses.get(at).copied()?, doses.get(at + 1).copied()?);
                let weight = |index: usize| match index {
                    index if index == at => -1.0 / (to - from),
                    index if index == at + 1 => 1.0 / (to - from),
                    _ => 0.0,
                };
                Some((0..doses.len()).map(weight).collect::<Vec<f64>>())
            };
            let steps = (0..doses.len() - 1)
                .filter_map(step)
                .map(|weights| Ok(pool_contrasts(&apply_contrast(blocks, &weights)?, confidence)?.0));
            Some(DoseCurvature { p, steps: steps.collect::<Result<_, StatsError>>()? })
        }
        _ => None,
    };
    Ok(DoseSlope { slope, p, curvature, blocks: blocks.len() })
}

/// The weights whose sum with the values of a block is its slope: of each two doses that lie as far from either end.
fn line_contrast(doses: &[f64]) -> Vec<f64> {
    let weights: Vec<f64> = doses.iter().rev().zip(doses).map(|(mirrored, dose)| dose - mirrored).collect();
    let gain: f64 = weights.iter().zip(doses).map(|(weight, dose)| weight * dose).sum();
    weights.into_iter().map(|weight| weight / gain).collect()
}

/// The same for the coefficient of the square, beside a line.
fn curve_contrast(doses: &[f64]) -> Vec<f64> {
    let mean = doses.iter().sum::<f64>() / doses.len() as f64;
    let line = scale_contrast(doses.iter().map(|dose| dose - mean).collect());
    let squares: Vec<f64> = doses.iter().map(|dose| (dose - mean).powi(2)).collect();
    let middle = squares.iter().sum::<f64>() / squares.len() as f64;
    let along = squares.iter().zip(&line).map(|(square, weight)| square * weight).sum::<f64>();
    let rest = squares.iter().zip(doses).map(|(square, dose)| square - middle - along * (dose - mean));
    scale_contrast(rest.collect())
}

/// Makes weights orthogonal to what they leave out those of a coefficient.
fn scale_contrast(weights: Vec<f64>) -> Vec<f64> {
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    weights.into_iter().map(|weight| weight / squares).collect()
}

fn apply_contrast(blocks: &[Vec<f64>], weights: &[f64]) -> Result<Vec<f64>, StatsError> {
    let sum = |block: &Vec<f64>| {
        finite_or_overflow(block.iter().zip(weights).map(|(value, weight)| value * weight).sum())
    };
    blocks.iter().map(sum).collect()
}

fn pool_contrasts(values: &[f64], confidence: f64) -> Result<(IntervalEstimate, f64), StatsError> {
    let nothing = vec![0.0; values.len()];
    let estimate = WalshAverages::absolute(&nothing, values)?.estimate(confidence)?;
    Ok((estimate, signed_rank(&nothing, values)?.p))
}

/// A mean that is less than this share of what it is made of is rounding.
const ROUNDING: f64 = 1e-12;

/// Two-sided p-value of a contrast whose mean is zero, by Student's t.
fn curve_p(blocks: &[Vec<f64>], weights: &[f64]) -> Result<f64, StatsError> {
    let values = apply_contrast(blocks, weights)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let size =
        |block: &Vec<f64>| block.iter().zip(weights).map(|(value, weight)| (value * weight).abs()).sum();
    let largest = blocks.iter().map(size).fold(0.0, f64::max);
    if values.len() < 2 || mean.abs() <= ROUNDING * largest {
        return Ok(1.0);
    }
    let error = (spread / count).sqrt();
    Ok(if error > 0.0 { t_two_sided(mean / error, count - 1.0) } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::least_squares::fit_line;

    /// Fisher and Yates, Statistical Tables for Biological, Agricultural and Medical Research, table XXIII: orthogonal polynomials of
    /// the first and the second degree over 3 to 6 even steps.
    #[test]
    fn even_doses_have_the_published_contrasts() {
        let published: [(&[f64], &[f64]); 4] = [
            (&[-1., 0., 1.], &[1., -2., 1.]),
            (&[-3., -1., 1., 3.], &[1., -1., -1., 1.]),
            (&[-2., -1., 0., 1., 2.], &[2., -1., -2., -1., 2.]),
            (&[-5., -3., -1., 1., 3., 5.], &[5., -1., -4., -4., -1., 5.]),
        ];
        for (line, curve) in published {
            let doses: Vec<f64> = (0..line.len()).map(|step| 20.0 * step as f64).collect();
            for (found, published) in [(line_contrast(&doses), line), (curve_contrast(&doses), curve)] {
                let scale = published[0] / found[0];
                for (found, published) in found.iter().zip(published) {
                    assert!((found * scale - published).abs() < 1e-9, "{found} {published}");
                }
            }
            // One more of the dose is one more.
            let gain: f64 =
                line_contrast(&doses).iter().zip(&doses).map(|(weight, dose)| weight * dose).sum();
            assert!((gain - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_curve_is_that_of_a_regression_with_a_square() {
        let doses = [0.0, 20.0, 50.0, 120.0];
        let values = [3.0, 9.5, 11.0, 80.0];
        let squares: Vec<f64> = doses.iter().map(|dose| dose * dose).collect();
        let found = apply_contrast(&[values.to_vec()], &curve_contrast(&doses)).unwrap()[0];
        // Four values leave a freedom of one.
        let fitted = fit_line(&[&[1.0; 4], &doses, &squares], &values).unwrap()[2].value;
        assert!((found / fitted - 1.0).abs() < 1e-9, "{found} {fitted}");
    }

    #[test]
    fn a_line_through_noise_free_blocks_is_found_whatever_the_blocks_have_in_common() {
        let blocks: Vec<Vec<f64>> = (0..8)
            .map(|block| [0.0, 20.0, 50.0].map(|dose| 100.0 + f64::from(block) * 7.0 + 2.0 * dose).to_vec())
            .collect();
        let found = dose_slope(&[0.0, 20.0, 50.0], &blocks, 0.95).unwrap();
        assert!((found.slope.value - 2.0).abs() < 1e-9);
        let curvature = found.curvature.unwrap();
        assert!(curvature.steps.iter().all(|step| (step.value - 2.0).abs() < 1e-9));
        assert!(found.p < 0.01 && curvature.p == 1.0, "{} {}", found.p, curvature.p);
    }

    #[test]
    fn what_is_no_dose_is_refused() {
        let block = vec![vec![1.0, 2.0]];
        assert!(matches!(dose_slope(&[1.0], &[vec![1.0]], 0.95), Err(StatsError::TooFew { .. })));
        assert!(matches!(dose_slope(&[1.0, 1.0], &block, 0.95), Err(StatsError::NoSpread)));
        assert!(matches!(dose_slope(&[0.0, 1.0, 2.0], &block, 0.95), Err(StatsError::Unpaired { .. })));
        assert!(dose_slope(&[0.0, 1.0], &[], 0.95).is_err());
        let few = dose_slope(&[0.0, 1.0], &block, 0.95).unwrap();
        assert_eq!((few.slope.interval, few.curvature), (None, None));
    }
}
