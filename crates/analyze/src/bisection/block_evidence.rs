//! What one block says for and against each culprit.
//!
//! A culprit k splits a block: commits before k are good, the others bad. If k is the truth, the values of the good are exchangeable,
//! and so are those of the bad. So whatever function f of the values is chosen before they are seen, f divided by its mean over all
//! permutations within the two groups has an expectation of 1: an e-value against k (the likelihood ratio of a permutation test:
//! Lehmann and Stein, Annals of Mathematical Statistics 20, 1949; Koning, "Post-hoc and anytime valid permutation and group invariance
//! testing", 2023). f is what the other culprits make likely: normal noise, whose far values are brought near.

use serde::{Deserialize, Serialize};

/// The most commits of a block: all orders of them are looked at.
pub const MOST_IN_BLOCK: usize = 4;

/// Far values of two count up to so many standard deviations beyond the step.
const CLIP: f64 = 2.0;

/// The share of the evidence that is not staked: one block takes away no more than this leaves.
const NOT_STAKED: f64 = 0.05;

/// The size of the step from good to bad, and of the noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepEstimate {
    /// How much larger bad values are, in units of the values.
    pub step: f64,
    /// The standard deviation of a value within its block.
    pub noise: f64,
    /// Differences that the step is known from.
    pub pairs: usize,
}

impl StepEstimate {
    /// The step in standard errors of its estimate.
    pub fn significance(&self) -> f64 {
        self.step / (self.noise * (2.0 / self.pairs as f64).sqrt())
    }
}

/// Commits that were measured once each in drawn order, and their values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MeasuredBlock {
    /// Indexes of the commits, ascending.
    pub commits: Vec<usize>,
    /// The value of each, larger is worse; logarithms where the change is a ratio.
    pub values: Vec<f64>,
}

impl MeasuredBlock {
    /// How many of the block's commits are bad if `culprit` is the culprit.
    pub fn bad_count(&self, culprit: usize) -> usize {
        self.commits.iter().filter(|commit| **commit >= culprit).count()
    }
}

/// The likelihoods of a block by the number of its bad commits, and their means over permutations.
#[derive(Debug, Clone, PartialEq)]
pub struct BlockLikelihoods {
    /// Of the values as they are, by the number of bad commits.
    observed: Vec<f64>,
    /// The mean over the permutations within the groups that the first index makes, of the likelihood of the second.
    permuted: Vec<Vec<f64>>,
}

impl BlockLikelihoods {
    /// Of a block, by what was known before it was measured.
    pub fn new(block: &MeasuredBlock, known: &StepEstimate) -> Self {
        let size = block.commits.len();
        let values = near_values(&block.values, known);
        let patterns = 0..=size;
        let observed: Vec<f64> = patterns.clone().map(|bad| log_likelihood(&values, bad, known)).collect();
        // Only ratios count: the largest of all orders is 1.
        let orders = list_permutations(size);
        let by_order: Vec<(Vec<usize>, Vec<f64>)> = orders
            .into_iter()
            .map(|order| {
                let moved: Vec<f64> = order.iter().filter_map(|at| values.get(*at).copied()).collect();
                let logs = patterns.clone().map(|bad| log_likelihood(&moved, bad, known)).collect();
                (order, logs)
            })
            .collect();
        let largest =
            by_order.iter().flat_map(|(_, logs)| logs).fold(f64::NEG_INFINITY, |most, one| most.max(*one));
        let permuted = patterns.clone().map(|groups| {
            let good = size - groups;
            let is_within = |order: &[usize]| order.iter().take(good).all(|at| *at < good);
            let within: Vec<&Vec<f64>> =
                by_order.iter().filter(|(order, _)| is_within(order)).map(|(_, logs)| logs).collect();
            let mean = |bad: usize| {
                let sum: f64 = within.iter().filter_map(|logs| Some((logs.get(bad)? - largest).exp())).sum();
                sum / within.len() as f64
            };
            patterns.clone().map(mean).collect()
        });
        let permuted = permuted.collect();
        BlockLikelihoods {
            observed: observed.into_iter().map(|log| (log - largest).exp()).collect(),
            permuted,
        }
    }

    /// The likelihood where so many of the commits are bad; only ratios mean something.
    pub fn of_bad_count(&self, bad: usize) -> f64 {
        self.observed.get(bad).copied().unwrap_or_default()
    }

