//! The flight recorder, `perflab watch --keep`: nothing on disk before something happens, then a run with the moments before.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{Sandbox, is_root, skip_test};

/// A recorder that runs, once it is ready.
struct RunningRecorder {
    child: Child,
    out: BufReader<ChildStdout>,
    _err: BufReader<ChildStderr>,
}

impl RunningRecorder {
    /// Starts it with readings each 20 ms, and waits until it has said what it waits for.
    fn start(laboratory: &Sandbox, arguments: &[&str]) -> Self {
        let typed = [&["--format", "json", "watch", "--every", "20ms"], arguments].concat();
        let mut command = laboratory.command(&typed);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("held: ") {
            line.clear();
            assert!(err.read_line(&mut line).unwrap() > 0, "it ended before it waited");
        }
        RunningRecorder { child, out, _err: err }
    }

    /// The document of the next recording.
    fn next_recording(&mut self) -> Value {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn exit_code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

/// Whatever is in the archive's folder of runs.
fn stored_runs(laboratory: &Sandbox) -> Vec<PathBuf> {
    let runs = fs::read_dir(laboratory.path("archive/runs")).into_iter().flatten().flatten();
    runs.map(|run| run.path()).collect()
}

fn journal_events(run: &Value, kind: &str) -> Vec<Value> {
    let folder = PathBuf::from(run["path"].as_str().unwrap());
    let journal = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
    let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter_map(|event| event["what"].get(kind).cloned()).collect()
}

/// Sleeps while the recorder gathers something to look back on.
fn let_it_gather() {
    sleep(Duration::from_millis(700));
}

#[test]
fn a_signal_has_the_last_moments_recorded_and_nothing_was_written_before() {
    let laboratory = Sandbox::new();
    let mut recorder = RunningRecorder::start(
        &laboratory,
        &["--keep", "30s", "--after", "300ms", "--times", "2", "--when", "signal", "--label", "flight"],
    );
    let_it_gather();
    assert_eq!(stored_runs(&laboratory), Vec::<PathBuf>::new(), "nothing is written before");
    let mut recordings = Vec::new();
    for _ in 0..2 {
        send_signal(&recorder.child, Signal::USR1);
        recordings.push(recorder.next_recording());
    }
    assert_eq!(recorder.exit_code(), Some(0), "it ends after the second");
    assert_eq!(stored_runs(&laboratory).len(), 2);
    for recording in &recordings {
        assert_eq!(recording["triggers"][0]["found"], "signal");
        assert_eq!(recording["after_s"], 0.3, "{recording}");
        assert!(recording["before_s"].as_f64().unwrap() > 0.3, "{recording}");
        let triggered = journal_events(recording, "triggered");
        assert_eq!(triggered, [serde_json::json!({ "condition": "signal", "found": "signal" })]);
    }
    assert!(
        recordings[1]["before_s"].as_f64() > recordings[0]["before_s"].as_f64(),
        "the second looks back over the first: {recordings:?}"
    );
    let listed = laboratory.run_json(&["list"]);
    let runs = listed.as_array().unwrap();
    assert!(runs.iter().all(|run| run["status"] == "finished" && run["label"] == "flight"), "{listed}");
    let shown = laboratory.run_json(&["show", "@latest", "--monitor", "vmstat"]);
    assert!(shown.as_array().unwrap().iter().any(|row| row["column"] == "pgfault" && row["n"] == 1));
    laboratory.run_successfully(&["report", "@latest", "--output", "report.html"]);
    laboratory.run_successfully(&["compare", "@latest~1", "@latest", "--monitor", "stat"]);
}

#[test]
fn a_command_goes_on_when_all_recordings_are_made() {
    let laboratory = Sandbox::new();
    let mark = laboratory.path("mark");
    let command = format!("sleep 3; touch {}", mark.display());
    let options = ["--keep", "5s", "--after", "100ms", "--times", "1", "--when", "signal"];
    let mut recorder =
        RunningRecorder::start(&laboratory, &[&options[..], &["--", "sh", "-c", &command]].concat());
    let_it_gather();
    send_signal(&recorder.child, Signal::USR1);
    recorder.next_recording();
    assert!(!mark.exists());
    assert_eq!(recorder.exit_code(), Some(0));
    assert!(mark.exists(), "it was ended");
    assert_eq!(stored_runs(&laboratory).len(), 1);
}

/// A file of shared memory, which /proc/meminfo counts.
struct SharedMemoryFile(PathBuf);

impl SharedMemoryFile {
    fn write(bytes: usize) -> Self {
        let path = PathBuf::from(format!("/dev/shm/perflab-flight-{}", std::process::id()));
        fs::write(&path, vec![1_u8; bytes]).unwrap();
        SharedMemoryFile(path)
    }
}

impl Drop for SharedMemoryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn shared_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Shmem:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a_column_beyond_its_bound_is_recorded_with_what_it_was() {
    let laboratory = Sandbox::new();
    let bound = shared_bytes() + (256 << 20);
    let condition = format!("meminfo.Shmem > {bound}B");
    let options = ["--keep", "30s", "--after", "200ms", "--times", "1", "--when", &condition];
    let mut recorder = RunningRecorder::start(&laboratory, &options);
    let_it_gather();
    assert_eq!(stored_runs(&laboratory), Vec::<PathBuf>::new());
    let _file = SharedMemoryFile::write(320 << 20);
    let recording = recorder.next_recording();
    assert_eq!(recorder.exit_code(), Some(0));
    let found = &recording["triggers"][0];
    let value = found["found"]["value"]["value"].as_f64().unwrap();
    assert!(found["condition"] == condition.as_str() && value > bound as f64, "{recording}");
    let shown = laboratory.run_json(&["show", "@latest", "--monitor", "meminfo"]);
    assert!(shown.as_array().unwrap().iter().any(|row| row["column"] == "Shmem"), "{shown}");
}

#[test]
fn the_end_of_a_command_is_recorded_where_it_is_waited_for() {
    let laboratory = Sandbox::new();
    let watch = |condition: &str, script: &str| {
        let typed = ["--format", "json", "watch", "--keep", "5s", "--every", "20ms", "--after", "200ms"];
        laboratory.run(&[&typed[..], &["--when", condition, "--", "sh", "-c", script]].concat())
    };
    let said = watch("exit:failed", "sleep 0.3; exit 3");
    assert_eq!(said.code, Some(4), "{}", said.err);
    let recording: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(recording["triggers"][0]["condition"], "exit:failed");
    assert_eq!((&recording["after_s"], stored_runs(&laboratory).len()), (&0.2.into(), 1));
    let said = watch("exit:failed", "sleep 0.3");
    assert_eq!((said.code, said.out.as_str(), stored_runs(&laboratory).len()), (Some(0), "", 1));
    let said = watch("exit", "sleep 0.3");
    let recording: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &recording["triggers"][0]["condition"]), (Some(0), &"exit".into()));
    // What it measured is part of the recording.
    let shown = laboratory.run_json(&["show", "@latest"]);
    assert!(shown.as_array().unwrap().iter().any(|row| row["metric"] == "time"), "{shown}");
}

