//! Runs that did different things under one name.

use indexmap::IndexMap;
use perflab_analyze::{
    AnalysisOptions, ComparisonDiagnostic, ComparisonSide, Gate, RowFlag, Verdict, compare_levels,
    compare_sides, run_differences,
};
use perflab_model::fact_table;
use perflab_model::{RunRecord, Scalar, TargetRecord};

use fixtures::run_builder::{RunBuilder, SplitMixNoise};

fn run_of_command(id: &str, seed: u64, level: f64, command: &str) -> RunRecord {
    let mut noise = SplitMixNoise(seed);
    let mut run = RunBuilder::new(id).build_run(|_| Some(noise.lognormal_around(level, 0.01)));
    run.manifest.plan.cases[0].parameters.insert("command".into(), Scalar::Text(command.into()));
    run
}

fn make_side(name: &str, runs: Vec<RunRecord>) -> ComparisonSide {
    ComparisonSide { name: name.into(), runs }
}

#[test]
fn different_commands_get_no_verdict_unless_the_difference_is_meant() {
    let before = make_side("before", vec![run_of_command("01A", 1, 1.0, "gzip")]);
    let after = make_side("after", vec![run_of_command("01B", 2, 0.5, "dd")]);
    let found = compare_sides(&before, std::slice::from_ref(&after), &AnalysisOptions::default()).unwrap();
    let [row] = &found.rows[..] else { panic!("{found:?}") };
    assert_eq!((row.verdict, row.verdict_word()), (Verdict::Unclear, "withheld"));
    assert_eq!(row.withheld.as_deref(), Some("sweep: command: gzip -> dd"));
    assert!(row.flags.contains(&RowFlag::OtherCase) && row.change.is_some());
    assert!(
        matches!(&found.warnings[0], ComparisonDiagnostic::DifferentCase { withheld: true, .. }),
        "{:?}",
        found.warnings
    );
    assert!(found.violations(&"better".parse::<Gate>().unwrap()).is_empty());
    let meant =
        compare_sides(&before, &[after], &AnalysisOptions { across: true, ..AnalysisOptions::default() })
            .unwrap();
    assert_eq!((meant.rows[0].verdict_word(), &meant.rows[0].withheld), ("differs", &None));
    assert!(meant.rows[0].flags.contains(&RowFlag::OtherCase));
}

#[test]
fn definitions_environment_and_repetitions_count_and_unknown_definitions_do_not() {
    let judged = |change: &dyn Fn(&mut RunRecord)| {
        let mut other = run_of_command("01B", 2, 0.5, "gzip");
        change(&mut other);
        let mut first = run_of_command("01A", 1, 1.0, "gzip");
        first.manifest.plan.definitions = IndexMap::from([("sweep".into(), "1".into())]);
        compare_sides(
            &make_side("a", vec![first]),
            &[make_side("b", vec![other])],
            &AnalysisOptions::default(),
        )
        .unwrap()
        .rows[0]
            .verdict_word()
    };
    assert_eq!(judged(&|_| ()), "differs");
    let define = |run: &mut RunRecord, digest: &str| {
        run.manifest.plan.definitions = IndexMap::from([("sweep".into(), digest.into())]);
    };
    assert_eq!(judged(&|run| define(run, "1")), "differs");
    assert_eq!(judged(&|run| define(run, "2")), "withheld");
    let variable =
        |run: &mut RunRecord| drop(run.manifest.plan.cases[0].environment.insert("A".into(), "1".into()));
    assert_eq!(judged(&variable), "withheld");
    assert_eq!(judged(&|run| run.manifest.facts.add(fact_table::KERNEL_RELEASE, "7.0", "uname")), "differs");
    let mixed =
        make_side("a", vec![run_of_command("01A", 1, 1.0, "gzip"), run_of_command("01C", 3, 1.0, "dd")]);
    let found = compare_sides(
        &mixed,
        &[make_side("b", vec![run_of_command("01B", 2, 0.5, "gzip")])],
        &AnalysisOptions::default(),
    )
    .unwrap();
    assert_eq!(found.rows[0].verdict_word(), "withheld");
}

