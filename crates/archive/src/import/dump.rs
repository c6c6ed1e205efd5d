//! One log as somebody kept it: `/proc/slabinfo` once or again and again, the slabinfo tool's output, or
//! meminfo; which one it is, its first lines say.

use std::path::Path;

use perflab_model::Bytes;

use super::feed::LogStream;
use super::format::ReadingSource;
use super::lines::InputLines;
use super::log::DumpLog;
use super::meminfo::MeminfoParser;
use super::page_size::{self, MachinePageSize};
use super::session::ImportedRun;
use super::slabinfo::SlabinfoParser;
use super::slabinfo_tool::{self, SlabinfoToolParser};
use super::story::RunMetadata;
use super::{ImportOptions, ImportSource, Importer};
use crate::ArchiveError;

/// Lines that are looked at to see what a log is.
const LOOKED_AT: usize = 20;

/// Whether the first lines of a file are those of a log: any text has words and numbers, and a row of slabinfo little more,
/// so that something else must speak for it. Nothing but comments may be one.
pub(crate) fn is_kernel_dump(path: &Path) -> Result<bool, ArchiveError> {
    let mut lines = InputLines::open(path)?;
    let mut others = 0;
    for _ in 0..LOOKED_AT {
        let Some(line) = lines.next_line()? else { break };
        let text = line.text.trim_ascii();
        let marked =
            ["time:", "slabinfo - version", "MemTotal:", "# name"].iter().any(|mark| text.starts_with(mark));
        if marked
            || text.contains(": slabdata")
            || text.contains(": tunables")
            || slabinfo_tool::is_slabinfo_tool_head(text)
        {
            return Ok(true);
        }
        others += usize::from(!text.is_empty() && !text.starts_with('#'));
    }
    Ok(others == 0)
}

/// The events of a log.
pub(crate) fn open_kernel_dump(
    path: &Path,
    options: &ImportOptions,
) -> Result<Box<dyn ImportSource>, ArchiveError> {
    let told = options.page_size.map(stated_page_size);
    let feed = LogStream::from_source(open_dump_log(path, told.clone())?)?;
    if feed.is_finished() {
        return Err(ArchiveError::not_importable(path, None, no_dump_reason(&feed)));
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut story = RunMetadata {
        title: format!("Imported {} of {name}", feed.series_name()),
        description: format!("One log, imported from {}; what ran meanwhile is not known.", path.display()),
        target: "imported".into(),
        ..RunMetadata::default()
    };
    page_size::settle_page_size(told, &[&feed], &mut story);
    Ok(Box::new(ImportedRun::new(Importer::Dump, path, options, story, vec![feed])))
}

fn no_dump_reason(feed: &LogStream) -> String {
    match feed.file_report().unusable.first() {
        Some(first) => format!("no dump in it can be read; line {}: {}", first.line, first.reason),
        None => "it is empty: there is no dump in it".into(),
    }
}

/// What the user said.
pub(crate) fn stated_page_size(bytes: Bytes) -> MachinePageSize {
    MachinePageSize { bytes: bytes.0, source: "--page-size".into() }
}

fn open_dump_log(path: &Path, page: Option<MachinePageSize>) -> Result<Box<dyn ReadingSource>, ArchiveError> {
    let mut lines = InputLines::open(path)?;
    for _ in 0..LOOKED_AT {
        let Some(line) = lines.next_line()? else { break };
        if slabinfo_tool::is_slabinfo_tool_head(line.text) {
            return Ok(Box::new(DumpLog::open(path, SlabinfoToolParser)?));
        }
        if line.text.starts_with("MemTotal:") {
            return Ok(Box::new(DumpLog::open(path, MeminfoParser::default())?));
        }
    }
    Ok(Box::new(DumpLog::open(path, SlabinfoParser::new(page, None))?))
}
