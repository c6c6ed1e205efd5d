//! blktrace's files: records of 48 bytes (`struct blk_io_trace`, linux/blktrace_api.h), each with as many bytes behind it as
//! it says. The byte order is that of the recorded machine, which the magic number tells.

use std::io::{self, Read as _};
use std::path::Path;

use perflab_model::Nanos;
use perflab_model::io::{DeviceNumber, SECTOR};

use super::super::took::{self, FileReport};
use super::{BlockAction, BlockTrace, BlockTraceRecord, impossible_request, list_cpu_files};
use crate::ArchiveError;
use crate::finite_file::{open_finite_file, read_finite_file};

/// The upper three bytes of the first word; the lowest is the version, which has been 7 since 2006.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const HEAD: usize = 48;
/// Bytes of the files of all CPUs that are read: five million records.
const LARGEST: u64 = 256 << 20;

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

/// Bits of the upper half that may stand together, in the order in which blkparse spells them; then those that may not.
const FLAGS: [(u32, char); 4] = [(1 << 15, 'F'), (1 << 11, 'A'), (1 << 3, 'S'), (1 << 12, 'M')];
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const DISCARD: u32 = 1 << 13;

pub(super) fn is_blktrace(path: &Path) -> bool {
    let mut word = [0; 4];
    let read = open_finite_file(path).and_then(|mut file| file.read_exact(&mut word));
    read.is_ok() && ByteOrder::from_magic(word).is_some()
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
pub(super) fn read_blktrace(path: &Path) -> Result<(BlockTrace, Vec<FileReport>), ArchiveError> {
    let (mut all, mut took, mut left) = (BlockTrace::default(), Vec::new(), LARGEST);
    for file in list_cpu_files(path) {
        let bytes = read_finite_file(&file, left).map_err(|error| blktrace_size_error(&file, error))?;
        left -= bytes.len() as u64;
        took.push(read_blktrace_file(&file, &bytes, &mut all)?);
    }
    let first = all.seen.iter().map(|seen| seen.at).min().unwrap_or_default();
    all.seen.iter_mut().for_each(|seen| seen.at = seen.at.since(first));
    Ok((all, took))
}

/// A trace is held in memory, several times over as it is made into requests.
fn blktrace_size_error(file: &Path, error: io::Error) -> ArchiveError {
    match error.raw_os_error() {
        None => ArchiveError::not_importable(
            file,
            None,
            format!("{error}: cut it, as with `blkparse -w FROM:TO`"),
        ),
        Some(_) => ArchiveError::io("read", file)(error),
    }
}

fn read_blktrace_file(file: &Path, bytes: &[u8], all: &mut BlockTrace) -> Result<FileReport, ArchiveError> {
    let mut took = FileReport::new(file, "io");
    let (mut rest, mut number) = (bytes, 0);
    while !rest.is_empty() {
        number += 1;
        let (record, size) = match parse_blktrace_record(rest) {
            Ok(found) => found,
            // Behind a damaged record nothing says where the next begins.
            Err(reason) if number > 1 => {
                let left = format!("{reason}; the {} bytes from record {number} on are left out", rest.len());
                took.count_row(0, took::LineOutcome::Unusable(left));
                return Ok(took);
            }
            Err(reason) => return Err(ArchiveError::not_importable(file, None, reason)),
        };
        took.count_row(number, take_blktrace_record(&record, all));
        rest = rest.get(size..).unwrap_or_default();
    }
    Ok(took)
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
fn take_blktrace_record(record: &BlktraceRecord<'_>, all: &mut BlockTrace) -> took::LineOutcome {
    if record.kind & NOTIFY != 0 {
        match record.action & !CGROUP {
            NOTIFY_PROCESS => drop(all.names.insert(record.pid, task_name(record.behind))),
            NOTIFY_TIME => all.begun = all.begun.or_else(|| record_time(record)),
            _ => {}
        }
        return took::LineOutcome::Nothing;
    }
    let action = match record.action & !CGROUP {
        QUEUE => BlockAction::Queued,
        ISSUE => BlockAction::Issued,
        COMPLETE => BlockAction::Completed,
        _ => return took::LineOutcome::Nothing,
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
    took::LineOutcome::Used
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
