//! Runs as a level: the luck of a run, dependent iterations and drift on data without a change, and with one.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, ComparisonSide, IntervalMeaning, RepetitionLevel, Verdict, VerdictRow, compare_levels,
    compare_sides,
};
use perflab_model::RunRecord;

const STUDIES: usize = 600;

/// Three standard errors of a share of 5 % above it.
const LIMIT: f64 = 0.05 + 3.0 * 0.0089;

/// A margin of zero, so that "same" cannot hide an alarm.
fn strict_options() -> AnalysisOptions {
    AnalysisOptions { default_margin: 0.0, ..AnalysisOptions::default() }
}

fn make_side(name: &str, runs: Vec<RunRecord>) -> ComparisonSide {
    ComparisonSide { name: name.into(), runs }
}

/// The values of a run, `begun` minutes after the first, in the machine's only boot.
fn build_run(name: &str, begun: u64, iterations: u32, mut value: impl FnMut() -> f64) -> RunRecord {
    let lab = RunBuilder::new(&format!("{name}{begun:03}")).with(|lab| lab.iterations = iterations);
    let mut run = lab.build_run(|_| Some(value()));
    run.manifest.anchor.realtime.0 += begun * 60_000_000_000;
    run
}

/// A run whose luck is 2 %, and whose iterations scatter by 1 %, around a centre.
fn run_with_luck(name: &str, begun: u64, centre: f64, noise: &mut SplitMixNoise) -> RunRecord {
    let luck = noise.lognormal_around(centre, 0.02);
    build_run(name, begun, 10, || noise.lognormal_around(luck, 0.01))
}

fn only_row(baseline: &ComparisonSide, candidate: ComparisonSide, options: &AnalysisOptions) -> VerdictRow {
    compare_sides(baseline, &[candidate], options).unwrap().rows.remove(0)
}

/// The shares of rows that are better or worse, and whose interval holds the true change of nothing.
fn judge_flat(mut row: impl FnMut() -> VerdictRow) -> (f64, f64) {
    let (mut alarms, mut covered, mut intervals) = (0, 0, 0);
    for _ in 0..STUDIES {
        let row = row();
        alarms += usize::from(matches!(row.verdict, Verdict::Better | Verdict::Worse));
        if let Some(interval) = row.change.and_then(|change| change.interval) {
            intervals += 1;
            covered += usize::from(interval.low <= 0.0 && interval.high >= 0.0);
        }
    }
    (alarms as f64 / STUDIES as f64, covered as f64 / f64::from(intervals))
}

#[test]
fn the_luck_of_runs_in_one_boot_is_no_change() {
    for runs in [2, 3, 5] {
        let mut noise = SplitMixNoise(runs);
        let (alarms, coverage) = judge_flat(|| {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            for turn in 0..runs {
                ours.push(run_with_luck("a", 2 * turn, 1.0, &mut noise));
                theirs.push(run_with_luck("b", 2 * turn + 1, 1.0, &mut noise));
            }
            let row = only_row(&make_side("a", ours), make_side("b", theirs), &strict_options());
            assert_eq!(row.method.map(|method| method.level), Some(RepetitionLevel::Run));
            row
        });
        eprintln!("{runs} runs a side: {:.1} % alarms, coverage {:.1} %", alarms * 100.0, coverage * 100.0);
        assert!(alarms <= LIMIT && coverage >= 0.92, "{runs}: {alarms} {coverage}");
    }
}

#[test]
fn one_run_against_several_borrows_their_spread() {
    let mut noise = SplitMixNoise(3);
    let (alarms, coverage) = judge_flat(|| {
        let theirs = (0..4).map(|turn| run_with_luck("b", turn, 1.0, &mut noise)).collect();
        let ours = make_side("a", vec![run_with_luck("a", 9, 1.0, &mut noise)]);
        let row = only_row(&ours, make_side("b", theirs), &strict_options());
        assert!(row.method.is_some_and(|method| method.pooled && method.baseline == 1));
        row
    });
    assert!(alarms <= LIMIT && coverage >= 0.92, "{alarms} {coverage}");
    let theirs = (0..4).map(|turn| run_with_luck("b", turn, 1.5, &mut noise)).collect();
    let ours = make_side("a", vec![run_with_luck("a", 9, 1.0, &mut noise)]);
    assert_eq!(only_row(&ours, make_side("b", theirs), &strict_options()).verdict, Verdict::Worse);
}

