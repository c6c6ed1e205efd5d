//! Numbers printed in papers and manuals, with where they stand.

use perflab_stats::{
    Goal, Plan, benjamini_hochberg, geometric_mean, hodges_lehmann_shift, mann_whitney, median, outliers,
    quantile, signed_rank, smallest_p,
};

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
/// "W = 127.5, p-value = 0.0001208" (normal approximation, ties).
#[test]
fn ozone_of_r() {
    let test = mann_whitney(&AUGUST, &MAY).unwrap();
    assert_eq!(test.u, 127.5);
    assert!((test.p - 0.000_120_8).abs() < 5e-8, "{}", test.p);
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
    assert!((hodges_lehmann_shift(&early, &at_term, 0.95).unwrap().value - 0.305).abs() < 1e-12);
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
        let needed = Plan::default().needed_repetitions(1.0, Goal::Detect(effect)).unwrap().unwrap();
        let as_t_test = needed as f64 * 3.0 / std::f64::consts::PI;
        assert!((as_t_test - t_test).abs() <= 1.5, "{effect}: {needed}");
    }
}

#[test]
fn small_numbers_by_hand() {
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Ok(2.5));
    assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), Ok(1.75));
    assert!((geometric_mean(&[1.0, 2.0, 4.0]).unwrap() - 2.0).abs() < 1e-15);
    let found = outliers(&[10.0, 11.0, 9.0, 10.5, 30.0, 9.5]).unwrap();
    assert_eq!(found.iter().map(|outlier| outlier.index).collect::<Vec<_>>(), [4]);
    assert_eq!(outliers(&[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 90.0]).unwrap().len(), 1);
}
