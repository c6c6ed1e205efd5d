//! The logs of MMTests' monitors beside the benchmarks: `MONITOR-BENCHMARK`, packed or not.

use std::path::Path;

use perflab_model::Nanos;

use super::super::feed::Feed;
use super::super::format::{Format, Ticks};
use super::super::iostat::Iostat;
use super::super::lines::Lines;
use super::super::log::Log;
use super::super::meminfo::Meminfo;
use super::super::mpstat::Mpstat;
use super::super::perf_stat_log::PerfStatLog;
use super::super::proc_vmstat::ProcVmstat;
use super::super::slabinfo::Slabinfo;
use super::super::took::Took;
use super::super::vmstat_tool::VmstatTool;
use super::folder::Folder;
use crate::ArchiveError;

/// Opens a log that began then.
pub(super) type Open = fn(&Path, Option<Nanos>) -> Box<dyn Ticks>;

/// Every monitor that is read, by the name of its log.
pub(super) const MONITORS: &[(&str, Open)] = &[
    ("vmstat", |path, begun| open(path, begun, VmstatTool::default())),
    ("iostat", |path, begun| open(path, begun, Iostat::default())),
    ("mpstat", |path, begun| open(path, begun, Mpstat::default())),
    ("perf-time-stat", |path, begun| open(path, begun, PerfStatLog::default())),
    ("proc-vmstat", |path, begun| open(path, begun, ProcVmstat::default())),
    ("proc-meminfo", |path, begun| open(path, begun, Meminfo::default())),
    ("slabinfo", |path, begun| open(path, begun, Slabinfo::new(None, None))),
];

fn open<F: Format + 'static>(path: &Path, begun: Option<Nanos>, format: F) -> Box<dyn Ticks> {
    Box::new(Log::among(path, format).begun(begun))
}

/// The logs of one benchmark's monitors; `begun` is when it began.
pub(super) fn read(
    folder: &Folder,
    benchmark: &str,
    begun: Option<Nanos>,
    took: &mut Vec<Took>,
) -> Result<Vec<Feed>, ArchiveError> {
    let mut feeds = Vec::new();
    for (monitor, open) in MONITORS {
        let name = format!("{monitor}-{benchmark}");
        let Some(path) = folder.file(&name) else { continue };
        let start = folder.file(&format!("{name}.start")).and_then(|path| start(path, took)).or(begun);
        feeds.push(Feed::open(open(path, start))?);
    }
    Ok(feeds)
}

/// `1700000000 12345.67`: since 1970, and since the machine was started.
fn start(path: &Path, took: &mut Vec<Took>) -> Option<Nanos> {
    let mut lines = Lines::among(path);
    let first = lines.next().ok().flatten();
    let word = first.and_then(|line| Some(line.text.split_ascii_whitespace().next()?.to_owned()));
    took.extend(lines.refused().map(|reason| Took::refused(path, reason)));
    let seconds = word?.parse::<f64>().ok().filter(|time| (0.0..9e9).contains(time))?;
    Some(Nanos((seconds * 1e9) as u64))
}
