//! Logs, results and metadata as the events of one run, with its manifest.
//!
//! Only what is honest is claimed: a case and an iteration where a benchmark's results are there, and no study that
//! perflab could run again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use indexmap::IndexMap;
use perflab_files::{open_finite_file, sha256_hex};
use perflab_model::fact_table;
use perflab_model::io_trace::IO_TRACER;
use perflab_model::run::ClockAnchor;
use perflab_model::study::{HooksSpec, MonitorTiming, RunRules, SlotOrder, WorkloadSpec};
use perflab_model::{
    Direction, FORMAT_VERSION, FactDocument, Facts, Manifest, Metric, Nanos, Overhead, RunEvent,
    RunEventKind, RunStatus, Scalar, Study, Unit,
};

use crate::benchmark_results::BenchmarkResults;
use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::importer::{ImportOptions, ImportSource};
use crate::log_stream::{LogStream, unify_columns};

/// Files of an import whose rows are reported one by one.
const MANY: usize = 32;

/// The events of an import.
pub(crate) struct ImportedRun {
    metadata: RunMetadata,
    root: PathBuf,
    anchor: Nanos,
    streams: Vec<LogStream>,
    queue: VecDeque<RunEvent>,
    results: Option<Box<dyn Iterator<Item = RunEvent>>>,
    /// The last tick of each series.
    lasts: BTreeMap<&'static str, Nanos>,
    last: Nanos,
    over: bool,
}

impl ImportedRun {
    pub(crate) fn new(
        importer: &str,
        path: &Path,
        options: &ImportOptions,
        mut metadata: RunMetadata,
        mut streams: Vec<LogStream>,
    ) -> Self {
        unify_columns(&mut streams);
        let times = streams
            .iter()
            .filter_map(LogStream::first_time)
            .chain(metadata.results.first_time())
            .chain(metadata.begun);
        let anchor = times.min().unwrap_or_else(|| file_time(path, &mut metadata, !streams.is_empty()));
        metadata.facts.add(fact_table::IMPORT_KIND, importer, "perflab");
        metadata.facts.add(fact_table::IMPORT_PATH, path.to_string_lossy().as_ref(), "perflab");
        let manifest = import_manifest(path, options, &metadata, &streams, anchor);
        let mut session = ImportedRun {
            metadata,
            root: path.into(),
            anchor,
            streams,
            queue: VecDeque::new(),
            results: None,
            lasts: BTreeMap::new(),
            last: Nanos(0),
            over: false,
        };
        session.queue_opening(manifest);
        session
    }

    fn queue_event(&mut self, what: RunEventKind) {
        self.queue.push_back(RunEvent::new(self.last, what));
    }

    fn queue_opening(&mut self, manifest: Manifest) {
        self.queue_event(RunEventKind::Began(Box::new(manifest)));
        for (name, of_benchmark, text) in std::mem::take(&mut self.metadata.texts) {
            self.queue_event(RunEventKind::Output { slot: of_benchmark.then_some(0), name, text });
        }
        for document in std::mem::take(&mut self.metadata.documents) {
            self.queue_event(RunEventKind::Document(document));
        }
        if let Some(file) = self.metadata.recording.take() {
            self.queue_event(RunEventKind::Traced { slot: 0, tracer: IO_TRACER.into(), file });
        }
        let schemas: Vec<_> = self
            .streams
            .iter()
            .filter(|stream| !stream.is_finished())
            .map(LogStream::series_schema)
            .collect();
        schemas.into_iter().for_each(|schema| self.queue_event(RunEventKind::SeriesOpened(schema)));
    }

    /// The next tick of all logs, in order of time.
    fn next_reading_event(&mut self) -> Result<Option<RunEvent>, ImportError> {
        let anchor = self.anchor;
        let times = self.streams.iter_mut().filter_map(|stream| Some((stream.next_time(anchor)?, stream)));
        let Some((_, stream)) = times.min_by_key(|(at, _)| *at) else { return Ok(None) };
        let (series, monitor) = (stream.series_name(), stream.series_name().to_owned());
        let hole = stream.gap_before_next(anchor, self.lasts.get(series).copied());
        let tick = stream.next_reading(anchor)?;
        hole.into_iter()
            .for_each(|gap| self.queue.push_back(RunEvent::new(self.last, RunEventKind::Gap(gap))));
        Ok(tick.map(|(at, rows)| {
            self.lasts.insert(series, at);
            self.last = self.last.max(at);
            RunEvent::new(at, RunEventKind::Rows { monitor, rows, took: Nanos(0) })
        }))
    }

