//! Questions in SQL, answered by a real DuckDB: what the tables hold is what the other verbs say.

use std::fs;
use std::process::Stdio;

use crate::laboratory::{Sandbox, find_test_python, skip_test};

/// Two runs of one study; none where there is no DuckDB.
fn prepare_sandbox(name: &str) -> Option<Sandbox> {
    if find_test_python().is_none() {
        skip_test(name, "no target/test-venv (cargo xtask test makes it)");
        return None;
    }
    let laboratory = Sandbox::new();
    laboratory.run_echo("before", 100);
    laboratory.run_echo("it's", 50);
    Some(laboratory)
}

fn answer(laboratory: &Sandbox, arguments: &[&str]) -> serde_json::Value {
    laboratory.run_json(&[&["query"], arguments].concat())
}

#[test]
fn tables_hold_what_other_verbs_say() {
    let Some(laboratory) = prepare_sandbox("query_tables") else { return };
    let listed = laboratory.run_json(&["list"]);
    let asked =
        answer(&laboratory, &["SELECT run, label, study, iterations, bytes AS size FROM runs ORDER BY run"]);
    let pick = |rows: &serde_json::Value, keys: &[&str]| -> Vec<Vec<serde_json::Value>> {
        let row = |row: &serde_json::Value| keys.iter().map(|key| row[*key].clone()).collect();
        rows.as_array().unwrap().iter().map(row).collect()
    };
    let keys = ["run", "label", "study", "iterations", "size"];
    assert_eq!(pick(&asked, &keys), pick(&listed, &keys));
    let counts = "SELECT (SELECT count(DISTINCT run) FROM samples) AS samples, (SELECT count(*) FROM iterations) AS \
                  iterations, (SELECT count(*) FROM facts WHERE key = 'kernel.release') AS kernels";
    let all: u64 = listed.as_array().unwrap().iter().map(|run| run["iterations"].as_u64().unwrap()).sum();
    assert_eq!(
        answer(&laboratory, &[counts]),
        serde_json::json!([{ "samples": 2, "iterations": all, "kernels": 2 }])
    );
    let one =
        answer(&laboratory, &["--label", "it's", "SELECT DISTINCT label FROM samples JOIN runs USING (run)"]);
    assert_eq!(one, serde_json::json!([{ "label": "it's" }]));
    let last = answer(&laboratory, &["--last", "1", "SELECT count(*) AS n FROM runs"]);
    assert_eq!(last, serde_json::json!([{ "n": 1 }]));
}

/// The package of Python and the program, which answer alike.
fn list_engines() -> Vec<String> {
    let python = find_test_python().unwrap();
    let program = python.with_file_name("duckdb");
    assert!(program.is_file(), "`cargo xtask test` makes {}", program.display());
    [python, program].map(|engine| engine.display().to_string()).to_vec()
}

#[test]
fn numbers_keep_their_digits_and_nothing_is_null() {
    let Some(laboratory) = prepare_sandbox("query_values") else { return };
    let question = "SELECT 0.1::DOUBLE AS double, 1.50::DECIMAL(5, 2) AS decimal, 9007199254740993 AS large, NULL AS nothing, \
                    TIMESTAMP '2024-02-29 12:00:00' AS time, 'a|b' AS text";
    for engine in list_engines() {
        let row = &answer(&laboratory, &["--engine", &engine, question])[0];
        assert_eq!(row["double"], 0.1);
        let decimal = row["decimal"].as_f64().or(row["decimal"].as_str().and_then(|text| text.parse().ok()));
        assert_eq!(decimal, Some(1.5));
        assert_eq!(row["large"], 9_007_199_254_740_993_u64);
        assert_eq!((&row["nothing"], &row["text"]), (&serde_json::Value::Null, &"a|b".into()));
        assert_eq!(row["time"], "2024-02-29 12:00:00");
        let none = "SELECT run FROM runs WHERE false";
        assert_eq!(laboratory.run_successfully(&["query", "--engine", &engine, none]).out, "");
        assert_eq!(answer(&laboratory, &["--engine", &engine, none]), serde_json::json!([]));
    }
}

