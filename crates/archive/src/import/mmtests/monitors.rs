//! The logs of MMTests' monitors beside the benchmarks: `MONITOR-BENCHMARK`, packed or not.

use std::path::Path;

use perflab_model::Nanos;

use super::super::feed::LogStream;
use super::super::format::{ReadingParser, ReadingSource};
use super::super::iostat::IostatParser;
use super::super::lines::InputLines;
use super::super::log::DumpLog;
use super::super::meminfo::MeminfoParser;
use super::super::mpstat::MpstatParser;
use super::super::perf_stat_log::PerfStatParser;
use super::super::proc_vmstat::ProcVmstatParser;
use super::super::slabinfo::SlabinfoParser;
use super::super::took::FileReport;
use super::super::vmstat_tool::VmstatToolParser;
use super::folder::PackedFolder;
use crate::ArchiveError;

/// Opens a log that began then.
pub(super) type MonitorLogOpener = fn(&Path, Option<Nanos>) -> Box<dyn ReadingSource>;

/// Every monitor that is read, by the name of its log.
pub(super) const MONITORS: &[(&str, MonitorLogOpener)] = &[
    ("vmstat", |path, begun| open_monitor_log(path, begun, VmstatToolParser::default())),
    ("iostat", |path, begun| open_monitor_log(path, begun, IostatParser::default())),
    ("mpstat", |path, begun| open_monitor_log(path, begun, MpstatParser::default())),
    ("perf-time-stat", |path, begun| open_monitor_log(path, begun, PerfStatParser::default())),
    ("proc-vmstat", |path, begun| open_monitor_log(path, begun, ProcVmstatParser::default())),
    ("proc-meminfo", |path, begun| open_monitor_log(path, begun, MeminfoParser::default())),
    ("slabinfo", |path, begun| open_monitor_log(path, begun, SlabinfoParser::new(None, None))),
];

fn open_monitor_log<F: ReadingParser + 'static>(
    path: &Path,
    begun: Option<Nanos>,
    format: F,
) -> Box<dyn ReadingSource> {
    Box::new(DumpLog::open_optional(path, format).with_start(begun))
}

/// The logs of one benchmark's monitors; `begun` is when it began.
pub(super) fn read_monitor_logs(
    folder: &PackedFolder,
    benchmark: &str,
    begun: Option<Nanos>,
    took: &mut Vec<FileReport>,
) -> Result<Vec<LogStream>, ArchiveError> {
    let mut feeds = Vec::new();
    for (monitor, open) in MONITORS {
        let name = format!("{monitor}-{benchmark}");
        let Some(path) = folder.file(&name) else { continue };
        let start =
            folder.file(&format!("{name}.start")).and_then(|path| read_monitor_start(path, took)).or(begun);
        feeds.push(LogStream::from_source(open(path, start))?);
    }
    Ok(feeds)
}

/// `1700000000 12345.67`: since 1970, and since the machine was started.
fn read_monitor_start(path: &Path, took: &mut Vec<FileReport>) -> Option<Nanos> {
    let mut lines = InputLines::open_optional(path);
    let first = lines.next_line().ok().flatten();
    let word = first.and_then(|line| Some(line.text.split_ascii_whitespace().next()?.to_owned()));
    took.extend(lines.unreadable_reason().map(|reason| FileReport::unreadable(path, reason)));
    let seconds = word?.parse::<f64>().ok().filter(|time| (0.0..9e9).contains(time))?;
    Some(Nanos((seconds * 1e9) as u64))
}