    fn queue_closing(&mut self) {
        self.over = true;
        let report = self.file_reports();
        let mut counts = count_facts(&report);
        if let Some(hash) = hash_imported_files(&report) {
            counts.add(fact_table::IMPORT_SHA256, hash.as_str(), "the files");
        }
        report_warnings(&report, &self.root).into_iter().for_each(|warning| self.queue_event(warning));
        for (message, advice) in std::mem::take(&mut self.metadata.notes) {
            self.queue_event(RunEventKind::Warning { message, advice });
        }
        self.queue_event(RunEventKind::Facts(counts));
        let overhead = Overhead { wall: self.last, ..Overhead::default() };
        self.queue_event(RunEventKind::Ended { status: RunStatus::Finished, overhead });
    }

    /// What the benchmarks reported, once the logs are over.
    fn result_events(&mut self) -> &mut dyn Iterator<Item = RunEvent> {
        let (metadata, last) = (&mut self.metadata, &mut self.last);
        let anchor = self.anchor;
        self.results.get_or_insert_with(|| {
            let results = std::mem::take(&mut metadata.results);
            let ended = results.last_time().map_or(Nanos(0), |time| time.since(anchor));
            *last = (*last).max(ended);
            Box::new(results.into_events(anchor, *last, (Nanos(0), *last)))
        })
    }
}

impl Iterator for ImportedRun {
    type Item = Result<RunEvent, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(event) = self.queue.pop_front() {
            return Some(Ok(event));
        }
        if self.over {
            return None;
        }
        let tick = self.next_reading_event().transpose();
        if matches!(tick, Some(Err(_))) {
            self.over = true;
        }
        tick.or_else(|| {
            let result = self.result_events().next().map(Ok);
            result.or_else(|| {
                self.queue_closing();
                self.queue.pop_front().map(Ok)
            })
        })
    }
}

impl ImportSource for ImportedRun {
    fn file_reports(&self) -> Vec<FileReport> {
        self.streams.iter().map(LogStream::file_report).chain(self.metadata.report.iter().cloned()).collect()
    }
}

/// Without any time in the files, the run is dated by the file's own.
fn file_time(path: &Path, run_metadata: &mut RunMetadata, logs: bool) -> Nanos {
    let changed = std::fs::metadata(path).and_then(|found| found.modified()).ok();
    let since = changed.and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    run_metadata.notes.push((
        "the files give no time: the run is dated by the file's last change".into(),
        match logs {
            true => {
                "put a line `time: EPOCH` before each dump, as in `(date +'time: %s'; cat /proc/slabinfo)`"
            }
            false => "copy such files with their times (cp -p), so that runs keep their order",
        }
        .into(),
    ));
    since.map_or(Nanos(0), Nanos::from)
}

/// How many rows each file gave; of many files, what they gave together.
fn count_facts(report: &[FileReport]) -> Facts {
    let mut counts = Facts::default();
    if report.len() > MANY {
        let used: u64 = report.iter().map(|report| report.rows_used).sum();
        let unusable: u64 = report.iter().map(|report| report.rows_unusable).sum();
        let text = format!("{} files, {used} rows used, {unusable} unusable", report.len());
        counts.add(fact_table::IMPORT_ROWS, text.as_str(), "perflab");
        return counts;
    }
    for report in report {
        let key = fact_table::IMPORT_ROWS_OF_FILE.key(report.file_name());
        // A tree of sysfs becomes two series.
        let both = || format!("{}.{}", report.file_name(), report.became);
        let key =
            if counts.value(&key).is_some() { fact_table::IMPORT_ROWS_OF_FILE.key(both()) } else { key };
        counts.add(key, report.format_counts().as_str(), "perflab");
    }
    counts
}

