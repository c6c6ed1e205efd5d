//! `[hooks]` and `cleanup`: what comes around a run, its cases and its iterations, and comes after a kill, too.

use std::fs;

use rustix::process::Signal;

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::Sandbox;

/// A study that writes what happens, line by line, to `log`.
fn write_study(laboratory: &Sandbox, command: &str, more: &str) -> String {
    let log = laboratory.path("log");
    let say = |word: &str| format!("\"echo {word} $PERFLAB_CASE $PERFLAB_ITERATION >> {}\"", log.display());
    let hooks: String = ["run", "case", "iteration"]
        .iter()
        .map(|what| {
            let [before, after] = [say(&format!("before-{what}")), say(&format!("after-{what}"))];
            format!("before-{what} = {before}\nafter-{what} = {after}\n")
        })
        .collect();
    let text = format!(
        "run = {{ iterations = 2, warmup = 1 }}\n[hooks]\n{hooks}[workload.w]\ncommand = {}\ncleanup = {}\n{more}",
        serde_json::Value::from(command),
        say("cleanup"),
    );
    laboratory.write_study("s.toml", &text)
}

fn log_lines(laboratory: &Sandbox) -> Vec<String> {
    let text = fs::read_to_string(laboratory.path("log")).unwrap_or_default();
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

#[test]
fn hooks_come_around_the_run_its_cases_and_its_iterations() {
    let laboratory = Sandbox::new();
    let study = write_study(&laboratory, "true", "");
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let around = |iteration: &str| {
        [format!("before-iteration w {iteration}"), format!("after-iteration w {iteration}")]
    };
    let mut expected = vec!["before-run".to_owned(), "before-case w".to_owned()];
    expected.extend(["warmup-0", "0", "1"].iter().flat_map(|one| around(one)));
    expected.extend(["after-case w", "cleanup", "after-run"].map(str::to_owned));
    assert_eq!(log_lines(&laboratory), expected);
}

/// They are the host's, whatever the targets are.
#[test]
fn hooks_of_a_study_with_targets_run_on_this_host() {
    let laboratory = Sandbox::new();
    let targets = "[target.other]\nkind = \"process\"\ncount = 2\n";
    let study = write_study(&laboratory, "true", targets);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let lines = log_lines(&laboratory);
    let count = |word: &str| lines.iter().filter(|line| line.starts_with(word)).count();
    let counted =
        ["before-run", "before-case", "before-iteration", "after-iteration", "after-case", "after-run"]
            .map(count);
    assert_eq!(counted, [1, 1, 3, 3, 1, 1], "{lines:?}");
    assert_eq!(count("cleanup"), 2, "on each target");
}

#[test]
fn what_was_to_come_after_comes_after_a_kill() {
    let laboratory = Sandbox::new();
    let study = write_study(&laboratory, "sleep 600", "");
    let mut child = laboratory.command(&["run", &study, "--no-report"]).spawn().unwrap();
    wait_for_condition(|| log_lines(&laboratory).iter().any(|line| line.starts_with("before-iteration")));
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    laboratory.run_successfully(&["undo"]);
    let lines = log_lines(&laboratory);
    let after = ["after-iteration w warmup-0", "after-case w", "cleanup", "after-run"];
    assert_eq!(lines[lines.len() - after.len()..], after);
    laboratory.run_successfully(&["undo"]);
    assert_eq!(log_lines(&laboratory).len(), lines.len(), "once");
}

#[test]
fn a_hook_that_fails_fails_what_it_comes_before() {
    let laboratory = Sandbox::new();
    let run = |hook: &str| {
        let text = format!("run = {{ iterations = 2 }}\n[hooks]\n{hook}\n[workload.w]\ncommand = \"true\"\n");
        let study = laboratory.write_study("failing.toml", &text);
        laboratory.run(&["run", &study, "--no-report", "--quiet"])
    };
    let said = run("before-run = \"echo no >&2; exit 3\"");
    assert_eq!(said.code, Some(3));
    insta::assert_snapshot!(said.stable_err(), @"error: `hooks.before-run` failed: exit status: 3: no");
    for hook in ["before-case", "before-iteration"] {
        assert_eq!(run(&format!("{hook} = \"exit 3\"")).code, Some(4), "{hook}");
        let listed = laboratory.run_json(&["show", "--iterations"]);
        let outcomes: Vec<&str> =
            listed.as_array().unwrap().iter().filter_map(|row| row["outcome"].as_str()).collect();
        let expected = format!("failed: `hooks.{hook}` failed: exit status: 3: it printed nothing");
        assert!(!outcomes.is_empty() && outcomes.iter().all(|outcome| *outcome == expected), "{outcomes:?}");
    }
    for hook in ["after-iteration", "after-case", "after-run"] {
        assert_eq!(run(&format!("{hook} = \"exit 3\"")).code, Some(4), "{hook}");
        let listed = laboratory.run_json(&["show", "--iterations"]);
        assert!(listed.as_array().unwrap().iter().all(|row| row["outcome"] == "ok"), "{listed}");
    }
    let said = run("before-run = \"echo {{ nowhere }}\"");
    assert_eq!(said.code, Some(2));
}

/// Where workloads run on targets, the host does nothing for them.
#[test]
fn what_a_workload_does_before_is_done_on_its_targets_alone() {
    let laboratory = Sandbox::new();
    let log = laboratory.path("log");
    let say = |word: &str| format!("\"echo {word} >> {}\"", log.display());
    let text = format!(
        "run = {{ iterations = 2, warmup = 0 }}\n[workload.w]\ncommand = \"true\"\nsetup = {}\nprepare = {}\n\
         [target.one]\nkind = \"process\"\n",
        say("setup"),
        say("prepare"),
    );
    let study = laboratory.write_study("s.toml", &text);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    assert_eq!(log_lines(&laboratory), ["setup", "prepare", "prepare"]);
}

/// An `apply` that is under way would otherwise end after its counterpart.
#[test]
fn a_command_of_a_level_ends_with_a_killed_perflab() {
    let laboratory = Sandbox::new();
    let log = laboratory.path("log");
    let text = format!(
        "run = {{ iterations = 1 }}\n[workload.w]\ncommand = \"true\"\n[factor.f]\nkind = \"commands\"\n\
         levels = [{{ name = \"on\", apply = [\"sh\", \"-c\", \"echo begun >> {0}; sleep 600; echo applied >> {0}\"], undo = [\"sh\", \"-c\", \"echo undone >> {0}\"] }}]\n",
        log.display()
    );
    let study = laboratory.write_study("s.toml", &text);
    let mut child = laboratory.command(&["run", &study, "--no-report"]).spawn().unwrap();
    wait_for_condition(|| !log_lines(&laboratory).is_empty());
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    laboratory.run_successfully(&["undo"]);
    let is_gone = || {
        let found =
            std::process::Command::new("pgrep").args(["-f", &log.display().to_string()]).output().unwrap();
        found.stdout.is_empty()
    };
    wait_for_condition(is_gone);
    assert_eq!(log_lines(&laboratory), ["begun", "undone"]);
}
