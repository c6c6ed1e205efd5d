//! Numbers printed in papers and manuals, with where they stand.

use perflab_stats::*;

/// New York air quality, ozone in ppb, May and August 1973 (R data set `airquality`, missing days left out).
const MAY: [f64; 26] = [
    41., 36., 12., 18., 28., 23., 19., 8., 7., 16., 11., 14., 18., 14., 34., 6., 30., 11., 1., 11., 4., 32.,
    23., 45., 115., 37.,
];
const AUGUST: [f64; 26] = [
    39., 9., 16., 78., 35., 66., 122., 89., 110., 44., 28., 65., 22., 59., 23., 31., 44., 21., 9., 45., 168.,
    73., 76., 118., 84., 85.,
];

/// R manual, `?wilcox.test`: `wilcox.test(Ozone ~ Month, subset = Month %in% c(5, 8))` prints
/// "W = 127.5, p-value = 0.0001208", the normal approximation, as there are ties; over all C(52, 26) choices, counted in
/// integers, p is half of that.
#[test]
fn ozone_of_r() {
    let test = mann_whitney(&AUGUST, &MAY).unwrap();
    assert_eq!((test.u, test.method), (127.5, InferenceMethod::ExactWithTies));
    assert!((test.p / 6.108_735_188_803_72e-5 - 1.0).abs() < 1e-12, "{}", test.p);
    // Beyond 2,500 pairs it is R's approximation, here of the same values twice: R's `wilcox.test(rep(x, 2), rep(y, 2))`.
    let twice = mann_whitney(&AUGUST.repeat(2), &MAY.repeat(2)).unwrap();
    assert_eq!((twice.u, twice.method), (510.0, InferenceMethod::Normal));
}

/// Review of November 2026: one value of 11 and 15 high, against four more, where the normal approximation says 0.035 and 0.038.
/// Over all choices it is twice C(11, 4) / C(22, 4) and twice C(15, 4) / C(30, 4).
#[test]
fn coarse_values_are_counted_exactly() {
    let p = |size: usize| {
        let candidate: Vec<f64> = (0..size).map(|at| f64::from(u8::from(at < 4))).collect();
        mann_whitney(&vec![0.0; size], &candidate).unwrap().p
    };
    assert!((p(11) - 2.0 * 330.0 / 7315.0).abs() < 1e-15);
    assert!((p(15) - 2.0 * 1365.0 / 27_405.0).abs() < 1e-15);
}

/// Hollander and Wolfe (1973), p. 29: depression scale of nine patients; R manual, `?wilcox.test`:
/// V = 40, one-sided p = 0.01953, which is half of the two-sided.
#[test]
#[expect(clippy::approx_constant, reason = "a patient scored 3.14")]
fn depression_of_hollander_and_wolfe() {
    let before = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30];
    let after = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29];
    let test = signed_rank(&after, &before).unwrap();
    assert_eq!((test.positive, test.pairs), (40.0, 9));
    assert!((test.p / 2.0 - 0.019_53).abs() < 5e-6);
}

/// Hollander and Wolfe (1973), p. 69: permeability of the chorioamnion; R manual, `?wilcox.test`:
/// W = 35, one-sided p = 0.1272.
#[test]
fn permeability_of_hollander_and_wolfe() {
    let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let early = [1.15, 0.88, 0.90, 0.74, 1.21];
    let test = mann_whitney(&early, &at_term).unwrap();
    assert_eq!(test.u, 35.0);
    assert!((test.p / 2.0 - 0.1272).abs() < 5e-5);
    assert!(
        (PairwiseShifts::absolute(&early, &at_term).unwrap().estimate(0.95).unwrap().value - 0.305).abs()
            < 1e-12
    );
}

/// Benjamini and Hochberg (1995), section 4.1: of fifteen p-values the procedure at 5 % rejects the first four.
#[test]
fn fifteen_p_values_of_benjamini_and_hochberg() {
    let p = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
        0.6528, 0.7590, 1.0,
    ];
    let adjusted = benjamini_hochberg(&p).unwrap();
    assert_eq!(adjusted.iter().filter(|q| **q <= 0.05).count(), 4);
}

/// 2 / C(2n, n), from C(6, 3) = 20, C(8, 4) = 70, C(10, 5) = 252, C(12, 6) = 924.
#[test]
fn smallest_p_values() {
    for (n, arrangements) in [(3, 20.0), (4, 70.0), (5, 252.0), (6, 924.0)] {
        assert_eq!(smallest_p(n, n), 2.0 / arrangements);
    }
}

/// Cohen, "A Power Primer", Psychological Bulletin 112 (1992), table 2: a side needs 393, 64 or 26 values for a
/// t-test at 5 % to find 0.2, 0.5 or 0.8 standard deviations with a power of 80 %. Ours allows for ranks, which
/// need π/3 times as many.
#[test]
fn needed_repetitions_of_cohen() {
    for (effect, t_test) in [(0.2, 393.0), (0.5, 64.0), (0.8, 26.0)] {
        let needed =
            PowerRules::default().needed_repetitions(1.0, PowerGoal::Detect(effect)).unwrap().unwrap();
        let as_t_test = needed as f64 * 3.0 / std::f64::consts::PI;
        assert!((as_t_test - t_test).abs() <= 1.5, "{effect}: {needed}");
    }
}

#[test]
fn small_numbers_by_hand() {
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Ok(2.5));
    assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), Ok(1.75));
    assert!((geometric_mean(&[1.0, 2.0, 4.0]).unwrap() - 2.0).abs() < 1e-15);
    let found = find_outlying_values(&[10.0, 11.0, 9.0, 10.5, 30.0, 9.5], 0.01).unwrap();
    assert_eq!(found.iter().map(|outlier| outlier.index).collect::<Vec<_>>(), [4]);
    assert_eq!(find_outlying_values(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 90.0], 0.01).unwrap().len(), 1);
}

