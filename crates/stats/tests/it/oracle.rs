//! Against the tables of `data/make_tables.py` and `data/make_more_tables.py` (SciPy 1.17.1, or the definition by another
//! road), `data/make_tables.R` (R 4.2.2), to 1e-9 relative; p-values to 1e-9
//! relative or 1e-15 absolute.

use perflab_stats::*;
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

fn read_numbers(row: &Value, key: &str) -> Vec<f64> {
    parse_numbers(&row[key])
}

fn read_counts(row: &Value, key: &str) -> Vec<usize> {
    read_numbers(row, key).into_iter().map(|count| count as usize).collect()
}

fn read_samples(row: &Value) -> (Vec<f64>, Vec<f64>) {
    (read_numbers(row, "x"), read_numbers(row, "y"))
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    let error = (got - expected).abs();
    assert!(error <= 1e-9 * expected.abs() || error <= 1e-13, "got {got}, expected {expected}");
}

#[track_caller]
fn assert_all_close(got: &[f64], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    got.iter().zip(expected).for_each(|(got, expected)| assert_close(*got, *expected));
}

#[track_caller]
fn assert_close_p(got: f64, expected: f64) {
    let error = (got - expected).abs();
    assert!(error <= 1e-9 * expected || error <= 1e-15, "got p {got:e}, expected {expected:e}");
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
                .for_each(|(got, expected)| assert_close(*got, expected));
        }
        (got, expected) => panic!("interval {got:?}, expected {expected}"),
    }
}

/// Value, low and high.
fn value_with_limits(estimate: &IntervalEstimate) -> [f64; 3] {
    let interval = estimate.interval.unwrap();
    [estimate.value, interval.low, interval.high]
}

#[test]
fn one_sample_statistics() {
    for row in read_table("one_sample") {
        let x = read_numbers(&row, "x");
        assert_close(mean(&x).unwrap(), read_number(&row, "mean"));
        assert_close(median(&x).unwrap(), read_number(&row, "median"));
        assert_close(sd(&x).unwrap(), read_number(&row, "sd"));
        assert_close(mad(&x).unwrap(), read_number(&row, "mad"));
        assert_close(inter_quartile_range(&x).unwrap(), read_number(&row, "iqr"));
        assert_close(geometric_mean(&x).unwrap(), read_number(&row, "geometric_mean"));
        for pair in row["quantiles"].as_array().unwrap().iter().map(parse_numbers) {
            assert_close(quantile(&x, pair[0]).unwrap(), pair[1]);
        }
    }
}

#[test]
fn median_intervals() {
    for row in read_table("median_intervals") {
        let confidence = read_number(&row, "confidence");
        let got = median_with_interval(&read_numbers(&row, "x"), confidence).unwrap();
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
        let MannWhitney { u, superiority, p, method } = mann_whitney(&x, &y).unwrap();
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
        let SignedRank { positive, pairs, p, method } = signed_rank(&x, &y).unwrap();
        assert_same_method(method, &row);
        assert_close(positive, read_number(&row, "positive"));
        assert_eq!(pairs as u64, row["pairs"].as_u64().unwrap());
        assert_close_p(p, read_number(&row, "p"));
    }
}

#[test]
fn benjamini_hochberg_adjusts() {
    for row in read_table("benjamini_hochberg") {
        let got = benjamini_hochberg(&read_numbers(&row, "p")).unwrap();
        got.iter().zip(read_numbers(&row, "q")).for_each(|(got, expected)| assert_close_p(*got, expected));
    }
}

#[test]
fn spearman_exact_and_approximate() {
    for row in read_table("spearman") {
        let (x, y) = read_samples(&row);
        let RankCorrelation { rho, p, method } = spearman(&x, &y).unwrap();
        assert_same_method(method, &row);
        assert_close(rho, read_number(&row, "rho"));
        assert_close_p(p, read_number(&row, "p"));
    }
}

#[test]
fn autocorrelation_as_by_numpy() {
    for row in read_table("autocorrelation") {
        let got = lag_one_autocorrelation(&read_numbers(&row, "x")).unwrap();
        assert_close(got, read_number(&row, "rho"));
    }
}

