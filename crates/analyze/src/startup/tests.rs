use indexmap::IndexMap;
use perflab_model::{Case, Direction, Nanos, Sample, Scalar, Unit};

use super::*;
use crate::build::{RunBuilder, primary_metric};

/// Starts of an application: a median by way, with a spread of 2 %.
fn startup_run(seconds: impl Fn(&str, &str) -> f64) -> RunRecord {
    let lab = RunBuilder::new("run").with(|lab| {
        lab.factors = vec![("prefetch", vec!["none", "sync", "async"]), ("caches", vec!["3", "1"])];
        lab.metrics = vec![primary_metric("wall", "s", Direction::Lower)];
        lab.iterations = 8;
    });
    let mut record = lab.build_run(|spot| {
        Some(
            seconds(spot.level("prefetch"), spot.level("caches")) * (1.0 + f64::from(spot.iteration) / 400.0),
        )
    });
    for case in &mut record.manifest.plan.cases {
        *case =
            Case { uses: WORKLOAD_OF_2007.into(), parameters: case_parameters(&case.levels), ..case.clone() };
    }
    record
}

fn case_parameters(levels: &IndexMap<String, String>) -> IndexMap<String, Scalar> {
    levels.iter().map(|(name, level)| (name.clone(), Scalar::Text(level.clone()))).collect()
}

fn status_of_claim(application: &StartupApplication, claim: &str) -> ClaimStatus {
    application.shapes.iter().find(|shape| shape.claim.starts_with(claim)).unwrap().standing
}

#[test]
fn the_figures_of_2007_have_the_shapes_of_2007() {
    let then = |prefetch: &str, caches: &str| match (prefetch, caches) {
        ("none", "1") => 11.5,
        _ => {
            STARTUPS_OF_2007.iter().find(|row| row.prefetch == prefetch && row.caches == caches).unwrap().mean
        }
    };
    let mut record = startup_run(then);
    let faults = |case, value| Sample {
        boot: 0,
        target: None,
        case,
        iteration: 0,
        metric: "major-faults".into(),
        value,
        unit: Unit::new("1"),
        direction: Direction::Lower,
        primary: false,
        start: Nanos(0),
        end: Nanos(1),
    };
    for (case, of) in record.manifest.plan.cases.clone().iter().enumerate() {
        let row = STARTUPS_OF_2007.iter().find(|row| row.prefetch == of.levels["prefetch"]).unwrap();
        record.samples.push(faults(case as u32, row.faults));
    }
    let found = startup_applications(&record);
    let [application] = &found[..] else { panic!("{found:?}") };
    for claim in ["reading ahead before nothing", "sync before async", "metadata", "major faults"] {
        assert_eq!(status_of_claim(application, claim), ClaimStatus::Holds, "{claim}");
    }
    assert_eq!(status_of_claim(application, "reading ahead before the application"), ClaimStatus::Unmeasured);
    let cold = application.find_samples("none", "3", false).unwrap();
    assert!((cold.wall_time().unwrap().value - 13.1).abs() < 0.2 && cold.deviation > 0.0, "{cold:?}");
}

#[test]
fn a_shape_that_is_turned_round_fails_with_its_reason_and_one_that_is_none_is_unclear() {
    let found = startup_applications(&startup_run(|prefetch, _| if prefetch == "sync" { 5.0 } else { 4.5 }));
    assert_eq!(status_of_claim(&found[0], "sync before async"), ClaimStatus::Fails);
    let shape = found[0].shapes.iter().find(|shape| shape.claim == "sync before async").unwrap();
    assert!(shape.now.contains("+11.1 % [") && shape.why.contains("metadata first"), "{shape:?}");
    assert_eq!(status_of_claim(&found[0], "metadata"), ClaimStatus::Unclear);
}

#[test]
fn a_shape_that_is_not_measured_says_what_lacks() {
    let why = |record: &RunRecord| {
        let found = startup_applications(record);
        let shape = found[0].shapes.iter().find(|shape| shape.claim.contains("own before")).unwrap();
        assert_eq!(shape.standing, ClaimStatus::Unmeasured);
        shape.why
    };
    let mut record = startup_run(|_, _| 1.0);
    assert!(why(&record).contains("reads nothing ahead by itself"));
    for case in &mut record.manifest.plan.cases {
        case.parameters.insert("own".into(), Scalar::Text("on".into()));
    }
    assert!(why(&record).contains("has not all the starts"));
}

#[test]
fn a_run_without_reading_ahead_has_no_such_section() {
    let mut record = startup_run(|_, _| 1.0);
    record.manifest.plan.cases.iter_mut().for_each(|case| {
        case.parameters.insert("prefetch".into(), Scalar::Text("none".into()));
    });
    assert!(startup_applications(&record).is_empty());
}

#[test]
fn what_pages_out_is_known_by_its_fact() {
    let mut record = startup_run(|_, _| 1.0);
    let mut found = |key: &str, value: Scalar| {
        record.manifest.facts = perflab_model::Facts::default();
        record.manifest.facts.add(&format!("reclaim.{key}"), value, key);
        proactive_reclaim_source(&record).map(str::to_owned)
    };
    let text = |actions: &str| Scalar::Text(actions.into());
    assert_eq!(found("damon.0", text("hugepage")), None);
    assert_eq!(found("damon.1", text("cold pageout")), Some("damon.1".into()));
    assert_eq!(found("damon.reclaim", Scalar::Bool(false)), None);
    assert_eq!(found("damon.reclaim", Scalar::Bool(true)), Some("damon.reclaim".into()));
    assert_eq!(found("lru_gen", Scalar::Bool(true)), None);
}

#[test]
fn what_is_started_beside_the_catalogue_is_not_held_against_2007() {
    let mut record = startup_run(|_, _| 1.0);
    record.manifest.plan.cases.iter_mut().for_each(|case| case.uses = "start".into());
    let found = startup_applications(&record);
    assert!(found.len() == 1 && found[0].shapes.is_empty(), "{found:?}");
}
