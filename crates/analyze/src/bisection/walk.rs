//! [`Bisection`]: the next step, or the end.

use std::collections::BTreeSet;

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_stats::{IntervalEstimate, ShiftSequence};
use serde::{Deserialize, Serialize};

use crate::bisection::block_evidence::MOST_IN_BLOCK;
use crate::bisection::noise_estimate::estimate_step;
use crate::bisection::step_choice::StepQuestion;
use crate::bisection::{BisectionCosts, CulpritCandidates, MeasuredBlock, StepEstimate};

/// Blocks of the ends before anything is known.
const FIRST_BLOCKS: usize = 4;

/// The search begins once the ends differ by so many standard errors; what decides is the evidence, later.
const WORTH_A_SEARCH: f64 = 3.0;

/// It stops for the ends where they no longer differ by so many.
const DOUBTFUL: f64 = 1.5;

/// Each time that what was left turns out wrong, candidates come back that were excluded by less than so many times the evidence.
const STRICTER: f64 = 10.0;

/// How often that happens.
const MOST_RETURNS: usize = 2;

/// Blocks of a confirmation: the fewest that an interval of 95 % takes, and the most.
const CONFIRMATION_BLOCKS: (usize, usize) = (8, 100);

/// What bounds a walk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BisectionOptions {
    /// The chance that the whole walk ends at a wrong commit, at most.
    pub error: f64,
    /// A change of the ends that is smaller is none; in units of the values.
    pub margin: f64,
    /// Minutes.
    pub costs: BisectionCosts,
    /// The ends are measured so often before they are given up as equal.
    pub most_end_blocks: usize,
    /// The walk ends after so many boots, where it has found nothing.
    pub most_boots: usize,
}

/// What cannot be bisected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BisectionError {
    /// Values that are no numbers, or not one a commit.
    #[error("a block needs one finite value for each of its commits")]
    UnusableBlock,
    /// A bound outside of what it may be.
    #[error("the error must lie between 0 and 1, and there must be a commit between good and bad")]
    UnusableOptions,
}

impl Classify for BisectionError {
    fn class(&self) -> ErrorClass {
        match self {
            BisectionError::UnusableBlock | BisectionError::UnusableOptions => ErrorClass::Unexpected,
        }
    }
}

/// Why commits are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BisectionPurpose {
    /// Whether good and bad differ, and by how much.
    Ends,
    /// Which candidates go.
    Search,
    /// The culprit against its parent, once it is the only one left.
    Confirmation,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum BisectionStep {
    /// Measure these commits, ascending, in so many blocks.
    Measure {
        /// Their indexes.
        commits: Vec<usize>,
        /// How many.
        blocks: usize,
        /// Why.
        purpose: BisectionPurpose,
    },
    /// There is no more to do.
    End(BisectionEnd),
}

/// Commits one of which is the culprit: all but the last could not be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BlameRange {
    /// The first.
    pub first: usize,
    /// The last, which was measured.
    pub last: usize,
}

impl BlameRange {
    /// The commit before, which can be measured.
    pub fn parent(&self) -> usize {
        self.first - 1
    }

    /// Whether it is among them.
    pub fn contains(&self, culprit: usize) -> bool {
        (self.first..=self.last).contains(&culprit)
    }
}

/// The culprit against its parent, in blocks that nothing else was decided by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepConfirmation {
    /// The culprit, or those it may be.
    pub range: BlameRange,
    /// The change with an interval that holds at every look, in units of the values.
    pub change: IntervalEstimate,
    /// Blocks.
    pub blocks: usize,
}

/// How a walk ends.
#[derive(Debug, Clone, PartialEq)]
pub enum BisectionEnd {
    /// One commit, or one of several of which only the last can be measured.
    Found(StepConfirmation),
    /// What the evidence left does not differ from its parent, again and again.
    Contradicted(StepConfirmation),
    /// No single step explains what was measured: there are several, or builds differ by luck.
    NoSingleStep,
    /// Good and bad do not differ by more than the interval holds.
    EndsEqual(IntervalEstimate),
    /// Bad is better than good.
    Swapped(IntervalEstimate),
    /// As many boots as were allowed.
    Exhausted,
}

