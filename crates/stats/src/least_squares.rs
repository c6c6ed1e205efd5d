//! A straight line through several quantities at once, by least squares: what one of them goes with while the others are held.

use crate::error::{StatsError, check_sample, finite_or_overflow};
use crate::interval::{ConfidenceInterval, tail_probability};
use crate::student_t::{t_quantile_above, t_two_sided};

/// A column that is all but a sum of the ones before it has no coefficient: less than this share of its length is its own.
const LEAST_OWN_SHARE: f64 = 1e-10;

/// A coefficient of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LineCoefficient {
    /// In the response's unit per unit of the column.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the residuals.
    pub freedom: f64,
}

impl LineCoefficient {
    /// Student's interval.
    ///
    /// # Errors
    /// A confidence outside (0, 1).
    pub fn interval(&self, confidence: f64) -> Result<ConfidenceInterval, StatsError> {
        let half = t_quantile_above(tail_probability(confidence)?, self.freedom) * self.error;
        Ok(ConfidenceInterval { low: self.value - half, high: self.value + half, level: confidence })
    }

    /// Two-sided p-value of "no relation".
    #[must_use]
    pub fn p(&self) -> f64 {
        if self.error > 0.0 { t_two_sided(self.value / self.error, self.freedom) } else { 1.0 }
    }
}

/// Fits response = Σ coefficient x column; a constant is a column of ones. Columns are brought to one length and made orthogonal
/// one after the other (modified Gram-Schmidt, twice), which holds where they nearly depend on one another. Source: Björck, Numerical Methods for
/// Least Squares Problems (1996), section 2.4.
///
/// # Errors
/// A column of another length than the response; a value that is not finite; no more values than columns; a column that is a sum of
/// those before it ([`StatsError::NoSpread`]).
pub fn fit_line(columns: &[&[f64]], response: &[f64]) -> Result<Vec<LineCoefficient>, StatsError> {
    let count = check_sample(response)?.len();
    if let Some(other) = columns.iter().find(|column| column.len() != count) {
        return Err(StatsError::Unpaired { left: count, right: other.len() });
    }
    columns.iter().try_for_each(|column| check_sample(column).map(|_| ()))?;
    let needed = columns.len() + 1;
    if count < needed {
        return Err(StatsError::TooFew { needed, got: count });
    }
    let mut axes: Vec<Vec<f64>> = Vec::new();
    // Row `at`: what of each later column lies along axis `at`.
    let mut along = vec![vec![0.0; columns.len()]; columns.len()];
    for (at, column) in columns.iter().enumerate() {
        let whole = length(column);
        let mut rest = column.to_vec();
        for _ in 0..2 {
            for (axis, row) in axes.iter().zip(&mut along) {
                let part = remove_along(&mut rest, axis);
                row.iter_mut().skip(at).take(1).for_each(|cell| *cell += part);
            }
        }
        let own = length(&rest);
        if own <= LEAST_OWN_SHARE * whole || own == 0.0 {
            return Err(StatsError::NoSpread);
        }
        along.iter_mut().skip(at).take(1).for_each(|row| {
            row.iter_mut().skip(at).take(1).for_each(|cell| *cell = own);
        });
        axes.push(rest.into_iter().map(|value| value / own).collect());
    }
    let mut rest = response.to_vec();
    let mut targets = vec![0.0; columns.len()];
    for _ in 0..2 {
        for (axis, target) in axes.iter().zip(&mut targets) {
            *target += remove_along(&mut rest, axis);
        }
    }
    let freedom = (count - columns.len()) as f64;
    let variance = finite_or_overflow(rest.iter().map(|value| value * value).sum::<f64>() / freedom)?;
    let coefficients = solve_upper(&along, &targets);
    // The variance of a coefficient is that of the residuals times the squared length of its row of the inverse.
    let inverse: Vec<Vec<f64>> = (0..columns.len())
        .map(|at| {
            let unit: Vec<f64> =
                (0..columns.len()).map(|other| if other == at { 1.0 } else { 0.0 }).collect();
            solve_upper(&along, &unit)
        })
        .collect();
    let coefficient = |(at, value): (usize, f64)| {
        let row = inverse.iter().filter_map(|column| column.get(at)).map(|cell| cell * cell).sum::<f64>();
        let value = finite_or_overflow(value)?;
        Ok(LineCoefficient { value, error: finite_or_overflow((variance * row).sqrt())?, freedom })
    };
    coefficients.into_iter().enumerate().map(coefficient).collect()
}

