//! From journal to tables, once, when a run ends or is recovered, in four steps that survive any kill:
//!
//! 1. all tables are written and synced in `finishing/`, which no reader looks into;
//! 2. they are renamed into place, where no reader trusts them yet;
//! 3. `run.json` is replaced by one with the final status: from here on readers use the tables;
//! 4. the journal is replaced by one without rows, stacks, outputs and documents, which other files hold now.
//!
//! Until step 3 everything is read from the journal, which is untouched.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use perflab_model::operation::TracedIteration;
use perflab_model::series::SeriesGap;
use perflab_model::{
    DuetCheck, IterationRecord, Manifest, Nanos, RunEvent, RunEventKind, RunStatus, TargetVariantRecord,
};

use crate::document_log::DocumentLogWriter;
use crate::error::ArchiveError;
use crate::journal::{JournalReader, OutputLogWriter, event_kind, kind};
use crate::run_layout::{DISK_FULL, JOURNAL, RAW, STAGE, TABLES, is_marked_disk_full};
use crate::tables::edges::EdgeTableWriter;
use crate::tables::operations;
use crate::tables::samples::{IterationTableWriter, SampleTableWriter};
use crate::tables::series::SeriesTableWriter;
use crate::tables::stacks::StackTablesWriter;
use crate::{checksums, manifest};

/// Why a run that nobody records any more, and that was not closed, ended before its plan did.
pub(crate) fn cut_status(run: &Path) -> RunStatus {
    if is_marked_disk_full(run) { RunStatus::DiskFull } else { RunStatus::Interrupted }
}

/// Closes the run at `run`, which is `cut` if its journal does not say how it ended; its lock must be held. Does nothing twice.
pub(crate) fn close_run(run: &Path, cut: RunStatus) -> Result<(), ArchiveError> {
    let stored = manifest::read_manifest(run)?;
    if stored.status != RunStatus::Running {
        // Killed between the last two steps: the tables stand, only space is to be won.
        return trim_journal(run, &[]);
    }
    let closed = write_staged_tables(run, stored, cut);
    let notes =
        closed.inspect_err(|_| discard_staged_tables(run)).map_err(|error| close_error(run, error))?;
    // The run is complete already. A journal that stays long costs space and nothing else.
    let _ = trim_journal(run, &notes);
    let _ = fs::remove_dir_all(run.join(RAW));
    let _ = fs::remove_file(run.join(DISK_FULL));
    Ok(())
}

/// Closes a run whose tables are in its stage already, and whose journal has nothing of them but outputs.
pub(crate) fn close_bulk_run(run: &Path, stored: Manifest, sinks: RunTables) -> Result<(), ArchiveError> {
    let notes = publish_tables(run, stored, sinks, RunStatus::Interrupted)?;
    trim_journal(run, &notes)
}

fn write_staged_tables(run: &Path, stored: Manifest, cut: RunStatus) -> Result<Vec<RunEvent>, ArchiveError> {
    let stage = run.join(STAGE);
    discard_staged_tables(run);
    fs::create_dir(&stage).map_err(ArchiveError::io("create", &stage))?;
    let sinks = RunTables::create(&stage, &stored)?;
    publish_tables(run, stored, sinks, cut)
}

fn publish_tables(
    run: &Path,
    stored: Manifest,
    sinks: RunTables,
    cut: RunStatus,
) -> Result<Vec<RunEvent>, ArchiveError> {
    let stage = run.join(STAGE);
    let ending = fill_tables(run, &stage, ClosingFacts::from_manifest(&stored, cut), sinks)?;
    for table in TABLES.iter().filter(|table| stage.join(table).exists()) {
        let place = run.join(table);
        fs::rename(stage.join(table), &place).map_err(ArchiveError::io("create", &place))?;
    }
    fs::remove_dir(&stage).map_err(ArchiveError::io("remove", &stage))?;
    let (notes, closed) = ending.into_parts(stored);
    manifest::write_manifest(run, &closed)?;
    Ok(notes)
}

