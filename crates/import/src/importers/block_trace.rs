//! Block traces of blktrace and blkparse as a recording of disk requests, and maps from blocks to files.
//!
//! Which file a sector belongs to is not guessed: the traced file systems tell, where they are still there (`perflab io
//! import --on`), or a map that was made of them then (`--map`). A trace is read whole, as every analysis of it needs
//! all of it.
//!
//! blktrace's files: records of 48 bytes (`struct blk_io_trace`, linux/blktrace_api.h), each followed by as many bytes
//! as it says. The byte order is that of the recorded machine, which the magic number tells.
//!
//! What blkparse prints by default: a line per action with device, CPU, sequence, seconds, thread, action, flags, then
//! sector and length where the action has them, and the thread's name in brackets. The sums at its end are not actions.
//!
//! Maps from the blocks of a file system to its files, as e2block2file (2007) wrote them of the blocks that a trace had
//! asked for: a file's line (`PATH (ino N):`, or `Inode N:` without names), and below it `BLOCK+COUNT OFFSET` for each
//! extent; or, with `-t`, a line per extent, `BLOCK+COUNT OFFSET INO N PATH`. Blocks count from the beginning of the
//! file system; a negative offset marks a block that says where others lie. Where on the disk the file system begins, a
//! map does not say: it lists only blocks that were asked for, so the right place is the one where all of them are
//! among the requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use perflab_formats::reading_parser::LineOutcome;
use perflab_model::io_trace::{
    DeviceNumber, DiskPartition, FileClass, FileExtent, ImportedBlockMap, IoEvent, IoEventKind, IoFile,
    IoRecording, IoTraceSummary, MetadataClass, MetadataRange, SECTOR,
};
use perflab_model::{Nanos, PageSet};

use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::imported_run::{ImportedRun, RunMetadata};
use crate::importer::{BlockMapFile, ImportOptions, ImportSource, Importer, Recognition};
use crate::input_lines::InputLines;
use perflab_files::read_finite_file;

/// blktrace's binary files, one for each CPU.
pub(crate) const BLKTRACE: Importer = Importer {
    name: "blktrace",
    about: "file of blktrace, with those of the other CPUs beside it",
    knows_boots: false,
    recognises: Recognition::File(|input| is_blktrace(input.beginning())),
    open: |path, options| open_block_trace("blktrace", read_blktrace, path, options),
};

/// The text that blkparse prints.
pub(crate) const BLKPARSE: Importer = Importer {
    name: "blkparse",
    about: "text of blkparse in its default format",
    knows_boots: false,
    recognises: Recognition::File(|input| input.first_lines().is_some_and(is_blkparse)),
    open: |path, options| open_block_trace("blkparse", read_blkparse, path, options),
};

/// Reads a trace; gives also what was taken of its files.
type BlockTraceReader = fn(&Path) -> Result<(BlockTrace, Vec<FileReport>), ImportError>;

