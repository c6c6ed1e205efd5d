use super::{ClusterBootstrap, Jackknife, limits};
use crate::{StatsError, mean, median};
use serde_json::Value;

fn parse_numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|item| item.as_f64().unwrap()).collect()
}

#[track_caller]
fn assert_close(got: f64, wanted: f64) {
    assert!((got - wanted).abs() <= 1e-9 * wanted.abs(), "{got} {wanted}");
}

/// Replicates given, SciPy's `bootstrap` and ours must agree on the limits.
#[test]
fn bca_limits_of_scipy() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../../tests/data/bca.json")).unwrap();
    for row in rows {
        let sides: Vec<Vec<Vec<f64>>> = row["sides"]
            .as_array()
            .unwrap()
            .iter()
            .map(|side| parse_numbers(side).iter().map(|v| vec![*v]).collect())
            .collect();
        let statistic = |sides: &[Vec<f64>]| match sides {
            [x, y] => Ok(mean(y)? / mean(x)?),
            sides => mean(&sides[0]),
        };
        let jackknife = Jackknife::from_sides(&sides, &statistic).unwrap();
        assert_close(jackknife.acceleration(), row["acceleration"].as_f64().unwrap());
        let value = row["value"].as_f64().unwrap();
        let (low, high) =
            limits::bca_limits(value, parse_numbers(&row["replicates"]), &jackknife, 0.025).unwrap();
        let wanted = parse_numbers(&row["limits"]);
        assert_close(low, wanted[0]);
        assert_close(high, wanted[1]);
    }
}

/// Of a mean of single values, the jackknife error is s/√n.
#[test]
fn the_jackknife_error_of_a_mean() {
    let boots: Vec<Vec<f64>> = [3.0, 5.0, 4.0, 9.0, 1.0].iter().map(|value| vec![*value]).collect();
    let found = Jackknife::from_sides(&[boots], &|sides| mean(&sides[0])).unwrap();
    assert_close(found.standard_error(), crate::sd(&[3.0, 5.0, 4.0, 9.0, 1.0]).unwrap() / 5.0_f64.sqrt());
}

const BOOTS: [&[f64]; 6] =
    [&[10.0, 10.2], &[10.4, 10.3], &[9.8, 9.9], &[10.1, 10.6], &[10.0, 9.7], &[10.9, 10.8]];

#[test]
fn a_seed_gives_the_same_limits_again() {
    let how = ClusterBootstrap { resamples: 400, ..ClusterBootstrap::default() };
    let first = how.bca(&BOOTS, &median).unwrap();
    assert_eq!(how.bca(&BOOTS, &median).unwrap(), first);
    let other = ClusterBootstrap { seed: 2, ..how }.bca(&BOOTS, &median).unwrap();
    assert_eq!(other.value, first.value);
    let ratio = how.studentized_ratio(&BOOTS, &BOOTS, &mean).unwrap();
    assert_eq!(ratio.value, 1.0);
    assert!(!ratio.interval.unwrap().excludes(1.0));
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let how = ClusterBootstrap { resamples: 50, ..ClusterBootstrap::default() };
    assert_eq!(how.bca(&[], &mean), Err(StatsError::Empty));
    assert_eq!(how.bca(&[&[1.0], &[]], &mean), Err(StatsError::Empty));
    assert_eq!(how.bca(&[&[1.0], &[2.0]], &mean), Err(StatsError::TooFew { needed: 3, got: 2 }));
    assert_eq!(how.bca(&[&[1.0], &[f64::NAN], &[2.0]], &mean), Err(StatsError::NotFinite { index: 0 }));
    let equal: [&[f64]; 5] = [&[1.0]; 5];
    assert_eq!(how.bca(&equal, &mean), Err(StatsError::NoSpread));
    assert_eq!(how.studentized(&equal, &mean), Err(StatsError::NoSpread));
    let negative: [&[f64]; 3] = [&[-1.0], &[-2.0], &[-3.0]];
    assert_eq!(how.bca_ratio(&BOOTS, &negative, &mean), Err(StatsError::NotPositive { index: 1 }));
    assert_eq!(
        ClusterBootstrap { resamples: 0, ..how }.bca(&BOOTS, &mean),
        Err(StatsError::TooFew { needed: 1, got: 0 })
    );
    assert!(matches!(
        ClusterBootstrap { confidence: 1.0, ..how }.bca(&BOOTS, &mean),
        Err(StatsError::OutOfRange { .. })
    ));
}