/// A walk.
#[derive(Debug, Clone)]
pub struct Bisection {
    options: BisectionOptions,
    /// The error at which candidates are excluded.
    level: f64,
    candidates: CulpritCandidates,
    blocks: Vec<MeasuredBlock>,
    skipped: BTreeSet<usize>,
    built: BTreeSet<usize>,
    is_searching: bool,
    /// The only ones left, and the number of blocks before their confirmation.
    last: Option<(BlameRange, usize)>,
    /// Ranges that were the only ones left and do not differ from their parent.
    refuted: Vec<StepConfirmation>,
    returns: usize,
    /// Differences of the ends, in time order.
    end_differences: Vec<f64>,
    known: Option<StepEstimate>,
    end: Option<BisectionEnd>,
}

impl Bisection {
    /// A walk from commit 0, which is good, to commit `bad`.
    ///
    /// # Errors
    /// An error outside of (0, 1), no commit behind the good one.
    pub fn new(bad: usize, options: BisectionOptions) -> Result<Self, BisectionError> {
        if bad == 0 || !(options.error > 0.0 && options.error < 1.0) {
            return Err(BisectionError::UnusableOptions);
        }
        Ok(Bisection {
            level: options.error,
            options,
            candidates: CulpritCandidates::new(bad),
            blocks: Vec::new(),
            skipped: BTreeSet::new(),
            built: BTreeSet::new(),
            is_searching: false,
            last: None,
            refuted: Vec::new(),
            returns: 0,
            end_differences: Vec::new(),
            known: None,
            end: None,
        })
    }

    /// The candidates with their probabilities.
    pub fn candidates(&self) -> &CulpritCandidates {
        &self.candidates
    }

    /// All blocks so far.
    pub fn blocks(&self) -> &[MeasuredBlock] {
        &self.blocks
    }

    /// Boots so far.
    pub fn boots(&self) -> usize {
        self.blocks.iter().map(|block| block.commits.len()).sum()
    }

    /// The step and the noise, as far as they are known.
    pub fn estimate(&self) -> Option<StepEstimate> {
        self.known
    }

    /// Commits that could not be measured, ascending.
    pub fn skipped(&self) -> impl Iterator<Item = usize> {
        self.skipped.iter().copied()
    }

    /// What measuring was found to cost.
    pub fn set_costs(&mut self, costs: BisectionCosts) {
        self.options.costs = costs;
    }

    /// A change of the ends that is smaller is none; in units of the values, which may be known only with the first ones.
    pub fn set_margin(&mut self, margin: f64) {
        self.options.margin = margin;
    }

    /// A commit that is built.
    pub fn mark_built(&mut self, commit: usize) {
        self.built.insert(commit);
    }

    /// A commit that does not build or boot.
    pub fn skip(&mut self, commit: usize) {
        self.skipped.insert(commit);
        self.draw_conclusions();
    }

    /// Takes the blocks of a step into account. All of them are judged by what was known before the first.
    ///
    /// # Errors
    /// A block without one finite value for each of its commits.
    pub fn observe(&mut self, blocks: &[MeasuredBlock]) -> Result<(), BisectionError> {
        let bad = self.candidates.bad();
        let is_usable = |block: &MeasuredBlock| {
            block.commits.len() == block.values.len()
                && (2..=MOST_IN_BLOCK).contains(&block.commits.len())
                && block.commits.is_sorted_by(|one, other| one < other)
                && block.commits.last().is_some_and(|last| *last <= bad)
                && block.values.iter().all(|value| value.is_finite())
        };
        if !blocks.iter().all(is_usable) {
            return Err(BisectionError::UnusableBlock);
        }
        for block in blocks {
            if let Some(known) = self.known.filter(|known| known.step > 0.0) {
                self.candidates.observe(block, &known);
            }
            if let ([0, .., last], [good, .., worse]) = (&*block.commits, &*block.values)
                && *last == bad
            {
                self.end_differences.push(worse - good);
            }
            self.blocks.push(block.clone());
        }
        self.known = estimate_step(&self.blocks, &self.candidates);
        self.draw_conclusions();
        Ok(())
    }

