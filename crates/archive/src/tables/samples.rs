//! `samples.parquet` and `iterations.parquet` (every iteration that ended, warm-ups included, and how), and the columns
//! that say which case a row belongs to.

use std::path::Path;

use perflab_model::{
    Case, Direction, IterationRecord, Manifest, Nanos, Outcome, RunPlan, Sample, Slot, Unit,
};

use crate::error::ArchiveError;
use crate::parquet_reader::ParquetReader;
use crate::parquet_writer::{ParquetWriter, StorageType, StoredCell, StoredCells, StoredColumn};
use crate::run_layout::{ITERATIONS, SAMPLES};

/// The columns of `samples.parquet` for a plan, with or without targets.
pub(crate) fn sample_columns(plan: &RunPlan, targets: bool) -> Vec<StoredColumn> {
    use StorageType::{Boolean, Double, Int32, Int64, Text};
    let value = |name, stored, unit, meaning| StoredColumn::new(name, stored, unit, "value", meaning);
    let key = |name, stored, meaning| StoredColumn::new(name, stored, "1", "key", meaning);
    let mut columns = vec![key("boot", Int32, "which boot of the target within the run, from 0")];
    columns.extend(targets.then(target_column));
    columns.extend(case_columns(plan));
    columns.extend([
        key("iteration", Int32, "which measured iteration of the case, from 0"),
        key("metric", Text, "the metric's name, unique within the workload"),
        value("value", Double, "see column unit", "the measured value, in the unit of column `unit`"),
        key("unit", Text, "the unit of the value"),
        key("direction", Text, "higher, lower or neither: which way is good"),
        value("primary", Boolean, "1", "whether the metric decides (true) or explains (false)"),
        value(
            "start_ns",
            Int64,
            "ns",
            "when the iteration began, CLOCK_MONOTONIC of the machine that recorded",
        ),
        value(
            "end_ns",
            Int64,
            "ns",
            "when the iteration ended, CLOCK_MONOTONIC of the machine that recorded",
        ),
    ]);
    columns
}

/// `target`, in a run that has targets.
fn target_column() -> StoredColumn {
    let meaning = "name of the target; missing for the machine that recorded";
    StoredColumn::new("target", StorageType::Text, "1", "key", meaning).optional()
}

/// The names of a run's targets, where it has any but the machine that recorded.
struct TargetNames(Vec<String>);

impl TargetNames {
    pub(crate) fn from_manifest(manifest: &Manifest) -> Self {
        TargetNames(manifest.targets.iter().map(|target| target.name.clone()).collect())
    }

    /// The cell of column `target`; none where there is no such column.
    pub(crate) fn cell(&self, target: Option<u32>) -> Option<StoredCell<'_>> {
        let known = target.and_then(|index| self.0.get(index as usize));
        let cell = || known.map_or(StoredCell::Missing, |name| StoredCell::Text(name));
        (!self.0.is_empty()).then(cell)
    }
}

/// The cells of [`target_column`] as indices, row by row; endless `None` without that column.
fn read_targets<'a>(
    table: &ParquetReader,
    manifest: &'a Manifest,
) -> Result<Box<dyn Iterator<Item = Option<u32>> + 'a>, ArchiveError> {
    if manifest.targets.is_empty() {
        return Ok(Box::new(std::iter::repeat(None)));
    }
    let index = |name: Option<String>| {
        let found = manifest.targets.iter().position(|target| Some(&target.name) == name.as_ref());
        found.and_then(|index| u32::try_from(index).ok())
    };
    Ok(Box::new(table.optional_text("target")?.into_iter().map(index)))
}

/// `case`, `workload`, `point` and a column for each factor.
fn case_columns(plan: &RunPlan) -> Vec<StoredColumn> {
    let key = |name: &str, stored, meaning: &str| StoredColumn::new(name, stored, "1", "key", meaning);
    let mut columns = vec![
        key("case", StorageType::Int32, "index into plan.cases of run.json"),
        key("workload", StorageType::Text, "the workload's name in the study"),
        key(
            "point",
            StorageType::Text,
            "the matrix parameters, as `size=64 threads=2`; empty without a matrix",
        ),
    ];
    let factor = |name| {
        let meaning = format!("level of the factor {name}; missing where it does not concern the workload");
        key(&format!("factor.{name}"), StorageType::Text, &meaning).optional()
    };
    columns.extend(plan.factors.keys().map(factor));
    columns
}

/// The texts of every case, made once.
struct CaseColumns {
    cases: Vec<CaseCells>,
    factors: usize,
}

/// A case's cells. Those of a case that the plan lacks are empty.
struct CaseCells {
    workload: String,
    point: String,
    levels: Vec<Option<String>>,
}

impl CaseColumns {
    pub(crate) fn new(plan: &RunPlan) -> Self {
        let levels =
            |case: &Case| plan.factors.keys().map(|factor| case.levels.get(factor).cloned()).collect();
        let text = |case: &Case| CaseCells {
            workload: case.workload.clone(),
            point: format_case_point(case),
            levels: levels(case),
        };
        CaseColumns { cases: plan.cases.iter().map(text).collect(), factors: plan.factors.len() }
    }

