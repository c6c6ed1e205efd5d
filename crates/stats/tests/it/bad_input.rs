//! NaN, infinities, nothing, one value, all ties, huge values, odd settings: a typed answer, never a panic.

use perflab_stats::*;

type OneSampleCall = fn(&[f64]) -> Result<(), StatsError>;
type TwoSampleCall = fn(&[f64], &[f64]) -> Result<(), StatsError>;

const OF_ONE: [(&str, OneSampleCall); 28] = [
    ("mean", |x| mean(x).map(drop)),
    ("median", |x| median(x).map(drop)),
    ("quantile", |x| quantile(x, 0.9).map(drop)),
    ("geometric mean", |x| geometric_mean(x).map(drop)),
    ("sd", |x| sd(x).map(drop)),
    ("mad", |x| mad(x).map(drop)),
    ("robust sd", |x| robust_sd(x).map(drop)),
    ("inter-quartile range", |x| inter_quartile_range(x).map(drop)),
    ("median with interval", |x| median_with_interval(x, 0.95).map(drop)),
    ("outliers", |x| find_outlying_values(x, 0.01).map(drop)),
    ("two modes", |x| find_two_modes(x, 1).map(drop)),
    ("drift", |x| drift_correlation(x).map(drop)),
    ("autocorrelation", |x| lag_one_autocorrelation(x).map(drop)),
    ("effective size", |x| effective_size(x).map(drop)),
    ("two modes of few", |x| find_two_modes(&x[..x.len().min(5)], 1).map(drop)),
    ("harmonic mean", |x| harmonic_mean(x).map(drop)),
    ("harmonic sd", |x| harmonic_sd(x).map(drop)),
    ("trimmed mean", |x| trimmed_mean(x, 0.2).map(drop)),
    ("best-of mean", |x| best_of_mean(x, BetterDirection::Higher, 95.0).map(drop)),
    ("best-of percentile", |x| best_of_percentile(x, BetterDirection::Lower, 95.0).map(drop)),
    ("coefficient of variation", |x| coefficient_of_variation(x).map(drop)),
    ("mean with interval", |x| mean_with_interval(x, 0.95).map(drop)),
    ("prediction", |x| prediction_interval(x, 0.95).map(drop)),
    ("e-divisive", |x| EDivisive { permutations: 9, shortest: 2, ..EDivisive::default() }.find(x).map(drop)),
    ("segments", |x| find_segments(x, 5.0).map(drop)),
    ("warm-up", |x| WarmupRules::default().classify(x, BetterDirection::Lower).map(drop)),
    ("variation rule", |x| first_steady_by_variation(x, 5, 0.02).map(drop)),
    ("fences", |x| TukeyFences::from_values(x, 1.5).map(drop)),
];

const OF_TWO: [(&str, TwoSampleCall); 10] = [
    ("mann-whitney", |x, y| mann_whitney(x, y).map(drop)),
    ("shift", |x, y| PairwiseShifts::absolute(x, y)?.estimate(0.95).map(drop)),
    ("ratio", |x, y| hodges_lehmann_ratio(x, y, 0.95).map(drop)),
    ("signed rank", |x, y| signed_rank(x, y).map(drop)),
    ("paired shift", |x, y| WalshAverages::absolute(x, y)?.estimate(0.95).map(drop)),
    ("paired ratio", |x, y| WalshAverages::relative(x, y)?.estimate(0.95).map(drop)),
    ("spearman", |x, y| spearman(x, y).map(drop)),
    ("theil-sen", |x, y| theil_sen(x, y, 0.95).map(drop)),
    ("welch", |x, y| welch(x, y).map(drop)),
    ("shift band", |x, y| shift_band(x, y, (10.0, 10.0), 0.95).map(drop)),
];

/// The estimates that invert the tests by ranks, for independent and for paired samples.
fn estimate_shift(x: &[f64], y: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    PairwiseShifts::absolute(x, y)?.estimate(confidence)
}

