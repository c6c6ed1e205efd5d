//! `compare` on made-up runs: verdicts, directions, missing data, hierarchy.

use fixtures::run_builder::{RunBuilder, SplitMixNoise, explanatory_metric, primary_metric};
use perflab_analyze::compare::diagnostic::NoiseCardDoubt;
use perflab_analyze::{
    AnalysisOptions, AnalyzeError, ChangeScale, Comparison, ComparisonDiagnostic, ComparisonSide,
    MethodDescription, RepetitionLevel, RowFlag, Verdict, VerdictRow, compare_levels, compare_sides,
};
use perflab_model::fact_table;
use perflab_model::{Direction, Nanos, RunRecord, RunStatus};

fn make_side(name: &str, runs: Vec<RunRecord>) -> ComparisonSide {
    ComparisonSide { name: name.into(), runs }
}

fn compare_runs(baseline: RunRecord, candidate: RunRecord) -> Comparison {
    compare_sides(
        &make_side("A", vec![baseline]),
        &[make_side("B", vec![candidate])],
        &AnalysisOptions::default(),
    )
    .unwrap()
}

/// Four runs a side, taken in turns in one boot, whose values lie around two centres by 1 %.
fn compare_repeated(
    metric: &fixtures::run_builder::MeasuredMetric,
    baseline: f64,
    candidate: f64,
) -> Comparison {
    let runs = |name: &str, centre: f64| {
        let run = |number: u64| {
            let run = noisy_run(&format!("{name}{number}"), centre, metric.clone());
            start_later(run, number * 7_200 + if name == "a" { 0 } else { 3_600 })
        };
        make_side(name, (0..4).map(run).collect())
    };
    compare_sides(&runs("a", baseline), &[runs("b", candidate)], &AnalysisOptions::default()).unwrap()
}

fn only_row(comparison: &Comparison) -> &VerdictRow {
    assert_eq!(comparison.rows.len(), 1);
    &comparison.rows[0]
}

fn has_diagnostic(comparison: &Comparison, kind: &str) -> bool {
    comparison.warnings.iter().any(|warning| warning.kind() == kind)
}

/// A run of one case whose values lie around `centre` by 1 %.
fn noisy_run(id: &str, centre: f64, metric: fixtures::run_builder::MeasuredMetric) -> RunRecord {
    let mut noise = SplitMixNoise(id.bytes().map(u64::from).sum());
    RunBuilder::new(id)
        .with(|lab| lab.metrics = vec![metric])
        .build_run(|_| Some(noise.lognormal_around(centre, 0.01)))
}

#[test]
fn directions_decide_what_is_better() {
    let cases = [
        (Direction::Lower, 8.0, Verdict::Better),
        (Direction::Lower, 12.0, Verdict::Worse),
        (Direction::Higher, 12.0, Verdict::Better),
        (Direction::Higher, 8.0, Verdict::Worse),
    ];
    for (direction, centre, verdict) in cases {
        let metric = primary_metric("m", "1", direction);
        assert_eq!(
            only_row(&compare_repeated(&metric, 10.0, centre)).verdict,
            verdict,
            "{direction} {centre}"
        );
        // One run a side differs, and says which way.
        let found = compare_runs(noisy_run("a", 10.0, metric.clone()), noisy_run("b", centre, metric));
        let row = only_row(&found);
        assert_eq!((row.verdict, row.is_good_change()), (Verdict::Differs, Some(verdict == Verdict::Better)));
    }
}

#[test]
fn without_a_direction_a_clear_change_is_flagged_not_judged() {
    let metric = explanatory_metric("faults", "1", Direction::Neither);
    let found = compare_repeated(&metric, 10.0, 12.0);
    let row = only_row(&found);
    assert_eq!((row.verdict, row.verdict_word()), (Verdict::Unclear, "changed"));
    assert!(row.flags.contains(&RowFlag::Changed));
}

#[test]
fn inside_the_margin_is_the_same_even_when_significant() {
    let metric = primary_metric("time", "s", Direction::Lower);
    let mut noise = SplitMixNoise(5);
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"])];
        lab.iterations = 30;
        lab.metrics = vec![metric];
    });
    let run = lab.build_run(|spot| {
        Some(noise.lognormal_around(if spot.level("pages") == "huge" { 10.1 } else { 10.0 }, 0.002))
    });
    let found = compare_levels(&make_side("r", vec![run]), "pages", &AnalysisOptions::default()).unwrap();
    let row = only_row(&found);
    assert_eq!(row.verdict, Verdict::Same);
    assert!(row.q.unwrap() < 0.001 && row.change.unwrap().interval.unwrap().low > 0.0);
}

