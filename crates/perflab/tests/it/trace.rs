//! `perflab trace`, on its own load and on programs that are not what they should be.

use crate::laboratory::{Sandbox, mask_numbers};

const LOAD: [&str; 5] = ["perflab", "load", "drv_rand_ops", "60000", "intsrt"];

fn record_traced_load(laboratory: &Sandbox, label: &str, policy: &str) {
    let arguments = [&["trace", "run", "--label", label, "--"], &LOAD[..], &["--reap", policy]].concat();
    let said = laboratory.run_successfully(&arguments);
    let summary = &laboratory.run_json(&["trace", "causes", label])["result"]["summary"];
    let counts = ["operations", "threads", "lost"].map(|name| summary[name].as_u64());
    assert_eq!(counts, [Some(60_000), Some(1), Some(0)], "{}", said.err);
}

#[test]
fn every_operation_is_kept_shown_drawn_and_compared() {
    let laboratory = Sandbox::new();
    record_traced_load(&laboratory, "old", "old:86:0");
    record_traced_load(&laboratory, "new", "never");
    let json: serde_json::Value = serde_json::from_str(
        &laboratory.run_successfully(&["trace", "causes", "old", "--format", "json"]).out,
    )
    .unwrap();
    assert_eq!(json["result"]["operations"], 60_000);
    let reap = json["result"]["efficiencies"].as_array().unwrap().iter().find(|one| one["cause"] == "reap");
    assert!(reap.unwrap()["operations"].as_u64().unwrap() > 0, "{json}");
    let shown = laboratory.run_json(&["trace", "show", "old", "--top", "3"]);
    let slowest = shown.as_array().unwrap();
    assert_eq!(slowest.len(), 3);
    // One that reaps says how much it looked at; on a busy machine, others are slower yet.
    let shown = laboratory.run_json(&["trace", "show", "old", "--top", "60000"]);
    let numbers = |one: &serde_json::Value| mask_numbers(one["numbers"].as_str().unwrap());
    let reaping = shown.as_array().unwrap().iter().map(numbers).find(|numbers| numbers.contains("examined"));
    insta::assert_snapshot!(reaping.unwrap(), @"elements N, slabs N, examined N, saved N");

    laboratory.run_successfully(&["trace", "plot", "old", "-o", "causes.png"]);
    laboratory.run_successfully(&[
        "trace", "plot", "new", "--axis", "linear", "--with", "reap", "--like", "old", "-o", "new.svg",
    ]);
    assert!(std::fs::read(laboratory.path("causes.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(std::fs::read_to_string(laboratory.path("new.svg")).unwrap().contains("<image "));
    let all = ["--with", "reap"].repeat(8);
    let said = laboratory.run(&[&["trace", "plot", "old", "-o", "x.png"], &all[..]].concat());
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: --with is given 8 times, but there are 7 colours; name spans that share a colour together: --with reap,reap-index");
    let said = laboratory.run(&["trace", "plot", "old", "--with", "raep", "-o", "x.png"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: --with raep: no such span in the trace; did you mean `reap`?");

    let compared = laboratory.run_json(&["trace", "compare", "old", "new"]);
    let quantiles = compared["result"]["quantiles"].as_array().unwrap();
    let quantiles: Vec<&str> = quantiles.iter().map(|one| one["name"].as_str().unwrap()).collect();
    insta::assert_snapshot!(quantiles.join(" "), @"p50 p99 p99.9 p99.99 longest");
    // From one that never reaps to one that always does: far slower at the 99th percentile.
    let said = laboratory.run(&["trace", "compare", "new", "old", "--fail-if", "p99:50%"]);
    assert_eq!(said.code, Some(5), "{}\n{}", said.out, said.err);
    laboratory.run_successfully(&["report", "old", "-o", "report.html"]);
    let page = std::fs::read_to_string(laboratory.path("report.html")).unwrap();
    assert!(page.contains("<section id=\"operations\"") && page.contains("<code>insert</code>"));
}

#[test]
fn programs_and_files_that_are_no_traces_are_named() {
    let laboratory = Sandbox::new();
    let said = laboratory.run(&["trace", "run", "--", "true"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!("programs_and_files_that_are_no_traces_are_named_1", said.stable_err());
    std::fs::write(laboratory.path("no.trace"), "nothing of the kind, ".repeat(9)).unwrap();
    let said = laboratory.run(&["import", "--kind", "optrace", "no.trace"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!("programs_and_files_that_are_no_traces_are_named_2", said.stable_err());
    laboratory.run_successfully(&[
        "run",
        &laboratory.write_study("s.toml", "run = { iterations = 1, warmup = 0 }\n[workload.echo]"),
        "--no-report",
    ]);
    let said = laboratory.run(&["trace", "causes"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!("programs_and_files_that_are_no_traces_are_named_3", said.stable_err());
}
