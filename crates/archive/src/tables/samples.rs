//! `samples.parquet` and `iterations.parquet` (every iteration that ended, warm-ups included, and how), and the columns
//! that say which case a row belongs to.

use std::collections::HashSet;
use std::path::Path;

use perflab_model::column::{
    ColumnKind, ColumnType,
    ColumnType::{Boolean, Float, Int, Int32, Text},
};
use perflab_model::table::StoredValue;
use perflab_model::{
    BlockLayouts, Case, ColumnRef, ColumnSpec, DeclaredColumn, Direction, IterationRecord, Manifest, Nanos,
    Outcome, RowSchema, RunPlan, Sample, SharedStr, Slot, TypedTable, TypedTableBuilder, Unit,
};

use crate::error::ArchiveError;
use crate::parquet::{ParquetReader, ParquetWriter};
use crate::run_layout::{ITERATIONS, SAMPLES};

/// A row of `samples.parquet`: a measured value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleRow;

impl RowSchema for SampleRow {
    const NAME: &'static str = "samples";
    const COLUMNS: &'static [DeclaredColumn] = &[
        key("boot", Int32, "which boot of the target within the run, from 0"),
        TARGET,
        CASE,
        WORKLOAD,
        POINT,
        key("iteration", Int32, "which measured iteration of the case, from 0"),
        key("metric", Text, "the metric's name, unique within the workload"),
        value("value", Float, "see column unit", "the measured value, in the unit of column `unit`"),
        key("unit", Text, "the unit of the value"),
        key("direction", Text, "higher, lower or neither: which way is good"),
        value("primary", Boolean, "1", "whether the metric decides (true) or explains (false)"),
        LAYOUT,
        value(
            "start_ns",
            Int,
            "ns",
            "when the iteration began, CLOCK_MONOTONIC of the machine that recorded",
        ),
        value("end_ns", Int, "ns", "when the iteration ended, CLOCK_MONOTONIC of the machine that recorded"),
    ];
}

impl SampleRow {
    const BOOT: ColumnRef<Self, i32> = ColumnRef::named("boot");
    const ITERATION: ColumnRef<Self, i32> = ColumnRef::named("iteration");
    const METRIC: ColumnRef<Self, str> = ColumnRef::named("metric");
    const VALUE: ColumnRef<Self, f64> = ColumnRef::named("value");
    const UNIT: ColumnRef<Self, str> = ColumnRef::named("unit");
    const DIRECTION: ColumnRef<Self, str> = ColumnRef::named("direction");
    const PRIMARY: ColumnRef<Self, bool> = ColumnRef::named("primary");
    const START: ColumnRef<Self, i64> = ColumnRef::named("start_ns");
    const END: ColumnRef<Self, i64> = ColumnRef::named("end_ns");

    /// The columns that are read.
    const READ: [&str; 11] = [
        Self::BOOT.name(),
        <Self as CaseRow>::TARGET.name(),
        <Self as CaseRow>::CASE.name(),
        Self::ITERATION.name(),
        Self::METRIC.name(),
        Self::VALUE.name(),
        Self::UNIT.name(),
        Self::DIRECTION.name(),
        Self::PRIMARY.name(),
        Self::START.name(),
        Self::END.name(),
    ];
}

const fn key(name: &'static str, stored: ColumnType, meaning: &'static str) -> DeclaredColumn {
    DeclaredColumn::required(name, stored, "1", ColumnKind::Key, meaning)
}

const fn value(
    name: &'static str,
    stored: ColumnType,
    unit: &'static str,
    meaning: &'static str,
) -> DeclaredColumn {
    DeclaredColumn::required(name, stored, unit, ColumnKind::Value, meaning)
}

/// In a run that has targets.
const TARGET: DeclaredColumn = DeclaredColumn::optional(
    "target",
    Text,
    "1",
    ColumnKind::Key,
    "name of the target; missing for the machine that recorded",
);

/// In a run that varies layouts.
const LAYOUT: DeclaredColumn = DeclaredColumn::optional(
    "layout",
    Int32,
    "1",
    ColumnKind::Key,
    "index into plan.layouts of run.json; the column is there where a study varies layouts",
);

const CASE: DeclaredColumn = key("case", Int32, "index into plan.cases of run.json");

const WORKLOAD: DeclaredColumn = key("workload", Text, "the workload's name in the study");

/// Behind it stands a column for each factor.
const POINT: DeclaredColumn =
    key("point", Text, "the matrix parameters, as `size=64 threads=2`; empty without a matrix");

