//! The result folder of one run of lkp-tests, or whatever part of it somebody kept.
//!
//! Each monitor's log is a series; what the benchmark reported are samples; the job says what it was. Of `job.yaml`
//! only scalars of the first two levels are read (the whole text is kept with the run); the result path in `job` names
//! the parts of the experiment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use perflab_formats::kernel::KERNEL_FILES;
use perflab_formats::kernel::slab_counts::{LoggedMachine, MachinePageSize};
use perflab_formats::reading_parser::LineOutcome;
use perflab_formats::tool::slabinfo_tool::SlabinfoToolParser;
use perflab_formats::tool::{fs_mark, gnu_time};
use perflab_model::fact_table;
use perflab_model::{Nanos, Scalar, TableCell};

use crate::benchmark_results::{BenchmarkResults, TimeRange};
use crate::dump_log::{DumpLog, ReadingSource};
use crate::error::ImportError;
use crate::import_report::{FileReport, first_unreadable, note_unread_entries};
use crate::imported_run::{ImportedRun, RunMetadata};
use crate::importer::{ImportOptions, ImportSource, Importer, Recognition};
use crate::importers::kernel_dump::{kernel_log_names, open_named_log};
use crate::importers::lkp_stats;
use crate::importers::{copied_tree, kernel_dump};
use crate::input_folder::InputFolder;
use crate::input_lines::{InputLines, first_existing_file, name_link_target};
use crate::log_stream::LogStream;
use crate::machine_page_size::settle_page_size;

/// The result folder of one lkp-tests run, or any part of it.
pub(crate) const IMPORTER: Importer = Importer {
    name: "lkp",
    about: "result folder of lkp-tests, or what was kept of it",
    knows_boots: true,
    recognises: Recognition::Folder(is_lkp_result),
    open: open_lkp_result,
};

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
fn is_lkp_result(folder: &InputFolder) -> bool {
    let mut entries = folder.list_entries(folder.path()).map(|entry| entry.path());
    is_lkp_run(folder.path()) || entries.any(|path| run_number(&path).is_some() && is_lkp_run(&path))
}

/// The results of a folder: itself, or those that are numbered 0, 1, 2 in it.
fn lkp_runs(path: &Path) -> Vec<PathBuf> {
    match is_lkp_run(path) {
        true => vec![path.into()],
        false => numbered_folders(path).into_iter().filter(|run| is_lkp_run(run)).collect(),
    }
}

/// The numbered runs of a result root of which nothing can be read.
fn unreadable_lkp_runs(path: &Path) -> Vec<FileReport> {
    let none = |run: PathBuf| {
        let reason = std::fs::read_dir(&run).map_err(|error| name_link_target(&run, error)).err();
        let reason =
            reason.map_or_else(|| "no file of a run of lkp's is in it".into(), |error| error.to_string());
        FileReport::unreadable(&run, reason)
    };
    let runs = if is_lkp_run(path) { Vec::new() } else { numbered_folders(path) };
    runs.into_iter().filter(|run| !is_lkp_run(run)).map(none).collect()
}

/// The file of that name, packed or not.
fn find_packed_member(path: &Path, name: &str) -> Option<PathBuf> {
    first_existing_file(&[path.join(name), path.join(format!("{name}.gz"))]).cloned()
}

/// Whether there is a file of lkp's in a folder.
fn is_lkp_run(path: &Path) -> bool {
    MEMBERS.iter().filter_map(|name| find_packed_member(path, name)).any(|file| file.is_file())
}

/// The numbered runs in a folder, whether they can be read or not.
fn numbered_folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<(u32, PathBuf)> =
        entries.filter_map(|path| Some((run_number(&path)?, path))).collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// The number of a run in a result root, where the path has the name of one.
fn run_number(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.parse().ok()
}

/// The small files of a folder.
#[derive(Default)]
struct AuxiliaryFiles {
    texts: Vec<(String, bool, String)>,
    report: Vec<FileReport>,
}

impl AuxiliaryFiles {
    /// Reads a text and keeps it; empty where it is not there.
    fn keep_text(&mut self, path: &Path, name: &str, of_benchmark: bool) -> Result<String, ImportError> {
        let Some(file) = find_packed_member(path, name) else { return Ok(String::new()) };
        let mut lines = InputLines::open_optional(&file);
        if let Some(reason) = lines.unreadable_reason() {
            self.report.push(FileReport::unreadable(&file, reason));
            return Ok(String::new());
        }
        let mut text = String::new();
        while let Some(line) = lines.next_line()? {
            text.push_str(line.text);
            text.push('\n');
            if text.len() as u64 > TEXT {
                let reason = format!("it is longer than {TEXT} bytes, so it is not lkp's");
                return Err(ImportError::not_importable(&file, Some(line.number), reason));
            }
        }
        if !text.is_empty() {
            self.texts.push((name.into(), of_benchmark, text.clone()));
        }
        Ok(text)
    }

