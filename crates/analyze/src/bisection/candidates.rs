//! The candidates: how likely each is the culprit, and the evidence against it.
//!
//! Under the culprit that it speaks against, the product of a candidate's e-values is a martingale that starts at 1, whoever chooses
//! what is measured next, and by whatever is known so far. It ever reaches 1/α with a chance of at most α (Ville 1939). So the true
//! culprit is ever excluded, in the whole walk, with a chance of at most α.

use crate::bisection::block_evidence::{BlockLikelihoods, MOST_IN_BLOCK};
use crate::bisection::{MeasuredBlock, StepEstimate};

/// The probability beforehand that the ends do not differ at all.
const NO_CHANGE: f64 = 0.1;

/// The share of the bets that follows the evidence, where the probabilities are wrong.
const BY_EVIDENCE: f64 = 0.1;

/// A candidate is never less likely than this, so that what was unlucky can come back.
const LEAST_LOG: f64 = -200.0;

/// The commits 1 to n and, as n + 1, that there is no culprit.
#[derive(Debug, Clone, PartialEq)]
pub struct CulpritCandidates {
    /// Logarithm of the probability, by candidate - 1.
    logs: Vec<f64>,
    /// Logarithm of the evidence against, by candidate - 1.
    evidence: Vec<f64>,
    /// The most that it ever was.
    peaks: Vec<f64>,
}

impl CulpritCandidates {
    /// So many commits behind the good end, all as likely, and that none is the culprit.
    pub fn new(bad: usize) -> Self {
        let mut logs = vec![((1.0 - NO_CHANGE) / bad.max(1) as f64).ln(); bad];
        logs.push(NO_CHANGE.ln());
        let zeros = vec![0.0; bad + 1];
        CulpritCandidates { logs, evidence: zeros.clone(), peaks: zeros }
    }

    /// The index of the bad end.
    pub fn bad(&self) -> usize {
        self.logs.len() - 1
    }

    /// The candidate that stands for no culprit.
    pub fn none(&self) -> usize {
        self.logs.len()
    }

    /// Takes a block into account, by what was known before it was measured.
    pub fn observe(&mut self, block: &MeasuredBlock, known: &StepEstimate) {
        let likelihoods = BlockLikelihoods::new(block, known);
        let size = block.commits.len();
        let bets = self.bets();
        let mut weights = [0.0; MOST_IN_BLOCK + 1];
        for (at, bet) in bets.iter().enumerate() {
            if let Some(weight) = weights.get_mut(block.bad_count(at + 1)) {
                *weight += bet;
            }
        }
        for (at, bet) in bets.iter().enumerate() {
            let bad = block.bad_count(at + 1);
            let mut others = weights;
            if let Some(own) = others.get_mut(bad) {
                *own = (*own - bet).max(0.0);
            }
            let others = others.get(..=size).unwrap_or(&others);
            let evidence = likelihoods.evidence_against(bad, others).ln();
            if let (Some(sum), Some(peak), Some(log)) =
                (self.evidence.get_mut(at), self.peaks.get_mut(at), self.logs.get_mut(at))
            {
                *sum += evidence;
                *peak = peak.max(*sum);
                *log += likelihoods.of_bad_count(bad).max(f64::MIN_POSITIVE).ln();
            }
        }
        let most = self.logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = self.logs.iter().map(|log| (log - most).exp()).sum();
        for log in &mut self.logs {
            *log = (*log - most - sum.ln()).max(LEAST_LOG);
        }
    }

    /// The probability of a candidate, as far as noise is normal.
    pub fn probability(&self, culprit: usize) -> f64 {
        self.logs.get(culprit.wrapping_sub(1)).map_or(0.0, |log| log.exp())
    }

    /// The probability that the culprit lies behind the first commit, and not behind the second.
    pub fn probability_between(&self, first: usize, second: usize) -> f64 {
        self.logs.iter().take(second).skip(first).map(|log| log.exp()).sum()
    }

    /// Whether the evidence against a candidate ever was 1/error.
    pub fn is_excluded(&self, culprit: usize, error: f64) -> bool {
        self.peaks.get(culprit.wrapping_sub(1)).is_some_and(|peak| *peak >= -error.ln())
    }

    /// All that are not excluded, ascending.
    pub fn possible(&self, error: f64) -> Vec<usize> {
        (1..=self.none()).filter(|culprit| !self.is_excluded(*culprit, error)).collect()
    }

    /// The error at which all candidates but these would be excluded: 1 over the least evidence against another.
    pub fn error_of(&self, range: std::ops::RangeInclusive<usize>) -> f64 {
        let others = (1..=self.none()).filter(|culprit| !range.contains(culprit));
        let least =
            others.filter_map(|culprit| self.peaks.get(culprit - 1)).copied().fold(f64::INFINITY, f64::min);
        (-least).exp().min(1.0)
    }

    /// The evidence that is missing until a candidate is excluded, in nats; 0 where it is.
    pub fn missing_evidence(&self, culprit: usize, error: f64) -> f64 {
        match self.evidence.get(culprit.wrapping_sub(1)) {
            Some(evidence) if !self.is_excluded(culprit, error) => -error.ln() - evidence,
            _ => 0.0,
        }
    }

    /// What is bet on each: mostly its probability.
    fn bets(&self) -> Vec<f64> {
        let inverse: Vec<f64> = self.evidence.iter().map(|evidence| (-evidence).exp().min(1.0)).collect();
        let sum: f64 = inverse.iter().sum();
        let both = self.logs.iter().zip(inverse);
        both.map(|(log, inverse)| (1.0 - BY_EVIDENCE) * log.exp() + BY_EVIDENCE * inverse / sum).collect()
    }

    /// The bets among those that are not excluded, with a sum of 1; by candidate - 1.
    pub fn open_bets(&self, error: f64) -> Vec<f64> {
        let mut bets = self.bets();
        for (at, bet) in bets.iter_mut().enumerate() {
            if self.is_excluded(at + 1, error) {
                *bet = 0.0;
            }
        }
        let sum: f64 = bets.iter().sum();
        bets.iter().map(|bet| if sum > 0.0 { bet / sum } else { 0.0 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_as_likely_each_before_anything_is_measured() {
        let candidates = CulpritCandidates::new(8);
        let each = (1.0 - NO_CHANGE) / 8.0;
        assert!((candidates.probability_between(0, 8) - (1.0 - NO_CHANGE)).abs() < 1e-12);
        assert!((candidates.probability_between(2, 5) - 3.0 * each).abs() < 1e-12);
        assert_eq!(candidates.probability_between(5, 5), 0.0);
    }
}
