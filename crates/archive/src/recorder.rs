//! A run's events on their way in: live, or all at once.
//!
//! Live: events into the journal while the run lives, tables when it ends, and the run's lock held throughout. Any work
//! that can wait until measuring is over waits.
//!
//! All at once, as of an import: nothing is being measured, so rows, samples and iterations go straight into tables and
//! not through the journal, which is what most of the time of closing a run goes to. In return the run stays hidden
//! until it is whole: what dies half-way leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::operation::TracedIteration;
use perflab_model::{IterationRecord, Manifest, RunEvent, RunEventKind, RunStatus, Sample};
use tempfile::TempDir;

use crate::error::ArchiveError;
use crate::fresh_file::check_folder_owners;
use crate::half_made::own_name_prefix;
use crate::index::index_refresh;
use crate::journal::JournalWriter;
use crate::manifest;
use crate::run_close::{self, RunTables};
use crate::run_dir::RunDir;
use crate::run_id::is_run_id;
use crate::run_layout::{self, JOURNAL, LOCK, RunLock, STAGE};
use crate::tables::operations;

/// A run that is being recorded. Dropped without [`RunRecorder::finish`], it leaves an interrupted run.
#[derive(Debug)]
pub struct RunRecorder {
    run: PathBuf,
    journal: JournalWriter,
    /// Whether something could not be written because the disk was full.
    was_disk_full: bool,
    _lock: RunLock,
}

impl RunRecorder {
    /// Makes the run's directory under `runs`, locked and with its `run.json`, all at once.
    ///
    /// Events, [`RunEventKind::Began`] among them, come from the caller: a journal replays the whole stream.
    pub(crate) fn begin(runs: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let run = runs.join(&manifest.id);
        if !is_run_id(&manifest.id) {
            let reason = format!("`{}` is not a run id", manifest.id);
            return Err(ArchiveError::Refused { path: run, reason });
        }
        if run.exists() {
            return Err(ArchiveError::Exists { path: run });
        }
        check_folder_owners(runs, None)?;
        let half = runs.join(own_name_prefix() + &manifest.id);
        fs::create_dir_all(runs)
            .and_then(|()| fs::create_dir(&half))
            .map_err(ArchiveError::io("create", &half))?;
        let made = RunRecorder::create_run(&half, &run, manifest);
        made.inspect_err(|_| drop(fs::remove_dir_all(&half)))
    }

    fn create_run(half: &Path, run: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let taken = RunLock::try_lock(half)?;
        let lock = taken.ok_or_else(|| ArchiveError::Live { id: manifest.id.clone() })?;
        let mut journal = JournalWriter::create(&half.join(JOURNAL))?;
        manifest::write_manifest(half, &Manifest { status: RunStatus::Running, ..manifest.clone() })?;
        fs::rename(half, run).map_err(ArchiveError::io("create", run))?;
        journal.set_path(run.join(JOURNAL));
        Ok(RunRecorder { run: run.into(), journal, was_disk_full: false, _lock: lock })
    }

    /// Records one event. Rows wait at most a second in memory, all others are written at once.
    ///
    /// A value that is not a number is no sample: a warning is recorded in its place.
    ///
    /// # Errors
    /// [`ArchiveError::JournalWrite`], mostly for a full disk. The event is kept and tried again with
    /// the next one (up to 16 MiB of them), so a caller may go on, or end the run with what is there.
    pub fn record(&mut self, event: &RunEvent) -> Result<(), ArchiveError> {
        self.hold(event)?;
        self.write_held()
    }

    /// The same of an event that others follow at once: [`RunRecorder::write_held`] writes them together.
    ///
    /// # Errors
    /// Those of [`RunRecorder::record`].
    pub fn hold(&mut self, event: &RunEvent) -> Result<(), ArchiveError> {
        let held = self.hold_event(event);
        self.note_full_disk(held)
    }

    fn hold_event(&mut self, event: &RunEvent) -> Result<(), ArchiveError> {
        match &event.what {
            RunEventKind::Sample(sample) if !sample.value.is_finite() => {
                self.journal.hold(&RunEvent { what: non_finite_sample_warning(sample), ..event.clone() })
            }
            RunEventKind::Traced { slot, tracer, file } => {
                let iteration = TracedIteration { slot: *slot, target: event.target };
                operations::keep_trace_file(&self.run, iteration, tracer, file)?;
                self.journal.hold(event)
            }
            _ => self.journal.hold(event),
        }
    }

    /// Writes the events that are held, but rows that wait for company.
    ///
    /// # Errors
    /// Those of [`RunRecorder::record`].
    pub fn write_held(&mut self) -> Result<(), ArchiveError> {
        let written = self.journal.flush_if_due();
        self.note_full_disk(written)
    }

    fn note_full_disk(&mut self, written: Result<(), ArchiveError>) -> Result<(), ArchiveError> {
        written.inspect_err(|error| self.was_disk_full |= error.is_disk_full())
    }

    /// Bytes of journal that are on the disk.
    pub fn bytes_written(&self) -> u64 {
        self.journal.bytes_written()
    }

    /// The run's directory.
    pub fn path(&self) -> &Path {
        &self.run
    }

