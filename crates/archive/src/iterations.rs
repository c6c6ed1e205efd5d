//! `iterations.parquet`: every iteration that ended, warm-ups included, and how.

use std::path::Path;

use perflab_model::{Iteration, Manifest, Outcome, Plan, Slot};

use crate::ArchiveError;
use crate::layout::ITERATIONS;
use crate::samples::{
    CaseTexts, Targets, case_columns, index, read_targets, signed, target_column, unsigned,
};
use crate::table::{Declaration, Item, Stored, TableReader, TableWriter};

/// The columns of `iterations.parquet` for a plan, with or without targets.
pub(crate) fn columns(plan: &Plan, targets: bool) -> Vec<Declaration> {
    use Stored::{Boolean, Int32, Int64, Text};
    let value = |name, stored, unit, meaning| Declaration::new(name, stored, unit, "value", meaning);
    let key = |name, stored, meaning| Declaration::new(name, stored, "1", "key", meaning);
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

/// `iterations.parquet` being written.
pub(crate) struct IterationWriter {
    table: TableWriter,
    slots: Vec<Slot>,
    targets: Targets,
    cases: CaseTexts,
}

impl IterationWriter {
    pub(crate) fn create(directory: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let columns = columns(&manifest.plan, !manifest.targets.is_empty());
        let table = TableWriter::create(&directory.join(ITERATIONS), &columns, &[])?;
        let slots = manifest.plan.slots.clone();
        Ok(IterationWriter {
            table,
            slots,
            targets: Targets::of(manifest),
            cases: CaseTexts::new(&manifest.plan),
        })
    }

    pub(crate) fn push(&mut self, iteration: &Iteration) -> Result<(), ArchiveError> {
        let slot = self.slots.get(iteration.slot as usize);
        let (outcome, reason, limit) = outcome_cells(&iteration.outcome);
        let after = [
            Item::Int(slot.map_or(0, |slot| i64::from(slot.iteration))),
            Item::Flag(slot.is_some_and(|slot| slot.warmup)),
            Item::Text(outcome),
            reason,
            limit,
            Item::Int(signed(iteration.start)),
            Item::Int(signed(iteration.end)),
        ];
        let before = [Item::Int(i64::from(iteration.slot))];
        let case = self.cases.cells(slot.map_or(u32::MAX, |slot| slot.case));
        let target = self.targets.cell(iteration.target);
        self.table.push(before.into_iter().chain(target).chain(case).chain(after))
    }

    pub(crate) fn close(self) -> Result<(), ArchiveError> {
        self.table.close()
    }
}

fn outcome_cells(outcome: &Outcome) -> (&'static str, Item<'_>, Item<'_>) {
    match outcome {
        Outcome::Ok => ("ok", Item::Missing, Item::Missing),
        Outcome::Failed { reason } => ("failed", Item::Text(reason), Item::Missing),
        Outcome::TimedOut { limit } => ("timed-out", Item::Missing, Item::Int(signed(*limit))),
        Outcome::Interrupted => ("interrupted", Item::Missing, Item::Missing),
    }
}

/// How many iterations the run at `run` has: a look at the footer only.
pub(crate) fn count(run: &Path) -> Result<usize, ArchiveError> {
    TableReader::open(&run.join(ITERATIONS)).map(|table| table.rows())
}

/// All iterations of the run at `run`.
pub(crate) fn read(run: &Path) -> Result<Vec<Iteration>, ArchiveError> {
    let table = TableReader::open(&run.join(ITERATIONS))?;
    let mut outcomes = table.text("outcome", str::to_owned)?.into_iter();
    let mut reasons = table.optional_text("reason")?.into_iter();
    let mut limits = table.optional_int64("limit_ns")?.into_iter();
    let mut starts = table.int64("start_ns")?.into_iter();
    let mut ends = table.int64("end_ns")?.into_iter();
    let mut targets = read_targets(&table, run)?;
    let row = |slot: i32| {
        Some(Iteration {
            target: targets.next()?,
            slot: index(slot),
            outcome: outcome(&outcomes.next()?, reasons.next()?, limits.next()?),
            start: unsigned(starts.next()?),
            end: unsigned(ends.next()?),
        })
    };
    Ok(table.int32("slot")?.into_iter().map_while(row).collect())
}

fn outcome(name: &str, reason: Option<String>, limit: Option<i64>) -> Outcome {
    match name {
        "ok" => Outcome::Ok,
        "timed-out" => Outcome::TimedOut { limit: unsigned(limit.unwrap_or(0)) },
        "interrupted" => Outcome::Interrupted,
        _ => Outcome::Failed { reason: reason.unwrap_or_default() },
    }
}
