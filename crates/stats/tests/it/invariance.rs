//! Units, sides and order: what must not matter does not.

use perflab_stats::*;
use rand::{RngExt, SeedableRng, seq::SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::noise::NormalNoise;

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

fn shift(x: &[f64], y: &[f64]) -> IntervalEstimate {
    PairwiseShifts::absolute(x, y).unwrap().estimate(0.95).unwrap()
}

fn paired_ratio(x: &[f64], y: &[f64]) -> IntervalEstimate {
    WalshAverages::relative(x, y).unwrap().estimate(0.9).unwrap()
}

#[track_caller]
fn assert_all_close(left: [f64; 3], right: [f64; 3]) {
    for (left, right) in left.iter().zip(right) {
        assert!((left - right).abs() <= 1e-12 * right.abs(), "{left} {right}");
    }
}

fn normal_cases() -> impl Iterator<Item = (Vec<f64>, Vec<f64>)> {
    let mut noise = NormalNoise::from_seed(5);
    (10..30).map(move |n| {
        let mut sample = |centre: f64| noise.normals(n).iter().map(|value| value + centre).collect();
        (sample(20.0), sample(21.0))
    })
}

fn change_unit(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value * 1e-9 / 3.0).collect()
}

fn value_with_known_limits(estimate: &IntervalEstimate) -> [f64; 3] {
    let interval = estimate.interval.unwrap();
    [estimate.value, interval.low, interval.high]
}

#[track_caller]
fn assert_nearly_equal(left: &[f64], right: &[f64]) {
    assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(right) {
        assert!((left - right).abs() <= 1e-10 * right.abs() + 1e-14, "{left} {right}");
    }
}

/// The logarithm of the ratio of the means, and its limits.
fn ratio_of_means(x: &[f64], y: &[f64]) -> [f64; 3] {
    let found = mean_shift(x, y, MeanScale::LogRatio).unwrap();
    let interval = found.interval(0.95).unwrap();
    [found.difference, interval.low, interval.high]
}

#[test]
fn another_unit_leaves_ratios_and_tests_alone() {
    for (x, y) in uniform_cases() {
        let scaled = |values: &[f64]| values.iter().map(|value| value * 1e-9 / 3.0).collect::<Vec<_>>();
        let (small_x, small_y) = (scaled(&x), scaled(&y));
        let ratio = |x: &[f64], y: &[f64]| value_with_limits(&hodges_lehmann_ratio(x, y, 0.95).unwrap());
        assert_all_close(ratio(&small_x, &small_y), ratio(&x, &y));
        let paired = |x: &[f64], y: &[f64]| value_with_limits(&paired_ratio(x, y));
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
        let [value, low, high] = value_with_limits(&shift(&x, &y));
        assert_all_close(value_with_limits(&shift(&y, &x)), [-value, -high, -low]);
        let [value, low, high] = value_with_limits(&paired_ratio(&x, &y));
        assert_all_close(
            value_with_limits(&paired_ratio(&y, &x)),
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
        assert_eq!(find_two_modes(&mixed_x, 1), find_two_modes(&x, 1));
        assert_eq!(
            find_outlying_values(&mixed_x, 0.01).unwrap().len(),
            find_outlying_values(&x, 0.01).unwrap().len()
        );
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

#[test]
fn another_unit_leaves_means_alone() {
    for (x, y) in normal_cases() {
        let (small_x, small_y) = (change_unit(&x), change_unit(&y));
        assert_nearly_equal(&ratio_of_means(&small_x, &small_y), &ratio_of_means(&x, &y));
        assert_nearly_equal(&[welch(&small_x, &small_y).unwrap().p], &[welch(&x, &y).unwrap().p]);
        assert_nearly_equal(
            &[coefficient_of_variation(&small_x).unwrap()],
            &[coefficient_of_variation(&x).unwrap()],
        );
    }
}

#[test]
fn swapping_sides_inverts_the_change_of_means() {
    for (x, y) in normal_cases() {
        let [value, low, high] = ratio_of_means(&x, &y);
        assert_nearly_equal(&ratio_of_means(&y, &x), &[-value, -high, -low]);
        let [found, swapped] = [(&x, &y), (&y, &x)].map(|(x, y)| welch(x, y).unwrap());
        assert_nearly_equal(&[swapped.difference, swapped.p], &[-found.difference, found.p]);
        let superiority = |x: &[f64], y: &[f64]| mann_whitney(x, y).unwrap().superiority;
        assert_nearly_equal(&[superiority(&y, &x)], &[1.0 - superiority(&x, &y)]);
    }
}

#[test]
fn the_order_of_values_does_not_matter_to_means() {
    for (x, _) in normal_cases() {
        let turned: Vec<f64> = x.iter().rev().copied().collect();
        assert_eq!(trimmed_mean(&turned, 0.2), trimmed_mean(&x, 0.2));
        assert_eq!(
            best_of_mean(&turned, BetterDirection::Higher, 95.0),
            best_of_mean(&x, BetterDirection::Higher, 95.0)
        );
        assert_nearly_equal(
            &value_with_known_limits(&prediction_interval(&turned, 0.9).unwrap()),
            &value_with_known_limits(&prediction_interval(&x, 0.9).unwrap()),
        );
    }
}

/// A history in another unit, upside down or backwards has its steps in the same places.
#[test]
fn steps_stay_where_they_are() {
    let mut noise = NormalNoise::from_seed(6);
    let mut series = noise.normals(60);
    series.iter_mut().skip(20).for_each(|value| *value += 6.0);
    series.iter_mut().skip(45).for_each(|value| *value -= 9.0);
    let steps = |series: &[f64]| {
        let places = |found: Vec<ChangePoint>| found.iter().map(|step| step.index).collect::<Vec<_>>();
        let divisive = EDivisive { permutations: 59, ..EDivisive::default() };
        places(divisive.find(series).unwrap())
    };
    let found = steps(&series);
    assert_eq!(found, [20, 45]);
    assert_eq!(steps(&change_unit(&series)), found);
    assert_eq!(steps(&series.iter().map(|value| 100.0 - value).collect::<Vec<_>>()), found);
    let ends = |series: &[f64]| {
        find_segments(series, 20.0).unwrap().iter().map(|segment| segment.end).collect::<Vec<_>>()
    };
    assert_eq!(ends(&change_unit(&series)), ends(&series));
}

/// A time that gets shorter and a rate that rises are both a warm-up.
#[test]
fn a_rate_warms_up_as_its_time_does() {
    let mut noise = NormalNoise::from_seed(7);
    let times: Vec<f64> = noise
        .normals(300)
        .iter()
        .enumerate()
        .map(|(i, v)| if i < 40 { 150.0 + v } else { 100.0 + v })
        .collect();
    let rates: Vec<f64> = times.iter().map(|time| 1e4 / time).collect();
    let judge = |values: &[f64], better| {
        let found = WarmupRules::default().classify(values, better).unwrap();
        (found.pattern, found.from)
    };
    assert_eq!(judge(&times, BetterDirection::Lower), (WarmupPattern::WarmUp, Some(40)));
    assert_eq!(judge(&rates, BetterDirection::Higher), (WarmupPattern::WarmUp, Some(40)));
    assert_eq!(judge(&times, BetterDirection::Higher), (WarmupPattern::SlowDown, Some(40)));
}
