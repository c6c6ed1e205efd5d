//! Iterations that fail are results: counted on both sides, tested, and never to the good of who failed.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, AnalyzeError, Comparison, ComparisonSide, FailureCount, Gate, Verdict, VerdictBasis,
    VerdictRow, compare_levels, compare_sides,
};
use perflab_model::{Direction, Metric, Outcome, Unit};

/// Two levels of one factor, interleaved; `measure` gives the value of a level's iteration, or a failure.
fn compare_two_levels(
    iterations: u32,
    measure: impl Fn(bool, f64, u32) -> Option<f64>,
    seed: u64,
) -> Comparison {
    let mut noise = SplitMixNoise(seed);
    let run = RunBuilder::new("r")
        .with(|lab| {
            lab.factors = vec![("build", vec!["old", "new"])];
            lab.iterations = iterations;
        })
        .build_run(|spot| {
            measure(spot.level("build") == "new", noise.lognormal_around(10.0, 0.02), spot.iteration)
        });
    let side = ComparisonSide { name: "r".into(), runs: vec![run] };
    compare_levels(&side, "build", &AnalysisOptions::default()).unwrap()
}

fn only_row(comparison: &Comparison) -> &VerdictRow {
    assert_eq!(comparison.rows.len(), 1);
    &comparison.rows[0]
}

fn verdict(comparison: &Comparison) -> (Verdict, VerdictBasis) {
    let row = only_row(comparison);
    (row.verdict, row.basis)
}

#[test]
fn who_fails_when_slow_is_worse_and_no_gate_lets_it_through() {
    // Nothing differs, but the new build fails whenever it would be slow.
    let found = compare_two_levels(30, |is_new, value, _| (!is_new || value < 9.9).then_some(value), 5);
    let row = only_row(&found);
    assert_eq!(verdict(&found), (Verdict::Worse, VerdictBasis::Failures));
    assert_eq!(row.verdict_word(), "worse");
    let failures = row.failures.unwrap();
    assert_eq!(failures.baseline, FailureCount { failed: 0, of: 30 });
    assert!(
        failures.candidate.failed > 15 && failures.candidate.of == 30 && failures.q < 1e-4,
        "{failures:?}"
    );
    // Its survivors are faster.
    assert!(row.change.unwrap().value < 0.0);
    let gate: Gate = "worse:20%".parse().unwrap();
    assert_eq!(found.violations(&gate).len(), 1);
}

#[test]
fn who_fails_less_is_better_unless_what_is_left_of_the_other_was_faster() {
    let half_fails = |is_new: bool, value: f64, at: u32| (is_new || at.is_multiple_of(2)).then_some(value);
    assert_eq!(verdict(&compare_two_levels(40, half_fails, 1)), (Verdict::Better, VerdictBasis::Failures));
    let slower =
        |is_new: bool, value: f64, at: u32| half_fails(is_new, if is_new { value * 1.2 } else { value }, at);
    assert_eq!(verdict(&compare_two_levels(40, slower, 1)), (Verdict::Unclear, VerdictBasis::MissingValues));
}

#[test]
fn a_few_failures_leave_a_clear_verdict_and_take_a_narrow_one() {
    let once = |is_new: bool, at: u32| is_new && at == 7;
    let clear = |is_new: bool, value: f64, at: u32| {
        (!once(is_new, at)).then_some(if is_new { value * 0.8 } else { value })
    };
    assert_eq!(verdict(&compare_two_levels(30, clear, 3)), (Verdict::Better, VerdictBasis::Values));
    let same = |is_new: bool, value: f64, at: u32| (!once(is_new, at)).then_some(value);
    // Had it been slow, the tail would be unclear; on the other side it would not.
    assert_eq!(verdict(&compare_two_levels(100, same, 3)), (Verdict::Unclear, VerdictBasis::MissingValues));
    let other = |is_new: bool, value: f64, at: u32| (!once(!is_new, at)).then_some(value);
    assert_eq!(verdict(&compare_two_levels(100, other, 3)), (Verdict::Same, VerdictBasis::Values));
    // Four of thirty are no more than chance, and could be the four that were slow.
    let narrow = |is_new: bool, value: f64, at: u32| {
        (!(is_new && at % 8 == 7)).then_some(if is_new { value * 0.985 } else { value })
    };
    let found = compare_two_levels(30, narrow, 4);
    let failures = only_row(&found).failures.unwrap();
    assert!(failures.candidate.failed == 3 && failures.q > 0.05, "{failures:?}");
    assert_eq!(verdict(&found), (Verdict::Unclear, VerdictBasis::MissingValues));
}

#[test]
fn a_side_that_never_succeeds_is_worse_not_missing() {
    let mut noise = SplitMixNoise(8);
    let run = RunBuilder::new("r")
        .with(|lab| {
            lab.workloads = vec!["good", "broken"];
            lab.factors = vec![("build", vec!["old", "new"])];
        })
        .build_run(|spot| {
            let breaks = spot.case.workload == "broken" && spot.level("build") == "new";
            (!breaks).then(|| noise.lognormal_around(10.0, 0.02))
        });
    let side = ComparisonSide { name: "r".into(), runs: vec![run] };
    let found = compare_levels(&side, "build", &AnalysisOptions::default()).unwrap();
    let row = found.rows.iter().find(|row| row.workload == "broken").unwrap();
    assert_eq!((row.verdict_word(), row.basis), ("worse", VerdictBasis::Failures));
    assert!(row.candidate.is_none() && row.failures.unwrap().candidate.failed == 10);
}

