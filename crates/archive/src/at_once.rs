//! Recording a run whose events are all there already, as an import's are. Nothing is measured meanwhile,
//! so rows, samples and iterations go straight into tables and not through the journal, which is what most of
//! the time of closing a run goes to. In return the run stays hidden until it is whole: what dies half-way
//! leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{Event, Iteration, Manifest, Status, What};
use tempfile::TempDir;

use crate::finish::Sinks;
use crate::fresh_file::check_folders;
use crate::half_made::own_prefix;
use crate::journal::Journal;
use crate::layout::{JOURNAL, STAGE};
use crate::lock::RunLock;
use crate::{ArchiveError, RunDir, finish, traces};

/// A run that is being written at once. Dropped without [`AtOnce::finish`], it leaves nothing.
pub(crate) struct AtOnce {
    // The lock is let go before the folder goes.
    _lock: Option<RunLock>,
    half: TempDir,
    run: PathBuf,
    manifest: Manifest,
    journal: Journal,
    sinks: Sinks,
}

impl AtOnce {
    pub(crate) fn begin(runs: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        check_folders(runs, None)?;
        fs::create_dir_all(runs).map_err(ArchiveError::io("create", runs))?;
        let half = tempfile::Builder::new().prefix(&own_prefix()).tempdir_in(runs);
        let half = half.map_err(ArchiveError::io("create", runs))?;
        // Held against a prune that sweeps up what nobody writes any more.
        let lock = RunLock::take(half.path())?;
        let run = half.path().join(&manifest.id);
        let stage = run.join(STAGE);
        fs::create_dir_all(&stage).map_err(ArchiveError::io("create", &stage))?;
        let manifest = Manifest { status: Status::Running, ..manifest.clone() };
        let journal = Journal::create(&run.join(JOURNAL))?;
        let sinks = Sinks::create(&stage, &manifest)?;
        Ok(AtOnce { _lock: lock, half, run, manifest, journal, sinks })
    }

    /// Takes one event.
    pub(crate) fn record(&mut self, event: &Event) -> Result<(), ArchiveError> {
        match &event.what {
            What::Rows { monitor, rows } => self.sinks.series.rows(event.at, monitor, rows),
            What::Changed { .. } => self.sinks.series.tick(event.clone()).map(drop),
            What::Stacks(batch) => self.sinks.stacks.push(batch),
            What::Sample(sample) => self.sinks.samples.push(sample),
            What::IterationBegan { .. } => Ok(()),
            What::IterationEnded { slot, outcome, start, end } => {
                let (slot, outcome, start, end) = (*slot, outcome.clone(), *start, *end);
                self.sinks.iterations.push(&Iteration { target: event.target, slot, outcome, start, end })
            }
            What::SeriesOpened(schema) => {
                self.sinks.series.opened(schema)?;
                self.journal.append(event)
            }
            What::Traced { slot, tracer, file } => {
                traces::keep(&self.run, *slot, tracer, file)?;
                self.journal.append(event)
            }
            _ => self.journal.append(event),
        }
    }

    /// Writes all tables and lets the run be seen.
    pub(crate) fn finish(self, runs: &Path) -> Result<RunDir, ArchiveError> {
        let AtOnce { _lock, half: _half, run, manifest, mut journal, sinks } = self;
        journal.flush()?;
        finish::close_with(&run, manifest, sinks)?;
        let place = runs.join(run.file_name().unwrap_or_default());
        fs::rename(&run, &place).map_err(ArchiveError::io("create", &place))?;
        RunDir::open(&place)
    }
}