/// The events of a trace: a run of one iteration.
fn open_block_trace(
    importer: &'static str,
    read: BlockTraceReader,
    path: &Path,
    options: &ImportOptions,
) -> Result<Box<dyn ImportSource>, ImportError> {
    let (mut recording, read, mut report) = read_block_trace(read, path)?;
    if let Some(on) = &options.on {
        (on.find)(&mut recording, &on.mount_point);
    }
    if let Some(map) = &options.block_map {
        report.push(add_block_map(&mut recording, map)?);
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut metadata = RunMetadata {
        title: format!("Block trace {name}"),
        description: format!("Disk requests that {importer} saw, imported from {}.", path.display()),
        target: "imported".into(),
        begun: read.begun,
        report,
        ..RunMetadata::default()
    };
    let case = metadata.results.find_or_add_case("block-trace", Default::default());
    let begun = read.begun.unwrap_or_default();
    let whole = recording.summary.ended.since(recording.summary.begun);
    metadata.results.next_execution(case, 0, read.begun.map(|_| (begun, Nanos(begun.0 + whole.0))));
    metadata.recording = Some(keep_recording(path, &recording)?);
    Ok(Box::new(ImportedRun::new(importer, path, options, metadata, Vec::new())))
}

/// The recording as a file, which the recorder takes into the run.
fn keep_recording(path: &Path, recording: &IoRecording) -> Result<PathBuf, ImportError> {
    let failed = || ImportError::io("copy", path);
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
fn impossible_request(first: u64, count: u64) -> Option<LineOutcome> {
    let is_beyond = first >= END_OF_DISKS || count > LONGEST;
    is_beyond.then(|| LineOutcome::Unusable(format!("no disk has sectors {first} + {count}")))
}

fn read_block_trace(
    read: BlockTraceReader,
    path: &Path,
) -> Result<(IoRecording, BlockTrace, Vec<FileReport>), ImportError> {
    let (mut read, mut report) = read(path)?;
    let note = |note: &str| report.iter_mut().take(1).for_each(|report| report.add_note(note));
    Ok((build_recording(&mut read, note), read, report))
}

/// A recording of what counts: when requests came to a disk, were sent and were answered. Disks that merge nothing and those
/// below which others lie (device mapper, RAID) only record what was queued, and then that stands for sending, too.
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
    let summary = IoTraceSummary { begun: span.0, ended: span.1, names, ..IoTraceSummary::default() };
    let event = |seen: BlockTraceRecord| {
        let kind = match seen.action {
            BlockAction::Queued if issues.contains(&seen.device) => IoEventKind::Queued,
            BlockAction::Queued | BlockAction::Issued => IoEventKind::Issued,
            BlockAction::Completed => IoEventKind::Completed,
        };
        let BlockTraceRecord { at, pid, device, first, count, flags, .. } = seen;
        IoEvent { at, pid, kind, device, inode: 0, first, count, name: Some(flags) }
    };
    IoRecording { events: seen.into_iter().map(event).collect(), files: Vec::new(), summary }
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

/// The upper three bytes of the first word; the lowest is the version, which has been 7 since 2006.
const MAGIC: u32 = 0x6561_7400;

const VERSION: u32 = 7;

const HEAD: usize = 48;

/// Bytes of the files of all CPUs that are read: five million records.
const MAX_BLKTRACE_BYTES: u64 = 256 << 20;

/// Actions, in the lower half of the word.
const QUEUE: u32 = 1;

const ISSUE: u32 = 7;

const COMPLETE: u32 = 8;

/// The bit of the upper half that says that a record is no action, and the two kinds of those that matter.
const NOTIFY: u32 = 1 << 10;

const NOTIFY_PROCESS: u32 = 0;

const NOTIFY_TIME: u32 = 1;

/// The bit of the lower half that says that the bytes behind begin with a control group's number.
const CGROUP: u32 = 1 << 8;

/// Bits of the upper half that may stand together, in the order in which blkparse spells them; then those that must not.
const FLAGS: [(u32, char); 4] = [(1 << 15, 'F'), (1 << 11, 'A'), (1 << 3, 'S'), (1 << 12, 'M')];

const WRITE: u32 = 1 << 1;

const FLUSH: u32 = 1 << 2;

const DISCARD: u32 = 1 << 13;

fn is_blktrace(magic: &[u8]) -> bool {
    magic.first_chunk().is_some_and(|word| ByteOrder::from_magic(*word).is_some())
}

/// The byte order of a trace.
#[derive(Debug, Clone, Copy, PartialEq)]
enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    fn from_magic(word: [u8; 4]) -> Option<Self> {
        let is_magic = |word: u32| word & !0xff == MAGIC;
        match () {
            () if is_magic(u32::from_le_bytes(word)) => Some(ByteOrder::Little),
            () if is_magic(u32::from_be_bytes(word)) => Some(ByteOrder::Big),
            () => None,
        }
    }

    fn read_number(self, bytes: &[u8], at: usize, size: usize) -> Option<u64> {
        let bytes = bytes.get(at..at + size)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(match self {
            ByteOrder::Little => bytes.iter().rev().fold(0, add),
            ByteOrder::Big => bytes.iter().fold(0, add),
        })
    }
}

/// One record.
struct BlktraceRecord<'a> {
    time: u64,
    sector: u64,
    bytes: u64,
    /// what happened, and of what kind the request is
    action: u32,
    kind: u32,
    pid: i32,
    device: DeviceNumber,
    behind: &'a [u8],
    order: ByteOrder,
}

/// Reads the file of a CPU and those of the others.
fn read_blktrace(path: &Path) -> Result<(BlockTrace, Vec<FileReport>), ImportError> {
    let (mut all, mut report, mut left) = (BlockTrace::default(), Vec::new(), MAX_BLKTRACE_BYTES);
    for file in list_cpu_files(path) {
        let bytes = read_finite_file(&file, left).map_err(|error| blktrace_size_error(&file, error))?;
        left -= bytes.len() as u64;
        report.push(read_blktrace_file(&file, &bytes, &mut all)?);
    }
    let first = all.seen.iter().map(|seen| seen.at).min().unwrap_or_default();
    all.seen.iter_mut().for_each(|seen| seen.at = seen.at.since(first));
    Ok((all, report))
}

/// A trace is held in memory, several times over as it is made into requests.
fn blktrace_size_error(file: &Path, error: io::Error) -> ImportError {
    match error.raw_os_error() {
        None => {
            ImportError::not_importable(file, None, format!("{error}: cut it, as with `blkparse -w FROM:TO`"))
        }
        Some(_) => ImportError::io("read", file)(error),
    }
}

fn read_blktrace_file(file: &Path, bytes: &[u8], all: &mut BlockTrace) -> Result<FileReport, ImportError> {
    let mut report = FileReport::new(file, "io");
    let (mut rest, mut number) = (bytes, 0);
    while !rest.is_empty() {
        number += 1;
        let (record, size) = match parse_blktrace_record(rest) {
            Ok(found) => found,
            // Behind a damaged record nothing says where the next begins.
            Err(reason) if number > 1 => {
                let left = format!("{reason}; the {} bytes from record {number} on are left out", rest.len());
                report.count_row(0, LineOutcome::Unusable(left));
                return Ok(report);
            }
            Err(reason) => return Err(ImportError::not_importable(file, None, reason)),
        };
        report.count_row(number, take_blktrace_record(&record, all));
        rest = rest.get(size..).unwrap_or_default();
    }
    Ok(report)
}