fn length(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// Takes away what lies along an axis of length 1, and says how much that was.
fn remove_along(values: &mut [f64], axis: &[f64]) -> f64 {
    let part = values.iter().zip(axis).map(|(value, axis)| value * axis).sum::<f64>();
    values.iter_mut().zip(axis).for_each(|(value, axis)| *value -= part * axis);
    part
}

/// Solves an upper triangle from its last row up.
fn solve_upper(rows: &[Vec<f64>], targets: &[f64]) -> Vec<f64> {
    let mut solution = vec![0.0; targets.len()];
    for (at, (row, target)) in rows.iter().zip(targets).enumerate().rev() {
        let known: f64 = row.iter().zip(&solution).skip(at + 1).map(|(cell, found)| cell * found).sum();
        let own = row.get(at).copied().unwrap_or(1.0);
        solution.iter_mut().skip(at).take(1).for_each(|cell| *cell = (target - known) / own);
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST Statistical Reference Datasets, Longley (1967), of higher difficulty: certified values of the coefficients and their
    /// standard deviations.
    #[test]
    fn longley_of_nist() {
        #[rustfmt::skip]
        let rows: [[f64; 7]; 16] = [
            [60323., 83.0, 234289., 2356., 1590., 107608., 1947.], [61122., 88.5, 259426., 2325., 1456., 108632., 1948.],
            [60171., 88.2, 258054., 3682., 1616., 109773., 1949.], [61187., 89.5, 284599., 3351., 1650., 110929., 1950.],
            [63221., 96.2, 328975., 2099., 3099., 112075., 1951.], [63639., 98.1, 346999., 1932., 3594., 113270., 1952.],
            [64989., 99.0, 365385., 1870., 3547., 115094., 1953.], [63761., 100.0, 363112., 3578., 3350., 116219., 1954.],
            [66019., 101.2, 397469., 2904., 3048., 117388., 1955.], [67857., 104.6, 419180., 2822., 2857., 118734., 1956.],
            [68169., 108.4, 442769., 2936., 2798., 120445., 1957.], [66513., 110.8, 444546., 4681., 2637., 121950., 1958.],
            [68655., 112.6, 482704., 3813., 2552., 123366., 1959.], [69564., 114.2, 502601., 3931., 2514., 125368., 1960.],
            [69331., 115.7, 518173., 4806., 2572., 127852., 1961.], [70551., 116.9, 554894., 4007., 2827., 130081., 1962.],
        ];
        let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<f64>>();
        let columns: Vec<Vec<f64>> = std::iter::once(vec![1.0; 16]).chain((1..7).map(column)).collect();
        let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
        let found = fit_line(&columns, &column(0)).unwrap();
        let certified = [
            (-3_482_258.634_595_82, 890_420.383_607_373),
            (15.061_872_271_373_3, 84.914_925_774_766_9),
            (-0.358_191_792_925_910e-1, 0.334_910_077_722_432e-1),
            (-2.020_229_803_816_83, 0.488_399_681_651_699),
            (-1.033_226_867_173_59, 0.214_274_163_161_675),
            (-0.511_041_056_535_807e-1, 0.226_073_200_069_370),
            (1_829.151_464_613_55, 455.478_499_142_212),
        ];
        for (found, (value, error)) in found.iter().zip(certified) {
            assert!((found.value / value - 1.0).abs() < 1e-7, "{} {value}", found.value);
            assert!((found.error / error - 1.0).abs() < 1e-7, "{} {error}", found.error);
            assert_eq!(found.freedom, 9.0);
        }
    }

    #[test]
    fn a_column_that_repeats_another_is_refused() {
        let ones = [1.0; 5];
        let response = [1.0, 2.0, 3.0, 4.0, 6.0];
        assert_eq!(fit_line(&[&ones, &[3.0; 5]], &response), Err(StatsError::NoSpread));
        assert_eq!(fit_line(&[&ones], &[1.0]), Err(StatsError::Unpaired { left: 1, right: 5 }));
        let mean = fit_line(&[&ones], &response).unwrap()[0];
        let interval = mean.interval(0.95).unwrap();
        assert!((mean.value - 3.2).abs() < 1e-12 && interval.low < 3.2 && interval.high > 3.2);
    }
}
