//! `perflab reproduce`: what a run did is done again, by it or by the script that it prints.

use std::path::Path;
use std::process::Command;

use perflab_archive::Archive;
use perflab_model::RunPlan;

use crate::laboratory::{Sandbox, to_command_output};

/// The plan of the newest run.
fn newest_plan(laboratory: &Sandbox) -> RunPlan {
    let archive = Archive::open(&laboratory.path("archive")).unwrap();
    let newest = archive.find_runs("@latest").unwrap().remove(0);
    newest.read_record().unwrap().manifest.plan
}

const STUDY: &str = r#"
[run]
iterations = 2
[workload.w]
command = "test $A = {{ n }} || true"
matrix = { n = "powers(1, 2)" }
[factor.A]
kind = "environment"
levels = [1, 2, 3]
"#;

#[test]
fn three_runs_are_done_again_as_they_were() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", STUDY);
    let runs: [&[&str]; 3] = [
        &["run", &study, "--set", "A=3,A=1", "--iterations", "3", "--no-report", "--quiet"],
        &["bench", "true", "true 1", "-N", "-r", "3", "-L", "x", "1,2", "-p", "true {x}", "--quiet"],
        &[
            "run",
            "--vary",
            "environment:B=a b,c",
            "--iterations",
            "2",
            "--no-report",
            "--quiet",
            "--",
            "true",
        ],
    ];
    for arguments in runs {
        laboratory.run_successfully(arguments);
        let plan = newest_plan(&laboratory);
        laboratory.run_successfully(&["reproduce", "@latest", "--again", "--label", "again", "--quiet"]);
        assert_eq!(newest_plan(&laboratory), plan, "{arguments:?}");
        let script = laboratory.run_successfully(&["reproduce", "@latest~1"]).out;
        let folder = tempfile::tempdir().unwrap();
        let path =
            format!("{}:/usr/bin:/bin", Path::new(env!("CARGO_BIN_EXE_perflab")).parent().unwrap().display());
        let mut shell = Command::new("sh");
        shell.args(["-euc", &script]).current_dir(folder.path()).env("PATH", path);
        let said =
            to_command_output(shell.env("PERFLAB_ARCHIVE", laboratory.path("archive")).output().unwrap());
        assert_eq!(said.code, Some(0), "{script}\n{}", said.err);
        assert_eq!(newest_plan(&laboratory), plan, "{script}");
    }
}

#[test]
fn the_script_says_what_each_case_sets_and_runs() {
    let laboratory = Sandbox::new();
    let text = r#"
[run]
iterations = 1
warmup = 0
seed = 7
[workload.w]
command = "echo 'a b' > {{ scratch }}/{{ name }}"
prepare = ["rm", "-f", "{{ scratch }}/x y"]
parameters = { name = "out" }
[factor.caches]
kind = "drop-caches"
levels = [0]
[factor.place]
kind = "placement"
levels = ["one-cpu"]
"#;
    let study = laboratory.write_study("s.toml", text);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let found = laboratory.run_json(&["reproduce"]);
    insta::assert_snapshot!(serde_json::to_string_pretty(&found["result"]["cases"]).unwrap(), @r#"
    [
      {
        "case": "w caches=0 place=one-cpu",
        "commands": [
          {
            "line": "rm -f '/tmp/scratch/x y'",
            "phase": "prepare"
          },
          {
            "line": "/bin/sh -c \"echo 'a b' > /tmp/scratch/out\"",
            "phase": "command"
          }
        ],
        "doubt": null,
        "settings": [
          "placed on one-cpu"
        ]
      }
    ]
    "#);
    assert_eq!(found["result"]["seed"], 7);
}

/// Text of a run that is no comment any more, or ends the study early, would be carried out by who runs the script.
#[test]
fn nothing_that_a_run_says_is_carried_out_by_its_script() {
    let laboratory = Sandbox::new();
    let folder = tempfile::tempdir().unwrap();
    let harm = |name: &str| format!("touch {}/{name}", folder.path().display());
    let text = format!(
        "[run]\niterations = 1\nwarmup = 0\n[workload.w]\ncommand = '''exit 0\nEND_OF_STUDY\n{}\n'''\n\
         [factor.f]\nkind = \"label\"\nlevels = [{{ name = \"a\\n{}\", value = 1 }}]\n",
        harm("study"),
        harm("level")
    );
    let study = laboratory.write_study("s.toml", &text);
    laboratory.run_successfully(&["run", &study, "--no-report", "--quiet"]);
    let script = laboratory.run_successfully(&["reproduce"]).out;
    let mut shell = Command::new("sh");
    shell.args(["-c", &script.replace("perflab run", ": run")]).current_dir(folder.path());
    assert_eq!(to_command_output(shell.output().unwrap()).code, Some(0), "{script}");
    let made: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(made.len(), 1, "{made:?}");
    // Once more, it would overwrite the study.
    assert_ne!(to_command_output(shell.output().unwrap()).code, Some(0));
}
