//! ^C, kill -9, a full disk: nothing is lost, settings come back.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::laboratory::{Sandbox, is_root, skip_test, to_command_output};

/// A study whose factor leaves a file behind until it is undone, and which takes minutes.
pub fn write_long_study(laboratory: &Sandbox) -> String {
    laboratory.write_workload("slow", "", "echo speed 1; sleep 0.1");
    let mark = laboratory.path("mark");
    laboratory.write_study(
        "long.toml",
        &format!(
            "run = {{ iterations = 600, warmup = 0 }}\nmonitors = {{ meminfo = \"20ms\" }}\n[workload.slow]\n[factor.mark]\nkind = \"commands\"\n\
             levels = [{{ name = \"on\", apply = [\"touch\", \"{0}\"], undo = [\"rm\", \"{0}\"] }}]",
            mark.display()
        ),
    )
}

pub fn start_long_study(laboratory: &Sandbox) -> Child {
    let study = write_long_study(laboratory);
    wait_for_long_study(laboratory, &mut laboratory.command(&["run", &study]))
}

/// Starts the long study by this command, and waits until it has measured something.
pub fn wait_for_long_study(laboratory: &Sandbox, command: &mut Command) -> Child {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_condition(|| count_samples(laboratory) >= 3);
    assert!(laboratory.path("mark").exists());
    child
}

pub fn wait_for_condition(mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
        sleep(Duration::from_millis(20));
    }
}

pub fn count_samples(laboratory: &Sandbox) -> usize {
    let runs = fs::read_dir(laboratory.path("archive/runs")).into_iter().flatten().flatten();
    let journals = runs.filter_map(|run| fs::read_to_string(run.path().join("journal.jsonl")).ok());
    journals.map(|journal| journal.matches("\"sample\"").count()).sum()
}

pub fn send_signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn interrupt_keeps_the_data_and_undoes_the_settings() {
    let laboratory = Sandbox::new();
    let child = start_long_study(&laboratory);
    send_signal(&child, rustix::process::Signal::INT);
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert!(!laboratory.path("mark").exists(), "the setting is undone");
    assert_eq!(laboratory.latest_status(), "stopped");
    assert!(laboratory.shown_metrics("@latest").contains("speed"));
}

#[test]
fn kill_nine_leaves_a_readable_run_and_the_next_start_undoes() {
    let laboratory = Sandbox::new();
    let mut child = start_long_study(&laboratory);
    send_signal(&child, rustix::process::Signal::KILL);
    child.wait().unwrap();
    assert!(laboratory.path("mark").exists(), "nobody could undo it");
    assert_eq!(laboratory.latest_status(), "interrupted");
    assert!(laboratory.shown_metrics("@latest").contains("speed"));
    laboratory.run_successfully(&["export", "@latest", "killed.perflab"]);
    let study = laboratory.write_study("short.toml", "run = { iterations = 1, warmup = 0 }\n[workload.echo]");
    let next = laboratory.run_successfully(&["run", &study]);
    insta::assert_snapshot!("kill_nine_leaves_a_readable_run_and_the_next_start_undoes_1", next.stable_err());
    assert!(!laboratory.path("mark").exists());
    insta::assert_snapshot!(laboratory.run_successfully(&["undo"]).stable_err(), @"no run left a setting behind; looked for undo journals in /tmp/.TMP/state");
}

/// A file system of 300 KiB, unmounted at the end.
struct SmallFileSystem<'a>(&'a Path);

impl Drop for SmallFileSystem<'_> {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_is_said_and_what_was_flushed_stays_root() {
    if !is_root() {
        return skip_test(
            "a_full_disk_is_said_and_what_was_flushed_stays_root",
            "mounting a small file system needs root",
        );
    }
    let laboratory = Sandbox::new();
    let archive = laboratory.path("archive");
    fs::create_dir(&archive).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=300k", "tmpfs"])
        .arg(&archive)
        .status();
    assert!(mounted.unwrap().success());
    let _small = SmallFileSystem(&archive);
    let study = write_long_study(&laboratory);
    let ended = laboratory.run(&["run", &study]);
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    insta::assert_snapshot!(ended.err_wording_of("the disk"), @"error: the disk of the archive /tmp/.TMP/archive is full: the run was stopped, and its settings undone; N of N iterations are kept; make room, then `perflab resume RUN` measures the rest");
    assert_eq!(laboratory.latest_status(), "disk-full");
    assert!(!laboratory.path("mark").exists(), "the setting is undone");
    assert!(laboratory.shown_metrics("@latest").contains("speed"));
}

/// `show` of a portable file, held up in the middle by an output that nobody takes; and where it is unpacked.
fn start_held_show(laboratory: &Sandbox) -> (Child, impl Fn() -> usize + use<>) {
    let (kept, full) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&full, true).unwrap();
    while rustix::io::write(&full, &[0; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&full, false).unwrap();
    let place = laboratory.path("tmp");
    fs::create_dir_all(&place).unwrap();
    let unpacked = move || fs::read_dir(&place).unwrap().count();
    let mut command = laboratory.command(&["show", "./whole.perflab"]);
    let child =
        command.env("TMPDIR", laboratory.path("tmp")).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    // Its reading end stays open as long as the process of the test.
    std::mem::forget(kept);
    wait_for_condition(|| unpacked() == 1 && is_blocked_on_pipe(&child));
    (child, unpacked)
}

/// Whether it waits for a pipe.
fn is_blocked_on_pipe(child: &Child) -> bool {
    let stack = format!("/proc/{}/task/{0}/wchan", child.id());
    fs::read_to_string(stack).is_ok_and(|place| place.contains("pipe"))
}

#[test]
fn an_unpacked_run_goes_with_the_signal_or_by_undo() {
    let laboratory = Sandbox::new();
    laboratory.run_echo("one", 100);
    laboratory.run_successfully(&["export", "@latest", "whole.perflab"]);
    let (mut ended, unpacked) = start_held_show(&laboratory);
    send_signal(&ended, rustix::process::Signal::TERM);
    assert_eq!(ended.wait().unwrap().signal(), Some(15));
    assert_eq!(unpacked(), 0);
    let (mut killed, unpacked) = start_held_show(&laboratory);
    send_signal(&killed, rustix::process::Signal::KILL);
    killed.wait().unwrap();
    assert_eq!(unpacked(), 1, "nobody could remove it");
    let undone = laboratory.run_successfully(&["undo"]);
    let removed = laboratory.path("tmp");
    assert!(undone.err.contains(removed.to_str().unwrap()), "{}", undone.err);
    assert_eq!(unpacked(), 0);
}
