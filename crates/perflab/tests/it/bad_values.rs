//! Values that nobody hopes for: a row with its reason, never a wrong word and never a panic.

use std::fs;

use serde_json::Value;

use crate::laboratory::Sandbox;

/// Lines of a go benchmark: one iteration each.
fn lines_of(values: &[&str], unit: &str) -> String {
    values.iter().map(|value| format!("BenchmarkX 1 {value} {unit}\n")).collect()
}

struct ImportedPair(Sandbox);

impl ImportedPair {
    /// Two files of go benchmarks, imported as `a` and `b`.
    fn new(ours: &str, theirs: &str) -> Self {
        let laboratory = Sandbox::new();
        for (label, text) in [("a", ours), ("b", theirs)] {
            let path = laboratory.path(&format!("{label}.txt"));
            fs::write(&path, text).unwrap();
            let output =
                laboratory.run(&["import", path.to_str().unwrap(), "--kind", "go-bench", "--label", label]);
            // 1: some lines could not be used, which the report of the import names.
            assert!(matches!(output.code, Some(0 | 1)), "{:?} {}", output.code, output.err);
        }
        ImportedPair(laboratory)
    }

    /// Of values under one unit.
    fn of_values(ours: &[&str], theirs: &[&str]) -> Self {
        Self::new(&lines_of(ours, "ns/op"), &lines_of(theirs, "ns/op"))
    }

    fn rows(&self) -> Vec<Value> {
        let json = self.0.run_json(&["compare", "a", "b"]);
        json["rows"].as_array().unwrap().clone()
    }

    fn only_row(&self) -> Value {
        let mut rows = self.rows();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        rows.remove(0)
    }

    fn code(&self, arguments: &[&str]) -> Option<i32> {
        self.0.run(&[&["compare", "a", "b"], arguments].concat()).code
    }
}

fn has_flag(row: &Value, name: &str) -> bool {
    row["flags"].as_array().unwrap().iter().any(|flag| flag == name)
}

#[test]
fn zeros_and_negative_values_are_compared_by_differences() {
    let zeros = ["0"; 8];
    let row = ImportedPair::of_values(&zeros, &zeros).only_row();
    assert_eq!(
        (&row["verdict"], &row["change"]["scale"]),
        (&"same-here".into(), &"absolute".into()),
        "{row}"
    );
    let negative = ["-3", "-4", "-3.5", "-3.2", "-3.9", "-3.1", "-3.6", "-3.3"];
    let positive = ["3", "4", "3.5", "3.2", "3.9", "3.1", "3.6", "3.3"];
    let pair = ImportedPair::of_values(&negative, &positive);
    let row = pair.only_row();
    assert_eq!((&row["verdict"], &row["change"]["scale"]), (&"differs".into(), &"absolute".into()), "{row}");
    assert!(row["change"]["value"].as_f64() > Some(6.0), "{row}");
    assert_eq!(pair.code(&["--fail-if", "worse"]), Some(0));
    assert_eq!(pair.code(&["--fail-on-differs"]), Some(5));
    // From zero there is no share of the baseline: the size is beyond any limit, and no bound is made up.
    let row = ImportedPair::of_values(&zeros, &positive).only_row();
    assert_eq!((&row["verdict"], &row["no_larger_than"]), (&"differs".into(), &Value::Null), "{row}");
}

#[test]
fn single_values_have_no_interval_and_no_word() {
    let pair = ImportedPair::of_values(&["10"], &["20"]);
    let row = pair.only_row();
    assert_eq!((&row["verdict"], &row["change"]["interval"]), (&"unclear".into(), &Value::Null), "{row}");
    assert!(has_flag(&row, "few") && row["parts"].is_null(), "{row}");
    assert_eq!(pair.code(&["--fail-if", "worse", "--fail-on-differs"]), Some(0));
    assert_eq!(pair.code(&["--fail-if", "unclear"]), Some(5));
    let row = ImportedPair::of_values(&["10"], &["20", "21", "22", "20.5", "21.5"]).only_row();
    assert_eq!(row["verdict"], "unclear", "{row}");
}

