//! `events/TRACER.parquet`: what a tracer recorded, one row per operation.
//!
//! Its files are kept under `raw/` while the run lives and become one table; columns are read back into memory one
//! iteration at a time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use optrace::{Operation, TraceFile, TraceFileSummary, Vocabulary};
use perflab_model::column::ColumnType::{Int, Int32, Text};
use perflab_model::column::{ColumnKind, stored_columns};
use perflab_model::io_trace::IO_TRACER;
use perflab_model::operation::{
    NumberColumn, OPERATION_TRACER, OperationColumns, OperationTraceSummary, SpanColumn, SparseColumn,
    TracedIteration, TracedProbeCost,
};
use perflab_model::table::{StoredValue, TypedColumn};
use perflab_model::{ColumnRef, ColumnSpec, DeclaredColumn, RowSchema, TypedTable, TypedTableBuilder, Unit};

use crate::error::ArchiveError;
use crate::fresh_file::create_fresh_file;
use crate::parquet::{ParquetReader, ParquetWriter};
use crate::run_layout::{EVENTS, RAW, events_path, raw_trace_path};
use crate::tables::io::{self, event_column};
use crate::tables::samples::to_stored_index;

const TRACER_KEY: &str = "perflab.tracer";

const TOLD_KEY: &str = "perflab.traced";

const SPAN: &str = "span.";

const COUNT: &str = ".count";

const NUMBER: &str = "number.";

/// What every row of `events/TRACER.parquet` has: an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OperationRow;

impl RowSchema for OperationRow {
    const NAME: &'static str = "operations";
    const COLUMNS: &'static [DeclaredColumn] = &[
        event_column("slot", Int32, "1", false, "index into plan.slots of run.json"),
        event_column("thread", Int32, "1", false, "the thread's id as the kernel counts"),
        event_column("operation", Text, "1", false, "which kind of operation, in the program's words"),
        event_column("start_ns", Int, "ns", false, "when it began, CLOCK_MONOTONIC of the target"),
        event_column("wall_ns", Int, "ns", false, "how long it took, what recording cost taken off"),
        event_column(
            "preempted_ns",
            Int,
            "ns",
            true,
            "of those, the thread was ready and another ran; missing where none",
        ),
        event_column("waited_ns", Int, "ns", true, "of those, the thread waited; missing where none"),
        event_column("faults", Int, "1", true, "pages that were not there when touched; missing where none"),
        event_column(
            "flags",
            Int,
            "1",
            true,
            "1 a clock ran backwards, 2 beyond the tracer's limits, 4 ends without beginnings",
        ),
        event_column("target", Int32, "1", true, "index into targets of run.json; missing on this host"),
    ];
}

impl OperationRow {
    const SLOT: ColumnRef<Self, i32> = ColumnRef::named("slot");
    const THREAD: ColumnRef<Self, i32> = ColumnRef::named("thread");
    const OPERATION: ColumnRef<Self, str> = ColumnRef::named("operation");
    const START: ColumnRef<Self, i64> = ColumnRef::named("start_ns");
    const WALL: ColumnRef<Self, i64> = ColumnRef::named("wall_ns");
    const PREEMPTED: ColumnRef<Self, i64> = ColumnRef::named("preempted_ns");
    const WAITED: ColumnRef<Self, i64> = ColumnRef::named("waited_ns");
    const FAULTS: ColumnRef<Self, i64> = ColumnRef::named("faults");
    const FLAGS: ColumnRef<Self, i64> = ColumnRef::named("flags");
    const TARGET: ColumnRef<Self, i32> = ColumnRef::named("target");

    /// The columns that are read.
    const READ: [&str; 8] = [
        Self::THREAD.name(),
        Self::OPERATION.name(),
        Self::START.name(),
        Self::WALL.name(),
        Self::PREEMPTED.name(),
        Self::WAITED.name(),
        Self::FAULTS.name(),
        Self::FLAGS.name(),
    ];
}

/// Takes a tracer's file into the run.
pub(crate) fn keep_trace_file(
    run: &Path,
    iteration: TracedIteration,
    tracer: &str,
    file: &Path,
) -> Result<(), ArchiveError> {
    let place = run.join(raw_trace_path(tracer, iteration));
    fs::create_dir_all(run.join(RAW)).map_err(ArchiveError::io("create", &place))?;
    if fs::rename(file, &place).is_ok() {
        return Ok(());
    }
    // Another file system.
    let copied =
        fs::File::open(file).and_then(|mut from| std::io::copy(&mut from, &mut create_fresh_file(&place)?));
    copied.map_err(ArchiveError::io("write", &place))?;
    fs::remove_file(file).map_err(ArchiveError::io("remove", file))
}

