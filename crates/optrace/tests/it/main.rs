//! Tests of the library from outside, as a program uses it.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic, also in its helpers")]

// Miri starts no programs and has no perf events.
#[cfg(not(miri))]
mod c;
mod damage;
#[cfg(not(miri))]
mod ends;
#[cfg(not(miri))]
mod kernel;
mod recording;
mod stamps;

use std::path::Path;

use optrace::{
    Operation, Recorder, Trace, TraceFile, TraceFileSummary, TraceOptions, TraceRecordingSummary, Vocabulary,
};

/// A trace of `work`, and what was read of it.
fn trace_and_read(
    options: TraceOptions,
    work: impl FnOnce(&Recorder),
) -> (TraceRecordingSummary, TraceFileSummary, Vec<Operation>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let summary = record_trace_into(&path, options, work);
    let (told, operations) = read_trace(&path);
    (summary, told, operations)
}

fn record_trace_into(
    path: &Path,
    options: TraceOptions,
    work: impl FnOnce(&Recorder),
) -> TraceRecordingSummary {
    let words =
        Vocabulary::new(&["insert", "find"], &["reap", "allocate", "shift"], &["elements", "saved"]).unwrap();
    let trace = Trace::create(path, &words, options).unwrap();
    let recorder = trace.recorder();
    work(&recorder);
    drop(recorder);
    trace.finish().unwrap()
}

fn read_trace(path: &Path) -> (TraceFileSummary, Vec<Operation>) {
    let mut operations = Vec::new();
    let told = TraceFile::open(path)
        .unwrap()
        .read_operations(|operation| operations.push(operation.clone()))
        .unwrap();
    (told, operations)
}

/// Without the kernel's events: what can be tested everywhere. Below Miri, memory is little, as each word of it is touched.
fn options_without_kernel_events() -> TraceOptions {
    let little = TraceOptions { chunk_bytes: 4096, chunks: 4, kernel: false, clock: None };
    if cfg!(miri) { little } else { TraceOptions { kernel: false, ..TraceOptions::default() } }
}

/// Says that a test cannot be made here; where everything must be, it fails.
#[cfg(not(miri))]
fn skip_test(name: &str, reason: &str) {
    assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{name}: {reason}");
    eprintln!("SKIP {name}: {reason}");
}