/// The record that bytes begin with, and its length.
fn parse_blktrace_record(bytes: &[u8]) -> Result<(BlktraceRecord<'_>, usize), String> {
    let short = || "it ends within a record".to_owned();
    let word = bytes.get(..4).and_then(|word| word.try_into().ok()).ok_or_else(short)?;
    let order =
        ByteOrder::from_magic(word).ok_or("it is no record of blktrace: its magic number is another one")?;
    let number = |at, size| order.read_number(bytes, at, size).ok_or_else(short);
    let version = number(0, 4)? as u32 & 0xff;
    if version != VERSION {
        return Err(format!("it is of version {version} of blktrace's format, and {VERSION} is understood"));
    }
    let size = HEAD + number(46, 2)? as usize;
    let behind = bytes.get(HEAD..size).ok_or_else(short)?;
    let action = number(28, 4)? as u32;
    let record = BlktraceRecord {
        time: number(8, 8)?,
        sector: number(16, 8)?,
        bytes: number(24, 4)?,
        action: action & 0xffff,
        kind: action >> 16,
        pid: number(32, 4)? as u32 as i32,
        device: DeviceNumber(number(36, 4)? as u32),
        behind,
        order,
    };
    Ok((record, size))
}

/// Takes what is needed of a record.
fn take_blktrace_record(record: &BlktraceRecord<'_>, all: &mut BlockTrace) -> LineOutcome {
    if record.kind & NOTIFY != 0 {
        match record.action & !CGROUP {
            NOTIFY_PROCESS => drop(all.names.insert(record.pid, task_name(record.behind))),
            NOTIFY_TIME => all.begun = all.begun.or_else(|| record_time(record)),
            _ => {}
        }
        return LineOutcome::Nothing;
    }
    let action = match record.action & !CGROUP {
        QUEUE => BlockAction::Queued,
        ISSUE => BlockAction::Issued,
        COMPLETE => BlockAction::Completed,
        _ => return LineOutcome::Nothing,
    };
    if let Some(beyond) = impossible_request(record.sector, record.bytes / SECTOR) {
        return beyond;
    }
    all.seen.push(BlockTraceRecord {
        at: Nanos(record.time),
        pid: record.pid,
        action,
        device: record.device,
        first: record.sector,
        count: record.bytes / SECTOR,
        flags: format_request_flags(record.kind, record.bytes),
    });
    LineOutcome::Used
}

fn task_name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// Seconds and nanoseconds since 1970.
fn record_time(record: &BlktraceRecord<'_>) -> Option<Nanos> {
    let seconds = record.order.read_number(record.behind, 0, 4)?;
    Some(Nanos(seconds * 1_000_000_000 + record.order.read_number(record.behind, 4, 4)?))
}

/// The usual spelling: flush, what it does, forced through, read ahead, waited for, metadata.
fn format_request_flags(kind: u32, bytes: u64) -> String {
    let mut text = String::new();
    if kind & FLUSH != 0 {
        text.push('F');
    }
    text.push(match () {
        () if kind & DISCARD != 0 => 'D',
        () if kind & WRITE != 0 => 'W',
        () if bytes > 0 => 'R',
        () => 'N',
    });
    text.extend(FLAGS.iter().filter(|(bit, _)| kind & bit != 0).map(|(_, letter)| letter));
    text
}

/// Bytes of text that are read: six million lines, which are held in memory.
const MAX_BLKPARSE_BYTES: u64 = 512 << 20;

fn is_blkparse(lines: &[String]) -> bool {
    lines.iter().any(|line| BlkparseLine::parse(line).is_some())
}

/// Reads the text of one or more disks.
fn read_blkparse(path: &Path) -> Result<(BlockTrace, Vec<FileReport>), ImportError> {
    let (mut all, mut report) = (BlockTrace::default(), FileReport::new(path, "io"));
    let mut lines = InputLines::open(path)?.with_size_limit(MAX_BLKPARSE_BYTES);
    let mut is_over = false;
    while let Some(line) = lines.next_line()? {
        // `CPU0 (sda):` begins the sums.
        is_over |= line.text.starts_with("CPU") || line.text.starts_with("Total (");
        if is_over || line.text.trim().is_empty() || line.text.starts_with("Input file ") {
            continue;
        }
        report.count_row(line.number, take_blkparse_line(line.text, &mut all));
    }
    report.note_early_end(&lines);
    Ok((all, vec![report]))
}

fn take_blkparse_line(text: &str, all: &mut BlockTrace) -> LineOutcome {
    let Some(line) = BlkparseLine::parse(text) else {
        return LineOutcome::Unusable("it is no line of blkparse's default format".into());
    };
    let action = match line.action {
        "Q" => BlockAction::Queued,
        "D" => BlockAction::Issued,
        "C" => BlockAction::Completed,
        _ => return LineOutcome::Nothing,
    };
    if let Some(name) = line.name.filter(|_| action != BlockAction::Completed) {
        all.names.entry(line.pid).or_insert_with(|| name.into());
    }
    let BlkparseLine { at, pid, device, first, count, flags, .. } = line;
    if let Some(beyond) = impossible_request(first, count) {
        return beyond;
    }
    all.seen.push(BlockTraceRecord { at, pid, action, device, first, count, flags: flags.into() });
    LineOutcome::Used
}

/// A line, understood.
struct BlkparseLine<'a> {
    device: DeviceNumber,
    at: Nanos,
    pid: i32,
    action: &'a str,
    flags: &'a str,
    first: u64,
    count: u64,
    name: Option<&'a str>,
}

