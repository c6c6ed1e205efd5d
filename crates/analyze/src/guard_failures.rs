//! Iterations of the newest run that failed, against those of the runs before it.
//!
//! A history has the values of iterations that ended well. Where more of them fail than did, the others may be the fast ones. Each
//! run is one look: that at the t-th run has 1 / (t (t + 1)) of the level (Bonferroni; these add up to 1), so that the chance of a
//! false word in the life of a case has the bound that steps have, as long as iterations fail independently of one another.

use std::collections::{BTreeSet, HashMap};

use perflab_model::{Outcome, RunRecord};
use perflab_stats::{EventCount, StatsError, fisher_exact};
use serde::Serialize;

use crate::compare::comparison::Verdict;
use crate::compare::failures::FailureCount;
use crate::compare::options::AnalysisOptions;
use crate::error::AnalyzeError;

/// A case of which iterations failed in the newest run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardFailures {
    /// The case.
    pub subject: String,
    /// In the newest run.
    pub newest: FailureCount,
    /// In the runs before it.
    pub earlier: FailureCount,
    /// How many runs before it have the case.
    pub runs: usize,
    /// How surprising that many are after those (Fisher's exact test, one-sided), times the share of the level that this look has not.
    pub p: f64,
    /// *worse* where more fail than chance explains; otherwise *unclear*: what is missing could have turned the others.
    pub verdict: Verdict,
}

/// The runs of a history as far as failures need them.
#[derive(Debug, Clone, Copy)]
pub struct FailureRecords<'a> {
    /// With their values, the oldest first; the last is the newest run.
    pub runs: &'a [RunRecord],
    /// Those with failures, with the iterations that did not end well: others have none.
    pub failed: &'a [RunRecord],
}

/// The cases of the newest run in which iterations failed, in the order of its plan.
///
/// # Errors
/// Numbers that no statistic takes.
pub fn judge_newest_failures(
    records: FailureRecords<'_>,
    options: &AnalysisOptions,
) -> Result<Vec<GuardFailures>, AnalyzeError> {
    let Some((newest, before)) = records.runs.split_last() else { return Ok(Vec::new()) };
    let counts = records.count(newest);
    let before: Vec<HashMap<String, FailureCount>> = before.iter().map(|run| records.count(run)).collect();
    let labels = newest.manifest.plan.cases.iter().filter(|case| options.includes_case(case));
    let mut found: Vec<GuardFailures> = Vec::new();
    for subject in labels.map(|case| case.label()) {
        let Some(newest) = counts.get(&subject).filter(|count| count.failed > 0) else { continue };
        if found.iter().any(|known| known.subject == subject) {
            continue;
        }
        let earlier: Vec<FailureCount> = before.iter().filter_map(|run| run.get(&subject)).copied().collect();
        let judged = judge_case(*newest, &earlier, options);
        let judged = judged.map_err(|source| AnalyzeError::Statistic {
            subject: subject.clone(),
            metric: "failures".into(),
            source,
        });
        found.push(GuardFailures { subject, ..judged? });
    }
    Ok(found)
}

fn judge_case(
    newest: FailureCount,
    before: &[FailureCount],
    options: &AnalysisOptions,
) -> Result<GuardFailures, StatsError> {
    let mut earlier = FailureCount::default();
    before.iter().for_each(|count| earlier += *count);
    let runs = before.len();
    let p = match earlier.of {
        0 => 1.0,
        _ => fisher_exact(EventCount::from(earlier), EventCount::from(newest))?.at_least,
    };
    let look = (runs + 1) as f64;
    let p = (p * look * (look + 1.0)).min(1.0);
    let verdict = if p <= 1.0 - options.confidence { Verdict::Worse } else { Verdict::Unclear };
    Ok(GuardFailures { subject: String::new(), newest, earlier, runs, p, verdict })
}

impl FailureRecords<'_> {
    /// Iterations of each case, warm-up and what the user stopped left out: those with a value, and those that failed.
    fn count(&self, run: &RunRecord) -> HashMap<String, FailureCount> {
        let plan = &run.manifest.plan;
        let mut ended: HashMap<u32, BTreeSet<(u32, u32)>> = HashMap::new();
        for sample in &run.samples {
            ended.entry(sample.case).or_default().insert((sample.boot, sample.iteration));
        }
        let mut failed: HashMap<u32, BTreeSet<(u32, u32)>> = HashMap::new();
        let with_failures = self.failed.iter().find(|other| other.manifest.id == run.manifest.id);
        for one in with_failures.into_iter().flat_map(|run| &run.iterations) {
            let slots = with_failures.map(|run| &run.manifest.plan.slots);
            let slot = slots.and_then(|slots| slots.get(one.slot as usize)).filter(|slot| !slot.warmup);
            let Some(slot) = slot.filter(|_| one.outcome != Outcome::Interrupted) else { continue };
            if one.outcome.failure_reason().is_some() {
                failed.entry(slot.case).or_default().insert((slot.boot, slot.iteration));
            }
        }
        let mut counts: HashMap<String, FailureCount> = HashMap::new();
        for (number, case) in (0..).zip(&plan.cases) {
            let (Some(of), failed) = (ended.get(&number).or(failed.get(&number)), failed.get(&number)) else {
                continue;
            };
            let all = of.union(failed.unwrap_or(&BTreeSet::new())).count();
            *counts.entry(case.label()).or_default() +=
                FailureCount { failed: failed.map_or(0, BTreeSet::len), of: all };
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::RunBuilder;

    use super::*;

    /// Twenty runs of ten iterations of which so many fail each, then one of which so many do.
    fn judge(before: u32, newest: u32) -> Vec<GuardFailures> {
        let run = |number: u32, failing: u32| {
            let lab = RunBuilder::new(&format!("r{number:02}"));
            lab.build_run(|at| (at.iteration >= failing).then_some(1.0))
        };
        let mut runs: Vec<RunRecord> = (0..20).map(|number| run(number, before)).collect();
        runs.push(run(20, newest));
        let failed = runs.clone();
        let records = FailureRecords { runs: &runs, failed: &failed };
        judge_newest_failures(records, &AnalysisOptions::default()).unwrap()
    }

    #[test]
    fn a_case_that_fails_more_is_worse_and_one_that_always_did_is_not() {
        assert_eq!(judge(0, 0), []);
        let [found] = &judge(0, 5)[..] else { panic!() };
        assert_eq!(
            (found.newest, found.earlier),
            (FailureCount { failed: 5, of: 10 }, FailureCount { failed: 0, of: 200 })
        );
        assert_eq!((found.verdict, found.runs), (Verdict::Worse, 20));
        // C(10, 5) / C(210, 5), over 1 / (21 · 22).
        assert!((found.p / (252.0 / 3_244_032_792.0 * 462.0) - 1.0).abs() < 0.01, "{found:?}");
        let [once] = &judge(0, 1)[..] else { panic!() };
        assert_eq!(once.verdict, Verdict::Unclear);
        let [always] = &judge(5, 5)[..] else { panic!() };
        assert_eq!((always.verdict, always.p), (Verdict::Unclear, 1.0));
        let [all] = &judge(0, 10)[..] else { panic!() };
        assert_eq!((all.verdict, all.newest.of), (Verdict::Worse, 10));
    }
}
