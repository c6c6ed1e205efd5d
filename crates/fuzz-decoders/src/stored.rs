//! What perflab itself stored, and somebody may have changed: runs, traces of start-ups.

use std::io::BufReader;
use std::path::Path;

use perflab_archive::{Archive, JournalReader, fuzzing, import_portable_run};
use perflab_prefetch::{CombinePolicy, ProgramTraces, ReadOrder, combine_traces, plan_replay};
use perflab_prefetch::{trace_dump, trace_store};

use crate::memory_folder::MemoryFolder;

/// A Parquet file, as a table of a run: what is read of it are never more rows than its footer says.
pub(crate) fn decode_parquet_file(bytes: &[u8]) {
    let folder = MemoryFolder::new("parquet");
    let _ = fuzzing::decode_parquet_file(&folder.write("table.parquet", bytes));
}

/// A dictionary page and a page of indices into it: two bytes say how many texts and rows they are said to have, the
/// third and fourth how long the dictionary is.
pub(crate) fn decode_parquet_texts(bytes: &[u8]) {
    let Some(([texts, rows, low, high], pages)) = bytes.split_first_chunk() else { return };
    let length = usize::from(u16::from_le_bytes([*low, *high])).min(pages.len());
    let (dictionary, indices) = pages.split_at(length);
    let (texts, rows) = (usize::from(*texts), usize::from(*rows) * 16);
    if let Some(read) = fuzzing::decode_text_pages(dictionary, texts, indices, rows) {
        assert_eq!(read, rows);
    }
}

/// The lines of a journal: each is an event, or counted.
pub(crate) fn decode_journal(bytes: &[u8]) {
    let text = BufReader::new(std::io::Cursor::new(bytes.to_vec()));
    let mut events = JournalReader::from_reader(Path::new("journal"), Box::new(text));
    let read = events.by_ref().filter(Result::is_ok).count() as u64;
    let lines = bytes.split(|byte| *byte == b'\n').count() as u64;
    assert!(read + events.damaged_lines() <= lines, "{read} events, {} damaged", events.damaged_lines());
}

/// A tar, packed as portable files are; what is taken of it is a run whose manifest can be read or is refused.
pub(crate) fn decode_portable_run(bytes: &[u8]) {
    let folder = MemoryFolder::new("portable");
    let Ok(packed) = zstd::bulk::compress(bytes, 1) else { return };
    let path = folder.write("run.perflab", &packed);
    let Ok(archive) = Archive::open(&folder.path().join("archive")) else { return };
    if let Ok(run) = import_portable_run(&archive, &path) {
        assert!(run.path().starts_with(folder.path()));
        let _ = (run.manifest(), run.count_damaged_lines());
    }
}

/// The JSON of a trace, as it lies in the file behind checksum and compression, and what is made of it; or a whole file.
pub(crate) fn decode_startup_trace(bytes: &[u8]) {
    if bytes.starts_with(b"PLPREFET") {
        let folder = MemoryFolder::new("trace");
        let _ = trace_store::read_trace_file(&folder.write("a.prefetch", bytes));
    }
    let Ok(known) = serde_json::from_slice::<ProgramTraces>(bytes) else { return };
    for policy in [CombinePolicy::Last, CombinePolicy::Intersection, CombinePolicy::Union] {
        let Some(start) = combine_traces(&known, policy) else { continue };
        let _ = (start.page_count(), start.metadata_page_count());
        for order in [ReadOrder::Need, ReadOrder::Block, ReadOrder::Inode] {
            let _ = plan_replay(&start, order, 1 << 30);
        }
    }
}

/// The dumps of 2007.
pub(crate) fn decode_page_dump(bytes: &[u8]) {
    let folder = MemoryFolder::new("dump");
    let path = folder.write("prefetch-trace", bytes);
    let _ = (trace_dump::is_page_dump(&path), trace_dump::read_page_dump(&path));
}
