//! The commits whose measurement tells most per minute.
//!
//! A walk has two things to do, both of which are counted in nats: to learn where the culprit is, and to gather evidence against all
//! others. What a step teaches is the mutual information of its values and the culprit, by the bound of Kolchinsky and Tracey
//! ("Estimating mixture entropy with pairwise distances", Entropy 19, 2017) with Bhattacharyya's distances: exact where the culprits
//! are told apart or not at all, and never more than the truth. What evidence it gives is the mean growth of the logarithm of the
//! candidates' e-values, as far as they still lack it.

use std::collections::BTreeSet;

use crate::bisection::{CulpritCandidates, StepEstimate};

/// Numbers of blocks that a step may have.
const BLOCKS: [usize; 5] = [1, 2, 4, 8, 16];

/// Commits between the ends that are thought of, evenly by their probability.
const QUANTILES: usize = 16;

/// Of the likeliest candidates, both neighbours are thought of.
const LIKELIEST: usize = 3;

/// What measuring costs, in minutes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BisectionCosts {
    /// A build of a commit that is not built yet.
    pub build: f64,
    /// One boot, or start, of a commit with its measurement.
    pub boot: f64,
    /// What every step costs besides.
    pub step: f64,
}

impl BisectionCosts {
    /// Minutes of so many blocks of these commits.
    pub fn minutes(&self, commits: &[usize], blocks: usize, built: &BTreeSet<usize>) -> f64 {
        let unbuilt = commits.iter().filter(|commit| !built.contains(commit)).count();
        self.step + self.build * unbuilt as f64 + self.boot * (commits.len() * blocks) as f64
    }
}

/// What can be measured, and what is known.
#[derive(Debug)]
pub struct StepQuestion<'a> {
    /// The candidates.
    pub candidates: &'a CulpritCandidates,
    /// The error at which candidates are excluded.
    pub error: f64,
    /// Commits that do not build or boot.
    pub skipped: &'a BTreeSet<usize>,
    /// Commits that are built.
    pub built: &'a BTreeSet<usize>,
    /// The step and the noise.
    pub known: StepEstimate,
    /// Minutes.
    pub costs: BisectionCosts,
}

/// Sums over the candidates up to each commit.
#[derive(Debug)]
struct CumulativeSums {
    probability: Vec<f64>,
    /// Of what is bet on those that are not excluded.
    open: Vec<f64>,
    /// Of that, times the evidence that is missing against each.
    missing: Vec<f64>,
}

/// Commits, ascending, and how many blocks of them.
#[derive(Debug, Clone, PartialEq)]
pub struct StepChoice {
    pub commits: Vec<usize>,
    pub blocks: usize,
    /// Nats a minute.
    pub rate: f64,
}

