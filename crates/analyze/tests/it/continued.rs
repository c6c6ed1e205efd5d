//! A run that was interrupted and gone on with counts as the one run that it is.

use fixtures::run_builder::{MeasuredPoint, RunBuilder};
use perflab_analyze::{
    AnalysisOptions, Comparison, ComparisonSide, KernelLogPart, KernelLogsOfRuns,
    compare_kernel_logs_of_levels, compare_levels, compare_sides,
};
use perflab_model::series::SeriesGap;
use perflab_model::{
    Facts, Nanos, Outcome, RunRecord, RunStatus, Slot, Trigger, TriggerFinding, TriggerRecord, fact_table,
    join_continued_runs,
};

const BLOCKS: u32 = 8;

/// A run of two levels, with values that no two iterations share.
fn build_run(id: &str, slower: f64) -> RunRecord {
    let run = RunBuilder::new(id).with(|run| {
        (run.iterations, run.factors) = (BLOCKS, vec![("size", vec!["small", "huge"])]);
    });
    run.build_run(|point: &MeasuredPoint| {
        let level = if point.level("size") == "huge" { 0.2 } else { 0.1 };
        Some(slower * (level + 0.000_1 * f64::from(point.iteration * 7 % BLOCKS)))
    })
}

/// What a kill in the middle of a block leaves of a run, and the run that goes on with it, under another boot whose clock begins anew.
fn cut(whole: &RunRecord) -> [RunRecord; 2] {
    const DONE: usize = 7;
    const WHOLE: usize = 6;
    let mut first = whole.clone();
    (first.gaps, first.triggers) = Default::default();
    first.manifest.status = RunStatus::Interrupted;
    first.samples.truncate(DONE);
    first.iterations.truncate(DONE);
    // The half of a block that is measured again.
    first.samples[WHOLE].value *= 3.0;
    let mut rest = whole.clone();
    (rest.manifest.id, rest.manifest.continues) =
        (format!("{}-rest", whole.manifest.id), Some(whole.manifest.id.clone()));
    rest.manifest.boot_id = "boot-2".into();
    rest.samples.drain(..WHOLE);
    rest.iterations.drain(..WHOLE);
    let warmup = Slot { warmup: true, ..whole.manifest.plan.slots[0] };
    rest.manifest.plan.slots.splice(..WHOLE, [warmup]);
    let later = 1_000_000_000_000;
    rest.manifest.anchor.realtime.0 += later;
    let shift = rest.samples[0].start.0 - 5;
    rest.manifest.anchor.monotonic.0 = whole.manifest.anchor.monotonic.0 + later - shift;
    for sample in &mut rest.samples {
        (sample.start.0, sample.end.0) = (sample.start.0 - shift, sample.end.0 - shift);
    }
    for gap in &mut rest.gaps {
        (gap.from.0, gap.to) = (gap.from.0 - shift, gap.to.map(|to| Nanos(to.0 - shift)));
    }
    rest.triggers.iter_mut().for_each(|trigger| trigger.at.0 -= shift);
    for iteration in &mut rest.iterations {
        iteration.slot = iteration.slot - WHOLE as u32 + 1;
        (iteration.start.0, iteration.end.0) = (iteration.start.0 - shift, iteration.end.0 - shift);
    }
    [first, rest]
}

#[test]
fn the_parts_of_a_run_are_joined_to_what_it_would_have_been() {
    let mut whole = build_run("A", 1.0);
    let at = whole.iterations[9].start;
    let (monitor, reason) = ("vmstat".into(), "/proc/vmstat: not read".into());
    whole.gaps.push(SeriesGap { monitor, from: at, to: Some(whole.iterations[9].end), reason });
    let trigger = Trigger { condition: "signal".into(), found: TriggerFinding::Signal };
    whole.triggers.push(TriggerRecord { at, trigger });
    let other = build_run("B", 1.0);
    let [first, rest] = cut(&whole);
    let joined = join_continued_runs(vec![rest, other.clone(), first]);
    assert_eq!(joined.len(), 2);
    assert_eq!(joined[1], other);
    let (values, times): (Vec<f64>, Vec<u64>) =
        joined[0].samples.iter().map(|sample| (sample.value, sample.start.0)).unzip();
    assert_eq!(values, whole.samples.iter().map(|sample| sample.value).collect::<Vec<_>>());
    assert_eq!(times, whole.samples.iter().map(|sample| sample.start.0).collect::<Vec<_>>());
    assert_eq!(joined[0].iterations, whole.iterations);
    assert_eq!((&joined[0].gaps, &joined[0].triggers), (&whole.gaps, &whole.triggers));
    assert_eq!(joined[0].recorded_ids().collect::<Vec<_>>(), ["A", "A-rest"]);
    let plan = &joined[0].manifest.plan;
    assert_eq!(
        plan.slots[..plan.slots.len() - 1],
        whole.manifest.plan.slots,
        "its warm-up stands behind all others"
    );
    assert_eq!((joined[0].manifest.id.as_str(), joined[0].manifest.status), ("A-rest", RunStatus::Finished));
}