fn estimate_paired_shift(x: &[f64], y: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    WalshAverages::absolute(x, y)?.estimate(confidence)
}

fn estimate_paired_ratio(x: &[f64], y: &[f64], confidence: f64) -> Result<IntervalEstimate, StatsError> {
    WalshAverages::relative(x, y)?.estimate(confidence)
}

#[test]
fn an_empty_sample() {
    for (name, statistic) in OF_ONE {
        assert_eq!(statistic(&[]), Err(StatsError::Empty), "{name}");
    }
    for (name, statistic) in OF_TWO {
        assert_eq!(statistic(&[], &[1.0; 10]), Err(StatsError::Empty), "{name}");
        assert_eq!(statistic(&[1.0; 10], &[]), Err(StatsError::Empty), "{name}");
    }
    assert_eq!(TwoLevelNoise::from_boots(&[]).map(drop), Err(StatsError::Empty));
    assert_eq!(TwoLevelNoise::from_boots(&[&[1.0, 2.0], &[]]).map(drop), Err(StatsError::Empty));
    assert_eq!(NestedComponents::from_paths::<1>(&[]).map(drop), Err(StatsError::Empty));
    assert_eq!(benjamini_yekutieli(&[]), Ok(vec![]));
}

#[test]
fn values_that_are_not_numbers() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let sample = [1.0, 2.0, bad, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        for (name, statistic) in OF_ONE {
            assert_eq!(statistic(&sample), Err(StatsError::NotFinite { index: 2 }), "{name}");
        }
        for (name, statistic) in OF_TWO {
            assert_eq!(statistic(&sample, &[1.0; 10]), Err(StatsError::NotFinite { index: 2 }), "{name}");
            assert_eq!(statistic(&[1.0; 10], &sample), Err(StatsError::NotFinite { index: 2 }), "{name}");
        }
        assert_eq!(
            NestedComponents::from_paths(&[([0], 1.0), ([0], 2.0), ([1], bad), ([1], 3.0)]).map(drop),
            Err(StatsError::NotFinite { index: 2 })
        );
        assert!(TwoLevelNoise::from_boots(&[&[1.0, 2.0], &[bad, 1.0]]).is_err());
    }
}

/// Sums and squares that overflow, and the smallest numbers: anything but a panic, and never NaN.
#[test]
fn extreme_values_do_not_panic() {
    let (most, least) = (f64::MAX, f64::MIN_POSITIVE);
    let mixed = [-most, most, -most, most, most, 0.0, -0.0, 1.0, least, 5e-324];
    for sample in [[most; 10], [least; 10], [5e-324; 10], mixed] {
        OF_ONE.iter().for_each(|(_, statistic)| drop(statistic(&sample)));
        OF_TWO.iter().for_each(|(_, statistic)| drop(statistic(&sample, &[1.0; 10])));
        OF_TWO.iter().for_each(|(_, statistic)| drop(statistic(&[-most; 10], &sample)));
    }
    for scale in [1e-300, 1e-150, 1e150, 1e300] {
        let sample: Vec<f64> = (1..=12).map(|i| f64::from(i) * scale).collect();
        let found = [trimmed_mean(&sample, 0.2), harmonic_mean(&sample)];
        assert!(
            found.iter().all(|found| found.as_ref().map_or(true, |value| value.is_finite())),
            "{scale}: {found:?}"
        );
        if let Ok(found) = welch(&sample, &sample) {
            assert!(found.p.is_finite() && found.freedom.is_finite() && found.t == 0.0, "{scale}: {found:?}");
        }
    }
    assert_eq!(EDivisive::default().find(&[most; 20]), Err(StatsError::Overflow));
    assert_eq!(mean(&[most, most]), Err(StatsError::Overflow));
    assert_eq!(estimate_shift(&[-most], &[most], 0.9), Err(StatsError::Overflow));
}

