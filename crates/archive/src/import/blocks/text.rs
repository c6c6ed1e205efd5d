//! What blkparse prints by default, a line an action: device, CPU, sequence, seconds, thread, action, flags, then sector and
//! length where the action has them, and the thread's name in brackets. Its sums at the end are no actions.

use std::path::Path;

use perflab_model::Nanos;
use perflab_model::io::DeviceNumber;

use super::super::lines::InputLines;
use super::super::took::{self, FileReport};
use super::{BlockAction, BlockTrace, BlockTraceRecord, impossible_request};
use crate::ArchiveError;

/// Lines that are looked at: blkparse may have said first which files it reads.
const LOOKED_AT: usize = 20;
/// Bytes of text that are read: six million lines, which are held in memory.
const LARGEST: u64 = 512 << 20;

pub(super) fn is_blkparse(path: &Path) -> bool {
    let Ok(mut lines) = InputLines::open(path) else { return false };
    for _ in 0..LOOKED_AT {
        match lines.next_line() {
            Ok(Some(line)) if BlkparseLine::parse(line.text).is_some() => return true,
            Ok(Some(_)) => {}
            _ => return false,
        }
    }
    false
}

/// Reads the text of one or more disks.
pub(super) fn read_blkparse(path: &Path) -> Result<(BlockTrace, Vec<FileReport>), ArchiveError> {
    let (mut all, mut took) = (BlockTrace::default(), FileReport::new(path, "io"));
    let mut lines = InputLines::open(path)?.with_size_limit(LARGEST);
    let mut is_over = false;
    while let Some(line) = lines.next_line()? {
        // `CPU0 (sda):` begins the sums.
        is_over |= line.text.starts_with("CPU") || line.text.starts_with("Total (");
        if is_over || line.text.trim().is_empty() || line.text.starts_with("Input file ") {
            continue;
        }
        took.count_row(line.number, take_blkparse_line(line.text, &mut all));
    }
    took.note_early_end(&lines);
    Ok((all, vec![took]))
}

fn take_blkparse_line(text: &str, all: &mut BlockTrace) -> took::LineOutcome {
    let Some(line) = BlkparseLine::parse(text) else {
        return took::LineOutcome::Unusable("it is no line of blkparse's default format".into());
    };
    let action = match line.action {
        "Q" => BlockAction::Queued,
        "D" => BlockAction::Issued,
        "C" => BlockAction::Completed,
        _ => return took::LineOutcome::Nothing,
    };
    if let Some(name) = line.name.filter(|_| action != BlockAction::Completed) {
        all.names.entry(line.pid).or_insert_with(|| name.into());
    }
    let BlkparseLine { at, pid, device, first, count, flags, .. } = line;
    if let Some(beyond) = impossible_request(first, count) {
        return beyond;
    }
    all.seen.push(BlockTraceRecord { at, pid, action, device, first, count, flags: flags.into() });
    took::LineOutcome::Used
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
