//! Against the tables of `data/make_tables.py` (SciPy 1.17.1, or the definition by another road), to 1e-9
//! relative; p-values to 1e-9 relative or 1e-15 absolute.

#![expect(clippy::unwrap_used, reason = "a table that cannot be read fails the test")]

use perflab_stats::{
    InferenceMethod, IntervalEstimate, MannWhitney, PairwiseShifts, PowerGoal, PowerRules, RankCorrelation,
    SamplePairing, SignedRank, WalshAverages,
};
use serde_json::Value;

fn read_table(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn read_number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {row}"))
}

fn parse_numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|item| item.as_f64().unwrap()).collect()
}

fn read_samples(row: &Value) -> (Vec<f64>, Vec<f64>) {
    (parse_numbers(&row["x"]), parse_numbers(&row["y"]))
}

#[track_caller]
fn assert_close(got: f64, wanted: f64) {
    let error = (got - wanted).abs();
    assert!(error <= 1e-9 * wanted.abs() || error <= 1e-13, "got {got}, wanted {wanted}");
}

#[track_caller]
fn assert_close_p(got: f64, wanted: f64) {
    let error = (got - wanted).abs();
    assert!(error <= 1e-9 * wanted || error <= 1e-15, "got p {got:e}, wanted {wanted:e}");
}

#[track_caller]
fn assert_same_method(got: InferenceMethod, row: &Value) {
    assert_eq!(format!("{got:?}"), row["method"].as_str().unwrap());
}

/// An expected interval is `[low, high, level]`, or null where there is none.
#[track_caller]
fn assert_same_estimate(got: &IntervalEstimate, expected: &Value) {
    assert_close(got.value, read_number(expected, "value"));
    let limits = got.interval.map(|interval| vec![interval.low, interval.high, interval.level]);
    match (limits, &expected["interval"]) {
        (None, Value::Null) => {}
        (Some(got), Value::Array(_)) => {
            got.iter()
                .zip(parse_numbers(&expected["interval"]))
                .for_each(|(got, wanted)| assert_close(*got, wanted));
        }
        (got, wanted) => panic!("interval {got:?}, wanted {wanted}"),
    }
}

#[test]
fn one_sample_statistics() {
    for row in read_table("one_sample") {
        let x = parse_numbers(&row["x"]);
        assert_close(perflab_stats::mean(&x).unwrap(), read_number(&row, "mean"));
        assert_close(perflab_stats::median(&x).unwrap(), read_number(&row, "median"));
        assert_close(perflab_stats::sd(&x).unwrap(), read_number(&row, "sd"));
        assert_close(perflab_stats::mad(&x).unwrap(), read_number(&row, "mad"));
        assert_close(perflab_stats::inter_quartile_range(&x).unwrap(), read_number(&row, "iqr"));
        assert_close(perflab_stats::geometric_mean(&x).unwrap(), read_number(&row, "geometric_mean"));
        for pair in row["quantiles"].as_array().unwrap().iter().map(parse_numbers) {
            assert_close(perflab_stats::quantile(&x, pair[0]).unwrap(), pair[1]);
        }
    }
}

#[test]
fn median_intervals() {
    for row in read_table("median_intervals") {
        let confidence = read_number(&row, "confidence");
        let got = perflab_stats::median_with_interval(&parse_numbers(&row["x"]), confidence).unwrap();
        assert_same_estimate(&got, &row);
    }
}

#[test]
fn hodges_lehmann_shift_and_ratio() {
    for row in read_table("hodges_lehmann") {
        let ((x, y), confidence) = (read_samples(&row), read_number(&row, "confidence"));
        let shift = PairwiseShifts::absolute(&x, &y).unwrap().estimate(confidence).unwrap();
        assert_same_estimate(&shift, &row["shift"]);
        let ratio = PairwiseShifts::relative(&x, &y).unwrap().estimate(confidence).unwrap();
        assert_same_estimate(&ratio, &row["ratio"]);
    }
}

