//! Slopes over doses by simulation with fixed seeds: coverage, false alarms where nothing depends on the dose, and curves.

use perflab_stats::*;

use crate::noise::{NormalNoise, share_of_hits};

const DOSES: [f64; 3] = [0.0, 20.0, 50.0];

/// Values of a block under drift, with luck that all of them share, disturbed upwards now and then.
fn disturbed_block(noise: &mut NormalNoise, block: usize, response: impl Fn(f64) -> f64) -> Vec<f64> {
    let luck = 100.0 + block as f64 + 5.0 * noise.normal();
    let value = |dose: &f64| {
        let disturbance = if noise.uniform() < 0.05 { 30.0 } else { 0.0 };
        luck + response(*dose) + (0.6 * noise.normal()).exp() + disturbance
    };
    DOSES.iter().map(value).collect()
}

fn slope_of(noise: &mut NormalNoise, blocks: usize, response: impl Fn(f64) -> f64 + Copy) -> DoseSlope {
    let blocks: Vec<Vec<f64>> = (0..blocks).map(|block| disturbed_block(noise, block, response)).collect();
    dose_slope(&DOSES, &blocks, 0.95).unwrap()
}

#[test]
fn a_dose_that_does_nothing_alarms_in_at_most_5_percent() {
    for blocks in [6, 8, 12, 20, 40] {
        let mut noise = NormalNoise::from_seed(blocks as u64);
        let mut curved = 0_u32;
        let alarms = share_of_hits(4_000, || {
            let found = slope_of(&mut noise, blocks, |_| 0.0);
            curved += u32::from(found.curvature.unwrap().p <= 0.01);
            found.slope.interval.unwrap().excludes(0.0)
        });
        assert!((0.02..=0.055).contains(&alarms), "{blocks} blocks: {alarms}");
        assert!(f64::from(curved) / 4_000.0 <= 0.02, "{blocks} blocks: {curved} curves");
    }
}

#[test]
fn the_interval_covers_the_true_slope() {
    for blocks in [6, 10, 20] {
        let mut noise = NormalNoise::from_seed(100 + blocks as u64);
        let covered = share_of_hits(4_000, || {
            let found = slope_of(&mut noise, blocks, |dose| 0.5 * dose);
            !found.slope.interval.unwrap().excludes(0.5)
        });
        assert!((0.94..=0.985).contains(&covered), "{blocks} blocks: {covered}");
    }
}

/// Two doses are differences of pairs.
#[test]
fn two_doses_cover_too() {
    let mut noise = NormalNoise::from_seed(200);
    let covered = share_of_hits(4_000, || {
        let mut block = || {
            let luck = 20.0 * noise.normal();
            vec![luck + noise.normal(), luck + 3.0 + noise.normal()]
        };
        let blocks: Vec<Vec<f64>> = (0..10).map(|_| block()).collect();
        let found = dose_slope(&[1.0, 2.5], &blocks, 0.95).unwrap();
        !found.slope.interval.unwrap().excludes(2.0)
    });
    assert!((0.945..=0.98).contains(&covered), "{covered}");
}

/// What costs nothing up to a dose, and then does, is no line.
#[test]
fn a_bend_is_found() {
    let mut noise = NormalNoise::from_seed(300);
    let found = share_of_hits(1_000, || {
        slope_of(&mut noise, 20, |dose: f64| 2.0 * (dose - 20.0).max(0.0)).curvature.unwrap().p <= 0.01
    });
    assert!(found >= 0.95, "{found}");
}