#[test]
fn the_margin_of_the_study_beats_the_default() {
    let with_margin = |id: &str, centre| {
        let mut run = noisy_run(id, centre, primary_metric("time", "s", Direction::Lower));
        run.manifest.plan.margins.insert("time".into(), 0.5);
        run
    };
    let found = compare_runs(with_margin("a", 10.0), with_margin("b", 12.0));
    assert_eq!((only_row(&found).margin, only_row(&found).verdict), (0.5, Verdict::SameHere));
}

#[test]
fn noise_is_unclear_and_says_how_many_would_decide() {
    let mut noise = SplitMixNoise(1);
    let lab = RunBuilder::new("r").with(|lab| lab.factors = vec![("pages", vec!["small", "huge"])]);
    let run = lab.build_run(|_| Some(noise.lognormal_around(10.0, 0.2)));
    let found = compare_levels(&make_side("r", vec![run]), "pages", &AnalysisOptions::default()).unwrap();
    let row = only_row(&found);
    assert_eq!(row.verdict, Verdict::Unclear);
    assert!(row.needed.unwrap() >= 15, "{:?}", row.needed);
}

#[test]
fn equal_constants_are_the_same_and_unequal_ones_differ() {
    let constant = |id: &str, value| RunBuilder::new(id).build_run(move |_| Some(value));
    let same = compare_runs(constant("a", 7.0), constant("b", 7.0));
    assert_eq!(only_row(&same).verdict, Verdict::SameHere);
    assert_eq!(only_row(&same).change.unwrap().value, 0.0);
    let zero = compare_runs(constant("a", 0.0), constant("b", 0.0));
    assert_eq!(
        (only_row(&zero).verdict, only_row(&zero).change.unwrap().scale),
        (Verdict::SameHere, ChangeScale::Absolute)
    );
    let other = compare_runs(constant("a", 7.0), constant("b", 8.0));
    assert_eq!(
        (only_row(&other).verdict, only_row(&other).is_good_change()),
        (Verdict::Differs, Some(false))
    );
}

#[test]
fn zeros_and_negatives_are_compared_by_difference() {
    let mut noise = SplitMixNoise(3);
    let mut run = |id: &str, centre: f64| RunBuilder::new(id).build_run(|_| Some(centre + noise.normal()));
    let found = compare_runs(run("a", 0.0), run("b", 10.0));
    let change = only_row(&found).change.unwrap();
    assert_eq!((change.scale, only_row(&found).verdict), (ChangeScale::Absolute, Verdict::Differs));
    assert!((change.value - 10.0).abs() < 2.0);
}

#[test]
fn what_one_side_lacks_is_a_row_without_a_number() {
    let both = |id: &str, second| {
        let metrics = vec![
            primary_metric("time", "s", Direction::Lower),
            primary_metric(second, "s", Direction::Lower),
        ];
        RunBuilder::new(id).with(|lab| lab.metrics = metrics).build_run(|_| Some(1.0))
    };
    let found = compare_runs(both("a", "left"), both("b", "right"));
    let row = |name: &str| found.rows.iter().find(|row| row.metric == name).unwrap();
    assert!(row("left").candidate.is_none() && row("left").change.is_none() && row("left").q.is_none());
    assert!(row("right").baseline.is_none());
    assert_eq!(row("left").verdict_word(), "missing");
    assert_eq!(found.warnings.iter().filter(|w| w.kind() == "one-sided").count(), 2);
}

#[test]
fn another_unit_is_another_metric() {
    let error = compare_sides(
        &make_side("A", vec![noisy_run("a", 1.0, primary_metric("time", "s", Direction::Lower))]),
        &[make_side("B", vec![noisy_run("b", 1.0, primary_metric("time", "ms", Direction::Lower))])],
        &AnalysisOptions::default(),
    );
    let text = error.unwrap_err().to_string();
    assert_eq!(text, "`A` and `B` have no metric in common: `A` has time [s]; `B` has time [ms]");
}

#[test]
fn no_common_case_names_what_each_has() {
    let run = |id: &str, workload| {
        RunBuilder::new(id).with(|lab| lab.workloads = vec![workload]).build_run(|_| Some(1.0))
    };
    let (ours, theirs) = (make_side("A", vec![run("a", "fio")]), make_side("B", vec![run("b", "dbench")]));
    let error = compare_sides(&ours, &[theirs], &AnalysisOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "`A` and `B` have no case in common: `A` has fio; `B` has dbench");
}

#[test]
fn failed_iterations_are_counted_not_imputed() {
    let half = RunBuilder::new("a")
        .build_run(|spot| (spot.iteration % 2 == 0).then_some(1.0 + f64::from(spot.iteration)));
    let all = RunBuilder::new("b").build_run(|spot| Some(1.0 + f64::from(spot.iteration)));
    let found = compare_runs(half, all);
    let row = only_row(&found);
    let counts = row.baseline.as_ref().map(|side| (side.n, side.failed));
    assert_eq!(counts, Some((5, 5)));
    assert!(row.flags.contains(&RowFlag::Failed) && has_diagnostic(&found, "failed-iterations"));
}

