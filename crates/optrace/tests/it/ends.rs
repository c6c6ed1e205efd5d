//! However a program ends, or leaves an operation: what it recorded is in the trace, and every begin is accounted for.
//! Real programs in C, since only those abort, are killed and fork.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use optrace::{TraceFileSummary, TraceOptions};

use super::c::{compile_program, find_static_library};
use super::{options_without_kernel_events, read_trace, record_trace_into, skip_test, trace_and_read};

/// Records 1,000 operations, forks, aborts, or jumps out of them, as its argument says.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include "optrace.h"
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void record(optrace_recorder_t *recorder, int count) {
    for (int n = 0; n < count; n++) {
        optrace_begin(recorder, 0);
        optrace_number(recorder, 0, n);
        optrace_end(recorder);
    }
}

int main(int argc, char **argv) {
    optrace *trace = optrace_open(NULL, "work,child", "", "number");
    optrace_recorder_t *recorder = optrace_recorder(trace);
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "many") == 0) {
        record(recorder, 300000);
        abort();
    }
    record(recorder, 1000);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "kill") == 0) raise(SIGKILL);
    if (strcmp(how, "exit") == 0) _exit(7);
    if (strcmp(how, "inside") == 0) {
        optrace_begin(recorder, 0);
        abort();
    }
    if (strcmp(how, "fork") == 0) {
        pid_t child = fork();
        if (child == 0) {
            /* more than all chunks hold: a child that waited for its parent's writer would never end */
            for (int n = 0; n < 400000; n++) {
                optrace_begin(recorder, 1);
                optrace_end(recorder);
            }
            optrace_recorder_close(recorder);
            _exit(optrace_close(trace));
        }
        int status = 1;
        waitpid(child, &status, 0);
        record(recorder, 10000);
        optrace_recorder_close(recorder);
        return optrace_close(trace) + status;
    }
    if (strcmp(how, "jump") == 0) {
        jmp_buf place;
        for (volatile int n = 0; n < 100; n++) {
            if (setjmp(place) == 0) {
                optrace_begin(recorder, 0);
                if (n % 10 == 0) longjmp(place, 1);
                optrace_end(recorder);
            } else if (n % 20 == 0) {
                optrace_abandon(recorder);
            }
        }
        optrace_recorder_close(recorder);
        return optrace_close(trace);
    }
    return 1;
}
"#;

/// Runs the program; `None` where it cannot be made here.
fn run_ending_program(test: &str, how: &str, trace: &Path) -> Option<ExitStatus> {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) =
        compile_program(folder.path(), PROGRAM, &find_static_library().expect("cargo built it"))
    else {
        skip_test(test, "there is no `cc`");
        return None;
    };
    Some(Command::new(program).arg(how).env("OPTRACE_FILE", trace).status().unwrap())
}

/// Whether this folder's file system lets a program's memory be in its trace.
fn is_memory_kept(told: &TraceFileSummary) -> bool {
    assert!(told.cut.is_some());
    if told.rescued == 0 {
        skip_test(
            "ends",
            "the file system of TMPDIR does not let pages be allocated beforehand (ext4, xfs, tmpfs do)",
        );
    }
    told.rescued > 0
}

fn sum_entries(told: &TraceFileSummary) -> u64 {
    let entries = told.entries;
    entries.ended + entries.abandoned + entries.nested + entries.outside + entries.lost + entries.open
}

#[test]
fn the_last_operations_of_a_program_that_dies_are_there() {
    let folder = tempfile::tempdir().unwrap();
    for (how, signal, code) in [
        ("abort", Some(6), None),
        ("kill", Some(9), None),
        ("exit", None, Some(7)),
        ("inside", Some(6), None),
    ] {
        let trace = folder.path().join(how);
        let Some(status) = run_ending_program("the_last_operations", how, &trace) else { return };
        assert_eq!((status.signal(), status.code()), (signal, code));
        let (told, operations) = read_trace(&trace);
        if !is_memory_kept(&told) {
            return;
        }
        let numbers: Vec<i64> = operations.iter().map(|operation| operation.numbers[0].1).collect();
        assert!(numbers.iter().copied().eq(0..1000), "{how}: {} operations", numbers.len());
        assert!(operations.windows(2).all(|two| two[0].start <= two[1].start));
        let (_, cut) = told.cut.as_ref().unwrap().split_once(" without its last block: ").unwrap();
        assert_eq!(cut, "the program died (killed, aborted, or by _exit) or still runs");
        assert_eq!(
            (told.entries.open, sum_entries(&told)),
            (u64::from(how == "inside"), told.entries.entered)
        );
    }
}

