//! Runs as things: list, label, rm, show, diff, export, import, prune.

use std::process::Stdio;

use crate::laboratory::Laboratory;

#[test]
fn a_run_travels_as_one_file() {
    let (home, away) = (Laboratory::new(), Laboratory::new());
    home.echo("a", 100);
    let file = home.path("a.perflab").display().to_string();
    home.good(&["export", "a", &file]);
    let direct = home.good(&["show", &file]);
    away.good(&["import", &file]);
    assert_eq!(away.good(&["show", "a"]).out, direct.out);
    let again = away.run(&["import", &file]);
    assert_eq!(again.code, Some(2), "{}", again.err);
}

#[test]
fn prune_says_first_and_does_on_apply() {
    let laboratory = Laboratory::new();
    for label in ["a", "b", "c"] {
        laboratory.echo(label, 100);
    }
    let runs = || laboratory.good(&["list", "--format", "csv"]).out.lines().count() - 1;
    assert_eq!(laboratory.run(&["prune"]).code, Some(2));
    laboratory.good(&["prune", "--keep", "1", "--labelled"]);
    assert_eq!(runs(), 3);
    laboratory.good(&["prune", "--keep", "1", "--apply"]);
    assert_eq!(runs(), 3, "labelled runs stay unless named");
    laboratory.good(&["prune", "--keep", "1", "--labelled", "--apply"]);
    assert_eq!(runs(), 1);
    assert_eq!(laboratory.run(&["prune", "--older-than", "soon"]).code, Some(2));
}

#[test]
fn a_label_is_given_later_and_a_run_removed_by_name() {
    let laboratory = Laboratory::new();
    for label in ["a", "a", "b"] {
        laboratory.echo(label, 100);
    }
    let listed = |arguments: &[&str]| -> Vec<(String, String)> {
        let table = laboratory.good(&[&["list", "--format", "json"], arguments].concat()).out;
        let rows: Vec<serde_json::Value> = serde_json::from_str(&table).unwrap();
        let text = |row: &serde_json::Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        rows.iter().map(|row| (text(row, "run"), text(row, "label"))).collect()
    };
    let all = listed(&[]);
    assert_eq!(listed(&["--label", "a"]), all[..2]);
    assert_eq!(listed(&["--last", "1"]), all[2..]);
    assert_eq!(listed(&["--label", "a", "--last", "1"]), all[1..2]);
    let before = laboratory.good(&["show", "@latest", "--format", "json"]).out;
    laboratory.good(&["label", "b", "candidate"]);
    assert_eq!(laboratory.run(&["show", "b"]).code, Some(2), "nothing is called so any more");
    laboratory.good(&["label", "candidate", "b"]);
    assert_eq!(laboratory.good(&["show", "b", "--format", "json"]).out, before, "nothing else changed");
    laboratory.good(&["label", "@latest", "--remove"]);
    assert_eq!(listed(&[])[2].1, "");
    for wrong in
        [&["rm", "a"][..], &["rm", &all[0].0, "nothing"], &["label", "a", "x"], &["rm"], &["label", "b"]]
    {
        assert_eq!(laboratory.run(wrong).code, Some(2), "{wrong:?}");
    }
    assert_eq!(listed(&[]).len(), 3, "where one is wrong, none goes");
    std::fs::write(laboratory.path(&format!("archive/runs/{}/run.json", all[1].0)), "{").unwrap();
    laboratory.good(&["rm", &all[1].0, "@latest"]);
    assert_eq!(listed(&[]), all[..1], "a damaged one too");
    let (other, file) = (Laboratory::new(), laboratory.path("a.perflab").display().to_string());
    laboratory.good(&["export", "a", &file]);
    let elsewhere = laboratory.path(&format!("archive/runs/{}", all[0].0)).display().to_string();
    for wrong in [&file, &elsewhere] {
        assert_eq!(other.run(&["rm", wrong]).code, Some(2), "{wrong} is no run of that archive");
        assert_eq!(other.run(&["label", wrong, "x"]).code, Some(2));
    }
    assert_eq!(listed(&[]), all[..1]);
}

#[test]
fn diff_names_what_is_not_the_same() {
    let laboratory = Laboratory::new();
    laboratory.echo("a", 100);
    let study = laboratory
        .study("s.toml", "run = { iterations = 3, warmup = 0, order = \"sequential\" }\n[workload.echo]");
    laboratory.good(&["run", &study, "--label", "b"]);
    let said = laboratory.good(&["diff", "a", "b"]).out;
    assert!(said.contains("order") && said.contains("sequential") && said.contains("iterations"), "{said}");
    assert!(!said.contains("cpu.model"), "what is the same is left out: {said}");
}

#[test]
fn the_output_of_an_iteration_is_kept() {
    let laboratory = Laboratory::new();
    laboratory.echo("a", 123);
    assert_eq!(laboratory.good(&["show", "a", "--output", "0"]).out, "speed 123\n");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let laboratory = Laboratory::new();
    let mut command = laboratory.command(&["check", "--facts"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_report_of_two_runs_is_one_file() {
    let laboratory = Laboratory::new();
    laboratory.echo("a", 100);
    laboratory.echo("b", 90);
    laboratory.good(&["report", "a", "b", "--output", "r.html"]);
    let html = std::fs::read_to_string(laboratory.path("r.html")).unwrap();
    assert!(html.contains("worse"));
}
