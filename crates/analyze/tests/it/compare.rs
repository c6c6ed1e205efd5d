//! `compare` on made-up runs: verdicts, directions, missing data, hierarchy.

use crate::build::{Lab, Noise, explanatory, primary};
use perflab_analyze::{
    AnalyzeError, Comparison, Flag, Level, Options, Row, Scale, Side, Verdict, Warning, compare,
    compare_by_factor,
};
use perflab_model::{Direction, Nanos, RunRecord, Status};

fn side(name: &str, runs: Vec<RunRecord>) -> Side {
    Side { name: name.into(), runs }
}

fn against(baseline: RunRecord, candidate: RunRecord) -> Comparison {
    compare(&side("A", vec![baseline]), &[side("B", vec![candidate])], &Options::default()).unwrap()
}

fn only(comparison: &Comparison) -> &Row {
    assert_eq!(comparison.rows.len(), 1);
    &comparison.rows[0]
}

fn has(comparison: &Comparison, kind: &str) -> bool {
    comparison.warnings.iter().any(|warning| warning.kind() == kind)
}

/// A run of one case whose values lie around `centre` by 1 %.
fn noisy(id: &str, centre: f64, metric: crate::build::Measured) -> RunRecord {
    let mut noise = Noise(id.bytes().map(u64::from).sum());
    Lab::new(id).with(|lab| lab.metrics = vec![metric]).run(|_| Some(noise.around(centre, 0.01)))
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
        let metric = primary("m", "1", direction);
        let found = against(noisy("a", 10.0, metric.clone()), noisy("b", centre, metric));
        assert_eq!(only(&found).verdict, verdict, "{direction} {centre}");
    }
}

#[test]
fn without_a_direction_a_clear_change_is_flagged_not_judged() {
    let metric = explanatory("faults", "1", Direction::Neither);
    let found = against(noisy("a", 10.0, metric.clone()), noisy("b", 12.0, metric));
    let row = only(&found);
    assert_eq!((row.verdict, row.word()), (Verdict::Unclear, "changed"));
    assert!(row.flags.contains(&Flag::Changed));
}

#[test]
fn inside_the_margin_is_the_same_even_when_significant() {
    let metric = primary("time", "s", Direction::Lower);
    let mut noise = Noise(5);
    let lab = Lab::new("r").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"])];
        lab.iterations = 30;
        lab.metrics = vec![metric];
    });
    let run =
        lab.run(|spot| Some(noise.around(if spot.level("pages") == "huge" { 10.1 } else { 10.0 }, 0.002)));
    let found = compare_by_factor(&side("r", vec![run]), "pages", &Options::default()).unwrap();
    let row = only(&found);
    assert_eq!(row.verdict, Verdict::Same);
    assert!(row.q.unwrap() < 0.001 && row.change.unwrap().interval.unwrap().low > 0.0);
}

#[test]
fn the_margin_of_the_study_beats_the_default() {
    let with_margin = |id: &str, centre| {
        let mut run = noisy(id, centre, primary("time", "s", Direction::Lower));
        run.manifest.plan.margins.insert("time".into(), 0.5);
        run
    };
    let found = against(with_margin("a", 10.0), with_margin("b", 12.0));
    assert_eq!((only(&found).margin, only(&found).verdict), (0.5, Verdict::Same));
}

#[test]
fn noise_is_unclear_and_says_how_many_would_decide() {
    let wild = |id: &str, seed| {
        let mut noise = Noise(seed);
        Lab::new(id).run(move |_| Some(noise.around(10.0, 0.2)))
    };
    let found = against(wild("a", 1), wild("b", 2));
    let row = only(&found);
    assert_eq!(row.verdict, Verdict::Unclear);
    assert!(row.needed.unwrap() >= 15, "{:?}", row.needed);
}

#[test]
fn equal_constants_are_the_same_and_unequal_ones_differ() {
    let constant = |id: &str, value| Lab::new(id).run(move |_| Some(value));
    let same = against(constant("a", 7.0), constant("b", 7.0));
    assert_eq!(only(&same).verdict, Verdict::Same);
    assert_eq!(only(&same).change.unwrap().value, 0.0);
    let zero = against(constant("a", 0.0), constant("b", 0.0));
    assert_eq!((only(&zero).verdict, only(&zero).change.unwrap().scale), (Verdict::Same, Scale::Absolute));
    let worse = against(constant("a", 7.0), constant("b", 8.0));
    assert_eq!(only(&worse).verdict, Verdict::Worse);
}

