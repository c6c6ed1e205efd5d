//! What a recording is held against by `perflab io coverage`: a trace of ours, or a list of pages of the prefetch module of 2007.

use std::path::Path;

use perflab_analyze::io::Known;
use perflab_model::io::{IoRecording, PageRange};
use perflab_prefetch::dump::{is_dump, read_dump};

use crate::context::Context;
use crate::exit::Usage;

/// What `--trace` names.
pub enum Evidence {
    /// pages and sectors of a trace of ours
    Trace(Known),
    /// a list of pages of 2007
    Dump(Vec<PageRange>),
}

/// Reads what `--trace` names.
pub fn read_evidence(context: &Context, trace: &Path) -> anyhow::Result<Evidence> {
    if !is_dump(trace) {
        refuse_packed(trace)?;
        return Ok(Evidence::Trace(crate::verbs::prefetch::known(trace)?));
    }
    let dump = read_dump(trace)?;
    let pages: u64 = dump.ranges.iter().map(|range| range.count).sum();
    context.say(format!(
        "{} is a dump of the prefetch module of 2007: {} records of {pages} pages in all, and {} without any",
        trace.display(),
        dump.ranges.len(),
        dump.empty
    ));
    if let Some((lines, first)) = dump.unusable {
        context.say(format!(
            "warning: {lines} of its lines are no records and are left out, the first is `{first}`"
        ));
    }
    Ok(Evidence::Dump(dump.ranges))
}

impl Evidence {
    /// As pages and sectors that the recording's can be looked for in.
    pub fn known(self, context: &Context, recording: &IoRecording) -> Known {
        match self {
            Evidence::Trace(known) => known,
            Evidence::Dump(ranges) => {
                let (known, named) = Known::of_pages(recording, &ranges);
                if let Some(named) = named {
                    let others = ranges.iter().filter(|range| range.device != named).count();
                    context.say(format!(
                        "{named} of the dump is the mapped file system; {others} records are of others"
                    ));
                }
                known
            }
        }
    }
}

/// Refuses what bzip2 packed, as the raw files of 2007 are.
pub fn refuse_packed(path: &Path) -> Result<(), Usage> {
    use std::io::Read as _;
    let mut head = [0; 3];
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    let read = is_file && std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok();
    match read && &head == b"BZh" {
        true => {
            Err(Usage::new(format!("{} is packed by bzip2", path.display()), "unpack it with bunzip2 first"))
        }
        false => Ok(()),
    }
}
