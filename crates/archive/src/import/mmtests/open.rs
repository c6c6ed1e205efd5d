//! From a log directory to a run: its iterations, the benchmarks of each, and what is missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use indexmap::IndexMap;
use perflab_model::{Direction, Value};

use super::super::feed::Feed;
use super::super::lines::pointed;
use super::super::results::Span;
use super::super::session::Session;
use super::super::story::{Story, metric};
use super::super::took::{Took, first_refused, unread};
use super::super::{Kind, Options, Source};
use super::bench::Bench;
use super::folder::{Folder, natural, plain};
use super::timestamps::{Test, Timestamps};
use super::{
    dbench, fio, hackbench, machine, memtier, monitors, netperf, perfpipe, pgbench, redis, stream, sysbench,
    times,
};
use crate::ArchiveError;

const STAMPS: &str = "tests-timestamp";

/// Reads the logs of one benchmark.
pub(super) type Parser = fn(&Folder, &mut Bench<'_>) -> Result<(), ArchiveError>;

/// How the name of a benchmark's folder begins, and what reads its logs.
pub(super) const BENCHMARKS: &[(&str, Parser)] = &[
    ("hackbench", hackbench::read),
    ("netperf", netperf::read),
    ("stream", stream::read),
    ("sysbench", sysbench::read),
    ("dbench", dbench::read),
    ("tbench", dbench::read),
    ("redis-memtier", memtier::read),
    ("redis", redis::read),
    ("perfpipe", perfpipe::read),
    ("fio", fio::read),
    ("pgbench", pgbench::read),
];

/// Whether a folder is the log directory of one run, or one iteration of it.
pub(crate) fn looks(path: &Path) -> bool {
    !iterations(path).is_empty()
}

/// The runs in a folder of log directories, `work/log` itself.
pub(crate) fn runs(path: &Path) -> Vec<PathBuf> {
    folders(path).into_iter().filter(|folder| looks(folder)).collect()
}

/// The folders in a folder, 2 before 10.
fn folders(path: &Path) -> Vec<PathBuf> {
    entries(path).into_iter().filter(|path| path.is_dir()).collect()
}

/// What lies in a folder, 2 before 10.
fn entries(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.sort_by(|a, b| natural(&name(a), &name(b)));
    found
}

fn is_iteration(path: &Path) -> bool {
    name(path).strip_prefix("iter-").is_some_and(|number| number.parse::<u32>().is_ok())
}

/// What has the name of an iteration and is no folder.
fn unfound(path: &Path) -> Vec<Took> {
    let refused = |path: PathBuf| {
        let reason = fs::read_dir(&path).err().map(|error| pointed(&path, error))?;
        (!path.is_dir()).then(|| Took::refused(&path, reason))
    };
    entries(path).into_iter().filter(|entry| is_iteration(entry)).filter_map(refused).collect()
}

fn name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into())
}

/// The folders of a run's iterations: `iter-N`, or the folder itself where it is one.
fn iterations(path: &Path) -> Vec<PathBuf> {
    let found: Vec<PathBuf> = folders(path).into_iter().filter(|folder| is_iteration(folder)).collect();
    let alone =
        || ["", ".gz", ".xz", ".zst"].iter().any(|ending| path.join(format!("{STAMPS}{ending}")).is_file());
    if found.is_empty() && alone() { vec![path.into()] } else { found }
}

/// The events of a log directory.
pub(crate) fn open(path: &Path, options: &Options) -> Result<Box<dyn Source>, ArchiveError> {
    let run = fs::canonicalize(path).map_or_else(|_| name(path), |path| name(&path));
    let mut story = Story {
        title: format!("MMTests {run}"),
        description: format!("Imported from {}: logs of MMTests.", path.display()),
        target: "imported".into(),
        ..Story::default()
    };
    let (mut feeds, mut seen) = (Vec::new(), BTreeMap::<String, Vec<u32>>::new());
    let folders = iterations(path);
    for (boot, folder) in (0..).zip(&folders) {
        feeds.extend(iteration(folder, boot, &mut story, &mut seen)?);
    }
    story.took.extend(unfound(path));
    if story.results.is_empty() && feeds.iter().all(Feed::is_over) {
        return Err(empty(path, &story, &feeds));
    }
    uneven(&seen, folders.len(), &mut story);
    let label = options.label.clone().or(Some(run));
    let options = Options { label, ..options.clone() };
    Ok(Box::new(Session::new(Kind::Mmtests, path, &options, story, feeds)))
}

/// Why there is nothing in it.
fn empty(path: &Path, story: &Story, feeds: &[Feed]) -> ArchiveError {
    let took: Vec<Took> = feeds.iter().map(Feed::took).chain(story.took.iter().cloned()).collect();
    first_refused(&took).unwrap_or_else(|| {
        let reason = "there is no result of a benchmark that perflab reads in it, and no monitor's log";
        ArchiveError::foreign(path, None, reason)
    })
}