    fn add_report(
        &mut self,
        path: &Path,
        name: &str,
        became: &'static str,
        read: u64,
        missing: Option<&str>,
    ) {
        let Some(file) = find_packed_member(path, name) else { return };
        if self.report.iter().any(|report| report.file == file) {
            return;
        }
        let mut report = FileReport::new(&file, became);
        (0..read).for_each(|_| report.count_row(0, LineOutcome::Used));
        missing.into_iter().for_each(|note| report.add_note(note));
        self.report.push(report);
    }
}

/// The events of a folder. Each run of a result root is a boot, as lkp boots for each.
fn open_lkp_result(path: &Path, options: &ImportOptions) -> Result<Box<dyn ImportSource>, ImportError> {
    let mut whole: Option<RunMetadata> = None;
    let mut streams = Vec::new();
    for (boot, folder) in (0..).zip(lkp_runs(path)) {
        let results =
            whole.as_mut().map(|metadata| std::mem::take(&mut metadata.results)).unwrap_or_default();
        let (mut metadata, of_run) = read_lkp_run(&folder, boot, results, options)?;
        streams.extend(of_run);
        if let Some(first) = &mut whole {
            first.results = std::mem::take(&mut metadata.results);
            first.report.append(&mut metadata.report);
            first.notes.append(&mut metadata.notes);
        } else {
            whole = Some(metadata);
        }
    }
    let mut metadata = whole.unwrap_or_default();
    metadata.report.extend(unreadable_lkp_runs(path));
    if streams.iter().all(LogStream::is_finished) && metadata.results.is_empty() {
        return Err(empty_lkp_error(path, &metadata, &streams));
    }
    metadata.notes.dedup();
    Ok(Box::new(ImportedRun::new(IMPORTER.name, path, options, metadata, streams)))
}

/// One run's result.
fn read_lkp_run(
    path: &Path,
    boot: u32,
    results: BenchmarkResults,
    options: &ImportOptions,
) -> Result<(RunMetadata, Vec<LogStream>), ImportError> {
    let mut papers = AuxiliaryFiles::default();
    let study_text = papers.keep_text(path, "job.yaml", false)?;
    let job = LkpJob::parse(&study_text);
    let result = papers.keep_text(path, "job", false)?;
    let report = fs_mark::parse_fs_mark_report(&papers.keep_text(path, "fsmark", true)?);
    let time = gnu_time::parse_gnu_time(&papers.keep_text(path, "fsmark.time", true)?);
    let reported = options.page_size.map(kernel_dump::stated_page_size);
    let stated = time.page_size.map(|bytes| MachinePageSize { bytes, source: "fsmark.time".into() });
    let page = reported.or(stated);
    let mut metadata = RunMetadata { results, ..job_metadata(path, &job, &result) };
    let kernel = metadata.facts.value(&fact_table::KERNEL_RELEASE).map(ToString::to_string);
    let mut streams = open_lkp_logs(path, page.as_ref(), kernel.as_deref())?;
    if !streams.is_empty() {
        note_missing_files(path, &mut metadata);
    }
    let orders = find_packed_member(path, "orders");
    // Nothing depends on it where there is no log of slabs or pages.
    let asked = page.is_some() || !streams.is_empty() || orders.is_some();
    let page = asked.then(|| settle_page_size(page, &streams.iter().collect::<Vec<_>>(), &mut metadata));
    let (values, read) = (report.values.len() as u64, time.values.len() as u64);
    papers.add_report(path, "job.yaml", "facts", job.0.len() as u64, None);
    papers.add_report(
        path,
        "fsmark",
        "samples",
        values,
        (values == 0).then_some("it has no line of results"),
    );
    papers.add_report(path, "fsmark.time", "samples", read, (read == 0).then_some("it has no known line"));
    let span = benchmark_span(&report, &streams);
    add_fs_mark_results(report, time, span, boot, &mut metadata.results);
    (metadata.texts, metadata.report, metadata.study_text) = (papers.texts, papers.report, study_text);
    lkp_stats::read_lkp_stats_beside(path, boot, &mut metadata);
    machine_facts(&mut metadata, &job, &streams, span);
    let tree = copied_tree::slab_directory_beside(path);
    if let Some((root, page)) = tree.as_ref().zip(page) {
        let series = copied_tree::slab_tree_series(root, &streams, page)?;
        streams.extend(series);
    }
    if let Some((file, page)) = orders.zip(page) {
        streams.insert(0, kernel_dump::open_orders(&file, page)?);
    }
    metadata.notes.extend(note_unread_entries(path, |name| {
        let plain = name.strip_suffix(".gz").unwrap_or(name);
        let of_tree = tree.as_ref().and_then(|tree| tree.strip_prefix(path).ok()?.iter().next());
        let of_kernel = || KERNEL_FILES.iter().flat_map(kernel_log_names).any(|known| known == plain);
        MEMBERS.contains(&plain) || of_kernel() || of_tree.is_some_and(|first| first == name)
    }));
    Ok((metadata, streams))
}