#[test]
fn zeros_and_negatives_are_compared_by_difference() {
    let mut noise = Noise(3);
    let mut run = |id: &str, centre: f64| Lab::new(id).run(|_| Some(centre + noise.normal()));
    let found = against(run("a", 0.0), run("b", 10.0));
    let change = only(&found).change.unwrap();
    assert_eq!((change.scale, only(&found).verdict), (Scale::Absolute, Verdict::Worse));
    assert!((change.value - 10.0).abs() < 2.0);
}

#[test]
fn what_one_side_lacks_is_a_row_without_a_number() {
    let both = |id: &str, second| {
        let metrics = vec![primary("time", "s", Direction::Lower), primary(second, "s", Direction::Lower)];
        Lab::new(id).with(|lab| lab.metrics = metrics).run(|_| Some(1.0))
    };
    let found = against(both("a", "left"), both("b", "right"));
    let row = |name: &str| found.rows.iter().find(|row| row.metric == name).unwrap();
    assert!(row("left").candidate.is_none() && row("left").change.is_none() && row("left").q.is_none());
    assert!(row("right").baseline.is_none());
    assert_eq!(row("left").word(), "missing");
    assert_eq!(found.warnings.iter().filter(|w| w.kind() == "one-sided").count(), 2);
}

#[test]
fn another_unit_is_another_metric() {
    let error = compare(
        &side("A", vec![noisy("a", 1.0, primary("time", "s", Direction::Lower))]),
        &[side("B", vec![noisy("b", 1.0, primary("time", "ms", Direction::Lower))])],
        &Options::default(),
    );
    let text = error.unwrap_err().to_string();
    assert_eq!(text, "`A` and `B` have no metric in common: `A` has time [s]; `B` has time [ms]");
}

#[test]
fn no_common_case_names_what_each_has() {
    let run = |id: &str, workload| Lab::new(id).with(|lab| lab.workloads = vec![workload]).run(|_| Some(1.0));
    let (ours, theirs) = (side("A", vec![run("a", "fio")]), side("B", vec![run("b", "dbench")]));
    let error = compare(&ours, &[theirs], &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "`A` and `B` have no case in common: `A` has fio; `B` has dbench");
}

#[test]
fn failed_iterations_are_counted_not_imputed() {
    let half = Lab::new("a").run(|spot| (spot.iteration % 2 == 0).then_some(1.0 + f64::from(spot.iteration)));
    let all = Lab::new("b").run(|spot| Some(1.0 + f64::from(spot.iteration)));
    let found = against(half, all);
    let row = only(&found);
    let counts = row.baseline.as_ref().map(|side| (side.n, side.failed));
    assert_eq!(counts, Some((5, 5)));
    assert!(row.flags.contains(&Flag::Failed) && has(&found, "failed-iterations"));
}

#[test]
fn a_side_without_a_value_is_an_error_that_says_why() {
    let (a, b) = (Lab::new("a").run(|_| Some(1.0)), Lab::new("b").run(|_| None));
    let error = compare(&side("A", vec![a]), &[side("B", vec![b])], &Options::default()).unwrap_err();
    assert!(matches!(error, AnalyzeError::NoSamples { .. }));
    assert!(error.to_string().starts_with("`B` has no samples: its iterations failed"), "{error}");
}

#[test]
fn blocks_of_one_run_are_paired_and_see_through_drift() {
    let lab = Lab::new("r").with(|lab| lab.factors = vec![("pages", vec!["small", "huge"])]);
    let mut noise = Noise(9);
    let run = lab.run(|spot| {
        let drift = 1.0 + 0.1 * f64::from(spot.iteration);
        let level = if spot.level("pages") == "huge" { 0.95 } else { 1.0 };
        Some(noise.around(10.0 * drift * level, 0.003))
    });
    let found = compare_by_factor(&side("r", vec![run.clone()]), "pages", &Options::default()).unwrap();
    let row = only(&found);
    assert_eq!(row.verdict, Verdict::Better);
    assert!(row.method.unwrap().paired && row.flags.contains(&Flag::Drift));
    assert!((row.change.unwrap().value + 0.05).abs() < 0.005);

    let mut sequential = run;
    sequential.manifest.plan.order = "sequential".into();
    let found = compare_by_factor(&side("r", vec![sequential]), "pages", &Options::default()).unwrap();
    assert!(!only(&found).method.unwrap().paired && only(&found).flags.contains(&Flag::Sequential));
    assert!(has(&found, "sequential-order"));
}