    /// The ranges that candidates which are not excluded lie in, and whether it is still possible that there is no culprit.
    pub fn open_ranges(&self) -> (Vec<BlameRange>, bool) {
        let mut ranges: Vec<BlameRange> = Vec::new();
        let mut is_none_open = false;
        for culprit in self.candidates.possible(self.level) {
            if culprit == self.candidates.none() {
                is_none_open = true;
            } else if ranges.last().is_none_or(|range| range.last < culprit)
                && !self.refuted.iter().any(|refuted| refuted.range.contains(culprit))
            {
                ranges.push(self.range_of(culprit));
            }
        }
        (ranges, is_none_open)
    }

    /// The candidates that no measurement tells apart from this one.
    fn range_of(&self, culprit: usize) -> BlameRange {
        let is_skipped = |commit: usize| self.skipped.contains(&commit);
        let first = (1..=culprit).rev().find(|commit| !is_skipped(commit - 1)).unwrap_or(1);
        let last = (culprit..self.candidates.bad()).find(|commit| !is_skipped(*commit));
        BlameRange { first, last: last.unwrap_or(self.candidates.bad()) }
    }

    /// What follows from all that was measured: what is left, whether it is confirmed, whether the ends differ.
    fn draw_conclusions(&mut self) {
        let significance = self.known.map_or(0.0, |known| known.significance());
        self.is_searching = significance >= if self.is_searching { DOUBTFUL } else { WORTH_A_SEARCH };
        self.end = loop {
            let (ranges, is_none_open) = self.open_ranges();
            if let ([only], false) = (&*ranges, is_none_open) {
                if self.last.is_none_or(|(range, _)| range != *only) {
                    self.last = Some((*only, self.blocks.len()));
                }
                let Some(confirmation) = self.confirmation() else { break None };
                if !self.is_refuted(&confirmation) {
                    break self.is_confirmed(&confirmation).then_some(BisectionEnd::Found(confirmation));
                }
                self.refuted.push(confirmation);
            } else if !ranges.is_empty() || is_none_open {
                self.last = None;
                break self.conclude_without_culprit();
            }
            if self.returns == MOST_RETURNS {
                let refuted = self.refuted.last().copied();
                break Some(refuted.map_or(BisectionEnd::NoSingleStep, BisectionEnd::Contradicted));
            }
            // The true one may be among those that were excluded.
            self.returns += 1;
            self.level /= STRICTER;
        };
    }

    /// Whether the ends are found equal or swapped, or enough was measured.
    fn conclude_without_culprit(&self) -> Option<BisectionEnd> {
        if self.boots() >= self.options.most_boots {
            return Some(BisectionEnd::Exhausted);
        }
        let count = self.end_differences.len();
        let change = self.end_change().filter(|_| count >= FIRST_BLOCKS && !self.is_searching)?;
        let margin = self.options.margin;
        match change.interval {
            Some(interval) if interval.high < 0.0 => Some(BisectionEnd::Swapped(change)),
            Some(interval) if -margin < interval.low && interval.high < margin => {
                Some(BisectionEnd::EndsEqual(change))
            }
            _ => (count >= self.options.most_end_blocks).then_some(BisectionEnd::EndsEqual(change)),
        }
    }

    /// The change from good to bad, with an interval that holds at every look.
    pub fn end_change(&self) -> Option<IntervalEstimate> {
        ShiftSequence::new(&self.end_differences).ok()?.estimate(1.0 - self.options.error).ok()
    }

    /// Blocks of the only ones left and their parent that were measured since.
    fn confirmation_differences(&self) -> Vec<f64> {
        let Some((range, from)) = self.last else { return Vec::new() };
        let fresh = self.blocks.get(from..).unwrap_or_default().iter();
        let fresh = fresh.filter(|block| block.commits == [range.parent(), range.last]);
        fresh.filter_map(|block| Some(block.values.last()? - block.values.first()?)).collect()
    }

    /// What they say, once there are enough of them.
    fn confirmation(&self) -> Option<StepConfirmation> {
        let differences = self.confirmation_differences();
        if differences.len() < CONFIRMATION_BLOCKS.0 {
            return None;
        }
        let change = ShiftSequence::new(&differences).ok()?.estimate(1.0 - self.options.error).ok()?;
        Some(StepConfirmation { range: self.last?.0, change, blocks: differences.len() })
    }

    fn is_refuted(&self, confirmation: &StepConfirmation) -> bool {
        let half = self.known.map_or(0.0, |known| known.step / 2.0);
        confirmation.change.interval.is_some_and(|interval| interval.low <= 0.0 && interval.high < half)
    }

