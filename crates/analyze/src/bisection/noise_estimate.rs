//! How large the step is, and how much boots scatter, from the blocks so far.

use perflab_stats::{median, robust_sd};

use crate::bisection::{CulpritCandidates, MeasuredBlock, StepEstimate};

/// Two commits are taken for equal, or for a step apart, from this probability on.
const SURE: f64 = 0.95;

/// Far differences count as so many standard deviations.
const FARTHEST: f64 = 3.0;

/// A noise that is not seen, as with a clock's ticks, is taken for this share of the step.
const LEAST_NOISE: f64 = 0.02;

/// The step and the noise of all blocks, by who is the culprit most likely. `None` before there are two differences of the ends.
pub fn estimate_step(blocks: &[MeasuredBlock], candidates: &CulpritCandidates) -> Option<StepEstimate> {
    let (mut steps, mut equals) = (Vec::new(), Vec::new());
    for block in blocks {
        let pairs = block.commits.windows(2).zip(block.values.windows(2));
        for (commits, values) in pairs {
            let ([first, second], [before, behind]) = (commits, values) else { continue };
            let between = candidates.probability_between(*first, *second);
            let is_ends = *first == 0 && *second == candidates.bad();
            if is_ends || between > SURE {
                steps.push(behind - before);
            } else if between < 1.0 - SURE {
                equals.push(behind - before);
            }
        }
        // Both ends with something between them.
        if let ([0, .., last], [good, .., bad]) = (&*block.commits, &*block.values)
            && block.commits.len() > 2
            && *last == candidates.bad()
        {
            steps.push(bad - good);
        }
    }
    if steps.len() < 2 {
        return None;
    }
    let step = robust_mean(&steps);
    let deviations: Vec<f64> = steps.iter().map(|one| one - step).chain(equals).collect();
    let noise = robust_spread(&deviations, steps.len()) / std::f64::consts::SQRT_2;
    let least = (LEAST_NOISE * step.abs()).max(f64::MIN_POSITIVE.sqrt());
    Some(StepEstimate { step, noise: noise.max(least), pairs: steps.len() })
}

/// The mean, far values counting as less far ones.
fn robust_mean(values: &[f64]) -> f64 {
    let Ok(middle) = median(values) else { return 0.0 };
    let reach = FARTHEST * robust_sd(values).unwrap_or_default();
    let near = |value: &f64| if reach > 0.0 { value.clamp(middle - reach, middle + reach) } else { *value };
    values.iter().map(near).sum::<f64>() / values.len() as f64
}

/// The standard deviation of deviations, far ones counting as less far ones, of which one mean was subtracted.
fn robust_spread(deviations: &[f64], estimated_from: usize) -> f64 {
    let reach = FARTHEST * robust_sd(deviations).unwrap_or_default();
    let near = |one: &f64| if reach > 0.0 { one.clamp(-reach, reach) } else { *one };
    let squares: f64 = deviations.iter().map(|one| near(one).powi(2)).sum();
    let freedom = deviations.len().saturating_sub(usize::from(estimated_from > 0)).max(1);
    (squares / freedom as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_and_noise_come_from_the_ends_and_a_far_value_hardly_counts() {
        let candidates = CulpritCandidates::new(10);
        let ends =
            |difference: f64| MeasuredBlock { commits: vec![0, 10], values: vec![1.0, 1.0 + difference] };
        let blocks = [1.9, 2.1, 2.0, 1.8, 2.2, 2.0, 50.0].map(ends);
        let found = estimate_step(&blocks, &candidates).unwrap();
        assert!((found.step - 2.0).abs() < 0.2 && found.noise < 0.5, "{found:?}");
        assert_eq!(found.pairs, 7);
        assert_eq!(estimate_step(&blocks[..1], &candidates), None);
    }

    #[test]
    fn values_without_noise_are_still_bet_on() {
        let blocks = [0, 1].map(|_| MeasuredBlock { commits: vec![0, 3], values: vec![1.0, 2.0] });
        let found = estimate_step(&blocks, &CulpritCandidates::new(3)).unwrap();
        assert_eq!(found.noise, LEAST_NOISE);
    }
}
