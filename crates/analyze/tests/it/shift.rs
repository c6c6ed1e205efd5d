//! The band of a row's shift function holds all of it at once, on every level of repetition.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{AnalysisOptions, Comparison, ComparisonSide, RowShift, compare_levels, compare_sides};

const STUDIES: usize = 300;

/// How often the bands of rows without a change hold zero at every decile.
fn share_held(mut compare: impl FnMut() -> Comparison) -> f64 {
    let holds = |found: Comparison| {
        !RowShift::from_row(&found.rows[0], &found.runs, 0.95)
            .unwrap()
            .deciles
            .iter()
            .any(|decile| decile.excludes_zero())
    };
    (0..STUDIES).filter(|_| holds(compare())).count() as f64 / STUDIES as f64
}

#[test]
fn bands_of_interleaved_levels_hold() {
    let mut noise = SplitMixNoise(4);
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("build", vec!["old", "new"])];
        lab.iterations = 30;
    });
    let held = share_held(|| {
        let run = lab.build_run(|_| Some(noise.lognormal_around(10.0, 0.02)));
        let side = ComparisonSide { name: "r".into(), runs: vec![run] };
        compare_levels(&side, "build", &AnalysisOptions::default()).unwrap()
    });
    eprintln!("interleaved: {held}");
    assert!(held >= 0.93, "{held}");
}

#[test]
fn bands_of_boots_hold() {
    for boots in [3, 5, 8] {
        let mut noise = SplitMixNoise(u64::from(boots));
        let held = share_held(|| {
            let mut side = |name: &str| {
                let lab = RunBuilder::new(name).with(|lab| {
                    (lab.boots, lab.iterations, lab.boot_id) = (boots, 20, name.into());
                });
                let luck: Vec<f64> = (0..boots).map(|_| noise.lognormal_around(10.0, 0.01)).collect();
                let run = lab.build_run(|at| Some(noise.lognormal_around(luck[at.boot as usize], 0.02)));
                ComparisonSide { name: name.into(), runs: vec![run] }
            };
            let (ours, theirs) = (side("a"), side("b"));
            compare_sides(&ours, &[theirs], &AnalysisOptions::default()).unwrap()
        });
        eprintln!("{boots} boots: {held}");
        assert!(held >= 0.93, "{boots} boots: {held}");
    }
}