impl<'a> BlkparseLine<'a> {
    /// `  8,0    3        1     0.000000000   697  D   W 223490 + 8 [kjournald]`
    fn parse(text: &'a str) -> Option<Self> {
        let (front, name) = match text.rsplit_once(']').and_then(|(front, _)| front.split_once('[')) {
            Some((front, name)) => (front, Some(name)),
            None => (text, None),
        };
        let mut words = front.split_whitespace();
        let (major, minor) = words.next()?.split_once(',')?;
        let device = DeviceNumber::new(major.parse().ok()?, minor.parse().ok()?);
        let _cpu: u32 = words.next()?.parse().ok()?;
        let _sequence: u64 = words.next()?.parse().ok()?;
        let at = parse_blkparse_time(words.next()?)?;
        let pid = words.next()?.parse().ok()?;
        let (action, flags) = (words.next()?, words.next()?);
        let rest: Vec<&str> = words.collect();
        let first = rest.first().and_then(|word| word.parse().ok()).unwrap_or(0);
        let count = match rest.get(1..3) {
            Some(["+", count]) => count.parse().ok()?,
            _ => 0,
        };
        // What has no name is printed so by libc.
        let name = name.filter(|name| *name != "(null)");
        Some(BlkparseLine { device, at, pid, action, flags, first, count, name })
    }
}

