//! Recording a run whose events are all there already, as an import's are. Nothing is measured meanwhile,
//! so rows, samples and iterations go straight into tables and not through the journal, which is what most of
//! the time of closing a run goes to. In return the run stays hidden until it is whole: what dies half-way
//! leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{IterationRecord, Manifest, RunEvent, RunEventKind, RunStatus};
use tempfile::TempDir;

use crate::finish::RunTables;
use crate::fresh_file::check_folder_owners;
use crate::half_made::own_name_prefix;
use crate::journal::JournalWriter;
use crate::layout::{JOURNAL, STAGE};
use crate::lock::RunLock;
use crate::{ArchiveError, RunDir, finish, traces};

/// A run that is being written at once. Dropped without [`BulkRecorder::finish`], it leaves nothing.
pub(crate) struct BulkRecorder {
    // The lock is let go before the folder goes.
    _lock: Option<RunLock>,
    half: TempDir,
    run: PathBuf,
    manifest: Manifest,
    journal: JournalWriter,
    sinks: RunTables,
}

impl BulkRecorder {
    pub(crate) fn begin(runs: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
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
        Ok(BulkRecorder { _lock: lock, half, run, manifest, journal, sinks })
    }

    /// Takes one event.
    pub(crate) fn record(&mut self, event: &RunEvent) -> Result<(), ArchiveError> {
        match &event.what {
            RunEventKind::Rows { monitor, rows } => self.sinks.series.push_rows(event.at, monitor, rows),
            RunEventKind::Changed { .. } => self.sinks.series.push_tick(event.clone()).map(drop),
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
                self.journal.append(event)
            }
            RunEventKind::Traced { slot, tracer, file } => {
                traces::keep_trace_file(&self.run, *slot, tracer, file)?;
                self.journal.append(event)
            }
            _ => self.journal.append(event),
        }
    }

    /// Writes all tables and lets the run be seen.
    pub(crate) fn finish(self, runs: &Path) -> Result<RunDir, ArchiveError> {
        let BulkRecorder { _lock, half: _half, run, manifest, mut journal, sinks } = self;
        journal.flush()?;
        finish::close_bulk_run(&run, manifest, sinks)?;
        let place = runs.join(run.file_name().unwrap_or_default());
        fs::rename(&run, &place).map_err(ArchiveError::io("create", &place))?;
        RunDir::open(&place)
    }
}