#[test]
fn a_lost_iteration_loses_its_pair_only() {
    let lab = Lab::new("r").with(|lab| lab.factors = vec![("pages", vec!["small", "huge"])]);
    let run = lab.run(|spot| {
        let lost = spot.iteration == 3 && spot.level("pages") == "huge";
        (!lost).then(|| 10.0 + f64::from(spot.iteration))
    });
    let found = compare_by_factor(&side("r", vec![run]), "pages", &Options::default()).unwrap();
    let method = only(&found).method.unwrap();
    assert_eq!((method.paired, method.baseline, method.candidate), (true, 9, 9));
}

#[test]
fn all_other_factors_stay_apart() {
    let lab = Lab::new("r").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"]), ("threads", vec!["1", "2"])];
    });
    let run = lab.run(|spot| Some(10.0 + f64::from(spot.iteration) / 100.0));
    let found = compare_by_factor(&side("r", vec![run]), "pages", &Options::default()).unwrap();
    let subjects: Vec<&str> = found.rows.iter().map(|row| row.subject.as_str()).collect();
    assert_eq!(subjects, ["sweep threads=1", "sweep threads=2"]);
    assert_eq!(
        (found.baseline.as_str(), found.candidates.as_slice()),
        ("small", ["huge".to_owned()].as_slice())
    );
}

#[test]
fn unknown_factors_and_lone_levels_are_named() {
    let lab = Lab::new("r").with(|lab| lab.factors = vec![("pages", vec!["small"])]);
    let run = side("r", vec![lab.run(|_| Some(1.0))]);
    let by = |factor| compare_by_factor(&run, factor, &Options::default()).unwrap_err().to_string();
    assert_eq!(by("page"), "no factor `page` in `r`: it has pages");
    assert_eq!(
        by("pages"),
        "factor `pages` has only the level `small` in `r`: compare this run with another one"
    );
}

#[test]
fn one_boot_a_side_never_gets_a_verdict() {
    let on = |id: &str, boot: &str, centre| {
        let mut run = noisy(id, centre, primary("time", "s", Direction::Lower));
        run.manifest.boot_id = boot.into();
        run
    };
    let found = against(on("a", "x", 10.0), on("b", "y", 20.0));
    let row = only(&found);
    assert_eq!((row.verdict, row.needed), (Verdict::Unclear, None));
    assert!(row.flags.contains(&Flag::OneBoot) && has(&found, "one-boot"));
    assert!(row.change.unwrap().value > 0.9, "the numbers stand");
}

#[test]
fn several_boots_are_compared_by_their_medians() {
    let mut noise = Noise(11);
    let mut lab = |id: &str, centre: f64| {
        let mut luck = Vec::new();
        let lab = Lab::new(id).with(|lab| {
            lab.boots = 6;
            lab.boot_id = id.into();
        });
        lab.run(|spot| {
            if luck.len() <= spot.boot as usize {
                luck.push(noise.around(1.0, 0.01));
            }
            Some(noise.around(centre * luck[spot.boot as usize], 0.01))
        })
    };
    let found = against(lab("a", 10.0), lab("b", 12.0));
    let row = only(&found);
    let method = row.method.unwrap();
    assert_eq!((method.level, method.baseline, method.candidate), (Level::Boot, 6, 6));
    assert_eq!(row.verdict, Verdict::Worse);
    assert_eq!(row.baseline.as_ref().map(|side| (side.n, side.boots)), Some((60, 6)));
}

/// The run, so many seconds later.
fn later(mut run: RunRecord, seconds: u64) -> RunRecord {
    run.manifest.anchor.realtime.0 += seconds * 1_000_000_000;
    run
}

#[test]
fn runs_of_one_boot_are_warned_about_as_not_interleaved() {
    let metric = || primary("time", "s", Direction::Lower);
    let found = against(noisy("a", 10.0, metric()), later(noisy("b", 12.0, metric()), 3600));
    assert!(has(&found, "not-interleaved") && only(&found).flags.contains(&Flag::Sequential));
    assert_eq!(only(&found).verdict, Verdict::Worse);
}

