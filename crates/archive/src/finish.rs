//! From a journal to tables, once, when a run ends or is recovered. Owns the order of the steps, which
//! is what makes a kill at any moment harmless:
//!
//! 1. all tables are written and synced in `finishing/`, which no reader looks into;
//! 2. they are renamed into place, where no reader trusts them yet;
//! 3. `run.json` is replaced by one with the final status: from here on readers use the tables;
//! 4. the journal is replaced by one without rows, stacks and outputs, which the tables hold now.
//!
//! Until step 3 everything is read from the journal, which is untouched.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use perflab_model::series::Gap;
use perflab_model::{Event, Iteration, Manifest, Nanos, Status, What};

use crate::events::{Events, kind, kind_of};
use crate::iterations::IterationWriter;
use crate::layout::{JOURNAL, RAW, STAGE, TABLES};
use crate::outputs::OutputWriter;
use crate::samples::SampleWriter;
use crate::series::SeriesWriter;
use crate::stacks::StackWriter;
use crate::{ArchiveError, checksums, facts, manifest, traces};

/// Closes the run at `run`; its lock must be held. Does nothing twice.
pub(crate) fn close(run: &Path) -> Result<(), ArchiveError> {
    let stored = manifest::read(run)?;
    if stored.status != Status::Running {
        // Killed between the last two steps: the tables stand, only space is to be won.
        return trim(run, &[]);
    }
    let closed = tables(run, stored);
    let notes = closed.inspect_err(|_| discard(run)).map_err(|error| not_closed(run, error))?;
    // The run is complete already. A journal that stays long costs space and nothing else.
    let _ = trim(run, &notes);
    let _ = fs::remove_dir_all(run.join(RAW));
    Ok(())
}

/// Closes a run whose tables are in its stage already, and whose journal has nothing of them but outputs.
pub(crate) fn close_with(run: &Path, stored: Manifest, sinks: Sinks) -> Result<(), ArchiveError> {
    let notes = place(run, stored, sinks)?;
    trim(run, &notes)
}

fn tables(run: &Path, stored: Manifest) -> Result<Vec<Event>, ArchiveError> {
    let stage = run.join(STAGE);
    discard(run);
    fs::create_dir(&stage).map_err(ArchiveError::io("create", &stage))?;
    let sinks = Sinks::create(&stage, &stored)?;
    place(run, stored, sinks)
}

fn place(run: &Path, stored: Manifest, sinks: Sinks) -> Result<Vec<Event>, ArchiveError> {
    let stage = run.join(STAGE);
    let ending = write_tables(run, &stage, &stored, sinks)?;
    for table in TABLES.iter().filter(|table| stage.join(table).exists()) {
        let place = run.join(table);
        fs::rename(stage.join(table), &place).map_err(ArchiveError::io("create", &place))?;
    }
    fs::remove_dir(&stage).map_err(ArchiveError::io("remove", &stage))?;
    let (notes, closed) = ending.into_parts(stored);
    manifest::write(run, &closed)?;
    Ok(notes)
}

