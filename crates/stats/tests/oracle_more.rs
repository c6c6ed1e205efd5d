//! Against the tables of `data/make_tables.R` (R 4.2.2) and `data/make_more_tables.py` (SciPy 1.17.1, or the definition by
//! another road) and `data/make_dip_tables.R` (with diptest 0.76), to 1e-9 relative; p-values to 1e-9 relative or 1e-15 absolute.

#![expect(clippy::unwrap_used, reason = "a table that cannot be read fails the test")]

use perflab_stats::*;
use serde_json::Value;

fn table(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {row}"))
}

fn numbers(row: &Value, key: &str) -> Vec<f64> {
    row[key].as_array().unwrap().iter().map(|item| item.as_f64().unwrap()).collect()
}

fn counts(row: &Value, key: &str) -> Vec<usize> {
    numbers(row, key).into_iter().map(|count| count as usize).collect()
}

#[track_caller]
fn close(got: f64, wanted: f64) {
    let error = (got - wanted).abs();
    assert!(error <= 1e-9 * wanted.abs() || error <= 1e-13, "got {got}, wanted {wanted}");
}

#[track_caller]
fn all_close(got: &[f64], wanted: &[f64]) {
    assert_eq!(got.len(), wanted.len());
    got.iter().zip(wanted).for_each(|(got, wanted)| close(*got, *wanted));
}

#[track_caller]
fn close_p(got: f64, wanted: f64) {
    let error = (got - wanted).abs();
    assert!(error <= 1e-9 * wanted || error <= 1e-15, "got p {got:e}, wanted {wanted:e}");
}

/// Value, low and high.
fn three(estimate: &Estimate) -> [f64; 3] {
    let interval = estimate.interval.unwrap();
    [estimate.value, interval.low, interval.high]
}

#[track_caller]
fn same_interval(got: Option<Interval>, wanted: &Value) {
    match (got, wanted) {
        (None, Value::Null) => {}
        (Some(got), Value::Array(wanted)) => {
            let wanted: Vec<f64> = wanted.iter().map(|item| item.as_f64().unwrap()).collect();
            all_close(&[got.low, got.high, got.level], &wanted);
        }
        (got, wanted) => panic!("interval {got:?}, wanted {wanted}"),
    }
}

#[test]
fn welch_and_means_of_r() {
    for row in table("r_welch") {
        let (x, y, confidence) = (numbers(&row, "x"), numbers(&row, "y"), number(&row, "confidence"));
        let found = welch(&x, &y).unwrap();
        close(found.t, number(&row, "t"));
        close(found.freedom, number(&row, "freedom"));
        close(found.standard_error, number(&row, "standard_error"));
        close_p(found.p, number(&row, "p"));
        all_close(&three(&welch_shift(&x, &y, confidence).unwrap()), &numbers(&row, "shift"));
        all_close(&three(&welch_ratio(&x, &y, confidence).unwrap()), &numbers(&row, "ratio"));
        all_close(&three(&mean_with_interval(&x, confidence).unwrap()), &numbers(&row, "mean"));
    }
}

#[test]
fn equivalence_of_r() {
    for row in table("r_equivalence") {
        let (x, y, margin, ratio) =
            (numbers(&row, "x"), numbers(&row, "y"), number(&row, "margin"), number(&row, "ratio"));
        let shift = equivalent_shift(&x, &y, -margin, margin).unwrap();
        let logs = equivalent_ratio(&x, &y, ratio.recip(), ratio).unwrap();
        for (found, key) in [(shift, "shift"), (logs, "logs")] {
            let wanted = numbers(&row, key);
            close_p(found.p_above_low, wanted[0]);
            close_p(found.p_below_high, wanted[1]);
            assert_eq!(found.p, found.p_above_low.max(found.p_below_high));
            let interval = found.interval(0.05).unwrap();
            all_close(&[interval.low, interval.high], &wanted[2..]);
        }
        assert_eq!(shift.p < 0.05, shift.interval(0.05).unwrap().is_inside(-margin, margin));
    }
}