#[test]
fn a_side_without_a_value_is_an_error_that_says_why() {
    let (a, mut b) =
        (RunBuilder::new("a").build_run(|_| Some(1.0)), RunBuilder::new("b").build_run(|_| None));
    // Stopped before its first iteration ended: there is neither a value nor a failure.
    b.iterations.clear();
    let error =
        compare_sides(&make_side("A", vec![a]), &[make_side("B", vec![b])], &AnalysisOptions::default())
            .unwrap_err();
    let AnalyzeError::NoSamples { side, known, .. } = error else { panic!("{error}") };
    assert_eq!((side.as_str(), known), ("B", vec!["sweep time".to_owned()]));
}

#[test]
fn blocks_of_one_run_are_paired_and_see_through_drift() {
    let lab = RunBuilder::new("r").with(|lab| lab.factors = vec![("pages", vec!["small", "huge"])]);
    let mut noise = SplitMixNoise(9);
    let run = lab.build_run(|spot| {
        let drift = 1.0 + 0.1 * f64::from(spot.iteration);
        let level = if spot.level("pages") == "huge" { 0.95 } else { 1.0 };
        Some(noise.lognormal_around(10.0 * drift * level, 0.003))
    });
    let found =
        compare_levels(&make_side("r", vec![run.clone()]), "pages", &AnalysisOptions::default()).unwrap();
    let row = only_row(&found);
    assert_eq!(row.verdict, Verdict::Better);
    assert!(row.method.unwrap().paired && row.flags.contains(&RowFlag::Drift));
    assert!((row.change.unwrap().value + 0.05).abs() < 0.005);

    let mut sequential = run;
    sequential.manifest.plan.order = "sequential".into();
    let found =
        compare_levels(&make_side("r", vec![sequential]), "pages", &AnalysisOptions::default()).unwrap();
    assert!(
        !only_row(&found).method.unwrap().paired && only_row(&found).flags.contains(&RowFlag::Sequential)
    );
    assert!(has_diagnostic(&found, "sequential-order"));
}

#[test]
fn a_lost_iteration_loses_its_pair_only() {
    let lab = RunBuilder::new("r").with(|lab| lab.factors = vec![("pages", vec!["small", "huge"])]);
    let run = lab.build_run(|spot| {
        let lost = spot.iteration == 3 && spot.level("pages") == "huge";
        (!lost).then(|| 10.0 + f64::from(spot.iteration))
    });
    let found = compare_levels(&make_side("r", vec![run]), "pages", &AnalysisOptions::default()).unwrap();
    let method = only_row(&found).method.unwrap();
    assert_eq!((method.paired, method.baseline, method.candidate), (true, 9, 9));
}

#[test]
fn all_other_factors_stay_apart() {
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"]), ("threads", vec!["1", "2"])];
    });
    let run = lab.build_run(|spot| Some(10.0 + f64::from(spot.iteration) / 100.0));
    let found = compare_levels(&make_side("r", vec![run]), "pages", &AnalysisOptions::default()).unwrap();
    let subjects: Vec<&str> = found.rows.iter().map(|row| row.subject.as_str()).collect();
    assert_eq!(subjects, ["sweep threads=1", "sweep threads=2"]);
    assert_eq!(
        (found.baseline.as_str(), found.candidates.as_slice()),
        ("small", ["huge".to_owned()].as_slice())
    );
}

#[test]
fn unknown_factors_and_lone_levels_are_named() {
    let lab = RunBuilder::new("r").with(|lab| lab.factors = vec![("pages", vec!["small"])]);
    let run = make_side("r", vec![lab.build_run(|_| Some(1.0))]);
    let by = |factor| compare_levels(&run, factor, &AnalysisOptions::default()).unwrap_err().to_string();
    assert_eq!(by("page"), "no factor `page` in `r`: it has pages");
    assert_eq!(
        by("pages"),
        "factor `pages` has only the level `small` in `r`: compare this run with another one"
    );
}

#[test]
fn one_boot_a_side_differs_and_is_never_worse() {
    let on = |id: &str, boot: &str, centre| {
        let mut run = noisy_run(id, centre, primary_metric("time", "s", Direction::Lower));
        run.manifest.boot_id = boot.into();
        run
    };
    let found = compare_runs(on("a", "x", 10.0), on("b", "y", 20.0));
    let row = only_row(&found);
    assert_eq!((row.verdict, row.needed), (Verdict::Differs, None));
    assert!(row.flags.contains(&RowFlag::OneBoot) && has_diagnostic(&found, "one-boot"));
    assert!(row.change.unwrap().value > 0.9, "the numbers stand");
}

