//! One execution: its output, its end, and that nothing of it lives on, however hard it tries.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use perflab_model::{Nanos, SyscallDelay};
use perflab_workload::{ExecutionEnd, Invocation, WorkloadError, WorkloadExecution, execute_invocation};

const LONG: Nanos = Nanos(60_000_000_000);
const SHORT: Nanos = Nanos(500_000_000);

fn script_invocation(directory: &Path, text: &str) -> Invocation {
    let path = directory.join("script.sh");
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Invocation {
        argv: vec!["/bin/sh".into(), path.display().to_string()],
        environment: Vec::new(),
        directory: Some(directory.into()),
        inherits_stdin: false,
        groups: Vec::new(),
        delays: Vec::new(),
    }
}

fn run_script(text: &str, limit: Nanos) -> WorkloadExecution {
    let directory = tempfile::tempdir().unwrap();
    execute_invocation(&script_invocation(directory.path(), text), &[], limit, &AtomicBool::new(false))
        .unwrap()
}

/// Processes whose environment holds `mark`, other than zombies.
fn find_living_by_mark(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let carries = processes.filter(|entry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    });
    let commands = carries.map(|entry| fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default());
    commands.filter(|command| !command.is_empty()).collect()
}

/// The script prints its mark first, so that survivors can be looked for.
fn run_and_find_survivors(text: &str, limit: Nanos) -> (WorkloadExecution, Vec<String>) {
    let finished = run_script(&format!("echo \"$PERFLAB_EXECUTION\"\n{text}"), limit);
    let stdout = finished.stdout.text();
    let mark = format!("PERFLAB_EXECUTION={}", stdout.lines().next().unwrap());
    (finished, find_living_by_mark(&mark))
}

/// Runs a script whose system calls are delayed.
fn run_delayed(text: &str, delays: &[(&str, u64)]) -> WorkloadExecution {
    let directory = tempfile::tempdir().unwrap();
    let delay =
        |(call, micros): &(&str, u64)| SyscallDelay { call: (*call).to_owned(), delay: Nanos(micros * 1000) };
    let delays = delays.iter().map(delay).collect();
    let invocation = Invocation { delays, ..script_invocation(directory.path(), text) };
    execute_invocation(&invocation, &[], LONG, &AtomicBool::new(false)).unwrap()
}

/// A system call that nothing else makes: the signal 0 does nothing.
const FIFTY_SIGNALS: &str = "i=0; while [ $i -lt 50 ]; do kill -0 $$; i=$((i+1)); done";

#[test]
fn a_delay_is_added_to_each_call_of_each_process() {
    let ended =
        run_delayed(&format!("({FIFTY_SIGNALS}) & {FIFTY_SIGNALS}; wait"), &[("kill", 300), ("link", 300)]);
    assert_eq!(ended.outcome, ExecutionEnd::Exit { code: 0 });
    assert_eq!(ended.delay_failure, None);
    let [kill, link] = &ended.delays[..] else { panic!("{:?}", ended.delays) };
    assert_eq!((kill.call.as_str(), kill.count), ("kill", 100));
    assert!(kill.added >= Nanos(100 * 300_000), "{kill:?}");
    assert!(ended.wall_time() >= Nanos(50 * 300_000), "each process waits for its own");
    assert_eq!((link.count, link.added), (0, Nanos(0)));
}

#[test]
fn what_starts_an_execution_can_be_delayed_too() {
    // Each of these is called by the thread that starts it, by the answering one, or between fork and exec.
    let calls =
        ["futex", "clone", "clone3", "vfork", "execve", "mmap", "munmap", "read", "close", "poll", "ppoll"];
    let known: Vec<(&str, u64)> = calls
        .iter()
        .filter(|call| perflab_workload::refuse_syscall_name(call).is_none())
        .map(|call| (*call, 100))
        .collect();
    let ended = run_delayed("echo started; /bin/true", &known);
    assert_eq!((ended.outcome, ended.stdout.text().as_str()), (ExecutionEnd::Exit { code: 0 }, "started\n"));
    assert!(ended.delays.iter().any(|record| record.call == "execve" && record.count >= 2));
}

#[test]
fn a_call_that_waits_for_its_delay_can_be_killed() {
    let directory = tempfile::tempdir().unwrap();
    let delays = vec![SyscallDelay { call: "kill".into(), delay: Nanos(9_000_000_000) }];
    let invocation = Invocation { delays, ..script_invocation(directory.path(), "kill -0 $$; echo late") };
    let ended = execute_invocation(&invocation, &[], SHORT, &AtomicBool::new(false)).unwrap();
    assert_eq!((ended.outcome, ended.stdout.is_empty()), (ExecutionEnd::TimedOut, true));
    assert_eq!(ended.delays[0].count, 0);
}

#[test]
fn a_name_of_no_system_call_is_told() {
    let (message, hint) = perflab_workload::refuse_syscall_name("fsnyc").unwrap();
    insta::assert_snapshot!(
        format!("{message}; {hint}"),
        @"`fsnyc` is no system call of this machine; did you mean `fsync`?"
    );
}