    /// The cells of [`case_columns`]; empty texts for a case that the plan lacks.
    pub(crate) fn cells(&self, index: u32) -> impl Iterator<Item = StoredCell<'_>> {
        let case = self.cases.get(index as usize);
        let text = |of: fn(&CaseCells) -> &str| StoredCell::Text(case.map_or("", of));
        let level = move |factor: usize| {
            let level = case.and_then(|case| case.levels.get(factor)?.as_deref());
            level.map_or(StoredCell::Missing, StoredCell::Text)
        };
        let fixed =
            [StoredCell::Int(i64::from(index)), text(|case| &case.workload), text(|case| &case.point)];
        fixed.into_iter().chain((0..self.factors).map(level))
    }
}

fn format_case_point(case: &Case) -> String {
    case.point.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// Samples that room is made for at once: what a damaged footer says may be any number.
const MAX_ROWS_AT_ONCE: usize = 1 << 20;

/// Samples that are written at once.
const ROWS_PER_CHUNK: usize = 1024;

/// `samples.parquet` being written.
pub(crate) struct SampleTableWriter {
    table: ParquetWriter,
    targets: TargetNames,
    cases: CaseColumns,
    /// The first of the samples that differ in nothing but their numbers, and those numbers.
    alike: Option<Sample>,
    iterations: Vec<i64>,
    values: Vec<f64>,
    starts: Vec<i64>,
    ends: Vec<i64>,
}

impl SampleTableWriter {
    pub(crate) fn create(directory: &Path, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let columns = sample_columns(&manifest.plan, !manifest.targets.is_empty());
        let table = ParquetWriter::create(&directory.join(SAMPLES), &columns, &[])?;
        let (targets, cases) = (TargetNames::from_manifest(manifest), CaseColumns::new(&manifest.plan));
        let (iterations, values, starts, ends) = Default::default();
        Ok(SampleTableWriter { table, targets, cases, alike: None, iterations, values, starts, ends })
    }

    pub(crate) fn push(&mut self, sample: &Sample) -> Result<(), ArchiveError> {
        let goes_on = self.alike.as_ref().is_some_and(|first| has_same_sample_cells(first, sample));
        if !goes_on || self.values.len() == ROWS_PER_CHUNK {
            self.flush()?;
            self.alike = Some(sample.clone());
        }
        self.iterations.push(i64::from(sample.iteration));
        self.values.push(sample.value);
        self.starts.push(to_stored_nanos(sample.start));
        self.ends.push(to_stored_nanos(sample.end));
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        let Some(sample) = &self.alike else { return Ok(()) };
        let after = [
            StoredCells::Ints(&self.iterations),
            StoredCells::Same(StoredCell::Text(&sample.metric)),
            StoredCells::Floats(&self.values),
            StoredCells::Same(StoredCell::Text(&sample.unit.0)),
            StoredCells::Same(StoredCell::Text(sample.direction.name())),
            StoredCells::Same(StoredCell::Flag(sample.primary)),
            StoredCells::Ints(&self.starts),
            StoredCells::Ints(&self.ends),
        ];
        let boot = StoredCell::Int(i64::from(sample.boot));
        let target = self.targets.cell(sample.target);
        let before = std::iter::once(boot).chain(target).chain(self.cases.cells(sample.case));
        self.table.extend_columns(self.values.len(), before.map(StoredCells::Same).chain(after))?;
        self.values.clear();
        [&mut self.iterations, &mut self.starts, &mut self.ends].into_iter().for_each(Vec::clear);
        Ok(())
    }

    pub(crate) fn close(mut self) -> Result<(), ArchiveError> {
        self.flush()?;
        self.table.close()
    }
}

fn has_same_sample_cells(one: &Sample, next: &Sample) -> bool {
    let place = |sample: &Sample| (sample.boot, sample.target, sample.case);
    let kind = |sample: &Sample| (sample.direction, sample.primary);
    place(one) == place(next) && kind(one) == kind(next) && one.metric == next.metric && one.unit == next.unit
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
    table.row_groups().try_for_each(|part| append_samples(&mut samples, &part, manifest))?;
    Ok(samples)
}

fn append_samples(
    samples: &mut Vec<Sample>,
    table: &ParquetReader,
    manifest: &Manifest,
) -> Result<(), ArchiveError> {
    let mut metrics = table.name_column("metric")?;
    let mut units = table.name_column("unit")?.map(Unit);
    let mut directions = table.text_column("direction", parse_direction)?.into_iter();
    let mut cases = table.int32("case")?.into_iter();
    let mut iterations = table.int32("iteration")?.into_iter();
    let mut values = table.double("value")?.into_iter();
    let mut primaries = table.boolean("primary")?.into_iter();
    let mut starts = table.int64("start_ns")?.into_iter();
    let mut ends = table.int64("end_ns")?.into_iter();
    let boots = table.int32("boot")?.into_iter();
    let mut targets = read_targets(table, manifest)?;
    let row = |boot: i32| {
        Some(Sample {
            boot: to_index(boot),
            target: targets.next()?,
            case: to_index(cases.next()?),
            iteration: to_index(iterations.next()?),
            metric: metrics.next()?,
            value: values.next()?,
            unit: units.next()?,
            direction: directions.next()?,
            primary: primaries.next()?,
            start: from_stored_nanos(starts.next()?),
            end: from_stored_nanos(ends.next()?),
        })
    };
    samples.extend(boots.map_while(row));
    Ok(())
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
        if !goes_on || self.numbers.slots.len() == ROWS_PER_CHUNK {
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
    let mut iterations = Vec::with_capacity(table.row_count().min(MAX_ROWS_AT_ONCE));
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