#[test]
fn adjusted_p_values_of_r() {
    for row in table("r_adjusted") {
        let p = numbers(&row, "p");
        all_close(&benjamini_hochberg(&p).unwrap(), &numbers(&row, "bh"));
        all_close(&benjamini_yekutieli(&p).unwrap(), &numbers(&row, "by"));
    }
}

#[test]
fn means_of_r() {
    for row in table("r_means") {
        let (x, share) = (numbers(&row, "x"), number(&row, "share"));
        close(trimmed_mean(&x, share).unwrap(), number(&row, "trimmed"));
        close(winsorised_mean(&x, share).unwrap(), number(&row, "winsorised"));
        close(harmonic_mean(&x).unwrap(), number(&row, "harmonic"));
        close(quartile_coefficient(&x).unwrap(), number(&row, "quartile"));
        match row["variation"].as_f64() {
            Some(wanted) => close(coefficient_of_variation(&x).unwrap(), wanted),
            None => assert_eq!(coefficient_of_variation(&x), Err(StatsError::TooFew { needed: 2, got: 1 })),
        }
    }
}

#[test]
fn noise_of_boots_as_by_analysis_of_variance_in_r() {
    for row in table("r_boots") {
        let (y, sizes) = (numbers(&row, "y"), counts(&row, "sizes"));
        let mut rest = y.as_slice();
        let mut boots = Vec::new();
        for size in sizes {
            let (boot, after) = rest.split_at(size);
            boots.push(boot);
            rest = after;
        }
        let noise = Noise::of_boots(&boots).unwrap();
        close(noise.within, number(&row, "within"));
        close(noise.between, number(&row, "between"));
    }
}

#[test]
fn prediction_of_r() {
    for row in table("r_prediction") {
        let (x, confidence) = (numbers(&row, "x"), number(&row, "confidence"));
        all_close(&three(&prediction_interval(&x, confidence).unwrap()), &numbers(&row, "plain"));
        all_close(&three(&prediction_interval_log(&x, confidence).unwrap()), &numbers(&row, "logs"));
    }
}

#[test]
fn best_of_as_mmtests_defines_it() {
    for row in table("best_of") {
        let (x, percent) = (numbers(&row, "x"), number(&row, "percent"));
        let better = if row["higher"] == true { Better::Higher } else { Better::Lower };
        assert_eq!(best_of(&x, better, percent).unwrap().len() as f64, number(&row, "kept"));
        close(best_of_mean(&x, better, percent).unwrap(), number(&row, "mean"));
        close(best_of_percentile(&x, better, percent).unwrap(), number(&row, "percentile"));
        if x.len() > 1 {
            close(harmonic_sd(&x).unwrap(), number(&row, "harmonic_sd"));
        }
    }
}

#[test]
fn quantiles_with_intervals() {
    for row in table("quantiles") {
        let (x, fraction) = (numbers(&row, "x"), number(&row, "fraction"));
        let found = quantile_with_interval(&x, fraction, number(&row, "confidence")).unwrap();
        close(found.value, number(&row, "value"));
        same_interval(found.interval, &row["interval"]);
        close(harrell_davis(&x, fraction).unwrap(), number(&row, "harrell_davis"));
    }
}

#[test]
fn fieller_as_roots_of_the_polynomial() {
    for row in table("fieller") {
        let [x, y] = ["x", "y"].map(|key| UncertainMean::of(&numbers(&row, key)).unwrap());
        let found = fieller(x, y, number(&row, "confidence")).unwrap();
        close(found.value, number(&row, "value"));
        same_interval(found.interval, &row["interval"]);
    }
}

#[test]
fn cliffs_delta_over_all_pairs() {
    for row in table("cliff") {
        let found = cliffs_delta(&numbers(&row, "x"), &numbers(&row, "y"), 0.95).unwrap();
        close(found.value, number(&row, "value"));
        same_interval(found.interval, &row["interval"]);
    }
}

#[test]
fn levels_of_nested_values() {
    for row in table("levels") {
        let found = Levels::of(&numbers(&row, "values"), &counts(&row, "repetitions")).unwrap();
        close(found.mean, number(&row, "mean"));
        all_close(&found.observed, &numbers(&row, "observed"));
        all_close(&found.components, &numbers(&row, "components"));
    }
}

