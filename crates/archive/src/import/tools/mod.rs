//! What single programs write of their own measurements: one document each, read whole. A document of these kinds is
//! what a benchmark or a counter printed, so that it is small; a longer one is refused by name.
//!
//! Adding a kind is one module with `looks` and `read`, and a line in [`TOOLS`].

mod criterion;
mod document;
mod fio_json;
mod go_bench;
mod google_benchmark;
mod hyperfine;
pub(crate) mod lkp_stats;
mod perf_stat;
mod phoronix;
mod pyperf;
mod sar;

use std::hash::Hash;
use std::path::Path;

use indexmap::{IndexMap, IndexSet};

use super::feed::Feed;
use super::session::Session;
use super::story::Story;
use super::took::{Read, Took};
use super::{Kind, Options, Source};
use crate::ArchiveError;

pub(crate) use criterion::{looks as looks_like_criterion, open as open_criterion};
pub(crate) use document::Document;

/// What is wrong with a document, and in which line where that is known.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) line: Option<u64>,
    pub(crate) reason: String,
}

impl Fault {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Fault { line: None, reason: reason.into() }
    }
}

/// The names of which `members` have different values; a name that some lack counts as different, unless the value that the others
/// have says no more than that (`is_missing`). `pairs` are those of all members, each name once a member.
fn varied_names<N: Hash + Eq, V: PartialEq>(
    pairs: impl Iterator<Item = (N, V)>,
    members: usize,
    is_missing: impl Fn(&V) -> bool,
) -> IndexSet<N> {
    // By name: its first value, how many have it, and whether all these have that value.
    let mut seen: IndexMap<N, (V, usize, bool)> = IndexMap::new();
    for (name, value) in pairs {
        match seen.get_mut(&name) {
            Some((first, times, is_alike)) => {
                *times += 1;
                *is_alike &= *first == value;
            }
            None => drop(seen.insert(name, (value, 1, true))),
        }
    }
    let is_varied =
        |(value, times, is_alike): &(V, usize, bool)| !is_alike || (*times < members && !is_missing(value));
    seen.into_iter().filter_map(|(name, found)| is_varied(&found).then_some(name)).collect()
}

/// A kind that is one document.
struct Tool {
    kind: Kind,
    looks: fn(&Document) -> bool,
    /// Reads it into the story; gives the series that it holds.
    read: fn(&Document, &mut Story, &mut Took) -> Result<Vec<Feed>, Fault>,
}

const TOOLS: &[Tool] = &[
    Tool { kind: Kind::FioJson, looks: fio_json::looks, read: fio_json::read },
    Tool { kind: Kind::PerfStat, looks: perf_stat::looks, read: perf_stat::read },
    Tool { kind: Kind::Hyperfine, looks: hyperfine::looks, read: hyperfine::read },
    Tool { kind: Kind::GoogleBenchmark, looks: google_benchmark::looks, read: google_benchmark::read },
    Tool { kind: Kind::Pyperf, looks: pyperf::looks, read: pyperf::read },
    Tool { kind: Kind::GoBench, looks: go_bench::looks, read: go_bench::read },
    Tool { kind: Kind::Phoronix, looks: phoronix::looks, read: phoronix::read },
    Tool { kind: Kind::Sar, looks: sar::looks, read: sar::read },
    Tool { kind: Kind::LkpStats, looks: lkp_stats::looks, read: lkp_stats::read },
];

/// Which of them a file is, if it is one.
///
/// # Errors
/// A document that begins as JSON and is none: it is cut off or damaged.
pub(crate) fn guess(path: &Path) -> Result<Option<Kind>, ArchiveError> {
    if !Document::may_be(path) {
        return Ok(None);
    }
    let document = Document::read(path)?;
    let found = TOOLS.iter().find(|tool| (tool.looks)(&document)).map(|tool| tool.kind);
    match (found, document.broken()) {
        (None, Some(fault)) => Err(ArchiveError::foreign(path, fault.line, fault.reason)),
        _ => Ok(found),
    }
}

/// The events of a document.
pub(crate) fn open(kind: Kind, path: &Path, options: &Options) -> Result<Box<dyn Source>, ArchiveError> {
    let document = Document::read(path)?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut story = Story {
        title: format!("Imported from {name}"),
        description: format!("What {} measured, imported from {}.", kind.name(), path.display()),
        target: "imported".into(),
        ..Story::default()
    };
    let mut took = Took::of(path, "samples");
    let Some(tool) = TOOLS.iter().find(|tool| tool.kind == kind) else {
        return Err(ArchiveError::foreign(path, None, "it is no document"));
    };
    let read = (tool.read)(&document, &mut story, &mut took);
    let feeds = read.map_err(|fault| ArchiveError::foreign(path, fault.line, fault.reason))?;
    if story.results.is_empty() && feeds.is_empty() {
        let first = took.unusable.first().map_or("there is no result in it", |first| first.reason.as_str());
        return Err(ArchiveError::foreign(path, None, first));
    }
    if took.rows_read > 0 || feeds.is_empty() {
        story.took.push(took);
    }
    Ok(Box::new(Session::new(kind, path, options, story, feeds)))
}

/// Counts a result that is left out.
fn left_out(took: &mut Took, line: u64, reason: String) {
    took.count(line, Read::Unusable(reason));
}

#[cfg(test)]
mod tests;