impl StepQuestion<'_> {
    /// The best of all that is thought of; `None` where nothing tells anything.
    pub fn choose(&self) -> Option<StepChoice> {
        let sums = self.cumulative_sums();
        let between = self.interesting_commits(&sums);
        let (good, bad) = (0, self.candidates.bad());
        let mut sets: Vec<Vec<usize>> = vec![vec![good, bad]];
        for (at, first) in between.iter().enumerate() {
            sets.extend([vec![good, *first], vec![*first, bad], vec![good, *first, bad]]);
            for second in between.iter().skip(at + 1) {
                sets.extend([vec![*first, *second], vec![good, *first, *second, bad]]);
            }
        }
        let choices = sets.into_iter().flat_map(|commits| {
            let sums = &sums;
            BLOCKS.map(|blocks| {
                let minutes = self.costs.minutes(&commits, blocks, self.built);
                let gain = self.gain(&commits, blocks, sums);
                StepChoice { rate: gain / minutes, commits: commits.clone(), blocks }
            })
        });
        choices.filter(|choice| choice.rate > 0.0).max_by(|one, other| one.rate.total_cmp(&other.rate))
    }

    fn cumulative_sums(&self) -> CumulativeSums {
        let bets = self.candidates.open_bets(self.error);
        let mut sums = CumulativeSums { probability: vec![0.0], open: vec![0.0], missing: vec![0.0] };
        let (mut probability, mut open, mut missing) = (0.0, 0.0, 0.0);
        for (at, bet) in bets.iter().enumerate() {
            probability += self.candidates.probability(at + 1);
            open += bet;
            missing += bet * self.candidates.missing_evidence(at + 1, self.error);
            sums.probability.push(probability);
            sums.open.push(open);
            sums.missing.push(missing);
        }
        sums
    }

    /// Commits between the ends that can be measured and divide the candidates.
    fn interesting_commits(&self, sums: &CumulativeSums) -> Vec<usize> {
        let bad = self.candidates.bad();
        let measurable: Vec<usize> = (1..bad).filter(|commit| !self.skipped.contains(commit)).collect();
        let mut found = BTreeSet::new();
        for sums in [&sums.probability, &sums.open] {
            let sum_of = |commit: usize| sums.get(commit).copied().unwrap_or_default();
            for quantile in 1..QUANTILES {
                let share = sum_of(bad) * quantile as f64 / QUANTILES as f64;
                let at = measurable.partition_point(|commit| sum_of(*commit) < share);
                let around = at.saturating_sub(1)..(at + 1).min(measurable.len());
                found.extend(measurable.get(around).into_iter().flatten());
            }
            let share_of = |culprit: &usize| sum_of(*culprit) - sum_of(culprit - 1);
            let mut likeliest: Vec<usize> = (1..=bad).collect();
            likeliest.sort_by(|one, other| share_of(other).total_cmp(&share_of(one)));
            for culprit in likeliest.into_iter().take(LIKELIEST) {
                let at = measurable.partition_point(|commit| *commit < culprit);
                found.extend(at.checked_sub(1).and_then(|at| measurable.get(at)));
                found.extend(measurable.get(at));
            }
        }
        found.into_iter().collect()
    }

    /// What so many blocks of these commits teach, and the evidence they give, in nats.
    fn gain(&self, commits: &[usize], blocks: usize, sums: &CumulativeSums) -> f64 {
        let size = commits.len();
        // By the number of bad commits.
        let by_pattern = |sums: &[f64]| -> Vec<f64> {
            let sum_of = |commit: Option<&usize>| commit.and_then(|commit| sums.get(*commit)).copied();
            let all = sums.last().copied().unwrap_or_default();
            let share = |bad: usize| {
                let upper = sum_of(commits.get(size - bad)).unwrap_or(all);
                let lower = (size - bad).checked_sub(1).and_then(|at| sum_of(commits.get(at))).unwrap_or(0.0);
                (upper - lower).max(0.0)
            };
            (0..=size).map(share).collect()
        };
        let shares = by_pattern(&sums.probability);
        let (open, missing) = (by_pattern(&sums.open), by_pattern(&sums.missing));
        let ratio = (self.known.step / self.known.noise).powi(2);
        let mut gain = mutual_information(&shares, blocks as f64 * ratio);
        for (held, (weight, missing)) in open.iter().zip(&missing).enumerate() {
            if *weight <= 0.0 {
                continue;
            }
            for (truth, share) in shares.iter().enumerate() {
                let grown = blocks as f64 * evidence_growth(size, held, truth, ratio);
                gain += weight * share * grown.min(missing / weight);
            }
        }
        gain
    }
}

/// Of a block and the culprit, whose probabilities are those of the numbers of bad commits; in nats. `ratio` is the squared step in
/// variances.
fn mutual_information(shares: &[f64], ratio: f64) -> f64 {
    let size = (shares.len() - 1) as f64;
    let overlap = |one: usize, other: usize| {
        let apart = one.abs_diff(other) as f64;
        (-ratio / 8.0 * apart * (1.0 - apart / size)).exp()
    };
    let terms = shares.iter().enumerate().filter(|(_, share)| **share > 0.0).map(|(one, share)| {
        let seen: f64 = shares.iter().enumerate().map(|(other, weight)| weight * overlap(one, other)).sum();
        -share * seen.ln()
    });
    terms.sum::<f64>().max(0.0)
}

