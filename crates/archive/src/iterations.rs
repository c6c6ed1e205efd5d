//! `iterations.parquet`: every iteration that ended, warm-ups included, and how.

use std::path::Path;

use perflab_model::{IterationRecord, Manifest, Outcome, RunPlan, Slot};

use crate::ArchiveError;
use crate::layout::ITERATIONS;
use crate::samples::{
    CaseColumns, TargetNames, case_columns, from_stored_nanos, read_targets, target_column, to_index,
    to_stored_nanos,
};
use crate::table::{ParquetReader, ParquetWriter, StorageType, StoredCell, StoredCells, StoredColumn};

/// The columns of `iterations.parquet` for a plan, with or without targets.
pub(crate) fn iteration_columns(plan: &RunPlan, targets: bool) -> Vec<StoredColumn> {
    use StorageType::{Boolean, Int32, Int64, Text};
    let value = |name, stored, unit, meaning| StoredColumn::new(name, stored, unit, "value", meaning);
    let key = |name, stored, meaning| StoredColumn::new(name, stored, "1", "key", meaning);
    let mut columns = vec![key("slot", Int32, "index into plan.slots of run.json")];
    columns.extend(targets.then(target_column));
    columns.extend(case_columns(plan));
    columns.extend([
        key(
            "iteration",
            Int32,
            "which iteration of the case, warm-ups and measured ones counted apart, from 0",
        ),
        value("warmup", Boolean, "1", "run, but not measured"),
        value("outcome", Text, "1", "ok, failed, timed-out or interrupted"),
        value("reason", Text, "1", "why it failed; missing unless it did").optional(),
        value("limit_ns", Int64, "ns", "the time limit that it ran into; missing unless it did").optional(),
        value(
            "start_ns",
            Int64,
            "ns",
            "when its process was started, CLOCK_MONOTONIC of the machine that recorded",
        ),
        value("end_ns", Int64, "ns", "when it ended, CLOCK_MONOTONIC of the machine that recorded"),
    ]);
    columns
}

/// The outcome of an iteration that ended well.
const OK: &str = "ok";
/// Iterations that room is made for at once: what a damaged footer says may be any number.
const MOST_AT_ONCE: usize = 1 << 20;
/// Iterations that are written at once.
const TOGETHER: usize = 1024;

/// `iterations.parquet` being written.
pub(crate) struct IterationTableWriter {
    table: ParquetWriter,
    slots: Vec<Slot>,
    targets: TargetNames,
    cases: CaseColumns,
    /// The first of the iterations that differ in nothing but their numbers, and those numbers.
    alike: Option<(IterationRecord, Option<Slot>)>,
    numbers: IterationNumbers,
}

#[derive(Default)]
struct IterationNumbers {
    slots: Vec<i64>,
    iterations: Vec<i64>,
    starts: Vec<i64>,
    ends: Vec<i64>,
}

impl IterationTableWriter {
    pub(crate) fn create(directory: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let columns = iteration_columns(&manifest.plan, !manifest.targets.is_empty());
        let table = ParquetWriter::create(&directory.join(ITERATIONS), &columns, &[])?;
        let slots = manifest.plan.slots.clone();
        let (targets, cases) = (TargetNames::from_manifest(manifest), CaseColumns::new(&manifest.plan));
        Ok(IterationTableWriter {
            table,
            slots,
            targets,
            cases,
            alike: None,
            numbers: IterationNumbers::default(),
        })
    }

    pub(crate) fn push(&mut self, iteration: &IterationRecord) -> Result<(), ArchiveError> {
        let slot = self.slots.get(iteration.slot as usize).copied();
        let next = (iteration, slot);
        let goes_on =
            self.alike.as_ref().is_some_and(|(one, slot)| has_same_iteration_cells((one, *slot), next));
        if !goes_on || self.numbers.slots.len() == TOGETHER {
            self.flush()?;
            self.alike = Some((iteration.clone(), slot));
        }
        self.numbers.slots.push(i64::from(iteration.slot));
        self.numbers.iterations.push(slot.map_or(0, |slot| i64::from(slot.iteration)));
        self.numbers.starts.push(to_stored_nanos(iteration.start));
        self.numbers.ends.push(to_stored_nanos(iteration.end));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        let Some((iteration, slot)) = &self.alike else { return Ok(()) };
        let (outcome, reason, limit) = outcome_cells(&iteration.outcome);
        let IterationNumbers { slots, iterations, starts, ends } = &self.numbers;
        let target = self.targets.cell(iteration.target);
        let case = self.cases.cells(slot.map_or(u32::MAX, |slot| slot.case));
        let warmup = StoredCell::Flag(slot.is_some_and(|slot| slot.warmup));
        let same = [warmup, StoredCell::Text(outcome), reason, limit].map(StoredCells::Same);
        let cells = std::iter::once(StoredCells::Ints(slots))
            .chain(target.into_iter().chain(case).map(StoredCells::Same))
            .chain([StoredCells::Ints(iterations)])
            .chain(same)
            .chain([StoredCells::Ints(starts), StoredCells::Ints(ends)]);
        self.table.extend_columns(slots.len(), cells)?;
        self.numbers = IterationNumbers::default();
        Ok(())
    }

