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
use perflab_model::io::{DeviceNumber, IoEvent, IoEventKind, IoRecording, IoTraceSummary};

use super::session::ImportedRun;
use super::story::RunMetadata;
use super::took::{self, FileReport};
use super::{ImportOptions, ImportSource, Importer};
use crate::ArchiveError;

pub use map::BlockMapFile;

/// Which of the two a file is, by its first bytes.
pub(crate) fn detect_block_trace(path: &Path) -> Option<Importer> {
    match () {
        () if binary::is_blktrace(path) => Some(Importer::Blktrace),
        () if text::is_blkparse(path) => Some(Importer::Blkparse),
        () => None,
    }
}

/// The events of a trace: a run of one iteration.
pub(crate) fn open_block_trace(
    kind: Importer,
    path: &Path,
    options: &ImportOptions,
) -> Result<Box<dyn ImportSource>, ArchiveError> {
    let (mut recording, read, mut took) = read_block_trace(kind, path)?;
    if let Some(on) = &options.on {
        (on.find)(&mut recording, &on.mount_point);
    }
    if let Some(map) = &options.block_map {
        took.push(map::add_block_map(&mut recording, map)?);
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut story = RunMetadata {
        title: format!("Block trace {name}"),
        description: format!("Disk requests that {} saw, imported from {}.", kind.name(), path.display()),
        target: "imported".into(),
        begun: read.begun,
        took,
        ..RunMetadata::default()
    };
    let case = story.results.find_or_add_case("block-trace", Default::default());
    let begun = read.begun.unwrap_or_default();
    let whole = recording.told.ended.since(recording.told.begun);
    story.results.next_execution(case, 0, read.begun.map(|_| (begun, Nanos(begun.0 + whole.0))));
    story.recording = Some(keep_recording(path, &recording)?);
    Ok(Box::new(ImportedRun::new(kind, path, options, story, Vec::new())))
}

/// The recording as a file, which the recorder takes into the run.
fn keep_recording(path: &Path, recording: &IoRecording) -> Result<PathBuf, ArchiveError> {
    let failed = || ArchiveError::io("copy", path);
    let mut file = tempfile::NamedTempFile::new().map_err(failed())?;
    serde_json::to_writer(std::io::BufWriter::new(&mut file), recording)
        .map_err(|error| failed()(error.into()))?;
    file.into_temp_path().keep().map_err(|error| failed()(error.error))
}

/// What stands in a trace, before it is decided which of its events count.
#[derive(Debug, Default)]
struct BlockTrace {
    seen: Vec<BlockTraceRecord>,
    /// names of threads
    names: BTreeMap<i32, String>,
    /// when time 0 was, since 1970
    begun: Option<Nanos>,
}

/// What happened to a request. A trace has many more actions; these are those that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BlockAction {
    Queued,
    Issued,
    Completed,
}

/// One action.
#[derive(Debug, Clone, PartialEq)]
struct BlockTraceRecord {
    at: Nanos,
    pid: i32,
    action: BlockAction,
    device: DeviceNumber,
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
fn impossible_request(first: u64, count: u64) -> Option<took::LineOutcome> {
    let is_beyond = first >= END_OF_DISKS || count > LONGEST;
    is_beyond.then(|| took::LineOutcome::Unusable(format!("no disk has sectors {first} + {count}")))
}

fn read_block_trace(
    kind: Importer,
    path: &Path,
) -> Result<(IoRecording, BlockTrace, Vec<FileReport>), ArchiveError> {
    let (mut read, mut took) = match kind {
        Importer::Blktrace => binary::read_blktrace(path)?,
        _ => text::read_blkparse(path)?,
    };
    let note = |note: &str| took.iter_mut().take(1).for_each(|took| took.add_note(note));
    Ok((build_recording(&mut read, note), read, took))
}

/// A recording of what counts: when requests came to a disk, were sent and were answered. Disks that merge nothing and those
/// below which others lie (device mapper, RAID) are told only what was queued, and then that stands for sending, too.
fn build_recording(read: &mut BlockTrace, note: impl FnOnce(&str)) -> IoRecording {
    let issues: BTreeSet<DeviceNumber> =
        read.seen.iter().filter(|seen| seen.action == BlockAction::Issued).map(|seen| seen.device).collect();
    let mut seen = std::mem::take(&mut read.seen);
    let only_queued =
        seen.iter().any(|seen| seen.action == BlockAction::Queued && !issues.contains(&seen.device));
    if only_queued {
        note("a disk has no dispatches (action D): its queueing (action Q) is taken for them");
    }
    seen.sort_by_key(|seen| seen.at);
    let span = (seen.first().map_or(Nanos(0), |seen| seen.at), seen.last().map_or(Nanos(0), |seen| seen.at));
    let names = std::mem::take(&mut read.names);
    let told = IoTraceSummary { begun: span.0, ended: span.1, names, ..IoTraceSummary::default() };
    let event = |seen: BlockTraceRecord| {
        let kind = match seen.action {
            BlockAction::Queued if issues.contains(&seen.device) => IoEventKind::Queued,
            BlockAction::Queued | BlockAction::Issued => IoEventKind::Issued,
            BlockAction::Completed => IoEventKind::Completed,
        };
        let BlockTraceRecord { at, pid, device, first, count, flags, .. } = seen;
        IoEvent { at, pid, kind, device, inode: 0, first, count, name: Some(flags) }
    };
    IoRecording { events: seen.into_iter().map(event).collect(), files: Vec::new(), told }
}

/// The file, and where blktrace made one for each CPU (`NAME.blktrace.CPU`), the others of them.
fn list_cpu_files(path: &Path) -> Vec<PathBuf> {
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