/// The tenth slot of the whole is the fifth of the rest, behind its warm-up.
#[test]
fn what_kernels_printed_is_of_the_iterations_of_the_whole() {
    let mut whole = build_run("A", 1.0);
    whole.manifest.study.kernel_log = true;
    let log = |slots: &[u32]| -> Vec<KernelLogPart> {
        let printed = "<4>[    1.0] WARNING: CPU: 0 PID: 1 at mm/slub.c:1 kfree+0x1/0x2";
        let part = |slot: &u32| KernelLogPart {
            slot: Some(*slot),
            target: None,
            text: printed.into(),
            is_console: false,
        };
        slots.iter().map(part).collect()
    };
    let levels = ["small".to_owned(), "huge".to_owned()];
    let compare = |runs: Vec<RunRecord>, logs: &KernelLogsOfRuns| {
        let side = ComparisonSide { name: "a".into(), runs };
        compare_kernel_logs_of_levels(&side, "size", &levels, logs)
    };
    let expected = compare(vec![whole.clone()], &[("A".to_owned(), log(&[1, 9]))].into());
    assert!(expected.as_ref().is_some_and(|found| !found.troubles.is_empty()), "{expected:?}");
    let logs = [("A".to_owned(), log(&[1])), ("A-rest".to_owned(), log(&[4]))].into();
    assert_eq!(compare(join_continued_runs(cut(&whole).to_vec()), &logs), expected);
}

#[test]
fn chains_end_whatever_they_go_on_with() {
    let whole = build_run("A", 1.0);
    let [first, rest] = cut(&whole);
    let named = |id: &str, continues: &str| {
        let mut run = rest.clone();
        (run.manifest.id, run.manifest.continues) = (id.into(), Some(continues.into()));
        run
    };
    let count = |runs: Vec<RunRecord>| join_continued_runs(runs).len();
    assert_eq!(count(vec![first.clone(), named("B", "A"), named("C", "B")]), 1);
    // Two at once: what is measured twice counts once.
    let twice = join_continued_runs(vec![first, named("B", "A"), named("C", "A")]);
    assert_eq!((twice.len(), twice[0].samples.len()), (1, whole.samples.len()));
    assert_eq!(count(vec![named("B", "B")]), 1);
    assert_eq!(count(vec![named("B", "C"), named("C", "B")]), 1);
    assert_eq!(count(vec![named("B", "gone")]), 1);
}

#[test]
fn what_fails_the_second_time_has_no_value_of_the_first_and_what_is_stopped_keeps_it() {
    let [first, rest] = cut(&build_run("A", 1.0));
    let half = first.samples[6].clone();
    let is_half = |run: &RunRecord| {
        run.samples.iter().filter(|one| (one.case, one.iteration) == (half.case, half.iteration)).count()
    };
    for (outcome, left) in [(Outcome::Failed { reason: "exit code 1".into() }, 0), (Outcome::Interrupted, 1)]
    {
        let mut again = rest.clone();
        again.samples.remove(0);
        again.iterations[0].outcome = outcome;
        assert_eq!(is_half(&join_continued_runs(vec![first.clone(), again])[0]), left);
    }
}

/// Failures are read without the iterations that went well.
#[test]
fn what_failed_in_a_cut_block_and_went_well_later_is_no_failure() {
    let [mut first, mut rest] = cut(&build_run("A", 1.0));
    let failed = Outcome::Failed { reason: "exit code 1".into() };
    first.samples.remove(6);
    first.iterations[6].outcome = failed.clone();
    first.iterations[2].outcome = failed;
    first.iterations.retain(|iteration| iteration.outcome != Outcome::Ok);
    rest.iterations.clear();
    let joined = join_continued_runs(vec![first, rest]);
    assert_eq!(joined[0].iterations.iter().map(|one| one.slot).collect::<Vec<_>>(), [2]);
}

/// Two parts whose middle, or whose first, is missing are no two runs either; runs that nothing connects are, however alike.
#[test]
fn a_part_that_goes_on_with_a_missing_one_is_of_the_run_before_that() {
    let [first, rest] = cut(&build_run("A", 1.0));
    let part = |id: &str, continues: &str, first: &str| {
        let mut part = rest.clone();
        (part.manifest.id, part.manifest.continues) = (id.into(), Some(continues.into()));
        part.manifest.first_part = Some(first.into());
        part
    };
    let count = |runs: Vec<RunRecord>| join_continued_runs(runs).len();
    assert_eq!(count(vec![first.clone(), part("C", "B", "A")]), 1);
    assert_eq!(count(vec![part("B", "A", "A"), part("D", "C", "A")]), 1);
    assert_eq!(count(vec![first, part("C", "B", "another"), part("E", "D", "a third")]), 3);
}

#[test]
fn parts_of_two_kernels_stay_two_runs() {
    let [first, mut rest] = cut(&build_run("A", 1.0));
    let mut facts = Facts::default();
    facts.add(fact_table::KERNEL_RELEASE, "6.2.0", "uname");
    rest.manifest.facts = facts;
    assert_eq!(join_continued_runs(vec![first, rest]).len(), 2);
}

#[test]
fn two_parts_are_no_two_runs_a_side() {
    let (whole, slow) = (build_run("A", 1.0), build_run("Z", 1.5));
    let side = |name: &str, runs: Vec<RunRecord>| ComparisonSide {
        name: name.into(),
        runs: join_continued_runs(runs),
    };
    let options = AnalysisOptions::default();
    let words = |found: Comparison| -> Vec<(&str, String)> {
        found.rows.iter().map(|row| (row.verdict_word(), format!("{:?}", row.change))).collect()
    };
    let against = side("slow", vec![slow]);
    let before = words(
        compare_sides(&side("base", vec![whole.clone()]), std::slice::from_ref(&against), &options).unwrap(),
    );
    let parts = side("base", cut(&whole).to_vec());
    assert_eq!(words(compare_sides(&parts, &[against], &options).unwrap()), before);
    let levels = |side: &ComparisonSide| words(compare_levels(side, "size", &options).unwrap());
    assert_eq!(levels(&parts), levels(&side("base", vec![whole])));
}
