//! Comparisons from the outside: verdicts, formats, exit codes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::laboratory::{Sandbox, skip_test, to_command_output};

fn two_echo_runs() -> Sandbox {
    let laboratory = Sandbox::new();
    laboratory.run_echo("before", 100);
    laboratory.run_echo("after", 50);
    laboratory
}

/// Three runs a side, taken in turns: what is compared is the run.
fn repeated_echo_runs() -> Sandbox {
    let laboratory = Sandbox::new();
    for turn in 0..4 {
        laboratory.run_echo("before", 100 + turn);
        laboratory.run_echo("after", 50 + turn);
    }
    laboratory
}

#[test]
fn a_damaged_run_is_named_and_never_missing_without_a_word() {
    let laboratory = repeated_echo_runs();
    let listed = laboratory.run_json(&["list", "--label", "after"]);
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    let damage = |id: &str, table: &str| {
        let table = laboratory.path("archive/runs").join(id).join(table);
        let bytes = fs::read(&table).unwrap();
        fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();
    };
    damage(ids[0], "iterations.parquet");
    let said = laboratory.run_successfully(&["compare", "before", "after", "--format", "json"]);
    assert!(said.err.contains(&ids[0][..12]), "{}", said.err);
    let compared: Value = serde_json::from_str(&said.out).unwrap();
    let after = compared["runs"].as_array().unwrap().iter().filter(|run| run["side"] == "after").count();
    assert_eq!(after, 3, "{compared}");
    // One whose label cannot be read may have this one.
    let manifest = laboratory.path("archive/runs").join(ids[1]).join("run.json");
    let whole = fs::read(&manifest).unwrap();
    fs::write(&manifest, "{").unwrap();
    let said = laboratory.run_successfully(&["compare", "before", "after"]);
    let told = |line: &str| line.contains(&ids[1][..12]) && line.contains("cannot be read, and is left out");
    assert_eq!(said.err.lines().filter(|line| told(line)).count(), 2, "{}", said.err);
    fs::write(&manifest, whole).unwrap();
    damage(ids[1], "samples.parquet");
    let said = laboratory.run_successfully(&["compare", "before", "after"]);
    let left_out = |line: &str| line.starts_with("warning: left out of `after`") && line.contains(ids[1]);
    assert!(said.err.lines().any(left_out), "{}", said.err);
    let journal = laboratory.path("archive/runs").join(ids[2]).join("journal.jsonl");
    let elsewhere = laboratory.path("journal.jsonl");
    fs::rename(&journal, &elsewhere).unwrap();
    let said = laboratory.run_successfully(&["compare", "before", "after"]);
    let left_out = |line: &str| line.starts_with("warning: left out of `after`") && line.contains(ids[2]);
    assert!(said.err.lines().any(left_out), "{}", said.err);
    fs::rename(&elsewhere, &journal).unwrap();
    ids.iter().skip(2).for_each(|id| damage(id, "samples.parquet"));
    let said = laboratory.run(&["compare", "before", "after"]);
    assert!(said.code == Some(2) && said.err.contains(&ids[0][..12]), "{}", said.err);
}

/// Of every row: the candidate's label, its change in thousandths of the baseline, and the verdict.
fn compare_as_json(laboratory: &Sandbox, arguments: &[&str]) -> Vec<(String, i64, String)> {
    let json = laboratory.run_json(&[&["compare"], arguments].concat());
    let row = |row: &Value| {
        let name = row["candidate_name"].as_str().unwrap();
        assert_eq!(row["change"]["scale"], "ratio", "{row}");
        let change = (row["change"]["value"].as_f64().unwrap() * 1000.0).round() as i64;
        let label = name.split_once(" (").map_or(name, |(label, _)| label);
        (label.to_owned(), change, row["verdict"].as_str().unwrap().to_owned())
    };
    json["rows"].as_array().unwrap().iter().map(row).collect()
}

/// A row of [`compare_as_json`].
fn verdict_row(candidate: &str, change: i64, verdict: &str) -> (String, i64, String) {
    (candidate.into(), change, verdict.into())
}

#[test]
fn half_the_speed_is_worse_and_double_is_better() {
    let laboratory = repeated_echo_runs();
    let verdicts = |arguments: &[&str]| -> Vec<String> {
        compare_as_json(&laboratory, arguments).into_iter().map(|(_, _, verdict)| verdict).collect()
    };
    assert_eq!(verdicts(&["before", "after"]), ["worse"]);
    assert_eq!(verdicts(&["after", "before"]), ["better"]);
    assert_eq!(verdicts(&["after", "after"]), ["same"]);
}

#[test]
fn two_single_runs_differ_and_are_neither_better_nor_worse() {
    let laboratory = two_echo_runs();
    assert_eq!(compare_as_json(&laboratory, &["before", "after"]), [verdict_row("after", -500, "differs")]);
    assert_eq!(compare_as_json(&laboratory, &["after", "before"]), [verdict_row("before", 1000, "differs")]);
    laboratory.run_echo("again", 100);
    assert_eq!(compare_as_json(&laboratory, &["before", "again"]), [verdict_row("again", 0, "same-here")]);
    let row = &laboratory.run_json(&["compare", "before", "after"])["rows"][0];
    assert_eq!(row["change"]["covers"], "these-runs");
    assert_eq!(row["between_runs"]["earlier_pairs"], 0, "{row}");
}

