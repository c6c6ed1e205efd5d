//! `layout = N`: every level under every layout, recorded with each iteration, compared as the unit that varies.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use perflab_model::resource_use::ResourceMetric;

use crate::laboratory::Sandbox;

/// Its speed is the length of the environment's padding, as the process itself sees it.
const STUDY: &str = "run = { layout = 6, iterations = 12, warmup = 1, seed = 7 }\n[workload.padded]\n[factor.code]\nkind = \"environment\"\nlevels = [\"old\", \"new\"]";

fn measured() -> (Sandbox, Value) {
    let laboratory = Sandbox::new();
    laboratory.write_workload("padded", "", "echo speed $((1000 + ${#PERFLAB_LAYOUT_PADDING}))");
    let study = laboratory.write_study("s.toml", STUDY);
    laboratory.run_successfully(&["run", &study, "--quiet"]);
    let manifest = fs::read(laboratory.only_run().join("run.json")).unwrap();
    (laboratory, serde_json::from_slice(&manifest).unwrap())
}

#[test]
fn every_level_meets_every_layout_equally_often_and_each_iteration_says_which() {
    let (laboratory, manifest) = measured();
    let layouts = manifest["plan"]["layouts"].as_array().unwrap();
    assert_eq!((layouts.len(), &layouts[0]), (6, &serde_json::json!({ "padding": 0, "seed": 0 })));
    let exported = laboratory.run_successfully(&["export", "--to", "csv", "--output", "-"]).out;
    let rows: Vec<Vec<&str>> = exported.lines().map(|line| line.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|title| *title == name).unwrap();
    let [code, layout, metric, value] = ["factor.code", "layout", "metric", "value"].map(column);
    let mut met: BTreeMap<(&str, usize), Vec<f64>> = BTreeMap::new();
    let decides = |row: &&Vec<&str>| !ResourceMetric::is_name(row[metric]);
    for row in rows[1..].iter().filter(decides) {
        met.entry((row[code], row[layout].parse().unwrap())).or_default().push(row[value].parse().unwrap());
    }
    assert_eq!(met.len(), 12);
    for ((_, layout), values) in met {
        let padding = layouts[layout]["padding"].as_f64().unwrap();
        assert_eq!(values, [1000.0 + padding; 2]);
    }
    let listed = laboratory.run_json(&["show", "--iterations"]);
    assert!(listed.as_array().unwrap().iter().all(|row| row["layout"].is_u64()), "{listed}");
}

#[test]
fn layouts_are_what_is_compared() {
    let (laboratory, _) = measured();
    let compared = laboratory.run_json(&["compare", "--by", "code"]);
    let row = &compared["rows"][0];
    assert_eq!((&row["method"]["level"], &row["method"]["baseline"]), (&"layout".into(), &6.into()));
    assert_eq!(row["verdict"], "same");
    assert_eq!((&row["layout"]["layouts"], &row["layout"]["explained"]), (&6.into(), &0.0.into()));
}

#[test]
fn layouts_that_iterations_do_not_divide_into_are_refused() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", "run = { layout = 4, iterations = 10 }\n[workload.echo]");
    let refused = laboratory.run(&["study", "check", &study]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!("layouts_that_iterations_do_not_divide_into", refused.stable_err());
}

#[test]
fn the_small_program_is_built_once_for_each_layout() {
    if std::process::Command::new("cc").arg("--version").output().is_err() {
        return crate::laboratory::skip_test("layouts", "there is no cc");
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { layout = 2, iterations = 2, warmup = 0 }\n[workload.code-layout]\nparameters = { rounds = 5 }\n[factor.change]\nkind = \"parameter\"\nlevels = [\"none\", \"moved\", \"slower\"]",
    );
    laboratory.run_successfully(&["run", &study, "--quiet"]);
    let compared = laboratory.run_json(&["compare", "--by", "change"]);
    assert_eq!(compared["rows"].as_array().unwrap().len(), 2);
}
