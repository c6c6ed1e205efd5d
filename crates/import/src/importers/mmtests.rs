//! The log directory of an MMTests run (`work/log/NAME`), as written in 2020 and as written now.
//!
//! Each benchmark's values are samples under the names that MMTests gives them today, `iter-N` is the level above
//! executions (a run of everything: MMTests does not boot in between, and logs do not tell who did), and each monitor's logs are
//! one series. Unlike in MMTests, what is not there is missing and not
//! 0, and each metric has a direction of its own.
//!
//! From a log directory to a run: its iterations, the benchmarks of each with their times, the machine, the monitors,
//! and what is missing.
//!
//! `tests-timestamp` says when each benchmark of an iteration ran, how it ended, and what time it took. The monitors'
//! logs lie beside the benchmarks as `MONITOR-BENCHMARK`, packed or not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use indexmap::IndexMap;
use perflab_formats::kernel::KERNEL_FILES;
use perflab_formats::kernel::meminfo::find_meminfo_field;
use perflab_formats::kernel::slab_counts::LoggedMachine;
use perflab_formats::reading_parser::{LineOutcome, ReadingParser, TextLine};
use perflab_formats::tool::find_tool_log;
use perflab_model::fact_table;
use perflab_model::{Direction, Facts, Nanos, Scalar};

use crate::benchmark_results::TimeRange;
use crate::dump_log::DumpLog;
use crate::error::ImportError;
use crate::import_report::{FileReport, first_unreadable, note_unread_entries};
use crate::imported_run::{ImportedRun, RunMetadata, imported_metric};
use crate::importer::{ImportOptions, ImportSource, Importer, Recognition};
use crate::importers::kernel_dump::{kernel_log_names, open_named_log};
use crate::importers::mmtests_declared::DeclaredBenchmark;
use crate::importers::mmtests_log_reader::BenchmarkLogReader;
use crate::importers::mmtests_parsers;
use crate::importers::mmtests_reaim::read_reaim;
use crate::importers::mmtests_schbench::read_schbench;
use crate::importers::mmtests_sockperf::read_sockperf;
use crate::importers::mmtests_thpscale::read_thpscale;
use crate::input_folder::InputFolder;
use crate::input_lines::{InputLines, name_link_target};
use crate::log_stream::LogStream;
use crate::packed_folder::{PackedFolder, compare_natural, strip_packed_ending};

/// The log directory of one MMTests run.
pub(crate) const IMPORTER: Importer = Importer {
    name: "mmtests",
    about: "log directory of MMTests: iter-N with logs of benchmarks and monitors",
    knows_boots: false,
    recognises: Recognition::Folder(is_mmtests_log),
    open: open_mmtests_log,
};

const STAMPS: &str = "tests-timestamp";

/// Reads the logs of one benchmark.
type BenchmarkParser = fn(&PackedFolder, &mut BenchmarkLogReader<'_>) -> Result<(), ImportError>;

/// How the name of a benchmark's folder begins, and what reads its logs where rules in `mmtests.toml` do not.
pub(crate) const BENCHMARKS: &[(&str, BenchmarkParser)] = &[
    ("netperf", mmtests_parsers::read_netperf),
    ("fio", mmtests_parsers::read_fio_logs),
    ("pgbench", mmtests_parsers::read_pgbench),
    ("reaim", read_reaim),
    ("schbench", read_schbench),
    ("sockperf", read_sockperf),
    ("thpscale", read_thpscale),
];

/// Whether a folder is the log directory of one run, or one iteration of it.
fn is_mmtests_log(folder: &InputFolder) -> bool {
    let mut entries = folder.list_entries(folder.path()).map(|entry| entry.path());
    is_iteration(folder.path()) || entries.any(|path| is_iteration_folder(&path) && path.is_dir())
}

/// Whether a folder is an iteration: it says when its benchmarks ran.
fn is_iteration(path: &Path) -> bool {
    ["", ".gz", ".xz", ".zst"].iter().any(|ending| path.join(format!("{STAMPS}{ending}")).is_file())
}

/// The folders in a folder, 2 before 10.
fn list_folders(path: &Path) -> Vec<PathBuf> {
    list_sorted_entries(path).into_iter().filter(|path| path.is_dir()).collect()
}

/// What lies in a folder, 2 before 10.
fn list_sorted_entries(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort_by(|a, b| compare_natural(&folder_name(a), &folder_name(b)));
    found
}

fn is_iteration_folder(path: &Path) -> bool {
    folder_name(path).strip_prefix("iter-").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// What has the name of an iteration and is no folder.
fn unreadable_iterations(path: &Path) -> Vec<FileReport> {
    let refused = |path: PathBuf| {
        let reason = fs::read_dir(&path).err().map(|error| name_link_target(&path, error))?;
        (!path.is_dir()).then(|| FileReport::unreadable(&path, reason))
    };
    list_sorted_entries(path)
        .into_iter()
        .filter(|entry| is_iteration_folder(entry))
        .filter_map(refused)
        .collect()
}

fn folder_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into())
}

