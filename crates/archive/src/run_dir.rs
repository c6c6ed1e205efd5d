//! One run as it is read: from its tables once it is closed, from its journal before.
//!
//! Reading never writes, even to a run whose process died.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use perflab_files::{open_finite_file, sha256_hex};
use perflab_model::io_trace::IoRecording;
use perflab_model::operation::{OperationColumns, OperationTraceSummary, TracedIteration};
use perflab_model::run::RunWarning;
use perflab_model::series::{RowRuns, Series, SeriesGap};
use perflab_model::study::{CountersSpec, EVENTS_MONITOR, Study};
use perflab_model::{
    EdgeReadings, IterationRecord, MachineDocument, Manifest, Outcome, OverwrittenSettingRecord, Profile,
    RunEvent, RunEventKind, RunRecord, RunStatus, TriggerRecord,
};

use crate::checksums::{self, open_verified};
use crate::document_log;
use crate::error::ArchiveError;
use crate::journal::{self, JournalReader, StoredOutput, kind};
use crate::manifest;
use crate::run_layout::{self, JOURNAL, MANIFEST, SAMPLES, list_run_files};
use crate::tables::{edges, io, operations, samples, series, stacks};
use crate::unpack_folder::UnpackFolder;

/// One run on disk.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
    id: String,
    short: String,
    /// Keeps the directory that a portable file was unpacked to.
    _unpacked: Option<Arc<dyn UnpackFolder>>,
}

/// The monitors of a run.
#[derive(Debug, Default)]
pub struct ListedMonitors {
    /// those whose tables can be read, sorted
    pub sound: Vec<String>,
    /// names of tables that are damaged, each with what is wrong
    pub damaged: Vec<(String, ArchiveError)>,
}

