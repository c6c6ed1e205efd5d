//! `[beside.NAME]` and `kind = "beside"`: what runs beside iterations, and nowhere else.

use crate::laboratory::Sandbox;

/// The workload counts the lines that the disturber has written when it ends.
const STUDY: &str = r#"
[run]
iterations = 2
warmup = 0
[workload.count]
command = "sleep 0.3; echo turns $(cat {{ scratch }}/turns 2>/dev/null | wc -l)"
[[workload.count.metric]]
name = "turns"
unit = "turns"
direction = "higher"
primary = true
regex = 'turns (?<value>\d+)'
[beside.writer]
command = "echo turn >> {{ scratch }}/turns; sleep 0.01"
[factor.beside]
kind = "beside"
levels = ["none", "writer"]
"#;

#[test]
fn what_runs_beside_goes_on_during_its_iterations_only() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", STUDY);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let turns = laboratory.samples_by_level("beside", "turns");
    assert_eq!(turns.len(), 4);
    for (level, turns) in turns {
        assert_eq!(turns > 0.0, level == "writer", "{level}: {turns}");
    }
    let rates = laboratory.samples_by_level("beside", "beside-writer");
    assert!(
        rates.len() == 2 && rates.iter().all(|(level, rate)| level == "writer" && *rate > 0.0),
        "{rates:?}"
    );
    let left = std::process::Command::new("pgrep").args(["-f", "echo turn >> .*/turns"]).output().unwrap();
    assert!(left.stdout.is_empty(), "{}", String::from_utf8_lossy(&left.stdout));
}

/// An agent knows only what it is sent, and the host only takes metrics that the plan declares.
#[test]
fn what_runs_beside_does_so_on_targets_too() {
    let laboratory = Sandbox::new();
    let text = format!("{STUDY}[target.other]\nkind = \"process\"\n");
    let study = laboratory.write_study("s.toml", &text);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let turns = laboratory.samples_by_level("beside", "turns");
    assert_eq!(turns.len(), 4);
    assert!(turns.iter().all(|(level, turns)| (*turns > 0.0) == (level == "writer")), "{turns:?}");
    let rates = laboratory.samples_by_level("beside", "beside-writer");
    assert!(rates.len() == 2 && rates.iter().all(|(_, rate)| *rate > 0.0), "{rates:?}");
}

/// The workload itself has no folder.
#[test]
fn what_runs_beside_may_be_the_only_one_that_writes() {
    let laboratory = Sandbox::new();
    let text = "[run]\niterations = 1\nwarmup = 0\n[workload.w]\ncommand = \"true\"\n[beside.b]\n\
                command = \"echo a > {{ scratch }}/file; sleep 1\"\n";
    let study = laboratory.write_study("s.toml", text);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
}

#[test]
fn one_that_fails_is_why_its_iteration_failed_and_one_that_is_not_there_is_refused() {
    let laboratory = Sandbox::new();
    let broken = STUDY.replace("sleep 0.01", "echo no room >&2; exit 3");
    let study = laboratory.write_study("s.toml", &broken);
    assert_eq!(laboratory.run(&["run", &study, "--no-report", "--quiet"]).code, Some(4));
    let listed = laboratory.run_json(&["show", "--iterations"]);
    let failed = listed.as_array().unwrap().iter().filter_map(|row| row["outcome"].as_str());
    let failed: Vec<&str> = failed.filter(|outcome| *outcome != "ok").collect();
    assert_eq!(failed.len(), 2);
    insta::assert_snapshot!(failed[0], @"failed: `beside.writer` exited with code 3: no room");
    let study = laboratory.write_study("s.toml", &STUDY.replace("\"writer\"]", "\"writers\"]"));
    let said = laboratory.run(&["study", "check", &study]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stable_err(), @"error: /tmp/.TMP/s.toml:18:19: `factor.beside.levels[1]`: the study has no `[beside.writers]`; did you mean `writer`?");
}
