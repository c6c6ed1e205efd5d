//! The result folder of one run of lkp-tests, or whatever part of it somebody kept. Each monitor's log is a
//! series; what the benchmark reported are samples; the job says what it was.

use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use perflab_model::{Cell, Nanos, Value};

use super::feed::Feed;
use super::format::Ticks;
use super::job::{Job, ResultPath};
use super::lines::{Lines, found, pointed};
use super::log::Log;
use super::meminfo::Meminfo;
use super::page_size::{self, PageSize};
use super::results::{Results, Span};
use super::session::Session;
use super::slabinfo::Slabinfo;
use super::slabinfo_tool::SlabinfoTool;
use super::story::Story;
use super::took::unread;
use super::took::{Read, Took, first_refused};
use super::tools::lkp_stats;
use super::{Kind, Options, Source, dump, fsmark, orders, sysfs, timed};
use crate::ArchiveError;

/// Files that make a folder one of lkp's.
const MEMBERS: &[&str] = &[
    "slabinfo",
    "slabinfo_tool",
    "orders",
    "job.yaml",
    "job",
    "meminfo",
    "fsmark",
    "fsmark.time",
    "stats.json",
    "matrix.json",
];
/// The largest text that is kept with the run.
const TEXT: u64 = 1 << 20;

/// Whether a folder is the result of a run, or a result root with numbered ones in it.
pub(crate) fn looks(path: &Path) -> bool {
    !runs(path).is_empty()
}

/// The results of a folder: itself, or those that are numbered 0, 1, 2 in it.
fn runs(path: &Path) -> Vec<PathBuf> {
    match is_run(path) {
        true => vec![path.into()],
        false => numbered(path).into_iter().filter(|run| is_run(run)).collect(),
    }
}

/// The numbered runs of a result root of which nothing can be read.
fn lost(path: &Path) -> Vec<Took> {
    let none = |run: PathBuf| {
        let reason = std::fs::read_dir(&run).map_err(|error| pointed(&run, error)).err();
        let reason =
            reason.map_or_else(|| "no file of a run of lkp's is in it".into(), |error| error.to_string());
        Took::refused(&run, reason)
    };
    let runs = if is_run(path) { Vec::new() } else { numbered(path) };
    runs.into_iter().filter(|run| !is_run(run)).map(none).collect()
}

/// The file of that name, packed or not.
fn member(path: &Path, name: &str) -> Option<PathBuf> {
    found(&[path.join(name), path.join(format!("{name}.gz"))]).cloned()
}

/// Whether there is a file of lkp's in a folder.
fn is_run(path: &Path) -> bool {
    MEMBERS.iter().filter_map(|name| member(path, name)).any(|file| file.is_file())
}