impl RunDir {
    /// Opens the directory of a run, in an archive or elsewhere.
    ///
    /// # Errors
    /// A `run.json` that is missing, damaged, or newer than this program.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let id = manifest::read_manifest_head(path)?.id;
        let short = id.chars().take(crate::run_id::SHORTEST).collect();
        Ok(RunDir { path: path.into(), id, short, _unpacked: None })
    }

    /// A run of an archive, by its names there; nothing is read yet.
    pub(crate) fn from_archive(path: PathBuf, id: String, short: String) -> Self {
        RunDir { path, id, short, _unpacked: None }
    }

    /// A run that lives as long as `folder`.
    pub(crate) fn from_unpacked(path: &Path, folder: Box<dyn UnpackFolder>) -> Result<Self, ArchiveError> {
        let run = RunDir::open(path)?;
        Ok(RunDir { _unpacked: Some(folder.into()), ..run })
    }

    /// The run's id, a ULID.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The shortest prefix that names the run in its archive.
    pub fn short_id(&self) -> &str {
        &self.short
    }

    /// The run's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A text that is another one once the run was changed: its label, its notes, or by its recorder. `None` where it is not there.
    pub fn change_stamp(&self) -> Option<String> {
        let stamp = |name: &str| {
            let about = std::fs::metadata(self.path.join(name)).ok()?;
            Some(format!("{}.{}.{}.{}", about.ino(), about.size(), about.ctime(), about.ctime_nsec()))
        };
        let notes = stamp(run_layout::NOTES).unwrap_or_default();
        Some(format!("{} {} {notes}", stamp(MANIFEST)?, stamp(JOURNAL)?))
    }

    /// The names of the files that belong to the run, below its directory, sorted; folders stand before a `/`.
    ///
    /// # Errors
    /// [`ArchiveError::Live`] while it is recorded; a directory that cannot be read; a name that is no text.
    pub fn list_files(&self) -> Result<Vec<String>, ArchiveError> {
        if self.status()? == RunStatus::Running {
            return Err(ArchiveError::Live { id: self.id.clone() });
        }
        let files = list_run_files(&self.path).map_err(ArchiveError::io("read", &self.path))?;
        let name = |file: PathBuf| match file.strip_prefix(&self.path).ok().and_then(Path::to_str) {
            Some(name) => Ok(name.to_owned()),
            None => Err(ArchiveError::damaged(&file)("its name is no text")),
        };
        files.into_iter().map(name).collect()
    }

    /// Holds every file that was written when the run ended against its hash; a run without hashes, which an old perflab or a kill
    /// left, passes.
    ///
    /// # Errors
    /// [`ArchiveError::Altered`]; files that cannot be read.
    pub fn verify_files(&self) -> Result<(), ArchiveError> {
        checksums::verify_all(&self.path)
    }

    /// SHA-256, in hex, of what may change after the run's end: its `run.json`, followed by its notes.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn hash_head(&self) -> Result<String, ArchiveError> {
        let mut head = Vec::new();
        for name in [MANIFEST, run_layout::NOTES] {
            let path = self.path.join(name);
            match open_finite_file(&path).and_then(|mut file| std::io::copy(&mut file, &mut head)) {
                Err(error) if name == run_layout::NOTES && error.kind() == std::io::ErrorKind::NotFound => {}
                read => drop(read.map_err(ArchiveError::io("read", &path))?),
            }
        }
        sha256_hex(&mut head.as_slice()).map_err(ArchiveError::io("read", &self.path))
    }

    /// How the run stands: `Running` only while a living process holds its lock.
    ///
    /// # Errors
    /// As [`RunDir::manifest`].
    pub fn status(&self) -> Result<RunStatus, ArchiveError> {
        Ok(status_now(&self.path, manifest::read_manifest_head(&self.path)?.status))
    }

    /// The run's manifest, with the status as [`RunDir::status`] says; facts and overhead of a run that
    /// was not closed are those of its beginning.
    ///
    /// # Errors
    /// A `run.json` that is missing, damaged, or newer than this program.
    pub fn manifest(&self) -> Result<Manifest, ArchiveError> {
        let stored = manifest::read_manifest(&self.path)?;
        Ok(Manifest { status: status_now(&self.path, stored.status), ..stored })
    }

    /// The run in memory: all samples and iterations, gaps and warnings, without the series and the documents.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn read_record(&self) -> Result<RunRecord, ArchiveError> {
        self.read_record_with(samples::read_iterations)
    }

    /// The same with those iterations only that did not end well: what is asked of many runs with many of them.
    ///
    /// # Errors
    /// As [`RunDir::read_record`].
    pub fn read_failed_record(&self) -> Result<RunRecord, ArchiveError> {
        let mut record = self.read_record_with(samples::read_failed_iterations)?;
        record.iterations.retain(|iteration| iteration.outcome != Outcome::Ok);
        Ok(record)
    }

    fn read_record_with(
        &self,
        iterations: fn(&Path, &Manifest) -> Result<Vec<IterationRecord>, ArchiveError>,
    ) -> Result<RunRecord, ArchiveError> {
        let events = self.read_events()?;
        let stored = manifest::read_manifest(&self.path)?;
        let closed = stored.status != RunStatus::Running;
        let manifest = Manifest { status: status_now(&self.path, stored.status), ..stored };
        let (samples, iterations) = match closed {
            true => (samples::read_samples(&self.path, &manifest)?, iterations(&self.path, &manifest)?),
            false => (Vec::new(), Vec::new()),
        };
        let mut record = RunRecord { samples, iterations, ..RunRecord::new(manifest) };
        events.select_kinds(if closed { NOTES } else { RECORD }).try_for_each(|event| {
            apply_event(&mut record, event?);
            Ok(())
        })?;
        Ok(record)
    }

    /// What the run's machines said about themselves in documents, in order; empty for a run that has none.
    ///
    /// # Errors
    /// Files that are damaged, or newer than this program.
    pub fn read_documents(&self) -> Result<Vec<MachineDocument>, ArchiveError> {
        match self.open_journal()? {
            (_, true) => document_log::read_documents(&self.path),
            (events, false) => document_log::list_documents(events),
        }
    }

    /// Its monitors, and those of which a table is damaged, each with what is wrong: the others can be read.
    ///
    /// # Errors
    /// A run that cannot be read at all.
    pub fn list_sound_monitors(&self) -> Result<ListedMonitors, ArchiveError> {
        if !self.open_journal()?.1 {
            return Ok(ListedMonitors { sound: self.list_monitors()?, damaged: Vec::new() });
        }
        let mut found = ListedMonitors::default();
        let tables = [series::list_monitor_tables(&self.path)?, edges::list_edge_tables(&self.path)?];
        for table in tables.into_iter().flatten() {
            match table.monitor {
                Ok(name) => found.sound.push(name),
                Err(error) => found.damaged.push((table.file, error)),
            }
        }
        found.sound.retain(|name| found.damaged.iter().all(|(file, _)| file != name));
        found.sound.sort();
        found.sound.dedup();
        Ok(found)
    }

    /// The names of the run's monitors, sorted.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn list_monitors(&self) -> Result<Vec<String>, ArchiveError> {
        match self.open_journal()? {
            (_, true) => {
                let mut names = series::list_monitors(&self.path)?;
                names.extend(edges::list_edge_monitors(&self.path)?);
                names.sort();
                names.dedup();
                Ok(names)
            }
            (events, false) => series::list_journal_monitors(events),
        }
    }

    /// What one monitor read at the edges of iterations; none where it was not read there.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn read_edges(&self, monitor: &str) -> Result<Option<EdgeReadings>, ArchiveError> {
        match self.open_journal()? {
            (_, true) => edges::read_edges(&self.path, monitor),
            (events, false) => edges::read_journal_edges(events, monitor),
        }
    }

    /// All ticks of one monitor: none of one that was read at edges only.
    ///
    /// # Errors
    /// [`ArchiveError::NoSeries`] with the nearest name; files that are missing or damaged.
    pub fn read_series(&self, monitor: &str) -> Result<Series, ArchiveError> {
        let found = match self.open_journal()? {
            (_, true) => {
                let stored = series::find_stored_name(&self.path, monitor);
                match stored {
                    Some(stored) => Some(series::read_series(&self.path, stored)?),
                    // One that was only read at edges has no ticks.
                    None => edges::read_edges(&self.path, monitor)?.map(|edges| Series::empty(edges.schema)),
                }
            }
            (events, false) => series::read_journal_series(events, monitor)?,
        };
        found.map_or_else(|| Err(self.series_error(monitor, &self.list_monitors()?)), Ok)
    }

    /// The cases that have samples of call stacks, by their index in the plan.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn profiled_cases(&self) -> Result<Vec<u32>, ArchiveError> {
        let plan = manifest::read_manifest(&self.path)?.plan;
        match self.open_journal()? {
            (_, true) => Ok(stacks::profiled_cases(&self.path, &plan)),
            (events, false) => stacks::journal_profiled_cases(events, &plan),
        }
    }

    /// The sampled call stacks of one case.
    ///
    /// # Errors
    /// [`ArchiveError::NoStacks`] where it was not profiled; files that are missing or damaged.
    pub fn read_profile(&self, case: u32) -> Result<Profile, ArchiveError> {
        if !self.profiled_cases()?.contains(&case) {
            return Err(ArchiveError::NoStacks { id: self.id.clone(), case });
        }
        match self.open_journal()? {
            (events, true) => stacks::read_profile(&self.path, case, events),
            (events, false) => stacks::read_journal_profile(
                &self.path,
                events,
                case,
                &manifest::read_manifest(&self.path)?.plan,
            ),
        }
    }

    /// The table of samples of a closed run, a Parquet file.
    ///
    /// # Errors
    /// [`ArchiveError::Live`] while it is recorded; [`ArchiveError::Damaged`] of a run that was never closed.
    pub fn samples_path(&self) -> Result<PathBuf, ArchiveError> {
        let file = self.path.join(SAMPLES);
        match self.status()? {
            RunStatus::Running => Err(ArchiveError::Live { id: self.id.clone() }),
            _ if !file.is_file() => {
                Err(ArchiveError::damaged(&file)("the run was never closed, so it has no tables"))
            }
            _ => open_verified(&self.path, Path::new(SAMPLES)).map(|_| file),
        }
    }

    /// All rows of one monitor, each once for all ticks at which it stood: how a long run, once it is closed, is read in
    /// bounded memory.
    ///
    /// # Errors
    /// As [`RunDir::read_series`].
    pub fn read_series_spans(&self, monitor: &str) -> Result<RowRuns, ArchiveError> {
        let (_, is_closed) = self.open_journal()?;
        let stored = series::find_stored_name(&self.path, monitor).filter(|_| is_closed);
        if let Some(stored) = stored {
            return series::read_series_spans(&self.path, stored);
        }
        Ok(RowRuns::from_series(&self.read_series(monitor)?))
    }

    /// The tracers that wrote operations down, sorted; none for a run that is not closed.
    ///
    /// # Errors
    /// Files that are damaged, or newer than this program.
    pub fn list_tracers(&self) -> Result<Vec<String>, ArchiveError> {
        operations::list_tracers(&self.path)
    }

    /// What a tracer reported about each iteration that it traced, in order of time.
    ///
    /// # Errors
    /// [`ArchiveError::NoTrace`]; files that are missing or damaged.
    pub fn read_trace_summaries(&self, tracer: &str) -> Result<Vec<OperationTraceSummary>, ArchiveError> {
        operations::read_trace_summaries(&self.path, &self.id, tracer)
    }

    /// Every operation of one iteration.
    ///
    /// # Errors
    /// [`ArchiveError::NoTrace`] where there are none of this slot; files that are missing or damaged.
    pub fn read_operations(
        &self,
        tracer: &str,
        iteration: TracedIteration,
    ) -> Result<OperationColumns, ArchiveError> {
        operations::read_operations(&self.path, &self.id, tracer, iteration)
    }

    /// The I/O of each iteration in which it was traced, with the iteration's slot.
    ///
    /// # Errors
    /// [`ArchiveError::NoIo`]; files that are missing or damaged.
    pub fn read_io_recordings(&self) -> Result<Vec<(TracedIteration, IoRecording)>, ArchiveError> {
        io::read_io_recordings(&self.path, &self.id)
    }

    /// What the command `name` printed in `slot` (`None`: in no slot, such as `mkfs`); `None` if nothing.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn read_output(&self, slot: Option<u32>, name: &str) -> Result<Option<String>, ArchiveError> {
        match self.open_journal()? {
            (_, true) => journal::find_output(journal::open_output_log(&self.path)?, slot, name),
            (events, false) => journal::find_output(events, slot, name),
        }
    }

    /// Each part of what the command `name` printed, in order.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn list_outputs(&self, name: &str) -> Result<Vec<StoredOutput>, ArchiveError> {
        match self.open_journal()? {
            (_, true) => journal::list_outputs(journal::open_output_log(&self.path)?, name),
            (events, false) => journal::list_outputs(events, name),
        }
    }

    /// The journal's events. Those of a closed run lack rows and outputs, which its tables hold.
    ///
    /// # Errors
    /// A journal that is missing.
    pub fn read_events(&self) -> Result<JournalReader, ArchiveError> {
        JournalReader::open(&self.path.join(JOURNAL))
    }

    /// How many lines of the journal are torn or damaged and left out. A run that was recovered says so
    /// among its warnings instead.
    ///
    /// # Errors
    /// A journal that cannot be read.
    pub fn count_damaged_lines(&self) -> Result<u64, ArchiveError> {
        let mut events = self.read_events()?;
        events.by_ref().try_for_each(|event| event.map(drop))?;
        Ok(events.damaged_lines())
    }

    /// The journal, and whether the run is closed. Opened in this order because closing replaces the
    /// journal last: what is open is whole as long as the manifest calls the run running afterwards.
    fn open_journal(&self) -> Result<(JournalReader, bool), ArchiveError> {
        let events = self.read_events()?;
        Ok((events, manifest::read_manifest_head(&self.path)?.status != RunStatus::Running))
    }

    fn series_error(&self, monitor: &str, known: &[String]) -> ArchiveError {
        let is_asked_for = self.manifest().is_ok_and(|manifest| {
            let Study { monitors, counters, events, .. } = &manifest.study;
            let is_counted = CountersSpec::is_monitor(monitor) && counters.is_some()
                || monitor == EVENTS_MONITOR && !events.is_empty();
            is_counted || monitors.iter().any(|(name, _)| name == monitor)
        });
        let hint = match known {
            _ if is_asked_for => {
                format!("it was asked for, and nothing was read: `perflab show {}` says why", self.id)
            }
            [] => "no monitor watched it; a study names those that do under [monitors]".into(),
            known => {
                let nearest = perflab_model::problem::suggest_name(monitor, known.iter().map(String::as_str));
                let all = if nearest.contains('?') {
                    format!("; known here: {}", known.join(", "))
                } else {
                    "".into()
                };
                nearest + &all
            }
        };
        ArchiveError::NoSeries { id: self.id.clone(), monitor: monitor.into(), hint }
    }
}

