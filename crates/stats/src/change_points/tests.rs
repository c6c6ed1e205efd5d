use super::energy::best_candidate;
use super::{ChangePoint, EDivisive, Hunter};
use crate::StatsError;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

fn parse_numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|item| item.as_f64().unwrap()).collect()
}

/// Against sums over all pairs for all (τ, κ): `tests/data/make_more_tables.py`.
#[test]
fn the_farthest_candidate_is_found() {
    let rows: Vec<Value> = serde_json::from_str(include_str!("../../tests/data/energy.json")).unwrap();
    for row in rows {
        let shortest = row["shortest"].as_u64().unwrap() as usize;
        let found = best_candidate(&parse_numbers(&row["x"]), shortest).unwrap();
        assert_eq!(found.index as u64, row["index"].as_u64().unwrap());
        let wanted = row["distance"].as_f64().unwrap();
        assert!((found.distance - wanted).abs() <= 1e-9 * wanted.abs(), "{found:?} {wanted}");
    }
}

/// Apache Otava, tests/change_point_divisive_test.py: steps at 5 and 8.
const SEQUENCE: [f64; 14] =
    [0.3, 2.4, 1.5, -0.9, -0.5, 99.7, 98.3, 99.1, 149.0, 149.7, 149.5, 149.1, 148.8, 150.0];
/// Apache Otava, tests/analysis_test.py: a step at 10.
const HALVED: [f64; 20] = [
    1.02, 0.95, 0.99, 1.00, 1.12, 1.00, 1.01, 0.98, 1.01, 0.96, 0.50, 0.51, 0.48, 0.48, 0.55, 0.50, 0.49,
    0.51, 0.50, 0.49,
];

fn step_indexes(found: Result<Vec<ChangePoint>, StatsError>) -> Vec<usize> {
    found.unwrap().iter().map(|step| step.index).collect()
}

#[test]
fn steps_of_otava() {
    let divisive = EDivisive { level: 0.05, permutations: 199, shortest: 1, seed: 1 };
    assert_eq!(step_indexes(divisive.find(&SEQUENCE)), [5, 8]);
    assert_eq!(step_indexes(divisive.find(&HALVED)), [10]);
    assert_eq!(step_indexes(Hunter::with_otava_rules(10, 0.0001, 0.0).find(&HALVED)), [10]);
    assert_eq!(step_indexes(Hunter::default().find(&HALVED)), [10]);
    assert_eq!(step_indexes(Hunter::default().find(&SEQUENCE)), [5, 8]);
}

#[test]
fn a_step_carries_its_means_and_an_honest_p() {
    let [step] = EDivisive { permutations: 99, ..EDivisive::default() }.find(&HALVED).unwrap()[..] else {
        panic!()
    };
    assert_eq!((step.index, step.p), (10, 0.01));
    assert!((step.before - 1.004).abs() < 1e-12 && (step.after - 0.501).abs() < 1e-12);
}

#[test]
fn a_small_step_is_dropped_when_it_does_not_matter() {
    let hunter = |least_change| Hunter { least_change, ..Hunter::default() };
    assert_eq!(step_indexes(hunter(0.9).find(&HALVED)), [10]);
    assert_eq!(step_indexes(hunter(1.1).find(&HALVED)), Vec::<usize>::new());
}

#[test]
fn nothing_changes_in_equal_values() {
    assert_eq!(EDivisive::default().find(&[3.0; 40]), Ok(vec![]));
    assert_eq!(Hunter::default().find(&[3.0; 120]), Ok(vec![]));
    assert_eq!(Hunter::with_otava_rules(50, 0.001, 0.0).find(&[0.1; 120]), Ok(vec![]));
}

#[test]
fn a_step_between_constants_is_certain() {
    let series: Vec<f64> = (0..40).map(|i| if i < 20 { 1.0 } else { 2.0 }).collect();
    assert_eq!(step_indexes(EDivisive::default().find(&series)), [20]);
    let found = Hunter::default().find(&series).unwrap();
    assert_eq!(found.iter().map(|step| (step.index, step.p)).collect::<Vec<_>>(), [(20, 0.0)]);
}

#[test]
fn settings_outside_their_range() {
    let bad = |hunter: Hunter| matches!(hunter.find(&HALVED), Err(StatsError::OutOfRange { .. }));
    assert!(bad(Hunter { level: 1.0, ..Hunter::default() }));
    assert!(bad(Hunter { window: 1, ..Hunter::default() }));
    assert!(bad(Hunter { shortest: 0, ..Hunter::default() }));
    assert!(bad(Hunter { least_change: f64::NAN, ..Hunter::default() }));
    let few = EDivisive { permutations: 0, ..EDivisive::default() };
    assert_eq!(few.find(&HALVED), Err(StatsError::TooFew { needed: 1, got: 0 }));
    assert!(matches!(EDivisive::default().find(&vec![1.0; 10_001]), Err(StatsError::TooMany { .. })));
}

/// Three against three, one place given: the t-test is right in 5 % of cases, with Otava's variance in more.
#[test]
fn the_variance_of_otava_alarms_too_often() {
    let mut random = ChaCha8Rng::seed_from_u64(9);
    let mut normal = || {
        let (first, second) = (1.0 - random.random::<f64>(), random.random::<f64>());
        (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
    };
    let (mut sound, mut otava) = (0, 0);
    for _ in 0..4_000 {
        let values: Vec<f64> = (0..6).map(|_| normal()).collect();
        let (left, right) = values.split_at(3);
        sound += usize::from(Hunter::default().p_value(left, right) < 0.05);
        otava += usize::from(Hunter::with_otava_rules(50, 0.001, 0.0).p_value(left, right) < 0.05);
    }
    assert!((160..=250).contains(&sound), "{sound}");
    assert!((300..=420).contains(&otava), "{otava}");
}
