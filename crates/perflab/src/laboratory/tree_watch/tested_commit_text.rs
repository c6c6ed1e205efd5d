//! What a watch says of a commit that it tested: in a terminal, and in the table of its report.

use perflab_analyze::GuardReport;
use perflab_model::quantity::format_quantity;
use perflab_present::history::guard_failures_text;
use perflab_present::tested_commit::TestedCommitLine;

use crate::laboratory::tree_watch::stepped_metric::{RepairedMetric, SteppedMetric};
use crate::laboratory::tree_watch::watch_state::{CommitOutcome, TestedCommit};

/// Commits that a report lists.
const MOST_COMMITS: usize = 100;

/// What became of a commit, and why.
pub fn outcome_text(tested: &TestedCommit) -> String {
    let words = outcome_words(tested);
    match &tested.reason {
        Some(reason) => format!("{words}: {}", reason_text(reason)),
        None => words.into(),
    }
}

fn outcome_words(tested: &TestedCommit) -> &'static str {
    let is_open = |step: &SteppedMetric| !step.is_worse() && !step.is_refuted();
    match tested.outcome {
        CommitOutcome::Good if tested.steps.iter().any(is_open) => "something may have got worse",
        outcome => outcome.words(),
    }
}

/// A reason beside the outcome, which says the same in its first words.
fn reason_text(reason: &str) -> &str {
    let outcomes = ["does not build: ", "does not run: "];
    outcomes.iter().find_map(|outcome| reason.strip_prefix(outcome)).unwrap_or(reason)
}

/// Of which cases more iterations fail than chance explains.
pub fn failing_text(judged: &GuardReport) -> Option<String> {
    let failing = judged.failing();
    let texts: Vec<String> =
        failing.iter().map(|found| format!("{}: {}", found.subject, guard_failures_text(found))).collect();
    (!texts.is_empty()).then(|| format!("{} (failures are not bisected)", texts.join("; ")))
}

/// The lines of a report's table, the newest commit first.
pub fn list_tested_commits<'a>(
    tested: impl IntoIterator<Item = &'a TestedCommit, IntoIter: DoubleEndedIterator>,
) -> Vec<TestedCommitLine> {
    tested.into_iter().rev().take(MOST_COMMITS).map(describe_tested).collect()
}

fn describe_tested(tested: &TestedCommit) -> TestedCommitLine {
    let reason = tested.reason.as_deref().map(|reason| reason_text(reason).to_owned());
    let worse = tested.steps.iter().filter(|step| !step.is_refuted()).map(|step| {
        let word = if step.is_worse() { "is worse" } else { "may be worse" };
        format!("{} {} {word}", step.case, step.metric)
    });
    let repaired = tested.repaired.iter().map(repair_text);
    let reasons: Vec<String> = reason.into_iter().chain(worse).chain(repaired).collect();
    let found = tested.steps.iter().filter_map(|step| step.bisection.as_ref());
    let mut culprits: Vec<String> = Vec::new();
    for one in found.flat_map(|bisection| &bisection.culprits) {
        let text = format!("{} {}", one.short, one.subject);
        if !culprits.contains(&text) {
            culprits.push(text);
        }
    }
    TestedCommitLine {
        commit: tested.commit.short.clone(),
        subject: tested.commit.subject.clone(),
        outcome: outcome_words(tested).into(),
        reason: reasons.join("; "),
        culprits: culprits.join("; "),
    }
}

/// What is said of what was mended.
pub fn repair_text(metric: &RepairedMetric) -> String {
    let text = |value: f64| format_quantity(value, &metric.unit);
    let (before, after) = (text(metric.before), text(metric.after));
    format!("{} {} is repaired: {after}, after {before}", metric.case, metric.metric)
}