#[test]
fn one_value() {
    assert_eq!(median(&[7.0]), Ok(7.0));
    assert_eq!(quantile(&[7.0], 0.99), Ok(7.0));
    assert_eq!(mad(&[7.0]), Ok(0.0));
    assert_eq!(sd(&[7.0]), Err(StatsError::TooFew { needed: 2, got: 1 }));
    assert_eq!(drift_correlation(&[7.0]), Err(StatsError::TooFew { needed: 3, got: 1 }));
    assert_eq!(find_two_modes(&[7.0], 1), Err(StatsError::TooFew { needed: 8, got: 1 }));
    assert_eq!(find_outlying_values(&[7.0], 0.01), Ok(vec![]));
    assert_eq!(mann_whitney(&[7.0], &[9.0]).unwrap().p, 1.0);
    let ratio = hodges_lehmann_ratio(&[8.0], &[12.0], 0.95).unwrap();
    assert!((ratio.value - 1.5).abs() < 1e-15 && ratio.interval.is_none());
    assert_eq!(harmonic_mean(&[7.0]), Ok(7.0));
    assert_eq!(trimmed_mean(&[7.0], 0.4), Ok(7.0));
    assert_eq!(best_of_mean(&[7.0], BetterDirection::Lower, 1.0), Ok(7.0));
    let two_needed = Err(StatsError::TooFew { needed: 2, got: 1 });
    assert_eq!(welch(&[7.0], &[1.0, 2.0]).map(drop), two_needed);
    assert_eq!(mean_with_interval(&[7.0], 0.9).map(drop), two_needed);
    assert_eq!(prediction_interval(&[7.0], 0.9).map(drop), two_needed);
    assert_eq!(TwoLevelNoise::from_boots(&[&[1.0, 2.0]]).map(drop), two_needed);
    assert_eq!(
        TwoLevelNoise::from_boots(&[&[1.0], &[2.0]]).map(drop),
        Err(StatsError::TooFew { needed: 3, got: 2 })
    );
}

#[test]
fn samples_too_small_for_the_level_have_no_interval() {
    let (x, y) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.5, 2.5, 3.7, 4.9, 6.2, 7.7]);
    let levels = |n: usize, confidence| {
        let independent = estimate_shift(&x[..n], &y[..n], confidence).unwrap().interval;
        let paired = estimate_paired_shift(&x[..n], &y[..n], confidence).unwrap().interval;
        (independent.map(|i| i.level), paired.map(|i| i.level))
    };
    assert_eq!(levels(2, 0.9), (None, None));
    assert_eq!(levels(3, 0.9), (Some(0.9), None));
    assert_eq!(levels(3, 0.95), (None, None));
    assert_eq!(levels(4, 0.95), (Some(1.0 - 2.0 / 70.0), None));
    assert_eq!(levels(5, 0.9).1, Some(0.9375));
    assert_eq!(levels(5, 0.95).1, None);
    assert_eq!(levels(6, 0.95).1, Some(1.0 - 2.0 / 64.0));
}

#[test]
fn all_values_equal() {
    let same = [3.0; 12];
    assert_eq!(mann_whitney(&same, &same).unwrap().p, 1.0);
    assert_eq!(mann_whitney(&[3.0; 60], &[3.0; 60]).unwrap().p, 1.0);
    assert_eq!(signed_rank(&same, &same).unwrap().p, 1.0);
    let shift = estimate_shift(&same, &same, 0.95).unwrap();
    assert_eq!((shift.value, shift.interval.map(|i| (i.low, i.high))), (0.0, Some((0.0, 0.0))));
    assert_eq!(estimate_paired_ratio(&same, &same, 0.95).unwrap().value, 1.0);
    assert_eq!(drift_correlation(&same), Err(StatsError::NoSpread));
    assert_eq!(lag_one_autocorrelation(&[0.1; 12]), Err(StatsError::NoSpread));
    assert_eq!(find_two_modes(&same, 1), Ok(None));
    assert_eq!(find_outlying_values(&same, 0.01), Ok(vec![]));
}