/// Rows that belong to a case and a target.
trait CaseRow: RowSchema + Sized {
    const TARGET: ColumnRef<Self, str> = ColumnRef::named("target");
    const CASE: ColumnRef<Self, i32> = ColumnRef::named("case");
    const WORKLOAD: ColumnRef<Self, str> = ColumnRef::named("workload");
    const POINT: ColumnRef<Self, str> = ColumnRef::named("point");
    const LAYOUT: ColumnRef<Self, i32> = ColumnRef::named("layout");
}

impl CaseRow for SampleRow {}

impl CaseRow for IterationRow {}

/// The columns of such rows for a plan, with or without targets.
fn case_row_columns<R: CaseRow>(plan: &RunPlan, targets: bool) -> Vec<ColumnSpec> {
    let mut columns = Vec::new();
    let is_there = |column: &&DeclaredColumn| match column.name {
        name if name == R::TARGET.name() => targets,
        name if name == R::LAYOUT.name() => !plan.layouts.is_empty(),
        _ => true,
    };
    for column in R::COLUMNS.iter().filter(is_there) {
        columns.push(column.column());
        if column.name == R::POINT.name() {
            columns.extend(plan.factors.keys().map(|name| factor_column(name)));
        }
    }
    columns
}

fn factor_column(name: &str) -> ColumnSpec {
    let meaning = format!("level of the factor {name}; missing where it does not concern the workload");
    ColumnSpec { meaning, ..ColumnSpec::key(&format!("factor.{name}")) }
}

/// The columns of `samples.parquet` for a plan, with or without targets.
pub(crate) fn sample_columns(plan: &RunPlan, targets: bool) -> Vec<ColumnSpec> {
    case_row_columns::<SampleRow>(plan, targets)
}

