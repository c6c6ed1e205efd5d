//! Iterations of the newest runs that failed, against those of the runs before them.
//!
//! A history has the values of iterations that ended well. Where more of them fail than did, the others may be the fast ones. The
//! newest run alone shows what fails often, the newest 2, 4, 8 and 16 together what fails now and then. Each run is one look: that at
//! the t-th run has 1 / (t (t + 1)) of the level (Bonferroni; these add up to 1), shared by the numbers of runs, so that the chance of
//! a false word in the life of a case has the bound that steps have, as long as iterations fail independently of one another.

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
    /// In the newest runs that tell most, the newest of all among them.
    pub recent: FailureCount,
    /// How many these are.
    pub recent_runs: usize,
    /// In the runs before these.
    pub earlier: FailureCount,
    /// How many runs before these have the case.
    pub runs: usize,
    /// How surprising the recent ones are after the earlier (Fisher's exact test, one-sided), corrected for how often was looked.
    pub p: f64,
    /// *worse* where more fail than chance explains; otherwise *unclear*: what is missing could have turned the others.
    pub verdict: Verdict,
}

/// Of so many newest runs, together, the failures are looked at.
const RECENT_RUNS: [usize; 5] = [1, 2, 4, 8, 16];

/// The runs of a history as far as failures need them.
#[derive(Debug, Clone, Copy)]
pub struct FailureRecords<'a> {
    /// With their values, the oldest first; the last is the newest run.
    pub runs: &'a [RunRecord],
    /// Those with failures, with the iterations that did not end well: others have none.
    pub failed: &'a [RunRecord],
    /// How many runs the history has, of which `runs` are the latest: so often was looked.
    pub looks: usize,
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
        let judged = judge_case(*newest, &earlier, (records.looks, options));
        let judged = judged.map_err(|source| AnalyzeError::Statistic {
            subject: subject.clone(),
            metric: "failures".into(),
            source,
        });
        found.push(GuardFailures { subject, ..judged? });
    }
    Ok(found)
}