    /// The e-value against a culprit that makes so many bad, where `weights`, by the number of bad commits, say what is likely
    /// if it is another.
    pub fn evidence_against(&self, bad: usize, weights: &[f64]) -> f64 {
        let weighted = |likelihoods: &[f64]| -> f64 {
            likelihoods.iter().zip(weights).map(|(likelihood, weight)| likelihood * weight).sum()
        };
        let mean = self.permuted.get(bad).map_or(0.0, |means| weighted(means));
        if mean <= f64::MIN_POSITIVE {
            return 1.0;
        }
        NOT_STAKED + (1.0 - NOT_STAKED) * weighted(&self.observed) / mean
    }
}

/// Deviations from the block's middle, far ones brought near. The middle is that of all, whatever their order.
fn near_values(values: &[f64], known: &StepEstimate) -> Vec<f64> {
    let middle = perflab_stats::median(values).unwrap_or_default();
    let step = if values.len() == 2 { known.step / 2.0 } else { known.step };
    let reach = step.abs() + CLIP * known.noise;
    values.iter().map(|value| (value - middle).clamp(-reach, reach)).collect()
}

/// Of values whose last `bad` are worse by the step, with normal noise, whatever their common level is.
fn log_likelihood(values: &[f64], bad: usize, known: &StepEstimate) -> f64 {
    let good = values.len() - bad;
    let residual = |(at, value): (usize, &f64)| if at < good { *value } else { value - known.step };
    let residuals: Vec<f64> = values.iter().enumerate().map(residual).collect();
    let mean = residuals.iter().sum::<f64>() / residuals.len().max(1) as f64;
    let squares: f64 = residuals.iter().map(|residual| (residual - mean).powi(2)).sum();
    -squares / (2.0 * known.noise * known.noise)
}

/// All orders of so many.
fn list_permutations(size: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    for at in 0..size {
        orders = orders
            .iter()
            .flat_map(|order: &Vec<usize>| {
                (0..=order.len()).map(move |place| {
                    let mut longer = order.clone();
                    longer.insert(place, at);
                    longer
                })
            })
            .collect();
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: StepEstimate = StepEstimate { step: 2.0, noise: 1.0, pairs: 10 };

    fn block(commits: &[usize], values: &[f64]) -> MeasuredBlock {
        MeasuredBlock { commits: commits.to_vec(), values: values.to_vec() }
    }

    #[test]
    fn all_orders_are_there_once() {
        let mut orders = list_permutations(4);
        orders.sort();
        orders.dedup();
        assert_eq!(orders.len(), 24);
    }

    /// The mean over what is equally likely is 1, for every culprit: that is what bounds the error.
    #[test]
    fn evidence_has_a_mean_of_one_over_the_orders_within_the_groups() {
        let values = [0.3, -1.2, 4.0, 2.5];
        let weights = [0.1, 0.4, 0.2, 0.2, 0.1];
        for bad in 0..=4 {
            let good = 4 - bad;
            let orders: Vec<Vec<usize>> = list_permutations(4)
                .into_iter()
                .filter(|order| order.iter().take(good).all(|at| *at < good))
                .collect();
            let sum: f64 = orders
                .iter()
                .map(|order| {
                    let moved: Vec<f64> = order.iter().map(|at| values[*at]).collect();
                    BlockLikelihoods::new(&block(&[0, 1, 2, 3], &moved), &KNOWN)
                        .evidence_against(bad, &weights)
                })
                .sum();
            assert!((sum / orders.len() as f64 - 1.0).abs() < 1e-12, "{bad}: {sum}");
        }
    }

    #[test]
    fn two_that_differ_speak_against_all_that_hold_them_equal() {
        let found = BlockLikelihoods::new(&block(&[4, 5], &[0.0, 2.0]), &KNOWN);
        let weights = [0.0, 1.0, 0.0];
        // 2 exp(1) / (exp(1) + exp(-1)) by hand: exponents -(0 - 0) and -(2²)/... of the difference's density.
        let expected = 2.0 / (1.0 + (-4.0_f64).exp());
        let staked = |evidence: f64| (evidence - NOT_STAKED) / (1.0 - NOT_STAKED);
        assert!((staked(found.evidence_against(0, &weights)) - expected).abs() < 1e-12);
        assert_eq!(found.evidence_against(0, &weights), found.evidence_against(2, &weights));
        assert!((found.evidence_against(1, &weights) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_far_value_takes_little_away() {
        let found = BlockLikelihoods::new(&block(&[4, 5], &[1e6, 0.0]), &KNOWN);
        let evidence = found.evidence_against(0, &[0.0, 1.0, 0.0]);
        assert!((NOT_STAKED..0.1).contains(&evidence), "{evidence}");
    }
}