fn read_rules(row: &Value) -> PowerRules {
    let pairing = if row["pairing"] == "Paired" { SamplePairing::Paired } else { SamplePairing::Independent };
    PowerRules {
        pairing,
        confidence: read_number(row, "confidence"),
        power: read_number(row, "power"),
        ..PowerRules::default()
    }
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

#[test]
fn welch_and_means_of_r() {
    for row in read_table("r_welch") {
        let (x, y, confidence) =
            (read_numbers(&row, "x"), read_numbers(&row, "y"), read_number(&row, "confidence"));
        let found = welch(&x, &y).unwrap();
        assert_close(found.t, read_number(&row, "t"));
        assert_close(found.freedom, read_number(&row, "freedom"));
        assert_close(found.standard_error, read_number(&row, "standard_error"));
        assert_close_p(found.p, read_number(&row, "p"));
        let interval = found.interval(confidence).unwrap();
        assert_all_close(&[found.difference, interval.low, interval.high], &read_numbers(&row, "shift"));
        assert_all_close(
            &value_with_limits(&mean_with_interval(&x, confidence).unwrap()),
            &read_numbers(&row, "mean"),
        );
    }
}

#[test]
fn adjusted_p_values_of_r() {
    for row in read_table("r_adjusted") {
        let p = read_numbers(&row, "p");
        assert_all_close(&benjamini_hochberg(&p).unwrap(), &read_numbers(&row, "bh"));
        assert_all_close(&benjamini_yekutieli(&p).unwrap(), &read_numbers(&row, "by"));
    }
}

#[test]
fn means_of_r() {
    for row in read_table("r_means") {
        let (x, share) = (read_numbers(&row, "x"), read_number(&row, "share"));
        assert_close(trimmed_mean(&x, share).unwrap(), read_number(&row, "trimmed"));
        assert_close(harmonic_mean(&x).unwrap(), read_number(&row, "harmonic"));
        match row["variation"].as_f64() {
            Some(expected) => assert_close(coefficient_of_variation(&x).unwrap(), expected),
            None => assert_eq!(coefficient_of_variation(&x), Err(StatsError::TooFew { needed: 2, got: 1 })),
        }
    }
}

#[test]
fn noise_of_boots_as_by_analysis_of_variance_in_r() {
    for row in read_table("r_boots") {
        let (y, sizes) = (read_numbers(&row, "y"), read_counts(&row, "sizes"));
        let mut rest = y.as_slice();
        let mut boots = Vec::new();
        for size in sizes {
            let (boot, after) = rest.split_at(size);
            boots.push(boot);
            rest = after;
        }
        let noise = TwoLevelNoise::from_boots(&boots).unwrap();
        assert_close(noise.within, read_number(&row, "within"));
        assert_close(noise.between, read_number(&row, "between"));
    }
}

#[test]
fn prediction_of_r() {
    for row in read_table("r_prediction") {
        let (x, confidence) = (read_numbers(&row, "x"), read_number(&row, "confidence"));
        assert_all_close(
            &value_with_limits(&prediction_interval(&x, confidence).unwrap()),
            &read_numbers(&row, "plain"),
        );
    }
}

#[test]
fn best_of_as_mmtests_defines_it() {
    for row in read_table("best_of") {
        let (x, percent) = (read_numbers(&row, "x"), read_number(&row, "percent"));
        let better = if row["higher"] == true { BetterDirection::Higher } else { BetterDirection::Lower };
        assert_close(best_of_mean(&x, better, percent).unwrap(), read_number(&row, "mean"));
        assert_close(best_of_percentile(&x, better, percent).unwrap(), read_number(&row, "percentile"));
        if x.len() > 1 {
            assert_close(harmonic_sd(&x).unwrap(), read_number(&row, "harmonic_sd"));
        }
    }
}

/// The table takes negative variances into the levels above, as they are; where there is none, both agree.
#[test]
fn levels_of_nested_values() {
    let mut compared = 0;
    for row in read_table("levels") {
        let repetitions = read_counts(&row, "repetitions");
        let expected = read_numbers(&row, "components");
        let is_negative_below = expected.iter().rev().skip(1).any(|component| *component == 0.0);
        if is_negative_below {
            continue;
        }
        let group_of = |at: usize| {
            // The number of the group of each level within the one above, the highest level first; levels there are not, first of all.
            let mut path = [0; 3];
            let mut rest = at / repetitions[0];
            for (level, count) in path.iter_mut().rev().zip(&repetitions[1..]) {
                (*level, rest) = (u32::try_from(rest % count).unwrap(), rest / count);
            }
            path
        };
        let values = read_numbers(&row, "values").into_iter().enumerate();
        let values: Vec<([u32; 3], f64)> = values.map(|(at, value)| (group_of(at), value)).collect();
        let found = NestedComponents::from_paths(&values).unwrap();
        let levels = std::iter::once(&found.values).chain(found.levels.iter().rev());
        let variances: Vec<f64> = levels.filter_map(|level| level.variance).collect();
        assert_all_close(&variances, &expected);
        compared += 1;
    }
    assert!(compared >= 4, "{compared}");
}

/// Dense matrices and a general optimiser: the optimum is known to about 1e-6 of a variance, and where the criterion is flat.
#[test]
fn random_effects_of_groups_of_unequal_size() {
    let near = |found: f64, expected: f64, name: &Value, what: &str| {
        assert!(
            (found - expected).abs() <= 2e-5 * expected.abs().max(1e-3),
            "{name} {what}: {found} {expected}"
        );
    };
    for row in read_table("random_effects") {
        let name = &row["name"];
        let pairs = row["values"].as_array().unwrap();
        let path = |pair: &Value| -> Vec<u32> {
            parse_numbers(&pair[0]).into_iter().map(|number| number as u32).collect()
        };
        let with_path = |pair: &Value| {
            let path = path(pair);
            // One level more, which does not repeat, changes nothing.
            ([path[0], path.get(1).copied().unwrap_or(0)], pair[1].as_f64().unwrap())
        };
        let values: Vec<([u32; 2], f64)> = pairs.iter().map(with_path).collect();
        let found = RandomEffects::from_paths(&values).unwrap();
        let variances: Vec<f64> = found.levels.iter().copied().flatten().chain([found.values]).collect();
        let expected = read_numbers(&row, "variances");
        assert_eq!(variances.len(), expected.len(), "{name}");
        for (variance, expected) in variances.iter().zip(&expected) {
            near(*variance, *expected, name, "variance");
        }
        near(found.criterion, read_number(&row, "criterion"), name, "criterion");
        near(found.mean.value, read_number(&row, "mean"), name, "mean");
        near(found.mean.standard_error, read_number(&row, "standard_error"), name, "standard error");
        let groups = values.iter().map(|(path, _)| path[0]).collect::<std::collections::BTreeSet<_>>().len();
        near(found.mean.freedom, read_number(&row, "freedom").max(groups as f64 - 1.0), name, "freedom");
    }
}

#[test]
fn segments_as_by_trying_every_cut() {
    for row in read_table("segment_costs") {
        let x = read_numbers(&row, "x");
        let found = find_segments(&x, read_number(&row, "penalty")).unwrap();
        assert_eq!(found.iter().map(|segment| segment.end).collect::<Vec<_>>(), read_counts(&row, "ends"));
        for segment in &found {
            assert_close(segment.mean, mean(&x[segment.start..segment.end]).unwrap());
        }
    }
}

/// R gives the whole range where the sample is too small for the level; we give no interval.
#[test]
fn wilcoxon_of_r() {
    for row in read_table("r_wilcoxon") {
        let [x, y, z] = ["x", "y", "z"].map(|key| read_numbers(&row, key));
        let confidence = read_number(&row, "confidence");
        let (u, v) = (mann_whitney(&x, &z).unwrap(), signed_rank(&x, &y).unwrap());
        assert_all_close(&[u.u, v.positive], &[read_number(&row, "u"), read_number(&row, "v")]);
        assert_close_p(u.p, read_number(&row, "u_p"));
        assert_close_p(v.p, read_number(&row, "v_p"));
        let shifts = [
            (PairwiseShifts::absolute(&x, &z).unwrap().estimate(confidence).unwrap(), "u_shift"),
            (WalshAverages::absolute(&x, &y).unwrap().estimate(confidence).unwrap(), "v_shift"),
        ];
        for (shift, key) in shifts {
            let expected = read_numbers(&row, key);
            assert_close(shift.value, expected[0]);
            if let Some(interval) = shift.interval {
                assert_all_close(&[interval.low, interval.high], &expected[1..]);
            }
        }
        let has = |estimate: &IntervalEstimate| estimate.interval.is_some();
        assert!(shifts.iter().all(|(shift, _)| has(shift)) || x.len() < 6, "{row}");
    }
}
