//! A trace that is cut, damaged, or of another version: an error or the sound part, never a panic.

use std::path::PathBuf;

use optrace::{OptraceError, TraceFile};
use proptest::prelude::*;

use super::{options_without_kernel_events, read_trace, record_trace_into};

/// Operations of the trace; below Miri one takes milliseconds.
const ALL: i64 = if cfg!(miri) { 300 } else { 5000 };
/// As small as chunks can be there, so that there are several.
const CHUNK: usize = if cfg!(miri) { 4096 } else { 8192 };

/// A trace of that many operations, as bytes.
fn build_sound_trace() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    record_trace_into(
        &path,
        optrace::TraceOptions { chunk_bytes: CHUNK, ..options_without_kernel_events() },
        |recorder| {
            for n in 0..ALL {
                recorder.begin(0);
                recorder.number(0, n);
                recorder.span(1, || ());
                recorder.end();
            }
        },
    );
    std::fs::read(&path).unwrap()
}

fn write_trace_bytes(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn a_cut_trace_is_read_up_to_there() {
    let bytes = build_sound_trace();
    let (_folder, path) = write_trace_bytes(&bytes[..bytes.len() / 2]);
    let (told, operations) = read_trace(&path);
    let cut = told.cut.unwrap();
    assert_eq!(cut.split_once(": ").unwrap().1, "the file was cut inside a block");
    let all = ALL as usize;
    assert!((all / 5..all * 4 / 5).contains(&operations.len()), "{}", operations.len());
    for (n, operation) in (0..).zip(&operations) {
        assert_eq!(operation.numbers, [(0, n)]);
    }
    let without_end = bytes.len() - (4 + 10) * 8;
    let (_folder, path) = write_trace_bytes(&bytes[..without_end]);
    let (told, operations) = read_trace(&path);
    let cut = told.cut.unwrap();
    let end = format!("it ends at byte {without_end} without its last block: ");
    assert_eq!(cut, end + "the program died (killed, aborted, or by _exit) or still runs");
    assert_eq!(operations.len(), all);
}

#[test]
fn another_version_and_other_files_are_named() {
    let mut bytes = build_sound_trace();
    bytes[8] = 99;
    let (_folder, path) = write_trace_bytes(&bytes);
    let Err(error) = TraceFile::open(&path) else { panic!("version 99 was read") };
    assert!(matches!(error, OptraceError::Version { found: 99, known: optrace::VERSION, .. }));
    let (_folder, path) = write_trace_bytes(b"#!/bin/sh\n");
    let reason = |path| match TraceFile::open(path) {
        Err(OptraceError::NotATrace { reason, .. }) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(reason(&path), "it is shorter than a header");
    let (_folder, path) = write_trace_bytes(&[b'x'; 500]);
    assert_eq!(reason(&path), "it does not begin with OPTRACE");
}

#[test]
fn a_clock_that_runs_backwards_is_counted() {
    let mut bytes = build_sound_trace();
    // The begin of the third record of the first block of operations: header, lane block, block header, two records.
    let header = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let third = header + (4 + 3) * 8 + 4 * 8 + 2 * 4 * 8;
    bytes[third..third + 8].copy_from_slice(&1_u64.to_le_bytes());
    let (_folder, path) = write_trace_bytes(&bytes);
    let (told, operations) = read_trace(&path);
    assert_eq!((told.backwards, told.operations), (1, ALL as u64));
    assert!(operations[2].backwards && !operations[3].backwards);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 64 }))]

    #[test]
    fn no_byte_makes_it_panic(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20), cut in any::<prop::sample::Index>()) {
        let mut bytes = build_sound_trace();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(cut.index(bytes.len()));
        let (_folder, path) = write_trace_bytes(&bytes);
        if let Ok(file) = TraceFile::open(&path) {
            let told = file.read_operations(|_| ()).unwrap();
            prop_assert!(told.operations <= ALL as u64);
            prop_assert!(told.cut.is_some());
        }
    }
}