/// What is wrong with rows, file by file; and what is to be known of files, once for all of which it is.
fn report_warnings(report: &[FileReport], root: &Path) -> Vec<RunEventKind> {
    let mut notes: IndexMap<&str, Vec<String>> = IndexMap::new();
    for report in report {
        for note in &report.notes {
            let (files, file) = (notes.entry(note).or_default(), path_within(report, root));
            if files.last() != Some(&file) {
                files.push(file);
            }
        }
    }
    let note = |(note, files): (&str, Vec<String>)| RunEventKind::Warning {
        message: format!("{}: {note}", format_file_list(&files)),
        advice: "take it into account when reading this run".into(),
    };
    let refused = report.iter().filter_map(|report| refused_file_warning(report, root));
    let unusable = report.iter().filter_map(|report| unusable_rows_warning(report, root));
    refused.chain(unusable).chain(notes.into_iter().map(note)).collect()
}

/// The path of a file within what is imported.
fn path_within(report: &FileReport, root: &Path) -> String {
    let inner = report.file.strip_prefix(root).unwrap_or(&report.file);
    if inner.as_os_str().is_empty() { report.file_name() } else { inner.display().to_string() }
}

/// `a`, `a, b and 3 more`
fn format_file_list(files: &[String]) -> String {
    match files {
        [first, second, _, ..] => format!("{first}, {second} and {} more", files.len() - 2),
        _ => files.join(", "),
    }
}

fn refused_file_warning(report: &FileReport, root: &Path) -> Option<RunEventKind> {
    let reason = report.refused.as_ref()?;
    let message =
        format!("{} cannot be read: {reason}; nothing of it is in this run", path_within(report, root));
    Some(RunEventKind::Warning { message, advice: "import again once it can be, for what it holds".into() })
}

fn unusable_rows_warning(report: &FileReport, root: &Path) -> Option<RunEventKind> {
    let first = report.unusable.first().or(report.flagged.first())?;
    let (file, counts) = (path_within(report, root), report.format_counts());
    let place = if first.line > 0 { format!(" at line {}", first.line) } else { String::new() };
    let message = format!("{file}: {counts}; the first{place}: {}", first.reason);
    let advice = match report.became {
        "slabinfo-tool" => {
            "flagged rows are used as they are; the tool reads a file for each number, one after the other"
        }
        "samples" => "what is unusable or was not counted gives no sample; look at the file there",
        _ => "flagged rows say so in their column `flags`; look at the file where lines are unusable",
    };
    Some(RunEventKind::Warning { message, advice: advice.into() })
}

/// A metric of an imported benchmark.
pub(crate) fn imported_metric(name: &str, unit: &str, direction: Direction, primary: bool) -> Metric {
    Metric { name: name.into(), unit: Unit::new(unit), direction, primary }
}

/// What is known of a run besides its logs.
#[derive(Default)]
pub(crate) struct RunMetadata {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) reference: Option<String>,
    /// The machine's name.
    pub(crate) target: String,
    /// The other tool's own description of what it did.
    pub(crate) study_text: String,
    pub(crate) facts: Facts,
    pub(crate) results: BenchmarkResults,
    /// When it all began, since 1970, where no result says it of itself.
    pub(crate) begun: Option<Nanos>,
    /// Texts that are kept as they are: name, whether the benchmark wrote it, text.
    pub(crate) texts: Vec<(String, bool, String)>,
    /// What the machine said about itself in documents.
    pub(crate) documents: Vec<FactDocument>,
    /// A recording of disk requests, as a file that the run takes.
    pub(crate) recording: Option<PathBuf>,
    /// What was taken of files that are no logs.
    pub(crate) report: Vec<FileReport>,
    /// What a person should know: what, and what to do.
    pub(crate) notes: Vec<(String, String)>,
}