#[test]
fn a_side_of_two_studies_is_told_with_both_and_two_sides_of_one_each_are_not() {
    let of_study = |id: &str, title: &str| {
        let mut run = run_of_command(id, 1, 1.0, "gzip");
        run.manifest.study.title = title.into();
        run
    };
    let differences = |baseline: Vec<RunRecord>, candidate: Vec<RunRecord>| -> Vec<String> {
        let (baseline, candidate) = (make_side("a", baseline), make_side("b", candidate));
        let found = compare_sides(&baseline, &[candidate], &AnalysisOptions::default()).unwrap();
        let told = found.warnings.into_iter().filter_map(|warning| match warning {
            ComparisonDiagnostic::DifferentStudy { differences, .. } => Some(differences),
            _ => None,
        });
        told.flatten().collect()
    };
    let mixed = vec![of_study("01A", "nightly"), of_study("01C", "other")];
    let plain = || vec![of_study("01B", "nightly")];
    assert_eq!(differences(mixed, plain()), ["study: nightly (1 run), other (1 run) -> nightly"]);
    assert_eq!(differences(vec![of_study("01A", "other")], plain()), Vec::<String>::new());
}

#[test]
fn repetitions_that_were_edited_between_are_not_pooled_by_factor() {
    let run = |id: &str, command: &str| {
        let mut noise = SplitMixNoise(7);
        let lab = RunBuilder::new(id).with(|lab| lab.factors = vec![("pages", vec!["small", "huge"])]);
        let mut run = lab.build_run(|spot| {
            Some(noise.lognormal_around(if spot.level("pages") == "huge" { 0.5 } else { 1.0 }, 0.01))
        });
        for case in &mut run.manifest.plan.cases {
            case.parameters.insert("command".into(), Scalar::Text(command.into()));
        }
        run
    };
    let word = |second: &str| {
        let side = make_side("s", vec![run("01A", "gzip"), run("01B", second)]);
        compare_levels(&side, "pages", &AnalysisOptions::default()).unwrap().rows[0].verdict_word()
    };
    assert_eq!((word("gzip"), word("dd")), ("better", "withheld"));
}

#[test]
fn what_differs_between_runs_begins_with_the_case_and_the_guests_kernel() {
    let target = |kernel: &str, swappiness: &str| {
        let mut target = TargetRecord {
            name: "guest".into(),
            kind: "vm".into(),
            kernel: kernel.into(),
            boot_id: String::new(),
            clock: perflab_model::ClockOffset::default(),
            facts: perflab_model::Facts::default(),
        };
        target.facts.add(fact_table::SYSCTL.key("vm.swappiness"), swappiness, "sysctl");
        target
    };
    let mut a = run_of_command("01A", 1, 1.0, "gzip");
    let mut b = run_of_command("01B", 2, 1.0, "dd");
    a.manifest.targets = vec![target("6.1", "60")];
    b.manifest.targets = vec![target("6.12", "10")];
    for (run, free, pressure, mount) in [(&mut a, 1_i64, 77_i64, "x"), (&mut b, 2, 100, "y")] {
        run.manifest.facts.add(fact_table::DISK_FREE.key("/"), free, "statfs");
        run.manifest.facts.add(fact_table::DISK_MOUNT_TYPE.key("/tmp/a"), mount, "mounts");
        run.manifest.facts.add(fact_table::SYSCTL.key("vm.vfs_cache_pressure"), pressure, "sysctl");
    }
    b.manifest.plan.seed = 9;
    let keys: Vec<String> = run_differences(&a, &b).into_iter().map(|one| one.key).collect();
    assert_eq!(
        keys,
        [
            "sweep: command",
            "fact guest: kernel.release",
            "fact guest: sysctl.vm.swappiness",
            "fact sysctl.vm.vfs_cache_pressure",
            "fact disk.mount./tmp/a.type",
            "seed"
        ]
    );
}

