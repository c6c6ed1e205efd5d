//! How throughput follows from the number of processors, threads or clients: the laws of Amdahl and Gunther, fitted by least
//! squares.
//!
//! X(N) = γ N / (1 + σ (N - 1) + κ N (N - 1)). γ is the throughput of one, σ the share that is serialised (contention), κ what each
//! pair costs to stay coherent. With κ = 0 it is Amdahl's law: X grows towards γ / σ. With κ > 0 it falls again beyond
//! N = √((1 - σ) / κ).
//!
//! Sources: Amdahl, "Validity of the single processor approach to achieving large scale computing capabilities", AFIPS 1967;
//! Gunther, Guerrilla Capacity Planning, Springer 2007, chapters 4 to 6 (Universal Scalability Law); Marquardt, "An algorithm for
//! least-squares estimation of nonlinear parameters", Journal of SIAM 11 (1963).

use crate::error::{StatsError, check_sample, finite_or_overflow};

/// Which law.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScalingLaw {
    /// contention only
    Amdahl,
    /// Gunther's Universal Scalability Law: contention and coherency
    Universal,
}

/// A fitted law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingFit {
    /// γ: the throughput of one, in the unit of the values.
    pub rate: f64,
    /// σ, at least 0, without unit.
    pub contention: f64,
    /// κ, at least 0, without unit; 0 by Amdahl's law.
    pub coherency: f64,
    /// The part of the values' variation that the law explains: 1 for all of it, 0 or less for none.
    pub explained: f64,
}

impl ScalingFit {
    /// The throughput at N, in the unit of the values.
    #[must_use]
    pub fn throughput(&self, n: f64) -> f64 {
        self.rate * n / (1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0))
    }

    /// N of the largest throughput; none where it grows for ever, or falls from one on.
    #[must_use]
    pub fn peak(&self) -> Option<f64> {
        let peak = ((1.0 - self.contention) / self.coherency).sqrt();
        Some(peak).filter(|peak| peak.is_finite() && *peak >= 1.0)
    }

    /// What the throughput grows towards, γ / σ, in the unit of the values; none with a peak, or without contention.
    #[must_use]
    pub fn limit(&self) -> Option<f64> {
        (self.coherency == 0.0 && self.contention > 0.0).then(|| self.rate / self.contention)
    }

    fn from_parameters([rate, contention, coherency]: [f64; 3]) -> Self {
        ScalingFit { rate, contention, coherency, explained: 0.0 }
    }

    /// The sum of squared distances; infinite where the law has no sense at one of the points.
    fn squares(&self, points: &[(f64, f64)]) -> f64 {
        let square = |(n, x): &(f64, f64)| {
            let below = 1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0);
            if below > 0.0 { (x - self.throughput(*n)).powi(2) } else { f64::INFINITY }
        };
        points.iter().map(square).sum()
    }
}

/// Fits a law to points (N, throughput): least squares over γ, σ and κ with σ and κ not below 0, each point with the same weight.
/// Where throughput grows faster than N, σ is 0.
///
/// # Errors
/// A number that is not finite; N below 1 or throughput not above zero; fewer than three different N, or four for the universal law;
/// an overflow.
pub fn fit_scaling_law(points: &[(f64, f64)], law: ScalingLaw) -> Result<ScalingFit, StatsError> {
    let (counts, values): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    check_sample(&counts)?;
    crate::error::check_positive(&values)?;
    if let Some(value) = counts.iter().copied().find(|n| *n < 1.0) {
        return Err(StatsError::OutOfRange { name: "N", value, range: "[1, infinity)" });
    }
    let mut different = counts.clone();
    different.sort_unstable_by(f64::total_cmp);
    different.dedup();
    let (needed, got) = (if law == ScalingLaw::Amdahl { 3 } else { 4 }, different.len());
    if got < needed {
        return Err(StatsError::TooFew { needed, got });
    }
    // A law at whose limit a parameter lies is fitted without it: the best of those that are allowed.
    let free: &[&[usize]] = match law {
        ScalingLaw::Amdahl => &[&[0], &[0, 1]],
        ScalingLaw::Universal => &[&[0], &[0, 1], &[0, 2], &[0, 1, 2]],
    };
    let fits = free.iter().map(|free| descend_to_least_squares(points, free));
    let allowed = fits.filter(|fit| fit.contention >= 0.0 && fit.coherency >= 0.0 && fit.rate > 0.0);
    let best = allowed.min_by(|one, other| one.squares(points).total_cmp(&other.squares(points)));
    let best = best.ok_or(StatsError::Overflow)?;
    let mean = crate::descriptive::mean(&values)?;
    let whole: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let squares = finite_or_overflow(best.squares(points))?;
    let explained = if whole > 0.0 { 1.0 - squares / whole } else { 0.0 };
    Ok(ScalingFit { explained, ..best })
}

/// Most steps of the descent; it takes a dozen.
const MOST_STEPS: usize = 500;