/// From what other runs of the study showed, how much any two differ is known.
#[test]
fn earlier_runs_say_how_much_any_two_differ() {
    let laboratory = Sandbox::new();
    for (turn, speed) in [100, 103, 98, 101, 99].into_iter().enumerate() {
        laboratory.run_echo(&format!("earlier{turn}"), speed);
    }
    laboratory.run_echo("before", 100);
    laboratory.run_echo("after", 104);
    let row = &laboratory.run_json(&["compare", "before", "after"])["rows"][0];
    assert_eq!(row["between_runs"]["earlier_pairs"], 4, "{row}");
    assert_eq!((&row["change"]["covers"], &row["verdict"]), (&Value::Null, &"unclear".into()), "{row}");
    let interval = &row["change"]["interval"];
    assert!(interval["low"].as_f64() < Some(0.0) && interval["high"].as_f64() > Some(0.08), "{row}");
}

#[test]
fn a_run_whose_every_iteration_failed_is_worse() {
    let laboratory = Sandbox::new();
    let script = "test ! -e broken && echo speed 100";
    laboratory.write_workload(
        "brittle",
        "",
        &script.replace("broken", &laboratory.path("broken").display().to_string()),
    );
    let text = "run = { iterations = 8, warmup = 0 }\n[workload.brittle]";
    let study = laboratory.write_study("brittle.toml", text);
    laboratory.run_successfully(&["run", &study, "--label", "good", "--quiet"]);
    fs::write(laboratory.path("broken"), "").unwrap();
    for label in ["bad", "worse"] {
        assert_eq!(laboratory.run(&["run", &study, "--label", label, "--quiet"]).code, Some(4));
    }
    let row = &laboratory.run_json(&["compare", "good", "bad"])["rows"][0];
    assert_eq!((&row["verdict"], &row["basis"]), (&"worse".into(), &"failures".into()), "{row}");
    assert_eq!(laboratory.run(&["compare", "good", "bad", "--fail-if", "worse"]).code, Some(5));
    assert_eq!(laboratory.run(&["compare", "bad", "good", "--fail-if", "worse"]).code, Some(0));
    let row = &laboratory.run_json(&["compare", "bad", "worse"])["rows"][0];
    assert_eq!((&row["verdict"], &row["basis"]), (&"unclear".into(), &"missing-values".into()), "{row}");
    laboratory.run_successfully(&["report", "good", "bad", "-o", "page.html"]);
}

/// Without a run, the newest one is meant, as in other verbs.
#[test]
fn without_a_run_the_newest_one_is_compared_by_its_factor() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "speeds.toml",
        "run = { iterations = 6, warmup = 0 }\n[workload.echo]\n[factor.speed]\nkind = \"parameter\"\nlevels = [100, 150]",
    );
    laboratory.run_successfully(&["run", &study, "--quiet"]);
    let [named, unnamed] =
        [&["compare", "@latest"][..], &["compare"]].map(|words| laboratory.run_json(words));
    assert_eq!(named, unnamed);
    assert_eq!(named["by"], "speed");
    laboratory.run_echo("plain", 100);
    assert_eq!(laboratory.run(&["compare"]).code, Some(2), "it has no factor");
    assert_eq!(
        laboratory.run(&["compare", "--baseline", "plain"]).code,
        Some(0),
        "the newest against another"
    );
}

/// Two factors: the level under which iterations fail is worse, though those that do not are as fast.
#[test]
fn a_level_of_two_factors_that_fails_is_worse() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("brittle", "", "test \"$A\" = 2 && exit 1; echo speed 100");
    let factor = |name: &str| {
        format!("[factor.{name}]\nkind = \"environment\"\nkey = \"{name}\"\nlevels = [\"1\", \"2\"]\n")
    };
    let study = laboratory.write_study(
        "two.toml",
        &format!(
            "run = {{ iterations = 8, warmup = 0 }}\n[workload.brittle]\n{}{}",
            factor("A"),
            factor("B")
        ),
    );
    laboratory.run(&["run", &study, "--label", "two", "--quiet"]);
    let json = laboratory.run_json(&["compare", "two", "--by", "A,B"]);
    let rows = json["rows"].as_array().unwrap();
    let of = |factor: &str| {
        let begins = |row: &&Value| row["effect"].as_str().unwrap().starts_with(factor);
        rows.iter().find(begins).unwrap()
    };
    assert_eq!((&of("A:")["verdict"], &of("A:")["basis"]), (&"worse".into(), &"failures".into()), "{json}");
    assert_eq!(of("A:")["failures"]["candidate"], serde_json::json!({ "failed": 16, "of": 16 }));
    assert_ne!(of("B:")["verdict"], "same", "half of its values are missing: {json}");
    let told = laboratory.run_successfully(&["compare", "two", "--by", "A,B"]);
    insta::assert_snapshot!("a_level_of_two_factors_that_fails_is_worse", told.stable_out());
}