    /// After so many blocks the evidence names it all the same; the interval says how little its size is known.
    fn is_confirmed(&self, confirmation: &StepConfirmation) -> bool {
        confirmation.change.interval.is_some_and(|interval| interval.low > 0.0)
            || confirmation.blocks >= CONFIRMATION_BLOCKS.1
    }

    /// What to do next.
    pub fn next_step(&self) -> BisectionStep {
        if let Some(end) = &self.end {
            return BisectionStep::End(end.clone());
        }
        if let Some((range, _)) = self.last {
            let count = self.confirmation_differences().len();
            let (fewest, most) = CONFIRMATION_BLOCKS;
            return BisectionStep::Measure {
                commits: vec![range.parent(), range.last],
                blocks: if count < fewest { fewest - count } else { (count / 2).min(most - count) },
                purpose: BisectionPurpose::Confirmation,
            };
        }
        let known = self.known.filter(|_| self.is_searching && self.blocks.len() >= FIRST_BLOCKS);
        let chosen = known.and_then(|known| {
            let question = StepQuestion {
                candidates: &self.candidates,
                error: self.level,
                skipped: &self.skipped,
                built: &self.built,
                known,
                costs: self.options.costs,
            };
            question.choose()
        });
        match chosen {
            Some(chosen) => BisectionStep::Measure {
                commits: chosen.commits,
                blocks: chosen.blocks,
                purpose: BisectionPurpose::Search,
            },
            None => self.measure_ends(),
        }
    }

    fn measure_ends(&self) -> BisectionStep {
        let blocks = match self.end_differences.len() {
            0 => FIRST_BLOCKS,
            count => (count / 2).clamp(2, self.options.most_end_blocks.saturating_sub(count).max(2)),
        };
        let commits = vec![0, self.candidates.bad()];
        BisectionStep::Measure { commits, blocks, purpose: BisectionPurpose::Ends }
    }

    /// Minutes that the walk still takes, roughly; unknown before the step is.
    pub fn remaining_minutes(&self) -> Option<f64> {
        let known = self.known.filter(|_| self.is_searching)?;
        let costs = self.options.costs;
        let left = CONFIRMATION_BLOCKS.0.saturating_sub(self.confirmation_differences().len());
        let confirmation = costs.boot * 2.0 * left.max(1) as f64;
        if self.last.is_some() {
            return Some(confirmation);
        }
        let all = 1..=self.candidates.none();
        let probability = |culprit: &usize| self.candidates.probability(*culprit);
        let likeliest = all.clone().max_by(|one, other| probability(one).total_cmp(&probability(other)))?;
        let logs = all.clone().map(|culprit| probability(&culprit)).filter(|share| *share > 0.0);
        let entropy: f64 = logs.map(|share| -share * share.ln()).sum();
        let others = all.filter(|culprit| *culprit != likeliest);
        let missing = others.map(|culprit| self.candidates.missing_evidence(culprit, self.level));
        let missing = missing.fold(0.0, f64::max);
        let gain = ((known.step / known.noise).powi(2) / 4.0).min(std::f64::consts::LN_2);
        let boots = 2.0 * (entropy + missing) / gain;
        let builds = costs.build * (entropy / std::f64::consts::LN_2).ceil();
        Some(boots * costs.boot + builds + confirmation)
    }
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::SplitMixNoise;

    use super::*;

    const COSTS: BisectionCosts = BisectionCosts { build: 2.0, boot: 1.0, step: 0.5 };
    const OPTIONS: BisectionOptions =
        BisectionOptions { error: 0.05, margin: 0.5, costs: COSTS, most_end_blocks: 60, most_boots: 5_000 };

    /// A walk over commits of these levels, under normal noise of 1; those of level NaN do not build.
    fn walk(levels: &[f64], seed: u64) -> (Bisection, BisectionEnd) {
        let mut noise = SplitMixNoise(seed);
        let mut walk = Bisection::new(levels.len() - 1, OPTIONS).unwrap();
        loop {
            match walk.next_step() {
                BisectionStep::End(end) => return (walk, end),
                BisectionStep::Measure { commits, blocks, .. } => {
                    if let Some(broken) = commits.iter().find(|commit| levels[**commit].is_nan()) {
                        walk.skip(*broken);
                        continue;
                    }
                    commits.iter().for_each(|commit| walk.mark_built(*commit));
                    let mut measure = |_| {
                        let values = commits.iter().map(|commit| levels[*commit] + noise.normal()).collect();
                        MeasuredBlock { commits: commits.clone(), values }
                    };
                    walk.observe(&(0..blocks).map(&mut measure).collect::<Vec<_>>()).unwrap();
                }
            }
        }
    }

