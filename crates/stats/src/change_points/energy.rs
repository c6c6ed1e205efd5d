//! Owns the place where a series is most likely to change, by energy distance. It refuses to say whether it does.

/// The best place for a step, and how large its distance is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepCandidate {
    /// First value after the step.
    pub(super) index: usize,
    /// Scaled energy distance, in the unit of the values.
    pub(super) distance: f64,
}

/// The (τ, κ) that maximises Q = ab/(a+b) · E(x[..τ], x[τ..κ]), a = τ, b = κ - τ, both at least `shortest`, where
/// E = 2/(ab) Σ|x - y| - Σ|x - x'| / C(a, 2) - Σ|y - y'| / C(b, 2) and a sum over one value is zero. Source: Matteson and
/// James, "A nonparametric approach for multiple change point analysis of multivariate data", Journal of the American
/// Statistical Association 109 (2014), α = 1. Takes n² time and n memory. `None` for fewer than two segments' worth.
pub(super) fn best_candidate(series: &[f64], shortest: usize) -> Option<StepCandidate> {
    // to_here[k] = Σ |x_i - x_k| over i < τ, kept up while τ moves; from_start[k] is the same at τ = k.
    let from_start: Vec<f64> = (0..series.len()).map(|k| sum_distances(series, k)).collect();
    let mut to_here = vec![0.0; series.len()];
    let mut left_within = 0.0;
    let mut best: Option<StepCandidate> = None;
    for (tau, last) in (1..series.len()).zip(series) {
        left_within += from_start[tau - 1];
        for (sum, value) in to_here.iter_mut().zip(series).skip(tau) {
            *sum += (value - last).abs();
        }
        if tau < shortest {
            continue;
        }
        let (mut cross, mut right_within) = (0.0, 0.0);
        for (kappa, (here, all)) in (tau + 1..).zip(to_here.iter().zip(&from_start).skip(tau)) {
            cross += here;
            right_within += all - here;
            let distance =
                scaled_distance(tau as f64, (kappa - tau) as f64, cross, left_within, right_within);
            if kappa - tau >= shortest && best.is_none_or(|best| distance > best.distance) {
                best = Some(StepCandidate { index: tau, distance });
            }
        }
    }
    best
}

/// Σ |x_i - x_k| over i < k.
fn sum_distances(series: &[f64], k: usize) -> f64 {
    series.iter().take(k).map(|value| (value - series[k]).abs()).sum()
}

fn scaled_distance(a: f64, b: f64, cross: f64, left: f64, right: f64) -> f64 {
    let inner = |sum: f64, n: f64| if n > 1.0 { sum / (n - 1.0) } else { 0.0 };
    2.0 / (a + b) * (cross - b * inner(left, a) - a * inner(right, b))
}
