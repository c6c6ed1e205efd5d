//! Units, sides and order, for the statistics that `invariance.rs` does not hold: what must not matter does not.

#![expect(clippy::unwrap_used, reason = "an answer that is missing fails the test")]

mod noise;

use noise::NormalNoise as Simulated;
use perflab_stats::*;

fn normal_cases() -> impl Iterator<Item = (Vec<f64>, Vec<f64>)> {
    let mut noise = Simulated::from_seed(5);
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

fn ratio_by_fieller(x: &[f64], y: &[f64]) -> IntervalEstimate {
    ratio_of_means(UncertainMean::from_values(x).unwrap(), UncertainMean::from_values(y).unwrap(), 0.95)
        .unwrap()
}

#[test]
fn another_unit_leaves_ratios_and_tests_alone() {
    for (x, y) in normal_cases() {
        let (small_x, small_y) = (change_unit(&x), change_unit(&y));
        assert_nearly_equal(
            &value_with_known_limits(&ratio_by_fieller(&small_x, &small_y)),
            &value_with_known_limits(&ratio_by_fieller(&x, &y)),
        );
        assert_nearly_equal(
            &value_with_known_limits(&welch_ratio(&small_x, &small_y, 0.9).unwrap()),
            &value_with_known_limits(&welch_ratio(&x, &y, 0.9).unwrap()),
        );
        assert_nearly_equal(&[welch(&small_x, &small_y).unwrap().p], &[welch(&x, &y).unwrap().p]);
        assert_eq!(cliffs_delta(&small_x, &small_y, 0.9), cliffs_delta(&x, &y, 0.9));
        assert_nearly_equal(
            &[coefficient_of_variation(&small_x).unwrap()],
            &[coefficient_of_variation(&x).unwrap()],
        );
        let p = |x: &[f64], y: &[f64]| test_equivalent_ratio(x, y, 0.9, 1.1).unwrap().p;
        assert_nearly_equal(&[p(&small_x, &small_y)], &[p(&x, &y)]);
    }
}

#[test]
fn swapping_sides_inverts_the_change() {
    for (x, y) in normal_cases() {
        let [value, low, high] = value_with_known_limits(&ratio_by_fieller(&x, &y));
        assert_nearly_equal(
            &value_with_known_limits(&ratio_by_fieller(&y, &x)),
            &[value.recip(), high.recip(), low.recip()],
        );
        let [value, low, high] = value_with_known_limits(&welch_shift(&x, &y, 0.9).unwrap());
        assert_nearly_equal(
            &value_with_known_limits(&welch_shift(&y, &x, 0.9).unwrap()),
            &[-value, -high, -low],
        );
        let [value, low, high] = value_with_known_limits(&cliffs_delta(&x, &y, 0.9).unwrap());
        assert_nearly_equal(
            &value_with_known_limits(&cliffs_delta(&y, &x, 0.9).unwrap()),
            &[-value, -high, -low],
        );
        let found = mann_whitney(&x, &y).unwrap();
        assert_nearly_equal(&[2.0 * found.superiority - 1.0], &[value]);
    }
}

#[test]
fn the_order_of_values_does_not_matter() {
    for (x, y) in normal_cases() {
        let turned: Vec<f64> = x.iter().rev().copied().collect();
        assert_eq!(trimmed_mean(&turned, 0.2), trimmed_mean(&x, 0.2));
        assert_eq!(harrell_davis(&turned, 0.9), harrell_davis(&x, 0.9));
        assert_eq!(cliffs_delta(&turned, &y, 0.95), cliffs_delta(&x, &y, 0.95));
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
    let mut noise = Simulated::from_seed(6);
    let mut series = noise.normals(60);
    series.iter_mut().skip(20).for_each(|value| *value += 6.0);
    series.iter_mut().skip(45).for_each(|value| *value -= 9.0);
    let steps = |series: &[f64]| {
        let places = |found: Vec<ChangePoint>| found.iter().map(|step| step.index).collect::<Vec<_>>();
        let divisive = EDivisive { permutations: 59, ..EDivisive::default() };
        (places(Hunter::default().find(series).unwrap()), places(divisive.find(series).unwrap()))
    };
    let found = steps(&series);
    assert_eq!(found, (vec![20, 45], vec![20, 45]));
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
    let mut noise = Simulated::from_seed(7);
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

/// The interval from levels is that of the boot means.
#[test]
fn levels_agree_with_means_of_boots() {
    let mut noise = Simulated::from_seed(8);
    let values = noise.normals(40);
    let means: Vec<f64> = values.chunks(8).map(|boot| mean(boot).unwrap()).collect();
    let interval = VarianceComponents::from_nested_values(&values, &[8, 5]).unwrap().interval(0.95).unwrap();
    let [_, low, high] = value_with_known_limits(&mean_with_interval(&means, 0.95).unwrap());
    assert_nearly_equal(&[interval.low, interval.high], &[low, high]);
}
