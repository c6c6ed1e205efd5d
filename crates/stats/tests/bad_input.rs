//! NaN, infinities, nothing, one value, all ties, huge values: a typed answer, never a panic.

use perflab_stats::*;

type OneSampleCall = fn(&[f64]) -> Result<(), StatsError>;
type TwoSampleCall = fn(&[f64], &[f64]) -> Result<(), StatsError>;

const OF_ONE: [(&str, OneSampleCall); 15] = [
    ("mean", |x| mean(x).map(drop)),
    ("median", |x| median(x).map(drop)),
    ("quantile", |x| quantile(x, 0.9).map(drop)),
    ("geometric mean", |x| geometric_mean(x).map(drop)),
    ("sd", |x| sd(x).map(drop)),
    ("mad", |x| mad(x).map(drop)),
    ("robust sd", |x| robust_sd(x).map(drop)),
    ("inter-quartile range", |x| inter_quartile_range(x).map(drop)),
    ("median with interval", |x| median_with_interval(x, 0.95).map(drop)),
    ("outliers", |x| find_outlying_values(x).map(drop)),
    ("two modes", |x| find_two_modes(x).map(drop)),
    ("drift", |x| drift_correlation(x).map(drop)),
    ("autocorrelation", |x| lag_one_autocorrelation(x).map(drop)),
    ("effective size", |x| effective_size(x).map(drop)),
    ("two modes of few", |x| find_two_modes(&x[..x.len().min(5)]).map(drop)),
];

const OF_TWO: [(&str, TwoSampleCall); 8] = [
    ("mann-whitney", |x, y| mann_whitney(x, y).map(drop)),
    ("shift", |x, y| hodges_lehmann_shift(x, y, 0.95).map(drop)),
    ("ratio", |x, y| hodges_lehmann_ratio(x, y, 0.95).map(drop)),
    ("signed rank", |x, y| signed_rank(x, y).map(drop)),
    ("paired shift", |x, y| pseudo_median_shift(x, y, 0.95).map(drop)),
    ("paired ratio", |x, y| pseudo_median_ratio(x, y, 0.95).map(drop)),
    ("spearman", |x, y| spearman(x, y).map(drop)),
    ("theil-sen", |x, y| theil_sen(x, y, 0.95).map(drop)),
];

#[test]
fn an_empty_sample() {
    for (name, statistic) in OF_ONE {
        assert_eq!(statistic(&[]), Err(StatsError::Empty), "{name}");
    }
    for (name, statistic) in OF_TWO {
        assert_eq!(statistic(&[], &[1.0]), Err(StatsError::Empty), "{name}");
        assert_eq!(statistic(&[1.0], &[]), Err(StatsError::Empty), "{name}");
    }
}

#[test]
fn values_that_are_not_numbers() {
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let sample = [1.0, 2.0, bad, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        for (name, statistic) in OF_ONE {
            assert_eq!(statistic(&sample), Err(StatsError::NotFinite { index: 2 }), "{name}");
        }
        for (name, statistic) in OF_TWO {
            assert_eq!(statistic(&sample, &[1.0; 9]), Err(StatsError::NotFinite { index: 2 }), "{name}");
            assert_eq!(statistic(&[1.0; 9], &sample), Err(StatsError::NotFinite { index: 2 }), "{name}");
        }
    }
}

/// Sums and differences that overflow, and the smallest numbers: anything but a panic.
#[test]
fn extreme_values_do_not_panic() {
    let (most, least) = (f64::MAX, f64::MIN_POSITIVE);
    for sample in [[most; 9], [least; 9], [-most, most, -most, most, most, 0.0, -0.0, 1.0, least]] {
        OF_ONE.iter().for_each(|(_, statistic)| drop(statistic(&sample)));
        OF_TWO.iter().for_each(|(_, statistic)| drop(statistic(&sample, &[1.0; 9])));
        OF_TWO.iter().for_each(|(_, statistic)| drop(statistic(&[-most; 9], &sample)));
    }
    assert_eq!(mean(&[most, most]), Err(StatsError::Overflow));
    assert_eq!(hodges_lehmann_shift(&[-most], &[most], 0.9), Err(StatsError::Overflow));
}