#[test]
fn runs_taken_in_turns_are_not_one_after_the_other() {
    let run =
        |id: &str, centre, seconds| later(noisy(id, centre, primary("time", "s", Direction::Lower)), seconds);
    let baseline = side("A", vec![run("a", 10.0, 0), run("c", 10.0, 7200)]);
    let candidate = side("B", vec![run("b", 12.0, 3600), run("d", 12.0, 10_800)]);
    let found = compare(&baseline, &[candidate], &Options::default()).unwrap();
    assert!(!has(&found, "not-interleaved"));
    assert_eq!(only(&found).baseline.as_ref().map(|side| (side.n, side.boots)), Some((20, 1)));
}

#[test]
fn a_factor_with_one_level_a_side_is_what_is_compared() {
    let on = |id: &str, kernel| Lab::new(id).with(|lab| lab.factors = vec![("kernel", vec![kernel])]);
    let found = against(on("a", "6.1").run(|_| Some(1.0)), on("b", "6.18").run(|_| Some(1.0)));
    assert_eq!(only(&found).subject, "sweep");
    assert!(
        found.notes.contains(&"compared across kernel: 6.1 on A, 6.18 on B".to_owned()),
        "{:?}",
        found.notes
    );
}

#[test]
fn facts_that_differ_are_ranked() {
    let with = |id: &str, release: &str| {
        let mut run = noisy(id, 1.0, primary("time", "s", Direction::Lower));
        run.manifest.facts.add("disk.model", release, "sysfs");
        run.manifest.facts.add("thp.enabled", release, "sysfs");
        run.manifest.facts.add("kernel.release", release, "uname");
        run
    };
    let found = against(with("a", "1"), with("b", "2"));
    let keys: Vec<&str> = found.facts.iter().map(|fact| fact.key.as_str()).collect();
    assert_eq!(keys, ["kernel.release", "thp.enabled", "disk.model"]);
    assert!(only(&found).flags.contains(&Flag::Environment));
    let text = found.warnings.iter().find(|w| w.kind() == "different-environment").unwrap().detail();
    assert_eq!(text, "B: kernel.release: 1 -> 2; thp.enabled: 1 -> 2; disk.model: 1 -> 2");
}

#[test]
fn parameters_that_differ_are_named() {
    let with = |id: &str, size: i64| {
        let mut run = noisy(id, 1.0, primary("time", "s", Direction::Lower));
        run.manifest.plan.cases[0].parameters.insert("size".into(), size.into());
        run.manifest.study.run.seed = Some(size.unsigned_abs());
        run
    };
    let found = against(with("a", 64), with("b", 128));
    let differences = found.warnings.iter().find_map(|warning| match warning {
        Warning::DifferentCase { differences, .. } => Some(differences.clone()),
        _ => None,
    });
    // A seed that was drawn differs in every pair of runs.
    assert_eq!(differences.unwrap(), ["sweep: size: 64 -> 128"]);
}

#[test]
fn outliers_modes_and_interruptions_are_warned_about() {
    let mut run = Lab::new("a").with(|lab| lab.iterations = 20).run(|spot| {
        let wobble = f64::from(spot.iteration * 7 % 10) / 100.0;
        Some(if spot.iteration == 13 { 50.0 } else { 10.0 + wobble })
    });
    run.manifest.status = Status::Interrupted;
    let split = Lab::new("b").with(|lab| lab.iterations = 20).run(|spot| {
        let wobble = f64::from(spot.iteration * 7 % 10) / 100.0;
        Some(if spot.iteration * 3 % 4 < 2 { 12.0 } else { 10.0 } + wobble)
    });
    let found = against(run, split);
    let outliers = found.warnings.iter().find(|w| w.kind() == "outliers").unwrap();
    assert_eq!(outliers.detail(), "sweep, time (A): iteration 13");
    assert!(has(&found, "modes") && has(&found, "not-finished"));
}

#[test]
fn too_few_iterations_have_no_interval() {
    let few = |id: &str, step: f64| {
        Lab::new(id)
            .with(|lab| lab.iterations = 2)
            .run(move |spot| Some(10.0 + step * f64::from(spot.iteration)))
    };
    let found = against(few("a", 1.0), few("b", 1.5));
    let row = only(&found);
    assert!(row.change.unwrap().interval.is_none() && row.flags.contains(&Flag::Few));
    assert_eq!((row.verdict, has(&found, "too-few")), (Verdict::Unclear, true));
}