/// `12.000000345`, exactly.
fn parse_blkparse_time(text: &str) -> Option<Nanos> {
    let (seconds, part) = text.split_once('.')?;
    let nanos: u64 = (part.len() == 9).then(|| part.parse().ok())??;
    Some(Nanos(seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

/// Sizes of blocks that ext file systems have, the most usual first.
const BLOCK_SIZES: [u64; 3] = [4096, 1024, 2048];

/// Numbers from this on are no blocks of any file system: of the smallest they are 16 PiB.
const BLOCKS: u64 = 1 << 44;

/// How many extents, the longest, and how many requests are held against each other for where a file system begins.
const TRIED: (usize, usize) = (32, 4096);

/// How many of the beginnings that fit most often are looked at closely.
const CLOSELY: usize = 8;

/// The share of a map's blocks that must have been asked for, or it is of another trace.
const ENOUGH: f64 = 0.9;

/// An extent of a map: blocks of the file system, whose, and where in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MappedExtent {
    first: u64,
    count: u64,
    inode: u64,
    /// in blocks; negative of a block that says where others lie
    offset: i64,
}

/// What stands in a map.
#[derive(Debug, Default)]
struct BlockMapText {
    extents: Vec<MappedExtent>,
    paths: BTreeMap<u64, String>,
}

/// Where a map's file system lies, and which share of its blocks was asked for there.
#[derive(Debug, Clone, Copy, PartialEq)]
struct FileSystemPlacement {
    disk: DeviceNumber,
    /// in sectors
    start: u64,
    block_size: u64,
    share: f64,
}

/// Gives a recording the files of a map.
fn add_block_map(recording: &mut IoRecording, file: &BlockMapFile) -> Result<FileReport, ImportError> {
    let (map, mut report) = read_block_map(&file.path)?;
    if map.extents.is_empty() {
        let reason = "it is no map from blocks to files: e2block2file writes `PATH (ino N):`, then lines of `BLOCK+COUNT OFFSET`";
        return Err(ImportError::not_importable(&file.path, None, reason));
    }
    let found = locate_file_system(recording, &map, file).filter(|found| found.share > 0.0);
    let given = file.partition_start.is_some();
    let Some(found) = found.filter(|found| given || found.share >= ENOUGH) else {
        let reason = format!(
            "its blocks are not those that the trace asked for{}: it is of another trace, or --partition-start and \
             --block-size must say where its file system begins on the disk",
            found.map_or(String::new(), |best| format!(", at best {:.0} % of them", best.share * 100.0)),
        );
        return Err(ImportError::not_importable(&file.path, None, reason));
    };
    if !given || found.share < ENOUGH {
        let how = if given { "as given" } else { "found by the requests" };
        report.add_note(format!(
            "the file system begins at sector {} of {} and has blocks of {} bytes, {how}: {:.1} % of the map's blocks were asked for there",
            found.start,
            found.disk,
            found.block_size,
            found.share * 100.0
        ));
    }
    add_mapped_files(recording, map, found);
    Ok(report)
}

fn read_block_map(path: &Path) -> Result<(BlockMapText, FileReport), ImportError> {
    let (mut map, mut report) = (BlockMapText::default(), FileReport::new(path, "io"));
    let mut lines = InputLines::open(path)?;
    let mut inode = None;
    while let Some(line) = lines.next_line()? {
        let (number, text) = (line.number, line.text);
        let read = match parse_block_map_line(text, inode) {
            None if text.trim().is_empty() => LineOutcome::Nothing,
            None => LineOutcome::Unusable("it is no line of a map of e2block2file".into()),
            Some(BlockMapLine::Unmapped) => LineOutcome::Nothing,
            Some(BlockMapLine::File(number, name)) => {
                inode = Some(number);
                name.into_iter().for_each(|name| drop(map.paths.insert(number, name.into())));
                LineOutcome::Nothing
            }
            Some(BlockMapLine::Extent(extent, name)) => {
                name.into_iter().for_each(|name| drop(map.paths.insert(extent.inode, name.into())));
                map.extents.push(extent);
                LineOutcome::Used
            }
        };
        report.count_row(number, read);
    }
    report.note_early_end(&lines);
    Ok((map, report))
}

/// A line, understood.
#[derive(Debug, PartialEq)]
enum BlockMapLine<'a> {
    File(u64, Option<&'a str>),
    Extent(MappedExtent, Option<&'a str>),
    /// blocks that belong to no file
    Unmapped,
}

/// `inode` is that of the last file's line, which extents of the long form belong to.
fn parse_block_map_line(text: &str, inode: Option<u64>) -> Option<BlockMapLine<'_>> {
    if let Some(extent) = parse_mapped_extent(text.trim_start(), inode) {
        return Some(extent);
    }
    if let Some(number) = text.strip_prefix("Inode ") {
        return Some(BlockMapLine::File(number.strip_suffix(':')?.parse().ok()?, None));
    }
    let (path, number) = text.rsplit_once(" (ino ")?;
    Some(BlockMapLine::File(number.strip_suffix("):")?.parse().ok()?, Some(path)))
}

/// `3751+134 2950`, `3885+1 -12336`, `3751+8 2950 INO 8 /path`, `3751+8 unmapped`
fn parse_mapped_extent(text: &str, inode: Option<u64>) -> Option<BlockMapLine<'_>> {
    let (blocks, rest) = text.split_once(' ')?;
    let (first, count) = blocks.split_once('+')?;
    let (first, count): (u64, u64) = (first.parse().ok()?, count.parse().ok()?);
    if first >= BLOCKS || count == 0 || count >= BLOCKS {
        return None;
    }
    if rest.trim_end() == "unmapped" {
        return Some(BlockMapLine::Unmapped);
    }
    let (offset, owner) =
        rest.split_once(" INO ").map_or((rest, None), |(offset, owner)| (offset, Some(owner)));
    let (inode, name) = match owner.map(|owner| owner.split_once(' ').unwrap_or((owner, ""))) {
        Some((number, name)) => (number.trim_end().parse().ok()?, Some(name).filter(|name| !name.is_empty())),
        None => (inode?, None),
    };
    let offset: i64 = offset.trim_end().parse().ok()?;
    let extent = MappedExtent { first, count, inode, offset };
    (offset.unsigned_abs() < BLOCKS).then_some(BlockMapLine::Extent(extent, name))
}

/// Where most of a map's blocks were asked for.
fn locate_file_system(
    recording: &IoRecording,
    map: &BlockMapText,
    file: &BlockMapFile,
) -> Option<FileSystemPlacement> {
    let sizes =
        file.block_size.map_or_else(|| BLOCK_SIZES.to_vec(), |size| vec![size.0.clamp(SECTOR, 1 << 16)]);
    let mut best: Option<FileSystemPlacement> = None;
    for (disk, requests) in requests_by_disk(recording) {
        let asked: PageSet = requests.iter().map(|event| (event.first, event.count)).collect();
        for block_size in &sizes {
            let starts = match file.partition_start {
                Some(start) => vec![start],
                None => likely_starts(&requests, map, block_size / SECTOR),
            };
            for start in starts {
                let share = share_requested(&asked, map, start, block_size / SECTOR);
                if start < END_OF_DISKS && best.is_none_or(|best| share > best.share) {
                    best = Some(FileSystemPlacement { disk, start, block_size: *block_size, share });
                }
            }
        }
    }
    best
}

fn requests_by_disk(recording: &IoRecording) -> BTreeMap<DeviceNumber, Vec<&IoEvent>> {
    let mut all: BTreeMap<DeviceNumber, Vec<&IoEvent>> = BTreeMap::new();
    let is_request =
        |event: &&IoEvent| matches!(event.kind, IoEventKind::Queued | IoEventKind::Issued) && event.count > 0;
    recording
        .events
        .iter()
        .filter(is_request)
        .for_each(|event| all.entry(event.device).or_default().push(event));
    all
}

/// Beginnings of the file system with which most of the longest extents begin where requests do.
fn likely_starts(requests: &[&IoEvent], map: &BlockMapText, sectors: u64) -> Vec<u64> {
    let mut longest = map.extents.clone();
    longest.sort_by_key(|extent| std::cmp::Reverse(extent.count));
    let mut votes: HashMap<u64, usize> = HashMap::new();
    for extent in longest.iter().take(TRIED.0) {
        let starts =
            requests.iter().take(TRIED.1).filter_map(|event| event.first.checked_sub(extent.first * sectors));
        starts.for_each(|start| *votes.entry(start).or_default() += 1);
    }
    let mut votes: Vec<(u64, usize)> = votes.into_iter().collect();
    votes.sort_by_key(|(start, count)| (std::cmp::Reverse(*count), *start));
    votes.into_iter().take(CLOSELY).map(|(start, _)| start).collect()
}

/// Which share of a map's blocks lies among what was asked for, if its file system begins at this sector.
fn share_requested(asked: &PageSet, map: &BlockMapText, start: u64, sectors: u64) -> f64 {
    let extents = map.extents.iter();
    let mapped: PageSet = extents
        .map(|extent| (start.saturating_add(extent.first * sectors), extent.count * sectors))
        .collect();
    mapped.intersection(asked).page_count() as f64 / mapped.page_count().max(1) as f64
}

fn add_mapped_files(recording: &mut IoRecording, map: BlockMapText, found: FileSystemPlacement) {
    // A map does not say the number of its partition: the disk's stands for it.
    let device = found.disk;
    let bytes = |blocks: u64| blocks * found.block_size;
    let mut extents: BTreeMap<u64, Vec<FileExtent>> = BTreeMap::new();
    for extent in &map.extents {
        let (physical, length) = (bytes(extent.first), bytes(extent.count));
        match u64::try_from(extent.offset) {
            Ok(offset) => extents.entry(extent.inode).or_default().push(FileExtent {
                logical: bytes(offset),
                physical,
                length,
            }),
            Err(_) => {
                let class = MetadataClass::Extents;
                recording.summary.metadata.push(MetadataRange { device, physical, length, class });
            }
        }
    }
    let file = |(inode, extents): (u64, Vec<FileExtent>)| IoFile {
        device,
        inode,
        generation: None,
        class: FileClass::Other,
        path: Some(map.paths.get(&inode).cloned().unwrap_or_else(|| format!("Inode {inode}"))),
        size: 0,
        changed: 0,
        extents,
    };
    recording.files.extend(extents.into_iter().map(file));
    let summary = &mut recording.summary;
    summary.partitions.push(DiskPartition { device, disk: found.disk, start: found.start * SECTOR });
    summary.block_map = Some(ImportedBlockMap { block_size: found.block_size });
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use perflab_model::io_trace::{DeviceNumber, IoEventKind, IoRecording};
    use perflab_model::{Nanos, RunEvent, RunEventKind};
    use proptest::prelude::*;

    use super::*;
    use super::{BlockAction, build_recording, read_block_trace};
    use crate::error::ImportError;
    use crate::import_report::FileReport;
    use crate::importer::{BlockMapFile, ImportOptions};
    use crate::registry::{detect_importer, open_import};

    fn recorded_trace(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded/blktrace").join(name)
    }

    fn write_trace_file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (home, path)
    }

    /// The same trace, read from the kernel's records and from what blkparse makes of them, is the same recording.
    #[test]
    fn records_are_understood_as_blkparse_does() {
        let (ours, _, report) = read_block_trace(read_blktrace, &recorded_trace("cat.blktrace.1")).unwrap();
        let (theirs, ..) = read_block_trace(read_blkparse, &recorded_trace("cat.blkparse")).unwrap();
        assert_eq!(report.len(), 2, "the files of both CPUs");
        assert!(report.iter().all(|report| report.rows_unusable == 0), "{report:?}");
        assert_eq!(ours.events.len(), theirs.events.len());
        // Of two events of one moment on two CPUs either may come first.
        let sorted = |mut recording: IoRecording| {
            recording.events.sort_by_key(|event| (event.at, event.first, event.kind));
            recording.events
        };
        assert_eq!(sorted(ours), sorted(theirs));
    }

    #[test]
    fn packed_text_that_breaks_off_says_so() {
        let text = std::fs::read(recorded_trace("cat.blkparse")).unwrap();
        let packed = zstd::encode_all(text.as_slice(), 3).unwrap();
        let (_home, half) = write_trace_file("half.zst", &packed[..packed.len() - 30]);
        let (.., report) = read_block_trace(read_blkparse, &half).unwrap();
        insta::assert_snapshot!(report[0].notes.join("\n"), @"it breaks off after line 0: incomplete frame");
    }

    /// blkparse's own sums: 1,548 KiB read in 24 requests, all of them answered; three flushes are among its reads.
    #[test]
    fn sums_are_blkparses() {
        let (recording, ..) = read_block_trace(read_blktrace, &recorded_trace("cat.blktrace.0")).unwrap();
        let reads = |kind: IoEventKind| {
            let of = recording.events.iter().filter(|event| event.kind == kind);
            let reads =
                of.filter(|event| event.name.as_deref().is_some_and(|flags| flags.starts_with(['R', 'F'])));
            reads.fold((0, 0), |(count, sectors), event| (count + 1, sectors + event.count))
        };
        assert_eq!(reads(IoEventKind::Issued), (24, 1548 * 2));
        assert_eq!(reads(IoEventKind::Completed), (24, 1548 * 2));
    }

    #[test]
    fn kinds_are_told_by_their_first_bytes() {
        assert_eq!(detect_importer(&recorded_trace("cat.blktrace.0")).ok(), Some(&BLKTRACE));
        assert_eq!(detect_importer(&recorded_trace("cat.blkparse")).ok(), Some(&BLKPARSE));
        assert_eq!(detect_importer(&recorded_trace("PROVENANCE")).ok(), None);
    }

    #[test]
    fn names_and_lines_of_every_shape_are_read() {
        let lines = "Input file sda.blktrace.0 added\n\
        \x20 8,0    3        1     0.000000000   697  Q   W 223490 + 8 [kjournald]\n\
        \x20 8,0    3        2     0.000003000   697  D   W 223490 + 8 (    3000) [kjournald]\n\
        \x20 8,0    3        3     1.000000005     0  C   W 223490 + 8 [0]\n\
        \x20 8,0    3        4     1.000000006   697  A   R 12 + 8 <- (8,1) 4\n\
        \x20 9,0    3        5     1.000000007   698  Q   R 12 + 8 [a name [x]]\n\
        nonsense\nCPU3 (sda):\n Reads Queued: 0\n";
        let (_home, path) = write_trace_file("x", lines.as_bytes());
        let (recording, _, report) = read_block_trace(read_blkparse, &path).unwrap();
        let seen: Vec<_> =
            recording.events.iter().map(|event| (event.at.0, event.kind, event.device)).collect();
        let (disk, raid) = (DeviceNumber::new(8, 0), DeviceNumber::new(9, 0));
        assert_eq!(
            seen,
            [
                (0, IoEventKind::Queued, disk),
                (3000, IoEventKind::Issued, disk),
                (1_000_000_005, IoEventKind::Completed, disk),
                (1_000_000_007, IoEventKind::Issued, raid),
            ],
            "where nothing is dispatched, what is queued stands for it"
        );
        assert_eq!(recording.summary.names[&697], "kjournald");
        assert_eq!(recording.summary.names[&698], "a name [x]");
        assert_eq!((report[0].rows_unusable, report[0].unusable[0].line), (1, 7));
        insta::assert_snapshot!(report[0].notes.join("\n"), @"a disk has no dispatches (action D): its queueing (action Q) is taken for them");
    }

    /// One record, and a message that tells when it all began, by a machine of the other byte order.
    #[test]
    fn traces_of_the_other_byte_order_are_read() {
        let record = |action: u32, device: u32, behind: &[u8]| {
            let words = [0x6561_7407_u32, 1, 0, 500, 0, 4096, 1024, action, 77, device, 0];
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            bytes.extend([0, 0]);
            bytes.extend((behind.len() as u16).to_be_bytes());
            [&bytes, behind].concat()
        };
        let began = [7_u32.to_be_bytes(), 9_u32.to_be_bytes()].concat();
        let bytes = [
            record(1 << 26 | 1, 0, &began),
            record(1 << 26, 0, b"dd\0\0"),
            record((1 | 1 << 6) << 16 | 7, 8 << 20, b""),
        ];
        let (_home, path) = write_trace_file("big", &bytes.concat());
        let (recording, read, report) = read_block_trace(read_blktrace, &path).unwrap();
        let event = &recording.events[0];
        assert_eq!(
            (event.first, event.count, event.device, event.pid),
            (4096, 2, DeviceNumber::new(8, 0), 77)
        );
        assert_eq!(event.name.as_deref(), Some("R"));
        assert_eq!((read.begun, recording.summary.names[&77].as_str()), (Some(Nanos(7_000_000_009)), "dd"));
        assert_eq!((report[0].rows_used, report[0].rows_unusable), (1, 0));
    }

    #[test]
    fn damaged_and_foreign_files_are_named() {
        let good = std::fs::read(recorded_trace("cat.blktrace.0")).unwrap();
        let import = |bytes: &[u8], kind| {
            let (_home, path) = write_trace_file("trace", bytes);
            let options = ImportOptions { kind: Some(kind), ..ImportOptions::default() };
            let (_, mut source) = open_import(&path, &options)?;
            let events: Vec<RunEvent> = source.by_ref().collect::<Result<_, _>>()?;
            Ok::<_, ImportError>((events, source.file_reports()))
        };
        let refused = |bytes: &[u8], kind| match import(bytes, kind) {
            Err(ImportError::Foreign { reason, .. }) => reason,
            other => panic!("{other:?}"),
        };
        let version = [&[9], &good[1..]].concat();
        let reasons = [
            refused(&version, &BLKTRACE),
            refused(b"something else", &BLKTRACE),
            refused(&good[..40], &BLKTRACE),
            refused(b"  8,0 words\n", &BLKPARSE),
        ];
        insta::assert_snapshot!(reasons.join("\n"), @"
        it is of version 9 of blktrace's format, and 7 is understood
        it is no record of blktrace: its magic number is another one
        it ends within a record
        no row in it can be read; line 1: it is no line of blkparse's default format
        ");
        let (events, reports) = import(&good[..good.len() - 10], &BLKTRACE).unwrap();
        insta::assert_snapshot!(reports[0].unusable[0].reason, @"it ends within a record; the 38 bytes from record 198 on are left out");
        let is_recording = |event: &RunEvent| matches!(event.what, RunEventKind::Traced { .. });
        assert_eq!(events.into_iter().filter(is_recording).count(), 1);
    }

    /// A trace of 2007's kind, with a map of `PATH (ino N):` or of `-t`'s form, and what the import says of the map.
    fn import_with_map(map: &str, file: BlockMapFile) -> Result<(IoRecording, FileReport), ImportError> {
        let place = |name: &str| recorded_trace("../blktrace-2007").join(name);
        let (mut recording, ..) = read_block_trace(read_blktrace, &place("partition.blktrace.0")).unwrap();
        let report = super::add_block_map(&mut recording, &BlockMapFile { path: place(map), ..file })?;
        Ok((recording, report))
    }

    #[test]
    fn a_map_gives_a_trace_its_files_and_where_their_file_system_begins() {
        let (recording, report) = import_with_map("partition.map", BlockMapFile::default()).unwrap();
        let disk = DeviceNumber::new(7, 0);
        let summary = &recording.summary;
        assert_eq!(
            summary.disk_below(disk),
            (disk, 63 * 512),
            "a partition of 2007 begins at sector 63: {report:?}"
        );
        assert_eq!(summary.block_map.map(|map| map.block_size), Some(4096));
        insta::assert_snapshot!(report.notes[0], @"the file system begins at sector 63 of 7:0 and has blocks of 4096 bytes, found by the requests: 100.0 % of the map's blocks were asked for there");
        assert_eq!((report.rows_used, report.rows_unusable), (22, 0));
        let big = recording.files.iter().find(|file| file.path.as_deref() == Some("/lib/big")).unwrap();
        assert_eq!(
            (big.inode, big.extents.len(), big.disk_offset_of_page(131)),
            (13, 6, Some((128 + 3) << 12))
        );
        assert!(recording.files.iter().any(|file| file.path.as_deref() == Some("Inode 2")));
        assert_eq!(summary.metadata.len(), 3, "blocks that say where others lie");
        // The other form lists extents in the order of the disk, and names the same.
        let (times, report) = import_with_map("partition.times", BlockMapFile::default()).unwrap();
        assert_eq!((report.rows_used, report.rows_unusable), (22, 0));
        let sorted = |recording: &IoRecording| {
            let files = recording.files.iter();
            let named = files.map(|file| {
                let mut extents: Vec<_> =
                    file.extents.iter().map(|extent| (extent.physical, extent.logical)).collect();
                extents.sort_unstable();
                (file.inode, extents)
            });
            named.collect::<Vec<_>>()
        };
        assert_eq!(sorted(&times), sorted(&recording));
    }

    #[test]
    fn a_map_of_another_trace_is_refused_and_a_start_that_was_said_is_believed() {
        let home = tempfile::tempdir().unwrap();
        let other = |text: &str| {
            let path = home.path().join("map");
            std::fs::write(&path, text).unwrap();
            let file = BlockMapFile { path, ..BlockMapFile::default() };
            let (mut recording, ..) =
                read_block_trace(read_blktrace, &recorded_trace("../blktrace-2007/partition.blktrace.0"))
                    .unwrap();
            super::add_block_map(&mut recording, &file).map(drop)
        };
        let refusal = |text: &str| {
            let folder = format!("{}/", home.path().display());
            other(text).unwrap_err().to_string().replace(&folder, "")
        };
        let message = refusal("/a (ino 5):\n  900000+77 0\n  1000000+99 77\n");
        insta::assert_snapshot!(message, @"map: its blocks are not those that the trace asked for: it is of another trace, or --partition-start and --block-size must say where its file system begins on the disk");
        let message = refusal("something else\n");
        insta::assert_snapshot!(message, @"map: it is no map from blocks to files: e2block2file writes `PATH (ino N):`, then lines of `BLOCK+COUNT OFFSET`");
        let start = |start| BlockMapFile { partition_start: Some(start), ..BlockMapFile::default() };
        let (recording, report) = import_with_map("partition.map", start(2048)).unwrap();
        assert_eq!(recording.summary.disk_below(DeviceNumber::new(7, 0)).1, 2048 * 512);
        insta::assert_snapshot!(report.notes[0], @"the file system begins at sector 2048 of 7:0 and has blocks of 2048 bytes, as given: 0.1 % of the map's blocks were asked for there");
        assert!(import_with_map("partition.map", start(u64::MAX)).is_err(), "no disk has such a sector");
    }

    #[test]
    fn sectors_that_no_disk_has_are_no_requests() {
        let lines = "  8,0 0 1 0.000000000 7 D R 18446744073709551615 + 8 [x]\n  8,0 0 2 0.000000001 7 D R 8 + 4294967296 [x]\n\
                 \x20 8,0 0 3 0.000000002 7 D R 8 + 8 [x]\n";
        let (_home, path) = write_trace_file("x", lines.as_bytes());
        let (recording, _, report) = read_block_trace(read_blkparse, &path).unwrap();
        assert_eq!((recording.events.len(), report[0].rows_unusable), (1, 2));
    }

    static TRACE: std::sync::LazyLock<IoRecording> = std::sync::LazyLock::new(|| {
        let trace = recorded_trace("../blktrace-2007/partition.blktrace.0");
        read_block_trace(read_blktrace, &trace).unwrap().0
    });

    proptest! {
        #[test]
        fn no_text_makes_a_map_fall(lines in proptest::collection::vec("[ 0-9+:()a-zI-]{0,40}|Inode [0-9]{1,20}:| [0-9]{1,20}[+][0-9]{1,20} -?[0-9]{1,20}( INO [0-9]{1,20} /x)?", 0..20)) {
            let (_home, path) = write_trace_file("x", lines.join("\n").as_bytes());
            for partition_start in [None, Some(0), Some(u64::MAX)] {
                let mut recording = TRACE.clone();
                let file = BlockMapFile { path: path.clone(), partition_start, block_size: None };
                let _ = super::add_block_map(&mut recording, &file);
            }
        }


        #[test]
        fn no_bytes_make_a_reader_fall(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let good = std::fs::read(recorded_trace("cat.blktrace.1")).unwrap();
            let (_home, path) = write_trace_file("x", &[&good[..48], &bytes].concat());
            let (mut all, _) = super::read_blktrace(&path).unwrap();
            let _ = build_recording(&mut all, |_| ());
            let (_home, path) = write_trace_file("y", &bytes);
            let _ = super::read_blktrace(&path);
            let (all, _) = super::read_blkparse(&path).unwrap();
            prop_assert!(all.seen.iter().all(|seen| seen.action <= BlockAction::Completed));
        }
    }

    #[test]
    fn lines_of_both_forms_are_understood() {
        let extent = |first, count, inode, offset| MappedExtent { first, count, inode, offset };
        let all = [
            ("Inode 8:", Some(BlockMapLine::File(8, None))),
            ("/a (b)/c (ino 3) (ino 77):", Some(BlockMapLine::File(77, Some("/a (b)/c (ino 3)")))),
            ("  3751+134 2950", Some(BlockMapLine::Extent(extent(3751, 134, 5, 2950), None))),
            ("  3885+1 -12336", Some(BlockMapLine::Extent(extent(3885, 1, 5, -12336), None))),
            ("10+2 4 INO 12 /a name", Some(BlockMapLine::Extent(extent(10, 2, 12, 4), Some("/a name")))),
            ("10+2 4 INO 12", Some(BlockMapLine::Extent(extent(10, 2, 12, 4), None))),
            ("10+2 unmapped", Some(BlockMapLine::Unmapped)),
            ("10+0 4", None),
            ("1+18446744073709551615 4", None),
            ("17592186044416+1 4", None),
            ("  1+1 word", None),
            ("2133571404", None),
            ("", None),
        ];
        for (text, expected) in all {
            assert_eq!(parse_block_map_line(text, Some(5)), expected, "{text}");
        }
        assert_eq!(parse_block_map_line("  3751+134 2950", None), None, "an extent of no file");
    }
}
