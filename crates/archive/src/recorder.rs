//! Recording a run: its events into the journal while it lives, tables when it ends. Owns the run's
//! lock; refuses any work that could wait until measuring is over.

use std::fs;
use std::path::{Path, PathBuf};

use perflab_model::{Event, Manifest, Sample, Status, What};

use crate::fresh_file::check_folders;
use crate::half_made::own_prefix;
use crate::id::is_run_id;
use crate::journal::Journal;
use crate::layout::{JOURNAL, LOCK};
use crate::lock::RunLock;
use crate::{ArchiveError, RunDir, finish, manifest, traces};

/// A run that is being recorded. Dropped without [`Recorder::finish`], it leaves an interrupted run.
#[derive(Debug)]
pub struct Recorder {
    run: PathBuf,
    journal: Journal,
    _lock: RunLock,
}

impl Recorder {
    /// Makes the run's directory under `runs`, locked and with its `run.json`, all at once.
    ///
    /// Events, [`What::Began`] among them, come from the caller: a journal replays the whole stream.
    pub(crate) fn begin(runs: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let run = runs.join(&manifest.id);
        if !is_run_id(&manifest.id) {
            let reason = format!("`{}` is not a run id", manifest.id);
            return Err(ArchiveError::Refused { path: run, reason });
        }
        if run.exists() {
            return Err(ArchiveError::Exists { path: run });
        }
        check_folders(runs, None)?;
        let half = runs.join(own_prefix() + &manifest.id);
        fs::create_dir_all(runs)
            .and_then(|()| fs::create_dir(&half))
            .map_err(ArchiveError::io("create", &half))?;
        let made = Recorder::make(&half, &run, manifest);
        made.inspect_err(|_| drop(fs::remove_dir_all(&half)))
    }

    fn make(half: &Path, run: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let taken = RunLock::take(half)?;
        let lock = taken.ok_or_else(|| ArchiveError::Live { id: manifest.id.clone() })?;
        let mut journal = Journal::create(&half.join(JOURNAL))?;
        manifest::write(half, &Manifest { status: Status::Running, ..manifest.clone() })?;
        fs::rename(half, run).map_err(ArchiveError::io("create", run))?;
        journal.moved(run.join(JOURNAL));
        Ok(Recorder { run: run.into(), journal, _lock: lock })
    }

    /// Records one event. Rows wait at most a second in memory, all others are written at once.
    ///
    /// A value that is not a number is no sample: a warning is recorded in its place.
    ///
    /// # Errors
    /// [`ArchiveError::JournalWrite`], mostly for a full disk. The event is kept and tried again with
    /// the next one (up to 16 MiB of them), so a caller may go on, or end the run with what is there.
    pub fn record(&mut self, event: &Event) -> Result<(), ArchiveError> {
        match &event.what {
            What::Sample(sample) if !sample.value.is_finite() => {
                self.journal.append(&Event { what: no_number(sample), ..event.clone() })
            }
            What::Traced { slot, tracer, file } => {
                traces::keep(&self.run, *slot, tracer, file)?;
                self.journal.append(event)
            }
            _ => self.journal.append(event),
        }
    }

    /// Bytes of journal that are on the disk.
    pub fn bytes_written(&self) -> u64 {
        self.journal.written()
    }

    /// The run's directory.
    pub fn path(&self) -> &Path {
        &self.run
    }

    /// Ends the recording: turns the journal into tables, with the status and overhead of the last
    /// [`What::Ended`]; without one the run counts as interrupted.
    ///
    /// # Errors
    /// [`ArchiveError::Close`] or [`ArchiveError::JournalWrite`], mostly for a full disk: the journal is
    /// intact then, the run reads as interrupted, and [`Recorder::recover`] closes it once there is room.
    pub fn finish(mut self) -> Result<RunDir, ArchiveError> {
        self.journal.flush()?;
        close(&self.run)
    }

    /// Closes the run at `run` whose process died, or that could not be closed on a full disk.
    ///
    /// # Errors
    /// [`ArchiveError::Live`] if a living process records it; else as [`Recorder::finish`].
    pub fn recover(run: &Path) -> Result<RunDir, ArchiveError> {
        check_folders(run.parent().unwrap_or(run), Some(run))?;
        let id = manifest::head(run)?.id;
        let _lock = RunLock::take(run)?.ok_or(ArchiveError::Live { id })?;
        close(run)
    }
}

fn close(run: &Path) -> Result<RunDir, ArchiveError> {
    finish::close(run)?;
    // Nobody asks a finished run for its lock; one that stays does no harm.
    let _ = fs::remove_file(run.join(LOCK));
    RunDir::open(run)
}

fn no_number(sample: &Sample) -> What {
    What::Warning {
        message: format!(
            "metric {} of case {}, iteration {}, came out as {}: not stored",
            sample.metric, sample.case, sample.iteration, sample.value
        ),
        advice: "look at the workload's output of this iteration".into(),
    }
}