    /// Ends the recording: turns the journal into tables, with the status and overhead of the last
    /// [`RunEventKind::Ended`]; without one the run counts as interrupted, or its disk as full where that was so.
    ///
    /// # Errors
    /// [`ArchiveError::Close`] or [`ArchiveError::JournalWrite`], mostly for a full disk: the journal is
    /// intact then, the run says so ([`RunStatus::DiskFull`]), and [`RunRecorder::recover`] closes it once there is room.
    pub fn finish(mut self) -> Result<RunDir, ArchiveError> {
        let flushed = self.journal.flush();
        let flushed = self.note_full_disk(flushed);
        let cut = if self.was_disk_full { RunStatus::DiskFull } else { RunStatus::Interrupted };
        let closed = flushed.and_then(|()| close_and_open(&self.run, cut));
        closed.inspect_err(|error| {
            if self.was_disk_full || error.is_disk_full() {
                run_layout::mark_disk_full(&self.run);
            }
        })
    }

    /// Closes the run at `run` whose process died, or that could not be closed on a full disk.
    ///
    /// # Errors
    /// [`ArchiveError::Live`] if a living process records it; else as [`RunRecorder::finish`].
    pub fn recover(run: &Path) -> Result<RunDir, ArchiveError> {
        check_folder_owners(run.parent().unwrap_or(run), Some(run))?;
        let id = manifest::read_manifest_head(run)?.id;
        let _lock = RunLock::try_lock(run)?.ok_or(ArchiveError::Live { id })?;
        close_and_open(run, run_close::cut_status(run))
    }
}

/// Closes a run that is `cut` if its journal does not say how it ended.
fn close_and_open(run: &Path, cut: RunStatus) -> Result<RunDir, ArchiveError> {
    run_close::close_run(run, cut)?;
    // Nobody asks a finished run for its lock; one that stays does no harm.
    let _ = fs::remove_file(run.join(LOCK));
    index_refresh::note_changed_run(run);
    RunDir::open(run)
}

fn non_finite_sample_warning(sample: &Sample) -> RunEventKind {
    RunEventKind::Warning {
        message: format!(
            "metric {} of case {}, iteration {}, came out as {}: not stored",
            sample.metric, sample.case, sample.iteration, sample.value
        ),
        advice: "look at the workload's output of this iteration".into(),
    }
}

/// A run that is being written at once. Dropped without [`BulkRecorder::finish`], it leaves nothing.
pub struct BulkRecorder {
    // The lock is let go before the folder goes.
    _lock: Option<RunLock>,
    half: TempDir,
    runs: PathBuf,
    run: PathBuf,
    manifest: Manifest,
    journal: JournalWriter,
    sinks: RunTables,
}

impl BulkRecorder {
    pub(crate) fn begin(runs: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        if !is_run_id(&manifest.id) {
            let reason = format!("`{}` is not a run id", manifest.id);
            return Err(ArchiveError::Refused { path: runs.join(&manifest.id), reason });
        }
        check_folder_owners(runs, None)?;
        fs::create_dir_all(runs).map_err(ArchiveError::io("create", runs))?;
        let half = tempfile::Builder::new().prefix(&own_name_prefix()).tempdir_in(runs);
        let half = half.map_err(ArchiveError::io("create", runs))?;
        // Held against a prune that sweeps up what nobody writes any more.
        let lock = RunLock::try_lock(half.path())?;
        let run = half.path().join(&manifest.id);
        let stage = run.join(STAGE);
        fs::create_dir_all(&stage).map_err(ArchiveError::io("create", &stage))?;
        let manifest = Manifest { status: RunStatus::Running, ..manifest.clone() };
        let journal = JournalWriter::create(&run.join(JOURNAL))?;
        let sinks = RunTables::create(&stage, &manifest)?;
        Ok(BulkRecorder { _lock: lock, half, runs: runs.into(), run, manifest, journal, sinks })
    }

    /// Takes one event.
    ///
    /// # Errors
    /// Mostly a full disk; a tracer's file that cannot be read.
    pub fn record(&mut self, event: &RunEvent) -> Result<(), ArchiveError> {
        match &event.what {
            RunEventKind::Rows { monitor, rows, took } => {
                self.sinks.series.push_rows((event.at, *took), monitor, rows)
            }
            RunEventKind::Changed { .. } => self.sinks.series.push_tick(event.clone()).map(drop),
            RunEventKind::Edge(reading) => self.sinks.edges.push(event.at, reading),
            RunEventKind::Stacks(batch) => self.sinks.stacks.push(batch),
            RunEventKind::Sample(sample) => self.sinks.samples.push(sample),
            RunEventKind::IterationBegan { .. } => Ok(()),
            RunEventKind::IterationEnded { slot, outcome, start, end } => {
                let (slot, outcome, start, end) = (*slot, outcome.clone(), *start, *end);
                self.sinks.iterations.push(&IterationRecord {
                    target: event.target,
                    slot,
                    outcome,
                    start,
                    end,
                })
            }
            RunEventKind::SeriesOpened(schema) => {
                self.sinks.series.open_table(schema)?;
                self.sinks.edges.note_schema(schema);
                self.journal.append(event)
            }
            RunEventKind::Traced { slot, tracer, file } => {
                let iteration = TracedIteration { slot: *slot, target: event.target };
                operations::keep_trace_file(&self.run, iteration, tracer, file)?;
                self.journal.append(event)
            }
            _ => self.journal.append(event),
        }
    }

    /// Writes all tables and lets the run be seen.
    ///
    /// # Errors
    /// Mostly a full disk; nothing of the run stays then.
    pub fn finish(self) -> Result<RunDir, ArchiveError> {
        let BulkRecorder { _lock, half: _half, runs, run, manifest, mut journal, sinks } = self;
        journal.flush()?;
        run_close::close_bulk_run(&run, manifest, sinks)?;
        let place = runs.join(run.file_name().unwrap_or_default());
        fs::rename(&run, &place).map_err(ArchiveError::io("create", &place))?;
        index_refresh::note_changed_run(&place);
        RunDir::open(&place)
    }
}