/// Why there is nothing in it.
fn empty_lkp_error(path: &Path, metadata: &RunMetadata, streams: &[LogStream]) -> ImportError {
    let report: Vec<FileReport> =
        streams.iter().map(LogStream::file_report).chain(metadata.report.iter().cloned()).collect();
    let empty: Vec<String> = streams.iter().map(|stream| stream.file_report().file_name()).collect();
    first_unreadable(&report).unwrap_or_else(|| {
        let reason = match empty.is_empty() {
            true => "there is no slabinfo, slabinfo_tool, meminfo, orders or fsmark in it".into(),
            false => format!("its logs are empty: {}", empty.join(", ")),
        };
        ImportError::not_importable(path, None, reason)
    })
}

/// The logs that are there.
fn open_lkp_logs(
    path: &Path,
    page: Option<&MachinePageSize>,
    kernel: Option<&str>,
) -> Result<Vec<LogStream>, ImportError> {
    let mut logs: Vec<Box<dyn ReadingSource>> = Vec::new();
    let machine = LoggedMachine { page_size: page.cloned(), kernel: kernel.map(str::to_owned) };
    for file in KERNEL_FILES {
        let found = kernel_log_names(file).iter().find_map(|name| find_packed_member(path, name));
        if let Some((parser, found)) =
            found.and_then(|found| Some((open_named_log(file, &found, &machine)?, found)))
        {
            logs.push(Box::new(DumpLog::open_optional(&found, parser)));
        }
    }
    if let Some(file) = find_packed_member(path, "slabinfo_tool") {
        logs.push(Box::new(DumpLog::open_optional(&file, Box::new(SlabinfoToolParser))));
    }
    logs.into_iter().map(LogStream::from_source).collect()
}

/// What the lack of a file means, where somebody might look for it.
fn note_missing_files(path: &Path, metadata: &mut RunMetadata) {
    let lacks = |name| find_packed_member(path, name).is_none();
    if lacks("orders") && !lacks("slabinfo") {
        let message =
            "there is no file `orders`: orders are those of slabinfo's column pagesperslab (2 to the order)";
        let advice = "nothing is lost unless you analyse by the notebook's own method";
        metadata.notes.push((message.into(), advice.into()));
    }
    if lacks("slabinfo") {
        let advice =
            "the other logs are imported; copy the monitor's log beside them for bytes and occupancy";
        metadata.notes.push(("there is no log of /proc/slabinfo in this folder".into(), advice.into()));
    }
}

/// When the benchmark ran.
fn benchmark_span(report: &fs_mark::FsMarkReport, streams: &[LogStream]) -> Option<TimeRange> {
    streams.iter().filter_map(LogStream::first_time).min().and_then(|near| report.run_span(near))
}

/// What fs_mark and GNU time say of one run.
fn add_fs_mark_results(
    report: fs_mark::FsMarkReport,
    time: gnu_time::GnuTimeReport,
    span: Option<TimeRange>,
    boot: u32,
    results: &mut BenchmarkResults,
) {
    let values: Vec<_> = report.values.into_iter().chain(time.values).collect();
    if !values.is_empty() {
        let case = results.find_or_add_case("fs_mark", IndexMap::new());
        results.add_parameters(case, report.parameters);
        let execution = results.next_execution(case, boot, span);
        for (metric, value) in values {
            let metric = results.find_or_add_metric(case, metric);
            results.add_sample(execution, metric, value, None);
        }
    }
}