/// The manifest of an import that begins at `anchor`.
pub(crate) fn import_manifest(
    path: &Path,
    options: &ImportOptions,
    metadata: &RunMetadata,
    streams: &[LogStream],
    anchor: Nanos,
) -> Manifest {
    Manifest {
        format: FORMAT_VERSION,
        writer: concat!("perflab ", env!("CARGO_PKG_VERSION")).into(),
        id: options.id.clone(),
        label: options.label.clone(),
        study: import_study(metadata, streams),
        study_text: metadata.study_text.clone(),
        study_file: path.to_string_lossy().into(),
        brief: false,
        plan: metadata.results.to_plan(),
        facts: metadata.facts.clone(),
        boot_id: String::new(),
        target: metadata.target.clone(),
        targets: Vec::new(),
        variants: Vec::new(),
        duet: None,
        continues: None,
        first_part: None,
        anchor: ClockAnchor { monotonic: Nanos(0), realtime: anchor },
        status: RunStatus::Running,
        overhead: Overhead::default(),
    }
}

/// The study that it was: what ran, and what was recorded. Nothing of it can be run again by perflab.
fn import_study(metadata: &RunMetadata, streams: &[LogStream]) -> Study {
    let used = |(workload, parameters): (&str, &IndexMap<String, Scalar>)| {
        (workload.to_owned(), WorkloadSpec { parameters: parameters.clone(), ..WorkloadSpec::default() })
    };
    let monitor = |stream: &LogStream| {
        (stream.series_name().to_owned(), MonitorTiming::Every(stream.series_schema().interval))
    };
    let logs = streams.iter().filter(|stream| !stream.is_finished());
    Study {
        extends: None,
        takes: None,
        answers: Vec::new(),
        brief: IndexMap::new(),
        kernel_log: true,
        counters: None,
        events: Default::default(),
        title: metadata.title.clone(),
        description: Some(metadata.description.clone()),
        reference: metadata.reference.clone(),
        values: IndexMap::new(),
        run: RunRules { iterations: 1, warmup: 0, order: SlotOrder::Sequential, ..RunRules::default() },
        workload: metadata.results.workloads().map(used).collect(),
        beside: IndexMap::new(),
        hooks: HooksSpec::default(),
        settings: Default::default(),
        preset: Default::default(),
        factor: IndexMap::new(),
        monitors: logs.map(monitor).collect(),
        facts: None,
        metric: IndexMap::new(),
        profile: None,
        io: None,
        disk: None,
        target: IndexMap::new(),
    }
}

/// Bytes of files that are read once more for their hash.
const HASHED: u64 = 1 << 30;

/// The hash of all files that something was taken of; none where one cannot be read, or they are long.
fn hash_imported_files(report: &[FileReport]) -> Option<String> {
    hash_files(report.iter().map(|report| report.file.as_path()).filter(|file| file.is_file()).collect())
}

/// The event that tells which file an import was made of; none where it cannot be read, or is long.
pub(crate) fn content_hash_event(file: &Path) -> Option<RunEventKind> {
    let mut facts = Facts::default();
    facts.add(fact_table::IMPORT_SHA256, hash_files(BTreeSet::from([file]))?.as_str(), "the files");
    Some(RunEventKind::Facts(facts))
}

fn hash_files(files: BTreeSet<&Path>) -> Option<String> {
    let sizes = files.iter().filter_map(|file| file.metadata().ok()).map(|found| found.len());
    if files.is_empty() || sizes.fold(0, u64::saturating_add) > HASHED {
        return None;
    }
    let hashes = files.into_iter().map(|file| {
        let mut opened = open_finite_file(file).ok()?;
        sha256_hex(&mut opened).ok()
    });
    let hashes = hashes.collect::<Option<Vec<String>>>()?;
    match &hashes[..] {
        [only] => Some(only.clone()),
        _ => sha256_hex(&mut hashes.join("\n").as_bytes()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_files_two_are_named_and_the_others_counted() {
        let files = ["a", "b", "c", "d"].map(String::from);
        let lists = [1, 2, 3, 4].map(|count| format_file_list(&files[..count]));
        assert_eq!(lists, ["a", "a, b", "a, b and 1 more", "a, b and 2 more"]);
    }
}