/// Removes whatever an earlier attempt left; the journal has it all.
fn discard(run: &Path) {
    for table in TABLES.iter().chain(&[STAGE]) {
        let path = run.join(table);
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

fn not_closed(run: &Path, error: ArchiveError) -> ArchiveError {
    let kept = fs::metadata(run.join(JOURNAL)).map_or(0, |journal| journal.len());
    ArchiveError::Close { path: run.into(), reason: error.to_string(), kept, source: Box::new(error) }
}

/// What the journal says that does not go into a table.
struct Ending {
    last: Nanos,
    status: Status,
    overhead: perflab_model::Overhead,
    facts: perflab_model::Facts,
    misfits: Vec<Gap>,
    damaged: u64,
    traced: Vec<(u32, String)>,
}

impl Ending {
    fn of(stored: &Manifest) -> Self {
        let (overhead, facts) = (stored.overhead, stored.facts.clone());
        let (last, status) = (stored.anchor.monotonic, Status::Interrupted);
        Ending { last, status, overhead, facts, misfits: Vec::new(), damaged: 0, traced: Vec::new() }
    }

    /// Events to be added to the journal, and the manifest of the closed run.
    fn into_parts(self, stored: Manifest) -> (Vec<Event>, Manifest) {
        let at = self.last;
        let damage = (self.damaged > 0).then(|| Event::new(at, damage(self.damaged)));
        let gaps = self.misfits.into_iter().map(|gap| Event::new(at, What::Gap(gap)));
        let notes = gaps.chain(damage).collect();
        let (status, overhead, facts) = (self.status, self.overhead, self.facts);
        (notes, Manifest { status, overhead, facts, ..stored })
    }
}

fn damage(lines: u64) -> What {
    What::Warning {
        message: format!("{lines} torn or damaged lines of the journal were left out"),
        advice:
            "the last moments before the recording process died are missing; repeat the run if they matter"
                .into(),
    }
}

/// The tables of a run being written in its stage.
pub(crate) struct Sinks {
    pub(crate) samples: SampleWriter,
    pub(crate) iterations: IterationWriter,
    pub(crate) series: SeriesWriter,
    pub(crate) stacks: StackWriter,
    outputs: OutputWriter<'static>,
}

impl Sinks {
    pub(crate) fn create(stage: &Path, stored: &Manifest) -> Result<Self, ArchiveError> {
        Ok(Sinks {
            samples: SampleWriter::create(stage, stored)?,
            iterations: IterationWriter::create(stage, stored)?,
            series: SeriesWriter::create(stage)?,
            stacks: StackWriter::create(stage, &stored.plan)?,
            outputs: OutputWriter::create(stage)?,
        })
    }
}

fn write_tables(
    run: &Path,
    stage: &Path,
    stored: &Manifest,
    mut sinks: Sinks,
) -> Result<Ending, ArchiveError> {
    let mut ending = Ending::of(stored);
    let mut events = Events::open(&run.join(JOURNAL))?;
    while events.advance()? {
        if kind_of(events.line()) == Some(kind::OUTPUT) {
            sinks.outputs.push(events.line())?;
        } else if let Some(event) = events.parse() {
            if !take(event, &mut sinks, &mut ending)? {
                events.refuse();
            }
        } else {
            sinks.series.lost();
        }
    }
    ending.damaged = events.damaged();
    sinks.samples.close()?;
    sinks.iterations.close()?;
    sinks.stacks.close()?;
    sinks.outputs.close()?;
    ending.misfits = sinks.series.close()?;
    facts::write(stage, &ending.facts)?;
    traces::write(run, stage, &ending.traced)?;
    checksums::write(stage)?;
    Ok(ending)
}

/// Says whether something could be made of the event.
fn take(event: Event, sinks: &mut Sinks, ending: &mut Ending) -> Result<bool, ArchiveError> {
    ending.last = event.at;
    match event.what {
        What::Sample(sample) => sinks.samples.push(&sample)?,
        What::IterationEnded { slot, outcome, start, end } => {
            sinks.iterations.push(&Iteration { target: event.target, slot, outcome, start, end })?;
        }
        What::SeriesOpened(schema) => sinks.series.opened(&schema)?,
        what @ (What::Rows { .. } | What::Changed { .. }) => {
            return sinks.series.tick(Event { what, ..event });
        }
        What::Stacks(batch) => sinks.stacks.push(&batch)?,
        What::Traced { slot, tracer, .. } => ending.traced.push((slot, tracer)),
        What::Facts(facts) => ending.facts.0.extend(facts.0),
        What::Ended { status, overhead } => (ending.status, ending.overhead) = (closed(status), overhead),
        _ => {}
    }
    Ok(true)
}

/// A closed run is not running, whatever its last event says.
fn closed(status: Status) -> Status {
    if status == Status::Running { Status::Interrupted } else { status }
}

/// Replaces the journal by one without rows, stacks and outputs, with `notes` at its end.
fn trim(run: &Path, notes: &[Event]) -> Result<(), ArchiveError> {
    let path = run.join(JOURNAL);
    let mut events = Events::open(&path)?;
    let fill = |file: &mut fs::File| {
        let mut out = BufWriter::new(file);
        while events.advance().map_err(io::Error::other)? {
            let tabled = [kind::ROWS, kind::CHANGED, kind::STACKS, kind::OUTPUT];
            if !kind_of(events.line()).is_some_and(|kind| tabled.contains(&kind)) {
                out.write_all(events.line())?;
                out.write_all(b"\n")?;
            }
        }
        for note in notes {
            serde_json::to_writer(&mut out, note)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    };
    manifest::replace(&path, fill).map_err(ArchiveError::io("write", &path))
}
