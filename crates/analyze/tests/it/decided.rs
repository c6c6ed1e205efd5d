//! Runs that are looked at after every block until they are decided.

use fixtures::noise_shapes::{NoiseShape, ValueProcess};
use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{AnalysisOptions, ComparisonSide, DecidingRows, Verdict, VerdictRow, compare_levels};
use perflab_model::study::StoppingRule;
use perflab_model::{Outcome, RunRecord};

const AT_MOST: u32 = 40;

/// A run of two levels with 2 % noise, the candidate so much slower.
fn draw_run(change: f64, seed: u64) -> RunRecord {
    let noise = &mut SplitMixNoise(seed);
    let mut process = ValueProcess { shape: NoiseShape::Normal, noise, state: 0.0, step: 0, steps: 1 };
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("build", vec!["old", "new"])];
        lab.iterations = AT_MOST;
    });
    let mut run =
        lab.build_run(|at| process.next_value(if at.level("build") == "new" { 1.0 + change } else { 1.0 }));
    run.manifest.study.run.until = Some(StoppingRule::decided(AT_MOST));
    run
}

fn first_blocks(run: &RunRecord, blocks: u32) -> RunRecord {
    let mut run = run.clone();
    run.samples.retain(|sample| sample.iteration < blocks);
    run.iterations.retain(|iteration| iteration.slot < 2 * blocks);
    run
}

fn compare_builds(run: RunRecord) -> VerdictRow {
    let side = ComparisonSide { name: "r".into(), runs: vec![run] };
    compare_levels(&side, "build", &AnalysisOptions::default()).unwrap().rows.remove(0)
}

fn are_decided(run: &RunRecord, blocks: u32) -> bool {
    DecidingRows::of_run(&first_blocks(run, blocks), &AnalysisOptions::default()).unwrap().are_decided()
}

/// Blocks that come after the one that decided, before the run can end, take nothing back.
#[test]
fn what_is_decided_stays_decided() {
    for (seed, change) in (1..).zip([0.0, 0.01, 0.02, 0.05, -0.05]) {
        let run = draw_run(change, seed);
        let decided = (6..=AT_MOST).find(|blocks| are_decided(&run, *blocks));
        let decided = decided.unwrap_or_else(|| panic!("a change of {change} is not decided"));
        let [low, high] = limits(&compare_builds(first_blocks(&run, decided)));
        for blocks in decided + 1..=AT_MOST {
            assert!(are_decided(&run, blocks), "{change}, {blocks} blocks");
            let later = limits(&compare_builds(first_blocks(&run, blocks)));
            assert!(later[0] >= low - 1e-9 && later[1] <= high + 1e-9, "{change}, {blocks} blocks");
        }
    }
}

fn limits(row: &VerdictRow) -> [f64; 2] {
    let interval = row.change.and_then(|change| change.interval).unwrap();
    [interval.low, interval.high]
}

#[test]
fn the_interval_of_a_run_that_was_looked_at_is_the_wider_one() {
    let looked_at = draw_run(0.05, 9);
    let mut fixed = looked_at.clone();
    fixed.manifest.study.run.until = None;
    let (looked_at, fixed) = (compare_builds(looked_at), compare_builds(fixed));
    assert!(looked_at.method.unwrap().always_valid && !fixed.method.unwrap().always_valid);
    let ([wide_low, wide_high], [low, high]) = (limits(&looked_at), limits(&fixed));
    assert!(wide_low < low && high < wide_high, "{wide_low} {low} {high} {wide_high}");
    assert_eq!((looked_at.verdict, fixed.verdict), (Verdict::Worse, Verdict::Worse));
    assert!((looked_at.detectable, fixed.detectable.is_some()) == (None, true));
}

/// Beyond these few runs: `cargo xtask long simulate --table decided`.
#[test]
fn runs_of_two_equal_levels_are_rarely_called_better_or_worse() {
    let called = |seed: &u64| compare_builds(draw_run(0.0, 100 + seed)).verdict != Verdict::Same;
    assert!((0..40).filter(called).count() <= 3);
}

#[test]
fn a_level_that_always_fails_is_nothing_to_wait_for() {
    let mut run = draw_run(0.0, 3);
    run.samples.retain(|sample| sample.case == 0);
    let failed = run.iterations.iter_mut().filter(|iteration| iteration.slot % 2 == 1);
    failed.for_each(|iteration| iteration.outcome = Outcome::Failed { reason: "exit code 1".into() });
    assert!(are_decided(&run, 12) && !are_decided(&run, 3));
    run.samples.clear();
    run.manifest.plan.cases.truncate(1);
    assert!(!are_decided(&run, 12), "one level is nothing to decide");
}