#[test]
fn interrupted_while_it_waits_it_ends_well_and_killed_it_leaves_nothing() {
    let laboratory = Sandbox::new();
    let options = ["--keep", "5s", "--when", "signal"];
    let recorder = RunningRecorder::start(&laboratory, &options);
    let_it_gather();
    send_signal(&recorder.child, Signal::INT);
    assert_eq!((recorder.exit_code(), stored_runs(&laboratory)), (Some(0), Vec::new()));
    let recorder = RunningRecorder::start(&laboratory, &options);
    let_it_gather();
    send_signal(&recorder.child, Signal::KILL);
    assert_eq!((recorder.exit_code(), stored_runs(&laboratory)), (None, Vec::new()));
    laboratory.run_successfully(&["undo"]);
    let left = fs::read_dir(laboratory.path("state")).into_iter().flatten().flatten();
    let left: Vec<PathBuf> =
        left.map(|entry| entry.path()).filter(|path| path.extension().is_some()).collect();
    assert_eq!(left, Vec::<PathBuf>::new());
}

#[test]
fn interrupted_while_it_records_it_closes_the_run() {
    let laboratory = Sandbox::new();
    let options = ["--keep", "5s", "--after", "10min", "--when", "signal"];
    let mut recorder = RunningRecorder::start(&laboratory, &options);
    let_it_gather();
    send_signal(&recorder.child, Signal::USR1);
    wait_for_condition(|| !stored_runs(&laboratory).is_empty());
    send_signal(&recorder.child, Signal::INT);
    let recording = recorder.next_recording();
    assert_eq!(recorder.exit_code(), Some(0));
    assert!(recording["after_s"].as_f64().unwrap() < 600.0, "{recording}");
    assert_eq!(laboratory.latest_status(), "finished");
}