/// What the tables of a closed run do not hold.
const NOTES: &[&str] = &[kind::GAP, kind::WARNING, kind::CLOCK, kind::SETTING_OVERWRITTEN, kind::TRIGGERED];

/// What a record is made of.
const RECORD: &[&str] = &[
    kind::GAP,
    kind::WARNING,
    kind::CLOCK,
    kind::SETTING_OVERWRITTEN,
    kind::TRIGGERED,
    kind::SAMPLE,
    kind::ITERATION_ENDED,
    kind::FACTS,
];

fn apply_event(record: &mut RunRecord, event: RunEvent) {
    match event.what {
        RunEventKind::Sample(sample) => record.samples.push(sample),
        RunEventKind::IterationEnded { slot, outcome, start, end } => {
            record.iterations.push(IterationRecord { target: event.target, slot, outcome, start, end });
        }
        RunEventKind::Gap(gap) => record_gap(&mut record.gaps, gap),
        RunEventKind::Clock(clock) => record.clock_bounds.push(clock.bound),
        RunEventKind::Warning { message, advice } => record.warnings.push(RunWarning { message, advice }),
        RunEventKind::SettingOverwritten { slot, setting, file, set, found, by } => {
            let target = event.target;
            let found = OverwrittenSettingRecord { target, slot, setting, file, set, found, by };
            record.overwritten.push(found);
        }
        RunEventKind::Triggered(trigger) => record.triggers.push(TriggerRecord { at: event.at, trigger }),
        RunEventKind::Facts(facts) => record.manifest.facts.extend(facts),
        _ => {}
    }
}

/// A gap is recorded when it opens and again when it closes: the second record replaces the first.
fn record_gap(gaps: &mut Vec<SeriesGap>, gap: SeriesGap) {
    match gaps.iter_mut().find(|old| gap.is_end_of(old)) {
        Some(old) => *old = gap,
        None => gaps.push(gap),
    }
}

/// What a stored status means now.
pub(crate) fn status_now(run: &Path, stored: RunStatus) -> RunStatus {
    match stored {
        RunStatus::Running if run_layout::is_run_live(run) => RunStatus::Running,
        RunStatus::Running if run_layout::is_marked_disk_full(run) => RunStatus::DiskFull,
        RunStatus::Running => RunStatus::Interrupted,
        other => other,
    }
}
