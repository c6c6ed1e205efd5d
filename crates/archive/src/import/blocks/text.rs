//! What blkparse prints by default, a line an action: device, CPU, sequence, seconds, thread, action, flags, then sector and
//! length where the action has them, and the thread's name in brackets. Its sums at the end are no actions.

use std::path::Path;

use perflab_model::Nanos;
use perflab_model::io::Device;

use super::super::lines::Lines;
use super::super::took::{self, Took};
use super::{Action, Read, Seen, is_beyond};
use crate::ArchiveError;

/// Lines that are looked at: blkparse may have said first which files it reads.
const LOOKED_AT: usize = 20;
/// Bytes of text that are read: six million lines, which are held in memory.
const LARGEST: u64 = 512 << 20;

pub(super) fn looks(path: &Path) -> bool {
    let Ok(mut lines) = Lines::open(path) else { return false };
    for _ in 0..LOOKED_AT {
        match lines.next() {
            Ok(Some(line)) if Line::parse(line.text).is_some() => return true,
            Ok(Some(_)) => {}
            _ => return false,
        }
    }
    false
}

/// Reads the text of one or more disks.
pub(super) fn read(path: &Path) -> Result<(Read, Vec<Took>), ArchiveError> {
    let (mut all, mut took) = (Read::default(), Took::of(path, "io"));
    let mut lines = Lines::open(path)?.at_most(LARGEST);
    let mut is_over = false;
    while let Some(line) = lines.next()? {
        // `CPU0 (sda):` begins the sums.
        is_over |= line.text.starts_with("CPU") || line.text.starts_with("Total (");
        if is_over || line.text.trim().is_empty() || line.text.starts_with("Input file ") {
            continue;
        }
        took.count(line.number, take(line.text, &mut all));
    }
    took.ended(&lines);
    Ok((all, vec![took]))
}

fn take(text: &str, all: &mut Read) -> took::Read {
    let Some(line) = Line::parse(text) else {
        return took::Read::Unusable("it is no line of blkparse's default format".into());
    };
    let action = match line.action {
        "Q" => Action::Queued,
        "D" => Action::Issued,
        "C" => Action::Completed,
        _ => return took::Read::Nothing,
    };
    if let Some(name) = line.name.filter(|_| action != Action::Completed) {
        all.names.entry(line.pid).or_insert_with(|| name.into());
    }
    let Line { at, pid, device, first, count, flags, .. } = line;
    if let Some(beyond) = is_beyond(first, count) {
        return beyond;
    }
    all.seen.push(Seen { at, pid, action, device, first, count, flags: flags.into() });
    took::Read::Used
}

/// A line, understood.
struct Line<'a> {
    device: Device,
    at: Nanos,
    pid: i32,
    action: &'a str,
    flags: &'a str,
    first: u64,
    count: u64,
    name: Option<&'a str>,
}

impl<'a> Line<'a> {
    /// `  8,0    3        1     0.000000000   697  D   W 223490 + 8 [kjournald]`
    fn parse(text: &'a str) -> Option<Self> {
        let (front, name) = match text.rsplit_once(']').and_then(|(front, _)| front.split_once('[')) {
            Some((front, name)) => (front, Some(name)),
            None => (text, None),
        };
        let mut words = front.split_whitespace();
        let (major, minor) = words.next()?.split_once(',')?;
        let device = Device::new(major.parse().ok()?, minor.parse().ok()?);
        let _cpu: u32 = words.next()?.parse().ok()?;
        let _sequence: u64 = words.next()?.parse().ok()?;
        let at = time(words.next()?)?;
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
        Some(Line { device, at, pid, action, flags, first, count, name })
    }
}

/// `12.000000345`, exactly.
fn time(text: &str) -> Option<Nanos> {
    let (seconds, part) = text.split_once('.')?;
    let nanos: u64 = (part.len() == 9).then(|| part.parse().ok())??;
    Some(Nanos(seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}
