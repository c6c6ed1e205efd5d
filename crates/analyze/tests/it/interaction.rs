//! Two factors at once: effects, interactions, and what is missing.

use perflab_analyze::{
    AnalysisOptions, AnalyzeError, ComparisonSide, FailureCount, VerdictBasis, estimate_interactions,
};

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_model::{Direction, Metric, Unit};

/// A 2×2 study of a patch on host and guest; `both` is what they do together beyond what each does.
fn factorial_side(both: f64, iterations: u32) -> ComparisonSide {
    let mut noise = SplitMixNoise(42);
    let lab = RunBuilder::new("01JDM").with(|lab| {
        lab.factors = vec![("host", vec!["old", "new"]), ("guest", vec!["old", "new"])];
        lab.iterations = iterations;
    });
    let run = lab.build_run(|spot| {
        let (host, guest) = (spot.level("host") == "new", spot.level("guest") == "new");
        let effect = if host { 0.9 } else { 1.0 } * if host && guest { both } else { 1.0 };
        Some(noise.lognormal_around(effect, 0.005))
    });
    ComparisonSide { name: "matrix".into(), runs: vec![run] }
}

#[test]
fn effects_that_do_not_interact() {
    for iterations in [12, 5] {
        let found = estimate_interactions(
            &factorial_side(1.0, iterations),
            ["host", "guest"],
            &AnalysisOptions::default(),
        )
        .unwrap();
        let words: Vec<(&str, &str)> =
            found.rows.iter().map(|row| (row.effect.as_str(), row.verdict_word())).collect();
        let expected = [
            ("host: new against old", "better"),
            ("guest: new against old", "same"),
            ("host × guest: new, new", "none"),
        ];
        assert_eq!(words, expected);
        let size = found.rows[0].change.unwrap();
        assert!((size.value + 0.1).abs() < 0.01 && size.interval.unwrap().low < -0.1, "{size:?}");
        assert_eq!(found.rows[0].blocks.is_some(), iterations >= 6);
    }
}

#[test]
fn an_interaction_is_a_ratio_of_ratios() {
    let found =
        estimate_interactions(&factorial_side(1.2, 12), ["host", "guest"], &AnalysisOptions::default())
            .unwrap();
    let row = &found.rows[2];
    assert_eq!(row.verdict_word(), "interacts");
    let interval = row.change.unwrap().interval.unwrap();
    assert!(interval.low < 0.2 && 0.2 < interval.high && interval.high - interval.low < 0.04, "{interval:?}");
}