/// The numbered runs in a folder, whether they can be read or not.
fn numbered(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let mut found: Vec<(u32, PathBuf)> = entries.filter_map(|path| Some((number(&path)?, path))).collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// The small files of a folder.
#[derive(Default)]
struct Papers {
    texts: Vec<(String, bool, String)>,
    took: Vec<Took>,
}

impl Papers {
    /// Reads a text and keeps it; empty where it is not there.
    fn text(&mut self, path: &Path, name: &str, of_benchmark: bool) -> Result<String, ArchiveError> {
        let Some(file) = member(path, name) else { return Ok(String::new()) };
        let mut lines = Lines::among(&file);
        if let Some(reason) = lines.refused() {
            self.took.push(Took::refused(&file, reason));
            return Ok(String::new());
        }
        let mut text = String::new();
        while let Some(line) = lines.next()? {
            text.push_str(line.text);
            text.push('\n');
            if text.len() as u64 > TEXT {
                let reason = format!("it is longer than {TEXT} bytes, so it is not lkp's");
                return Err(ArchiveError::foreign(&file, Some(line.number), reason));
            }
        }
        if !text.is_empty() {
            self.texts.push((name.into(), of_benchmark, text.clone()));
        }
        Ok(text)
    }

    fn took(&mut self, path: &Path, name: &str, became: &'static str, read: u64, missing: Option<&str>) {
        let Some(file) = member(path, name) else { return };
        if self.took.iter().any(|took| took.file == file) {
            return;
        }
        let mut took = Took::of(&file, became);
        (0..read).for_each(|_| took.count(0, Read::Used));
        missing.into_iter().for_each(|note| took.note(note));
        self.took.push(took);
    }
}

/// The events of a folder. Each run of a result root is a boot, as lkp boots for each.
pub(crate) fn open(path: &Path, options: &Options) -> Result<Box<dyn Source>, ArchiveError> {
    let mut whole: Option<Story> = None;
    let mut feeds = Vec::new();
    for (boot, folder) in (0..).zip(runs(path)) {
        let results = whole.as_mut().map(|story| std::mem::take(&mut story.results)).unwrap_or_default();
        let (mut story, of_run) = result(&folder, boot, results, options)?;
        feeds.extend(of_run);
        if let Some(first) = &mut whole {
            first.results = std::mem::take(&mut story.results);
            first.took.append(&mut story.took);
            first.notes.append(&mut story.notes);
        } else {
            whole = Some(story);
        }
    }
    let mut story = whole.unwrap_or_default();
    story.took.extend(lost(path));
    if feeds.iter().all(Feed::is_over) && story.results.is_empty() {
        return Err(nothing(path, &story, &feeds));
    }
    story.notes.dedup();
    Ok(Box::new(Session::new(Kind::Lkp, path, options, story, feeds)))
}

/// One run's result.
fn result(
    path: &Path,
    boot: u32,
    results: Results,
    options: &Options,
) -> Result<(Story, Vec<Feed>), ArchiveError> {
    let mut papers = Papers::default();
    let study_text = papers.text(path, "job.yaml", false)?;
    let job = Job::parse(&study_text);
    let result = papers.text(path, "job", false)?;
    let report = fsmark::parse(&papers.text(path, "fsmark", true)?);
    let time = timed::parse(&papers.text(path, "fsmark.time", true)?);
    let told = options.page_size.map(dump::told);
    let stated = time.page_size.map(|bytes| PageSize { bytes, source: "fsmark.time".into() });
    let page = told.or(stated);
    let mut story = Story { results, ..told_by(path, &job, &result) };
    let kernel = story.facts.get("kernel.release").map(ToString::to_string);
    let mut feeds = logs(path, page.as_ref(), kernel.as_deref())?;
    if !feeds.is_empty() {
        missing(path, &mut story);
    }
    let orders = member(path, "orders");
    // Nothing depends on it where there is no log of slabs or pages.
    let asked = page.is_some() || !feeds.is_empty() || orders.is_some();
    let page = asked.then(|| page_size::settle(page, &feeds.iter().collect::<Vec<_>>(), &mut story));
    let (values, read) = (report.values.len() as u64, time.values.len() as u64);
    papers.took(path, "job.yaml", "facts", job.0.len() as u64, None);
    papers.took(path, "fsmark", "samples", values, (values == 0).then_some("it has no line of results"));
    papers.took(path, "fsmark.time", "samples", read, (read == 0).then_some("it has no known line"));
    let span = span(&report, &feeds);
    benchmark(report, time, span, boot, &mut story.results);
    (story.texts, story.took, story.study_text) = (papers.texts, papers.took, study_text);
    lkp_stats::beside(path, boot, &mut story);
    machine(&mut story, &job, &feeds, span);
    let tree = sysfs::beside(path);
    if let Some((root, page)) = tree.as_ref().zip(page) {
        let series = sysfs::series(root, &feeds, page)?;
        feeds.extend(series);
    }
    if let Some((file, page)) = orders.zip(page) {
        feeds.insert(0, orders::open(&file, page)?);
    }
    story.notes.extend(unread(path, |name| {
        let plain = name.strip_suffix(".gz").unwrap_or(name);
        let of_tree = tree.as_ref().and_then(|tree| tree.strip_prefix(path).ok()?.iter().next());
        MEMBERS.contains(&plain) || of_tree.is_some_and(|first| first == name)
    }));
    Ok((story, feeds))
}

/// Why there is nothing in it.
fn nothing(path: &Path, story: &Story, feeds: &[Feed]) -> ArchiveError {
    let took: Vec<Took> = feeds.iter().map(Feed::took).chain(story.took.iter().cloned()).collect();
    let empty: Vec<String> = feeds.iter().map(|feed| feed.took().name()).collect();
    first_refused(&took).unwrap_or_else(|| {
        let reason = match empty.is_empty() {
            true => "there is no slabinfo, slabinfo_tool, meminfo, orders or fsmark in it".into(),
            false => format!("its logs are empty: {}", empty.join(", ")),
        };
        ArchiveError::foreign(path, None, reason)
    })
}

/// The logs that are there.
fn logs(path: &Path, page: Option<&PageSize>, kernel: Option<&str>) -> Result<Vec<Feed>, ArchiveError> {
    let mut logs: Vec<Box<dyn Ticks>> = Vec::new();
    if let Some(file) = member(path, "slabinfo") {
        logs.push(Box::new(Log::among(&file, Slabinfo::new(page.cloned(), kernel))));
    }
    if let Some(file) = member(path, "slabinfo_tool") {
        logs.push(Box::new(Log::among(&file, SlabinfoTool)));
    }
    if let Some(file) = member(path, "meminfo") {
        logs.push(Box::new(Log::among(&file, Meminfo::default())));
    }
    logs.into_iter().map(Feed::open).collect()
}

/// What the lack of a file means, where somebody might look for it.
fn missing(path: &Path, story: &mut Story) {
    let lacks = |name| member(path, name).is_none();
    if lacks("orders") && !lacks("slabinfo") {
        let message =
            "there is no file `orders`: orders are those of slabinfo's column pagesperslab (2 to the order)";
        let advice = "nothing is lost, unless an analysis by the notebook's own method is wanted";
        story.notes.push((message.into(), advice.into()));
    }
    if lacks("slabinfo") {
        let advice =
            "the other logs are imported; copy the monitor's log beside them for bytes and occupancy";
        story.notes.push(("there is no log of /proc/slabinfo in this folder".into(), advice.into()));
    }
}

/// When the benchmark ran.
fn span(report: &fsmark::Report, feeds: &[Feed]) -> Option<Span> {
    feeds.iter().filter_map(Feed::first_time).min().and_then(|near| report.span(near))
}

/// What fs_mark and GNU time say of one run.
fn benchmark(
    report: fsmark::Report,
    time: timed::Timed,
    span: Option<Span>,
    boot: u32,
    results: &mut Results,
) {
    let values: Vec<_> = report.values.into_iter().chain(time.values).collect();
    if !values.is_empty() {
        let case = results.case("fs_mark", IndexMap::new());
        results.parameters(case, report.parameters);
        let execution = results.execution(case, boot, span);
        for (metric, value) in values {
            let metric = results.metric(case, metric);
            results.sample(execution, metric, value, None);
        }
    }
}

/// Title, target and facts, from the job and the result path.
fn told_by(path: &Path, job: &Job, result: &str) -> Story {
    let absolute = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let known = ResultPath::parse(result)
        .or_else(|| ResultPath::parse(job.get("result_root")?))
        .or_else(|| ResultPath::parse(&absolute.to_string_lossy()));
    let testcase = || job.get("testcase").or(job.get("suite")).unwrap_or("result").to_owned();
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let title = match &known {
        Some(known) => format!("lkp {} {}", known.testcase, known.parameters),
        None => format!("lkp {} {name}", testcase()),
    };
    let machine = known.as_ref().map(|known| known.machine.clone());
    let machine = machine.or_else(|| job.get("testbox").map(String::from));
    let which = known.as_ref().map_or(String::new(), |known| format!(" (run {})", known.run));
    let mut story = Story {
        title,
        description: format!("Imported from {}: the result of lkp-tests{which}.", path.display()),
        reference: job.get("job_origin").map(String::from),
        target: machine.unwrap_or_else(|| "imported".into()),
        ..Story::default()
    };
    for (key, value) in &job.0 {
        story.facts.add(&format!("job.{key}"), value.as_str(), "job.yaml");
    }
    if let Some(known) = known {
        story.facts.add("kernel.release", known.commit.as_str(), "result path of the job");
        story.facts.add("job.run", known.run.as_str(), "result path of the job");
    } else if let Some(commit) = job.get("commit") {
        story.facts.add("kernel.release", commit, "job.yaml: commit");
    }
    story
}

/// What the machine was.
fn machine(story: &mut Story, job: &Job, feeds: &[Feed], span: Option<Span>) {
    if let Some(cpus) = job.get("nr_cpu").and_then(|cpus| cpus.parse::<i64>().ok()) {
        story.facts.add("cpu.online", cpus, "job.yaml: nr_cpu");
    }
    if let Some(arch) = job.get("arch") {
        story.facts.add("cpu.architecture", arch, "job.yaml: arch");
    }
    let total =
        feeds.iter().filter(|feed| feed.series() == "meminfo").find_map(|feed| feed.first_cell("MemTotal"));
    if let Some(Cell::Int(total)) = total {
        story.facts.add("memory.total", Value::Int(*total), "meminfo: MemTotal");
    }
    let begun = feeds.iter().filter_map(Feed::first_time).min().unwrap_or(Nanos(0));
    if let Some((begin, end)) = span {
        let text = format!("{} to {} from the first dump", begin.since(begun), end.since(begun));
        let source = "fsmark: its local time moved by whole quarters of an hour; files / files/s";
        story.facts.add("import.benchmark", text.as_str(), source);
    }
}