/// Those of the columns that a run has: one without targets has no column of them.
fn columns_read<R: CaseRow>(columns: &[&'static str], manifest: &Manifest) -> Vec<&'static str> {
    let is_there = |name: &&str| !manifest.targets.is_empty() || *name != R::TARGET.name();
    columns.iter().copied().filter(is_there).collect()
}

/// The targets of each row, as indices; endless `None` in a run that has none.
fn read_targets<R: CaseRow>(
    table: &TypedTable<R>,
    manifest: &Manifest,
) -> Box<dyn Iterator<Item = Option<u32>>> {
    if manifest.targets.is_empty() {
        return Box::new(std::iter::repeat(None));
    }
    let index = |name: &str| {
        let found = manifest.targets.iter().position(|target| target.name == name);
        found.and_then(|index| u32::try_from(index).ok())
    };
    let found: Vec<_> = table.column(R::TARGET).map_texts(index).map(Option::flatten).collect();
    Box::new(found.into_iter())
}

/// The texts of every case and target, made once.
struct CaseTexts {
    cases: Vec<CaseCells>,
    targets: Vec<String>,
    /// Where the factors' columns begin.
    first_factor: usize,
}

/// A case's cells. Those of a case that the plan lacks are empty.
struct CaseCells {
    workload: String,
    point: String,
    levels: Vec<Option<String>>,
}

impl CaseTexts {
    fn new(manifest: &Manifest, columns: &[ColumnSpec]) -> Self {
        let plan = &manifest.plan;
        let levels =
            |case: &Case| plan.factors.keys().map(|factor| case.levels.get(factor).cloned()).collect();
        let text = |case: &Case| CaseCells {
            workload: case.workload.clone(),
            point: format_case_point(case),
            levels: levels(case),
        };
        let point = columns.iter().position(|column| column.name == POINT.name);
        CaseTexts {
            cases: plan.cases.iter().map(text).collect(),
            targets: manifest.targets.iter().map(|target| target.name.clone()).collect(),
            first_factor: point.map_or(columns.len(), |point| point + 1),
        }
    }

    /// Sets what says to which target and case a row belongs.
    fn set<R: CaseRow>(&self, row: &mut TypedTableBuilder<R>, target: Option<u32>, index: u32) {
        let target = target.and_then(|target| self.targets.get(target as usize));
        row.set(R::TARGET, target.map(String::as_str));
        row.set(R::CASE, to_stored_index(index));
        let Some(case) = self.cases.get(index as usize) else { return };
        row.set(R::WORKLOAD, case.workload.as_str());
        row.set(R::POINT, case.point.as_str());
        for (column, level) in (self.first_factor..).zip(&case.levels) {
            level.iter().for_each(|level| row.rows().set(column, StoredValue::Text(level)));
        }
    }
}

fn format_case_point(case: &Case) -> String {
    case.point.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Samples that room is made for at once: what a damaged footer says may be any number.
const MAX_ROWS_AT_ONCE: usize = 1 << 20;

/// `samples.parquet` being written.
pub(crate) struct SampleTableWriter {
    table: ParquetWriter<SampleRow>,
    layouts: BlockLayouts,
    cases: CaseTexts,
}

impl SampleTableWriter {
    pub(crate) fn create(directory: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let columns = sample_columns(&manifest.plan, !manifest.targets.is_empty());
        let cases = CaseTexts::new(manifest, &columns);
        let layouts = BlockLayouts::from_plan(&manifest.plan);
        let table = ParquetWriter::create(&directory.join(SAMPLES), columns, &[])?;
        Ok(SampleTableWriter { table, layouts, cases })
    }

    pub(crate) fn push(&mut self, sample: &Sample) -> Result<(), ArchiveError> {
        let row = self.table.row();
        row.set(SampleRow::BOOT, to_stored_index(sample.boot));
        self.cases.set(row, sample.target, sample.case);
        row.set(SampleRow::ITERATION, to_stored_index(sample.iteration));
        row.set(SampleRow::METRIC, sample.metric.as_str());
        row.set(SampleRow::VALUE, sample.value);
        row.set(SampleRow::UNIT, sample.unit.0.as_str());
        row.set(SampleRow::DIRECTION, sample.direction.name());
        row.set(SampleRow::PRIMARY, sample.primary);
        if let Some(layout) = self.layouts.of_iteration(sample.boot, sample.iteration) {
            row.set(<SampleRow as CaseRow>::LAYOUT, to_stored_index(layout));
        }
        row.set(SampleRow::START, to_stored_nanos(sample.start));
        row.set(SampleRow::END, to_stored_nanos(sample.end));
        self.table.end_row()
    }

    pub(crate) fn close(self) -> Result<(), ArchiveError> {
        self.table.close()
    }
}

/// Times are stored signed, as most readers expect; the clock would need 292 years to notice.
pub(crate) fn to_stored_nanos(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

/// The reverse of [`to_stored_nanos`].
pub(crate) fn from_stored_nanos(time: i64) -> Nanos {
    Nanos(u64::try_from(time).unwrap_or(0))
}

/// All samples of the run at `run`, a row group at a time: its columns stay in the processor's cache.
pub(crate) fn read_samples(run: &Path, manifest: &Manifest) -> Result<Vec<Sample>, ArchiveError> {
    let table = ParquetReader::open(run, SAMPLES)?;
    let mut samples = Vec::with_capacity(table.row_count().min(MAX_ROWS_AT_ONCE));
    for rows in table.read_rows(table.row_groups(), &columns_read::<SampleRow>(&SampleRow::READ, manifest))? {
        append_samples(&mut samples, &rows?, manifest);
    }
    Ok(samples)
}

fn append_samples(samples: &mut Vec<Sample>, rows: &TypedTable<SampleRow>, manifest: &Manifest) {
    let mut metrics = rows.column(SampleRow::METRIC).map_texts(SharedStr::from);
    let mut units = rows.column(SampleRow::UNIT).map_texts(Unit::new);
    let mut directions = rows.column(SampleRow::DIRECTION).map_texts(parse_direction);
    let mut targets = read_targets(rows, manifest);
    // All of these have a value in every row.
    let mut cases = rows.column(SampleRow::CASE).values().iter();
    let mut iterations = rows.column(SampleRow::ITERATION).values().iter();
    let mut values = rows.column(SampleRow::VALUE).values().iter();
    let primaries = rows.column(SampleRow::PRIMARY);
    let mut starts = rows.column(SampleRow::START).values().iter();
    let mut ends = rows.column(SampleRow::END).values().iter();
    let sample = |(row, boot): (usize, &i32)| {
        Some(Sample {
            boot: to_index(*boot),
            target: targets.next()?,
            case: to_index(*cases.next()?),
            iteration: to_index(*iterations.next()?),
            metric: metrics.next()??,
            value: *values.next()?,
            unit: units.next()??,
            direction: directions.next()??,
            primary: primaries.get(row)?,
            start: from_stored_nanos(*starts.next()?),
            end: from_stored_nanos(*ends.next()?),
        })
    };
    samples.extend(rows.column(SampleRow::BOOT).values().iter().enumerate().map_while(sample));
}

/// An index is stored signed, as most readers expect.
pub(crate) fn to_stored_index(index: u32) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

/// An index that was stored as a signed number.
pub(crate) fn to_index(stored: i32) -> u32 {
    u32::try_from(stored).unwrap_or(0)
}

fn parse_direction(text: &str) -> Direction {
    match text {
        "higher" => Direction::Higher,
        "lower" => Direction::Lower,
        _ => Direction::Neither,
    }
}

/// A row of `iterations.parquet`: an iteration that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IterationRow;

impl RowSchema for IterationRow {
    const NAME: &'static str = "iterations";
    const COLUMNS: &'static [DeclaredColumn] = &[
        key("slot", Int32, "index into plan.slots of run.json"),
        TARGET,
        CASE,
        WORKLOAD,
        POINT,
        key(
            "iteration",
            Int32,
            "which iteration of the case, warm-ups and measured ones counted apart, from 0",
        ),
        value("warmup", Boolean, "1", "run, but not measured"),
        value("outcome", Text, "1", "ok, failed, timed-out or interrupted"),
        DeclaredColumn::optional(
            "reason",
            Text,
            "1",
            ColumnKind::Value,
            "why it failed; missing unless it did",
        ),
        DeclaredColumn::optional(
            "limit_ns",
            Int,
            "ns",
            ColumnKind::Value,
            "the time limit that it ran into; missing unless it did",
        ),
        LAYOUT,
        value(
            "start_ns",
            Int,
            "ns",
            "when its process was started, CLOCK_MONOTONIC of the machine that recorded",
        ),
        value("end_ns", Int, "ns", "when it ended, CLOCK_MONOTONIC of the machine that recorded"),
    ];
}

impl IterationRow {
    const SLOT: ColumnRef<Self, i32> = ColumnRef::named("slot");
    const ITERATION: ColumnRef<Self, i32> = ColumnRef::named("iteration");
    const WARMUP: ColumnRef<Self, bool> = ColumnRef::named("warmup");
    const OUTCOME: ColumnRef<Self, str> = ColumnRef::named("outcome");
    const REASON: ColumnRef<Self, str> = ColumnRef::named("reason");
    const LIMIT: ColumnRef<Self, i64> = ColumnRef::named("limit_ns");
    const START: ColumnRef<Self, i64> = ColumnRef::named("start_ns");
    const END: ColumnRef<Self, i64> = ColumnRef::named("end_ns");

    /// The columns that are read.
    const READ: [&str; 7] = [
        Self::SLOT.name(),
        <Self as CaseRow>::TARGET.name(),
        Self::OUTCOME.name(),
        Self::REASON.name(),
        Self::LIMIT.name(),
        Self::START.name(),
        Self::END.name(),
    ];
}

/// The columns of `iterations.parquet` for a plan, with or without targets.
pub(crate) fn iteration_columns(plan: &RunPlan, targets: bool) -> Vec<ColumnSpec> {
    case_row_columns::<IterationRow>(plan, targets)
}

/// The outcome of an iteration that ended well.
const OK: &str = "ok";

/// `iterations.parquet` being written.
pub(crate) struct IterationTableWriter {
    table: ParquetWriter<IterationRow>,
    slots: Vec<Slot>,
    cases: CaseTexts,
}

impl IterationTableWriter {
    pub(crate) fn create(directory: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let columns = iteration_columns(&manifest.plan, !manifest.targets.is_empty());
        let (slots, cases) = (manifest.plan.slots.clone(), CaseTexts::new(manifest, &columns));
        let table = ParquetWriter::create(&directory.join(ITERATIONS), columns, &[])?;
        Ok(IterationTableWriter { table, slots, cases })
    }

    pub(crate) fn push(&mut self, iteration: &IterationRecord) -> Result<(), ArchiveError> {
        let slot = self.slots.get(iteration.slot as usize);
        let row = self.table.row();
        row.set(IterationRow::SLOT, to_stored_index(iteration.slot));
        self.cases.set(row, iteration.target, slot.map_or(u32::MAX, |slot| slot.case));
        row.set(IterationRow::ITERATION, slot.map(|slot| to_stored_index(slot.iteration)));
        row.set(IterationRow::WARMUP, slot.is_some_and(|slot| slot.warmup));
        let (outcome, reason, limit) = outcome_cells(&iteration.outcome);
        row.set(IterationRow::OUTCOME, outcome);
        row.set(IterationRow::REASON, reason);
        row.set(IterationRow::LIMIT, limit.map(to_stored_nanos));
        if let Some(layout) = slot.and_then(|slot| slot.layout) {
            row.set(<IterationRow as CaseRow>::LAYOUT, to_stored_index(layout));
        }
        row.set(IterationRow::START, to_stored_nanos(iteration.start));
        row.set(IterationRow::END, to_stored_nanos(iteration.end));
        self.table.end_row()
    }

    pub(crate) fn close(self) -> Result<(), ArchiveError> {
        self.table.close()
    }
}

/// Outcome, reason and limit.
fn outcome_cells(outcome: &Outcome) -> (&'static str, Option<&str>, Option<Nanos>) {
    match outcome {
        Outcome::Ok => (OK, None, None),
        Outcome::Failed { reason } => ("failed", Some(reason), None),
        Outcome::TimedOut { limit } => ("timed-out", None, Some(*limit)),
        Outcome::Interrupted => ("interrupted", None, None),
    }
}

/// How many iterations the run at `run` has: a look at the footer only.
pub(crate) fn count_iterations(run: &Path) -> Result<usize, ArchiveError> {
    ParquetReader::open(run, ITERATIONS).map(|table| table.row_count())
}

/// How many slots the run at `run` has iterations of: each is one, however many targets took part.
pub(crate) fn count_iterated_slots(run: &Path) -> Result<usize, ArchiveError> {
    let table = ParquetReader::open(run, ITERATIONS)?;
    let mut slots = HashSet::new();
    for rows in table.read_rows::<IterationRow>(table.row_groups(), &[IterationRow::SLOT.name()])? {
        let rows = rows?;
        slots.extend((0..rows.row_count()).filter_map(|row| rows.column(IterationRow::SLOT).get(row)));
    }
    Ok(slots.len())
}

/// How many samples the closed run at `run` has.
pub(crate) fn count_samples(run: &Path) -> Result<usize, ArchiveError> {
    ParquetReader::open(run, SAMPLES).map(|table| table.row_count())
}

/// All iterations of the run at `run`.
pub(crate) fn read_iterations(run: &Path, manifest: &Manifest) -> Result<Vec<IterationRecord>, ArchiveError> {
    let table = ParquetReader::open(run, ITERATIONS)?;
    let mut iterations = Vec::with_capacity(table.row_count().min(MAX_ROWS_AT_ONCE));
    for rows in
        table.read_rows(table.row_groups(), &columns_read::<IterationRow>(&IterationRow::READ, manifest))?
    {
        append_iterations(&mut iterations, &rows?, manifest);
    }
    Ok(iterations)
}

/// The iterations of the run at `run` that did not end well: a look at one column where all did.
pub(crate) fn read_failed_iterations(
    run: &Path,
    manifest: &Manifest,
) -> Result<Vec<IterationRecord>, ArchiveError> {
    let table = ParquetReader::open(run, ITERATIONS)?;
    let outcome = IterationRow::OUTCOME.name();
    let outcomes = table.read_tables(table.row_groups(), |name| name == outcome);
    let columns = columns_read::<IterationRow>(&IterationRow::READ, manifest);
    let mut failed = Vec::new();
    for (group, outcomes) in table.row_groups().zip(outcomes) {
        let all_ok = outcomes?.column::<str>(outcome).is_some_and(|found| found.texts().eq([OK]));
        if !all_ok {
            let mut all = Vec::new();
            for rows in table.read_rows(group..group + 1, &columns)? {
                append_iterations(&mut all, &rows?, manifest);
            }
            failed.extend(all.into_iter().filter(|iteration| iteration.outcome != Outcome::Ok));
        }
    }
    Ok(failed)
}

fn append_iterations(
    iterations: &mut Vec<IterationRecord>,
    rows: &TypedTable<IterationRow>,
    manifest: &Manifest,
) {
    let mut targets = read_targets(rows, manifest);
    let (slots, outcomes) = (rows.column(IterationRow::SLOT), rows.column(IterationRow::OUTCOME));
    let (reasons, limits) = (rows.column(IterationRow::REASON), rows.column(IterationRow::LIMIT));
    let (starts, ends) = (rows.column(IterationRow::START), rows.column(IterationRow::END));
    let iteration = |row: usize| {
        Some(IterationRecord {
            target: targets.next()?,
            slot: to_index(slots.get(row)?),
            outcome: parse_outcome(outcomes.get(row)?, reasons.get(row), limits.get(row)),
            start: from_stored_nanos(starts.get(row)?),
            end: from_stored_nanos(ends.get(row)?),
        })
    };
    iterations.extend((0..rows.row_count()).map_while(iteration));
}

fn parse_outcome(name: &str, reason: Option<&str>, limit: Option<i64>) -> Outcome {
    match name {
        OK => Outcome::Ok,
        "timed-out" => Outcome::TimedOut { limit: from_stored_nanos(limit.unwrap_or(0)) },
        "interrupted" => Outcome::Interrupted,
        _ => Outcome::Failed { reason: reason.unwrap_or_default().into() },
    }
}
