//! Units, sides and order: what must not matter does not.

use perflab_stats::{
    ConfidenceInterval, IntervalEstimate, find_outlying_values, find_two_modes, hodges_lehmann_ratio,
    hodges_lehmann_shift, mann_whitney, pseudo_median_ratio, signed_rank, spearman,
};
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

fn uniform_cases() -> impl Iterator<Item = (Vec<f64>, Vec<f64>)> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    (4..40).map(move |n| {
        let mut sample = |extra: f64| (0..n).map(|_| rng.random_range(10.0..20.0) + extra).collect();
        (sample(0.0), sample(2.0))
    })
}

fn value_with_limits(estimate: &IntervalEstimate) -> [f64; 3] {
    let ConfidenceInterval { low, high, .. } =
        estimate.interval.unwrap_or(ConfidenceInterval { low: 1.0, high: 1.0, level: 0.0 });
    [estimate.value, low, high]
}

#[track_caller]
fn assert_all_close(left: [f64; 3], right: [f64; 3]) {
    for (left, right) in left.iter().zip(right) {
        assert!((left - right).abs() <= 1e-12 * right.abs(), "{left} {right}");
    }
}

#[test]
fn another_unit_leaves_ratios_and_tests_alone() {
    for (x, y) in uniform_cases() {
        let scaled = |values: &[f64]| values.iter().map(|value| value * 1e-9 / 3.0).collect::<Vec<_>>();
        let (small_x, small_y) = (scaled(&x), scaled(&y));
        let ratio = |x: &[f64], y: &[f64]| value_with_limits(&hodges_lehmann_ratio(x, y, 0.95).unwrap());
        assert_all_close(ratio(&small_x, &small_y), ratio(&x, &y));
        let paired = |x: &[f64], y: &[f64]| value_with_limits(&pseudo_median_ratio(x, y, 0.9).unwrap());
        assert_all_close(paired(&small_x, &small_y), paired(&x, &y));
        assert_eq!(mann_whitney(&small_x, &small_y), mann_whitney(&x, &y));
    }
}

#[test]
fn swapping_sides_inverts_the_change() {
    for (x, y) in uniform_cases() {
        let [value, low, high] = value_with_limits(&hodges_lehmann_ratio(&x, &y, 0.95).unwrap());
        assert_all_close(
            value_with_limits(&hodges_lehmann_ratio(&y, &x, 0.95).unwrap()),
            [value.recip(), high.recip(), low.recip()],
        );
        let [value, low, high] = value_with_limits(&hodges_lehmann_shift(&x, &y, 0.95).unwrap());
        assert_all_close(
            value_with_limits(&hodges_lehmann_shift(&y, &x, 0.95).unwrap()),
            [-value, -high, -low],
        );
        let [value, low, high] = value_with_limits(&pseudo_median_ratio(&x, &y, 0.90).unwrap());
        assert_all_close(
            value_with_limits(&pseudo_median_ratio(&y, &x, 0.90).unwrap()),
            [value.recip(), high.recip(), low.recip()],
        );
        let p = |x: &[f64], y: &[f64]| (mann_whitney(x, y).unwrap().p, signed_rank(x, y).unwrap().p);
        assert_eq!(p(&x, &y), p(&y, &x));
    }
}

#[test]
fn the_order_of_values_does_not_matter() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for (x, y) in uniform_cases() {
        let (mut mixed_x, mut mixed_y) = (x.clone(), y.clone());
        mixed_x.shuffle(&mut rng);
        mixed_y.shuffle(&mut rng);
        assert_eq!(hodges_lehmann_ratio(&mixed_x, &mixed_y, 0.9), hodges_lehmann_ratio(&x, &y, 0.9));
        assert_eq!(mann_whitney(&mixed_x, &mixed_y), mann_whitney(&x, &y));
        assert_eq!(find_two_modes(&mixed_x), find_two_modes(&x));
        assert_eq!(find_outlying_values(&mixed_x).unwrap().len(), find_outlying_values(&x).unwrap().len());
    }
}

#[test]
fn ranks_see_only_order() {
    for (x, y) in uniform_cases() {
        let bent = |values: &[f64]| values.iter().map(|value| value.powi(3)).collect::<Vec<_>>();
        assert_eq!(spearman(&bent(&x), &y), spearman(&x, &y));
        assert_eq!(mann_whitney(&bent(&x), &bent(&y)), mann_whitney(&x, &y));
    }
}