/// Two runs of one case; `fails` says which iterations of a side fail.
fn compare_two_runs(fails: impl Fn(&str, u32) -> bool) -> Comparison {
    let mut noise = SplitMixNoise(12);
    let mut side = |name: &str| {
        let mut run = RunBuilder::new(name)
            .build_run(|spot| (!fails(name, spot.iteration)).then(|| noise.lognormal_around(10.0, 0.02)));
        let metric =
            Metric { name: "time".into(), unit: Unit::new("s"), direction: Direction::Lower, primary: true };
        run.manifest.plan.metrics.insert("sweep".into(), vec![metric]);
        ComparisonSide { name: name.into(), runs: vec![run] }
    };
    compare_sides(&side("old"), &[side("new")], &AnalysisOptions::default()).unwrap()
}

#[test]
fn a_run_whose_every_iteration_failed_is_compared_by_its_failures() {
    let found = compare_two_runs(|side, _| side == "new");
    let row = only_row(&found);
    assert_eq!((row.verdict_word(), row.basis), ("worse", VerdictBasis::Failures));
    assert_eq!(row.failures.unwrap().candidate, FailureCount { failed: 10, of: 10 });
    assert_eq!(found.violations(&Gate::worse()).len(), 1);
    // What failed is not missing.
    assert!(found.warnings.iter().all(|warning| warning.kind() != "one-sided"), "{:?}", found.warnings);
    let turned = compare_two_runs(|side, _| side == "old");
    assert_eq!(verdict(&turned), (Verdict::Better, VerdictBasis::Failures));
}

#[test]
fn where_everything_failed_on_both_sides_there_is_a_row_and_no_verdict() {
    let found = compare_two_runs(|_, _| true);
    let row = only_row(&found);
    assert_eq!((row.metric.as_str(), row.unit.0.as_ref()), ("time", "s"));
    assert_eq!(verdict(&found), (Verdict::Unclear, VerdictBasis::MissingValues));
    assert_eq!(row.failures.unwrap().baseline, FailureCount { failed: 10, of: 10 });
}

/// A record of the command line holds iterations that failed, and of the others their values alone: what one run of five fails by
/// is its luck there, too.
#[test]
fn failures_of_one_run_are_its_luck_where_records_hold_failures_alone() {
    let judge = |keeps_all: bool, failing: std::ops::Range<usize>| {
        let mut noise = SplitMixNoise(31);
        let mut side = |name: &str, failing: &std::ops::Range<usize>| {
            let run = |number: usize| {
                let lab = RunBuilder::new(&format!("{name}{number}")).with(|lab| lab.iterations = 20);
                let mut run = lab.build_run(|spot| {
                    let fails = failing.contains(&number) && spot.iteration % 3 == 0;
                    (!fails).then(|| noise.lognormal_around(10.0, 0.02))
                });
                if !keeps_all {
                    run.iterations.retain(|iteration| iteration.outcome != Outcome::Ok);
                }
                run
            };
            ComparisonSide { name: name.into(), runs: (0..5).map(run).collect() }
        };
        let (ours, theirs) = (side("a", &(0..0)), side("b", &failing));
        let found = compare_sides(&ours, &[theirs], &AnalysisOptions::default()).unwrap();
        let failures = only_row(&found).failures.unwrap();
        (failures.candidate.of, failures.q)
    };
    for failing in [0..1, 0..5] {
        let ((of, q), all) = (judge(false, failing.clone()), judge(true, failing.clone()));
        assert_eq!((of, q), all, "{failing:?}");
        assert_eq!(q < 0.05, failing.len() == 5, "{failing:?}: {q}");
    }
}

#[test]
fn a_metric_that_nobody_has_is_an_error_whatever_failed() {
    let run = |name: &str| {
        let runs = vec![RunBuilder::new(name).build_run(|spot| (spot.iteration > 0).then_some(1.0))];
        ComparisonSide { name: name.into(), runs }
    };
    let options = AnalysisOptions { metrics: vec!["tmie".into()], ..AnalysisOptions::default() };
    let found = compare_sides(&run("a"), &[run("b")], &options);
    assert!(matches!(found, Err(AnalyzeError::NoSamples { .. })), "{found:?}");
}

/// Where both sides fail as often, whether by chance or when slow, at most one comparison in twenty says otherwise.
#[test]
fn failures_of_both_sides_raise_no_alarm() {
    for share in [0.05, 0.3] {
        let mut alarms = 0;
        for seed in 0..400 {
            let slowest = 10.0 * (1.0 + 0.02 * if share < 0.1 { 1.645 } else { 0.524 });
            let found = compare_two_levels(30, |_, value, _| (value < slowest).then_some(value), 1000 + seed);
            alarms += u32::from(matches!(verdict(&found).0, Verdict::Better | Verdict::Worse));
        }
        assert!(alarms <= 26, "{alarms} of 400 at {share}");
    }
}

/// Values near the largest number there is have no place beyond them, and their row is worked out all the same.
#[test]
fn the_largest_values_are_compared_with_failures_among_them() {
    let huge = |is_new: bool, value: f64, at: u32| (!(is_new && at == 3)).then_some(value * 1.5e307);
    let spread =
        |_: bool, value: f64, at: u32| Some(value * if at.is_multiple_of(2) { 1.5e307 } else { 1e305 });
    for found in [compare_two_levels(30, huge, 2), compare_two_levels(30, spread, 2)] {
        assert!(
            found.warnings.iter().all(|warning| warning.kind() != "not-computed"),
            "{:?}",
            found.warnings
        );
        assert!(only_row(&found).change.is_some_and(|change| change.interval.is_some()));
    }
}