#[test]
fn numbers_at_the_ends_of_the_format_do_no_harm() {
    let huge = ["1e308", "1.1e308", "1.2e308", "1.05e308", "1.15e308", "1.7e308"];
    let tiny = ["5e-324", "1e-323", "1e-310", "2e-310", "5e-324", "1e-320"];
    for (ours, theirs) in [(&huge, &huge), (&tiny, &huge), (&huge, &tiny), (&tiny, &tiny)] {
        let pair = ImportedPair::of_values(ours, theirs);
        let row = pair.only_row();
        let table = pair.0.run(&["compare", "a", "b"]).out;
        assert!(table.lines().all(|line| line.chars().count() < 160), "{table}");
        let verdict = row["verdict"].as_str().unwrap();
        if ours == theirs {
            assert!(["same-here", "unclear"].contains(&verdict), "{row}");
        } else {
            assert!(["differs", "unclear"].contains(&verdict), "{row}");
        }
    }
    // Of both signs, their difference is no number: the row says why it has no change.
    let opposite = ["-1e308", "-1.1e308", "-1.2e308", "-1.05e308", "-1.15e308", "-1.7e308"];
    let row = ImportedPair::of_values(&opposite, &huge).only_row();
    assert_eq!((&row["verdict"], &row["change"]), (&"unclear".into(), &Value::Null), "{row}");
    assert!(has_flag(&row, "few"), "{row}");
}

#[test]
fn what_is_no_number_is_left_out_by_name() {
    let good = ["10", "10.1", "10.05", "10.02", "10.08", "10.01"];
    let mut broken = good.to_vec();
    broken.extend(["NaN", "+Inf", "-Inf", "1e999"]);
    let pair = ImportedPair::of_values(&good, &broken);
    let row = pair.only_row();
    assert_eq!((&row["verdict"], &row["candidate"]["n"]), (&"same-here".into(), &6.into()), "{row}");
    let nothing = ["NaN", "+Inf"];
    let laboratory = Sandbox::new();
    let path = laboratory.path("none.txt");
    fs::write(&path, lines_of(&nothing, "ns/op")).unwrap();
    let output = laboratory.run(&["import", path.to_str().unwrap(), "--kind", "go-bench"]);
    assert_ne!(output.code, Some(0), "{}", output.err);
}