/// The folders of a run's iterations: `iter-N`, or the folder itself where it is one.
fn list_iterations(path: &Path) -> Vec<PathBuf> {
    let found: Vec<PathBuf> =
        list_folders(path).into_iter().filter(|folder| is_iteration_folder(folder)).collect();
    if found.is_empty() && is_iteration(path) { vec![path.into()] } else { found }
}

/// The events of a log directory.
fn open_mmtests_log(path: &Path, options: &ImportOptions) -> Result<Box<dyn ImportSource>, ImportError> {
    let run = fs::canonicalize(path).map_or_else(|_| folder_name(path), |path| folder_name(&path));
    let mut metadata = RunMetadata {
        title: format!("MMTests {run}"),
        description: format!("Imported from {}: logs of MMTests.", path.display()),
        target: "imported".into(),
        ..RunMetadata::default()
    };
    let (mut streams, mut seen) = (Vec::new(), BTreeMap::<String, Vec<u32>>::new());
    let folders = list_iterations(path);
    for (boot, folder) in (0..).zip(&folders) {
        streams.extend(read_iteration(folder, boot, &mut metadata, &mut seen)?);
    }
    metadata.report.extend(unreadable_iterations(path));
    if metadata.results.is_empty() && streams.iter().all(LogStream::is_finished) {
        return Err(empty_mmtests_error(path, &metadata, &streams));
    }
    note_uneven_iterations(&seen, folders.len(), &mut metadata);
    let label = options.label.clone().or(Some(run));
    let options = ImportOptions { label, ..options.clone() };
    Ok(Box::new(ImportedRun::new(IMPORTER.name, path, &options, metadata, streams)))
}

/// Why there is nothing in it.
fn empty_mmtests_error(path: &Path, metadata: &RunMetadata, streams: &[LogStream]) -> ImportError {
    let report: Vec<FileReport> =
        streams.iter().map(LogStream::file_report).chain(metadata.report.iter().cloned()).collect();
    first_unreadable(&report).unwrap_or_else(|| {
        let reason = "there is no result of a benchmark that perflab reads in it, and no monitor's log";
        ImportError::not_importable(path, None, reason)
    })
}

/// Benchmarks that some iterations lack.
fn note_uneven_iterations(seen: &BTreeMap<String, Vec<u32>>, iterations: usize, metadata: &mut RunMetadata) {
    for (benchmark, in_iterations) in seen.iter().filter(|(_, found)| found.len() < iterations) {
        let message = format!("{benchmark} is in {} of {iterations} iterations only", in_iterations.len());
        metadata.notes.push((message, "compare it with care: the other iterations may have failed".into()));
    }
}

/// One `iter-N`.
fn read_iteration(
    path: &Path,
    boot: u32,
    metadata: &mut RunMetadata,
    seen: &mut BTreeMap<String, Vec<u32>>,
) -> Result<Vec<LogStream>, ImportError> {
    let folder = PackedFolder::open(path, &mut metadata.report);
    let stamps = match folder.file(STAMPS) {
        Some(file) => {
            let (stamps, report) = TestTimestamps::read(file)?;
            metadata.report.push(report);
            stamps
        }
        None => {
            let message =
                format!("{} has no {STAMPS}: when its benchmarks ran is not known", folder_name(path));
            metadata.notes.push((message, "the run may have been stopped before its first benchmark".into()));
            TestTimestamps::default()
        }
    };
    if let Some(host) = read_machine_facts(&folder, &mut metadata.facts, &mut metadata.report) {
        metadata.target = host;
    }
    let mut streams = Vec::new();
    for test in list_tests(path, &stamps) {
        streams.extend(read_monitor_logs(&folder, &test.name, test.begin, &mut metadata.report)?);
        let given = read_benchmark(path, &test, boot, metadata)?;
        add_test_duration(&test, boot, metadata);
        if given {
            seen.entry(test.name.clone()).or_default().push(boot);
        }
    }
    let tests = list_tests(path, &stamps);
    metadata.notes.extend(note_unread_entries(path, |name| {
        let name = strip_packed_ending(name);
        let of_monitor = |test: &TestTimes| {
            monitor_log_names().any(|monitor| {
                name.strip_prefix(&monitor)
                    .and_then(|rest| rest.strip_prefix('-'))
                    .is_some_and(|rest| rest.strip_suffix(".start").unwrap_or(rest) == test.name)
            })
        };
        name == STAMPS
            || FILES.contains(&name)
            || tests.iter().any(|test| test.name == name || of_monitor(test))
    }));
    Ok(streams)
}