/// Rosner (1983), the example of 54 values, as the NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.5.17.3, gives it:
/// the deviates 3.118, 2.942 and 3.179 against 3.158, 3.151 and 3.143, so that the third one makes outliers of all three.
#[test]
fn three_outliers_of_rosner() {
    let values = [
        -0.25, 0.68, 0.94, 1.15, 1.20, 1.26, 1.26, 1.34, 1.38, 1.43, 1.49, 1.49, 1.55, 1.56, 1.58, 1.65,
        1.69, 1.70, 1.76, 1.77, 1.81, 1.91, 1.94, 1.96, 1.99, 2.06, 2.09, 2.10, 2.14, 2.15, 2.23, 2.24, 2.26,
        2.35, 2.37, 2.40, 2.47, 2.54, 2.62, 2.64, 2.90, 2.92, 2.92, 2.93, 3.21, 3.26, 3.30, 3.59, 3.68, 4.30,
        4.64, 5.34, 5.42, 6.01,
    ];
    let found = find_outlying_values(&values, 0.05).unwrap();
    assert_eq!(found.iter().map(|outlier| outlier.index).collect::<Vec<_>>(), [51, 52, 53]);
    for (outlier, score) in found.iter().rev().zip([3.118, 2.942, 3.179]) {
        assert!((outlier.score - score).abs() < 1e-3, "{outlier:?}");
    }
}

/// Benjamini and Yekutieli (2001), section 1: under any dependence the same fifteen p-values are held to 5 % divided by
/// 1 + 1/2 + … + 1/15 = 3.318, which leaves the first three.
#[test]
fn fifteen_p_values_of_benjamini_and_yekutieli() {
    let p = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
        0.6528, 0.7590, 1.0,
    ];
    let adjusted = benjamini_yekutieli(&p).unwrap();
    assert_eq!(adjusted.iter().filter(|q| **q <= 0.05).count(), 3);
    assert!((adjusted[0] - 0.0015 * 3.318_229).abs() < 1e-8);
}

/// Student's sleep data, R manual, `?t.test`: Welch's test of both drugs prints "t = -1.8608, df = 17.776,
/// p-value = 0.07939, 95 percent confidence interval: -3.3654832 0.2054832".
#[test]
fn sleep_of_student() {
    let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
    let found = welch(&second, &first).unwrap();
    assert!((found.t + 1.8608).abs() < 5e-5 && (found.freedom - 17.776).abs() < 5e-4);
    assert!((found.p - 0.079_39).abs() < 5e-6);
    let interval = found.interval(0.95).unwrap();
    assert!((interval.low + 3.365_483_2).abs() < 5e-8 && (interval.high - 0.205_483_2).abs() < 5e-8);
    // The same data with `var.equal = TRUE`: "t = -1.8608, df = 18, p-value = 0.07919".
    let pooled = pooled_t(&second, &first).unwrap();
    assert!((pooled.t + 1.8608).abs() < 5e-5 && pooled.freedom == 18.0 && (pooled.p - 0.079_19).abs() < 5e-6);
    // One value against the first drug: (x - 0.75) / (1.789010 √(1 + 1/10)), 9 degrees of freedom.
    let one = pooled_t(&first, &[4.0]).unwrap();
    assert!((one.t - 3.25 / (1.789_010 * 1.1_f64.sqrt())).abs() < 1e-6 && one.freedom == 9.0);
}

/// Davies and Goldsmith (1972), table 6.3, R data set `Dyestuff`: yield of five samples of six batches of dyestuff, in
/// grams. Standard deviations 42.00 between batches and 49.51 within (Bates, lme4, section 1.3).
#[test]
fn dyestuff_of_davies() {
    let batches: [&[f64]; 6] = [
        &[1545., 1440., 1440., 1520., 1580.],
        &[1540., 1555., 1490., 1560., 1495.],
        &[1595., 1550., 1605., 1510., 1560.],
        &[1445., 1440., 1595., 1465., 1545.],
        &[1595., 1630., 1515., 1635., 1625.],
        &[1520., 1455., 1450., 1480., 1445.],
    ];
    let noise = TwoLevelNoise::from_boots(&batches).unwrap();
    assert!((noise.between - 42.00).abs() < 0.005 && (noise.within - 49.51).abs() < 0.005, "{noise:?}");
}

/// Field notes, section 3: iterations per boot √(boot cost / iteration cost · σ_iter² / σ_boot²).
#[test]
fn iterations_of_kalibera_and_jones() {
    let noise = TwoLevelNoise { between: 0.5, within: 2.0 };
    assert_eq!(noise.best_iterations(90.0, 10.0), Ok(Some(12)));
    assert_eq!(TwoLevelNoise { between: 4.0, within: 1.0 }.best_iterations(1.0, 1.0), Ok(Some(1)));
    assert_eq!(TwoLevelNoise { between: 0.0, within: 1.0 }.best_iterations(1.0, 1.0), Ok(None));
}

/// 60 and 40 km/h over the same way are 48 km/h; R manual, `?mean`: `mean(c(0:10, 50), trim = 0.10)` is 5.5.
#[test]
fn means_by_hand() {
    assert!((harmonic_mean(&[60.0, 40.0]).unwrap() - 48.0).abs() < 1e-12);
    let values: Vec<f64> = (0..=10).map(f64::from).chain([50.0]).collect();
    assert_eq!(trimmed_mean(&values, 0.1), Ok(5.5));
}
