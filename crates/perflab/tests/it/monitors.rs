//! `perflab monitor`, presets, budgets, and monitors that are off.

use std::fs;

use serde_json::Value;

use crate::laboratory::{Sandbox, mask_numbers};

#[test]
fn a_monitor_shows_its_columns_and_what_is_worked_out_of_them() {
    let laboratory = Sandbox::new();
    let shown = laboratory.run_json(&["monitor", "show", "diskstats"]);
    let column = |list: &str, name: &str| {
        shown[list].as_array().unwrap().iter().find(|column| column["name"] == name).cloned().unwrap()
    };
    assert_eq!(column("columns", "device")["kind"], "key");
    assert_eq!(column("derived", "r_await")["formula"], "read_ns / read_ios");
    assert_eq!((&shown["edges"], &shown["files"][0]), (&true.into(), &"/proc/diskstats".into()));
    let said = laboratory.run(&["monitor", "show", "diskstat"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @"error: `diskstat` is no monitor; did you mean `diskstats`?");
}

#[test]
fn what_a_reading_costs_is_measured() {
    let laboratory = Sandbox::new();
    let costs = laboratory.run_json(&["monitor", "cost"]);
    let row = costs.as_array().unwrap().iter().find(|row| row["monitor"] == "vmstat").unwrap();
    let number = |name: &str| row[name].as_f64().unwrap();
    assert!(number("cpu_per_reading") > 0.0 && number("bytes_per_second_at_1_hz") > 100.0, "{row}");
    assert!((number("cpu_at_10_hz") - 10.0 * number("cpu_at_1_hz")).abs() < 1e-9, "{row}");
    assert!(
        (number("cpu_at_1_hz") - number("cpu_per_reading") * 1e-7).abs() < 1e-9,
        "a share in per cent: {row}"
    );
}

/// A run of this study; gives what its monitors recorded, its warnings, and the laboratory.
fn run_monitors(tables: &str) -> (Sandbox, Vec<String>, Vec<String>) {
    let laboratory = Sandbox::new();
    laboratory.write_workload("short", "", "echo speed 1");
    let text = format!("run = {{ iterations = 3, warmup = 0 }}\n[workload.short]\n{tables}");
    let study = laboratory.write_study("short.toml", &text);
    laboratory.run_successfully(&["run", &study, "--quiet"]);
    let run = laboratory.only_run();
    let names = |folder: &str| {
        let files = fs::read_dir(run.join(folder)).into_iter().flatten().flatten();
        files.map(|file| format!("{folder}/{}", file.file_name().to_str().unwrap())).collect::<Vec<_>>()
    };
    let mut tables = names("series");
    tables.extend(names("edges"));
    let journal = fs::read_to_string(run.join("journal.jsonl")).unwrap();
    let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let warnings = events.filter_map(|event| Some(event["what"]["warning"]["message"].as_str()?.to_owned()));
    let warnings = warnings.collect();
    (laboratory, tables, warnings)
}

#[test]
fn a_preset_is_changed_beside_it_and_an_unknown_one_is_refused() {
    let (laboratory, tables, warnings) = run_monitors(
        "[monitors]\npreset = \"default\"\nevery = \"10ms\"\nloadavg = \"off\"\nvmstat = \"edges\"",
    );
    let has = |name: &str| tables.iter().any(|table| table == name);
    assert!(
        has("series/stat.parquet") && has("edges/stat.parquet") && has("edges/vmstat.parquet"),
        "{tables:?}"
    );
    assert!(has("series/meminfo.parquet") && !has("edges/meminfo.parquet"), "it counts nothing: {tables:?}");
    assert!(!has("series/loadavg.parquet") && !has("series/vmstat.parquet"), "{tables:?}");
    assert_eq!(warnings, [""; 0], "within their budget");
    let study = laboratory.write_study("bad.toml", "[workload.short]\n[monitors]\npreset = \"memry\"");
    let said = laboratory.run(&["study", "check", &study]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @"error: /tmp/.TMP/bad.toml:4:1: `monitors.preset`: there is no preset `memry` of monitors; did you mean `memory`?");
}

/// No machine reads these within a hundred thousandth of a CPU.
#[test]
fn monitors_over_their_budget_give_way_and_the_run_says_so() {
    let (_, tables, warnings) =
        run_monitors("[monitors]\nbudget = \"0.001%\"\nvmstat = \"1ms\"\nmeminfo = \"1ms\"");
    let [told] = &warnings[..] else { panic!("{warnings:?}") };
    insta::assert_snapshot!(mask_numbers(told), @"the monitors would take N % of a CPU here, more than their budget of <N %: vmstat has no clock any more; meminfo has no clock any more");
    let has = |name: &str| tables.iter().any(|table| table == name);
    assert!(
        has("edges/vmstat.parquet") && !has("series/meminfo.parquet"),
        "what counts has its edges: {tables:?}"
    );
}

#[test]
fn monitors_that_are_off_in_an_iteration_are_not_read_in_it() {
    let (laboratory, tables, _) = run_monitors(
        "[monitors]\nvmstat = \"edges\"\nmeminfo = \"1ms\"\n[factor.monitors]\nkind = \"monitors\"\nlevels = [\"off\", \"on\"]",
    );
    assert!(tables.iter().any(|table| table == "edges/vmstat.parquet"), "{tables:?}");
    let rows = laboratory.run_json(&["show", "@latest", "--monitor", "vmstat"]);
    let faults: Vec<&Value> =
        rows.as_array().unwrap().iter().filter(|row| row["column"] == "pgfault").collect();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0]["n"], 3);
}