#[test]
fn several_boots_are_compared_by_their_medians() {
    let mut noise = SplitMixNoise(11);
    let mut lab = |id: &str, centre: f64| {
        let mut luck = Vec::new();
        let lab = RunBuilder::new(id).with(|lab| {
            lab.boots = 6;
            lab.boot_id = id.into();
        });
        lab.build_run(|spot| {
            if luck.len() <= spot.boot as usize {
                luck.push(noise.lognormal_around(1.0, 0.01));
            }
            Some(noise.lognormal_around(centre * luck[spot.boot as usize], 0.01))
        })
    };
    let found = compare_runs(lab("a", 10.0), lab("b", 12.0));
    let row = only_row(&found);
    let method = row.method.unwrap();
    assert_eq!((method.level, method.baseline, method.candidate), (RepetitionLevel::Boot, 6, 6));
    assert_eq!(row.verdict, Verdict::Worse);
    assert_eq!(row.baseline.as_ref().map(|side| (side.n, side.boots)), Some((60, 6)));
}

/// The run, so many seconds later.
fn start_later(mut run: RunRecord, seconds: u64) -> RunRecord {
    run.manifest.anchor.realtime.0 += seconds * 1_000_000_000;
    run
}

#[test]
fn runs_of_one_boot_are_warned_about_as_not_interleaved() {
    let metric = || primary_metric("time", "s", Direction::Lower);
    let found =
        compare_runs(noisy_run("a", 10.0, metric()), start_later(noisy_run("b", 12.0, metric()), 3600));
    assert!(
        has_diagnostic(&found, "not-interleaved") && only_row(&found).flags.contains(&RowFlag::Sequential)
    );
    assert_eq!(only_row(&found).verdict, Verdict::Differs);
}

#[test]
fn runs_taken_in_turns_are_not_one_after_the_other() {
    let run = |id: &str, centre, seconds| {
        start_later(noisy_run(id, centre, primary_metric("time", "s", Direction::Lower)), seconds)
    };
    let baseline = make_side("A", vec![run("a", 10.0, 0), run("c", 10.0, 7200)]);
    let candidate = make_side("B", vec![run("b", 12.0, 3600), run("d", 12.0, 10_800)]);
    let found = compare_sides(&baseline, &[candidate], &AnalysisOptions::default()).unwrap();
    assert!(!has_diagnostic(&found, "not-interleaved"));
    assert_eq!(only_row(&found).baseline.as_ref().map(|side| (side.n, side.boots)), Some((20, 1)));
}

#[test]
fn a_factor_with_one_level_a_side_is_what_is_compared() {
    let on = |id: &str, kernel| RunBuilder::new(id).with(|lab| lab.factors = vec![("kernel", vec![kernel])]);
    let found =
        compare_runs(on("a", "6.1").build_run(|_| Some(1.0)), on("b", "6.18").build_run(|_| Some(1.0)));
    assert_eq!(only_row(&found).subject, "sweep");
    let level = |side: &str, level: &str| (side.to_owned(), Some(level.to_owned()));
    let compared = MethodDescription::ComparedFactor {
        factor: "kernel".into(),
        levels: vec![level("A", "6.1"), level("B", "6.18")],
    };
    assert!(found.notes.contains(&compared), "{:?}", found.notes);
}

#[test]
fn facts_that_differ_are_ranked() {
    let with = |id: &str, release: &str| {
        let mut run = noisy_run(id, 1.0, primary_metric("time", "s", Direction::Lower));
        run.manifest.facts.add(fact_table::DISK_MODEL.key("vda"), release, "sysfs");
        run.manifest.facts.add(fact_table::THP_ENABLED, release, "sysfs");
        run.manifest.facts.add(fact_table::KERNEL_RELEASE, release, "uname");
        run
    };
    let found = compare_runs(with("a", "1"), with("b", "2"));
    let keys: Vec<&str> = found.facts.iter().map(|fact| fact.key.as_str()).collect();
    assert_eq!(keys, ["kernel.release", "thp.enabled", "disk.vda.model"]);
    assert!(only_row(&found).flags.contains(&RowFlag::Environment));
    let environment = ComparisonDiagnostic::DifferentEnvironment {
        baseline: "A".into(),
        candidate: "B".into(),
        facts: 3,
        important: 3,
        first: ["kernel.release: 1 -> 2", "thp.enabled: 1 -> 2", "disk.vda.model: 1 -> 2"]
            .map(String::from)
            .into(),
    };
    assert!(found.warnings.contains(&environment), "{:?}", found.warnings);
}

