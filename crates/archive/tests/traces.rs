//! What a tracer wrote becomes a table, and is read back as it was, an iteration at a time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use optrace::{Trace, TraceOptions, Vocabulary};
use perflab_archive::{Archive, ArchiveError};
use perflab_model::operation::TracedIteration;
use perflab_model::{Nanos, RunEvent, RunEventKind};

/// A trace of `n` operations: each third has a span, each a number.
fn write_trace(path: &Path, n: i64) {
    let words = Vocabulary::new(&["insert", "find"], &["reap", "allocate"], &["elements", "saved"]).unwrap();
    let trace =
        Trace::create(path, &words, TraceOptions { kernel: false, ..TraceOptions::default() }).unwrap();
    let recorder = trace.recorder();
    for at in 0..n {
        recorder.begin((at % 2) as u8);
        recorder.number(0, at);
        if at % 3 == 0 {
            recorder.span(1, || ());
        }
        recorder.end();
    }
    drop(recorder);
    trace.finish().unwrap();
}

/// An iteration that ran here.
fn on_this_host(slot: u32) -> TracedIteration {
    TracedIteration { slot, target: None }
}

#[test]
fn operations_come_back_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(&folder.path().join("archive")).unwrap();
    let manifest = fixtures::run_events::make_manifest(2, 2);
    let mut recorder = archive.begin_run(&manifest).unwrap();
    let sizes = [(0, 100_000), (2, 70)];
    for (slot, n) in sizes {
        let file = folder.path().join(format!("{slot}.optrace"));
        write_trace(&file, n);
        let what = RunEventKind::Traced { slot, tracer: "optrace".into(), file: file.clone() };
        recorder.record(&RunEvent::new(Nanos(1), what)).unwrap();
        assert!(!file.exists(), "the recorder takes the file away");
    }
    // A program that died before it wrote a header.
    let torn = folder.path().join("torn");
    std::fs::write(&torn, b"OPTRACE").unwrap();
    let what = RunEventKind::Traced { slot: 3, tracer: "optrace".into(), file: torn };
    recorder.record(&RunEvent::new(Nanos(1), what)).unwrap();
    let run = recorder.finish().unwrap();

    assert_eq!(run.list_tracers().unwrap(), ["optrace"]);
    assert!(!run.path().join("raw").exists());
    let told = run.read_trace_summaries("optrace").unwrap();
    assert_eq!(
        told.iter().map(|told| (told.slot, told.operations)).collect::<Vec<_>>(),
        [(0, 100_000), (2, 70), (3, 0)]
    );
    let (_, cut) = told[2].cut.as_ref().unwrap().split_once(": ").unwrap();
    insta::assert_snapshot!(cut, @"not a trace of optrace: it is shorter than a header");
    for (slot, n) in sizes {
        let operations = run.read_operations("optrace", on_this_host(slot)).unwrap();
        assert_eq!((operations.len() as i64, operations.summary.slot), (n, slot));
        assert_eq!(operations.kinds, ["insert", "find"]);
        let elements = operations.number_values("elements").unwrap();
        assert!(elements.iter().all(|(row, value)| i64::from(row) == value) && elements.len() as i64 == n);
        assert_eq!(
            operations.spans.iter().map(|span| span.time.len() as i64).collect::<Vec<_>>(),
            [0, (n + 2) / 3]
        );
        assert!(operations.spans[1].time.iter().all(|(row, _)| row % 3 == 0));
        assert!(operations.number_values("saved").unwrap().is_empty());
        assert!(operations.start.is_sorted());
    }
    assert!(run.read_operations("optrace", on_this_host(3)).unwrap().is_empty());
    assert!(matches!(run.read_operations("optrace", on_this_host(1)), Err(ArchiveError::NoTrace { .. })));
    let error = run.read_operations("dtrace", on_this_host(0)).unwrap_err();
    assert!(matches!(error, ArchiveError::NoTrace { .. }), "{error}");
}