/// Marquardt's descent over the free parameters (0 is γ, 1 is σ, 2 is κ), the others being 0.
fn descend_to_least_squares(points: &[(f64, f64)], free: &[usize]) -> ScalingFit {
    let mut parameters = first_guess(points, free);
    let mut damping = 1e-3;
    let mut squares = ScalingFit::from_parameters(parameters).squares(points);
    for _ in 0..MOST_STEPS {
        let Some(step) = damped_step(points, parameters, free, damping) else { break };
        let mut next = parameters;
        free.iter().zip(step).for_each(|(at, change)| next[*at] += change);
        let found = ScalingFit::from_parameters(next).squares(points);
        if found < squares {
            let is_close = squares - found <= 1e-15 * squares;
            (parameters, squares, damping) = (next, found, (damping * 0.1).max(1e-15));
            if is_close {
                break;
            }
        } else if damping > 1e12 {
            break;
        } else {
            damping *= 10.0;
        }
    }
    ScalingFit::from_parameters(parameters)
}

/// The parameters of the law through least squares of N / X, which is linear in them; where that gives none, γ alone.
fn first_guess(points: &[(f64, f64)], free: &[usize]) -> [f64; 3] {
    let terms = |n: f64| [1.0, n - 1.0, n * (n - 1.0)];
    let mut matrix = [[0.0; 4]; 3];
    for (n, x) in points {
        let terms = terms(*n);
        for (row, one) in free.iter().enumerate() {
            free.iter()
                .enumerate()
                .for_each(|(column, other)| matrix[row][column] += terms[*one] * terms[*other]);
            matrix[row][3] += terms[*one] * n / x;
        }
    }
    let linear = solve_equations(matrix, free.len());
    let mut guess = [0.0; 3];
    let first = linear.map_or(0.0, |linear| linear[0]);
    if first > 0.0 {
        guess[0] = first.recip();
        let others = free.iter().zip(linear.unwrap_or_default()).skip(1);
        others.for_each(|(at, term)| guess[*at] = (term / first).max(0.0));
    } else {
        let rates = points.iter().map(|(n, x)| x / n);
        guess[0] = rates.fold(0.0, f64::max);
    }
    guess
}

/// The step that lowers the squares of the law made linear, damped along each parameter by its own size.
fn damped_step(
    points: &[(f64, f64)],
    parameters: [f64; 3],
    free: &[usize],
    damping: f64,
) -> Option<[f64; 3]> {
    let [rate, contention, coherency] = parameters;
    let mut matrix = [[0.0; 4]; 3];
    for (n, x) in points {
        let below = 1.0 + contention * (n - 1.0) + coherency * n * (n - 1.0);
        let shape = n / below;
        let fall = -rate * shape / below;
        let slopes = [shape, fall * (n - 1.0), fall * n * (n - 1.0)];
        let rest = x - rate * shape;
        for (row, one) in free.iter().enumerate() {
            free.iter()
                .enumerate()
                .for_each(|(column, other)| matrix[row][column] += slopes[*one] * slopes[*other]);
            matrix[row][3] += slopes[*one] * rest;
        }
    }
    (0..free.len()).for_each(|at| matrix[at][at] *= 1.0 + damping);
    solve_equations(matrix, free.len())
}