    pub(crate) fn close(mut self) -> Result<(), ArchiveError> {
        self.flush()?;
        self.table.close()
    }
}

fn has_same_iteration_cells(
    one: (&IterationRecord, Option<Slot>),
    next: (&IterationRecord, Option<Slot>),
) -> bool {
    let place = |slot: Option<Slot>| slot.map(|slot| (slot.case, slot.warmup));
    place(one.1) == place(next.1) && one.0.target == next.0.target && one.0.outcome == next.0.outcome
}

fn outcome_cells(outcome: &Outcome) -> (&'static str, StoredCell<'_>, StoredCell<'_>) {
    match outcome {
        Outcome::Ok => (OK, StoredCell::Missing, StoredCell::Missing),
        Outcome::Failed { reason } => ("failed", StoredCell::Text(reason), StoredCell::Missing),
        Outcome::TimedOut { limit } => {
            ("timed-out", StoredCell::Missing, StoredCell::Int(to_stored_nanos(*limit)))
        }
        Outcome::Interrupted => ("interrupted", StoredCell::Missing, StoredCell::Missing),
    }
}

/// How many iterations the run at `run` has: a look at the footer only.
pub(crate) fn count_iterations(run: &Path) -> Result<usize, ArchiveError> {
    ParquetReader::open(run, ITERATIONS).map(|table| table.row_count())
}

/// All iterations of the run at `run`.
pub(crate) fn read_iterations(run: &Path, manifest: &Manifest) -> Result<Vec<IterationRecord>, ArchiveError> {
    let table = ParquetReader::open(run, ITERATIONS)?;
    let mut iterations = Vec::with_capacity(table.row_count().min(MOST_AT_ONCE));
    table.row_groups().try_for_each(|part| append_iterations(&mut iterations, &part, manifest))?;
    Ok(iterations)
}

/// The iterations of the run at `run` that did not end well: a look at one column where all did.
pub(crate) fn read_failed_iterations(
    run: &Path,
    manifest: &Manifest,
) -> Result<Vec<IterationRecord>, ArchiveError> {
    let table = ParquetReader::open(run, ITERATIONS)?;
    let mut failed = Vec::new();
    for part in table.row_groups() {
        if part.text_runs("outcome")?.iter().any(|(outcome, _)| outcome != OK) {
            let mut all = Vec::new();
            append_iterations(&mut all, &part, manifest)?;
            failed.extend(all.into_iter().filter(|iteration| iteration.outcome != Outcome::Ok));
        }
    }
    Ok(failed)
}

fn append_iterations(
    iterations: &mut Vec<IterationRecord>,
    table: &ParquetReader,
    manifest: &Manifest,
) -> Result<(), ArchiveError> {
    let mut outcomes = read_outcomes(table)?;
    let mut starts = table.int64("start_ns")?.into_iter();
    let mut ends = table.int64("end_ns")?.into_iter();
    let mut targets = read_targets(table, manifest)?;
    let row = |slot: i32| {
        Some(IterationRecord {
            target: targets.next()?,
            slot: to_index(slot),
            outcome: outcomes.next()?,
            start: from_stored_nanos(starts.next()?),
            end: from_stored_nanos(ends.next()?),
        })
    };
    iterations.extend(table.int32("slot")?.into_iter().map_while(row));
    Ok(())
}

/// How each iteration ended. Reasons and limits are looked up only where one did not end well.
fn read_outcomes(table: &ParquetReader) -> Result<Box<dyn Iterator<Item = Outcome>>, ArchiveError> {
    let names = table.text_runs("outcome")?;
    if let [(all, times)] = &names[..]
        && all == OK
    {
        return Ok(Box::new(std::iter::repeat_n(Outcome::Ok, *times)));
    }
    let names = names.into_iter().flat_map(|(name, times)| std::iter::repeat_n(name, times));
    let reasons = table.optional_text("reason")?.into_iter();
    let limits = table.optional_int64("limit_ns")?.into_iter();
    Ok(Box::new(
        names.zip(reasons).zip(limits).map(|((name, reason), limit)| parse_outcome(&name, reason, limit)),
    ))
}

fn parse_outcome(name: &str, reason: Option<String>, limit: Option<i64>) -> Outcome {
    match name {
        OK => Outcome::Ok,
        "timed-out" => Outcome::TimedOut { limit: from_stored_nanos(limit.unwrap_or(0)) },
        "interrupted" => Outcome::Interrupted,
        _ => Outcome::Failed { reason: reason.unwrap_or_default() },
    }
}
