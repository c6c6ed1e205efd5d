//! NaN, infinities, nothing, one value, all ties, huge values, odd settings: a typed answer, never a panic. See also
//! `bad_input.rs`.

use perflab_stats::*;

type OneSampleStatistic = fn(&[f64]) -> Result<(), StatsError>;
type TwoSampleStatistic = fn(&[f64], &[f64]) -> Result<(), StatsError>;

const QUICK: ClusterBootstrap = ClusterBootstrap { resamples: 20, seed: 1, confidence: 0.9 };

const OF_ONE: [(&str, OneSampleStatistic); 23] = [
    ("harmonic mean", |x| harmonic_mean(x).map(drop)),
    ("harmonic sd", |x| harmonic_sd(x).map(drop)),
    ("trimmed mean", |x| trimmed_mean(x, 0.2).map(drop)),
    ("winsorised mean", |x| winsorised_mean(x, 0.2).map(drop)),
    ("best of", |x| best_values(x, BetterDirection::Higher, 95.0).map(drop)),
    ("best-of mean", |x| best_of_mean(x, BetterDirection::Higher, 95.0).map(drop)),
    ("best-of percentile", |x| best_of_percentile(x, BetterDirection::Lower, 95.0).map(drop)),
    ("coefficient of variation", |x| coefficient_of_variation(x).map(drop)),
    ("quartile coefficient", |x| quartile_coefficient(x).map(drop)),
    ("quantile", |x| quantile_with_interval(x, 0.9, 0.95).map(drop)),
    ("harrell-davis", |x| harrell_davis(x, 0.9).map(drop)),
    ("mean with interval", |x| mean_with_interval(x, 0.95).map(drop)),
    ("uncertain mean", |x| UncertainMean::from_values(x).map(drop)),
    ("prediction", |x| prediction_interval(x, 0.95).map(drop)),
    ("log prediction", |x| prediction_interval_log(x, 0.95).map(drop)),
    ("e-divisive", |x| EDivisive { permutations: 9, shortest: 2, ..EDivisive::default() }.find(x).map(drop)),
    ("hunter", |x| Hunter::default().find(x).map(drop)),
    ("segments", |x| find_segments(x, 5.0).map(drop)),
    ("warm-up", |x| WarmupRules::default().classify(x, BetterDirection::Lower).map(drop)),
    ("variation rule", |x| first_steady_by_variation(x, 5, 0.02).map(drop)),
    ("fences", |x| TukeyFences::from_values(x, 1.5).map(drop)),
    ("one mode", |x| silverman_test(x, 3, 1).map(drop)),
    ("many outliers", |x| find_rosner_outliers(x, 3, 0.05).map(drop)),
];

const OF_TWO: [(&str, TwoSampleStatistic); 7] = [
    ("welch", |x, y| welch(x, y).map(drop)),
    ("welch shift", |x, y| welch_shift(x, y, 0.95).map(drop)),
    ("welch ratio", |x, y| welch_ratio(x, y, 0.95).map(drop)),
    ("equivalent shift", |x, y| test_equivalent_shift(x, y, -1.0, 1.0).map(drop)),
    ("equivalent ratio", |x, y| test_equivalent_ratio(x, y, 0.9, 1.1).map(drop)),
    ("cliff's delta", |x, y| cliffs_delta(x, y, 0.95).map(drop)),
    ("shift function", |x, y| shift_function(x, y, &QUICK).map(drop)),
];

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
    assert_eq!(VarianceComponents::from_nested_values(&[], &[2, 2]).map(drop), Err(StatsError::Empty));
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
            VarianceComponents::from_nested_values(&[1.0, 2.0, bad, 3.0], &[2, 2]).map(drop),
            Err(StatsError::NotFinite { index: 2 })
        );
        assert!(TwoLevelNoise::from_boots(&[&[1.0, 2.0], &[bad, 1.0]]).is_err());
        let mean = UncertainMean { mean: bad, standard_error: 1.0, freedom: 3.0 };
        assert!(matches!(ratio_of_means(mean, mean, 0.95), Err(StatsError::OutOfRange { .. })));
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
        let found = [
            trimmed_mean(&sample, 0.2),
            harrell_davis(&sample, 0.5),
            harmonic_mean(&sample),
            winsorised_mean(&sample, 0.1),
        ];
        assert!(
            found.iter().all(|found| found.as_ref().map_or(true, |value| value.is_finite())),
            "{scale}: {found:?}"
        );
        let delta = cliffs_delta(&sample, &sample, 0.95).unwrap();
        assert_eq!(delta.value, 0.0);
        if let Ok(found) = welch(&sample, &sample) {
            assert!(found.p.is_finite() && found.freedom.is_finite() && found.t == 0.0, "{scale}: {found:?}");
        }
    }
    assert_eq!(Hunter::default().find(&[most; 20]), Err(StatsError::Overflow));
    assert_eq!(EDivisive::default().find(&[most; 20]), Err(StatsError::Overflow));
}

