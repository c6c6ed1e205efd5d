//! The whole way on data without a change: how often a verdict is wrong.

use crate::build::{Lab, Noise};
use perflab_analyze::{Options, Side, Verdict, compare, compare_by_factor};
use perflab_model::RunRecord;

const STUDIES: usize = 1_000;

/// A margin of zero, so that "same" cannot hide an alarm.
fn strict() -> Options {
    Options { default_margin: 0.0, ..Options::default() }
}

fn share(mut alarm: impl FnMut() -> Verdict) -> f64 {
    let alarms = (0..STUDIES).filter(|_| matches!(alarm(), Verdict::Better | Verdict::Worse)).count();
    alarms as f64 / STUDIES as f64
}

fn side(name: &str, run: RunRecord) -> Side {
    Side { name: name.into(), runs: vec![run] }
}

/// Three standard errors of a share of 5 % above 5 %.
const LIMIT: f64 = 0.05 + 3.0 * 0.0069;

#[test]
fn paired_blocks_under_drift_and_steps_raise_few_alarms() {
    let lab = Lab::new("r").with(|lab| lab.factors = vec![("nothing", vec!["a", "b"])]);
    let mut noise = Noise(42);
    let found = share(|| {
        let run = lab.run(|spot| Some(noise.around(10.0 + f64::from(spot.iteration), 0.02)));
        compare_by_factor(&side("r", run), "nothing", &strict()).unwrap().rows[0].verdict
    });
    eprintln!("paired blocks: {:.1} % false alarms", found * 100.0);
    assert!(found <= LIMIT, "{found}");
}

#[test]
fn unpaired_runs_raise_few_alarms() {
    let mut noise = Noise(7);
    let found = share(|| {
        let mut run = |id: &str| side(id, Lab::new(id).run(|_| Some(noise.around(10.0, 0.02))));
        let (a, b) = (run("a"), run("b"));
        compare(&a, &[b], &strict()).unwrap().rows[0].verdict
    });
    eprintln!("unpaired: {:.1} % false alarms", found * 100.0);
    assert!(found <= LIMIT, "{found}");
}

#[test]
fn the_luck_of_boots_is_no_change() {
    let mut noise = Noise(23);
    let found = share(|| {
        let mut run = |id: &str| {
            let lab = Lab::new(id).with(|lab| {
                lab.boots = 5;
                lab.boot_id = id.into();
            });
            let luck: Vec<f64> = (0..5).map(|_| noise.around(1.0, 0.02)).collect();
            side(id, lab.run(|spot| Some(noise.around(10.0 * luck[spot.boot as usize], 0.02))))
        };
        let (a, b) = (run("a"), run("b"));
        compare(&a, &[b], &strict()).unwrap().rows[0].verdict
    });
    eprintln!("5 boots of 10: {:.1} % false alarms", found * 100.0);
    assert!(found <= LIMIT, "{found}");
}

#[test]
fn many_metrics_raise_few_alarms_together() {
    let factors =
        vec![("nothing", vec!["a", "b"]), ("case", vec!["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"])];
    let lab = Lab::new("r").with(|lab| {
        lab.factors = factors;
        lab.iterations = 15;
    });
    let mut noise = Noise(99);
    let studies = 150;
    let alarmed = (0..studies).filter(|_| {
        let run = lab.run(|_| Some(noise.around(10.0, 0.02)));
        let found = compare_by_factor(&side("r", run), "nothing", &strict()).unwrap();
        found.rows.iter().any(|row| matches!(row.verdict, Verdict::Better | Verdict::Worse))
    });
    let found = alarmed.count() as f64 / f64::from(studies);
    eprintln!("10 rows: {:.1} % of studies with any false alarm", found * 100.0);
    assert!(found <= 0.05 + 3.0 * 0.0178, "{found}");
}
