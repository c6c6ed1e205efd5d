//! Traces that are cut, damaged, of another version or made under refusal: an error that names the file and what to do,
//! or the sound part with a sentence about what it lacks. Real traces of real loads, cut and changed as files are.

use std::path::{Path, PathBuf};
use std::process::Command;

use optrace::{MOST_DEPTH, MOST_NUMBERS, Trace, TraceOptions, Vocabulary};
use serde_json::Value;

use crate::laboratory::{CommandOutput, Sandbox, skip_test, to_command_output};

/// The trace of a load that wrote it by itself.
fn write_load_trace(laboratory: &Sandbox, operations: &str) -> PathBuf {
    let path = laboratory.path("sound.trace");
    let mut command = laboratory.command(&["load", "drv_rand_ops", operations, "intsrt"]);
    assert!(command.env("OPTRACE_FILE", &path).output().unwrap().status.success());
    path
}

/// Writes a changed copy, and imports it.
fn import_changed_trace(laboratory: &Sandbox, name: &str, bytes: &[u8]) -> CommandOutput {
    std::fs::write(laboratory.path(name), bytes).unwrap();
    laboratory.run(&["import", name, "--label", name])
}

fn read_word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Where the blocks of this kind begin.
fn find_blocks(bytes: &[u8], kind: u64) -> Vec<usize> {
    let (mut at, mut found) = ((read_word(bytes, 8) >> 32) as usize, Vec::new());
    while at < bytes.len() {
        if read_word(bytes, at) & 0xff == kind {
            found.push(at);
        }
        at += 32 + read_word(bytes, at + 8) as usize;
    }
    found
}

/// What `trace causes` says of a run that must be readable.
/// What the tracer reported, as `trace causes` has it. The table for people must come, too.
fn summary_of_label(laboratory: &Sandbox, label: &str) -> Value {
    laboratory.run_successfully(&["trace", "causes", label]);
    laboratory.run_json(&["trace", "causes", label])["result"]["summary"].take()
}