#[test]
fn one_value() {
    assert_eq!(harmonic_mean(&[7.0]), Ok(7.0));
    assert_eq!(trimmed_mean(&[7.0], 0.4), Ok(7.0));
    assert_eq!(winsorised_mean(&[7.0], 0.4), Ok(7.0));
    assert_eq!(best_of_mean(&[7.0], BetterDirection::Lower, 1.0), Ok(7.0));
    assert_eq!(harrell_davis(&[7.0], 0.3), Ok(7.0));
    assert_eq!(quantile_with_interval(&[7.0], 0.5, 0.9).unwrap().interval, None);
    let two_needed = Err(StatsError::TooFew { needed: 2, got: 1 });
    assert_eq!(welch(&[7.0], &[1.0, 2.0]).map(drop), two_needed);
    assert_eq!(mean_with_interval(&[7.0], 0.9).map(drop), two_needed);
    assert_eq!(prediction_interval(&[7.0], 0.9).map(drop), two_needed);
    assert_eq!(cliffs_delta(&[7.0], &[1.0, 2.0], 0.9).map(drop), two_needed);
    assert_eq!(TwoLevelNoise::from_boots(&[&[1.0, 2.0]]).map(drop), two_needed);
    assert_eq!(
        TwoLevelNoise::from_boots(&[&[1.0], &[2.0]]).map(drop),
        Err(StatsError::TooFew { needed: 3, got: 2 })
    );
    assert_eq!(Hunter::default().find(&[7.0]), Err(StatsError::TooFew { needed: 6, got: 1 }));
    assert_eq!(find_rosner_outliers(&[7.0], 3, 0.05), Err(StatsError::TooFew { needed: 6, got: 1 }));
}

#[test]
fn all_values_equal() {
    let same = [3.0; 40];
    assert_eq!(welch(&same, &same), Err(StatsError::NoSpread));
    assert_eq!(test_equivalent_shift(&same, &same, -1.0, 1.0), Err(StatsError::NoSpread));
    assert_eq!(silverman_test(&same, 9, 1), Err(StatsError::NoSpread));
    assert_eq!(coefficient_of_variation(&same), Ok(0.0));
    assert_eq!(quartile_coefficient(&same), Ok(0.0));
    assert_eq!(find_rosner_outliers(&same, 3, 0.05), Ok(vec![]));
    assert_eq!(cliffs_delta(&same, &same, 0.95).unwrap().value, 0.0);
    let found = prediction_interval(&same, 0.99).unwrap().interval.unwrap();
    assert_eq!((found.low, found.high), (3.0, 3.0));
    assert_eq!(find_segments(&same, 5.0).unwrap().len(), 1);
    let steady = WarmupRules::default().classify(&same, BetterDirection::Lower).unwrap();
    assert_eq!((steady.pattern, steady.from, steady.spikes), (WarmupPattern::Flat, Some(0), vec![]));
    let rows = shift_function(&same, &same, &QUICK).unwrap();
    assert!(rows.iter().all(|row| row.shift.value.abs() < 1e-12));
    let levels = VarianceComponents::from_nested_values(&same, &[10, 4]).unwrap();
    assert_eq!(levels.components, [0.0, 0.0]);
    assert_eq!(levels.best_repetitions(&[1.0, 9.0]), Ok(vec![None]));
    assert_eq!(levels.needed_highest_repetitions(&[10], 0.1, 0.95), Ok(Some(2)));
    let exact = UncertainMean::from_values(&same).unwrap();
    let ratio = ratio_of_means(exact, exact, 0.95).unwrap();
    assert_eq!((ratio.value, ratio.interval.map(|i| (i.low, i.high))), (1.0, Some((1.0, 1.0))));
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
    assert_eq!(
        welch_ratio(&[1.0, -1.0], &[1.0, 2.0], 0.9).map(drop),
        Err(StatsError::NotPositive { index: 1 })
    );
    assert!(matches!(coefficient_of_variation(&[-1.0, 1.0]), Err(StatsError::OutOfRange { .. })));
    assert!(matches!(quartile_coefficient(&[-1.0, -2.0]), Err(StatsError::OutOfRange { .. })));
    let near_zero = UncertainMean::from_values(&[-1.0, 3.0]).unwrap();
    let far = UncertainMean::from_values(&[10.0, 11.0, 12.0]).unwrap();
    assert_eq!(ratio_of_means(near_zero, far, 0.95).unwrap().interval, None);
    assert!(
        ratio_of_means(far, near_zero, 0.95).unwrap().interval.is_some_and(|interval| interval.low < 0.0)
    );
    let zero = UncertainMean { mean: 0.0, standard_error: 0.0, freedom: 1.0 };
    assert!(matches!(ratio_of_means(zero, far, 0.95), Err(StatsError::OutOfRange { .. })));
}

