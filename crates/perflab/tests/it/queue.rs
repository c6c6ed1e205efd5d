//! `perflab queue`: jobs one after the other, through the death of whoever carries them out.

use std::fs;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{Sandbox, skip_test};

const UNITS: [(&str, &str); 4] = [
    ("perflab-queue.service", include_str!("../../../../contrib/perflab-queue.service")),
    ("perflab-queue.timer", include_str!("../../../../contrib/perflab-queue.timer")),
    ("perflab-queue-watch@.service", include_str!("../../../../contrib/perflab-queue-watch@.service")),
    ("perflab-queue-watch@.timer", include_str!("../../../../contrib/perflab-queue-watch@.timer")),
];

/// The jobs as `queue list` has them.
fn list_jobs(laboratory: &Sandbox) -> Vec<Value> {
    laboratory.run_json(&["queue", "list"])["result"].as_array().unwrap().clone()
}

fn states(laboratory: &Sandbox) -> Vec<String> {
    list_jobs(laboratory).iter().map(|job| job["state"].as_str().unwrap().to_owned()).collect()
}

/// A study whose command is of the shell's.
fn write_study(laboratory: &Sandbox, name: &str, command: &str) {
    let text = format!("run = {{ iterations = 1, warmup = 0 }}\n[workload.w]\ncommand = \"{command}\"\n");
    laboratory.write_study(name, &text);
}

/// One that goes on until the file `go` is there, and says that it began.
fn write_long_study(laboratory: &Sandbox, name: &str) {
    let at = |file: &str| laboratory.path(file).display().to_string();
    let command = format!("touch {}; while [ ! -e {} ]; do sleep 0.05; done", at("began"), at("go"));
    write_study(laboratory, name, &command);
}

