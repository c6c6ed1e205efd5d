//! Any bytes as a trace file: an error, or operations that make sense; never a panic, never more memory than the file asks
//! for by its length.
#![no_main]

use std::path::PathBuf;

use optrace::File;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let path = PathBuf::from(format!("/dev/shm/perflab-fuzz-{}", std::process::id()));
    assert!(std::fs::write(&path, bytes).is_ok(), "no room for {}", path.display());
    if let Ok(file) = File::open(&path) {
        let (operations, spans) = (file.words().operations.len(), file.words().spans.len());
        let mut seen = 0;
        let told = file.read(|operation| {
            assert!(usize::from(operation.kind) < operations);
            assert!(operation.spans.iter().all(|span| usize::from(span.kind) < spans));
            assert!(operation.on_cpu() <= operation.wall);
            seen += 1;
        });
        assert_eq!(told.ok().map(|told| told.operations), Some(seen));
    }
});