/// Files that are compared without an import say what of them was left out, as the import does.
#[test]
fn what_is_no_number_in_a_file_that_is_compared_is_counted_and_told() {
    let laboratory = Sandbox::new();
    let good = ["10", "10.1", "10.05", "10.02", "10.08", "10.01"];
    let broken = [&good[..], &["NaN", "+Inf", "-Inf", "1e999"]].concat();
    let paths: Vec<String> = [("a.txt", &good[..]), ("b.txt", &broken)]
        .map(|(name, values)| {
            let path = laboratory.path(name);
            fs::write(&path, lines_of(values, "ns/op")).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .into();
    let said = laboratory.run(&["compare", &paths[0], &paths[1], "--format", "json"]);
    let told = |path: &String| said.err.lines().filter(|line| line.contains(path.as_str())).count();
    // Once with the counts, and each of the first lines with its reason.
    assert_eq!((said.code, told(&paths[0]), told(&paths[1]) >= 4), (Some(0), 0, true), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"
    warning: the files give no time: the run is dated by the file's last change; copy such files with their times (cp -p), so that runs keep their order
    warning: b.txt: 10 rows read, 6 used, 0 flagged, 4 unusable; the first at line 7: a value of `X` is no number; what is unusable or was not counted gives no sample; look at the file there
    warning: the files give no time: the run is dated by the file's last change; copy such files with their times (cp -p), so that runs keep their order
    warning: /tmp/.TMP/b.txt:7: a value of `X` is no number
    warning: /tmp/.TMP/b.txt:8: a value of `X` is no number
    warning: /tmp/.TMP/b.txt:9: a value of `X` is no number
    warning: /tmp/.TMP/b.txt:10: a value of `X` is no number
    ");
}

#[test]
fn another_unit_is_another_metric_and_says_so() {
    let both = |unit: &str| {
        format!("{}{}", lines_of(&["10", "11", "12", "10", "11"], "ns/op"), lines_of(&["1", "2"], unit))
    };
    // Go's units are their names.
    let rows = ImportedPair::new(&both("widgets"), &both("gadgets")).rows();
    assert_eq!(rows.iter().filter(|row| has_flag(row, "one-sided")).count(), 2, "{rows:#?}");
    let laboratory = Sandbox::new();
    for (label, unit) in [("a", "ms"), ("b", "us")] {
        let tables = format!(
            "[[metric]]\nname = \"wait\"\nunit = \"{unit}\"\ndirection = \"lower\"\nregex = 'wait (?<value>[0-9.]+)'"
        );
        laboratory.write_workload("waiter", &tables, "echo speed 10; echo wait 20");
        let study =
            laboratory.write_study("s.toml", "run = { iterations = 3, warmup = 0 }\n[workload.waiter]");
        laboratory.run_successfully(&["run", &study, "--label", label, "--no-report"]);
    }
    let json = laboratory.run_json(&["compare", "a", "b", "--across"]);
    let rows: Vec<&Value> =
        json["rows"].as_array().unwrap().iter().filter(|row| row["metric"] == "wait").collect();
    assert_eq!(rows.len(), 2, "{rows:#?}");
    for row in rows {
        assert!(has_flag(row, "one-sided") && row["withheld"].is_string(), "{row}");
        assert_eq!(row["verdict"], "unclear");
    }
    // It is not told to be missing, and once which unit is where.
    let about = |kind: &str| -> Vec<&Value> {
        let all = json["warnings"].as_array().unwrap().iter();
        all.filter(|one| one["kind"] == kind && one.to_string().contains("wait")).collect()
    };
    assert!(about("one-sided").is_empty(), "{json}");
    let [found] = about("not-judged")[..] else { panic!("{json}") };
    assert_eq!(found["reason"], "its unit is ms in a, but us in b", "{found}");
    let gated = laboratory.run(&["compare", "a", "b", "--across", "--fail-if", "missing"]);
    assert_eq!(gated.code, Some(0), "a metric that explains is not what decides: {}", gated.err);
}

#[test]
fn runs_that_contradict_each_other_in_what_is_better_get_no_word() {
    let slow = lines_of(&["100", "101", "102", "100.5", "101.5", "100.2"], "speed");
    let fast = lines_of(&["200", "201", "202", "200.5", "201.5", "200.2"], "speed");
    let pair = ImportedPair::new(
        &format!("Unit speed better=lower\n{slow}"),
        &format!("Unit speed better=higher\n{fast}"),
    );
    let row = pair.only_row();
    assert_eq!(row["verdict"], "unclear", "{row}");
    assert!(row["withheld"].is_string() && row["change"]["value"].as_f64() > Some(0.9), "{row}");
    let json = pair.0.run_json(&["compare", "a", "b"]);
    assert!(json["warnings"].as_array().unwrap().iter().any(|one| one["kind"] == "not-judged"), "{json}");
    // 7: a row that decides has no verdict.
    assert_eq!(pair.code(&["--fail-if", "worse", "--fail-on-differs"]), Some(7));
}

#[test]
fn an_empty_side_is_an_error_that_says_so() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 100);
    laboratory.write_workload("broken", "", "exit 3");
    let study = laboratory.write_study("s.toml", "run = { iterations = 2, warmup = 0 }\n[workload.broken]");
    assert_eq!(laboratory.run(&["run", &study, "--label", "b", "--no-report"]).code, Some(4));
    for sides in [["a", "b"], ["b", "a"]] {
        let output = laboratory.run(&["compare", sides[0], sides[1]]);
        assert!(
            matches!(output.code, Some(1 | 2)) && !output.err.is_empty(),
            "{:?} {}",
            output.code,
            output.err
        );
    }
}