#[test]
fn all_of_many_values_equal() {
    let same = [3.0; 40];
    assert_eq!(welch(&same, &same), Err(StatsError::NoSpread));
    assert_eq!(coefficient_of_variation(&same), Ok(0.0));
    let found = prediction_interval(&same, 0.99).unwrap().interval.unwrap();
    assert_eq!((found.low, found.high), (3.0, 3.0));
    assert_eq!(find_segments(&same, 5.0).unwrap().len(), 1);
    let steady = WarmupRules::default().classify(&same, BetterDirection::Lower).unwrap();
    assert_eq!((steady.pattern, steady.from, steady.spikes), (WarmupPattern::Flat, Some(0), vec![]));
    let paths: Vec<([u32; 1], f64)> = (0..).zip(&same).map(|(at, value)| ([at / 10], *value)).collect();
    let levels = NestedComponents::from_paths(&paths).unwrap();
    assert_eq!((levels.levels[0].variance, levels.values.variance), (Some(0.0), Some(0.0)));
}

#[test]
fn ratios_need_values_above_zero() {
    let expected = Err(StatsError::NotPositive { index: 1 });
    assert_eq!(geometric_mean(&[1.0, 0.0]).map(drop), expected);
    assert_eq!(hodges_lehmann_ratio(&[1.0, -1.0], &[1.0], 0.9).map(drop), expected);
    assert_eq!(estimate_paired_ratio(&[1.0, 2.0], &[1.0, 0.0], 0.9).map(drop), expected);
}

/// Zero, negative, and means that could be either: no ratio, or none with an interval.
#[test]
fn ratios_need_a_zero_that_is_far() {
    assert_eq!(harmonic_mean(&[1.0, 0.0]), Err(StatsError::NotPositive { index: 1 }));
    assert_eq!(
        best_of_mean(&[3.0, -1.0], BetterDirection::Higher, 100.0),
        Err(StatsError::NotPositive { index: 1 })
    );
    assert_eq!(best_of_mean(&[3.0, -1.0], BetterDirection::Higher, 50.0), Ok(3.0));
    assert!(matches!(coefficient_of_variation(&[-1.0, 1.0]), Err(StatsError::OutOfRange { .. })));
}

#[test]
fn pairs_need_partners() {
    let expected = Err(StatsError::Unpaired { left: 2, right: 1 });
    assert_eq!(signed_rank(&[1.0, 2.0], &[1.0]).map(drop), expected);
    assert_eq!(estimate_paired_shift(&[1.0, 2.0], &[1.0], 0.9).map(drop), expected);
    assert_eq!(spearman(&[1.0, 2.0], &[1.0]).map(drop), expected);
}

#[test]
fn parameters_outside_their_range() {
    for confidence in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
        assert!(matches!(estimate_shift(&[1.0], &[1.0], confidence), Err(StatsError::OutOfRange { .. })));
        assert!(matches!(median_with_interval(&[1.0], confidence), Err(StatsError::OutOfRange { .. })));
        let plan = PowerRules { confidence, ..PowerRules::default() };
        assert!(matches!(
            plan.needed_repetitions(1.0, PowerGoal::Detect(1.0)),
            Err(StatsError::OutOfRange { .. })
        ));
    }
    assert!(matches!(quantile(&[1.0], 1.5), Err(StatsError::OutOfRange { .. })));
    assert!(matches!(benjamini_hochberg(&[0.5, 1.5]), Err(StatsError::OutOfRange { .. })));
    assert_eq!(benjamini_hochberg(&[]), Ok(vec![]));
    assert_eq!(
        PowerRules::default().detectable_change(1.0, 1),
        Err(StatsError::TooFew { needed: 2, got: 1 })
    );
    assert_eq!(PowerRules::default().needed_repetitions(1.0, PowerGoal::Detect(1e-9)), Ok(None));
    let sure = PowerRules { confidence: 1.0 - f64::EPSILON / 2.0, ..PowerRules::default() };
    assert_eq!(sure.needed_repetitions(1.0, PowerGoal::Detect(0.1)), Ok(None));
    let unlikely = PowerRules { confidence: 0.01, power: 0.01, ..PowerRules::default() };
    assert_eq!(unlikely.needed_repetitions(1.0, PowerGoal::Detect(0.1)), Ok(Some(2)));
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(PowerRules::default().needed_repetitions(bad, PowerGoal::Decide(1.0)).is_err());
        assert!(PowerRules::default().needed_repetitions(1.0, PowerGoal::Decide(bad)).is_err());
    }
}