#[test]
fn segments_as_by_trying_every_cut() {
    for row in table("segment_costs") {
        let x = numbers(&row, "x");
        let found = segments(&x, number(&row, "penalty")).unwrap();
        assert_eq!(found.iter().map(|segment| segment.end).collect::<Vec<_>>(), counts(&row, "ends"));
        for segment in &found {
            close(segment.mean, mean(&x[segment.start..segment.end]).unwrap());
        }
    }
}

/// The change points of Apache Otava in its own test data, with its spread.
#[test]
fn tigerbeetle_of_otava() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tigerbeetle.json");
    let data: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let series = numbers(&data, "series");
    for case in data["cases"].as_array().unwrap() {
        let window = number(case, "window") as usize;
        let found = Hunter::as_otava(window, number(case, "level"), number(case, "least_change"))
            .find(&series)
            .unwrap();
        assert_eq!(found.iter().map(|step| step.index).collect::<Vec<_>>(), counts(case, "steps"), "{case}");
    }
}

/// To the grid that the width is found on.
#[test]
fn the_width_with_one_peak() {
    for row in table("one_mode") {
        let x = numbers(&row, "x");
        let range = x.iter().fold(f64::MIN, |a, b| a.max(*b)) - x.iter().fold(f64::MAX, |a, b| a.min(*b));
        let found = one_mode(&x, 1, 1).unwrap().width;
        assert!((found - number(&row, "width")).abs() <= range / 400.0, "{found} {row}");
    }
}

/// The p-values of R's package are interpolated in a table made by simulation; ours are simulated for the size.
#[test]
fn the_dip_of_r() {
    for row in table("r_dip") {
        let x = numbers(&row, "x");
        let resamples = if x.len() <= 60 { 999 } else { 99 };
        let found = dip_test(&x, resamples, 1).unwrap();
        close(found.dip, number(&row, "dip"));
        // Below, the table's interpolation is coarse: its p of the least dip that there can be is not 1.
        if x.len() < 13 {
            continue;
        }
        let wanted = number(&row, "p");
        let error = 4.0 * (wanted * (1.0 - wanted) / resamples as f64).sqrt() + 0.02;
        assert!((found.p - wanted).abs() <= error, "{found:?} {row}");
    }
}

#[test]
fn two_one_sided_rank_tests_of_r() {
    for row in table("r_rank_equivalence") {
        let [x, y] = ["x", "y"].map(|key| numbers(&row, key));
        let margin = number(&row, "margin");
        let found = equivalent_shift_by_ranks(&x, &y, -margin, margin).unwrap();
        close_p(found.p_above_low, number(&row, "above_low"));
        close_p(found.p_below_high, number(&row, "below_high"));
        let narrow = hodges_lehmann_shift(&x, &y, 0.9).unwrap().interval;
        let inside = narrow.is_some_and(|narrow| -margin < narrow.low && narrow.high < margin);
        assert_eq!(found.p <= 0.05, inside, "{found:?} {narrow:?} {margin}");
    }
}

/// R gives the whole range where the sample is too small for the level; we give no interval.
#[test]
fn wilcoxon_of_r() {
    for row in table("r_wilcoxon") {
        let [x, y, z] = ["x", "y", "z"].map(|key| numbers(&row, key));
        let confidence = number(&row, "confidence");
        let (u, v) = (mann_whitney(&x, &z).unwrap(), signed_rank(&x, &y).unwrap());
        all_close(&[u.u, v.positive], &[number(&row, "u"), number(&row, "v")]);
        close_p(u.p, number(&row, "u_p"));
        close_p(v.p, number(&row, "v_p"));
        let shifts = [
            (hodges_lehmann_shift(&x, &z, confidence).unwrap(), "u_shift"),
            (pseudo_median_shift(&x, &y, confidence).unwrap(), "v_shift"),
        ];
        for (shift, key) in shifts {
            let wanted = numbers(&row, key);
            close(shift.value, wanted[0]);
            if let Some(interval) = shift.interval {
                all_close(&[interval.low, interval.high], &wanted[1..]);
            }
        }
        let has = |estimate: &Estimate| estimate.interval.is_some();
        assert!(shifts.iter().all(|(shift, _)| has(shift)) || x.len() < 6, "{row}");
    }
}