/// The spread that a short run borrows is that of runs as short: iterations of one boot, which scatter more than the medians of fifty.
#[test]
fn one_short_run_against_several_long_ones_borrows_the_spread_of_short_ones() {
    for (runs, iterations, own) in [(6, 50, 1), (4, 30, 3)] {
        let mut noise = SplitMixNoise(9);
        let mut run = |name: &str, turn, iterations| {
            build_run(name, turn, iterations, || noise.lognormal_around(1.0, 0.05))
        };
        let (alarms, coverage) = judge_flat(|| {
            let long = (0..runs).map(|turn| run("a", turn, iterations)).collect();
            let row =
                only_row(&make_side("a", long), make_side("b", vec![run("b", 9, own)]), &strict_options());
            assert!(row.method.is_some_and(|method| method.pooled && method.candidate == 1));
            row
        });
        eprintln!("{runs} runs of {iterations} against one of {own}: {alarms}, coverage {coverage}");
        assert!(alarms <= LIMIT && coverage >= 1.0 - LIMIT, "{own}: {alarms} {coverage}");
    }
}

/// Thousands of iterations are looked at in batches; a few of the other side are no batches.
#[test]
fn a_few_iterations_against_thousands_seldom_differ() {
    for (few, many) in [(1, 3_000), (2, 1_000), (10, 1_000)] {
        let mut noise = SplitMixNoise(u64::from(few));
        let mut differ = 0;
        for _ in 0..100 {
            let mut run = |name: &str, turn, iterations| {
                build_run(name, turn, iterations, || noise.lognormal_around(1.0, 0.02))
            };
            let (ours, theirs) =
                (make_side("a", vec![run("a", 0, few)]), make_side("b", vec![run("b", 1, many)]));
            differ += usize::from(only_row(&ours, theirs, &strict_options()).verdict == Verdict::Differs);
        }
        eprintln!("{few} against {many}: {differ} of 100 differ");
        assert!(differ <= 11, "{few} against {many}: {differ} of 100 differ");
    }
}

/// What several runs of one boot scatter by says nothing of another boot, and their medians are no iterations.
#[test]
fn several_runs_of_two_boots_are_medians_between_these_two() {
    let mut noise = SplitMixNoise(5);
    let mut side = |name: &str, centre: f64| {
        let on_boot = |turn| {
            let mut run = dependent_run(name, turn, 20, &mut noise);
            run.samples.iter_mut().for_each(|sample| sample.value *= centre);
            run.manifest.boot_id = name.into();
            run
        };
        make_side(name, (0..5).map(on_boot).collect())
    };
    let row = only_row(&side("a", 1.0), side("b", 1.5), &strict_options());
    assert_eq!(
        (row.verdict, row.method.map(|method| method.level)),
        (Verdict::Differs, Some(RepetitionLevel::Run))
    );
    assert_eq!(row.between_runs.map(|found| found.widened), Some(1.0));
    assert_eq!(row.change.map(|change| change.covers), Some(IntervalMeaning::TheseRuns));
}

/// Iterations that resemble one another by 0.5.
fn dependent_run(name: &str, begun: u64, iterations: u32, noise: &mut SplitMixNoise) -> RunRecord {
    let mut state = noise.normal();
    build_run(name, begun, iterations, || {
        state = 0.5 * state + 0.75_f64.sqrt() * noise.normal();
        1.0 + 0.02 * state
    })
}

/// What two runs of nothing, one a side, show: shares that differ, that have no bound, and that hold the truth where there is one;
/// and the largest limit.
fn judge_single_runs(iterations: u32, spread: f64, dependent: bool) -> [f64; 4] {
    let mut noise = SplitMixNoise(u64::from(iterations));
    let (mut differs, mut unbounded, mut largest) = (0, 0, 0.0_f64);
    let mut run = |name: &str, begun| match dependent {
        true => dependent_run(name, begun, iterations, &mut noise),
        false => build_run(name, begun, iterations, || noise.lognormal_around(1.0, spread)),
    };
    let (alarms, coverage) = judge_flat(|| {
        let (ours, theirs) = (make_side("a", vec![run("a", 0)]), make_side("b", vec![run("b", 1)]));
        let row = only_row(&ours, theirs, &strict_options());
        let change = row.change.unwrap();
        assert_eq!(change.interval.is_some(), change.covers == IntervalMeaning::TheseRuns);
        assert_eq!(change.interval.is_none(), change.covers == IntervalMeaning::Unbounded);
        differs += usize::from(row.verdict == Verdict::Differs);
        unbounded += usize::from(change.interval.is_none());
        largest = largest.max(change.interval.map_or(0.0, |interval| interval.high));
        row
    });
    assert_eq!(alarms, 0.0, "one run a side is never better or worse");
    [differs as f64 / STUDIES as f64, unbounded as f64 / STUDIES as f64, coverage, largest]
}

