//! How often a case failed on both sides, and what a verdict stands on.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use perflab_stats::{EventCount, StatsError, fisher_exact, welch};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::compared_part::ComparedPart;

/// How often a case failed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureCount {
    /// Iterations that failed or ran out of time.
    pub failed: usize,
    /// Iterations that were measured.
    pub of: usize,
}

impl FailureCount {
    /// The share of the iterations that failed.
    #[must_use]
    pub fn share(self) -> f64 {
        self.failed as f64 / self.of.max(1) as f64
    }
}

impl AddAssign for FailureCount {
    fn add_assign(&mut self, other: Self) {
        self.failed += other.failed;
        self.of += other.of;
    }
}

impl From<FailureCount> for EventCount {
    fn from(count: FailureCount) -> Self {
        EventCount { events: count.failed as u64, trials: count.of as u64 }
    }
}

/// How often a case failed on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct FailureComparison {
    /// In the baseline.
    pub baseline: FailureCount,
    /// In the candidate.
    pub candidate: FailureCount,
    /// Two-sided p-value of "both fail as often": Fisher's exact test of the iterations, and no less than Welch's test of the shares
    /// of boots or runs, where they repeat on both sides.
    pub p: f64,
    /// The p-value adjusted for all cases in which something failed (Benjamini and Hochberg).
    pub q: f64,
}

/// What a verdict stands on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictBasis {
    /// the values
    #[default]
    Values,
    /// one side fails more than chance explains
    Failures,
    /// nothing: iterations that failed could have turned what the values say
    MissingValues,
    /// values far beyond the rest, of which one side has more
    Tail,
    /// the mean
    Mean,
    /// the value that one in twenty exceeds
    P95,
    /// the value that one in a hundred exceeds
    P99,
    /// the value that one in twenty falls short of, where less is worse
    P5,
    /// the value that one in a hundred falls short of, where less is worse
    P1,
}

impl VerdictBasis {
    /// Of a part of the distribution.
    pub(crate) fn of_part(part: ComparedPart) -> Self {
        match part {
            ComparedPart::Mean => VerdictBasis::Mean,
            ComparedPart::P95 => VerdictBasis::P95,
            ComparedPart::P99 => VerdictBasis::P99,
            ComparedPart::P5 => VerdictBasis::P5,
            ComparedPart::P1 => VerdictBasis::P1,
        }
    }

    /// Whether the values decide, as they mostly do.
    #[must_use]
    pub fn is_values(&self) -> bool {
        *self == VerdictBasis::Values
    }

    /// Its name in JSON and CSV.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            VerdictBasis::Values => "values",
            VerdictBasis::Failures => "failures",
            VerdictBasis::MissingValues => "missing-values",
            VerdictBasis::Tail => "tail",
            VerdictBasis::Mean => "mean",
            VerdictBasis::P95 => "p95",
            VerdictBasis::P99 => "p99",
            VerdictBasis::P5 => "p5",
            VerdictBasis::P1 => "p1",
        }
    }
}

impl FailureComparison {
    /// Whether a larger share of the candidate failed. However few are missing, it is not the same then: with these at the worst end,
    /// far beyond all others, its tail would not be.
    pub(crate) fn candidate_fails_more(self) -> bool {
        self.candidate.share() > self.baseline.share()
    }

    /// Of these counts. `units` are the shares that failed in each boot or run of both sides, where they repeat: what makes one
    /// iteration of a run fail often makes the next one fail, too. q is p until the family is known; a side without an iteration
    /// says nothing.
    pub(crate) fn from_counts(
        baseline: FailureCount,
        candidate: FailureCount,
        units: Option<[Vec<f64>; 2]>,
    ) -> Self {
        let of_iterations = fisher_exact(baseline.into(), candidate.into()).map_or(1.0, |found| found.p);
        let of_units = units.map_or(0.0, |[ours, theirs]| match welch(&ours, &theirs) {
            Ok(found) => found.p,
            // All of a side alike: there is no chance between two sides that differ.
            Err(StatsError::NoSpread) => 0.0,
            Err(_) => 1.0,
        });
        let p = of_iterations.max(of_units);
        FailureComparison { baseline, candidate, p, q: p }
    }
}

/// The shares that failed in each boot of both sides, or in each run where boots do not repeat; none where neither does, or where
/// the sides are levels of one run.
pub(crate) fn failure_shares(sides: [&BTreeMap<(u32, u32), FailureCount>; 2]) -> Option<[Vec<f64>; 2]> {
    let by_boot = sides.map(|side| {
        let mut boots: BTreeMap<u32, FailureCount> = BTreeMap::new();
        for ((boot, _), count) in side {
            *boots.entry(*boot).or_default() += *count;
        }
        boots.into_values().map(FailureCount::share).collect::<Vec<f64>>()
    });
    if by_boot.iter().all(|boots| boots.len() >= 2) {
        return Some(by_boot);
    }
    let [ours, theirs] = sides;
    let has_run_in_common = ours.keys().any(|(_, run)| theirs.keys().any(|(_, other)| run == other));
    let repeat = ours.len() >= 2 && theirs.len() >= 2 && !has_run_in_common;
    repeat.then(|| sides.map(|side| side.values().map(|count| count.share()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(failed: usize, of: usize) -> FailureCount {
        FailureCount { failed, of }
    }

    /// One run of three in which most iterations fail is no more than the luck of a run; all runs of a side are.
    #[test]
    fn failures_of_one_run_are_its_luck() {
        let side = |failed: [usize; 3]| -> BTreeMap<(u32, u32), FailureCount> {
            (0..).zip(failed).map(|(run, failed)| ((0, run), count(failed, 10))).collect()
        };
        let other = |failed: [usize; 3]| -> BTreeMap<(u32, u32), FailureCount> {
            (3..).zip(failed).map(|(run, failed)| ((0, run), count(failed, 10))).collect()
        };
        let p = |theirs: [usize; 3]| {
            let units = failure_shares([&side([0; 3]), &other(theirs)]);
            let sum = theirs.iter().sum();
            FailureComparison::from_counts(count(0, 30), count(sum, 30), units).p
        };
        assert!(p([0, 7, 0]) > 0.05 && p([4, 5, 6]) < 0.05 && p([5, 5, 5]) < 0.01);
    }

    #[test]
    fn levels_of_one_run_have_no_shares_of_runs() {
        let one = BTreeMap::from([((0, 0), count(0, 10)), ((0, 1), count(1, 10))]);
        assert_eq!(failure_shares([&one, &one]), None);
        let boots = BTreeMap::from([((0, 0), count(0, 10)), ((1, 0), count(1, 10))]);
        assert_eq!(failure_shares([&boots, &boots]), Some([vec![0.0, 0.1], vec![0.0, 0.1]]));
    }
}