#[test]
fn one_value() {
    assert_eq!(median(&[7.0]), Ok(7.0));
    assert_eq!(quantile(&[7.0], 0.99), Ok(7.0));
    assert_eq!(mad(&[7.0]), Ok(0.0));
    assert_eq!(sd(&[7.0]), Err(StatsError::TooFew { needed: 2, got: 1 }));
    assert_eq!(drift_correlation(&[7.0]), Err(StatsError::TooFew { needed: 3, got: 1 }));
    assert_eq!(find_two_modes(&[7.0]), Err(StatsError::TooFew { needed: 8, got: 1 }));
    assert_eq!(find_outlying_values(&[7.0]), Ok(vec![]));
    assert_eq!(mann_whitney(&[7.0], &[9.0]).unwrap().p, 1.0);
    let ratio = hodges_lehmann_ratio(&[8.0], &[12.0], 0.95).unwrap();
    assert!((ratio.value - 1.5).abs() < 1e-15 && ratio.interval.is_none());
}

#[test]
fn samples_too_small_for_the_level_have_no_interval() {
    let (x, y) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.5, 2.5, 3.7, 4.9, 6.2, 7.7]);
    let levels = |n: usize, confidence| {
        let independent = hodges_lehmann_shift(&x[..n], &y[..n], confidence).unwrap().interval;
        let paired = pseudo_median_shift(&x[..n], &y[..n], confidence).unwrap().interval;
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
    let shift = hodges_lehmann_shift(&same, &same, 0.95).unwrap();
    assert_eq!((shift.value, shift.interval.map(|i| (i.low, i.high))), (0.0, Some((0.0, 0.0))));
    assert_eq!(pseudo_median_ratio(&same, &same, 0.95).unwrap().value, 1.0);
    assert_eq!(drift_correlation(&same), Err(StatsError::NoSpread));
    assert_eq!(lag_one_autocorrelation(&[0.1; 12]), Err(StatsError::NoSpread));
    assert_eq!(find_two_modes(&same), Ok(None));
    assert_eq!(find_outlying_values(&same), Ok(vec![]));
}

#[test]
fn ratios_need_values_above_zero() {
    let wanted = Err(StatsError::NotPositive { index: 1 });
    assert_eq!(geometric_mean(&[1.0, 0.0]).map(drop), wanted);
    assert_eq!(hodges_lehmann_ratio(&[1.0, -1.0], &[1.0], 0.9).map(drop), wanted);
    assert_eq!(pseudo_median_ratio(&[1.0, 2.0], &[1.0, 0.0], 0.9).map(drop), wanted);
}

#[test]
fn pairs_need_partners() {
    let wanted = Err(StatsError::Unpaired { left: 2, right: 1 });
    assert_eq!(signed_rank(&[1.0, 2.0], &[1.0]).map(drop), wanted);
    assert_eq!(pseudo_median_shift(&[1.0, 2.0], &[1.0], 0.9).map(drop), wanted);
    assert_eq!(spearman(&[1.0, 2.0], &[1.0]).map(drop), wanted);
}

#[test]
fn parameters_outside_their_range() {
    for confidence in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
        assert!(matches!(
            hodges_lehmann_shift(&[1.0], &[1.0], confidence),
            Err(StatsError::OutOfRange { .. })
        ));
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

#[test]
fn more_pairs_than_memory_should_hold() {
    let many = vec![1.0; 3000];
    let error = hodges_lehmann_shift(&many, &many, 0.95).unwrap_err();
    assert_eq!(error, StatsError::TooMany { limit: 4_194_304, got: 9_000_000 });
    assert_eq!(mann_whitney(&many, &[1.0]).unwrap().p, 1.0);
}
