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

use optrace::{File, Operation, Options, Recorder, Summary, Told, Trace, Words};

/// A trace of `work`, and what was read of it.
fn traced(options: Options, work: impl FnOnce(&Recorder)) -> (Summary, Told, Vec<Operation>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let summary = trace_into(&path, options, work);
    let (told, operations) = read(&path);
    (summary, told, operations)
}

fn trace_into(path: &Path, options: Options, work: impl FnOnce(&Recorder)) -> Summary {
    let words =
        Words::new(&["insert", "find"], &["reap", "allocate", "shift"], &["elements", "saved"]).unwrap();
    let trace = Trace::create(path, &words, options).unwrap();
    let recorder = trace.recorder();
    work(&recorder);
    drop(recorder);
    trace.finish().unwrap()
}

fn read(path: &Path) -> (Told, Vec<Operation>) {
    let mut operations = Vec::new();
    let told = File::open(path).unwrap().read(|operation| operations.push(operation.clone())).unwrap();
    (told, operations)
}

/// Without the kernel's events: what can be tested everywhere. Below Miri, memory is little, as each word of it is touched.
fn plain() -> Options {
    let little = Options { chunk_bytes: 4096, chunks: 4, kernel: false, clock: None };
    if cfg!(miri) { little } else { Options { kernel: false, ..Options::default() } }
}

/// Says that a test cannot be made here; where everything must be, it fails.
#[cfg(not(miri))]
fn skip(name: &str, reason: &str) {
    assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{name}: {reason}");
    eprintln!("SKIP {name}: {reason}");
}