#[test]
fn the_sound_part_of_a_trace_cut_short_is_read() {
    let laboratory = Sandbox::new();
    let bytes = std::fs::read(write_load_trace(&laboratory, "60000")).unwrap();
    let said = import_changed_trace(&laboratory, "half", &bytes[..bytes.len() / 2]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    insta::assert_snapshot!(said.err_wording_of("at byte"), @"N operations of N threads, N lost; not whole: at byte N: the file was cut inside a block");
    let summary = summary_of_label(&laboratory, "half");
    assert!(summary["cut"].is_string() && summary["operations"].as_u64() > Some(0), "{summary}");
    laboratory.run_successfully(&["trace", "show", "half", "--top", "3"]);
    laboratory.run_successfully(&["trace", "plot", "half", "-o", "half.png"]);

    let end = *find_blocks(&bytes, 4).first().unwrap();
    let said = import_changed_trace(&laboratory, "endless", &bytes[..end]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let summary = summary_of_label(&laboratory, "endless");
    assert!(summary["cut"].is_string() && summary["operations"] == 60_000, "{summary}");
}

#[test]
fn a_trace_without_one_whole_operation_says_where_it_ends() {
    let laboratory = Sandbox::new();
    let bytes = std::fs::read(write_load_trace(&laboratory, "2000")).unwrap();
    let said = import_changed_trace(&laboratory, "head", &bytes[..50]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: head: not a trace of optrace: it is shorter than a header");
    let first = *find_blocks(&bytes, 1).first().unwrap();
    let said = import_changed_trace(&laboratory, "empty", &bytes[..first + 100]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let errors = [
        &["trace", "causes", "empty"][..],
        &["trace", "plot", "empty", "-o", "x.png"],
        &["trace", "compare", "empty", "empty"],
    ]
    .map(|words| {
        let said = laboratory.run(words);
        assert_eq!(said.code, Some(2), "{}", said.err);
        said.err_wording_of("error: ")
    });
    insta::assert_snapshot!(errors.join("\n"), @"
    error: the trace holds no sound operation: at byte N: the file was cut inside a block
    error: the trace holds no sound operation: at byte N: the file was cut inside a block
    error: the trace holds no sound operation
    ");
}

#[test]
fn a_program_that_is_killed_leaves_what_it_did() {
    let laboratory = Sandbox::new();
    // Not before the writer has brought three megabytes to the file, beside the four of the thread's memory: the faults
    // of making keys do not fill them. On a machine so busy that this is noticed late, the kernel kills it after three
    // seconds of CPU time, long before it is through.
    let killed = "(ulimit -t 3; exec \"$0\" load drv_rand_ops 20000000 intsrt) & \
                  while kill -0 $! && [ \"$(stat -c %b \"$OPTRACE_FILE\" || echo 0)\" -lt 15000 ]; do sleep 0.05; done; \
                  kill -9 $!; wait $!; [ $? -eq 137 ]";
    let said = laboratory.run_successfully(&[
        "trace",
        "run",
        "--label",
        "killed",
        "--",
        "sh",
        "-c",
        killed,
        env!("CARGO_BIN_EXE_perflab"),
    ]);
    // How many of them were still in its memory is a matter of the instant: none where it had just handed over a chunk.
    // optrace's own tests hold that none is lost.
    let summary = summary_of_label(&laboratory, "killed");
    assert!(summary["cut"].is_string() && summary["threads"] == 1, "{summary} {}", said.err);
}

#[test]
fn another_version_is_named_with_what_to_do() {
    let laboratory = Sandbox::new();
    let mut bytes = std::fs::read(write_load_trace(&laboratory, "2000")).unwrap();
    bytes[8] = 99;
    let said = import_changed_trace(&laboratory, "newer", &bytes);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: newer: written by version 99 of the format, and this program reads version 2: read it with the perflab of that time, or record it again");
    assert_eq!(laboratory.run_json(&["list"]), serde_json::json!([]), "no run is left");
}

#[test]
fn operations_whose_clock_runs_backwards_are_counted_and_left_out() {
    let laboratory = Sandbox::new();
    let mut bytes = std::fs::read(write_load_trace(&laboratory, "60000")).unwrap();
    // The first operation of every block but the first begins before the one before it.
    let starts: Vec<usize> = find_blocks(&bytes, 1).into_iter().skip(1).collect();
    assert!(!starts.is_empty());
    for start in &starts {
        bytes[start + 32..start + 40].copy_from_slice(&1_u64.to_le_bytes());
    }
    assert_eq!(import_changed_trace(&laboratory, "back", &bytes).code, Some(0));
    assert_eq!(summary_of_label(&laboratory, "back")["backwards"], starts.len());
    // The whole clock set back: the instants that tie it to the kernel's, too.
    for start in &starts {
        bytes[start + 16..start + 24].copy_from_slice(&1_u64.to_le_bytes());
    }
    assert_eq!(import_changed_trace(&laboratory, "far", &bytes).code, Some(0));
    summary_of_label(&laboratory, "far");
    laboratory.run_successfully(&["trace", "plot", "far", "-o", "far.svg"]);
    laboratory.run_successfully(&["trace", "compare", "back", "far"]);
}

#[test]
fn counts_that_cannot_be_are_damage() {
    let laboratory = Sandbox::new();
    let sound = std::fs::read(write_load_trace(&laboratory, "2000")).unwrap();
    let changed = |at: usize, word: u64| {
        let mut bytes = sound.clone();
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        bytes
    };
    let end = find_blocks(&sound, 4)[0] + 32;
    assert_eq!(summary_of_bytes(&laboratory, "sound", &sound)["cut"], Value::Null);
    // Of operations, those lost, waits, the kernel's events, forks, begins and what became of them.
    for (number, count) in
        [(0, 2001), (1, 1), (2, 1 << 60), (4, 1 << 60), (5, 1 << 60), (6, u64::MAX), (7, 3), (8, 3)]
    {
        let bytes = changed(end + 8 * number, count);
        let summary = summary_of_bytes(&laboratory, &format!("told-{number}"), &bytes);
        assert!(summary["cut"].is_string() && summary["operations"] == 2000, "{number}: {summary}");
    }
    // A lane that is opened twice has its operations once.
    let lane = find_blocks(&sound, 3)[0];
    let twice = [&sound[..lane], &sound[lane..lane + 56], &sound[lane..]].concat();
    assert_eq!(read_word(&sound, lane + 8), 24);
    assert_eq!(summary_of_bytes(&laboratory, "twice", &twice)["operations"], 2000);
    // Clocks and costs that cannot be are no trace.
    let mut errors = String::new();
    for (at, value) in [(6, 1e300), (6, 0.0), (7, 1e300), (9, -5.0_f64)] {
        let said = import_changed_trace(&laboratory, "clock", &changed(8 * at, value.to_bits()));
        assert_eq!(said.code, Some(2), "{}", said.err);
        errors += &said.stable_err();
    }
    insta::assert_snapshot!(errors, @"
    error: clock: not a trace of optrace: its clock ticks every 1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000 ns, which cannot be
    error: clock: not a trace of optrace: its clock ticks every 0 ns, which cannot be
    error: clock: not a trace of optrace: an operation or a span costs 1000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000 ticks, which cannot be
    error: clock: not a trace of optrace: an operation or a span costs -5 ticks, which cannot be
    ");
}

fn summary_of_bytes(laboratory: &Sandbox, label: &str, bytes: &[u8]) -> Value {
    let said = import_changed_trace(laboratory, label, bytes);
    assert_eq!(said.code, Some(0), "{}", said.err);
    summary_of_label(laboratory, label)
}

/// A trace of a program of the test's own.
fn record_own_trace(path: &Path, work: impl Fn(&optrace::Recorder, i64)) {
    let words = Vocabulary::new(&["insert"], &["outer", "inner"], &["elements"]).unwrap();
    let trace = Trace::create(path, &words, TraceOptions::default()).unwrap();
    let recorder = trace.recorder();
    for n in 0..3000 {
        recorder.begin(0);
        work(&recorder, n);
        recorder.end();
    }
    drop(recorder);
    trace.finish().unwrap();
}

#[test]
fn more_spans_and_numbers_than_the_limits_are_said() {
    let laboratory = Sandbox::new();
    let path = laboratory.path("deep.trace");
    record_own_trace(&path, |recorder, n| {
        let deep = if n % 100 == 0 { MOST_DEPTH + 5 } else { 2 };
        (0..deep).for_each(|at| recorder.enter((at % 2) as u8));
        (0..deep).for_each(|_| recorder.leave());
        let many = if n % 100 == 1 { MOST_NUMBERS as i64 + 3 } else { 1 };
        (0..many).for_each(|_| recorder.number(0, n));
    });
    laboratory.run_successfully(&["import", "deep.trace", "--label", "deep"]);
    let summary = summary_of_label(&laboratory, "deep");
    assert_eq!((&summary["operations"], &summary["beyond"]), (&3000.into(), &60.into()), "{summary}");

    let path = laboratory.path("crooked.trace");
    record_own_trace(&path, |recorder, n| {
        if n % 10 == 0 {
            recorder.leave()
        }
    });
    laboratory.run_successfully(&["import", "crooked.trace", "--label", "crooked"]);
    assert_eq!(summary_of_label(&laboratory, "crooked")["unbalanced"], 300);
}

/// Runs a command behind a seccomp filter that answers perf_event_open with EACCES, as containers do.
const FILTER: &str = r#"
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (0x06, 0, 0, 0x0005000d), (0x06, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code), ctypes.addressof(text)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"#;

fn run_refused(laboratory: &Sandbox, arguments: &[&str]) -> CommandOutput {
    let inner = laboratory.command(arguments);
    let mut command = Command::new("python3");
    command.args(["-c", FILTER]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(laboratory.home.path());
    command.envs(inner.get_envs().filter_map(|(key, value)| Some((key, value?))));
    to_command_output(command.output().unwrap())
}

#[test]
#[cfg(target_arch = "x86_64")]
fn where_perf_events_are_refused_the_setting_is_named() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skip_test("where_perf_events_are_refused_the_setting_is_named", "there is no python3");
    }
    let laboratory = Sandbox::new();
    let load = ["perflab", "load", "drv_rand_ops", "3000", "intsrt"];
    let said = run_refused(&laboratory, &[&["trace", "run", "--label", "blind", "--"], &load[..]].concat());
    assert_eq!(said.code, Some(0), "operations are timed without the kernel: {}", said.err);
    let summary = summary_of_label(&laboratory, "blind");
    let counts = ["operations", "threads", "lost"].map(|name| summary[name].as_u64());
    assert_eq!(counts, [Some(3000), Some(1), Some(0)], "{summary}");
    assert!(summary["refused"].is_i64(), "{summary}");
    let out = laboratory.run_successfully(&["trace", "causes", "blind"]).stable_out();
    let refused = out.lines().find(|line| line.contains("perf_event_paranoid")).unwrap();
    insta::assert_snapshot!(refused, @"The kernel refused its events (errno 13): page faults and time off the CPU are not known. As root, or with kernel.perf_event_paranoid at 2 or below, they are, unless a container's seccomp filter forbids perf_event_open.");

    let said =
        run_refused(&laboratory, &[&["trace", "attach", "--operation", "main", "--"], &load[..]].concat());
    assert_eq!(said.code, Some(3), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: the kernel refuses a uprobe at /proc/self/fd/3+0x10: Permission denied (os error 13); uprobes need root, or CAP_PERFMON (kernel.perf_event_paranoid does not open them to others); in a container its seccomp filter may forbid perf_event_open too");
}