/// Benchmarks that some iterations lack.
fn uneven(seen: &BTreeMap<String, Vec<u32>>, iterations: usize, story: &mut Story) {
    for (benchmark, in_iterations) in seen.iter().filter(|(_, found)| found.len() < iterations) {
        let message = format!("{benchmark} is in {} of {iterations} iterations only", in_iterations.len());
        story.notes.push((message, "compare it with care: the other iterations may have failed".into()));
    }
}

/// One `iter-N`.
fn iteration(
    path: &Path,
    boot: u32,
    story: &mut Story,
    seen: &mut BTreeMap<String, Vec<u32>>,
) -> Result<Vec<Feed>, ArchiveError> {
    let folder = Folder::open(path, &mut story.took);
    let stamps = match folder.file(STAMPS) {
        Some(file) => {
            let (stamps, took) = Timestamps::read(file)?;
            story.took.push(took);
            stamps
        }
        None => {
            let message = format!("{} has no {STAMPS}: when its benchmarks ran is not known", name(path));
            story.notes.push((message, "the run may have been stopped before its first benchmark".into()));
            Timestamps::default()
        }
    };
    if let Some(host) = machine::read(&folder, &mut story.facts, &mut story.took) {
        story.target = host;
    }
    let mut feeds = Vec::new();
    for test in tests(path, &stamps) {
        feeds.extend(monitors::read(&folder, &test.name, test.begin, &mut story.took)?);
        let given = benchmark(path, &test, boot, story)?;
        duration(&test, boot, story);
        if given {
            seen.entry(test.name.clone()).or_default().push(boot);
        }
    }
    let tests = tests(path, &stamps);
    story.notes.extend(unread(path, |name| {
        let name = plain(name);
        let of_monitor = |test: &Test| {
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
fn tests(path: &Path, stamps: &Timestamps) -> Vec<Test> {
    // What cannot be looked into is a benchmark, until something says that it is not.
    let logs = |folder: &PathBuf| match fs::metadata(folder.join("logs")) {
        Ok(found) => found.is_dir(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    let known = |folder: &PathBuf| stamps.get(&name(folder)).is_none() && logs(folder);
    let others =
        folders(path).into_iter().filter(known).map(|folder| Test { name: name(&folder), ..Test::default() });
    stamps.0.iter().cloned().chain(others).collect()
}

/// The times of a whole benchmark, which MMTests calls the monitor `duration`.
fn duration(test: &Test, boot: u32, story: &mut Story) {
    let Some(times) = test.times else { return };
    let point = IndexMap::from([("benchmark".to_owned(), Value::from(test.name.as_str()))]);
    let case = story.results.case("duration", point);
    let execution = story.results.execution(case, boot, span(test));
    for (name, value) in ["User", "System", "Elapsed"].into_iter().zip(times) {
        let id = story.results.metric(case, metric(name, "s", Direction::Neither, false));
        story.results.sample(execution, id, value, None);
    }
}

fn span(test: &Test) -> Option<Span> {
    let begin = test.begin?;
    Some((begin, test.end.unwrap_or(begin).max(begin)))
}

/// Reads the logs of a benchmark; whether it gave any value.
fn benchmark(path: &Path, test: &Test, boot: u32, story: &mut Story) -> Result<bool, ArchiveError> {
    let home = path.join(&test.name);
    let logs = home.join("logs");
    let mut took: Vec<Took> = Vec::new();
    let folder = Folder::open(if fs::symlink_metadata(&logs).is_ok() { &logs } else { &home }, &mut took);
    let before = story.results.len();
    let mut bench =
        Bench { name: &test.name, boot, span: span(test), results: &mut story.results, took: &mut took };
    let parser = BENCHMARKS.iter().find(|(begin, _)| test.name.starts_with(begin));
    parser.map_or(Ok(()), |(_, read)| read(&folder, &mut bench))?;
    let decided = bench.results.len() > before || bench.took.iter().any(|took| took.refused.is_some());
    times::read(&folder, &mut bench, !decided)?;
    if let Some(status) = test.status.filter(|status| *status != 0) {
        let case = bench.case(&[]);
        let execution = bench.execution(case);
        bench.results.failed(execution, &format!("{} ended with status {status}", test.name));
    }
    let explained = took.iter().any(|took| took.refused.is_some());
    story.took.append(&mut took);
    let given = story.results.len() > before;
    if !given && !explained {
        story.notes.push(silent(&folder, test, parser.is_some(), path));
    }
    Ok(given)
}

/// Why a benchmark gave nothing.
fn silent(folder: &Folder, test: &Test, known: bool, path: &Path) -> (String, String) {
    let (bench, place) = (&test.name, name(path));
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