/// Writes the table of each tracer under `stage`, from the files under `run`; `traced` are iterations and tracers.
pub(crate) fn write_operation_tables(
    run: &Path,
    stage: &Path,
    traced: &[(TracedIteration, String)],
) -> Result<(), ArchiveError> {
    let tracers: BTreeSet<&str> = traced.iter().map(|(_, tracer)| tracer.as_str()).collect();
    for tracer in tracers.into_iter().filter(|tracer| *tracer == OPERATION_TRACER) {
        let iterations = traced.iter().filter(|(_, of)| of == tracer).map(|(iteration, _)| *iteration);
        let read = |iteration| (iteration, TraceFile::open(&run.join(raw_trace_path(tracer, iteration))));
        write_operation_table(stage, tracer, iterations.map(read).collect())?;
    }
    let io = traced.iter().filter(|(_, tracer)| tracer == IO_TRACER).map(|(iteration, _)| *iteration);
    let io: Vec<TracedIteration> = io.collect();
    if io.is_empty() { Ok(()) } else { io::write_io_table(run, stage, &io) }
}

type OpenedTraceFiles = Vec<(TracedIteration, Result<TraceFile, optrace::OptraceError>)>;

fn write_operation_table(stage: &Path, tracer: &str, files: OpenedTraceFiles) -> Result<(), ArchiveError> {
    let directory = stage.join(EVENTS);
    fs::create_dir_all(&directory).map_err(ArchiveError::io("create", &directory))?;
    let words = union_vocabulary(files.iter().filter_map(|(_, file)| Some(file.as_ref().ok()?.vocabulary())));
    let metadata = [(TRACER_KEY, tracer.to_owned())];
    let mut table =
        ParquetWriter::create(&stage.join(events_path(tracer)), operation_columns(&words), &metadata)?;
    let mut all = Vec::new();
    for (iteration, file) in files {
        all.push(match file {
            Ok(file) => append_operations(&mut table, iteration, &file, &words)?,
            // A program that was killed early, or another version: the iteration has no operations, and says why.
            Err(error) => OperationTraceSummary {
                slot: iteration.slot,
                target: iteration.target,
                cut: Some(error.to_string()),
                ..OperationTraceSummary::default()
            },
        });
        table.end_row_group()?;
    }
    table.add_metadata(TOLD_KEY, serde_json::to_string(&all).unwrap_or_default());
    table.close()
}

/// All words of several programs, each once.
fn union_vocabulary<'a>(all: impl Iterator<Item = &'a Vocabulary>) -> Vocabulary {
    let mut union = Vocabulary::default();
    let add = |to: &mut Vec<String>, names: &[String]| {
        let new: Vec<String> = names.iter().filter(|name| !to.contains(name)).cloned().collect();
        to.extend(new);
    };
    for words in all {
        add(&mut union.operations, &words.operations);
        add(&mut union.spans, &words.spans);
        add(&mut union.numbers, &words.numbers);
    }
    union
}

/// The columns of a table: those of every operation, then of each span its time and its count, then the numbers.
fn operation_columns(words: &Vocabulary) -> Vec<ColumnSpec> {
    let column = |name: String, unit: &str, meaning: &str| ColumnSpec {
        name,
        unit: Unit::new(unit),
        kind: ColumnKind::Value,
        stored: Int,
        nullable: true,
        meaning: meaning.into(),
    };
    let time = "time in this span without the spans inside it; missing where it did not occur";
    let spans = words.spans.iter().flat_map(|name| {
        [
            column(format!("{SPAN}{name}"), "ns", time),
            column(format!("{SPAN}{name}{COUNT}"), "1", "how often it occurred"),
        ]
    });
    let meaning = "a number that the program reported; missing where it reported none";
    let numbers = words.numbers.iter().map(|name| column(format!("{NUMBER}{name}"), "1", meaning));
    stored_columns(OperationRow::COLUMNS).into_iter().chain(spans).chain(numbers).collect()
}

/// The columns as the format's page shows them: one span, one number.
#[cfg(test)]
pub(crate) fn documented_operation_columns() -> Vec<ColumnSpec> {
    let name = |name: &str| vec![name.to_owned()];
    operation_columns(&Vocabulary { operations: Vec::new(), spans: name("SPAN"), numbers: name("NUMBER") })
}