#[test]
fn one_run_a_side_is_never_better_or_worse_and_dependent_iterations_seldom_differ() {
    for iterations in [5, 6, 7, 10, 30] {
        let [differs, unbounded, coverage, _] = judge_single_runs(iterations, 0.02, true);
        eprintln!(
            "{iterations} dependent iterations: {:.1} % differ, {:.1} % unbounded, coverage {:.1} %",
            differs * 100.0,
            unbounded * 100.0,
            coverage * 100.0
        );
        assert!(differs <= LIMIT && coverage >= 0.92, "{iterations}: {differs} {coverage}");
    }
}

/// Ranges between two runs of few values are of a size that the values allow for, or none.
#[test]
fn ranges_of_few_values_are_no_millions() {
    for iterations in [5, 6, 7, 10, 30] {
        let [differs, unbounded, coverage, largest] = judge_single_runs(iterations, 0.3, false);
        eprintln!(
            "{iterations} iterations: {:.1} % differ, {:.1} % unbounded, coverage {:.1} %, up to +{:.0} %",
            differs * 100.0,
            unbounded * 100.0,
            coverage * 100.0,
            largest * 100.0
        );
        assert!(
            differs <= LIMIT && coverage >= 0.92 && largest < 100.0,
            "{iterations}: {differs} {coverage} {largest}"
        );
    }
}

#[test]
fn what_earlier_runs_showed_makes_an_interval_of_the_change() {
    let mut noise = SplitMixNoise(11);
    let (_, coverage) = judge_flat(|| {
        let earlier = (0..8).map(|turn| run_with_luck("e", turn, 1.0, &mut noise)).collect();
        let options = AnalysisOptions { earlier, ..strict_options() };
        let ours = make_side("a", vec![run_with_luck("a", 20, 1.0, &mut noise)]);
        let theirs = make_side("b", vec![run_with_luck("b", 21, 1.0, &mut noise)]);
        let row = only_row(&ours, theirs, &options);
        assert_eq!(row.change.map(|change| change.covers), Some(IntervalMeaning::Change));
        assert_eq!(row.between_runs.map(|found| found.earlier_pairs), Some(7));
        row
    });
    eprintln!("with 8 earlier runs: coverage {:.1} %", coverage * 100.0);
    assert!(coverage >= 0.92, "{coverage}");
}

#[test]
fn a_steady_drift_says_how_much_it_would_explain() {
    let mut minute = 0.0;
    let mut drifting = |name: &str, begun| {
        build_run(name, begun, 60, || {
            minute += 1.0;
            100.0 + minute
        })
    };
    let (ours, theirs) = (drifting("a", 0), drifting("b", 1));
    let row = only_row(&make_side("a", vec![ours]), make_side("b", vec![theirs]), &strict_options());
    let drift = row.between_runs.unwrap().drift.unwrap();
    assert!((drift - row.change.unwrap().value).abs() < 0.3 * drift, "{drift}");
}

/// Under a drift, levels of one run that were measured one after the other differ though nothing changed.
#[test]
fn levels_measured_in_turn_have_no_verdict() {
    let mut noise = SplitMixNoise(11);
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("build", vec!["old", "new"])];
        lab.order = "sequential";
        lab.iterations = 30;
    });
    let run = lab.build_run(|spot| {
        Some(noise.lognormal_around(if spot.level("build") == "new" { 1.1 } else { 1.0 }, 0.01))
    });
    let side = ComparisonSide { name: "r".into(), runs: vec![run] };
    let row = compare_levels(&side, "build", &AnalysisOptions::default()).unwrap().rows.remove(0);
    assert_eq!(row.verdict, Verdict::Differs);
    assert!(row.between_runs.is_some_and(|found| found.in_turn && found.earlier_pairs == 0), "{row:?}");
}