/// Removes whatever an earlier attempt left; the journal has it all.
fn discard_staged_tables(run: &Path) {
    for table in TABLES.iter().chain(&[STAGE]) {
        let path = run.join(table);
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

fn close_error(run: &Path, error: ArchiveError) -> ArchiveError {
    let kept = fs::metadata(run.join(JOURNAL)).map_or(0, |journal| journal.len());
    ArchiveError::Close { path: run.into(), reason: error.to_string(), kept, source: Box::new(error) }
}

/// What the journal says that does not go into a table.
struct ClosingFacts {
    last: Nanos,
    status: RunStatus,
    overhead: perflab_model::Overhead,
    facts: perflab_model::Facts,
    misfits: Vec<SeriesGap>,
    damaged: u64,
    traced: Vec<(TracedIteration, String)>,
    variants: Vec<TargetVariantRecord>,
    duet: Option<Box<DuetCheck>>,
}

impl ClosingFacts {
    fn from_manifest(stored: &Manifest, cut: RunStatus) -> Self {
        let (overhead, facts) = (stored.overhead, stored.facts.clone());
        ClosingFacts {
            last: stored.anchor.monotonic,
            status: cut,
            overhead,
            facts,
            misfits: Vec::new(),
            damaged: 0,
            traced: Vec::new(),
            variants: Vec::new(),
            duet: None,
        }
    }

    /// Events to be added to the journal, and the manifest of the closed run.
    fn into_parts(self, stored: Manifest) -> (Vec<RunEvent>, Manifest) {
        let at = self.last;
        let damage = (self.damaged > 0).then(|| RunEvent::new(at, damage_warning(self.damaged)));
        let gaps = self.misfits.into_iter().map(|gap| RunEvent::new(at, RunEventKind::Gap(gap)));
        let notes = gaps.chain(damage).collect();
        let (status, overhead, facts) = (self.status, self.overhead, self.facts);
        (notes, Manifest { status, overhead, facts, variants: self.variants, duet: self.duet, ..stored })
    }
}

fn damage_warning(lines: u64) -> RunEventKind {
    RunEventKind::Warning {
        message: format!("{lines} torn or damaged lines of the journal were left out"),
        advice:
            "the last moments before the recording process died are missing; repeat the run if they matter"
                .into(),
    }
}

/// The tables of a run being written in its stage.
pub(crate) struct RunTables {
    pub(crate) samples: SampleTableWriter,
    pub(crate) iterations: IterationTableWriter,
    pub(crate) series: SeriesTableWriter,
    pub(crate) edges: EdgeTableWriter,
    pub(crate) stacks: StackTablesWriter,
    outputs: OutputLogWriter<'static>,
    documents: DocumentLogWriter,
}

impl RunTables {
    pub(crate) fn create(stage: &Path, stored: &Manifest) -> Result<Self, ArchiveError> {
        Ok(RunTables {
            samples: SampleTableWriter::create(stage, stored)?,
            iterations: IterationTableWriter::create(stage, stored)?,
            series: SeriesTableWriter::create(stage)?,
            edges: EdgeTableWriter::new(stage),
            stacks: StackTablesWriter::create(stage, &stored.plan)?,
            outputs: OutputLogWriter::create(stage)?,
            documents: DocumentLogWriter::new(stage),
        })
    }
}

fn fill_tables(
    run: &Path,
    stage: &Path,
    mut ending: ClosingFacts,
    mut sinks: RunTables,
) -> Result<ClosingFacts, ArchiveError> {
    let mut events = JournalReader::open(&run.join(JOURNAL))?;
    while events.next_line()? {
        if event_kind(events.line()) == Some(kind::OUTPUT) {
            sinks.outputs.push(events.line())?;
        } else if event_kind(events.line()) == Some(kind::DOCUMENT) {
            sinks.documents.push(events.line())?;
        } else if let Some(event) = events.parse_event() {
            if !route_event(event, &mut sinks, &mut ending)? {
                events.count_damaged();
            }
        } else {
            sinks.series.mark_lost();
        }
    }
    ending.damaged = events.damaged_lines();
    sinks.samples.close()?;
    sinks.iterations.close()?;
    sinks.stacks.close()?;
    sinks.outputs.close()?;
    sinks.documents.close()?;
    ending.misfits = sinks.series.close()?;
    ending.misfits.extend(sinks.edges.close()?);
    manifest::write_facts_file(stage, &ending.facts)?;
    operations::write_operation_tables(run, stage, &ending.traced)?;
    checksums::write_checksums(stage)?;
    Ok(ending)
}

/// Says whether something could be made of the event.
fn route_event(
    event: RunEvent,
    sinks: &mut RunTables,
    ending: &mut ClosingFacts,
) -> Result<bool, ArchiveError> {
    ending.last = event.at;
    match event.what {
        RunEventKind::Sample(sample) => sinks.samples.push(&sample)?,
        RunEventKind::IterationEnded { slot, outcome, start, end } => {
            sinks.iterations.push(&IterationRecord { target: event.target, slot, outcome, start, end })?;
        }
        RunEventKind::SeriesOpened(schema) => {
            sinks.series.open_table(&schema)?;
            sinks.edges.note_schema(&schema);
        }
        RunEventKind::Edge(reading) => sinks.edges.push(event.at, &reading)?,
        what @ (RunEventKind::Rows { .. } | RunEventKind::Changed { .. }) => {
            return sinks.series.push_tick(RunEvent { what, ..event });
        }
        RunEventKind::Stacks(batch) => sinks.stacks.push(&batch)?,
        RunEventKind::Traced { slot, tracer, .. } => {
            ending.traced.push((TracedIteration { slot, target: event.target }, tracer));
        }
        RunEventKind::Facts(facts) => ending.facts.extend(facts),
        RunEventKind::VariantBegan(variant) => ending.variants.push(*variant),
        RunEventKind::DuetChecked(check) => ending.duet = Some(check),
        RunEventKind::Ended { status, overhead } => {
            (ending.status, ending.overhead) = (final_status(status), overhead)
        }
        _ => {}
    }
    Ok(true)
}

/// A closed run is not running, whatever its last event says.
fn final_status(status: RunStatus) -> RunStatus {
    if status == RunStatus::Running { RunStatus::Interrupted } else { status }
}

/// Replaces the journal by one without rows, stacks, outputs and documents, with `notes` at its end.
fn trim_journal(run: &Path, notes: &[RunEvent]) -> Result<(), ArchiveError> {
    let path = run.join(JOURNAL);
    let mut events = JournalReader::open(&path)?;
    let fill = |file: &mut fs::File| {
        let mut out = BufWriter::new(file);
        while events.next_line().map_err(io::Error::other)? {
            let tabled = [kind::ROWS, kind::CHANGED, kind::EDGE, kind::STACKS, kind::OUTPUT, kind::DOCUMENT];
            if !event_kind(events.line()).is_some_and(|kind| tabled.contains(&kind)) {
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
    manifest::replace_file(&path, fill).map_err(ArchiveError::io("write", &path))
}