#[test]
fn pseudo_median_shift_and_ratio() {
    for row in read_table("pseudo_median") {
        let ((x, y), confidence) = (read_samples(&row), read_number(&row, "confidence"));
        let shift = WalshAverages::absolute(&x, &y).unwrap().estimate(confidence).unwrap();
        assert_same_estimate(&shift, &row["shift"]);
        let ratio = WalshAverages::relative(&x, &y).unwrap().estimate(confidence).unwrap();
        assert_same_estimate(&ratio, &row["ratio"]);
    }
}

#[test]
fn mann_whitney_exact_tied_and_approximate() {
    for row in read_table("mann_whitney") {
        let (x, y) = read_samples(&row);
        let MannWhitney { u, superiority, p, method } = perflab_stats::mann_whitney(&x, &y).unwrap();
        assert_same_method(method, &row);
        assert_close(u, read_number(&row, "u"));
        assert_close(superiority, u / (x.len() * y.len()) as f64);
        assert_close_p(p, read_number(&row, "p"));
    }
}

#[test]
fn signed_rank_exact_tied_and_approximate() {
    for row in read_table("signed_rank") {
        let (x, y) = read_samples(&row);
        let SignedRank { positive, pairs, p, method } = perflab_stats::signed_rank(&x, &y).unwrap();
        assert_same_method(method, &row);
        assert_close(positive, read_number(&row, "positive"));
        assert_eq!(pairs as u64, row["pairs"].as_u64().unwrap());
        assert_close_p(p, read_number(&row, "p"));
    }
}

#[test]
fn benjamini_hochberg_adjusts() {
    for row in read_table("benjamini_hochberg") {
        let got = perflab_stats::benjamini_hochberg(&parse_numbers(&row["p"])).unwrap();
        got.iter().zip(parse_numbers(&row["q"])).for_each(|(got, wanted)| assert_close_p(*got, wanted));
    }
}

#[test]
fn spearman_exact_and_approximate() {
    for row in read_table("spearman") {
        let (x, y) = read_samples(&row);
        let RankCorrelation { rho, p, method } = perflab_stats::spearman(&x, &y).unwrap();
        assert_same_method(method, &row);
        assert_close(rho, read_number(&row, "rho"));
        assert_close_p(p, read_number(&row, "p"));
    }
}

#[test]
fn lag_one_autocorrelation() {
    for row in read_table("autocorrelation") {
        let got = perflab_stats::lag_one_autocorrelation(&parse_numbers(&row["x"])).unwrap();
        assert_close(got, read_number(&row, "rho"));
    }
}

fn read_rules(row: &Value) -> PowerRules {
    let pairing = if row["pairing"] == "Paired" { SamplePairing::Paired } else { SamplePairing::Independent };
    PowerRules { pairing, confidence: read_number(row, "confidence"), power: read_number(row, "power") }
}

#[test]
fn plans() {
    for row in read_table("planning") {
        let (plan, sd, size) = (read_rules(&row), read_number(&row, "sd"), read_number(&row, "size"));
        for pair in row["detectable"].as_array().unwrap().iter().map(parse_numbers) {
            assert_close(plan.detectable_change(sd, pair[0] as usize).unwrap(), pair[1]);
        }
        let needed = |goal| plan.needed_repetitions(sd, goal).unwrap().unwrap() as u64;
        let [detect, same, width] = ["detect", "same", "half_width"].map(|key| row[key].as_u64().unwrap());
        assert_eq!(needed(PowerGoal::Detect(size)), detect, "{row}");
        assert_eq!(needed(PowerGoal::ShowSame(size)), same, "{row}");
        assert_eq!(needed(PowerGoal::HalfWidth(size)), width, "{row}");
        assert_eq!(needed(PowerGoal::Decide(size)), detect.max(same), "{row}");
    }
}