/// `before` has the counts of the runs before the newest, the oldest first.
fn judge_case(
    newest: FailureCount,
    before: &[FailureCount],
    (looks, options): (usize, &AnalysisOptions),
) -> Result<GuardFailures, StatsError> {
    let sum = |counts: &[FailureCount]| {
        counts.iter().fold(FailureCount::default(), |mut sum, count| {
            sum += *count;
            sum
        })
    };
    let mut found = GuardFailures {
        subject: String::new(),
        newest,
        recent: newest,
        recent_runs: 1,
        earlier: sum(before),
        runs: before.len(),
        p: 1.0,
        verdict: Verdict::Unclear,
    };
    for recent_runs in RECENT_RUNS.into_iter().filter(|runs| *runs <= before.len()) {
        let (earlier, others) = before.split_at(before.len() - (recent_runs - 1));
        let (runs, earlier, mut recent) = (earlier.len(), sum(earlier), sum(others));
        recent += newest;
        if earlier.of == 0 {
            continue;
        }
        let p = fisher_exact(EventCount::from(earlier), EventCount::from(recent))?.at_least;
        if p < found.p {
            found = GuardFailures { recent, recent_runs, earlier, runs, p, ..found };
        }
    }
    let look = looks.max(before.len() + 1) as f64;
    found.p = (found.p * RECENT_RUNS.len() as f64 * look * (look + 1.0)).min(1.0);
    if found.p <= 1.0 - options.confidence {
        found.verdict = Verdict::Worse;
    }
    Ok(found)
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
    use fixtures::run_builder::{RunBuilder, SplitMixNoise};

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
        let records = FailureRecords { runs: &runs, failed: &failed, looks: runs.len() };
        judge_newest_failures(records, &AnalysisOptions::default()).unwrap()
    }

    #[test]
    fn a_case_that_fails_more_is_worse_and_one_that_always_did_is_not() {
        assert_eq!(judge(0, 0), []);
        let [found] = &judge(0, 5)[..] else { panic!() };
        assert_eq!(
            (found.newest, found.recent, found.earlier),
            (
                FailureCount { failed: 5, of: 10 },
                FailureCount { failed: 5, of: 10 },
                FailureCount { failed: 0, of: 200 }
            )
        );
        assert_eq!((found.verdict, found.runs), (Verdict::Worse, 20));
        // C(10, 5) / C(210, 5), five times, over 1 / (21 · 22).
        assert!((found.p / (252.0 / 3_244_032_792.0 * 5.0 * 462.0) - 1.0).abs() < 0.01, "{found:?}");
        let [once] = &judge(0, 1)[..] else { panic!() };
        assert_eq!(once.verdict, Verdict::Unclear);
        let [always] = &judge(5, 5)[..] else { panic!() };
        assert_eq!((always.verdict, always.p), (Verdict::Unclear, 1.0));
        let [all] = &judge(0, 10)[..] else { panic!() };
        assert_eq!((all.verdict, all.newest.of), (Verdict::Worse, 10));
    }

    /// How a run of ten iterations comes to fail.
    #[derive(Debug, Clone, Copy)]
    enum FailureRate {
        /// each iteration with this chance
        Steady(f64),
        /// with one chance before this run, and with another from it on
        Step(usize, f64, f64),
        /// runs of a bad day, so many of all, with the second chance, others with the first
        BadDays(f64, f64, f64),
    }

    /// The first run of a life of so many at which the case is called worse.
    fn first_alarm(rate: FailureRate, life: usize, noise: &mut SplitMixNoise) -> Option<usize> {
        let (options, mut before) = (AnalysisOptions::default(), Vec::new());
        (0..life).find(|run| {
            let chance = match rate {
                FailureRate::Steady(chance) => chance,
                FailureRate::Step(at, before, after) => {
                    if *run < at {
                        before
                    } else {
                        after
                    }
                }
                FailureRate::BadDays(share, good, bad) => {
                    if noise.uniform() < share {
                        bad
                    } else {
                        good
                    }
                }
            };
            let failed = (0..10).filter(|_| noise.uniform() < chance).count();
            let newest = FailureCount { failed, of: 10 };
            let judged = (failed > 0).then(|| judge_case(newest, &before, (0, &options)).unwrap());
            before.push(newest);
            judged.is_some_and(|judged| judged.verdict == Verdict::Worse)
        })
    }

    /// The figures that docs/statistics.md has: `cargo test -p perflab-analyze --lib guard_failures -- --nocapture` prints them.
    #[test]
    fn in_the_life_of_a_case_that_fails_as_ever_alarms_are_rarer_than_one_in_twenty() {
        const LIVES: usize = 200;
        const LIFE: usize = 300;
        let mut noise = SplitMixNoise(2026);
        for chance in [0.01, 0.05, 0.2, 0.5] {
            let rate = FailureRate::Steady(chance);
            let alarms = (0..LIVES).filter(|_| first_alarm(rate, LIFE, &mut noise).is_some()).count();
            println!("{chance}: {alarms} of {LIVES} lives of {LIFE} runs alarm");
            assert!(alarms <= LIVES / 20, "{chance}: {alarms}");
        }
        let clustered = FailureRate::BadDays(0.1, 0.01, 0.5);
        let alarms = (0..LIVES).filter(|_| first_alarm(clustered, LIFE, &mut noise).is_some()).count();
        println!("one run in ten with half of its iterations, others with 1 %: {alarms} of {LIVES}");
        assert!(alarms > LIVES / 2, "the bound is one of independent failures only: {alarms}");
        let steps =
            [(0.01, 0.1, 20.0), (0.01, 0.2, 6.0), (0.01, 0.5, 2.0), (0.1, 0.3, 16.0), (0.1, 0.5, 5.0)];
        for (before, after, most) in steps {
            let mut delay = || {
                let at = first_alarm(FailureRate::Step(100, before, after), 200, &mut noise);
                at.filter(|at| *at >= 100).map_or(f64::INFINITY, |at| (at - 99) as f64)
            };
            let mut delays: Vec<f64> = (0..LIVES).map(|_| delay()).collect();
            delays.sort_by(f64::total_cmp);
            let (median, slow) = (delays[LIVES / 2], delays[LIVES * 9 / 10]);
            println!("{before} to {after}: told by run {median} in the median, {slow} in nine of ten");
            assert!(median <= most, "{before} to {after}: {median}");
        }
    }
}
