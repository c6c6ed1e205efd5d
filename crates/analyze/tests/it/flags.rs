//! How often a flag comes where nothing is wrong: on clean samples of every size and design.

use std::collections::BTreeMap;

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{AnalysisOptions, ComparisonSide, RowFlag, compare_levels, compare_sides};

const STUDIES: u32 = 400;

/// Flags that judge values, and so may come by chance.
const JUDGED: [RowFlag; 4] = [RowFlag::Drift, RowFlag::Modes, RowFlag::Outliers, RowFlag::Paired];

/// 2 %, and three standard errors of that share.
const LIMIT: f64 = 0.02 + 3.0 * 0.007;

/// The share of rows with each flag; `spread` is the standard deviation of the logarithms.
fn flag_shares(
    seed: u64,
    mut flags_of_row: impl FnMut(&mut SplitMixNoise) -> Vec<RowFlag>,
) -> BTreeMap<RowFlag, f64> {
    let mut noise = SplitMixNoise(seed);
    let mut counts: BTreeMap<RowFlag, u32> = JUDGED.iter().map(|flag| (*flag, 0)).collect();
    for _ in 0..STUDIES {
        for flag in flags_of_row(&mut noise) {
            counts.entry(flag).and_modify(|count| *count += 1);
        }
    }
    counts.into_iter().map(|(flag, count)| (flag, f64::from(count) / f64::from(STUDIES))).collect()
}

fn flags_of_levels(iterations: u32, spread: f64, noise: &mut SplitMixNoise) -> Vec<RowFlag> {
    let lab = RunBuilder::new("r").with(|lab| {
        lab.factors = vec![("nothing", vec!["a", "b"])];
        lab.iterations = iterations;
    });
    let run = lab.build_run(|_| Some(noise.lognormal_around(10.0, spread)));
    let side = ComparisonSide { name: "r".into(), runs: vec![run] };
    compare_levels(&side, "nothing", &AnalysisOptions::default()).unwrap().rows.remove(0).flags
}

fn flags_of_sides(
    design: SideDesign,
    iterations: u32,
    spread: f64,
    noise: &mut SplitMixNoise,
) -> Vec<RowFlag> {
    let mut run = |name: &str, turn: u64| {
        let luck: Vec<f64> = (0..design.boots).map(|_| noise.lognormal_around(10.0, design.luck)).collect();
        let lab = RunBuilder::new(&format!("{name}{turn}")).with(|lab| {
            (lab.boots, lab.iterations) = (design.boots, iterations);
            lab.boot_id = if design.runs > 1 { "boot".into() } else { name.into() };
        });
        let mut run = lab.build_run(|at| Some(noise.lognormal_around(luck[at.boot as usize], spread)));
        run.manifest.anchor.realtime.0 += turn * 60_000_000_000;
        run
    };
    let mut side = |name: &str, at: u64| {
        let runs = (0..u64::from(design.runs)).map(|turn| run(name, 2 * turn + at));
        ComparisonSide { name: name.into(), runs: runs.collect() }
    };
    let (a, b) = (side("a", 0), side("b", 1));
    compare_sides(&a, &[b], &AnalysisOptions::default()).unwrap().rows.remove(0).flags
}

/// How two sides are measured where they are no levels of one run.
#[derive(Clone, Copy)]
struct SideDesign {
    name: &'static str,
    /// Of each side, in turns and in one boot where there are several.
    runs: u32,
    /// Of each run.
    boots: u32,
    /// Standard deviation of what each run or boot has of its own.
    luck: f64,
}

const DESIGNS: [SideDesign; 4] = [
    SideDesign { name: "one run each", runs: 1, boots: 1, luck: 0.0 },
    SideDesign { name: "5 boots each", runs: 1, boots: 5, luck: 0.0 },
    SideDesign { name: "5 boots each, luck 2 %", runs: 1, boots: 5, luck: 0.02 },
    SideDesign { name: "4 runs each, luck 2 %", runs: 4, boots: 1, luck: 0.02 },
];

#[test]
fn flags_are_rare_on_clean_samples() {
    let mut too_often = Vec::new();
    let mut judge = |design: &'static str, n: u32, spread: f64, shares: BTreeMap<RowFlag, f64>| {
        eprintln!("{design:<22} n = {n:<4} spread {spread}: {shares:?}");
        let found = shares.into_iter().filter(|(_, share)| *share > LIMIT);
        too_often.extend(found.map(|found| (design, n, spread, found)));
    };
    for (spread, n) in [0.02, 0.3].into_iter().flat_map(|spread| [5, 10, 30].map(|n| (spread, n))) {
        judge("interleaved", n, spread, flag_shares(2026, |noise| flags_of_levels(n, spread, noise)));
        for design in DESIGNS {
            let shares = flag_shares(2026, |noise| flags_of_sides(design, n, spread, noise));
            judge(design.name, n, spread, shares);
        }
    }
    assert!(too_often.is_empty(), "{too_often:?}");
}

/// What is wrong is still flagged: a run that drifts, and runs of which each is slower than the one before.
#[test]
fn drift_is_seen_within_runs_and_from_run_to_run() {
    let flags = |within: f64, between: f64| {
        let mut noise = SplitMixNoise(7);
        let mut side = |name: &str, at: u64| {
            let run = |turn: u64| {
                let lab = RunBuilder::new(&format!("{name}{turn}")).with(|lab| lab.iterations = 20);
                let mut run = lab.build_run(|at| {
                    let moved = within * f64::from(at.iteration) + between * turn as f64;
                    Some(noise.lognormal_around(10.0 * (1.0 + moved), 0.01))
                });
                run.manifest.anchor.realtime.0 += (2 * turn + at) * 60_000_000_000;
                run
            };
            ComparisonSide { name: name.into(), runs: (0..8).map(run).collect() }
        };
        let (a, b) = (side("a", 0), side("b", 1));
        compare_sides(&a, &[b], &AnalysisOptions::default()).unwrap().rows.remove(0).flags
    };
    assert!(!flags(0.0, 0.0).contains(&RowFlag::Drift));
    assert!(flags(0.01, 0.0).contains(&RowFlag::Drift));
    assert!(flags(0.0, 0.03).contains(&RowFlag::Drift));
}