    fn levels(commits: usize, culprit: usize, step: f64) -> Vec<f64> {
        (0..=commits).map(|commit| if commit >= culprit { step } else { 0.0 }).collect()
    }

    #[test]
    fn the_culprit_is_found_wherever_it_is() {
        let mut wrong = 0;
        for (seed, culprit) in [1, 2, 7, 20, 39, 40].into_iter().cycle().take(60).enumerate() {
            let (_, end) = walk(&levels(40, culprit, 1.5), seed as u64);
            let is_right = matches!(&end, BisectionEnd::Found(found)
                if (found.range.first, found.range.last) == (culprit, culprit));
            wrong += usize::from(!is_right);
        }
        assert!(wrong <= 4, "{wrong}");
    }

    #[test]
    fn one_of_several_where_neighbours_do_not_build() {
        let mut levels = levels(30, 12, 3.0);
        (10..14).for_each(|commit| levels[commit] = f64::NAN);
        let (walk, end) = walk(&levels, 7);
        let BisectionEnd::Found(found) = end else { panic!("{end:?}") };
        assert_eq!(found.range, BlameRange { first: 10, last: 14 });
        let interval = found.change.interval.unwrap();
        assert!(interval.low < 3.0 && 3.0 < interval.high, "{interval:?}");
        assert!(walk.skipped().count() >= 2);
        assert!(walk.candidates().error_of(10..=14) <= 0.05);
        let known = walk.estimate().unwrap();
        assert!((2.0..4.0).contains(&known.step.abs()) && known.pairs > 1, "{known:?}");
    }

    #[test]
    fn only_the_ends_can_be_measured() {
        let mut levels = levels(9, 4, 3.0);
        (1..9).for_each(|commit| levels[commit] = f64::NAN);
        let BisectionEnd::Found(found) = walk(&levels, 1).1 else { panic!() };
        assert_eq!(found.range, BlameRange { first: 1, last: 9 });
    }

    #[test]
    fn equal_ends_and_swapped_ones_are_no_walk() {
        assert!(matches!(walk(&levels(20, 99, 1.0), 3).1, BisectionEnd::EndsEqual(_)));
        assert!(matches!(walk(&levels(20, 5, -3.0), 3).1, BisectionEnd::Swapped(_)));
    }

    #[test]
    fn two_steps_are_no_single_one() {
        let mut levels = levels(40, 10, 3.0);
        (25..=40).for_each(|commit| levels[commit] = 6.0);
        let found: Vec<BisectionEnd> = (0..10).map(|seed| walk(&levels, seed).1).collect();
        let is_unexplained =
            |end: &&BisectionEnd| matches!(end, BisectionEnd::NoSingleStep | BisectionEnd::Contradicted(_));
        // Whoever looks only at one of them finds one.
        let is_one = |end: &&BisectionEnd| matches!(end, BisectionEnd::Found(found) if [10, 25].contains(&found.range.last));
        assert_eq!(
            found.iter().filter(is_unexplained).count() + found.iter().filter(is_one).count(),
            10,
            "{found:?}"
        );
    }

    #[test]
    fn unusable_blocks_and_options_are_refused() {
        let mut walk = Bisection::new(3, OPTIONS).unwrap();
        let block = |commits: &[usize], values: &[f64]| MeasuredBlock {
            commits: commits.to_vec(),
            values: values.to_vec(),
        };
        for (commits, values) in [
            (&[0, 3][..], &[1.0][..]),
            (&[0, 4], &[1.0, 2.0]),
            (&[0, 3], &[f64::NAN, 1.0]),
            (&[3, 0], &[1.0, 2.0]),
        ] {
            assert_eq!(walk.observe(&[block(commits, values)]), Err(BisectionError::UnusableBlock));
        }
        assert!(Bisection::new(0, OPTIONS).is_err());
        assert!(Bisection::new(3, BisectionOptions { error: 1.0, ..OPTIONS }).is_err());
    }
}