/// Writes one iteration's rows.
fn append_operations(
    table: &mut ParquetWriter<OperationRow>,
    iteration: TracedIteration,
    file: &TraceFile,
    words: &Vocabulary,
) -> Result<OperationTraceSummary, ArchiveError> {
    let own = file.vocabulary();
    let place = |names: &[String], all: &[String], first: usize, width: usize| -> Vec<usize> {
        let at = |name: &String| all.iter().position(|other| other == name).unwrap_or(0);
        names.iter().map(|name| first + at(name) * width).collect()
    };
    let first = OperationRow::COLUMNS.len();
    let spans = place(&own.spans, &words.spans, first, 2);
    let numbers = place(&own.numbers, &words.numbers, first + 2 * words.spans.len(), 1);
    let mut failed = None;
    let reported = file.read_operations(|operation| {
        if failed.is_none() {
            fill_operation_row(table.row(), iteration, operation, own, (&spans, &numbers));
            failed = table.end_row().err();
        }
    });
    let reported = reported.map_err(ArchiveError::Trace)?;
    failed.map_or(Ok(trace_summary(iteration, reported, own)), Err)
}

fn fill_operation_row(
    row: &mut TypedTableBuilder<OperationRow>,
    iteration: TracedIteration,
    operation: &Operation,
    words: &Vocabulary,
    (spans, numbers): (&[usize], &[usize]),
) {
    let some = |value: u64| (value > 0).then_some(value as i64);
    let flags = u64::from(operation.backwards)
        | u64::from(operation.beyond) << 1
        | u64::from(operation.unbalanced) << 2;
    row.set(OperationRow::SLOT, to_stored_index(iteration.slot));
    row.set(OperationRow::THREAD, operation.thread);
    row.set(OperationRow::OPERATION, words.operations.get(usize::from(operation.kind)).map(String::as_str));
    row.set(OperationRow::START, operation.start as i64);
    row.set(OperationRow::WALL, operation.wall as i64);
    row.set(OperationRow::PREEMPTED, some(operation.preempted));
    row.set(OperationRow::WAITED, some(operation.waited));
    row.set(OperationRow::FAULTS, some(operation.faults.into()));
    row.set(OperationRow::FLAGS, some(flags));
    row.set(OperationRow::TARGET, iteration.target.map(to_stored_index));
    // The last of several counts, and the first that is set stays.
    for span in operation.spans.iter().rev() {
        if let Some(column) = spans.get(usize::from(span.kind)) {
            row.rows().set(*column, StoredValue::Int(span.ns as i64));
            row.rows().set(column + 1, StoredValue::Int(span.count.into()));
        }
    }
    for (kind, value) in operation.numbers.iter().rev() {
        if let Some(column) = numbers.get(usize::from(*kind)) {
            row.rows().set(*column, StoredValue::Int(*value));
        }
    }
}

fn trace_summary(
    iteration: TracedIteration,
    summary: TraceFileSummary,
    words: &Vocabulary,
) -> OperationTraceSummary {
    let costs = |names: &[String], costs: &[optrace::StampCost], span: bool| -> Vec<TracedProbeCost> {
        let cost = |(name, cost): (&String, &optrace::StampCost)| TracedProbeCost {
            name: name.clone(),
            span,
            own_ns: cost.between,
            pair_ns: cost.pair,
            inside_ns: 0.0,
        };
        names.iter().zip(costs).map(cost).collect()
    };
    let mut probe_costs = costs(&words.operations, &summary.operation_costs, false);
    for (cost, (operations, inside)) in probe_costs.iter_mut().zip(&summary.inside) {
        cost.inside_ns = *inside as f64 / (*operations).max(1) as f64;
    }
    probe_costs.extend(costs(&words.spans, &summary.span_costs, true));
    OperationTraceSummary {
        probe_costs,
        slot: iteration.slot,
        target: iteration.target,
        operations: summary.operations,
        lost: summary.lost,
        cut: summary.cut,
        backwards: summary.backwards,
        beyond: summary.beyond,
        unbalanced: summary.unbalanced,
        abandoned: summary.entries.abandoned,
        nested: summary.entries.nested,
        open: summary.entries.open,
        rescued: summary.rescued,
        forks: summary.forks,
        waits: summary.waits,
        waited_ns: summary.waited,
        threads: summary.threads,
        events: summary.events,
        events_lost: summary.events_lost,
        refused: summary.refused,
        operation_cost_ns: summary.operation_cost,
        span_cost_ns: summary.span_cost,
    }
}

/// The tracers of a closed run, sorted.
pub(crate) fn list_tracers(run: &Path) -> Result<Vec<String>, ArchiveError> {
    let Ok(entries) = fs::read_dir(run.join(EVENTS)) else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        names.extend(
            ParquetReader::open(run, Path::new(EVENTS).join(entry.file_name()))?
                .metadata(TRACER_KEY)
                .map(String::from),
        );
    }
    names.sort();
    Ok(names)
}

