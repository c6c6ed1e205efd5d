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

fn flags_of_sides(boots: u32, iterations: u32, spread: f64, noise: &mut SplitMixNoise) -> Vec<RowFlag> {
    let mut side = |name: &str| {
        let lab = RunBuilder::new(name).with(|lab| {
            (lab.boots, lab.iterations, lab.boot_id) = (boots, iterations, name.into());
        });
        let run = lab.build_run(|_| Some(noise.lognormal_around(10.0, spread)));
        ComparisonSide { name: name.into(), runs: vec![run] }
    };
    let (a, b) = (side("a"), side("b"));
    compare_sides(&a, &[b], &AnalysisOptions::default()).unwrap().rows.remove(0).flags
}

#[test]
fn flags_are_rare_on_clean_samples() {
    let mut too_often = Vec::new();
    for (spread, iterations) in [0.02, 0.3].into_iter().flat_map(|spread| [5, 10, 30].map(|n| (spread, n))) {
        for (design, boots) in [("interleaved", 0), ("one run each", 1), ("5 boots each", 5)] {
            let shares = flag_shares(2026, |noise| match boots {
                0 => flags_of_levels(iterations, spread, noise),
                boots => flags_of_sides(boots, iterations, spread, noise),
            });
            eprintln!("{design:<14} n = {iterations:<4} spread {spread}: {shares:?}");
            too_often.extend(
                shares
                    .into_iter()
                    .filter(|(_, share)| *share > LIMIT)
                    .map(|found| (design, iterations, spread, found)),
            );
        }
    }
    assert!(too_often.is_empty(), "{too_often:?}");
}