#[test]
fn parameters_that_differ_are_named() {
    let with = |id: &str, size: i64| {
        let mut run = noisy_run(id, 1.0, primary_metric("time", "s", Direction::Lower));
        run.manifest.plan.cases[0].parameters.insert("size".into(), size.into());
        run.manifest.study.run.seed = Some(size.unsigned_abs());
        run
    };
    let found = compare_runs(with("a", 64), with("b", 128));
    let differences = found.warnings.iter().find_map(|warning| match warning {
        ComparisonDiagnostic::DifferentCase { differences, .. } => Some(differences.clone()),
        _ => None,
    });
    // A seed that was drawn differs in every pair of runs.
    assert_eq!(differences.unwrap(), ["sweep: size: 64 -> 128"]);
}

#[test]
fn outliers_modes_and_interruptions_are_warned_about() {
    let mut run = RunBuilder::new("a").with(|lab| lab.iterations = 20).build_run(|spot| {
        let wobble = f64::from(spot.iteration * 7 % 10) / 100.0;
        Some(if spot.iteration == 13 { 50.0 } else { 10.0 + wobble })
    });
    run.manifest.status = RunStatus::Interrupted;
    let split = RunBuilder::new("b").with(|lab| lab.iterations = 20).build_run(|spot| {
        let wobble = f64::from(spot.iteration * 7 % 10) / 100.0;
        Some(if spot.iteration * 3 % 4 < 2 { 12.0 } else { 10.0 } + wobble)
    });
    let found = compare_runs(run, split);
    let outliers = found.warnings.iter().find_map(|warning| match warning {
        ComparisonDiagnostic::Outliers { place, iterations } => {
            Some((place.side.as_str(), place.subject.as_str(), place.metric.as_str(), &iterations[..]))
        }
        _ => None,
    });
    assert_eq!(outliers, Some(("A", "sweep", "time", &[13][..])));
    assert!(has_diagnostic(&found, "modes") && has_diagnostic(&found, "not-finished"));
}

#[test]
fn too_few_iterations_have_no_interval() {
    let few = |id: &str, step: f64| {
        RunBuilder::new(id)
            .with(|lab| lab.iterations = 2)
            .build_run(move |spot| Some(10.0 + step * f64::from(spot.iteration)))
    };
    let found = compare_runs(few("a", 1.0), few("b", 1.5));
    let row = only_row(&found);
    assert!(row.change.unwrap().interval.is_none() && row.flags.contains(&RowFlag::Few));
    assert_eq!((row.verdict, has_diagnostic(&found, "too-few")), (Verdict::Unclear, true));
}

#[test]
fn swapping_the_sides_swaps_the_verdict() {
    let metric = || primary_metric("time", "s", Direction::Lower);
    let (a, b) = (noisy_run("a", 10.0, metric()), noisy_run("b", 12.0, metric()));
    let (there, back) = (compare_runs(a.clone(), b.clone()), compare_runs(b, a));
    let way = |found: &Comparison| (only_row(found).verdict, only_row(found).is_good_change());
    assert_eq!((way(&there), way(&back)), ((Verdict::Differs, Some(false)), (Verdict::Differs, Some(true))));
    let product =
        (1.0 + only_row(&there).change.unwrap().value) * (1.0 + only_row(&back).change.unwrap().value);
    assert!((product - 1.0).abs() < 1e-12);
}

#[test]
fn rubbish_values_are_left_out_and_counted() {
    let run = |id: &str| {
        RunBuilder::new(id).build_run(|spot| Some(if spot.iteration == 0 { f64::NAN } else { 1.0 }))
    };
    let found = compare_runs(run("a"), run("b"));
    assert_eq!(only_row(&found).baseline.as_ref().map(|side| side.n), Some(9));
    assert!(has_diagnostic(&found, "not-numbers"));
}

#[test]
fn three_sides_make_a_row_each() {
    let run = |id: &str, centre| noisy_run(id, centre, primary_metric("time", "s", Direction::Lower));
    let others = [make_side("B", vec![run("b", 12.0)]), make_side("C", vec![run("c", 8.0)])];
    let found =
        compare_sides(&make_side("A", vec![run("a", 10.0)]), &others, &AnalysisOptions::default()).unwrap();
    let words: Vec<(&str, &str)> =
        found.rows.iter().map(|row| (row.candidate_name.as_str(), row.verdict_word())).collect();
    assert_eq!(words, [("B", "differs"), ("C", "differs")]);
}

#[test]
fn a_comparison_is_json_with_a_version() {
    let found = compare_runs(
        RunBuilder::new("a").build_run(|_| Some(1.0)),
        start_later(RunBuilder::new("b").build_run(|_| Some(1.0)), 60),
    );
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["format"], 1);
    assert_eq!(json["rows"][0]["verdict"], "same-here");
    assert_eq!(json["rows"][0]["baseline"]["values"][9]["iteration"], 9);
    assert_eq!(found.warnings[0].kind(), "not-interleaved");
}