#[test]
fn fail_if_ends_with_five_and_only_then() {
    let laboratory = repeated_echo_runs();
    assert_eq!(laboratory.run(&["compare", "before", "after", "--fail-if", "worse:2%"]).code, Some(5));
    assert_eq!(laboratory.run(&["compare", "before", "after", "--fail-if", "worse"]).code, Some(5));
    assert_eq!(laboratory.run(&["compare", "before", "after", "--fail-if", "worse:60%"]).code, Some(0));
    assert_eq!(laboratory.run(&["compare", "after", "before", "--fail-if", "worse"]).code, Some(0));
    let said = laboratory.run(&["compare", "before", "after", "--fail-if", "wors"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @r#"
error: invalid value 'wors' for '--fail-if <VERDICT[:CHANGE]>': `wors` is not a condition: `wors` is none of better, worse, same, unclear, missing, kernel-log:KIND; write for example worse, worse:2%, unclear, kernel-log:any or worse:2%,missing

For more information, try '--help'.
"#);
}

#[test]
fn two_single_runs_fail_only_on_request() {
    let laboratory = two_echo_runs();
    let code = |arguments: &[&str]| laboratory.run(&[&["compare"], arguments].concat()).code;
    assert_eq!(code(&["before", "after", "--fail-if", "worse"]), Some(0));
    assert_eq!(code(&["before", "after", "--fail-if", "worse", "--fail-on-differs"]), Some(5));
    assert_eq!(code(&["before", "after", "--fail-on-differs"]), Some(5));
    assert_eq!(code(&["before", "after", "--fail-if", "worse:60%", "--fail-on-differs"]), Some(0));
    assert_eq!(code(&["after", "before", "--fail-on-differs"]), Some(0));
}

#[test]
fn four_formats_carry_the_same_verdict() {
    let laboratory = repeated_echo_runs();
    let format =
        |name: &str| laboratory.run_successfully(&["compare", "before", "after", "--format", name]).out;
    let json: Value = serde_json::from_str(&format("json")).unwrap();
    assert_eq!(json["rows"][0]["verdict"], "worse");
    let csv = format("csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let [head, row] = &lines[..] else { panic!("{csv}") };
    let verdict = head.iter().position(|name| *name == "verdict").unwrap();
    assert_eq!((row[verdict], row.len()), ("worse", head.len()), "{csv}");
    for (name, separator) in [("markdown", "|"), ("table", "  ")] {
        let table = format(name);
        let cells = table.lines().flat_map(|line| line.split(separator)).map(str::trim);
        let verdicts: Vec<&str> = cells.filter(|cell| VERDICT_CELLS.contains(cell)).collect();
        assert_eq!(verdicts, ["✗ worse"], "{table}");
    }
}

/// By another reader than ours: no key that the schema does not name, no word that it does not have.
#[test]
fn comparisons_are_valid_by_their_schema() {
    let name = "comparisons_are_valid_by_their_schema";
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = root.join("../../target/test-venv/bin/python");
    let ready = Command::new(&python).args(["-c", "import jsonschema"]).output();
    if !ready.is_ok_and(|found| found.status.success()) {
        return skip_test(name, "target/test-venv lacks jsonschema (cargo xtask test makes it)");
    }
    let repeated = repeated_echo_runs();
    repeated.run_echo("alone", 70);
    let script = "echo >> COUNT; test $(wc -l < COUNT) -gt 2 && echo speed 100";
    repeated.write_workload(
        "brittle",
        "",
        &script.replace("COUNT", &repeated.path("count").display().to_string()),
    );
    let two_levels = "[factor.speed]\nkind = \"parameter\"\nlevels = [100, 150]";
    for (label, workload, level) in
        [("fails", "brittle", ""), ("stays", "brittle", ""), ("levels", "echo", two_levels)]
    {
        let text = format!("run = {{ iterations = 8, warmup = 0 }}\n[workload.{workload}]\n{level}");
        let study = repeated.write_study(&format!("{label}.toml"), &text);
        repeated.run(&["run", &study, "--label", label, "--quiet"]);
    }
    let imported = import_recorded_logs("current");
    let compared: [(&Sandbox, &[&str]); 9] = [
        (&repeated, &["before", "after"]),
        (&repeated, &["after", "after", "--confidence", "99%"]),
        (&repeated, &["alone", "after"]),
        (&repeated, &["stays", "fails"]),
        (&repeated, &["before", "after", "--margin", "0%"]),
        (&repeated, &["levels", "--by", "speed"]),
        (&repeated, &["before", "alone"]),
        (&imported, &["recorded-base", "recorded-new"]),
        (&imported, &["recorded-base", "recorded-new", "--monitor", "vmstat"]),
    ];
    let lines: Vec<String> = compared
        .iter()
        .map(|(laboratory, arguments)| laboratory.run_json(&[&["compare"], *arguments].concat()).to_string())
        .collect();
    let documents = repeated.path("comparisons.jsonl");
    fs::write(&documents, lines.join("\n")).unwrap();
    let said = Command::new(&python)
        .arg(root.join("tests/compare_schema.py"))
        .args([documents, root.join("../../docs/reference/compare.schema.json")])
        .output()
        .unwrap();
    let [out, err] = [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(said.status.success() && out.trim() == "9", "{out}{err}");
}

/// What a cell with a verdict holds.
const VERDICT_CELLS: &[&str] = &["✓ better", "✗ worse", "= same", "? unclear"];

#[test]
fn by_a_factor_within_one_run() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 6, warmup = 0 }\n[workload.echo]\n[factor.speed]\nkind = \"parameter\"\nlevels = [100, 150]",
    );
    let said = laboratory.run_successfully(&["run", &study]);
    insta::assert_snapshot!("by_a_factor_within_one_run_1", said.stable_out());
    let rows = compare_as_json(&laboratory, &["@latest", "--by", "speed"]);
    assert_eq!(rows, [verdict_row("150", 500, "better")]);
    let said = laboratory.run(&["compare", "@latest", "--by", "sped"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @"error: no factor `sped` in `@latest`: it has speed");
}

#[test]
fn runs_that_share_a_label_are_repetitions() {
    let laboratory = two_echo_runs();
    laboratory.run_echo("before", 101);
    let json = laboratory.run_json(&["compare", "before", "after"]);
    let row = &json["rows"][0];
    assert_eq!((&row["baseline"]["n"], &row["candidate"]["n"]), (&16.into(), &8.into()), "{row}");
}

#[test]
fn runs_of_one_label_are_told_apart_when_they_are_named_one_by_one() {
    let laboratory = two_echo_runs();
    laboratory.run_echo("after", 25);
    let runs = std::fs::read_dir(laboratory.path("archive").join("runs")).unwrap();
    let mut ids: Vec<String> =
        runs.map(|run| run.unwrap().file_name().to_string_lossy().into_owned()).collect();
    ids.sort();
    let arguments: Vec<&str> = ["compare"].into_iter().chain(ids.iter().map(String::as_str)).collect();
    let styled = [&arguments[..], &["--style", "mmtests", "--format", "csv"]].concat();
    let table = laboratory.run_successfully(&styled).out;
    let cells = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let means = cells.filter(|cells| cells[1] == "Hmean");
    let values: Vec<f64> = means.map(|cells| cells[4].parse().unwrap()).collect();
    let (one, other) = (&ids[1], &ids[2]);
    let common = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let named = |id: &String| format!("after ({}", id.get(..=common).unwrap());
    assert!(table.contains(&named(one)) && table.contains(&named(other)), "{table}");
    assert_eq!(values, [100.0, 50.0, 25.0], "{table}");
}

#[test]
fn the_table_of_mmtests_its_ratios_and_its_notes() {
    let laboratory = two_echo_runs();
    let said =
        laboratory.run_successfully(&["compare", "before", "after", "--style", "mmtests", "--significance"]);
    insta::assert_snapshot!("the_table_of_mmtests_its_ratios_and_its_notes_1", said.stable_out());
    let said = laboratory.run_successfully(&["compare", "before", "after", "--style", "mmtests", "--ratio"]);
    insta::assert_snapshot!("the_table_of_mmtests_its_ratios_and_its_notes_2", said.stable_out());
    let said =
        laboratory.run_successfully(&["compare", "before", "after", "--style", "mmtests", "--format", "csv"]);
    assert!(said.out.starts_with("benchmark,statistic,operation,side,value"), "{}", said.out);
    let said = laboratory.run_successfully(&[
        "compare",
        "before",
        "after",
        "--style",
        "mmtests",
        "--stat",
        "best50,best99,median",
    ]);
    let rows = laboratory.run_successfully(&[
        "compare",
        "before",
        "after",
        "--style",
        "mmtests",
        "--stat",
        "best50,best99,median",
        "--format",
        "csv",
    ]);
    let statistics: BTreeSet<&str> =
        rows.out.lines().skip(1).map(|row| row.split(',').nth(1).unwrap()).collect();
    insta::assert_debug_snapshot!(statistics, @r#"
    {
        "BHmean.50",
        "BHmean.99",
        "median",
    }
    "#);
    assert!(statistics.iter().all(|statistic| said.out.contains(statistic)), "{}", said.out);
}

#[test]
fn other_statistics_gains_and_baselines() {
    let laboratory = two_echo_runs();
    laboratory.run_echo("third", 100);
    let said = laboratory.run_successfully(&["compare", "before", "after", "third", "--stat", "mean,p99,n"]);
    insta::assert_snapshot!(said.stable_out(), @"
    case  metric  unit   candidate  mean before  mean candidate  p99 before  p99 candidate  n before  n candidate          change [95 % CI]  verdict
    echo  speed   ops/s  after              100              50         100             50         8            8  -50.0 % (-50.0 to -50.0)  ≠ differs
    echo  speed   ops/s  third              100             100         100            100         8            8        0.0 % (0.0 to 0.0)  ≈ same here
    ");
    let said = laboratory.run_successfully(&["compare", "before", "after", "third", "--ratio"]);
    insta::assert_snapshot!("other_statistics_gains_and_baselines_1", said.stable_out());
    let said = laboratory.run_successfully(&["compare", "before", "after", "third", "--baseline", "after"]);
    insta::assert_snapshot!("other_statistics_gains_and_baselines_2", said.stable_out());
    let rows = compare_as_json(&laboratory, &["before", "after", "third", "--baseline", "after"]);
    assert_eq!(rows, [verdict_row("before", 1000, "differs"), verdict_row("third", 1000, "differs")]);
    let said = laboratory.run(&["compare", "before", "after", "--stat", "average"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @r#"
error: invalid value 'average' for '--stat <NAME>': `average` is not a statistic: write n, min, max, mean, hmean, gmean, median, trimmed, sd, cv, mad, iqr, p95 (any percentile), best95 (mean of the best 95 %) or tail95 (the worst of the best 95 %)

For more information, try '--help'.
"#);
}

#[test]
fn another_level_may_be_the_baseline() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 6, warmup = 0 }\n[workload.echo]\n[factor.speed]\nkind = \"parameter\"\nlevels = [100, 150, 200]",
    );
    laboratory.run_successfully(&["run", &study, "--quiet"]);
    let said = laboratory.run_successfully(&["compare", "@latest", "--by", "speed", "--baseline", "150"]);
    insta::assert_snapshot!(said.out.lines().next().unwrap(), @"1 of 2 worse: speed -33.3 % [-33.3, -33.3] (100); 1 better: speed +33.3 % [+33.3, +33.3] (200)");
    let rows = compare_as_json(&laboratory, &["@latest", "--by", "speed", "--baseline", "150"]);
    assert_eq!(rows, [verdict_row("100", -333, "worse"), verdict_row("200", 333, "better")]);
    let said = laboratory.run(&["compare", "@latest", "--by", "speed", "--baseline", "151"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!("another_level_may_be_the_baseline_1", said.stable_err());
}

#[test]
fn other_tools_tables_two_factors_and_monitors() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 6, warmup = 0 }\n[workload.echo]\n[factor.speed]\nkind = \"parameter\"\nlevels = [100, 150]\n\
         [factor.x]\nkind = \"environment\"\nlevels = [\"a\", \"b\"]\n[monitors]\nstat = \"1ms\"",
    );
    laboratory.run_successfully(&["run", &study, "--label", "one", "--quiet"]);
    laboratory.run_successfully(&["run", &study, "--label", "two", "--quiet"]);
    let said = laboratory.run_successfully(&["compare", "one", "--by", "speed,x"]);
    insta::assert_snapshot!("other_tools_tables_two_factors_and_monitors_1", said.stable_out());
    let said = laboratory.run_successfully(&["compare", "one", "two", "--style", "lkp"]);
    insta::assert_snapshot!(said.stable_out(), @r#"
             one                         two
---------------- ---------------------------
         %stddev     %change         %stddev
             \          |                \
    100.00            +0.0%     100.00        speed=100 x=a echo.speed
    100.00            +0.0%     100.00        speed=100 x=b echo.speed
    150.00            +0.0%     150.00        speed=150 x=a echo.speed
    150.00            +0.0%     150.00        speed=150 x=b echo.speed

note: listed: primary metrics, and whatever perflab's rank test sees changed (q below 0.05)
"#);
    let said = laboratory.run_successfully(&["compare", "one", "two", "--style", "benchstat"]);
    insta::assert_snapshot!(said.stable_out(), @r#"
                    one ops/s   two ops/s   two vs base
echo speed=100 x=a  100.0 ± 0%  100.0 ± 0%  ~ (p=1.000 n=6) ³
echo speed=100 x=b  100.0 ± 0%  100.0 ± 0%  ~ (p=1.000 n=6) ³
echo speed=150 x=a  150.0 ± 0%  150.0 ± 0%  ~ (p=1.000 n=6) ³
echo speed=150 x=b  150.0 ± 0%  150.0 ± 0%  ~ (p=1.000 n=6) ³
geomean             122.5       122.5       +0.00%
³ all samples are equal
"#);
    let rows = laboratory.run_json(&["compare", "one", "two", "--monitor", "stat"])["rows"].take();
    let is_rate = |row: &Value| row["unit"].as_str().unwrap().ends_with("/s");
    assert!(rows.as_array().unwrap().iter().any(is_rate), "{rows}");
    let said = laboratory.run(&["compare", "one", "two", "--monitor", "vmstta"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @"error: run RUN has no series `vmstta`: known here: stat");
    let said = laboratory.run(&["compare", "one", "--by", "speed,y"]);
    assert_eq!(said.code, Some(2));
}

/// A monitor that a run does not have, or that was read too seldom, is named with those that it has, in every style.
#[test]
fn a_monitor_with_nothing_to_compare_says_what_there_is() {
    let laboratory = Sandbox::new();
    let run = |label: &str, monitors: &str| {
        let text = format!("run = {{ iterations = 3, warmup = 1 }}\n[workload.context-switches]\n{monitors}");
        let study = laboratory.write_study("s.toml", &text);
        laboratory.run_successfully(&["run", &study, "--label", label, "--quiet"]);
    };
    run("often", "[monitors]\nmeminfo = \"10ms\"\nstat = \"10ms\"\nvmstat = \"10ms\"");
    run("seldom", "[monitors]\nmeminfo = \"60s\"");
    run("never", "");
    let complaints = [("often", "vmstta"), ("often", "interrupts"), ("seldom", "meminfo"), ("never", "stat")];
    // A style counts readings its own way.
    let mut errors = BTreeSet::new();
    for style in ["perflab", "mmtests", "lkp", "benchstat"] {
        for (run, monitor) in complaints {
            let said = laboratory.run(&["compare", "often", run, "--monitor", monitor, "--style", style]);
            assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{style}: {}", said.err);
            errors.insert(said.err_wording_of("error: "));
        }
    }
    insta::assert_snapshot!(Vec::from_iter(errors).join("\n"), @"
    error: run RUN has no series `interrupts`: known here: meminfo, stat, vmstat
    error: run RUN has no series `stat`: no monitor watched it; a study names those that do under [monitors]
    error: run RUN has no series `vmstta`: did you mean `vmstat`?; known here: meminfo, stat, vmstat
    error: run RUN: meminfo was not read for half of the time of any iteration; read it more often in the study, or compare what it has: meminfo
    error: run RUN: meminfo was not read while a benchmark ran, or it is unknown when it ran; read it more often in the study, or compare what it has: meminfo
    ");
}

/// A monitor that counts is read when iterations begin and end, so that a clock that never ticks in them changes nothing.
#[test]
fn iterations_of_a_few_milliseconds_are_compared_by_their_edges() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("short", "", "echo speed 1");
    let study = laboratory.write_study(
        "short.toml",
        "run = { iterations = 4, warmup = 1 }\n[workload.short]\n[monitors]\nvmstat = \"edges\"\nstat = \"60s\"",
    );
    for label in ["one", "two"] {
        laboratory.run_successfully(&["run", &study, "--label", label, "--quiet"]);
    }
    for monitor in ["vmstat", "stat"] {
        let said =
            laboratory.run_successfully(&["compare", "one", "two", "--monitor", monitor, "--format", "json"]);
        assert_eq!(said.err, "", "{monitor}");
        let json: Value = serde_json::from_str(&said.out).unwrap();
        assert!(!json["rows"].as_array().unwrap().is_empty(), "{monitor}");
    }
    let rows = laboratory.run_json(&["show", "two", "--monitor", "vmstat"]);
    let row = |name: &str| rows.as_array().unwrap().iter().find(|row| row["column"] == name).cloned();
    let faults = row("pgfault").unwrap();
    assert_eq!((&faults["n"], &faults["unit"]), (&4.into(), &"1/s".into()));
    // A shell starts in each: some hundreds of faults in some milliseconds.
    assert!(faults["min"].as_f64() > Some(0.0) && faults["reading error"].as_f64() > Some(0.0), "{faults}");
    assert!(faults["reading error"].as_f64() < faults["min"].as_f64(), "{faults}");
    let rows = laboratory.run_json(&["show", "two", "--monitor", "stat"]);
    assert!(
        rows.as_array().unwrap().iter().any(|row| row["column"] == "ctxt cpu=cpu" && row["n"] == 4),
        "{rows}"
    );
    let runs = fs::read_dir(laboratory.path("archive/runs")).unwrap().flatten();
    for run in runs.map(|run| run.path()).filter(|path| path.join("run.json").exists()) {
        let has = |table: &str| run.join(table).exists();
        assert!(has("edges/vmstat.parquet") && has("edges/stat.parquet") && has("series/stat.parquet"));
        assert!(!has("series/vmstat.parquet"), "it has no ticks");
    }
}

/// Every kind of data that cannot be compared as it is: named, and never a wrong number.
#[test]
fn what_cannot_be_compared_is_named() {
    let laboratory = Sandbox::new();
    let run = |label: &str, script: &str, iterations: u32| {
        // What the script does changes, and not what is run: another definition would be another benchmark.
        let file = laboratory.path("made.sh");
        laboratory.write_workload("made", "", &format!(". {}", file.display()));
        std::fs::write(&file, script).unwrap();
        let text = format!("run = {{ iterations = {iterations}, warmup = 0 }}\n[workload.made]");
        let study = laboratory.write_study("made.toml", &text);
        laboratory.run(&["run", &study, "--label", label, "--quiet"]);
    };
    run("many", "echo speed 100", 8);
    run("one", "echo speed 90", 1);
    run("zero", "echo speed 0", 8);
    run("failing", "exit 3", 4);
    let json = laboratory.run_json(&["compare", "many", "one"]);
    let row = &json["rows"][0];
    assert_eq!((&row["verdict"], &row["change"]["interval"]), (&"unclear".into(), &Value::Null), "{row}");
    assert!(row["flags"].as_array().unwrap().contains(&"few".into()), "{row}");
    assert_eq!(compare_as_json(&laboratory, &["many", "many"]), [verdict_row("many", 0, "same")]);
    let said = laboratory.run_successfully(&["compare", "many", "zero", "--ratio"]);
    insta::assert_snapshot!("what_cannot_be_compared_is_named_1", said.stable_out());
    let said = laboratory.run_successfully(&["compare", "many", "zero", "--style", "mmtests"]);
    insta::assert_snapshot!("what_cannot_be_compared_is_named_2", said.stable_out());
    let row = &laboratory.run_json(&["compare", "many", "failing"])["rows"][0];
    assert_eq!((&row["verdict"], &row["basis"]), (&"worse".into(), &"failures".into()), "{row}");
    // The same name in another unit is another metric.
    let text = std::fs::read_to_string(laboratory.path("workloads/made.toml")).unwrap();
    let text = text.replace("ops/s", "kops/s");
    std::fs::write(laboratory.path("workloads/made.toml"), text).unwrap();
    std::fs::write(laboratory.path("made.sh"), "echo speed 1").unwrap();
    let study = laboratory.write_study("made.toml", "run = { iterations = 4, warmup = 0 }\n[workload.made]");
    laboratory.run_successfully(&["run", &study, "--label", "other", "--quiet"]);
    let said = laboratory.run(&["compare", "many", "other"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!("what_cannot_be_compared_is_named_3", said.stable_err());
}

/// Rows of `--style lkp` are rows that lkp itself prints for the same files (`tests/data/lkp`), but for a mean of 0.
#[test]
fn rows_in_the_style_of_lkp_are_its_own() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/lkp");
    let laboratory = Sandbox::new();
    for label in ["before", "after"] {
        let file = format!("{data}/{label}.json");
        laboratory.run_successfully(&["import", &file, "--kind", "lkp-stats", "--label", label]);
    }
    let said = laboratory.run_successfully(&["compare", "before", "after", "--style", "lkp"]);
    let theirs = fs::read_to_string(format!("{data}/printed.txt")).unwrap();
    let theirs: Vec<&str> = theirs.lines().map(str::trim_end).collect();
    let ours: Vec<&str> = said.out.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(ours.len(), 12, "four lines of head, eight rows: {}", said.out);
    for line in ours {
        let from_zero = line.contains("slabinfo.dentry.active_objs") && line.contains("n/a");
        assert!(from_zero || theirs.contains(&line), "{line}\n{}", theirs.join("\n"));
    }
    insta::assert_snapshot!("rows_in_the_style_of_lkp_are_its_own_1", said.stable_out());
}

/// Two runs of logs that were recorded in MMTests' layout, one of each iteration.
fn import_recorded_logs(layout: &str) -> Sandbox {
    let laboratory = Sandbox::new();
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../import/tests/recorded/mmtests").join(layout);
    for (run, iteration) in [("recorded-base", "iter-0"), ("recorded-new", "iter-1")] {
        copy_folder(&logs.join(iteration), &laboratory.path(run).join("iter-0"));
        laboratory.run_successfully(&["import", run]);
    }
    laboratory
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// What is printed before the notes, without marks, which are ours, and with single spaces.
fn compact_lines(text: &str) -> Vec<String> {
    let lines = text.lines().take_while(|line| !line.is_empty());
    let plain = lines.map(|line| line.replace(['*', '(', ')'], "|"));
    plain.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Every table that compare-mmtests.pl printed of the same logs: same rows, same figures, same order.
#[test]
fn recorded_logs_have_the_tables_that_mmtests_prints() {
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mmtests");
    for layout in ["current", "streams-current"] {
        let laboratory = import_recorded_logs(layout);
        let of_layout = |line: &&str| line.split('\t').next() == Some(layout);
        let index = fs::read_to_string(goldens.join("tables.tsv")).unwrap();
        for line in index.lines().filter(of_layout) {
            let [_, name, options] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let options: Vec<&str> = options.split_whitespace().collect();
            let fixed = ["compare", "recorded-base", "recorded-new", "--style", "mmtests"];
            let said = laboratory.run_successfully(&[&fixed[..], &options].concat());
            let theirs = fs::read_to_string(goldens.join(format!("{name}.txt"))).unwrap();
            assert_eq!(compact_lines(&said.out), compact_lines(&theirs), "{name}");
        }
    }
}

/// Means and maxima over all readings of a monitor, and durations of a benchmark.
#[test]
fn monitors_have_the_figures_that_mmtests_prints() {
    let laboratory = import_recorded_logs("current");
    let printed = |monitor: &str| {
        let fixed = ["compare", "recorded-base", "recorded-new", "--style", "mmtests", "--monitor", monitor];
        laboratory.run_successfully(&fixed).out
    };
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/mmtests/perf-time-stat.txt");
    let ours = compact_lines(&printed("perf-time-stat"));
    let theirs = compact_lines(&fs::read_to_string(golden).unwrap());
    assert!(theirs.len() == 8 && theirs.iter().all(|line| ours.contains(line)), "{ours:?}");
    let durations = printed("duration");
    let user = durations.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert!(user.into_iter().any(|row| row == ["Duration", "User", "1.42", "3.62"]), "{durations}");
    // Only one benchmark was watched: no other has a table, though it began in the second in which the readings end.
    for monitor in ["vmstat", "vmstat-tool"] {
        let table = printed(monitor);
        let heads = table.lines().filter(|line| line.split_whitespace().eq(["recorded", "recorded"]));
        assert_eq!(heads.count(), 1, "{table}");
    }
}

/// What a benchmark is for, or what only explains it; by name with any spelling of neither.
#[test]
fn metrics_are_chosen_by_what_they_are_for() {
    let laboratory = import_recorded_logs("current");
    let metrics = |wanted: &str| -> Vec<String> {
        let options = ["--workload", "sysbenchcpu", "--metric", wanted];
        let json =
            laboratory.run_json(&[&["compare", "recorded-base", "recorded-new"], &options[..]].concat());
        let rows = json["rows"].as_array().unwrap();
        rows.iter().map(|row| row["metric"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(metrics("primary"), ["events/sec"; 2]);
    assert_eq!(metrics("explanatory"), ["latency"; 2]);
    assert_eq!(metrics("latency"), ["latency"; 2]);
    let wrong = laboratory.run(&["compare", "recorded-base", "recorded-new", "--metric", "primry"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.err);
    insta::assert_snapshot!(wrong.stable_err(), @"error: `recorded-base` has no samples of primry: it has hackbench-process-pipes time, duration User, duration System, duration Elapsed, perfpipe usecs-op, 71 more");
}

/// 3 ms are not better than 4,000 us by a thousand.
#[test]
fn values_of_different_units_are_never_compared() {
    let laboratory = Sandbox::new();
    for (label, unit) in [("in-ns", "ns"), ("in-cy", "cy")] {
        let one = format!(
            r#"{{"name": "Fill", "run_type": "iteration", "real_time": 5, "time_unit": "{unit}", "pages": 3}}"#
        );
        let text = format!(r#"{{"context": {{}}, "benchmarks": [{one}, {one}, {one}]}}"#);
        fs::write(laboratory.path(label), text).unwrap();
        laboratory.run_successfully(&["import", label, "--label", label]);
    }
    let of = |options: &[&str]| {
        laboratory.run_successfully(&[&["compare", "in-ns", "in-cy"], options].concat()).out
    };
    let json = laboratory.run_json(&["compare", "in-ns", "in-cy"]);
    let times = json["rows"].as_array().unwrap().iter().filter(|row| row["metric"] == "real_time");
    let times: Vec<[bool; 3]> =
        times.map(|row| ["baseline", "candidate", "change"].map(|side| row[side].is_null())).collect();
    assert_eq!(times, [[false, true, true], [true, false, true]], "{json}");
    let csv = of(&["--style", "mmtests", "--format", "csv"]);
    let changes: Vec<&str> = csv
        .lines()
        .filter(|line| line.contains("real_time") && line.contains(",in-cy,"))
        .map(|line| line.split(',').nth(5).unwrap())
        .collect();
    assert!(changes.len() >= 6 && changes.iter().all(|change| change.is_empty()), "{csv}");
    insta::assert_snapshot!(of(&["--style", "mmtests"]), @"
                                                       in                           in
                                                       ns                           cy
    Min       real_time [ns]             5.000 (   0.00%)               n/a (    n/a )
    Min       real_time [cy]               n/a (    n/a )             5.000 (    n/a )
    Min       pages                      3.000 (   0.00%)             3.000 (   0.00%)
    Amean     real_time [ns]             5.000 (   0.00%)               n/a (    n/a )
    Amean     real_time [cy]               n/a (    n/a )             5.000 (    n/a )
    Amean     pages                      3.000 (   0.00%)             3.000 (   0.00%)
    Stddev    real_time [ns]             0.000 (   0.00%)               n/a (    n/a )
    Stddev    real_time [cy]               n/a (    n/a )             0.000 (    n/a )
    Stddev    pages                      0.000 (   0.00%)             0.000 (   0.00%)
    CoeffVar  real_time [ns]             0.000 (   0.00%)               n/a (    n/a )
    CoeffVar  real_time [cy]               n/a (    n/a )             0.000 (    n/a )
    CoeffVar  pages                      0.000 (   0.00%)             0.000 (   0.00%)
    Max       real_time [ns]             5.000 (   0.00%)               n/a (    n/a )
    Max       real_time [cy]               n/a (    n/a )             5.000 (    n/a )
    Max       pages                      3.000 (   0.00%)             3.000 (   0.00%)
    BAmean.95 real_time [ns]             5.000 (   0.00%)               n/a (    n/a )
    BAmean.95 real_time [cy]               n/a (    n/a )             5.000 (    n/a )
    BAmean.95 pages                      3.000 (   0.00%)             3.000 (   0.00%)

    note: * on the row of the mean: more than chance, q of perflab's rank test below 0.05
    note: pages: no better or worse is known; signs as if lower were better
    note: real_time [ns]: in-cy has no value; MMTests would print 0.00 (0.00%) and a ratio of 1.00
    note: real_time [cy]: in-ns has no value; MMTests would print 0.00 (0.00%) and a ratio of 1.00
    ");
    insta::assert_snapshot!(of(&["--ratio"]), @"
    gain (above 1 is better)  metric  in-cy

    note: gain: candidate / baseline where more is better, baseline / candidate where less is; primary
      metrics only; its interval is that of the change
    note: no geometric mean: no metric has a gain on every side
    note: left out: Fill, real_time has no value on in-cy
    note: left out: Fill, real_time has no value on the baseline
    ");
    insta::assert_snapshot!(of(&["--style", "lkp"]), @r#"
               in-ns                       in-cy
    ---------------- ---------------------------
             %stddev     %change         %stddev
                 \          |                \
          5.00         missing         n/a        Fill.real_time
           n/a         missing        5.00        Fill.real_time

    rows that did not change, left out: 1
    note: listed: primary metrics, and whatever perflab's rank test sees changed (q below 0.05)
    "#);
}

/// A job fails by the exit code; what it shows is a test for each row, and the table on the page of the job.
#[test]
fn verdicts_are_what_continuous_integration_reads() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study(
        "sleep.toml",
        "run = { iterations = 8, warmup = 0 }\n[workload.nap]\ncommand = \"sleep $NAP\"\n\
         [factor.nap]\nkind = \"environment\"\nkey = \"NAP\"\nlevels = [\"0.01\", \"0.05\"]",
    );
    laboratory.run_successfully(&["run", &study, "--label", "nap", "--quiet", "--no-report"]);
    let summary = laboratory.path("summary.md");
    let compare = |format: &str| {
        let words = ["compare", "nap", "--fail-if", "worse", "--format", format];
        let mut command = laboratory.command(&words);
        let said = to_command_output(command.env("GITHUB_STEP_SUMMARY", &summary).output().unwrap());
        assert_eq!(said.code, Some(5), "{}", said.err);
        said.out
    };
    let junit = compare("junit");
    assert!(junit.contains("tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{junit}");
    assert!(junit.contains("<testcase classname=\"nap\" name=\"time\"><failure type=\"worse\""), "{junit}");
    let ktap = compare("ktap");
    assert!(
        ktap.starts_with("KTAP version 1\n1..1\n# ") && ktap.ends_with("\nnot ok 1 nap time\n"),
        "{ktap}"
    );
    assert!(!summary.exists(), "it is for GitHub's alone");
    let github = compare("github");
    let commands: Vec<&str> = github.lines().map(|line| line.split("::").nth(1).unwrap()).collect();
    assert!(commands[0].starts_with("notice ") && commands[1] == "error title=nap time%3A worse", "{github}");
    fs::write(&summary, "# before\n").unwrap();
    compare("github");
    let table = fs::read_to_string(&summary).unwrap();
    assert!(table.starts_with("# before\n\n\n**1 of 1 worse: ") && table.contains("### nap"), "{table}");
    // What --fail-if counts fails, and nothing else.
    let fine = laboratory.run(&["compare", "nap", "--fail-if", "worse:99999%", "--format", "junit"]);
    assert!(
        fine.code == Some(0) && fine.out.contains("failures=\"0\" errors=\"0\" skipped=\"0\""),
        "{}",
        fine.out
    );
    let mut command = laboratory.command(&["compare", "nap", "--fail-if", "worse", "--format", "github"]);
    let said = to_command_output(command.env("GITHUB_STEP_SUMMARY", laboratory.path("")).output().unwrap());
    assert!(
        said.code == Some(5) && said.err.contains("warning: the table is not in the summary"),
        "{}",
        said.err
    );
    // A job's runner reads stderr too: a name is no command of its.
    let said = laboratory.run(&["compare", "no\n::error::run", "nap"]);
    assert!(said.code == Some(2) && !said.err.lines().any(|line| line.starts_with("::")), "{}", said.err);
    for words in [&["compare", "nap", "--ratio", "--format", "junit"][..], &["list", "--format", "ktap"]] {
        assert_eq!(laboratory.run(words).code, Some(2), "{words:?}");
    }
}
