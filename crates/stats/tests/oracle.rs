//! Against the tables of `data/make_tables.py` (SciPy 1.17.1, or the definition by another road), to 1e-9
//! relative; p-values to 1e-9 relative or 1e-15 absolute.

#![expect(clippy::unwrap_used, reason = "a table that cannot be read fails the test")]

use perflab_stats::{
    Correlation, Estimate, Goal, MannWhitney, Method, Pairing, PairwiseShifts, Plan, SignedRank,
    WalshAverages,
};
use serde_json::Value;

fn table(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("no number {key} in {row}"))
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|item| item.as_f64().unwrap()).collect()
}

fn samples(row: &Value) -> (Vec<f64>, Vec<f64>) {
    (numbers(&row["x"]), numbers(&row["y"]))
}

#[track_caller]
fn close(got: f64, wanted: f64) {
    let error = (got - wanted).abs();
    assert!(error <= 1e-9 * wanted.abs() || error <= 1e-13, "got {got}, wanted {wanted}");
}

#[track_caller]
fn close_p(got: f64, wanted: f64) {
    let error = (got - wanted).abs();
    assert!(error <= 1e-9 * wanted || error <= 1e-15, "got p {got:e}, wanted {wanted:e}");
}

#[track_caller]
fn same_method(got: Method, row: &Value) {
    assert_eq!(format!("{got:?}"), row["method"].as_str().unwrap());
}

/// An expected interval is `[low, high, level]`, or null where there is none.
#[track_caller]
fn same_estimate(got: &Estimate, expected: &Value) {
    close(got.value, number(expected, "value"));
    let limits = got.interval.map(|interval| vec![interval.low, interval.high, interval.level]);
    match (limits, &expected["interval"]) {
        (None, Value::Null) => {}
        (Some(got), Value::Array(_)) => {
            got.iter().zip(numbers(&expected["interval"])).for_each(|(got, wanted)| close(*got, wanted));
        }
        (got, wanted) => panic!("interval {got:?}, wanted {wanted}"),
    }
}

#[test]
fn one_sample_statistics() {
    for row in table("one_sample") {
        let x = numbers(&row["x"]);
        close(perflab_stats::mean(&x).unwrap(), number(&row, "mean"));
        close(perflab_stats::median(&x).unwrap(), number(&row, "median"));
        close(perflab_stats::sd(&x).unwrap(), number(&row, "sd"));
        close(perflab_stats::mad(&x).unwrap(), number(&row, "mad"));
        close(perflab_stats::inter_quartile_range(&x).unwrap(), number(&row, "iqr"));
        close(perflab_stats::geometric_mean(&x).unwrap(), number(&row, "geometric_mean"));
        for pair in row["quantiles"].as_array().unwrap().iter().map(numbers) {
            close(perflab_stats::quantile(&x, pair[0]).unwrap(), pair[1]);
        }
    }
}

#[test]
fn median_intervals() {
    for row in table("median_intervals") {
        let confidence = number(&row, "confidence");
        let got = perflab_stats::median_with_interval(&numbers(&row["x"]), confidence).unwrap();
        same_estimate(&got, &row);
    }
}

#[test]
fn hodges_lehmann_shift_and_ratio() {
    for row in table("hodges_lehmann") {
        let ((x, y), confidence) = (samples(&row), number(&row, "confidence"));
        let shift = PairwiseShifts::absolute(&x, &y).unwrap().estimate(confidence).unwrap();
        same_estimate(&shift, &row["shift"]);
        let ratio = PairwiseShifts::relative(&x, &y).unwrap().estimate(confidence).unwrap();
        same_estimate(&ratio, &row["ratio"]);
    }
}

#[test]
fn pseudo_median_shift_and_ratio() {
    for row in table("pseudo_median") {
        let ((x, y), confidence) = (samples(&row), number(&row, "confidence"));
        let shift = WalshAverages::absolute(&x, &y).unwrap().estimate(confidence).unwrap();
        same_estimate(&shift, &row["shift"]);
        let ratio = WalshAverages::relative(&x, &y).unwrap().estimate(confidence).unwrap();
        same_estimate(&ratio, &row["ratio"]);
    }
}

#[test]
fn mann_whitney_exact_tied_and_approximate() {
    for row in table("mann_whitney") {
        let (x, y) = samples(&row);
        let MannWhitney { u, superiority, p, method } = perflab_stats::mann_whitney(&x, &y).unwrap();
        same_method(method, &row);
        close(u, number(&row, "u"));
        close(superiority, u / (x.len() * y.len()) as f64);
        close_p(p, number(&row, "p"));
    }
}

#[test]
fn signed_rank_exact_tied_and_approximate() {
    for row in table("signed_rank") {
        let (x, y) = samples(&row);
        let SignedRank { positive, pairs, p, method } = perflab_stats::signed_rank(&x, &y).unwrap();
        same_method(method, &row);
        close(positive, number(&row, "positive"));
        assert_eq!(pairs as u64, row["pairs"].as_u64().unwrap());
        close_p(p, number(&row, "p"));
    }
}

#[test]
fn benjamini_hochberg_adjusts() {
    for row in table("benjamini_hochberg") {
        let got = perflab_stats::benjamini_hochberg(&numbers(&row["p"])).unwrap();
        got.iter().zip(numbers(&row["q"])).for_each(|(got, wanted)| close_p(*got, wanted));
    }
}

#[test]
fn spearman_exact_and_approximate() {
    for row in table("spearman") {
        let (x, y) = samples(&row);
        let Correlation { rho, p, method } = perflab_stats::spearman(&x, &y).unwrap();
        same_method(method, &row);
        close(rho, number(&row, "rho"));
        close_p(p, number(&row, "p"));
    }
}

#[test]
fn lag_one_autocorrelation() {
    for row in table("autocorrelation") {
        let got = perflab_stats::lag_one_autocorrelation(&numbers(&row["x"])).unwrap();
        close(got, number(&row, "rho"));
    }
}

fn plan(row: &Value) -> Plan {
    let pairing = if row["pairing"] == "Paired" { Pairing::Paired } else { Pairing::Independent };
    Plan { pairing, confidence: number(row, "confidence"), power: number(row, "power") }
}

#[test]
fn plans() {
    for row in table("planning") {
        let (plan, sd, size) = (plan(&row), number(&row, "sd"), number(&row, "size"));
        for pair in row["detectable"].as_array().unwrap().iter().map(numbers) {
            close(plan.detectable_change(sd, pair[0] as usize).unwrap(), pair[1]);
        }
        let needed = |goal| plan.needed_repetitions(sd, goal).unwrap().unwrap() as u64;
        let [detect, same, width] = ["detect", "same", "half_width"].map(|key| row[key].as_u64().unwrap());
        assert_eq!(needed(Goal::Detect(size)), detect, "{row}");
        assert_eq!(needed(Goal::ShowSame(size)), same, "{row}");
        assert_eq!(needed(Goal::HalfWidth(size)), width, "{row}");
        assert_eq!(needed(Goal::Decide(size)), detect.max(same), "{row}");
    }
}
