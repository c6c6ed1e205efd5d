//! The README's first command.

use std::fs;

use crate::laboratory::Sandbox;

#[test]
fn quickstart_prints_the_tables_and_names_the_report() {
    let laboratory = Sandbox::new();
    let said = laboratory.run_successfully(&["run", "quickstart", "--iterations", "3"]);
    for text in ["pages", "huge", "ordinary", "placebo", "access [ns]"] {
        assert!(said.out.contains(text), "{text}\n{}", said.out);
    }
    let report = said.err.lines().find_map(|line| line.strip_prefix("report: ")).unwrap();
    let html = fs::read_to_string(report).unwrap();
    assert!(html.starts_with("<!doctype html>"));
    let title = html.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    insta::assert_snapshot!(title.unwrap(), @"Huge pages against ordinary ones, beside a placebo · perflab");
    let listed = laboratory.run_json(&["list"]);
    assert_eq!((&listed[0]["status"], &listed[0]["iterations"]), (&"finished".into(), &16.into()));
}

/// The commands that `perflab` alone names, in its order.
fn next_commands(laboratory: &Sandbox) -> Vec<String> {
    let mut alone = std::process::Command::new(env!("CARGO_BIN_EXE_perflab"));
    alone.current_dir(laboratory.home.path()).env("PERFLAB_ARCHIVE", laboratory.path("archive"));
    let said = crate::laboratory::to_command_output(alone.output().unwrap());
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let commands = said.out.lines().filter_map(|line| line.strip_prefix("  perflab "));
    commands.map(|line| line.split("  ").next().unwrap().to_owned()).collect()
}

#[test]
fn perflab_alone_names_commands_that_work_here_and_writes_nothing() {
    let laboratory = Sandbox::new();
    let first = next_commands(&laboratory);
    assert_eq!(first[0], "run quickstart");
    assert!(!laboratory.path("archive").exists());
    laboratory.run_echo("before", 100);
    assert_eq!(next_commands(&laboratory)[0], "show @latest");
    laboratory.run_echo("after", 100);
    let later = next_commands(&laboratory);
    assert_eq!(later[0], "compare @latest~1 @latest");
    // Those with a command to be put in its place are tried elsewhere.
    let is_whole = |command: &&String| !command.contains(|letter: char| letter.is_ascii_uppercase());
    for command in first.iter().chain(&later).filter(is_whole).filter(|command| *command != "run quickstart")
    {
        let words: Vec<&str> = command.split(' ').collect();
        let said = laboratory.run(&words);
        assert_eq!(said.code, Some(0), "{command}: {}", said.err);
    }
}

#[test]
fn data_goes_to_stdout_without_escape_codes() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 100);
    let said = laboratory.run_successfully(&["show", "a"]);
    assert!(!said.out.contains('\u{1b}') && !said.err.contains('\u{1b}'));
    let said = laboratory.run_successfully(&["show", "a", "--quiet"]);
    assert_eq!(said.err, "");
}

#[test]
fn the_record_says_what_perflab_itself_cost() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", "run = { iterations = 3, warmup = 0 }\nmonitors = { meminfo = \"10ms\" }\n[workload.context-switches]");
    laboratory.run_successfully(&["run", &study]);
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(laboratory.only_run().join("run.json")).unwrap()).unwrap();
    let own = &manifest["overhead"];
    for key in ["cpu", "wall", "peak_rss", "bytes_written", "ticks"] {
        assert!(own[key].as_u64().unwrap() > 0, "{key}: {own}");
    }
    assert!(own["late_ticks"].is_u64() && own["lost_ticks"].is_u64());
}