/// The kernel says what it mounts.
#[test]
fn needs_root_a_line_of_the_kernels_log_is_recorded() {
    let name = "needs_root_a_line_of_the_kernels_log_is_recorded";
    if !is_root() || fs::File::open("/dev/kmsg").is_err() {
        return skip_test(name, "only root has the kernel print something");
    }
    let laboratory = Sandbox::new();
    let (image, folder) = (laboratory.path("image"), laboratory.path("mounted"));
    fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
    fs::create_dir(&folder).unwrap();
    run_command(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image));
    let condition = "kernel-log:/^EXT4-fs .loop[0-9]+.: mounted filesystem/";
    let options = ["--keep", "5s", "--after", "200ms", "--times", "1", "--when", condition];
    let mut recorder = RunningRecorder::start(&laboratory, &options);
    let_it_gather();
    run_command(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&folder));
    run_command(Command::new("umount").arg(&folder));
    let recording = recorder.next_recording();
    assert_eq!(recorder.exit_code(), Some(0));
    let line = recording["triggers"][0]["found"]["line"].as_str().unwrap();
    assert!(line.starts_with("EXT4-fs (loop"), "{recording}");
    let log = laboratory.run_json(&["show", "@latest", "--kernel-log"]);
    let lines = log.as_array().unwrap();
    assert!(lines.iter().any(|one| one["line"].as_str().unwrap().ends_with(line)), "{log}");
}

fn run_command(command: &mut Command) {
    let status = command.stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

#[test]
fn too_little_memory_shortens_what_is_held_and_the_run_says_so() {
    let laboratory = Sandbox::new();
    let options =
        ["--keep", "1h", "--memory", "600KiB", "--after", "100ms", "--times", "1", "--when", "signal"];
    let mut recorder = RunningRecorder::start(&laboratory, &options);
    sleep(Duration::from_secs(3));
    send_signal(&recorder.child, Signal::USR1);
    let recording = recorder.next_recording();
    assert_eq!(recorder.exit_code(), Some(0));
    assert_eq!(recording["wanted_before_s"], 3600.0, "{recording}");
    assert!(recording["before_s"].as_f64().unwrap() < 3.0, "{recording}");
    assert_eq!(journal_events(&recording, "warning").len(), 1);
}

#[test]
fn what_cannot_be_waited_for_is_refused_before_anything_starts() {
    let laboratory = Sandbox::new();
    let mut errors = Vec::new();
    for options in [
        &["--when", "vmstta.nr_dirty > 5"][..],
        &["--when", "vmstat.nr_drity > 5"],
        &["--when", "vmstat.pgfault > 1000"],
        &["--when", "meminfo.MemAvailable < 5pages"],
        &["--when", "signall"],
        &["--when", "kernel-log:warnign"],
        &["--when", "kernel-log:/[/"],
        &["--when", "exit"],
        &["--when", "signal", "--times", "0"],
        &["--when", "signal", "--memory", "64"],
        &["--when", "signal", "--every", "2s"],
    ] {
        let said = laboratory.run(&[&["watch", "--keep", "1s"], options].concat());
        assert_eq!(said.code, Some(2), "{options:?}: {}", said.err);
        errors.push(said.err.lines().next().unwrap_or_default().to_owned());
    }
    insta::assert_snapshot!(errors.join("\n"));
    assert!(!laboratory.path("archive").exists());
}

/// The recording would go on for a minute more.
#[test]
fn duration_ends_a_recording_that_is_open() {
    let laboratory = Sandbox::new();
    let arguments = ["watch", "--every", "20ms", "--duration", "1s", "--keep", "30s", "--after", "60s"];
    let typed = [&["--format", "json"], &arguments[..], &["--when", "stat[cpu].ctxt > 1/s"]].concat();
    let said = laboratory.run_successfully(&typed);
    let recorded: Value = serde_json::from_str(said.out.lines().next().unwrap()).unwrap();
    assert!(recorded["after_s"].as_f64().unwrap() < 30.0, "{recorded}");
    assert_eq!(laboratory.run(&["watch", "--every", "0s", "--", "true"]).code, Some(2));
}

#[test]
fn watch_counts_what_the_command_did() {
    let laboratory = Sandbox::new();
    let typed = ["watch", "--quiet-time", "0s", "--counters", "page-faults:u", "--", "sleep", "0.3"];
    laboratory.run_successfully(&typed);
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    let run = archive.find_runs("@latest").unwrap().remove(0);
    let (edges, ticks) = (run.read_edges("counters").unwrap().unwrap(), run.read_series("counters").unwrap());
    assert_eq!(edges.stamps.len(), 2);
    assert!(!ticks.at.is_empty());
}