fn is_refused(found: Result<(), StatsError>) -> bool {
    matches!(found, Err(StatsError::OutOfRange { .. }))
}

#[test]
fn confidences_outside_their_range() {
    let (x, y) = ([1.0, 2.0, 4.0], [2.0, 3.0, 3.5]);
    for bad in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
        assert!(is_refused(welch(&x, &y).unwrap().interval(bad).map(drop)));
        assert!(is_refused(mean_with_interval(&x, bad).map(drop)));
        assert!(is_refused(prediction_interval(&x, bad).map(drop)));
        assert!(is_refused(median_with_interval(&x, bad).map(drop)));
        assert!(is_refused(shift_band(&x, &y, (3.0, 3.0), bad).map(drop)));
        let clusters = [x.to_vec(), y.to_vec()];
        assert!(is_refused(QuantileShift::from_clusters(&clusters, &clusters, bad).map(drop)));
        assert!(is_refused(EDivisive { level: bad, ..EDivisive::default() }.find(&[1.0; 20]).map(drop)));
    }
}

#[test]
fn settings_outside_their_range() {
    let x = [1.0, 2.0, 4.0];
    for bad in [-0.1, 0.5, f64::NAN] {
        assert!(is_refused(trimmed_mean(&x, bad).map(drop)));
    }
    for bad in [0.0, -5.0, 100.5, f64::NAN] {
        assert!(is_refused(best_of_mean(&x, BetterDirection::Lower, bad).map(drop)));
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(is_refused(find_segments(&x, bad).map(drop)));
        assert!(is_refused(TukeyFences::from_values(&x, bad).map(drop)));
        assert!(is_refused(first_steady_by_variation(&x, 2, bad).map(drop)));
        assert!(is_refused(
            WarmupRules { margin: bad, ..WarmupRules::default() }
                .classify(&[1.0; 9], BetterDirection::Lower)
                .map(drop)
        ));
        let noise = TwoLevelNoise { between: 1.0, within: 1.0 };
        assert!(is_refused(noise.best_iterations(bad, 1.0).map(drop)));
        assert!(is_refused(noise.best_iterations(1.0, bad).map(drop)));
        assert!(is_refused(find_outlying_values(&x, bad).map(drop)));
    }
    assert!(is_refused(benjamini_yekutieli(&[0.5, 1.5]).map(drop)));
    assert_eq!(
        NestedComponents::from_paths(&[([0], 1.0)]).map(drop),
        Err(StatsError::TooFew { needed: 2, got: 1 })
    );
    assert!(matches!(find_segments(&vec![1.0; 10_001], 5.0), Err(StatsError::TooMany { .. })));
}

#[test]
fn more_pairs_than_memory_should_hold() {
    let many = vec![1.0; 3000];
    let error = estimate_shift(&many, &many, 0.95).unwrap_err();
    assert_eq!(error, StatsError::TooMany { limit: 4_194_304, got: 9_000_000 });
    assert_eq!(mann_whitney(&many, &[1.0]).unwrap().p, 1.0);
}
