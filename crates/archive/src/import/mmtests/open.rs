//! From a log directory to a run: its iterations, the benchmarks of each, and what is missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use indexmap::IndexMap;
use perflab_model::{Direction, Scalar};

use super::super::feed::LogStream;
use super::super::lines::name_link_target;
use super::super::results::TimeRange;
use super::super::session::ImportedRun;
use super::super::story::{RunMetadata, imported_metric};
use super::super::took::{FileReport, first_unreadable, note_unread_entries};
use super::super::{ImportOptions, ImportSource, Importer};
use super::bench::BenchmarkLogReader;
use super::folder::{PackedFolder, compare_natural, strip_packed_ending};
use super::timestamps::{TestTimes, TestTimestamps};
use super::{
    dbench, fio, hackbench, machine, memtier, monitors, netperf, perfpipe, pgbench, redis, stream, sysbench,
    times,
};
use crate::ArchiveError;

const STAMPS: &str = "tests-timestamp";

/// Reads the logs of one benchmark.
pub(super) type BenchmarkParser = fn(&PackedFolder, &mut BenchmarkLogReader<'_>) -> Result<(), ArchiveError>;

/// How the name of a benchmark's folder begins, and what reads its logs.
pub(super) const BENCHMARKS: &[(&str, BenchmarkParser)] = &[
    ("hackbench", hackbench::read_hackbench),
    ("netperf", netperf::read_netperf),
    ("stream", stream::read_stream),
    ("sysbench", sysbench::read_sysbench),
    ("dbench", dbench::read_dbench),
    ("tbench", dbench::read_dbench),
    ("redis-memtier", memtier::read_memtier),
    ("redis", redis::read_redis),
    ("perfpipe", perfpipe::read_perfpipe),
    ("fio", fio::read_fio_logs),
    ("pgbench", pgbench::read_pgbench),
];

/// Whether a folder is the log directory of one run, or one iteration of it.
pub(crate) fn is_mmtests_log(path: &Path) -> bool {
    !list_iterations(path).is_empty()
}

/// The runs in a folder of log directories, `work/log` itself.
pub(crate) fn mmtests_runs(path: &Path) -> Vec<PathBuf> {
    list_folders(path).into_iter().filter(|folder| is_mmtests_log(folder)).collect()
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
    let alone =
        || ["", ".gz", ".xz", ".zst"].iter().any(|ending| path.join(format!("{STAMPS}{ending}")).is_file());
    if found.is_empty() && alone() { vec![path.into()] } else { found }
}

/// The events of a log directory.
pub(crate) fn open_mmtests_log(
    path: &Path,
    options: &ImportOptions,
) -> Result<Box<dyn ImportSource>, ArchiveError> {
    let run = fs::canonicalize(path).map_or_else(|_| folder_name(path), |path| folder_name(&path));
    let mut story = RunMetadata {
        title: format!("MMTests {run}"),
        description: format!("Imported from {}: logs of MMTests.", path.display()),
        target: "imported".into(),
        ..RunMetadata::default()
    };
    let (mut feeds, mut seen) = (Vec::new(), BTreeMap::<String, Vec<u32>>::new());
    let folders = list_iterations(path);
    for (boot, folder) in (0..).zip(&folders) {
        feeds.extend(read_iteration(folder, boot, &mut story, &mut seen)?);
    }
    story.took.extend(unreadable_iterations(path));
    if story.results.is_empty() && feeds.iter().all(LogStream::is_finished) {
        return Err(empty_mmtests_error(path, &story, &feeds));
    }
    note_uneven_iterations(&seen, folders.len(), &mut story);
    let label = options.label.clone().or(Some(run));
    let options = ImportOptions { label, ..options.clone() };
    Ok(Box::new(ImportedRun::new(Importer::Mmtests, path, &options, story, feeds)))
}

/// Why there is nothing in it.
fn empty_mmtests_error(path: &Path, story: &RunMetadata, feeds: &[LogStream]) -> ArchiveError {
    let took: Vec<FileReport> =
        feeds.iter().map(LogStream::file_report).chain(story.took.iter().cloned()).collect();
    first_unreadable(&took).unwrap_or_else(|| {
        let reason = "there is no result of a benchmark that perflab reads in it, and no monitor's log";
        ArchiveError::not_importable(path, None, reason)
    })
}

/// Benchmarks that some iterations lack.
fn note_uneven_iterations(seen: &BTreeMap<String, Vec<u32>>, iterations: usize, story: &mut RunMetadata) {
    for (benchmark, in_iterations) in seen.iter().filter(|(_, found)| found.len() < iterations) {
        let message = format!("{benchmark} is in {} of {iterations} iterations only", in_iterations.len());
        story.notes.push((message, "compare it with care: the other iterations may have failed".into()));
    }
}

/// One `iter-N`.
fn read_iteration(
    path: &Path,
    boot: u32,
    story: &mut RunMetadata,
    seen: &mut BTreeMap<String, Vec<u32>>,
) -> Result<Vec<LogStream>, ArchiveError> {
    let folder = PackedFolder::open(path, &mut story.took);
    let stamps = match folder.file(STAMPS) {
        Some(file) => {
            let (stamps, took) = TestTimestamps::read(file)?;
            story.took.push(took);
            stamps
        }
        None => {
            let message =
                format!("{} has no {STAMPS}: when its benchmarks ran is not known", folder_name(path));
            story.notes.push((message, "the run may have been stopped before its first benchmark".into()));
            TestTimestamps::default()
        }
    };
    if let Some(host) = machine::read_machine_facts(&folder, &mut story.facts, &mut story.took) {
        story.target = host;
    }
    let mut feeds = Vec::new();
    for test in list_tests(path, &stamps) {
        feeds.extend(monitors::read_monitor_logs(&folder, &test.name, test.begin, &mut story.took)?);
        let given = read_benchmark(path, &test, boot, story)?;
        add_test_duration(&test, boot, story);
        if given {
            seen.entry(test.name.clone()).or_default().push(boot);
        }
    }
    let tests = list_tests(path, &stamps);
    story.notes.extend(note_unread_entries(path, |name| {
        let name = strip_packed_ending(name);
        let of_monitor = |test: &TestTimes| {
            monitors::MONITORS.iter().any(|(monitor, _)| {
                name.strip_prefix(monitor)
                    .and_then(|rest| rest.strip_prefix('-'))
                    .is_some_and(|rest| rest.strip_suffix(".start").unwrap_or(rest) == test.name)
            })
        };
        name == STAMPS
            || machine::FILES.contains(&name)
            || tests.iter().any(|test| test.name == name || of_monitor(test))
    }));
    Ok(feeds)
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
fn add_test_duration(test: &TestTimes, boot: u32, story: &mut RunMetadata) {
    let Some(times) = test.times else { return };
    let point = IndexMap::from([("benchmark".to_owned(), Scalar::from(test.name.as_str()))]);
    let case = story.results.find_or_add_case("duration", point);
    let execution = story.results.next_execution(case, boot, test_span(test));
    for (name, value) in ["User", "System", "Elapsed"].into_iter().zip(times) {
        let id =
            story.results.find_or_add_metric(case, imported_metric(name, "s", Direction::Neither, false));
        story.results.add_sample(execution, id, value, None);
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
    story: &mut RunMetadata,
) -> Result<bool, ArchiveError> {
    let home = path.join(&test.name);
    let logs = home.join("logs");
    let mut took: Vec<FileReport> = Vec::new();
    let folder =
        PackedFolder::open(if fs::symlink_metadata(&logs).is_ok() { &logs } else { &home }, &mut took);
    let before = story.results.len();
    let mut bench = BenchmarkLogReader {
        name: &test.name,
        boot,
        span: test_span(test),
        results: &mut story.results,
        took: &mut took,
    };
    let parser = BENCHMARKS.iter().find(|(begin, _)| test.name.starts_with(begin));
    parser.map_or(Ok(()), |(_, read)| read(&folder, &mut bench))?;
    let decided = bench.results.len() > before || bench.took.iter().any(|took| took.refused.is_some());
    times::read_gnu_times(&folder, &mut bench, !decided)?;
    if let Some(status) = test.status.filter(|status| *status != 0) {
        let case = bench.case_at(&[]);
        let execution = bench.next_execution(case);
        bench.results.mark_failed(execution, &format!("{} ended with status {status}", test.name));
    }
    let explained = took.iter().any(|took| took.refused.is_some());
    story.took.append(&mut took);
    let given = story.results.len() > before;
    if !given && !explained {
        story.notes.push(explain_no_result(&folder, test, parser.is_some(), path));
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