/// Solves `size` equations by elimination with pivots, scaled to a diagonal of 1; the right side is in the last column. Sizes are
/// one to three, so that every index is below 3.
fn solve_equations(mut matrix: [[f64; 4]; 3], size: usize) -> Option<[f64; 3]> {
    let scales: [f64; 3] = std::array::from_fn(|at| matrix[at][at].abs().sqrt());
    for row in 0..size {
        if scales[row] <= 0.0 || !scales[row].is_finite() {
            return None;
        }
        (0..size).for_each(|column| matrix[row][column] /= scales[row] * scales[column]);
        matrix[row][3] /= scales[row];
    }
    for pivot in 0..size {
        let largest = (pivot..size)
            .max_by(|one, other| matrix[*one][pivot].abs().total_cmp(&matrix[*other][pivot].abs()))?;
        matrix.swap(pivot, largest);
        if matrix[pivot][pivot].abs() < 1e-13 {
            return None;
        }
        for row in (0..size).filter(|row| *row != pivot) {
            let times = matrix[row][pivot] / matrix[pivot][pivot];
            (0..4).for_each(|column| matrix[row][column] -= times * matrix[pivot][column]);
        }
    }
    let mut found = [0.0; 3];
    (0..size).for_each(|at| found[at] = matrix[at][3] / matrix[at][at] / scales[at]);
    found.iter().all(|number| number.is_finite()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(found: f64, published: f64, digits: f64) -> bool {
        (found - published).abs() <= 0.6 * digits
    }

    /// SPEC SDM91 on a SPARCcenter 2000, as the R package usl 3.0 (Gunther and Möding) has it: γ 89.9952330, σ 0.0277285,
    /// κ 0.0001044, efficiencies from 0.0876.
    #[test]
    fn sdm91_is_that_of_the_r_package() {
        let points = [
            (1.0, 64.9),
            (18.0, 995.9),
            (36.0, 1652.4),
            (72.0, 1853.2),
            (108.0, 1828.9),
            (144.0, 1775.0),
            (216.0, 1702.2),
        ];
        let fit = fit_scaling_law(&points, ScalingLaw::Universal).unwrap();
        assert!(is_near(fit.rate, 89.995_233, 1e-3), "{fit:?}");
        assert!(
            is_near(fit.contention, 0.027_728_5, 1e-6) && is_near(fit.coherency, 0.000_104_4, 1e-7),
            "{fit:?}"
        );
        assert!(is_near(1702.2 / (216.0 * fit.rate), 0.0876, 1e-4));
        assert!(is_near(fit.peak().unwrap(), 96.5, 0.1) && fit.limit().is_none());
    }

    /// The Cisco benchmark of Schwartz, Practical Scalability Analysis with the Universal Scalability Law (2015): σ 0.02671591,
    /// κ 7.690945e-4, λ 995.6486, 35 threads, 12,341 queries a second.
    #[test]
    fn the_cisco_benchmark_is_that_of_the_book() {
        let queries = [
            955.16, 1878.91, 2688.01, 3548.68, 4315.54, 5130.43, 5931.37, 6531.08, 7219.8, 7867.61, 8278.71,
            8646.7, 9047.84, 9426.55, 9645.37, 9897.24, 10097.6, 10240.5, 10532.39, 10798.52, 11151.43,
            11518.63, 11806.0, 12089.37, 12075.41, 12177.29, 12211.41, 12158.93, 12155.27, 12118.04, 12140.4,
            12074.39,
        ];
        let points: Vec<(f64, f64)> =
            queries.iter().enumerate().map(|(at, x)| ((at + 1) as f64, *x)).collect();
        let fit = fit_scaling_law(&points, ScalingLaw::Universal).unwrap();
        assert!(is_near(fit.rate, 995.648_6, 1e-3), "{fit:?}");
        assert!(
            is_near(fit.contention, 0.026_715_91, 1e-7) && is_near(fit.coherency, 7.690_945e-4, 1e-9),
            "{fit:?}"
        );
        assert_eq!(fit.peak().unwrap().floor(), 35.0);
        assert_eq!(fit.throughput(35.0).floor(), 12_341.0);
    }

    /// The ray tracer of Gunther's Guerrilla Capacity Planning, as usl 3.0 fits it: γ 21.848843, σ 0.057771, κ at its limit of 0.
    #[test]
    fn the_ray_tracer_follows_amdahl() {
        let points = [
            (1.0, 20.0),
            (4.0, 78.0),
            (8.0, 130.0),
            (12.0, 170.0),
            (16.0, 190.0),
            (20.0, 200.0),
            (24.0, 210.0),
            (28.0, 230.0),
            (32.0, 260.0),
            (48.0, 280.0),
            (64.0, 310.0),
        ];
        let universal = fit_scaling_law(&points, ScalingLaw::Universal).unwrap();
        let amdahl = fit_scaling_law(&points, ScalingLaw::Amdahl).unwrap();
        assert_eq!(universal, amdahl);
        assert!(
            is_near(amdahl.rate, 21.848_843, 1e-5) && is_near(amdahl.contention, 0.057_771, 1e-6),
            "{amdahl:?}"
        );
        assert_eq!(amdahl.coherency, 0.0);
        assert!(amdahl.peak().is_none() && is_near(amdahl.limit().unwrap(), 378.2, 0.1));
    }

    #[test]
    fn what_scales_without_loss_has_no_losses() {
        let points: Vec<(f64, f64)> =
            (1..=8).map(|n| (f64::from(n), 10.0 * f64::from(n).powf(1.1))).collect();
        let fit = fit_scaling_law(&points, ScalingLaw::Universal).unwrap();
        assert_eq!((fit.contention, fit.coherency), (0.0, 0.0));
        assert!(fit.peak().is_none() && fit.limit().is_none());
    }

    #[test]
    fn what_gets_slower_from_the_second_on_is_fitted() {
        let points: Vec<(f64, f64)> = (1..=16).map(|n| (f64::from(n), 100.0 / f64::from(n).sqrt())).collect();
        let fit = fit_scaling_law(&points, ScalingLaw::Universal).unwrap();
        assert!(fit.peak().is_none() && fit.rate.is_finite() && fit.explained > 0.5, "{fit:?}");
    }

    #[test]
    fn bad_input_is_refused() {
        let refused = |points: &[(f64, f64)]| fit_scaling_law(points, ScalingLaw::Amdahl).is_err();
        assert!(refused(&[]) && refused(&[(1.0, 1.0), (1.0, 2.0), (2.0, 3.0)]));
        assert!(
            refused(&[(0.5, 1.0), (2.0, 2.0), (3.0, 3.0)]) && refused(&[(1.0, 0.0), (2.0, 2.0), (3.0, 3.0)])
        );
        assert!(refused(&[(1.0, 1.0), (2.0, f64::NAN), (3.0, 3.0)]));
        let three = [(1.0, 1.0), (2.0, 1.8), (3.0, 2.5)];
        assert!(fit_scaling_law(&three, ScalingLaw::Universal).is_err() && !refused(&three));
        assert!(!refused(&[(1.0, 5.0), (2.0, 5.0), (3.0, 5.0)]));
    }
}
