//! The whole way on data without a change: how often a verdict is wrong.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{AnalysisOptions, ComparisonSide, Verdict, compare_levels, compare_sides};
use perflab_model::RunRecord;

const STUDIES: usize = 1_000;

/// A margin of zero, so that "same" cannot hide an alarm.
fn strict_options() -> AnalysisOptions {
    AnalysisOptions { default_margin: 0.0, ..AnalysisOptions::default() }
}

fn alarm_share(mut alarm: impl FnMut() -> Verdict) -> f64 {
    let alarms = (0..STUDIES).filter(|_| matches!(alarm(), Verdict::Better | Verdict::Worse)).count();
    alarms as f64 / STUDIES as f64
}

fn make_side(name: &str, run: RunRecord) -> ComparisonSide {
    ComparisonSide { name: name.into(), runs: vec![run] }
}

/// Three standard errors of a share of 5 % above 5 %.
const LIMIT: f64 = 0.05 + 3.0 * 0.0069;

#[test]
fn paired_blocks_under_drift_and_steps_raise_few_alarms() {
    let lab = RunBuilder::new("r").with(|lab| lab.factors = vec![("nothing", vec!["a", "b"])]);
    let mut noise = SplitMixNoise(42);
    let found = alarm_share(|| {
        let run = lab.build_run(|spot| Some(noise.lognormal_around(10.0 + f64::from(spot.iteration), 0.02)));
        compare_levels(&make_side("r", run), "nothing", &strict_options()).unwrap().rows[0].verdict
    });
    eprintln!("paired blocks: {:.1} % false alarms", found * 100.0);
    assert!(found <= LIMIT, "{found}");
}

#[test]
fn unpaired_runs_raise_few_alarms() {
    let mut noise = SplitMixNoise(7);
    let found = alarm_share(|| {
        let mut run = |id: &str| {
            make_side(id, RunBuilder::new(id).build_run(|_| Some(noise.lognormal_around(10.0, 0.02))))
        };
        let (a, b) = (run("a"), run("b"));
        compare_sides(&a, &[b], &strict_options()).unwrap().rows[0].verdict
    });
    eprintln!("unpaired: {:.1} % false alarms", found * 100.0);
    assert!(found <= LIMIT, "{found}");
}

#[test]
fn the_luck_of_boots_is_no_change() {
    let mut noise = SplitMixNoise(23);
    let found = alarm_share(|| {
        let mut run = |id: &str| {
            let lab = RunBuilder::new(id).with(|lab| {
                lab.boots = 5;
                lab.boot_id = id.into();
            });
            let luck: Vec<f64> = (0..5).map(|_| noise.lognormal_around(1.0, 0.02)).collect();
            make_side(
                id,
                lab.build_run(|spot| Some(noise.lognormal_around(10.0 * luck[spot.boot as usize], 0.02))),
            )
        };
        let (a, b) = (run("a"), run("b"));
        compare_sides(&a, &[b], &strict_options()).unwrap().rows[0].verdict
    });
    eprintln!("5 boots of 10: {:.1} % false alarms", found * 100.0);
    assert!(found <= LIMIT, "{found}");
}

#[test]
fn many_metrics_raise_few_alarms_together() {
    let factors =
        vec![("nothing", vec!["a", "b"]), ("case", vec!["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"])];
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = factors;
        lab.iterations = 15;
    });
    let mut noise = SplitMixNoise(99);
    let studies = 150;
    let alarmed = (0..studies).filter(|_| {
        let run = lab.build_run(|_| Some(noise.lognormal_around(10.0, 0.02)));
        let found = compare_levels(&make_side("r", run), "nothing", &strict_options()).unwrap();
        found.rows.iter().any(|row| matches!(row.verdict, Verdict::Better | Verdict::Worse))
    });
    let found = alarmed.count() as f64 / f64::from(studies);
    eprintln!("10 rows: {:.1} % of studies with any false alarm", found * 100.0);
    assert!(found <= 0.05 + 3.0 * 0.0178, "{found}");
}
