//! Two factors at once: effects, interactions, and what is missing.

use perflab_analyze::{AnalysisOptions, AnalyzeError, ComparisonSide, estimate_interactions};

use fixtures::run_builder::{RunBuilder, SplitMixNoise};

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
        let size = found.rows[0].change;
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
    let interval = row.change.interval.unwrap();
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
    assert!(found.left_out[0].contains("new with new has no value"), "{:?}", found.left_out);
    let unknown = estimate_interactions(&side, ["host", "guets"], &AnalysisOptions::default());
    assert!(matches!(unknown, Err(AnalyzeError::UnknownFactor { .. })));
}
