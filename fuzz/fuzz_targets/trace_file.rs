//! Any bytes as a trace file: an error, or operations that make sense; never a panic, never more memory than the file asks
//! for by its length.
#![no_main]

use std::path::PathBuf;

use optrace::TraceFile;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = PathBuf::from(format!("/dev/shm/perflab-fuzz-{}", std::process::id()));
    assert!(std::fs::write(&path, bytes).is_ok(), "no room for {}", path.display());
    if let Ok(file) = TraceFile::open(&path) {
        let (operations, spans) = (file.vocabulary().operations.len(), file.vocabulary().spans.len());
        let mut seen = 0;
        let summary = file.read_operations(|operation| {
            assert!(usize::from(operation.kind) < operations);
            assert!(operation.spans.iter().all(|span| usize::from(span.kind) < spans));
            assert!(operation.on_cpu_ns() <= operation.wall);
            seen += 1;
        });
        assert_eq!(summary.ok().map(|summary| summary.operations), Some(seen));
    }
});
