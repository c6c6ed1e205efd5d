//! Two or three boots a side, whose spread earlier runs of the study help to know.

use fixtures::run_builder::{RunBuilder, SplitMixNoise};
use perflab_analyze::{
    AnalysisOptions, ComparisonSide, MethodDescription, Verdict, VerdictRow, compare_sides,
};
use perflab_model::RunRecord;

const STUDIES: usize = 500;

/// A run in a boot of its own, with a luck of so much, whose ten iterations scatter by 1 %.
fn boot_with_luck(name: &str, begun: u64, centre: f64, luck: f64, noise: &mut SplitMixNoise) -> RunRecord {
    let centre = noise.lognormal_around(centre, luck);
    let lab =
        RunBuilder::new(&format!("{name}{begun:03}")).with(|lab| lab.boot_id = format!("boot-{name}{begun}"));
    let mut run = lab.build_run(|_| Some(noise.lognormal_around(centre, 0.01)));
    run.manifest.anchor.realtime.0 += begun * 60_000_000_000;
    run
}

struct Design {
    boots: u64,
    earlier: u64,
    /// The luck of a boot is 2 % in earlier runs, and so much today.
    luck: f64,
    change: f64,
}

fn compare_design(design: &Design, noise: &mut SplitMixNoise) -> (VerdictRow, Vec<MethodDescription>) {
    let earlier = (0..design.earlier).map(|turn| boot_with_luck("e", turn, 1.0, 0.02, noise)).collect();
    let options = AnalysisOptions { earlier, default_margin: 0.0, ..AnalysisOptions::default() };
    let mut side = |name: &str, centre: f64| {
        let boots =
            (0..design.boots).map(|turn| boot_with_luck(name, 100 + turn, centre, design.luck, noise));
        ComparisonSide { name: name.into(), runs: boots.collect() }
    };
    let (ours, theirs) = (side("a", 1.0), side("b", 1.0 + design.change));
    let mut found = compare_sides(&ours, &[theirs], &options).unwrap();
    (found.rows.remove(0), found.notes)
}

/// Shares of intervals that hold the change, that exclude none, and of rows with pooled noise, in %.
fn judge_design(design: &Design) -> [f64; 3] {
    let mut noise = SplitMixNoise(design.boots * 100 + design.earlier);
    let mut counts = [0_usize; 3];
    for _ in 0..STUDIES {
        let (row, _) = compare_design(design, &mut noise);
        let interval = row.change.unwrap().interval.unwrap();
        counts[0] += usize::from(interval.low <= design.change && design.change <= interval.high);
        counts[1] += usize::from(interval.low > 0.0 || interval.high < 0.0);
        counts[2] += usize::from(row.pooled_noise.is_some());
    }
    counts.map(|count| 100.0 * count as f64 / STUDIES as f64)
}

/// Whether today is as noisy as it was, or twice or three times; three standard errors of a share of 95 % are 2.9 points.
#[test]
fn two_boots_keep_their_coverage_however_noisy_earlier_runs_were() {
    for (boots, luck) in [(2, 0.02), (2, 0.04), (2, 0.06), (3, 0.02), (3, 0.04)] {
        let [coverage, alarms, pooled] = judge_design(&Design { boots, earlier: 8, luck, change: 0.0 });
        eprintln!(
            "{boots} boots, luck {luck}: coverage {coverage:.1} %, {alarms:.1} % alarms, {pooled:.0} % pooled"
        );
        assert!(coverage >= 92.1 && alarms <= 7.9, "{boots} {luck}: {coverage} {alarms}");
    }
}

/// Two boots a side find a change of 6 % in 17 of 100 by themselves.
#[test]
fn two_boots_say_more_with_what_earlier_runs_know() {
    let design = |earlier| Design { boots: 2, earlier, luck: 0.02, change: 0.06 };
    let ([_, alone, _], [_, helped, pooled]) = (judge_design(&design(0)), judge_design(&design(8)));
    eprintln!("6 % found in {alone:.1} % alone, in {helped:.1} % with 8 earlier runs ({pooled:.0} % pooled)");
    assert!(helped >= 1.5 * alone && (40.0..60.0).contains(&pooled), "{alone} {helped} {pooled}");
}

#[test]
fn a_row_says_what_helped_it() {
    let mut noise = SplitMixNoise(4);
    let design = Design { boots: 2, earlier: 8, luck: 0.0, change: 0.2 };
    let (row, notes) = compare_design(&design, &mut noise);
    let pooled = row.pooled_noise.unwrap();
    assert_eq!((row.verdict, pooled.pairs, pooled.from_card), (Verdict::Worse, 7, false));
    // Two of their own, and 2 · 7² / (3 · 7 - 1) of seven differences.
    assert!((pooled.freedom - (2.0 + 4.9)).abs() < 1e-12, "{}", pooled.freedom);
    assert!(notes.contains(&MethodDescription::PooledNoise { pairs: 7, from_card: false }));
    // Four have a spread of their own; two earlier runs know nothing.
    for (boots, earlier) in [(4, 8), (2, 2)] {
        let (row, _) = compare_design(&Design { boots, earlier, ..design }, &mut noise);
        assert_eq!(row.pooled_noise, None);
    }
}