#[test]
fn few_boots_ask_for_boots_not_iterations() {
    let run = |id: &str| {
        let lab = RunBuilder::new(id).with(|lab| {
            lab.boots = 2;
            lab.boot_id = id.into();
        });
        lab.build_run(|spot| Some(10.0 + f64::from(spot.iteration)))
    };
    let found = compare_runs(run("a"), run("b"));
    assert_eq!(
        (only_row(&found).verdict, only_row(&found).flags.contains(&RowFlag::Few)),
        (Verdict::Unclear, true)
    );
    let few = found.warnings.iter().find(|w| w.kind() == "too-few-boots").unwrap();
    assert!(matches!(
        few,
        ComparisonDiagnostic::TooFew { baseline: 2, candidate: 2, level: RepetitionLevel::Boot, .. }
    ));
}

/// Runs of so many boots whose luck is 1 %, around a centre.
fn run_of_boots(seed: u64, count: u32, centre: f64) -> RunRecord {
    let mut noise = SplitMixNoise(seed);
    let luck: Vec<f64> = (0..count).map(|_| noise.lognormal_around(centre, 0.01)).collect();
    let lab = RunBuilder::new(&format!("01JD{seed}")).with(|lab| {
        lab.boots = count;
        lab.boot_id = format!("boot-{seed}");
    });
    lab.build_run(|spot| Some(noise.lognormal_around(luck[spot.boot as usize], 0.01)))
}

#[test]
fn two_or_three_boots_are_compared_by_their_means() {
    let found = compare_runs(run_of_boots(1, 3, 1.0), run_of_boots(2, 3, 1.2));
    let row = only_row(&found);
    assert_eq!((row.verdict, row.method.unwrap().by_means), (Verdict::Worse, true));
    let interval = row.change.unwrap().interval.unwrap();
    assert!(interval.low > 0.1 && interval.high < 0.3, "{interval:?}");
    assert!(found.notes.contains(&MethodDescription::BootMeans), "{:?}", found.notes);
    assert!(
        !only_row(&compare_runs(run_of_boots(3, 4, 1.0), run_of_boots(4, 4, 1.2))).method.unwrap().by_means
    );
}

#[test]
fn few_boots_alarm_no_more_often_than_promised() {
    for count in [2, 3] {
        let alarm = |seed: u64| {
            let found =
                compare_runs(run_of_boots(seed * 2, count, 1.0), run_of_boots(seed * 2 + 1, count, 1.0));
            matches!(only_row(&found).verdict, Verdict::Better | Verdict::Worse)
        };
        let alarms = (1..=300).filter(|seed| alarm(*seed)).count();
        assert!(alarms <= 21, "{alarms} of 300 with {count} boots");
    }
}

/// Iterations that hold several values each count once: values of one iteration share its luck.
#[test]
fn values_of_one_iteration_are_one() {
    let run = |id: &str| {
        let mut run = noisy_run(id, 10.0, primary_metric("time", "s", Direction::Lower));
        let again = run.samples.clone();
        run.samples.extend(again.iter().cloned());
        run.samples.extend(again);
        run.manifest.boot_id = "one".into();
        run.manifest.plan.order = "sequential".into();
        run
    };
    let found = compare_runs(run("a"), run("b"));
    assert_eq!(only_row(&found).method.map(|method| (method.baseline, method.candidate)), Some((10, 10)));
    assert_eq!(only_row(&found).baseline.as_ref().map(|side| side.n), Some(30));
}

#[test]
fn values_beyond_arithmetic_cost_their_row_only() {
    let run = |id: &str, sign: f64| {
        let metrics = vec![
            primary_metric("time", "s", Direction::Lower),
            primary_metric("huge", "1", Direction::Lower),
        ];
        let lab = RunBuilder::new(id).with(|lab| lab.metrics = metrics);
        lab.build_run(move |spot| Some(if spot.metric == "huge" { sign * f64::MAX } else { 1.0 }))
    };
    let found = compare_runs(run("a", -1.0), run("b", 1.0));
    assert_eq!((found.rows[0].verdict_word(), found.rows[1].verdict_word()), ("same here", "unclear"));
    assert!(has_diagnostic(&found, "not-computed") && found.rows[1].change.is_none());
}