#[test]
fn a_cell_without_values_and_a_factor_that_is_none_are_named() {
    let mut side = factorial_side(1.0, 8);
    let cases = side.runs[0].manifest.plan.cases.clone();
    side.runs[0].samples.retain(|sample| {
        let levels = &cases[sample.case as usize].levels;
        levels["host"] != "new" || levels["guest"] != "new"
    });
    let found = estimate_interactions(&side, ["host", "guest"], &AnalysisOptions::default()).unwrap();
    assert!(found.rows.is_empty());
    insta::assert_snapshot!(found.left_out.join("\n"), @"
    sweep, time, host: new against old: new with new has no value
    sweep, time, guest: new against old: new with new has no value
    sweep, time, host × guest: new, new: new with new has no value
    ");
    let unknown = estimate_interactions(&side, ["host", "guets"], &AnalysisOptions::default());
    assert!(matches!(unknown, Err(AnalyzeError::UnknownFactor { .. })));
}

/// A 2×2 study in which iterations fail: `fails(host, guest, value, iteration)`.
fn failing_side(fails: impl Fn(&str, &str, f64, u32) -> bool, iterations: u32) -> ComparisonSide {
    let mut noise = SplitMixNoise(7);
    let lab = RunBuilder::new("01JDM").with(|lab| {
        lab.factors = vec![("host", vec!["old", "new"]), ("guest", vec!["old", "new"])];
        lab.iterations = iterations;
    });
    let run = lab.build_run(|spot| {
        let value = noise.lognormal_around(10.0, 0.02);
        (!fails(spot.level("host"), spot.level("guest"), value, spot.iteration)).then_some(value)
    });
    ComparisonSide { name: "matrix".into(), runs: vec![run] }
}

fn words_and_bases(side: &ComparisonSide) -> Vec<(String, &'static str, VerdictBasis)> {
    let found = estimate_interactions(side, ["host", "guest"], &AnalysisOptions::default()).unwrap();
    found.rows.into_iter().map(|row| (row.effect.clone(), row.verdict_word(), row.basis)).collect()
}

#[test]
fn a_level_that_fails_when_slow_is_worse_though_its_survivors_are_faster() {
    let side = failing_side(|host, _, value, _| host == "new" && value > 9.9, 30);
    let found = estimate_interactions(&side, ["host", "guest"], &AnalysisOptions::default()).unwrap();
    let row = &found.rows[0];
    assert_eq!((row.verdict_word(), row.basis), ("worse", VerdictBasis::Failures));
    let failures = row.failures.unwrap();
    assert_eq!(failures.baseline, FailureCount { failed: 0, of: 60 });
    assert!(
        failures.candidate.failed > 30 && failures.candidate.of == 60 && failures.q < 1e-6,
        "{failures:?}"
    );
    // The other factor fails as often under both of its levels, by the same luck of half of its cells.
    assert_ne!(found.rows[1].basis, VerdictBasis::Failures);
    assert_ne!(found.rows[1].verdict_word(), "same");
    assert!(found.rows[2].failures.is_none() && found.rows[2].verdict_word() != "none");
}

#[test]
fn a_level_that_never_succeeds_has_a_row_and_is_worse() {
    let side = failing_side(|host, _, _, _| host == "new", 12);
    let host = words_and_bases(&side).into_iter().find(|row| row.0.starts_with("host:")).unwrap();
    assert_eq!((host.1, host.2), ("worse", VerdictBasis::Failures));
}

#[test]
fn a_few_failures_leave_what_they_cannot_turn() {
    let bases_where_one_fails = |level: &str| -> Vec<VerdictBasis> {
        let side = failing_side(|host, guest, _, at| (host, guest, at) == (level, "old", 7), 40);
        words_and_bases(&side).into_iter().map(|row| row.2).collect()
    };
    assert_eq!(bases_where_one_fails("old"), [VerdictBasis::Values; 3]);
    // A level that fails more than the first is not the same: had it been slow, its tail would not be.
    let of_the_other = [VerdictBasis::MissingValues, VerdictBasis::Values, VerdictBasis::Values];
    assert_eq!(bases_where_one_fails("new"), of_the_other);
}

/// Where all cells fail as often, at most one effect in twenty is called otherwise.
#[test]
fn failures_of_all_cells_raise_no_alarm() {
    let (mut alarms, mut effects) = (0, 0);
    for seed in 0..200 {
        let mut noise = SplitMixNoise(90_000 + seed);
        let lab = RunBuilder::new("r").with(|lab| {
            lab.factors = vec![("host", vec!["old", "new"]), ("guest", vec!["old", "new"])];
            lab.iterations = 15;
        });
        let run = lab.build_run(|_| (noise.uniform() > 0.2).then(|| noise.lognormal_around(10.0, 0.02)));
        let side = ComparisonSide { name: "r".into(), runs: vec![run] };
        let found = estimate_interactions(&side, ["host", "guest"], &AnalysisOptions::default()).unwrap();
        effects += 2;
        alarms += found.rows.iter().filter(|row| row.basis == VerdictBasis::Failures).count();
    }
    assert!(alarms * 20 <= effects, "{alarms} of {effects}");
}

#[test]
fn where_everything_failed_there_are_rows_and_no_verdict() {
    let mut side = failing_side(|_, _, _, _| true, 12);
    let metric =
        Metric { name: "time".into(), unit: Unit::new("s"), direction: Direction::Lower, primary: true };
    side.runs[0].manifest.plan.metrics.insert("sweep".into(), vec![metric]);
    let words: Vec<(&str, VerdictBasis)> =
        words_and_bases(&side).into_iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(words, [("unclear", VerdictBasis::MissingValues); 2]);
}
