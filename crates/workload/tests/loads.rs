//! How built-in loads of several processes end: nothing of them stays.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "only where the loads are is asked for")]
mod host;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Generous: a busy CI machine is slow.
const LIMIT: Duration = Duration::from_secs(60);

fn start_load(directory: &Path) -> Child {
    let mut command = Command::new(host::find_load_binary());
    command.args(["scaling", "--case", "open-own", "--tasks", "3", "--model", "processes", "--time", "300"]);
    command.arg("--directory").arg(directory);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn read_children(parent: u32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    list.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let limit = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process that has ended and was not waited for yet is dead, too.
fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| !matches!(rest.trim_start().chars().next(), Some('Z' | 'X')))
}

#[test]
fn tasks_end_with_a_load_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut load = start_load(folder.path());
    let mut children = Vec::new();
    wait_until("there are three tasks", || {
        children = read_children(load.id());
        children.len() == 3
    });
    load.kill().unwrap();
    load.wait().unwrap();
    wait_until("no task is left", || !children.iter().any(|pid| is_alive(*pid)));
}

#[test]
fn a_load_that_is_asked_to_end_removes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let load = start_load(folder.path());
    wait_until("there are three tasks", || read_children(load.id()).len() == 3);
    let children = read_children(load.id());
    kill_process(Pid::from_child(&load), Signal::TERM).unwrap();
    let ended = load.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", String::from_utf8_lossy(&ended.stderr));
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    assert!(!children.iter().any(|pid| is_alive(*pid)));
}

/// Who answers stands still for half a second of two, under 2,000 requests a second: of 4,000 requests one is served slowly, and the
/// thousand that were due meanwhile are answered late, the first of them by half a second. By the queue p99 of response, of rank
/// 3,960, is that of the 40th of these: 20 ms less.
#[test]
fn a_server_that_stands_still_shows_in_response_and_not_in_service() {
    let mut command = Command::new(host::find_load_binary());
    command.args(["net", "--protocol", "tcp", "--pattern", "request-response", "--model", "processes"]);
    command.args(["--rate", "2000", "--warm-up", "0.2", "--time", "2"]);
    let load = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("there are two tasks", || read_children(load.id()).len() == 2);
    let answering = Pid::from_raw(read_children(load.id())[1]).unwrap();
    std::thread::sleep(Duration::from_millis(800));
    kill_process(answering, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    kill_process(answering, Signal::CONT).unwrap();
    let ended = load.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let result: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let millis = |kind: &str, key: &str| result[kind][key].as_f64().unwrap() / 1e3;
    // Where the machine is busy, it takes longer still to make up for it.
    assert!(millis("response", "p99_us") > 400.0 && millis("latency", "max_us") > 450.0, "{result}");
    assert!(millis("latency", "p99_us") < 100.0, "{result}");
    assert!(millis("response", "p50_us") < millis("response", "p99_us") / 2.0, "{result}");
}