#[test]
fn output_and_code_are_kept_apart() {
    let ended = run_script("echo out; echo err >&2; exit 3", LONG);
    assert_eq!(ended.outcome, ExecutionEnd::Exit { code: 3 });
    assert_eq!((ended.stdout.text().as_str(), ended.stderr.text().as_str()), ("out\n", "err\n"));
    assert_eq!(ended.failure().unwrap(), "exited with code 3: err");
    assert!(ended.end > ended.start);
    assert_eq!(run_script("true", LONG).failure(), None);
}

#[test]
fn standard_input_is_empty_and_variables_arrive() {
    let directory = tempfile::tempdir().unwrap();
    let mut invocation = script_invocation(directory.path(), "cat; echo \"$A $B\"; pwd");
    invocation.environment = vec![("A".into(), "1".into()), ("B".into(), "1".into())];
    let stop = AtomicBool::new(false);
    let ended = execute_invocation(&invocation, &[("B".into(), "2".into())], LONG, &stop).unwrap();
    assert_eq!(ended.stdout.text(), format!("1 2\n{}\n", directory.path().canonicalize().unwrap().display()));
}

#[test]
fn a_crash_is_named() {
    let ended = run_script("kill -SEGV $$", LONG);
    assert_eq!(ended.outcome, ExecutionEnd::Signal { signal: 11 });
    assert_eq!(ended.failure().unwrap(), "was killed by signal 11, without output");
}

#[test]
fn a_missing_program_is_a_clear_error() {
    let invocation = Invocation {
        argv: vec!["no-such-benchmark".into()],
        environment: vec![],
        directory: None,
        inherits_stdin: false,
        groups: Vec::new(),
        delays: Vec::new(),
    };
    let error = execute_invocation(&invocation, &[], LONG, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, WorkloadError::Start { .. }));
    assert!(error.to_string().starts_with("cannot start `no-such-benchmark`: No such file"), "{error}");
}

#[test]
fn more_output_than_is_kept_is_counted() {
    let ended = run_script("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo end", LONG);
    assert_eq!(ended.outcome, ExecutionEnd::Exit { code: 0 });
    assert_eq!(ended.stdout.dropped_bytes(), 30_000_005 - (16 << 20));
    assert_eq!(ended.stdout.last_lines(1), ["end"]);
}

#[test]
fn one_that_never_ends_is_stopped() {
    let (ended, left) = run_and_find_survivors("while :; do sleep 1; done", SHORT);
    assert_eq!(ended.outcome, ExecutionEnd::TimedOut);
    assert_eq!(left, Vec::<String>::new());
    assert!(ended.failure().unwrap().starts_with("was stopped at its time limit after"));
}

#[test]
fn one_that_ignores_sigterm_is_killed() {
    let (ended, left) = run_and_find_survivors(
        "trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 1; done' & while :; do sleep 1; done",
        SHORT,
    );
    assert_eq!(ended.outcome, ExecutionEnd::TimedOut);
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn one_that_has_forked_twice_into_a_session_of_its_own_is_found() {
    let (ended, left) =
        run_and_find_survivors("(setsid sh -c 'sleep 1000 & sleep 1001 & wait' &) ; sleep 1002", SHORT);
    assert_eq!(ended.outcome, ExecutionEnd::TimedOut);
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_daemon_left_behind_is_ended_and_counted() {
    // It also holds our pipe, which must not make us wait.
    let (ended, left) = run_and_find_survivors("(setsid sleep 1003 &); echo done", LONG);
    assert_eq!(ended.outcome, ExecutionEnd::Exit { code: 0 });
    assert_eq!(ended.left_behind, 1);
    assert!(ended.stdout.text().ends_with("done\n"));
    assert_eq!(left, Vec::<String>::new());
}

/// At the moment of the look, it has just forked and ended, or its child is within exec.
#[test]
fn one_that_forks_and_ends_while_it_is_looked_for_is_found() {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        // What is looked for gets few turns.
        for _ in 0..6 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop()
                }
            });
        }
        let once = |_| run_and_find_survivors("(setsid sh -c 'sleep 1006 & exit' &); echo done", LONG).1;
        let left: Vec<String> = (0..60).flat_map(once).collect();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(left, Vec::<String>::new());
    });
}

#[test]
fn a_child_that_has_cleared_its_environment_is_found_by_its_parent() {
    for stubborn in ["sleep 1004", "sh -c 'trap \"\" TERM; sleep 1004; sleep 1004'"] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let text = format!("setsid env -i {stubborn} & echo $! > {}; wait", file.display());
        let ended = execute_invocation(
            &script_invocation(directory.path(), &text),
            &[],
            SHORT,
            &AtomicBool::new(false),
        )
        .unwrap();
        assert_eq!(ended.outcome, ExecutionEnd::TimedOut);
        let pid = fs::read_to_string(file).unwrap();
        let command = fs::read_to_string(format!("/proc/{}/cmdline", pid.trim())).unwrap_or_default();
        assert!(!command.contains("1004"), "{command}");
    }
}

#[test]
fn stop_is_heard() {
    let stop = AtomicBool::new(false);
    let directory = tempfile::tempdir().unwrap();
    let invocation = script_invocation(directory.path(), "sleep 1005");
    let began = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(100));
            stop.store(true, Ordering::Relaxed);
        });
        let ended = execute_invocation(&invocation, &[], LONG, &stop).unwrap();
        assert_eq!(ended.outcome, ExecutionEnd::Interrupted);
    });
    assert!(began.elapsed() < Duration::from_secs(50), "the limit was waited for");
}