fn is_refused(found: Result<(), StatsError>) -> bool {
    matches!(found, Err(StatsError::OutOfRange { .. }))
}

#[test]
fn confidences_outside_their_range() {
    let (x, y) = ([1.0, 2.0, 4.0], [2.0, 3.0, 3.5]);
    for bad in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
        assert!(is_refused(welch_shift(&x, &y, bad).map(drop)));
        assert!(is_refused(mean_with_interval(&x, bad).map(drop)));
        assert!(is_refused(prediction_interval(&x, bad).map(drop)));
        assert!(is_refused(quantile_with_interval(&x, 0.5, bad).map(drop)));
        assert!(is_refused(quantile_with_interval(&x, bad, 0.9).map(drop)));
        assert!(is_refused(harrell_davis(&x, bad).map(drop)));
        assert!(is_refused(expected_exceedances(100, bad).map(drop)));
        assert!(is_refused(cliffs_delta(&x, &y, bad).map(drop)));
        assert!(is_refused(EDivisive { level: bad, ..EDivisive::default() }.find(&[1.0; 20]).map(drop)));
        assert!(is_refused(test_equivalent_shift(&x, &y, -1.0, 1.0).unwrap().interval(bad).map(drop)));
    }
}

#[test]
fn settings_outside_their_range() {
    let (x, y) = ([1.0, 2.0, 4.0], [2.0, 3.0, 3.5]);
    for bad in [-0.1, 0.5, f64::NAN] {
        assert!(
            is_refused(trimmed_mean(&x, bad).map(drop)) && is_refused(winsorised_mean(&x, bad).map(drop))
        );
    }
    for bad in [0.0, -5.0, 100.5, f64::NAN] {
        assert!(is_refused(best_values(&x, BetterDirection::Lower, bad).map(drop)));
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
        let levels = VarianceComponents::from_nested_values(&[1.0, 2.0, 3.0, 5.0], &[2, 2]).unwrap();
        assert!(is_refused(levels.best_repetitions(&[1.0, bad]).map(drop)));
        assert!(is_refused(levels.needed_highest_repetitions(&[2], bad, 0.9).map(drop)));
    }
    assert!(is_refused(test_equivalent_shift(&x, &y, 1.0, -1.0).map(drop)));
    assert!(is_refused(test_equivalent_ratio(&x, &y, 0.0, 1.1).map(drop)));
    assert!(is_refused(benjamini_yekutieli(&[0.5, 1.5]).map(drop)));
    assert_eq!(
        VarianceComponents::from_nested_values(&[1.0; 5], &[2, 2]).map(drop),
        Err(StatsError::Unpaired { left: 5, right: 4 })
    );
    assert_eq!(
        VarianceComponents::from_nested_values(&[1.0; 4], &[4, 1]).map(drop),
        Err(StatsError::TooFew { needed: 2, got: 1 })
    );
    assert_eq!(
        VarianceComponents::from_nested_values(&[1.0; 4], &[]).map(drop),
        Err(StatsError::TooFew { needed: 2, got: 0 })
    );
    assert!(matches!(find_segments(&vec![1.0; 10_001], 5.0), Err(StatsError::TooMany { .. })));
}
