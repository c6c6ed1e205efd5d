//! Runs as things: list, show, diff, export, import, prune.

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
