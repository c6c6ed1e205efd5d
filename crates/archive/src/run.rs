//! Reading one run: from its tables once it is closed, from its journal before. Owns which of the two
//! is to be trusted; refuses to write, even to a run whose process died.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use perflab_model::io::IoRecording;
use perflab_model::record::Advice;
use perflab_model::series::{Gap, Series, Spans};
use perflab_model::trace::{Operations, Traced};
use perflab_model::{Event, Iteration, Manifest, Outcome, Profile, RunRecord, Status, What};

use crate::checksums::open_verified;
use crate::events::{Events, kind};
use crate::layout::{JOURNAL, SAMPLES, series_file};
use crate::portable::UnpackFolder;
use crate::{ArchiveError, io, iterations, lock, manifest, outputs, samples, series, stacks, traces};

/// One run on disk.
#[derive(Debug, Clone)]
pub struct RunDir {
    path: PathBuf,
    id: String,
    short: String,
    /// Keeps the directory that a portable file was unpacked to.
    _unpacked: Option<Arc<dyn UnpackFolder>>,
}

impl RunDir {
    /// Opens the directory of a run, in an archive or elsewhere.
    ///
    /// # Errors
    /// A `run.json` that is missing, damaged, or newer than this program.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let id = manifest::head(path)?.id;
        let short = id.chars().take(crate::id::SHORTEST).collect();
        Ok(RunDir { path: path.into(), id, short, _unpacked: None })
    }

    /// A run of an archive, by its names there; nothing is read yet.
    pub(crate) fn known(path: PathBuf, id: String, short: String) -> Self {
        RunDir { path, id, short, _unpacked: None }
    }

    /// A run that lives as long as `folder`.
    pub(crate) fn unpacked(path: &Path, folder: Box<dyn UnpackFolder>) -> Result<Self, ArchiveError> {
        let run = RunDir::open(path)?;
        Ok(RunDir { _unpacked: Some(folder.into()), ..run })
    }

    /// The run's id, a ULID.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The shortest prefix that names the run in its archive.
    pub fn short(&self) -> &str {
        &self.short
    }

    /// The run's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the run stands: `Running` only while a living process holds its lock.
    ///
    /// # Errors
    /// As [`RunDir::manifest`].
    pub fn status(&self) -> Result<Status, ArchiveError> {
        Ok(standing(&self.path, manifest::head(&self.path)?.status))
    }

    /// The run's manifest, with the status as [`RunDir::status`] says; facts and overhead of a run that
    /// was not closed are those of its beginning.
    ///
    /// # Errors
    /// A `run.json` that is missing, damaged, or newer than this program.
    pub fn manifest(&self) -> Result<Manifest, ArchiveError> {
        let stored = manifest::read(&self.path)?;
        Ok(Manifest { status: standing(&self.path, stored.status), ..stored })
    }

    /// The run in memory: all samples and iterations, gaps and warnings, without the series.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn record(&self) -> Result<RunRecord, ArchiveError> {
        self.record_with(iterations::read)
    }

    /// The same with those iterations only that did not end well: what is asked of many runs with many of them.
    ///
    /// # Errors
    /// As [`RunDir::record`].
    pub fn record_of_failures(&self) -> Result<RunRecord, ArchiveError> {
        let mut record = self.record_with(iterations::read_failed)?;
        record.iterations.retain(|iteration| iteration.outcome != Outcome::Ok);
        Ok(record)
    }

    fn record_with(
        &self,
        iterations: fn(&Path, &Manifest) -> Result<Vec<Iteration>, ArchiveError>,
    ) -> Result<RunRecord, ArchiveError> {
        let events = self.events()?;
        let stored = manifest::read(&self.path)?;
        let closed = stored.status != Status::Running;
        let manifest = Manifest { status: standing(&self.path, stored.status), ..stored };
        let (samples, iterations) = match closed {
            true => (samples::read(&self.path, &manifest)?, iterations(&self.path, &manifest)?),
            false => (Vec::new(), Vec::new()),
        };
        let mut record = RunRecord {
            manifest,
            samples,
            iterations,
            gaps: Vec::new(),
            warnings: Vec::new(),
            clock_bounds: Vec::new(),
        };
        events.only(if closed { NOTES } else { RECORD }).try_for_each(|event| {
            add(&mut record, event?);
            Ok(())
        })?;
        Ok(record)
    }

    /// The names of the run's monitors, sorted.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn monitors(&self) -> Result<Vec<String>, ArchiveError> {
        match self.journal()? {
            (_, true) => series::monitors(&self.path),
            (events, false) => series::monitors_of(events),
        }
    }

    /// All rows of one monitor.
    ///
    /// # Errors
    /// [`ArchiveError::NoSeries`] with the nearest name; files that are missing or damaged.
    pub fn series(&self, monitor: &str) -> Result<Series, ArchiveError> {
        let found = match self.journal()? {
            (_, true) if self.path.join(series_file(monitor)).exists() => {
                Some(series::read(&self.path, monitor)?)
            }
            (_, true) => None,
            (events, false) => series::read_of(events, monitor)?,
        };
        found.map_or_else(|| Err(self.no_series(monitor, &self.monitors()?)), Ok)
    }

    /// The cases that have samples of call stacks, by their index in the plan.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn profiled(&self) -> Result<Vec<u32>, ArchiveError> {
        let plan = manifest::read(&self.path)?.plan;
        match self.journal()? {
            (_, true) => Ok(stacks::cases(&self.path, &plan)),
            (events, false) => stacks::cases_of(events, &plan),
        }
    }

    /// The sampled call stacks of one case.
    ///
    /// # Errors
    /// [`ArchiveError::NoStacks`] where it was not profiled; files that are missing or damaged.
    pub fn profile(&self, case: u32) -> Result<Profile, ArchiveError> {
        if !self.profiled()?.contains(&case) {
            return Err(ArchiveError::NoStacks { id: self.id.clone(), case });
        }
        match self.journal()? {
            (events, true) => stacks::read(&self.path, case, events),
            (events, false) => stacks::read_of(&self.path, events, case, &manifest::read(&self.path)?.plan),
        }
    }

    /// The table of samples of a closed run, a Parquet file.
    ///
    /// # Errors
    /// [`ArchiveError::Live`] while it is recorded; [`ArchiveError::Damaged`] of a run that was never closed.
    pub fn samples_file(&self) -> Result<PathBuf, ArchiveError> {
        let file = self.path.join(SAMPLES);
        match self.status()? {
            Status::Running => Err(ArchiveError::Live { id: self.id.clone() }),
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
    /// As [`RunDir::series`].
    pub fn spans(&self, monitor: &str) -> Result<Spans, ArchiveError> {
        let (_, is_closed) = self.journal()?;
        if is_closed && self.path.join(series_file(monitor)).exists() {
            return series::spans(&self.path, monitor);
        }
        Ok(Spans::of(&self.series(monitor)?))
    }

    /// The tracers that wrote operations down, sorted; none for a run that is not closed.
    ///
    /// # Errors
    /// Files that are damaged, or newer than this program.
    pub fn tracers(&self) -> Result<Vec<String>, ArchiveError> {
        traces::tracers(&self.path)
    }

    /// What a tracer said about each iteration that it traced, in order of time.
    ///
    /// # Errors
    /// [`ArchiveError::NoTrace`]; files that are missing or damaged.
    pub fn traced(&self, tracer: &str) -> Result<Vec<Traced>, ArchiveError> {
        traces::traced(&self.path, &self.id, tracer)
    }

    /// Every operation of one iteration.
    ///
    /// # Errors
    /// [`ArchiveError::NoTrace`] where there are none of this slot; files that are missing or damaged.
    pub fn operations(&self, tracer: &str, slot: u32) -> Result<Operations, ArchiveError> {
        traces::operations(&self.path, &self.id, tracer, slot)
    }

    /// The I/O of each iteration in which it was traced, with the iteration's slot.
    ///
    /// # Errors
    /// [`ArchiveError::NoIo`]; files that are missing or damaged.
    pub fn io(&self) -> Result<Vec<(u32, IoRecording)>, ArchiveError> {
        io::read(&self.path, &self.id)
    }

    /// What the command `name` printed in `slot` (`None`: in no slot, such as `mkfs`); `None` if nothing.
    ///
    /// # Errors
    /// Files that are missing, damaged, or newer than this program.
    pub fn output(&self, slot: Option<u32>, name: &str) -> Result<Option<String>, ArchiveError> {
        match self.journal()? {
            (_, true) => outputs::find(outputs::open(&self.path)?, slot, name),
            (events, false) => outputs::find(events, slot, name),
        }
    }

    /// The journal's events. Those of a closed run lack rows and outputs, which its tables hold.
    ///
    /// # Errors
    /// A journal that is missing.
    pub fn events(&self) -> Result<Events, ArchiveError> {
        Events::open(&self.path.join(JOURNAL))
    }

    /// How many lines of the journal are torn or damaged and left out. A run that was recovered says so
    /// among its warnings instead.
    ///
    /// # Errors
    /// A journal that cannot be read.
    pub fn damage(&self) -> Result<u64, ArchiveError> {
        let mut events = self.events()?;
        events.by_ref().try_for_each(|event| event.map(drop))?;
        Ok(events.damaged())
    }

    /// The journal, and whether the run is closed. Opened in this order because closing replaces the
    /// journal last: what is open is whole as long as the manifest calls the run running afterwards.
    fn journal(&self) -> Result<(Events, bool), ArchiveError> {
        let events = self.events()?;
        Ok((events, manifest::head(&self.path)?.status != Status::Running))
    }

    fn no_series(&self, monitor: &str, known: &[String]) -> ArchiveError {
        let hint = match known {
            [] => "no monitor watched it; a study names those that do under [monitors]".into(),
            known => {
                let nearest = perflab_model::nearest::hint(monitor, known.iter().map(String::as_str));
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
const NOTES: &[&str] = &[kind::GAP, kind::WARNING, kind::CLOCK];
/// What a record is made of.
const RECORD: &[&str] =
    &[kind::GAP, kind::WARNING, kind::CLOCK, kind::SAMPLE, kind::ITERATION_ENDED, kind::FACTS];

fn add(record: &mut RunRecord, event: Event) {
    match event.what {
        What::Sample(sample) => record.samples.push(sample),
        What::IterationEnded { slot, outcome, start, end } => {
            record.iterations.push(Iteration { target: event.target, slot, outcome, start, end });
        }
        What::Gap(gap) => add_gap(&mut record.gaps, gap),
        What::Clock(clock) => record.clock_bounds.push(clock.bound),
        What::Warning { message, advice } => record.warnings.push(Advice { message, advice }),
        What::Facts(facts) => record.manifest.facts.0.extend(facts.0),
        _ => {}
    }
}

/// A gap is told when it opens and again when it closes: the second telling replaces the first.
fn add_gap(gaps: &mut Vec<Gap>, gap: Gap) {
    match gaps.iter_mut().find(|old| gap.closes(old)) {
        Some(old) => *old = gap,
        None => gaps.push(gap),
    }
}

/// What a stored status means now.
pub(crate) fn standing(run: &Path, stored: Status) -> Status {
    match stored {
        Status::Running if !lock::is_held(run) => Status::Interrupted,
        other => other,
    }
}