fn carry_out_in_background(laboratory: &Sandbox) -> Child {
    let mut command = laboratory.command(&["queue", "run", "--once"]);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn jobs_are_run_in_turn_and_each_says_what_became_of_it() {
    let laboratory = Sandbox::new();
    write_study(&laboratory, "good.toml", "true");
    write_study(&laboratory, "bad.toml", "false");
    for study in ["good.toml", "bad.toml", "good.toml"] {
        laboratory.run_successfully(&["queue", "add", study, "--label", "queued", "--no-report"]);
    }
    for wrong in [
        &["nothing.toml"][..],
        &["good.toml", "--labl", "x"],
        &["good.toml", "--set", "a=b"],
        &["--", "--", "true"],
        &["good.toml", "--if-interrupted", "leave"],
        &["good.toml", "-q"],
    ] {
        let refused = laboratory.run(&[&["queue", "add"], wrong].concat());
        assert_eq!(refused.code, Some(2), "{}", refused.err);
    }
    assert!(laboratory.run(&["queue", "add", "good.toml", "-q"]).err.contains("before the study"));
    assert!(
        laboratory.run_successfully(&["queue", "add", "good.toml", "--help"]).out.contains("--iterations")
    );
    assert_eq!(states(&laboratory), ["waiting", "waiting", "waiting"]);
    laboratory.run_successfully(&["queue", "cancel", "3"]);
    assert_eq!(laboratory.run(&["queue", "cancel", "3"]).code, Some(2));
    assert_eq!(laboratory.run(&["queue", "cancel", "9"]).code, Some(2));
    let ended = laboratory.run(&["queue", "run", "--once"]);
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert_eq!(states(&laboratory), ["finished", "failed", "cancelled"]);
    let jobs = list_jobs(&laboratory);
    assert_eq!((&jobs[0]["exit_code"], &jobs[1]["exit_code"]), (&0.into(), &4.into()));
    let listed = laboratory.run_json(&["list"]);
    let runs: Vec<&Value> = listed.as_array().unwrap().iter().map(|run| &run["run"]).collect();
    assert!(runs.len() == 2 && jobs[..2].iter().all(|job| runs.contains(&&job["run"])), "{listed}");
    assert!(fs::metadata(jobs[1]["log"].as_str().unwrap()).unwrap().len() > 0);
    laboratory.run_successfully(&["queue", "run", "--once"]);
}

#[test]
fn a_job_that_was_interrupted_is_said_to_be_and_run_again_unless_it_is_to_be_left() {
    let laboratory = Sandbox::new();
    write_long_study(&laboratory, "long.toml");
    laboratory.run_successfully(&["queue", "add", "--if-interrupted", "leave", "long.toml", "--no-report"]);
    laboratory.run_successfully(&["queue", "add", "long.toml", "--no-report"]);
    for (at, killed) in [["interrupted", "waiting"], ["interrupted", "interrupted"]].into_iter().enumerate() {
        let mut runner = carry_out_in_background(&laboratory);
        wait_for_condition(|| laboratory.path("began").exists());
        fs::remove_file(laboratory.path("began")).unwrap();
        let busy = laboratory.run(&["queue", "run", "--once"]);
        assert_eq!(busy.code, Some(3), "{}", busy.err);
        assert_eq!(states(&laboratory)[at], "running");
        send_signal(&runner, rustix::process::Signal::KILL);
        runner.wait().unwrap();
        assert_eq!(states(&laboratory), killed);
    }
    // What was killed works on nothing any more.
    fs::write(laboratory.path("go"), "").unwrap();
    laboratory.run_successfully(&["queue", "run", "--once"]);
    assert_eq!(states(&laboratory), ["interrupted", "finished"]);
    assert_eq!(laboratory.run(&["queue", "cancel", "1"]).code, Some(2));
    let left = &list_jobs(&laboratory)[0];
    assert!(left["ended"].as_i64().unwrap() - left["began"].as_i64().unwrap() <= 1, "{left}");
    let attempts: Vec<u64> =
        list_jobs(&laboratory).iter().map(|job| job["attempts"].as_u64().unwrap()).collect();
    assert_eq!(attempts, [1, 2]);
}

#[test]
fn who_stops_the_queue_or_cancels_a_job_stops_its_run() {
    let laboratory = Sandbox::new();
    write_long_study(&laboratory, "long.toml");
    laboratory.run_successfully(&["queue", "add", "long.toml", "--no-report"]);
    let mut runner = carry_out_in_background(&laboratory);
    wait_for_condition(|| laboratory.path("began").exists());
    send_signal(&runner, rustix::process::Signal::TERM);
    assert_eq!(runner.wait().unwrap().code(), Some(4));
    assert_eq!(states(&laboratory), ["waiting"], "it is run again");
    assert_eq!(laboratory.latest_status(), "stopped", "what was measured is kept");
    fs::remove_file(laboratory.path("began")).unwrap();
    let mut runner = carry_out_in_background(&laboratory);
    wait_for_condition(|| laboratory.path("began").exists());
    laboratory.run_successfully(&["queue", "cancel", "1"]);
    assert!(runner.wait().unwrap().success());
    assert_eq!(states(&laboratory), ["cancelled"]);
}

#[test]
fn files_that_are_no_jobs_are_named_and_left_out_and_so_are_runs_that_never_began() {
    let laboratory = Sandbox::new();
    write_study(&laboratory, "good.toml", "true");
    let gone = laboratory.path("gone");
    fs::create_dir(&gone).unwrap();
    let study = laboratory.path("good.toml").display().to_string();
    let mut added = laboratory.command(&["queue", "add", &study, "--no-report"]);
    assert!(added.current_dir(&gone).output().unwrap().status.success());
    fs::remove_dir(&gone).unwrap();
    let queue = laboratory.path("state/queue");
    fs::write(queue.join("3.json"), "garbage").unwrap();
    fs::write(queue.join("7.json"), vec![0; 3 << 20]).unwrap();
    std::os::unix::fs::symlink("1.json", queue.join("5.json")).unwrap();
    let added = laboratory.run_successfully(&["queue", "add", "good.toml", "--no-report"]);
    for number in ["3", "5", "7"] {
        assert!(added.err.contains(&format!("queue/{number}.json")), "{}", added.err);
    }
    assert_eq!(laboratory.run(&["queue", "run", "--once"]).code, Some(4));
    let jobs = list_jobs(&laboratory);
    assert_eq!((&jobs[0]["state"], &jobs[0]["run"]), (&"failed".into(), &Value::Null));
    assert_eq!((&jobs[1]["id"], &jobs[1]["state"]), (&8.into(), &"finished".into()));
    assert!(jobs[1]["run"].is_string());
    let log = fs::read_to_string(jobs[0]["log"].as_str().unwrap()).unwrap();
    assert!(log.contains(&gone.display().to_string()), "{log}");
}

#[test]
fn the_units_of_the_queue_are_some() {
    let laboratory = Sandbox::new();
    for (name, unit) in UNITS {
        let unit = unit.replace("/usr/bin/perflab", env!("CARGO_BIN_EXE_perflab"));
        fs::write(laboratory.path(name), unit).unwrap();
    }
    for (name, _) in UNITS {
        match Command::new("systemd-analyze").arg("verify").arg(laboratory.path(name)).output() {
            Ok(said) => {
                // Of the machine's own units it may complain.
                let about = String::from_utf8_lossy(&said.stderr).into_owned();
                assert!(!about.contains("perflab-queue"), "{about}");
            }
            Err(_) => skip_test("the_units_of_the_queue_are_some", "systemd-analyze is missing"),
        }
    }
}
