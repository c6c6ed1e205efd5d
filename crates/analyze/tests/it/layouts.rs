//! Layouts are draws of a level: a change that only moves code is none, and how much of one is layout stands beside it.

use std::collections::HashMap;

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, ComparisonSide, RepetitionLevel, Verdict, VerdictRow, compare_levels, compare_sides,
};
use perflab_model::RunRecord;

const SEEDS: u64 = 200;

const LAYOUTS: u32 = 16;

/// A level of the code factor is another program, whose layouts have a luck of their own of 2 %; iterations scatter by 0.5 %.
fn run_two_programs(seed: u64, layouts: u32, slower: f64) -> RunRecord {
    let lab = RunBuilder::new(&format!("run{seed:03}")).with(|lab| {
        lab.factors = vec![("code", vec!["old", "new"])];
        lab.iterations = 32;
        lab.layouts = layouts;
    });
    let mut noise = SplitMixNoise(seed);
    let mut luck: HashMap<(String, u32), f64> = HashMap::new();
    lab.build_run(|point| {
        let level = point.level("code").to_owned();
        let centre = if level == "new" { 100.0 * (1.0 + slower) } else { 100.0 };
        let layout = point.iteration % layouts.max(1);
        let lies = *luck.entry((level, layout)).or_insert_with(|| noise.lognormal_around(1.0, 0.02));
        Some(noise.lognormal_around(centre * lies, 0.005))
    })
}

fn make_side(name: &str, runs: Vec<RunRecord>) -> ComparisonSide {
    ComparisonSide { name: name.into(), runs }
}

fn compare_programs(seed: u64, layouts: u32, slower: f64) -> VerdictRow {
    let side = make_side("run", vec![run_two_programs(seed, layouts, slower)]);
    compare_levels(&side, "code", &AnalysisOptions::default()).unwrap().rows.remove(0)
}

/// The share of seeds with this verdict.
fn share_of(verdict: Verdict, layouts: u32, slower: f64) -> f64 {
    let found = (0..SEEDS).filter(|seed| compare_programs(*seed, layouts, slower).verdict == verdict).count();
    found as f64 / SEEDS as f64
}

#[test]
fn a_change_that_only_moves_code_is_the_same_and_a_real_one_is_found() {
    let same = share_of(Verdict::Same, LAYOUTS, 0.0);
    assert!(same >= 0.9, "{same}");
    let found = share_of(Verdict::Worse, LAYOUTS, 0.03);
    assert!(found >= 0.8, "{found}");
    // One layout: what moved is all there is to see, and its interval is narrow.
    let same = share_of(Verdict::Same, 0, 0.0);
    assert!(same < 0.75, "{same}");
}

#[test]
fn the_interval_covers_the_change_over_all_layouts() {
    let covers = |seed: &u64| {
        let interval = compare_programs(*seed, LAYOUTS, 0.02).change.unwrap().interval.unwrap();
        interval.low <= 0.02 && 0.02 <= interval.high
    };
    let coverage = (0..SEEDS).filter(covers).count() as f64 / SEEDS as f64;
    assert!(coverage > 0.92, "{coverage}");
}

#[test]
fn what_layout_explains_stands_beside_the_change() {
    let row = compare_programs(1, LAYOUTS, 0.0);
    let method = row.method.unwrap();
    assert_eq!((method.level, method.paired, method.baseline), (RepetitionLevel::Layout, true, 16));
    let (layout, change) = (row.layout.unwrap(), row.change.unwrap());
    let (as_built, explained) = (layout.as_built.unwrap(), layout.explained.unwrap());
    assert_eq!(layout.layouts, 16);
    assert!(((1.0 + as_built) / (1.0 + explained) - (1.0 + change.value)).abs() < 1e-12);
    let (sd, share) = (layout.sd.unwrap(), layout.share.unwrap());
    assert!((0.015..0.045).contains(&sd), "two programs of 2 % each: {sd}");
    assert!(share > 0.8, "{share}");
}

#[test]
fn runs_of_one_layout_have_none_to_speak_of() {
    let row = compare_programs(1, 0, 0.0);
    assert_eq!(row.method.unwrap().level, RepetitionLevel::Iteration);
    assert_eq!(row.layout, None);
    assert_eq!(serde_json::to_value(&row).unwrap().get("layout"), None);
}

#[test]
fn one_run_a_side_compares_layouts_and_still_speaks_of_these_runs() {
    let [ours, theirs] = [1, 2].map(|seed| {
        let lab = RunBuilder::new(&format!("run{seed}")).with(|lab| {
            lab.iterations = 32;
            lab.layouts = LAYOUTS;
        });
        let mut noise = SplitMixNoise(seed);
        lab.build_run(|_| Some(noise.lognormal_around(100.0, 0.005)))
    });
    let found = compare_sides(
        &make_side("a", vec![ours]),
        &[make_side("b", vec![theirs])],
        &AnalysisOptions::default(),
    );
    let row = found.unwrap().rows.remove(0);
    assert_eq!(row.method.unwrap().level, RepetitionLevel::Layout);
    assert_eq!(row.verdict, Verdict::SameHere);
    assert!(row.between_runs.is_some());
}

#[test]
fn runs_are_the_units_unless_there_are_fewer_layouts() {
    let side = |name: &str, runs: u64, layouts: u32| {
        let build = |number: u64| {
            let lab = RunBuilder::new(&format!("{name}{number}")).with(|lab| {
                lab.iterations = 24;
                lab.layouts = layouts;
            });
            let mut noise = SplitMixNoise(number);
            let mut run = lab.build_run(|_| Some(noise.lognormal_around(100.0, 0.005)));
            run.manifest.anchor.realtime.0 += number * 60_000_000_000;
            run
        };
        make_side(name, (0..runs).map(build).collect())
    };
    let level = |runs, layouts| {
        let options = AnalysisOptions::default();
        let found = compare_sides(&side("a", runs, layouts), &[side("b", runs, layouts)], &options).unwrap();
        let method = found.rows[0].method.unwrap();
        (method.level, method.baseline)
    };
    assert_eq!(level(5, 8), (RepetitionLevel::Run, 5));
    assert_eq!(level(10, 8), (RepetitionLevel::Layout, 8));
}