/// How much the evidence against a culprit that makes `held` commits of a block bad grows where `truth` are; in nats. For a small
/// step it is the variance of the truth within the groups that should be equal; there is no more than their orders tell.
fn evidence_growth(size: usize, held: usize, truth: usize, ratio: f64) -> f64 {
    let (group, bad) = if truth <= held { (held, truth) } else { (size - held, truth - held) };
    if bad == 0 || bad == group {
        return 0.0;
    }
    let variance = (bad * (group - bad)) as f64 / group as f64;
    let orders = (0..bad).fold(1.0, |orders, at| orders * (group - at) as f64 / (at + 1) as f64);
    let most = orders.ln();
    most * (1.0 - (-ratio * variance / 2.0 / most).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisection::MeasuredBlock;

    const COSTS: BisectionCosts = BisectionCosts { build: 0.0, boot: 1.0, step: 0.0 };

    fn choose(candidates: &CulpritCandidates, sets: [&[usize]; 2], noise: f64, build: f64) -> StepChoice {
        let known = StepEstimate { step: 1.0, noise, pairs: 20 };
        let [skipped, built] = sets.map(|set| set.iter().copied().collect::<BTreeSet<usize>>());
        let costs = BisectionCosts { build, ..COSTS };
        StepQuestion { candidates, error: 0.05, skipped: &skipped, built: &built, known, costs }
            .choose()
            .unwrap()
    }

    #[test]
    fn what_is_told_apart_teaches_its_entropy() {
        assert!((mutual_information(&[0.5, 0.0, 0.5, 0.0], 1e6) - std::f64::consts::LN_2).abs() < 1e-9);
        assert_eq!(mutual_information(&[0.5, 0.5, 0.0], 0.0), 0.0);
        // Both good and both bad look alike.
        assert!(mutual_information(&[0.5, 0.0, 0.5], 1e6) < 1e-9);
    }

    #[test]
    fn evidence_grows_where_what_should_be_equal_is_not() {
        let (none, one, both) = (0, 1, 2);
        assert_eq!(evidence_growth(2, one, both, 1.0), 0.0);
        assert_eq!(evidence_growth(2, both, none, 1.0), 0.0);
        assert!((evidence_growth(2, both, one, 0.001) - 0.001 / 4.0).abs() < 1e-6);
        assert!((evidence_growth(4, 4, 2, 1e9) - 6.0_f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn without_noise_the_candidates_are_divided_evenly() {
        let candidates = CulpritCandidates::new(64);
        let chosen = choose(&candidates, [&[], &[]], 0.01, 0.0);
        assert_eq!(chosen.blocks, 1);
        // Halves or thirds, the ends beside.
        let between = chosen.commits.iter().filter(|commit| !matches!(commit, 0 | 64));
        assert!(between.into_iter().all(|commit| (18..=46).contains(commit)), "{chosen:?}");
    }

    #[test]
    fn a_likely_culprit_is_measured_beside_its_parent() {
        let mut candidates = CulpritCandidates::new(64);
        let known = StepEstimate { step: 1.0, noise: 0.5, pairs: 20 };
        for _ in 0..3 {
            let block = MeasuredBlock { commits: vec![0, 20, 21, 64], values: vec![0.0, 0.0, 1.0, 1.0] };
            candidates.observe(&block, &known);
        }
        let chosen = choose(&candidates, [&[], &[]], 1.0, 0.0);
        assert!([20, 21].iter().all(|commit| chosen.commits.contains(commit)), "{chosen:?}");
    }

    #[test]
    fn builds_that_take_long_are_worth_more_blocks_and_skipped_ones_are_not_asked_for() {
        let candidates = CulpritCandidates::new(8);
        let cheap = choose(&candidates, [&[4], &[0, 8]], 1.0, 0.0);
        let dear = choose(&candidates, [&[4], &[0, 8]], 1.0, 30.0);
        assert!(dear.blocks > cheap.blocks, "{cheap:?} {dear:?}");
        assert!(!cheap.commits.contains(&4) && !dear.commits.contains(&4));
    }

    #[test]
    fn minutes_are_of_the_step_of_each_commit_that_is_to_be_built_and_of_each_boot() {
        let costs = BisectionCosts { build: 3.0, boot: 0.5, step: 2.0 };
        assert_eq!(costs.minutes(&[0, 3, 5], 4, &BTreeSet::from([0])), 2.0 + 3.0 * 2.0 + 0.5 * 12.0);
    }

    #[test]
    fn a_question_that_tells_nothing_is_not_asked() {
        let known = StepEstimate { step: 0.0, noise: 1.0, pairs: 20 };
        let (candidates, none) = (CulpritCandidates::new(8), BTreeSet::new());
        let question = StepQuestion {
            candidates: &candidates,
            error: 0.05,
            skipped: &none,
            built: &none,
            known,
            costs: COSTS,
        };
        assert!(question.choose().is_none());
    }
}