#[test]
fn gaps_of_monitors_are_named_with_their_reason() {
    let mut run = RunBuilder::new("a").build_run(|_| Some(1.0));
    let reason = "/proc/schedstat: no such file or directory".to_owned();
    run.gaps.push(perflab_model::series::SeriesGap {
        monitor: "schedstat".into(),
        from: perflab_model::Nanos(0),
        to: None,
        reason,
    });
    let lacking = |id: &str| {
        let mut other = RunBuilder::new(id).build_run(|_| Some(1.0));
        other.gaps.clone_from(&run.gaps);
        other
    };
    let both = compare_runs(lacking("c"), lacking("d"));
    assert!(only_row(&both).flags.iter().all(|flag| *flag != RowFlag::Gaps), "both machines lack it");
    let mut late = lacking("e");
    late.gaps[0].from = perflab_model::Nanos(u64::MAX);
    assert!(
        only_row(&compare_runs(lacking("c"), late)).flags.contains(&RowFlag::Gaps),
        "one of them lost it"
    );
    let found = compare_runs(run, RunBuilder::new("b").build_run(|_| Some(1.0)));
    let gaps = ComparisonDiagnostic::MonitorGaps {
        side: "A".into(),
        run: "a".into(),
        monitors: vec!["schedstat: /proc/schedstat: no such file or directory".into()],
    };
    assert!(found.warnings.contains(&gaps), "{:?}", found.warnings);
    assert!(only_row(&found).flags.contains(&RowFlag::Gaps));
}

#[test]
fn thousands_of_iterations_are_compared_in_batches() {
    let long = |id: &str, centre: f64| {
        let mut noise = SplitMixNoise(centre.to_bits());
        let lab = RunBuilder::new(id).with(|lab| lab.iterations = 5_000);
        lab.build_run(move |_| Some(noise.lognormal_around(centre, 0.1)))
    };
    let found = compare_runs(long("a", 10.0), long("b", 10.8));
    let method = only_row(&found).method.unwrap();
    assert_eq!((method.baseline, method.candidate, only_row(&found).verdict), (200, 200, Verdict::Differs));
    assert_eq!(only_row(&found).baseline.as_ref().map(|side| side.n), Some(5_000));
}

#[test]
fn another_unit_of_the_numbers_changes_no_verdict() {
    let run = |id: &str, centre: f64, scale: f64| {
        let mut noise = SplitMixNoise(centre.to_bits());
        RunBuilder::new(id).build_run(move |_| Some(scale * noise.lognormal_around(centre, 0.05)))
    };
    let (small, large) = (
        compare_runs(run("a", 10.0, 1.0), run("b", 10.5, 1.0)),
        compare_runs(run("a", 10.0, 1e9), run("b", 10.5, 1e9)),
    );
    let (a, b) = (only_row(&small), only_row(&large));
    assert_eq!((a.verdict, a.needed), (b.verdict, b.needed));
    assert!((a.p.unwrap() - b.p.unwrap()).abs() < 1e-9);
    assert!((a.change.unwrap().value - b.change.unwrap().value).abs() < 1e-9);
}

#[test]
fn filters_choose_metrics_and_workloads() {
    let run = |id: &str| {
        let metrics = vec![
            primary_metric("time", "s", Direction::Lower),
            primary_metric("rate", "1/s", Direction::Higher),
        ];
        let lab = RunBuilder::new(id).with(|lab| {
            lab.workloads = vec!["sweep", "fio"];
            lab.metrics = metrics;
        });
        make_side(id, vec![lab.build_run(|_| Some(1.0))])
    };
    let options = AnalysisOptions {
        metrics: vec!["rate".into()],
        workloads: vec!["fio".into()],
        ..AnalysisOptions::default()
    };
    let found = compare_sides(&run("a"), &[run("b")], &options).unwrap();
    assert_eq!((only_row(&found).subject.as_str(), only_row(&found).metric.as_str()), ("fio", "rate"));
    let options = AnalysisOptions { metrics: vec!["speed".into()], ..AnalysisOptions::default() };
    let error = compare_sides(&run("a"), &[run("b")], &options).unwrap_err().to_string();
    assert_eq!(error, "`a` has no samples of speed: it has sweep time, sweep rate, fio time, fio rate");
}