fn open_operation_table(
    run: &Path,
    id: &str,
    tracer: &str,
) -> Result<(ParquetReader, Vec<OperationTraceSummary>), ArchiveError> {
    let path = run.join(events_path(tracer));
    if !path.exists() {
        return Err(ArchiveError::NoTrace { id: id.into(), what: tracer.into() });
    }
    let table = ParquetReader::open(run, events_path(tracer))?;
    let reported = serde_json::from_str(table.metadata(TOLD_KEY).unwrap_or_default());
    Ok((table, reported.map_err(ArchiveError::damaged(&path))?))
}

/// What the tracer reported about each iteration.
pub(crate) fn read_trace_summaries(
    run: &Path,
    id: &str,
    tracer: &str,
) -> Result<Vec<OperationTraceSummary>, ArchiveError> {
    open_operation_table(run, id, tracer).map(|(_, summaries)| summaries)
}

/// Every operation of one iteration.
pub(crate) fn read_operations(
    run: &Path,
    id: &str,
    tracer: &str,
    iteration: TracedIteration,
) -> Result<OperationColumns, ArchiveError> {
    let (table, summaries) = open_operation_table(run, id, tracer)?;
    let none = || {
        let TracedIteration { slot, target } = iteration;
        let target = target.map_or_else(String::new, |target| format!(" of target {target}"));
        ArchiveError::NoTrace { id: id.into(), what: format!("{tracer} in slot {slot}{target}") }
    };
    let at = summaries.iter().position(|summary| summary.iteration() == iteration).ok_or_else(none)?;
    let first = summaries.iter().take(at).map(|summary| summary.operations).sum();
    let summary = summaries.into_iter().nth(at).ok_or_else(none)?;
    let groups = table.row_group_range(first, summary.operations);
    let mut columns = OperationColumns { summary, ..OperationColumns::default() };
    for rows in table.read_whole_rows(groups, &OperationRow::READ)? {
        append_operation_rows(&mut columns, &rows?);
    }
    Ok(columns)
}

/// Appends a row group: texts become numbers, and of columns that lack most values only those that are there stay.
fn append_operation_rows(columns: &mut OperationColumns, rows: &TypedTable<OperationRow>) {
    let first = u32::try_from(columns.start.len()).unwrap_or(u32::MAX);
    let kinds = &mut columns.kinds;
    let kind = |name: &str| {
        let at = kinds.iter().position(|other| other == name).unwrap_or_else(|| {
            kinds.push(name.into());
            kinds.len() - 1
        });
        at.min(255) as u8
    };
    columns.kind.extend(rows.column(OperationRow::OPERATION).map_texts(kind).flatten());
    columns.thread.extend(rows.column(OperationRow::THREAD).values());
    columns.start.extend(rows.column(OperationRow::START).values());
    columns.wall.extend(rows.column(OperationRow::WALL).values());
    let push = |to: &mut SparseColumn, from: TypedColumn<'_, i64>| {
        // A row group has at most 65,536 rows.
        from.present().for_each(|(row, value)| to.push(first.saturating_add(row as u32), value));
    };
    push(&mut columns.preempted, rows.column(OperationRow::PREEMPTED));
    push(&mut columns.waited, rows.column(OperationRow::WAITED));
    push(&mut columns.faults, rows.column(OperationRow::FAULTS));
    push(&mut columns.flags, rows.column(OperationRow::FLAGS));
    for column in rows.table().columns().iter() {
        let Some(values) = rows.table().column::<i64>(&column.name) else { continue };
        if let Some(name) = column.name.strip_prefix(NUMBER) {
            push(&mut find_number(&mut columns.numbers, name).values, values);
        } else if let Some(name) = column.name.strip_prefix(SPAN) {
            match name.strip_suffix(COUNT) {
                Some(name) => push(&mut find_span(&mut columns.spans, name).count, values),
                None => push(&mut find_span(&mut columns.spans, name).time, values),
            }
        }
    }
}

fn find_span<'a>(spans: &'a mut Vec<SpanColumn>, name: &str) -> &'a mut SpanColumn {
    let known = spans.iter().position(|span| span.name == name);
    let index = known.unwrap_or(spans.len());
    if known.is_none() {
        spans.push(SpanColumn { name: name.into(), ..SpanColumn::default() });
    }
    &mut spans[index]
}

fn find_number<'a>(numbers: &'a mut Vec<NumberColumn>, name: &str) -> &'a mut NumberColumn {
    let known = numbers.iter().position(|number| number.name == name);
    let index = known.unwrap_or(numbers.len());
    if known.is_none() {
        numbers.push(NumberColumn { name: name.into(), ..NumberColumn::default() });
    }
    &mut numbers[index]
}
