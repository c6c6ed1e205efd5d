//! Recording a run whose events are all there already, as an import's are. Nothing is measured meanwhile,
//! so rows go straight into tables and not through the journal, which is what most of the time of closing
//! a run goes to. In return the run stays hidden until it is whole: what dies half-way leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{Event, Manifest, Status, What};
use tempfile::TempDir;

use crate::journal::Journal;
use crate::layout::{HALF, JOURNAL, STAGE};
use crate::lock::RunLock;
use crate::series::SeriesWriter;
use crate::stacks::StackWriter;
use crate::{ArchiveError, RunDir, finish, manifest};

/// A run that is being written at once. Dropped without [`AtOnce::finish`], it leaves nothing.
pub(crate) struct AtOnce {
    // The lock is let go before the folder goes.
    _lock: Option<RunLock>,
    half: TempDir,
    run: PathBuf,
    journal: Journal,
    series: SeriesWriter,
    stacks: StackWriter,
}

impl AtOnce {
    pub(crate) fn begin(runs: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        fs::create_dir_all(runs).map_err(ArchiveError::io("create", runs))?;
        let half = tempfile::Builder::new().prefix(HALF).tempdir_in(runs);
        let half = half.map_err(ArchiveError::io("create", runs))?;
        // Held against a prune that sweeps up what nobody writes any more.
        let lock = RunLock::take(half.path())?;
        let run = half.path().join(&manifest.id);
        let stage = run.join(STAGE);
        fs::create_dir_all(&stage).map_err(ArchiveError::io("create", &stage))?;
        manifest::write(&run, &Manifest { status: Status::Running, ..manifest.clone() })?;
        let journal = Journal::create(&run.join(JOURNAL))?;
        let (series, stacks) = (SeriesWriter::create(&stage)?, StackWriter::create(&stage, &manifest.plan)?);
        Ok(AtOnce { _lock: lock, half, run, journal, series, stacks })
    }

    /// Takes one event.
    pub(crate) fn record(&mut self, event: &Event) -> Result<(), ArchiveError> {
        match &event.what {
            What::Rows { monitor, rows } => self.series.rows(event.at, monitor, rows),
            What::Stacks(batch) => self.stacks.push(batch),
            What::Changed { .. } => self.series.tick(event.clone()).map(drop),
            What::SeriesOpened(schema) => {
                self.series.opened(schema)?;
                self.journal.append(event)
            }
            _ => self.journal.append(event),
        }
    }

    /// Writes all tables and lets the run be seen.
    pub(crate) fn finish(self, runs: &Path) -> Result<RunDir, ArchiveError> {
        let AtOnce { _lock, half: _half, run, mut journal, series, stacks } = self;
        journal.flush()?;
        finish::close_with(&run, series, stacks)?;
        let place = runs.join(run.file_name().unwrap_or_default());
        fs::rename(&run, &place).map_err(ArchiveError::io("create", &place))?;
        RunDir::open(&place)
    }
}