/// A warning that is on every run is not read: only what may explain a change is one.
#[test]
fn free_space_mounts_and_drawn_seeds_are_no_warning_and_settings_all_stand_there() {
    let (mut a, mut b) = (run_of_command("01A", 1, 1.0, "gzip"), run_of_command("01B", 2, 1.0, "gzip"));
    for (run, value) in [(&mut a, "x"), (&mut b, "y")] {
        run.manifest.facts.add(fact_table::DISK_FREE.key("/"), value, "statfs");
        run.manifest.facts.add(fact_table::DISK_MOUNT_TYPE.key("/tmp/a"), value, "mounts");
        run.manifest.facts.add(fact_table::DISK_SIZE.key("loop3"), value, "sys");
    }
    a.manifest.study.run.seed = Some(1);
    b.manifest.study.run.seed = Some(2);
    let warnings = |a: &RunRecord, b: &RunRecord| {
        let found = compare_sides(
            &make_side("a", vec![a.clone()]),
            &[make_side("b", vec![b.clone()])],
            &AnalysisOptions::default(),
        )
        .unwrap();
        found
            .warnings
            .into_iter()
            .filter(|one| {
                matches!(
                    one,
                    ComparisonDiagnostic::DifferentEnvironment { .. }
                        | ComparisonDiagnostic::DifferentStudy { .. }
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(warnings(&a, &b), []);
    for at in 0..9 {
        a.manifest.facts.add(fact_table::SYSCTL.key(format_args!("vm.{at}")), "0", "sysctl");
        b.manifest.facts.add(fact_table::SYSCTL.key(format_args!("vm.{at}")), "1", "sysctl");
    }
    let found = warnings(&a, &b);
    let [ComparisonDiagnostic::DifferentEnvironment { first, important: 9, .. }] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(first.len(), 9);
}

/// The values of a fact on both sides, and whether it is one that matters.
fn named_fact(
    found: &perflab_analyze::Comparison,
    key: &str,
) -> Option<(Option<String>, Option<String>, bool)> {
    let fact = found.facts.iter().find(|fact| fact.key == key)?;
    Some((fact.baseline.clone(), fact.candidate.clone(), fact.important))
}

#[test]
fn every_run_of_a_side_is_held_against_the_others() {
    let with_swappiness = |id: &str, swappiness: i64| {
        let mut run = run_of_command(id, 1, 1.0, "gzip");
        run.manifest.facts.add(fact_table::SYSCTL.key("vm.swappiness"), swappiness, "sysctl");
        run
    };
    let mixed = make_side("mixed", vec![with_swappiness("01A", 60), with_swappiness("01C", 10)]);
    let plain = make_side("plain", vec![with_swappiness("01B", 60), with_swappiness("01D", 60)]);
    let both = Some("60 (1 run), 10 (1 run)".to_owned());
    let one = Some("60".to_owned());
    let compare = |ours: &ComparisonSide, theirs: &ComparisonSide| {
        compare_sides(ours, std::slice::from_ref(theirs), &AnalysisOptions::default()).unwrap()
    };
    let key = "sysctl.vm.swappiness";
    assert_eq!(named_fact(&compare(&mixed, &plain), key), Some((both.clone(), one.clone(), true)));
    assert_eq!(named_fact(&compare(&plain, &mixed), key), Some((one, both.clone(), true)));
    assert_eq!(named_fact(&compare(&mixed, &mixed), key), Some((both.clone(), both, true)));
    assert_eq!(named_fact(&compare(&plain, &plain), key), None);
}

/// A run leaves its load behind: what was measured next to it is not another environment.
#[test]
fn the_load_of_a_compared_run_is_no_other_environment() {
    let with_load = |id: &str, load: &str, minutes: u64| {
        let mut run = run_of_command(id, 1, 1.0, "gzip");
        run.manifest.facts.add(fact_table::LOAD_1, load, "/proc/loadavg");
        run.manifest.anchor.realtime.0 += minutes * 60_000_000_000;
        run
    };
    let named = |minutes: u64| {
        let (a, b) = (with_load("01A", "0.1", 0), with_load("01B", "8.0", minutes));
        let found =
            compare_sides(&make_side("a", vec![a]), &[make_side("b", vec![b])], &AnalysisOptions::default());
        named_fact(&found.unwrap(), "load.1").is_some()
    };
    assert_eq!([1, 60].map(named), [false, true]);
}