/// The benchmarks in the order in which they ran; those without a time come last.
fn list_tests(path: &Path, stamps: &TestTimestamps) -> Vec<TestTimes> {
    // What cannot be looked into is a benchmark, until something says that it is not.
    let logs = |folder: &PathBuf| match fs::metadata(folder.join("logs")) {
        Ok(found) => found.is_dir(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    let known = |folder: &PathBuf| stamps.get(&folder_name(folder)).is_none() && logs(folder);
    let others = list_folders(path)
        .into_iter()
        .filter(known)
        .map(|folder| TestTimes { name: folder_name(&folder), ..TestTimes::default() });
    stamps.0.iter().cloned().chain(others).collect()
}

/// The times of a whole benchmark, which MMTests calls the monitor `duration`.
fn add_test_duration(test: &TestTimes, boot: u32, metadata: &mut RunMetadata) {
    let Some(times) = test.times else { return };
    let point = IndexMap::from([("benchmark".to_owned(), Scalar::from(test.name.as_str()))]);
    let case = metadata.results.find_or_add_case("duration", point);
    let execution = metadata.results.next_execution(case, boot, test_span(test));
    for (name, value) in ["User", "System", "Elapsed"].into_iter().zip(times) {
        let id =
            metadata.results.find_or_add_metric(case, imported_metric(name, "s", Direction::Neither, false));
        metadata.results.add_sample(execution, id, value, None);
    }
}

fn test_span(test: &TestTimes) -> Option<TimeRange> {
    let begin = test.begin?;
    Some((begin, test.end.unwrap_or(begin).max(begin)))
}

/// Reads the logs of a benchmark; whether it gave any value.
fn read_benchmark(
    path: &Path,
    test: &TestTimes,
    boot: u32,
    metadata: &mut RunMetadata,
) -> Result<bool, ImportError> {
    let home = path.join(&test.name);
    let logs = home.join("logs");
    let mut report: Vec<FileReport> = Vec::new();
    let folder =
        PackedFolder::open(if fs::symlink_metadata(&logs).is_ok() { &logs } else { &home }, &mut report);
    let before = metadata.results.len();
    let mut bench = BenchmarkLogReader {
        name: &test.name,
        boot,
        span: test_span(test),
        results: &mut metadata.results,
        report: &mut report,
    };
    let declared = DeclaredBenchmark::find(&test.name)?;
    let parser = BENCHMARKS.iter().find(|(begin, _)| test.name.starts_with(begin));
    match (declared, parser) {
        (Some(declared), _) => declared.read_logs(&folder, &mut bench, true)?,
        (None, Some((_, read))) => read(&folder, &mut bench)?,
        (None, None) => {}
    }
    let decided = bench.results.len() > before || bench.report.iter().any(|report| report.refused.is_some());
    // The time of an execution may be what the benchmark is about.
    let others = folder.without(|name| declared.is_some_and(|declared| declared.reads_log(name)));
    for beside in DeclaredBenchmark::beside_others()? {
        beside.read_logs(&others, &mut bench, !decided)?;
    }
    if let Some(status) = test.status.filter(|status| *status != 0) {
        let case = bench.case_at(&[]);
        let execution = bench.next_execution(case);
        bench.results.mark_failed(execution, &format!("{} ended with status {status}", test.name));
    }
    let explained = report.iter().any(|report| report.refused.is_some());
    metadata.report.append(&mut report);
    let given = metadata.results.len() > before;
    if !given && !explained {
        metadata.notes.push(explain_no_result(&folder, test, declared.is_some() || parser.is_some(), path));
    }
    Ok(given)
}

/// Why a benchmark gave nothing.
fn explain_no_result(folder: &PackedFolder, test: &TestTimes, known: bool, path: &Path) -> (String, String) {
    let (bench, place) = (&test.name, folder_name(path));
    let names: Vec<&str> = folder.names().take(4).collect();
    let what = match (names.is_empty(), known) {
        (true, _) => format!("{bench} ran in {place} and has no logs there"),
        (false, true) => format!("{bench} in {place} has no log of results, only {}", names.join(", ")),
        (false, false) => {
            format!("perflab does not read the logs of {bench} ({place}: {})", names.join(", "))
        }
    };
    (what, "nothing of it is in this run".into())
}

/// One benchmark of one iteration.
#[derive(Debug, Clone, Default, PartialEq)]
struct TestTimes {
    pub(crate) name: String,
    pub(crate) begin: Option<Nanos>,
    pub(crate) end: Option<Nanos>,
    /// The status that it ended with.
    pub(crate) status: Option<i64>,
    /// User, system and elapsed time in seconds.
    pub(crate) times: Option<[f64; 3]>,
}

/// The benchmarks in the order in which they began.
#[derive(Debug, Default, PartialEq)]
struct TestTimestamps(pub(crate) Vec<TestTimes>);

impl TestTimestamps {
    pub(crate) fn read(file: &Path) -> Result<(Self, FileReport), ImportError> {
        let mut lines = InputLines::open_optional(file);
        let (mut stamps, mut report) = (TestTimestamps::default(), FileReport::new(file, "samples"));
        while let Some(line) = lines.next_line()? {
            let number = line.number;
            if let Some(read) = stamps.take_line(line) {
                report.count_row(number, read);
            }
        }
        report.note_early_end(&lines);
        Ok((stamps, report))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&TestTimes> {
        self.0.iter().find(|test| test.name == name)
    }

    fn test_mut(&mut self, name: &str) -> Option<&mut TestTimes> {
        if self.get(name).is_none() {
            self.0.push(TestTimes { name: name.into(), ..TestTimes::default() });
        }
        self.0.iter_mut().find(|test| test.name == name)
    }

    fn take_line(&mut self, line: TextLine<'_>) -> Option<LineOutcome> {
        let (what, rest) = line.text.split_once(" :: ")?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let epoch = |word: &str| word.parse::<u32>().ok().map(|s| Nanos(u64::from(s) * 1_000_000_000));
        match (what, &words[..]) {
            ("test begin", [name, at, ..]) => {
                self.test_mut(name)?.begin = epoch(at);
                None
            }
            ("test end", [name, at, status @ ..]) => {
                let test = self.test_mut(name)?;
                test.end = epoch(at);
                test.status = status.first().and_then(|status| status.parse().ok());
                None
            }
            ("time", [name, user, "user", system, "system", elapsed, "elapsed"]) => {
                let times =
                    [user, system, elapsed].map(|word| word.parse::<f64>().ok().filter(|t| t.is_finite()));
                let [Some(user), Some(system), Some(elapsed)] = times else {
                    return Some(LineOutcome::Unusable("a time is no number".into()));
                };
                self.test_mut(name)?.times = Some([user, system, elapsed]);
                Some(LineOutcome::Used)
            }
            ("time", _) => {
                Some(LineOutcome::Unusable("it is not `time :: NAME U user S system E elapsed`".into()))
            }
            _ => None,
        }
    }
}

/// Lines of a file that are looked at.
const LINES: u64 = 2_000;

/// The files that are read.
const FILES: &[&str] = &["kernel.version", "lscpu.txt", "tests-sysstate"];

/// Lines of lscpu, and the facts that they are.
const CPU: &[(&str, fact_table::FactKey)] = &[
    ("Model name", fact_table::CPU_MODEL),
    ("Architecture", fact_table::CPU_ARCHITECTURE),
    ("NUMA node(s)", fact_table::NUMA_NODES),
    ("CPU(s)", fact_table::CPU_ONLINE),
];

/// Adds the facts of one iteration's folder; gives the machine's name.
fn read_machine_facts(
    folder: &PackedFolder,
    facts: &mut Facts,
    report: &mut Vec<FileReport>,
) -> Option<String> {
    let mut host = None;
    let mut lines = |name| folder.file(name).map_or_else(Vec::new, |file| read_first_lines(file, report));
    for line in lines("kernel.version").iter().take(1) {
        // Linux NAME RELEASE #1 SMP …
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if let ["Linux", name, release, ..] = words[..] {
            facts.add(fact_table::KERNEL_RELEASE, release, "kernel.version");
            host = Some(name.to_owned());
        }
    }
    for line in lines("lscpu.txt") {
        let Some((name, value)) = line.split_once(':') else { continue };
        if let Some((_, key)) = CPU.iter().find(|(known, _)| *known == name.trim()) {
            facts.add(key.clone(), parse_fact_value(value.trim()), "lscpu.txt");
        }
    }
    let memory = find_meminfo_field(&lines("tests-sysstate").join("\n"), "MemTotal");
    memory
        .into_iter()
        .for_each(|bytes| facts.add(fact_table::MEMORY_TOTAL, bytes, "tests-sysstate: MemTotal"));
    host
}

fn parse_fact_value(text: &str) -> Scalar {
    text.parse().map_or_else(|_| Scalar::from(text), Scalar::Int)
}

/// The first lines of a file; none where it cannot be read, which is noted in `report`.
fn read_first_lines(file: &Path, report: &mut Vec<FileReport>) -> Vec<String> {
    let mut lines = InputLines::open_optional(file);
    report.extend(lines.unreadable_reason().map(|reason| FileReport::unreadable(file, reason)));
    let mut found = Vec::new();
    while let Ok(Some(line)) = lines.next_line()
        && line.number <= LINES
    {
        found.push(line.text.to_owned());
    }
    found
}

/// Monitors that keep what a tool prints, by the name of the log: the tool's series.
const TOOL_MONITORS: &[(&str, &str)] = &[
    ("vmstat", "vmstat-tool"),
    ("iostat", "iostat"),
    ("mpstat", "mpstat"),
    ("perf-time-stat", "perf-time-stat"),
];

/// Every monitor that is read, by the name of its log: tools' and the kernel's.
fn monitor_log_names() -> impl Iterator<Item = String> {
    let tools = TOOL_MONITORS.iter().map(|(name, _)| (*name).to_owned());
    tools.chain(KERNEL_FILES.iter().flat_map(kernel_log_names))
}

/// The parser of the log of that name.
fn open_monitor_parser(log: &str, path: &Path) -> Option<Box<dyn ReadingParser>> {
    if let Some((_, series)) = TOOL_MONITORS.iter().find(|(name, _)| *name == log) {
        return find_tool_log(series).map(|tool| (tool.parser)());
    }
    let file = KERNEL_FILES.iter().find(|file| kernel_log_names(file).iter().any(|name| name == log))?;
    open_named_log(file, path, &LoggedMachine::default())
}

/// The logs of one benchmark's monitors; `begun` is when it began.
fn read_monitor_logs(
    folder: &PackedFolder,
    benchmark: &str,
    begun: Option<Nanos>,
    report: &mut Vec<FileReport>,
) -> Result<Vec<LogStream>, ImportError> {
    let mut streams = Vec::new();
    for monitor in monitor_log_names() {
        let name = format!("{monitor}-{benchmark}");
        let Some(path) = folder.file(&name) else { continue };
        let Some(parser) = open_monitor_parser(&monitor, path) else { continue };
        let start =
            folder.file(&format!("{name}.start")).and_then(|path| read_monitor_start(path, report)).or(begun);
        let log = DumpLog::open_optional(path, parser).with_start(start);
        streams.push(LogStream::from_source(Box::new(log))?);
    }
    Ok(streams)
}

/// `1700000000 12345.67`: since 1970, and since the machine was started.
fn read_monitor_start(path: &Path, report: &mut Vec<FileReport>) -> Option<Nanos> {
    let mut lines = InputLines::open_optional(path);
    let first = lines.next_line().ok().flatten();
    let word = first.and_then(|line| Some(line.text.split_ascii_whitespace().next()?.to_owned()));
    report.extend(lines.unreadable_reason().map(|reason| FileReport::unreadable(path, reason)));
    let seconds = word?.parse::<f64>().ok().filter(|time| (0.0..9e9).contains(time))?;
    Some(Nanos((seconds * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_times_and_a_status() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("tests-timestamp");
        let text = "start :: 5\ntest begin :: stream 6\ntest end :: stream 9 2\n\
                    time :: stream 1.5 user 0.25 system 3.00 elapsed\ntime :: dbench4 1.5 us\ntest begin :: dbench4 9\n";
        std::fs::write(&file, text).unwrap();
        let (stamps, report) = TestTimestamps::read(&file).unwrap();
        let stream = stamps.get("stream").unwrap();
        assert_eq!((stream.begin, stream.end), (Some(Nanos(6_000_000_000)), Some(Nanos(9_000_000_000))));
        assert_eq!((stream.status, stream.times), (Some(2), Some([1.5, 0.25, 3.0])));
        assert_eq!(stamps.get("dbench4").unwrap().end, None);
        assert_eq!(report.format_counts(), "2 rows read, 1 used, 0 flagged, 1 unusable");
        assert_eq!(report.unusable[0].line, 5);
    }
}
