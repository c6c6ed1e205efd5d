//! What a recording is held against by `perflab io coverage`: a trace of ours, or a list of pages of the prefetch module of 2007.

use std::path::Path;

use perflab_analyze::TraceContents;
use perflab_model::io_trace::{IoRecording, PageRange};
use perflab_prefetch::trace_dump::{is_page_dump, read_page_dump};

use crate::context::App;
use crate::exit::UsageError;

/// What `--trace` names.
pub enum CoverageEvidence {
    /// pages and sectors of a trace of ours
    Trace(TraceContents),
    /// a list of pages of 2007
    Dump(Vec<PageRange>),
}

/// Reads what `--trace` names.
pub fn read_evidence(context: &App, trace: &Path) -> anyhow::Result<CoverageEvidence> {
    if !is_page_dump(trace) {
        refuse_bzip2(trace)?;
        return Ok(CoverageEvidence::Trace(crate::verbs::prefetch::read_known_pages(trace)?));
    }
    let dump = read_page_dump(trace)?;
    let pages: u64 = dump.ranges.iter().map(|range| range.count).sum();
    context.note(format!(
        "{} is a dump of the prefetch module of 2007: {} records of {pages} pages in all, and {} without any",
        trace.display(),
        dump.ranges.len(),
        dump.empty
    ));
    if let Some((lines, first)) = dump.unusable {
        context.note(format!(
            "warning: {lines} of its lines are no records and are left out, the first is `{first}`"
        ));
    }
    Ok(CoverageEvidence::Dump(dump.ranges))
}

impl CoverageEvidence {
    /// As pages and sectors that the recording's can be looked for in.
    pub fn into_known_pages(self, context: &App, recording: &IoRecording) -> TraceContents {
        match self {
            CoverageEvidence::Trace(known) => known,
            CoverageEvidence::Dump(ranges) => {
                let (known, named) = TraceContents::from_pages(recording, &ranges);
                if let Some(named) = named {
                    let others = ranges.iter().filter(|range| range.device != named).count();
                    context.note(format!(
                        "{named} of the dump is the mapped file system; {others} records are of others"
                    ));
                }
                known
            }
        }
    }
}

/// Refuses what bzip2 packed, as the raw files of 2007 are.
pub fn refuse_bzip2(path: &Path) -> Result<(), UsageError> {
    use std::io::Read as _;
    let mut head = [0; 3];
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let read = is_file && std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok();
    match read && &head == b"BZh" {
        true => Err(UsageError::new(
            format!("{} is packed by bzip2", path.display()),
            "unpack it with bunzip2 first",
        )),
        false => Ok(()),
    }
}