/// What is said of a step in one line.
pub fn step_text(step: &SteppedMetric) -> String {
    let name = format!("{} {}", step.case, step.metric);
    let command = step.command.as_deref().unwrap_or_default();
    match (&step.bisection, &step.reason) {
        _ if step.is_known => format!("{name} is still worse, as told before"),
        (Some(bisection), _) if !bisection.culprits.is_empty() => {
            let names: Vec<&str> = bisection.culprits.iter().map(|one| one.short.as_str()).collect();
            format!("{name} got worse with {}", names.join(" or "))
        }
        (Some(_), _) if step.is_refuted() => {
            format!(
                "{name} fell out of its history, and side by side the commits do not differ: look at the machine"
            )
        }
        (Some(_), _) => format!("{name} got worse, and no single commit explains it: {command}"),
        (None, Some(reason)) => format!("{name} got worse, and cannot be bisected: {reason}"),
        (None, None) => format!("{name} may have got worse; measure it side by side: {command}"),
    }
}

#[cfg(test)]
mod tests {
    use perflab_analyze::{FailureCount, GuardFailures, Verdict};
    use perflab_model::Nanos;

    use super::*;
    use crate::laboratory::tree_watch::stepped_metric::BisectedStep;
    use crate::laboratory::tree_watch::stepped_metric::tests::{make_commit, make_step};
    use crate::measure::bisection::bisection_result::BisectionOutcome;

    fn tested(outcome: CommitOutcome) -> TestedCommit {
        TestedCommit {
            commit: make_commit("abcd"),
            study: String::new(),
            outcome,
            reason: None,
            runs: Vec::new(),
            steps: Vec::new(),
            repaired: Vec::new(),
            at: Nanos(0),
        }
    }

    #[test]
    fn what_is_said_of_a_commit() {
        let found = BisectedStep {
            outcome: BisectionOutcome::Found,
            culprits: vec![make_commit("abcd"), make_commit("0123")],
        };
        let worse = TestedCommit { steps: vec![make_step(Some(found))], ..tested(CommitOutcome::Worse) };
        let suspected = TestedCommit { steps: vec![make_step(None)], ..tested(CommitOutcome::Good) };
        let reason = Some("does not build: the command exited with code 2: error: no".to_owned());
        let unbuildable = TestedCommit { reason, ..tested(CommitOutcome::Unbuildable) };
        let (case, metric, unit) = ("sort".into(), "time".into(), "s".into());
        let repair = RepairedMetric { case, metric, unit, before: 0.16, after: 0.055 };
        let repaired = TestedCommit { repaired: vec![repair], ..tested(CommitOutcome::Good) };
        let all = [worse, suspected, unbuildable, repaired];
        let mut text = String::new();
        for one in &all {
            for step in &one.steps {
                text += &format!("{}\n", step_text(step));
            }
            text += &format!("{}\n", outcome_text(one));
        }
        for line in list_tested_commits(&all) {
            let TestedCommitLine { commit, subject, outcome, reason, culprits } = line;
            text += &format!("{commit} | {subject} | {outcome} | {reason} | {culprits}\n");
        }
        insta::assert_snapshot!(text.replace('\u{a0}', " ").replace(" \n", "\n"), @"
        sort time got worse with abcd or 0123
        it is worse
        sort time may have got worse; measure it side by side: perflab bisect --good abcd
        something may have got worse
        it does not build: the command exited with code 2: error: no
        nothing stepped
        abcd | a <b>change</b> | nothing stepped | sort time is repaired: 55 ms, after 160 ms |
        abcd | a <b>change</b> | it does not build | the command exited with code 2: error: no |
        abcd | a <b>change</b> | something may have got worse | sort time may be worse |
        abcd | a <b>change</b> | it is worse | sort time is worse | abcd a <b>change</b>; 0123 a <b>change</b>
        ");
        let (newest, earlier) = (FailureCount { failed: 5, of: 10 }, FailureCount { failed: 0, of: 200 });
        let failures = GuardFailures {
            subject: "sort".into(),
            newest,
            recent: newest,
            recent_runs: 1,
            earlier,
            runs: 20,
            p: 1e-6,
            verdict: Verdict::Worse,
        };
        let judged = GuardReport {
            run: "run".into(),
            rows: Vec::new(),
            lost: Vec::new(),
            failures: vec![failures],
            newer_unreadable: None,
            notes: Vec::new(),
        };
        insta::assert_snapshot!(failing_text(&judged).unwrap(), @"sort: 5 of 10 iterations failed, 0 of 200 in 20 runs before: more than chance explains (failures are not bisected)");
    }
}
