//! Block traces of other tools: blktrace's binary files and the text that blkparse prints of them become a recording of disk
//! requests, as `perflab io record` makes one.
//!
//! Owns both formats, and that of maps from blocks to files. Refuses to say by itself which file a sector belongs to: the file
//! systems that were traced do, where they are still there (`perflab io import --on`), or a map that was made of them then
//! (`--map`). A trace is read whole, as every analysis of it needs all of it.

mod binary;
mod map;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use perflab_model::Nanos;
use perflab_model::io::{Device, IoEvent, IoKind, IoRecording, IoTold};

use super::session::Session;
use super::story::Story;
use super::took::{self, Took};
use super::{Kind, Options, Source};
use crate::ArchiveError;

pub use map::BlockMapFile;

/// Which of the two a file is, by its first bytes.
pub(crate) fn guess(path: &Path) -> Option<Kind> {
    match () {
        () if binary::looks(path) => Some(Kind::Blktrace),
        () if text::looks(path) => Some(Kind::Blkparse),
        () => None,
    }
}

/// The events of a trace: a run of one iteration.
pub(crate) fn open(kind: Kind, path: &Path, options: &Options) -> Result<Box<dyn Source>, ArchiveError> {
    let (mut recording, read, mut took) = read(kind, path)?;
    if let Some(on) = &options.on {
        (on.find)(&mut recording, &on.place);
    }
    if let Some(map) = &options.block_map {
        took.push(map::take(&mut recording, map)?);
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut story = Story {
        title: format!("Block trace {name}"),
        description: format!("Disk requests that {} saw, imported from {}.", kind.name(), path.display()),
        target: "imported".into(),
        begun: read.begun,
        took,
        ..Story::default()
    };
    let case = story.results.case("block-trace", Default::default());
    let begun = read.begun.unwrap_or_default();
    let whole = recording.told.ended.since(recording.told.begun);
    story.results.execution(case, 0, read.begun.map(|_| (begun, Nanos(begun.0 + whole.0))));
    story.recording = Some(kept(path, &recording)?);
    Ok(Box::new(Session::new(kind, path, options, story, Vec::new())))
}

/// The recording as a file, which the recorder takes into the run.
fn kept(path: &Path, recording: &IoRecording) -> Result<PathBuf, ArchiveError> {
    let failed = || ArchiveError::io("copy", path);
    let mut file = tempfile::NamedTempFile::new().map_err(failed())?;
    serde_json::to_writer(std::io::BufWriter::new(&mut file), recording)
        .map_err(|error| failed()(error.into()))?;
    file.into_temp_path().keep().map_err(|error| failed()(error.error))
}

/// What stands in a trace, before it is decided which of its events count.
#[derive(Debug, Default)]
struct Read {
    seen: Vec<Seen>,
    /// names of threads
    names: BTreeMap<i32, String>,
    /// when time 0 was, since 1970
    begun: Option<Nanos>,
}

/// What happened to a request. A trace has many more actions; these are those that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    Queued,
    Issued,
    Completed,
}

/// One action.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    at: Nanos,
    pid: i32,
    action: Action,
    device: Device,
    first: u64,
    count: u64,
    /// `R`, `RA`, `WSM`
    flags: String,
}

/// Sectors from this on are on no disk: it would have 2 EiB.
const END_OF_DISKS: u64 = 1 << 52;
/// No request has as many sectors: a record of blktrace counts its bytes in 32 bits.
const LONGEST: u64 = 1 << 23;

/// Why a request cannot be one.
fn is_beyond(first: u64, count: u64) -> Option<took::Read> {
    let is_beyond = first >= END_OF_DISKS || count > LONGEST;
    is_beyond.then(|| took::Read::Unusable(format!("no disk has sectors {first} + {count}")))
}

fn read(kind: Kind, path: &Path) -> Result<(IoRecording, Read, Vec<Took>), ArchiveError> {
    let (mut read, mut took) = match kind {
        Kind::Blktrace => binary::read(path)?,
        _ => text::read(path)?,
    };
    let note = |note: &str| took.iter_mut().take(1).for_each(|took| took.note(note));
    Ok((recording(&mut read, note), read, took))
}

/// A recording of what counts: when requests came to a disk, were sent and were answered. Disks that merge nothing and those
/// below which others lie (device mapper, RAID) are told only what was queued, and then that stands for sending, too.
fn recording(read: &mut Read, note: impl FnOnce(&str)) -> IoRecording {
    let issues: BTreeSet<Device> =
        read.seen.iter().filter(|seen| seen.action == Action::Issued).map(|seen| seen.device).collect();
    let mut seen = std::mem::take(&mut read.seen);
    let only_queued = seen.iter().any(|seen| seen.action == Action::Queued && !issues.contains(&seen.device));
    if only_queued {
        note("a disk has no dispatches (action D): its queueing (action Q) is taken for them");
    }
    seen.sort_by_key(|seen| seen.at);
    let span = (seen.first().map_or(Nanos(0), |seen| seen.at), seen.last().map_or(Nanos(0), |seen| seen.at));
    let names = std::mem::take(&mut read.names);
    let told = IoTold { begun: span.0, ended: span.1, names, ..IoTold::default() };
    let event = |seen: Seen| {
        let kind = match seen.action {
            Action::Queued if issues.contains(&seen.device) => IoKind::Queued,
            Action::Queued | Action::Issued => IoKind::Issued,
            Action::Completed => IoKind::Completed,
        };
        let Seen { at, pid, device, first, count, flags, .. } = seen;
        IoEvent { at, pid, kind, device, inode: 0, first, count, name: Some(flags) }
    };
    IoRecording { events: seen.into_iter().map(event).collect(), files: Vec::new(), told }
}

/// The file, and where blktrace made one for each CPU (`NAME.blktrace.CPU`), the others of them.
fn of_all_cpus(path: &Path) -> Vec<PathBuf> {
    let alone = || vec![path.to_path_buf()];
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return alone() };
    let Some((base, cpu)) = name.rsplit_once(".blktrace.") else { return alone() };
    if cpu.parse::<u32>().is_err() {
        return alone();
    }
    let sibling = |cpu: u32| path.with_file_name(format!("{base}.blktrace.{cpu}"));
    let mut all: Vec<PathBuf> = (0..4096).map(sibling).filter(|file| file.is_file()).collect();
    if all.is_empty() {
        all = alone();
    }
    all
}

#[cfg(test)]
mod tests;