#[test]
fn a_change_within_the_machines_own_noise_is_flagged_and_an_old_card_is_told() {
    use perflab_analyze::NoiseCard;
    use perflab_analyze::compare::noise_card::{NOISE_CARD_FORMAT, NoiseRow};
    let mut noise = SplitMixNoise(5);
    let lab = RunBuilder::new("01JDA").with(|lab| {
        lab.factors = vec![("x", vec!["a", "b"])];
        lab.iterations = 20;
    });
    let run = lab.build_run(|spot| {
        Some(noise.lognormal_around(if spot.level("x") == "b" { 1.05 } else { 1.0 }, 0.002))
    });
    let row = |reach: f64| NoiseRow {
        subject: "sweep".into(),
        workload: "sweep".into(),
        metric: "time".into(),
        unit: perflab_model::Unit::new("s"),
        n: 20,
        noise: 0.002,
        change: 0.0,
        reach,
        detects: None,
        interleaved: None,
        in_turn: None,
        levels: None,
        duet: None,
    };
    let card = |reach: f64, made: u64| NoiseCard {
        format: NOISE_CARD_FORMAT,
        run: "01JDN".into(),
        made: Nanos(made),
        kernel: String::new(),
        cpu: String::new(),
        steal: None,
        context_switches: None,
        run_cost: None,
        rows: vec![row(reach)],
    };
    let began = run.manifest.anchor.realtime.0;
    let side = make_side("run", vec![run]);
    let with = |card| {
        let options = AnalysisOptions { noise: Some(card), ..AnalysisOptions::default() };
        compare_levels(&side, "x", &options).unwrap()
    };
    let found = with(card(0.06, began));
    assert_eq!(found.rows[0].verdict_word(), "worse");
    assert!(found.rows[0].flags.contains(&RowFlag::Noise));
    let quiet = with(card(0.001, began - 40 * 86_400_000_000_000));
    assert!(!quiet.rows[0].flags.contains(&RowFlag::Noise));
    let old = ComparisonDiagnostic::OldNoiseCard { doubts: vec![NoiseCardDoubt::Age { days: 40 }] };
    assert!(quiet.warnings.contains(&old), "{:?}", quiet.warnings);
}

/// A run of so many explanatory metrics over eight blocks of two levels.
fn side_of_counters(count: usize, value: impl Fn(&str, &str, u32) -> f64) -> ComparisonSide {
    let names: Vec<&'static str> = (0..count).map(|at| &*format!("m{at:03}").leak()).collect();
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"])];
        lab.iterations = 8;
        lab.metrics = names.iter().map(|name| explanatory_metric(name, "1", Direction::Neither)).collect();
    });
    make_side("r", vec![lab.build_run(|spot| Some(value(spot.metric, spot.level("pages"), spot.iteration)))])
}

/// A number that looks drawn, the same for the same arguments.
fn pseudo_random_value(metric: &str, level: &str, iteration: u32) -> f64 {
    let seed = metric
        .bytes()
        .chain(level.bytes())
        .fold(u64::from(iteration), |sum, byte| sum * 31 + u64::from(byte));
    SplitMixNoise(seed).lognormal_around(100.0, 0.05)
}

#[test]
fn more_rows_than_the_blocks_can_decide_are_said_to_be() {
    let found =
        compare_levels(&side_of_counters(100, pseudo_random_value), "pages", &AnalysisOptions::default())
            .unwrap();
    let rows =
        ComparisonDiagnostic::TooManyRows { rows: 100, repetitions: 8, needed: 12, noun: "blocks".into() };
    assert!(found.warnings.contains(&rows), "{:?}", found.warnings);
    let few = compare_levels(&side_of_counters(5, pseudo_random_value), "pages", &AnalysisOptions::default())
        .unwrap();
    assert!(!has_diagnostic(&few, "too-many-rows"));
}

#[test]
fn one_number_under_two_names_is_one_row_where_that_is_wanted() {
    let value = |metric: &str, level: &str, iteration: u32| match metric {
        "m000" | "m002" => pseudo_random_value("twin", level, iteration),
        "m001" => pseudo_random_value(metric, level, iteration),
        _ => 0.0,
    };
    let all = compare_levels(&side_of_counters(5, value), "pages", &AnalysisOptions::default()).unwrap();
    assert_eq!(all.rows.len(), 5);
    let options = AnalysisOptions { merge_twins: true, ..AnalysisOptions::default() };
    let found = compare_levels(&side_of_counters(5, value), "pages", &options).unwrap();
    let names: Vec<(&str, usize)> =
        found.rows.iter().map(|row| (row.metric.as_str(), row.twins.len())).collect();
    // What never moves is not one thing.
    assert_eq!(names, [("m000", 1), ("m001", 0), ("m003", 0), ("m004", 0)]);
    assert_eq!(found.rows[0].twins, ["m002"]);
}

/// Blocks drift far apart while the pairs in them do not: the medians say another change than the pairs.
#[test]
fn a_paired_change_that_the_medians_contradict_is_marked() {
    let base = [10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0, 1280.0];
    let ratio = [1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 1.0, 1.0];
    let value = |_: &str, level: &str, iteration: u32| {
        let at = iteration as usize;
        base[at] * if level == "huge" { ratio[at] } else { 1.0 }
    };
    let found = compare_levels(&side_of_counters(1, value), "pages", &AnalysisOptions::default()).unwrap();
    assert!(only_row(&found).flags.contains(&RowFlag::Paired), "{:?}", only_row(&found));
    let alike = |_: &str, level: &str, iteration: u32| {
        base[iteration as usize] * if level == "huge" { 0.9 } else { 1.0 }
    };
    let found = compare_levels(&side_of_counters(1, alike), "pages", &AnalysisOptions::default()).unwrap();
    assert!(!only_row(&found).flags.contains(&RowFlag::Paired));
}