/// Title, target and facts, from the job and the result path.
fn job_metadata(path: &Path, job: &LkpJob, result: &str) -> RunMetadata {
    let absolute = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let known = LkpResultPath::parse(result)
        .or_else(|| LkpResultPath::parse(job.get("result_root")?))
        .or_else(|| LkpResultPath::parse(&absolute.to_string_lossy()));
    let testcase = || job.get("testcase").or(job.get("suite")).unwrap_or("result").to_owned();
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let title = match &known {
        Some(known) => format!("lkp {} {}", known.testcase, known.parameters),
        None => format!("lkp {} {name}", testcase()),
    };
    let machine = known.as_ref().map(|known| known.machine.clone());
    let machine = machine.or_else(|| job.get("testbox").map(String::from));
    let which = known.as_ref().map_or(String::new(), |known| format!(" (run {})", known.run));
    let mut metadata = RunMetadata {
        title,
        description: format!("Imported from {}: the result of lkp-tests{which}.", path.display()),
        reference: job.get("job_origin").map(String::from),
        target: machine.unwrap_or_else(|| "imported".into()),
        ..RunMetadata::default()
    };
    for (key, value) in &job.0 {
        metadata.facts.add(fact_table::JOB.key(key), value.as_str(), "job.yaml");
    }
    if let Some(known) = known {
        metadata.facts.add(fact_table::KERNEL_RELEASE, known.commit.as_str(), "result path of the job");
        metadata.facts.add(fact_table::JOB_RUN, known.run.as_str(), "result path of the job");
    } else if let Some(commit) = job.get("commit") {
        metadata.facts.add(fact_table::KERNEL_RELEASE, commit, "job.yaml: commit");
    }
    metadata
}

/// What the machine was.
fn machine_facts(metadata: &mut RunMetadata, job: &LkpJob, streams: &[LogStream], span: Option<TimeRange>) {
    if let Some(cpus) = job.get("nr_cpu").and_then(|cpus| cpus.parse::<i64>().ok()) {
        metadata.facts.add(fact_table::CPU_ONLINE, cpus, "job.yaml: nr_cpu");
    }
    if let Some(arch) = job.get("arch") {
        metadata.facts.add(fact_table::CPU_ARCHITECTURE, arch, "job.yaml: arch");
    }
    let total = streams
        .iter()
        .filter(|stream| stream.series_name() == "meminfo")
        .find_map(|stream| stream.first_cell("MemTotal"));
    if let Some(TableCell::Int(total)) = total {
        metadata.facts.add(fact_table::MEMORY_TOTAL, Scalar::Int(*total), "meminfo: MemTotal");
    }
    let begun = streams.iter().filter_map(LogStream::first_time).min().unwrap_or(Nanos(0));
    if let Some((begin, end)) = span {
        let text = format!("{} to {} from the first dump", begin.since(begun), end.since(begun));
        let source = "fsmark: its local time moved by whole quarters of an hour; files / files/s";
        metadata.facts.add(fact_table::IMPORT_BENCHMARK, text.as_str(), source);
    }
}

/// The longest value that is kept.
const LONGEST: usize = 512;

/// Scalars by dotted key, `fsmark.filesize`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct LkpJob(pub(crate) BTreeMap<String, String>);

impl LkpJob {
    pub(crate) fn parse(text: &str) -> Self {
        let (mut job, mut table) = (BTreeMap::new(), "");
        for line in text.lines() {
            let Some((key, value)) = parse_job_scalar(line) else { continue };
            let nested = line.starts_with(' ');
            table = if nested { table } else { key };
            if !value.is_empty() && value.len() <= LONGEST && (!nested || !table.is_empty()) {
                job.insert(if nested { format!("{table}.{key}") } else { key.into() }, value.into());
            }
        }
        LkpJob(job)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

/// `key: value`, with its quotes taken off.
fn parse_job_scalar(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let value = value.trim().trim_matches(['"', '\'']);
    (!key.is_empty() && key.chars().all(plain)).then_some((key, value))
}

/// The parts of `…/result/TESTCASE/PARAMETERS/MACHINE/ROOTFS/KCONFIG/COMPILER/COMMIT/RUN`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LkpResultPath {
    pub(crate) testcase: String,
    pub(crate) parameters: String,
    pub(crate) machine: String,
    commit: String,
    pub(crate) run: String,
}

impl LkpResultPath {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (_, parts) = text.trim().split_once("/result/")?;
        let parts: Vec<&str> = parts.trim_end_matches('/').split('/').collect();
        let [testcase, parameters, machine, _, _, _, commit, run] = parts[..] else { return None };
        let [testcase, parameters, machine, commit, run] =
            [testcase, parameters, machine, commit, run].map(String::from);
        Some(LkpResultPath { testcase, parameters, machine, commit, run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_has_what_is_short_and_said_by_tables_one_deep() {
        let long = "x".repeat(LONGEST + 1);
        let text = format!(
            "  lost: 1\ncategory: benchmark\nempty:\nlong: {long}\nfsmark:\n  threads: 1x\n  long: {long}\n"
        );
        let LkpJob(job) = LkpJob::parse(&text);
        let found: Vec<(&str, &str)> =
            job.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(found, [("category", "benchmark"), ("fsmark.threads", "1x")]);
    }
}
