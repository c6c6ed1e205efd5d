//! One log as somebody kept it: `/proc/slabinfo` once or again and again, the slabinfo tool's output, or
//! meminfo; which one it is, its first lines say.

use std::path::Path;

use perflab_model::Bytes;

use super::feed::Feed;
use super::format::Ticks;
use super::lines::Lines;
use super::log::Log;
use super::meminfo::Meminfo;
use super::page_size::{self, PageSize};
use super::session::Session;
use super::slabinfo::Slabinfo;
use super::slabinfo_tool::{self, SlabinfoTool};
use super::story::Story;
use super::{Kind, Options, Source};
use crate::ArchiveError;

/// Lines that are looked at to see what a log is.
const LOOKED_AT: usize = 20;

/// Whether the first lines of a file are those of a log: any text has words and numbers, and a row of slabinfo little more,
/// so that something else must speak for it. Nothing but comments may be one.
pub(crate) fn looks(path: &Path) -> Result<bool, ArchiveError> {
    let mut lines = Lines::open(path)?;
    let mut others = 0;
    for _ in 0..LOOKED_AT {
        let Some(line) = lines.next()? else { break };
        let text = line.text.trim_ascii();
        let marked =
            ["time:", "slabinfo - version", "MemTotal:", "# name"].iter().any(|mark| text.starts_with(mark));
        if marked
            || text.contains(": slabdata")
            || text.contains(": tunables")
            || slabinfo_tool::is_head(text)
        {
            return Ok(true);
        }
        others += usize::from(!text.is_empty() && !text.starts_with('#'));
    }
    Ok(others == 0)
}

/// The events of a log.
pub(crate) fn open(path: &Path, options: &Options) -> Result<Box<dyn Source>, ArchiveError> {
    let told = options.page_size.map(told);
    let feed = Feed::open(log(path, told.clone())?)?;
    if feed.is_over() {
        return Err(ArchiveError::foreign(path, None, nothing(&feed)));
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut story = Story {
        title: format!("Imported {} of {name}", feed.series()),
        description: format!("One log, imported from {}; what ran meanwhile is not known.", path.display()),
        target: "imported".into(),
        ..Story::default()
    };
    page_size::settle(told, &[&feed], &mut story);
    Ok(Box::new(Session::new(Kind::Dump, path, options, story, vec![feed])))
}

fn nothing(feed: &Feed) -> String {
    match feed.took().unusable.first() {
        Some(first) => format!("no dump in it can be read; line {}: {}", first.line, first.reason),
        None => "it is empty: there is no dump in it".into(),
    }
}

/// What the user said.
pub(crate) fn told(bytes: Bytes) -> PageSize {
    PageSize { bytes: bytes.0, source: "--page-size".into() }
}

fn log(path: &Path, page: Option<PageSize>) -> Result<Box<dyn Ticks>, ArchiveError> {
    let mut lines = Lines::open(path)?;
    for _ in 0..LOOKED_AT {
        let Some(line) = lines.next()? else { break };
        if slabinfo_tool::is_head(line.text) {
            return Ok(Box::new(Log::open(path, SlabinfoTool)?));
        }
        if line.text.starts_with("MemTotal:") {
            return Ok(Box::new(Log::open(path, Meminfo::default())?));
        }
    }
    Ok(Box::new(Log::open(path, Slabinfo::new(page, None))?))
}