#[test]
fn swapping_the_sides_swaps_the_verdict() {
    let metric = || primary("time", "s", Direction::Lower);
    let (a, b) = (noisy("a", 10.0, metric()), noisy("b", 12.0, metric()));
    let (there, back) = (against(a.clone(), b.clone()), against(b, a));
    assert_eq!((only(&there).verdict, only(&back).verdict), (Verdict::Worse, Verdict::Better));
    let product = (1.0 + only(&there).change.unwrap().value) * (1.0 + only(&back).change.unwrap().value);
    assert!((product - 1.0).abs() < 1e-12);
}

#[test]
fn rubbish_values_are_left_out_and_counted() {
    let run = |id: &str| Lab::new(id).run(|spot| Some(if spot.iteration == 0 { f64::NAN } else { 1.0 }));
    let found = against(run("a"), run("b"));
    assert_eq!(only(&found).baseline.as_ref().map(|side| side.n), Some(9));
    assert!(has(&found, "not-numbers"));
}

#[test]
fn three_sides_make_a_row_each() {
    let run = |id: &str, centre| noisy(id, centre, primary("time", "s", Direction::Lower));
    let others = [side("B", vec![run("b", 12.0)]), side("C", vec![run("c", 8.0)])];
    let found = compare(&side("A", vec![run("a", 10.0)]), &others, &Options::default()).unwrap();
    let words: Vec<(&str, &str)> =
        found.rows.iter().map(|row| (row.candidate_name.as_str(), row.word())).collect();
    assert_eq!(words, [("B", "worse"), ("C", "better")]);
}

#[test]
fn a_comparison_is_json_with_a_version() {
    let found = against(Lab::new("a").run(|_| Some(1.0)), later(Lab::new("b").run(|_| Some(1.0)), 60));
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["format"], 1);
    assert_eq!(json["rows"][0]["verdict"], "same");
    assert_eq!(json["rows"][0]["baseline"]["values"][9]["iteration"], 9);
    assert_eq!(json["warnings"][0]["kind"], "not-interleaved");
    assert_eq!(json["warnings"][0]["message"], "one side was measured after the other: A and B");
    assert!(
        json["warnings"][0]["advice"].as_str().is_some_and(|advice| advice.contains("factor of one study"))
    );
}

#[test]
fn few_boots_ask_for_boots_not_iterations() {
    let run = |id: &str| {
        let lab = Lab::new(id).with(|lab| {
            lab.boots = 2;
            lab.boot_id = id.into();
        });
        lab.run(|spot| Some(10.0 + f64::from(spot.iteration)))
    };
    let found = against(run("a"), run("b"));
    assert_eq!((only(&found).verdict, only(&found).flags.contains(&Flag::Few)), (Verdict::Unclear, true));
    let warning = found.warnings.iter().find(|w| w.kind() == "too-few-boots").unwrap();
    assert_eq!(warning.detail(), "sweep, time (B): 2 against 2 boots");
}

/// Runs of so many boots whose luck is 1 %, around a centre.
fn boots(seed: u64, count: u32, centre: f64) -> RunRecord {
    let mut noise = Noise(seed);
    let luck: Vec<f64> = (0..count).map(|_| noise.around(centre, 0.01)).collect();
    let lab = Lab::new(&format!("01JD{seed}")).with(|lab| {
        lab.boots = count;
        lab.boot_id = format!("boot-{seed}");
    });
    lab.run(|spot| Some(noise.around(luck[spot.boot as usize], 0.01)))
}

#[test]
fn two_or_three_boots_are_compared_by_their_means() {
    let found = against(boots(1, 3, 1.0), boots(2, 3, 1.2));
    let row = only(&found);
    assert_eq!((row.verdict, row.method.unwrap().by_means), (Verdict::Worse, true));
    let interval = row.change.unwrap().interval.unwrap();
    assert!(interval.low > 0.1 && interval.high < 0.3, "{interval:?}");
    assert!(found.notes.iter().any(|note| note.contains("Welch")), "{:?}", found.notes);
    assert!(!only(&against(boots(3, 4, 1.0), boots(4, 4, 1.2))).method.unwrap().by_means);
}

#[test]
fn few_boots_alarm_no_more_often_than_promised() {
    for count in [2, 3] {
        let alarm = |seed: u64| {
            let found = against(boots(seed * 2, count, 1.0), boots(seed * 2 + 1, count, 1.0));
            matches!(only(&found).verdict, Verdict::Better | Verdict::Worse)
        };
        let alarms = (1..=300).filter(|seed| alarm(*seed)).count();
        assert!(alarms <= 21, "{alarms} of 300 with {count} boots");
    }
}