#[test]
fn none_is_lost_or_shown_twice_where_much_was_written_before() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("many");
    if run_ending_program("none_is_lost", "many", &trace).is_none() {
        return;
    }
    let (told, operations) = read_trace(&trace);
    if is_memory_kept(&told) {
        let numbers = operations.iter().map(|operation| operation.numbers[0].1);
        assert!(numbers.eq(0..300_000), "{} operations, {told:?}", operations.len());
        assert!(told.rescued < 300_000, "nothing was written before");
    }
}

#[test]
fn a_forked_child_has_no_part_in_its_parents_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("fork");
    let Some(status) = run_ending_program("a_forked_child", "fork", &trace) else { return };
    assert_eq!(status.code(), Some(0));
    let (told, operations) = read_trace(&trace);
    assert_eq!((told.cut, told.operations, told.lost), (None, 11_000, 0));
    assert!(operations.iter().all(|operation| operation.kind == 0), "the child's are there");
    assert!(told.forks <= 1 && (told.forks == 1 || told.rescued == 0));
}

#[test]
fn operations_that_are_jumped_out_of_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("jump");
    let Some(status) = run_ending_program("operations_that_are_jumped", "jump", &trace) else { return };
    assert_eq!(status.code(), Some(0));
    let (told, _) = read_trace(&trace);
    assert_eq!((told.entries.entered, told.entries.ended, told.operations), (1100, 1090, 1090));
    assert_eq!((told.entries.abandoned, sum_entries(&told)), (10, told.entries.entered), "{told:?}");
}

#[test]
fn an_operation_that_panics_is_abandoned_and_one_inside_another_nested() {
    let (summary, told, operations) = trace_and_read(options_without_kernel_events(), |recorder| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| ()));
        for n in 0..100 {
            let work = || recorder.operation(0, || assert!(n % 10 > 0));
            assert_eq!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_ok(), n % 10 > 0);
        }
        std::panic::set_hook(hook);
        for _ in 0..5 {
            recorder.begin(1);
            recorder.operation(0, || ());
            recorder.end();
        }
    });
    let entries = told.entries;
    assert_eq!((entries.entered, entries.ended, entries.abandoned, entries.nested), (110, 95, 10, 5));
    assert_eq!((sum_entries(&told), operations.len(), told.unbalanced), (110, 95, 5));
    assert_eq!(summary.entries.abandoned, 10);
}

#[test]
fn a_trace_that_was_closed_has_no_memory_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    record_trace_into(&path, TraceOptions { kernel: false, ..TraceOptions::default() }, |recorder| {
        (0..1000).for_each(|_| recorder.operation(0, || ()));
    });
    let length = path.metadata().unwrap().len();
    assert!(length < 30_000, "{length} bytes");
    let (told, _) = read_trace(&path);
    assert_eq!((told.cut, told.operations, told.rescued), (None, 1000, 0));
}

#[test]
fn a_full_disk_costs_operations_and_never_the_program_root() {
    let name = "a_full_disk_costs_operations";
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=200k", "small"]).arg(&disk).status();
    if !mounted.is_ok_and(|status| status.success()) {
        return skip_test(name, "needs root, to mount a small disk");
    }
    let trace = disk.join("many");
    let status = run_ending_program(name, "many", &trace);
    let told = optrace::TraceFile::open(&trace).map(|file| file.read_operations(|_| ()));
    let unmounted = Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    // It aborts by itself at its end, and not by a signal of the disk's before.
    assert_eq!(status.map(|status| status.signal()), Some(Some(6)));
    assert!(told.unwrap().unwrap().operations < 300_000);
}