#[test]
fn mistakes_are_the_users_and_a_missing_engine_is_the_machines() {
    let Some(laboratory) = prepare_sandbox("query_mistakes") else { return };
    for engine in list_engines() {
        let said = laboratory.run(&["query", "--engine", &engine, "SELECT\n nosuch FROM samples"]);
        assert!(
            said.code == Some(2) && said.err.contains("nosuch") && said.err.contains("LINE 2"),
            "{}",
            said.err
        );
        assert!(!said.err.contains("Loading") && !said.err.contains("\\x1b"), "{}", said.err);
    }
    assert_eq!(laboratory.run(&["query", " "]).code, Some(2));
    assert_eq!(laboratory.run(&["query", "--label", "befor", "SELECT 1"]).code, Some(2));
    let said = laboratory.run(&["query", "SELECT 1", "--engine", "/bin/true"]);
    assert!(said.code == Some(3) && said.err.contains("/bin/true"), "{}", said.err);
    let said = laboratory.run(&["query", "SELECT 1", "--engine", "/nowhere/duckdb"]);
    assert!(said.code == Some(3) && said.err.contains("/nowhere/duckdb"), "{}", said.err);
}

/// A damaged run has no part in it; statements are printed for whoever wants a session.
#[test]
fn a_damaged_run_is_left_out_and_views_can_be_had() {
    let Some(laboratory) = prepare_sandbox("query_views") else { return };
    let runs = laboratory.run_json(&["list"]);
    let first = runs[0]["run"].as_str().unwrap();
    fs::write(laboratory.path("archive/runs").join(first).join("run.json"), "{").unwrap();
    assert_eq!(
        answer(&laboratory, &["SELECT count(DISTINCT run) AS n FROM samples"]),
        serde_json::json!([{ "n": 1 }])
    );
    let views = laboratory.run_successfully(&["query", "--views"]).out;
    assert!(views.contains("CREATE VIEW samples") && !views.contains(first), "{views}");
    let mut asked = laboratory.command(&["query", "-", "--format", "csv"]);
    let mut child = asked.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"SELECT count(*) AS n FROM runs;").unwrap();
    let said = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&said.stdout), "n\n1\n");
}

/// One bit of a table: the others answer, and the run is named.
#[test]
fn a_table_that_is_not_as_it_was_written_has_no_part_in_an_answer() {
    let Some(laboratory) = prepare_sandbox("query_flipped_bit") else { return };
    let run = laboratory.run_json(&["list"])[0]["run"].as_str().unwrap().to_owned();
    let table = laboratory.path(&format!("archive/runs/{run}/samples.parquet"));
    let mut bytes = fs::read(&table).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&table, bytes).unwrap();
    let question = "SELECT (SELECT count(DISTINCT run) FROM samples) AS samples, (SELECT count(DISTINCT run) FROM iterations) AS i";
    for engine in list_engines() {
        let said = laboratory.run(&["query", "--engine", &engine, "--format", "json", question]);
        let rows: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(
            (said.code, &rows),
            (Some(0), &serde_json::json!([{ "samples": 1, "i": 2 }])),
            "{}",
            said.err
        );
        assert!(said.err.contains(&run), "{}", said.err);
    }
}

#[test]
fn what_json_has_no_word_for_is_answered_too() {
    let Some(laboratory) = prepare_sandbox("query_special_values") else { return };
    for engine in list_engines() {
        let question = "SELECT 'NaN'::DOUBLE AS a, '-inf'::DOUBLE AS a, 'inf' AS text";
        let row = &answer(&laboratory, &["--engine", &engine, question])[0];
        assert_eq!(*row, serde_json::json!({ "a": "NaN", "a_1": "-Infinity", "text": "inf" }), "{engine}");
    }
    let program = find_test_python().unwrap().with_file_name("duckdb").display().to_string();
    for question in ["SELECT 1; SELECT 2", ".shell true"] {
        let said = laboratory.run(&["query", "--engine", &program, question]);
        assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{}", said.err);
    }
}

/// The folder of the runs is the last of its name in a path.
#[test]
fn an_archive_may_lie_below_a_folder_that_is_called_runs() {
    let Some(laboratory) = prepare_sandbox("query_below_runs") else { return };
    let listed = laboratory.run_json(&["list"]);
    let mut ids: Vec<&str> =
        listed.as_array().unwrap().iter().map(|run| run["run"].as_str().unwrap()).collect();
    ids.sort_unstable();
    fs::create_dir(laboratory.path("runs")).unwrap();
    fs::rename(laboratory.path("archive"), laboratory.path("runs/archive")).unwrap();
    let question = "SELECT DISTINCT run FROM samples ORDER BY run";
    let rows = laboratory.run_json(&["query", "--archive", "runs/archive", question]);
    let found: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["run"].as_str().unwrap()).collect();
    assert_eq!(found, ids);
}