/// Iterations that hold several values each count once: values of one iteration share its luck.
#[test]
fn values_of_one_iteration_are_one() {
    let run = |id: &str| {
        let mut run = noisy(id, 10.0, primary("time", "s", Direction::Lower));
        let again = run.samples.clone();
        run.samples.extend(again.iter().cloned());
        run.samples.extend(again);
        run.manifest.boot_id = "one".into();
        run.manifest.plan.order = "sequential".into();
        run
    };
    let found = against(run("a"), run("b"));
    assert_eq!(only(&found).method.map(|method| (method.baseline, method.candidate)), Some((10, 10)));
    assert_eq!(only(&found).baseline.as_ref().map(|side| side.n), Some(30));
}

#[test]
fn values_beyond_arithmetic_cost_their_row_only() {
    let run = |id: &str, sign: f64| {
        let metrics = vec![primary("time", "s", Direction::Lower), primary("huge", "1", Direction::Lower)];
        let lab = Lab::new(id).with(|lab| lab.metrics = metrics);
        lab.run(move |spot| Some(if spot.metric == "huge" { sign * f64::MAX } else { 1.0 }))
    };
    let found = against(run("a", -1.0), run("b", 1.0));
    assert_eq!((found.rows[0].word(), found.rows[1].word()), ("same", "unclear"));
    assert!(has(&found, "not-computed") && found.rows[1].change.is_none());
}

#[test]
fn gaps_of_monitors_are_named_with_their_reason() {
    let mut run = Lab::new("a").run(|_| Some(1.0));
    let reason = "/proc/schedstat: no such file or directory".to_owned();
    run.gaps.push(perflab_model::series::Gap {
        monitor: "schedstat".into(),
        from: perflab_model::Nanos(0),
        to: None,
        reason,
    });
    let found = against(run, Lab::new("b").run(|_| Some(1.0)));
    let warning = found.warnings.iter().find(|w| w.kind() == "monitor-gaps").unwrap();
    assert_eq!(warning.detail(), "A, run a: schedstat: /proc/schedstat: no such file or directory");
    assert!(only(&found).flags.contains(&Flag::Gaps));
}

#[test]
fn thousands_of_iterations_are_compared_in_batches() {
    let long = |id: &str, centre: f64| {
        let mut noise = Noise(centre.to_bits());
        let lab = Lab::new(id).with(|lab| lab.iterations = 5_000);
        lab.run(move |_| Some(noise.around(centre, 0.1)))
    };
    let found = against(long("a", 10.0), long("b", 10.8));
    let method = only(&found).method.unwrap();
    assert_eq!((method.baseline, method.candidate, only(&found).verdict), (200, 200, Verdict::Worse));
    assert_eq!(only(&found).baseline.as_ref().map(|side| side.n), Some(5_000));
}

#[test]
fn another_unit_of_the_numbers_changes_no_verdict() {
    let run = |id: &str, centre: f64, scale: f64| {
        let mut noise = Noise(centre.to_bits());
        Lab::new(id).run(move |_| Some(scale * noise.around(centre, 0.05)))
    };
    let (small, large) = (
        against(run("a", 10.0, 1.0), run("b", 10.5, 1.0)),
        against(run("a", 10.0, 1e9), run("b", 10.5, 1e9)),
    );
    let (a, b) = (only(&small), only(&large));
    assert_eq!((a.verdict, a.p, a.needed), (b.verdict, b.p, b.needed));
    assert!((a.change.unwrap().value - b.change.unwrap().value).abs() < 1e-9);
}

#[test]
fn filters_choose_metrics_and_workloads() {
    let run = |id: &str| {
        let metrics = vec![primary("time", "s", Direction::Lower), primary("rate", "1/s", Direction::Higher)];
        let lab = Lab::new(id).with(|lab| {
            lab.workloads = vec!["sweep", "fio"];
            lab.metrics = metrics;
        });
        side(id, vec![lab.run(|_| Some(1.0))])
    };
    let options =
        Options { metrics: vec!["rate".into()], workloads: vec!["fio".into()], ..Options::default() };
    let found = compare(&run("a"), &[run("b")], &options).unwrap();
    assert_eq!((only(&found).subject.as_str(), only(&found).metric.as_str()), ("fio", "rate"));
    let options = Options { metrics: vec!["speed".into()], ..Options::default() };
    let error = compare(&run("a"), &[run("b")], &options).unwrap_err().to_string();
    assert_eq!(error, "`a` has no samples of speed: it has sweep time, sweep rate, fio time, fio rate");
}

#[test]
fn a_change_within_the_machines_own_noise_is_flagged_and_an_old_card_is_told() {
    use perflab_analyze::NoiseCard;
    use perflab_analyze::noise_card::{NOISE_CARD_FORMAT, NoiseRow};
    let mut noise = Noise(5);
    let lab = Lab::new("01JDA").with(|lab| {
        lab.factors = vec![("x", vec!["a", "b"])];
        lab.iterations = 20;
    });
    let run = lab.run(|spot| Some(noise.around(if spot.level("x") == "b" { 1.05 } else { 1.0 }, 0.002)));
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
    };
    let card = |reach: f64, made: u64| NoiseCard {
        format: NOISE_CARD_FORMAT,
        run: "01JDN".into(),
        made: Nanos(made),
        kernel: String::new(),
        cpu: String::new(),
        rows: vec![row(reach)],
    };
    let began = run.manifest.anchor.realtime.0;
    let side = side("run", vec![run]);
    let with = |card| {
        let options = Options { noise: Some(card), ..Options::default() };
        compare_by_factor(&side, "x", &options).unwrap()
    };
    let found = with(card(0.06, began));
    assert_eq!(found.rows[0].word(), "worse");
    assert!(found.rows[0].flags.contains(&Flag::Noise));
    let quiet = with(card(0.001, began - 40 * 86_400_000_000_000));
    assert!(!quiet.rows[0].flags.contains(&Flag::Noise));
    assert!(quiet.warnings.iter().any(|warning| warning.to_string().contains("40 days old")));
}

/// A run of so many explanatory metrics over eight blocks of two levels.
fn counters(count: usize, value: impl Fn(&str, &str, u32) -> f64) -> Side {
    let names: Vec<&'static str> = (0..count).map(|at| &*format!("m{at:03}").leak()).collect();
    let lab = Lab::new("r").with(|lab| {
        lab.factors = vec![("pages", vec!["small", "huge"])];
        lab.iterations = 8;
        lab.metrics = names.iter().map(|name| explanatory(name, "1", Direction::Neither)).collect();
    });
    side("r", vec![lab.run(|spot| Some(value(spot.metric, spot.level("pages"), spot.iteration)))])
}

/// A number that looks drawn, the same for the same arguments.
fn drawn(metric: &str, level: &str, iteration: u32) -> f64 {
    let seed = metric
        .bytes()
        .chain(level.bytes())
        .fold(u64::from(iteration), |sum, byte| sum * 31 + u64::from(byte));
    Noise(seed).around(100.0, 0.05)
}

#[test]
fn more_rows_than_the_blocks_can_decide_are_said_to_be() {
    let found = compare_by_factor(&counters(100, drawn), "pages", &Options::default()).unwrap();
    let warning = found.warnings.iter().find(|warning| warning.kind() == "too-many-rows").unwrap();
    assert_eq!(
        warning.detail(),
        "one row that changes alone among 100 cannot be decided with 8 blocks: with 12 it can"
    );
    let few = compare_by_factor(&counters(5, drawn), "pages", &Options::default()).unwrap();
    assert!(!has(&few, "too-many-rows"));
}

#[test]
fn one_number_under_two_names_is_one_row_where_that_is_wanted() {
    let value = |metric: &str, level: &str, iteration: u32| match metric {
        "m000" | "m002" => drawn("twin", level, iteration),
        "m001" => drawn(metric, level, iteration),
        _ => 0.0,
    };
    let all = compare_by_factor(&counters(5, value), "pages", &Options::default()).unwrap();
    assert_eq!(all.rows.len(), 5);
    let options = Options { merge_twins: true, ..Options::default() };
    let found = compare_by_factor(&counters(5, value), "pages", &options).unwrap();
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
    let found = compare_by_factor(&counters(1, value), "pages", &Options::default()).unwrap();
    assert!(only(&found).flags.contains(&Flag::Paired), "{:?}", only(&found));
    let alike = |_: &str, level: &str, iteration: u32| {
        base[iteration as usize] * if level == "huge" { 0.9 } else { 1.0 }
    };
    let found = compare_by_factor(&counters(1, alike), "pages", &Options::default()).unwrap();
    assert!(!only(&found).flags.contains(&Flag::Paired));
}
