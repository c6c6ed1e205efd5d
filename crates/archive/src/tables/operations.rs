//! `events/TRACER.parquet`: what a tracer recorded, one row per operation.
//!
//! Its files are kept under `raw/` while the run lives and become one table; columns are read back into memory one
//! iteration at a time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use optrace::{Operation, TraceFile, TraceFileSummary, Vocabulary};
use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use perflab_model::io_trace::IO_TRACER;
use perflab_model::operation::{
    NumberColumn, OPERATION_TRACER, OperationColumns, OperationTraceSummary, SpanColumn, TracedIteration,
    TracedProbeCost,
};

use crate::error::ArchiveError;
use crate::fresh_file::create_fresh_file;
use crate::parquet_reader::ParquetReader;
use crate::parquet_writer::{self, ParquetWriter, StorageType, StoredCell, StoredColumn};
use crate::run_layout::{EVENTS, RAW, events_path, raw_trace_path};
use crate::tables::io;

const TRACER_KEY: &str = "perflab.tracer";

const TOLD_KEY: &str = "perflab.traced";

const SPAN: &str = "span.";

const COUNT: &str = ".count";

const NUMBER: &str = "number.";

/// Columns that every tracer's table has: name, type, unit, whether cells may be missing, meaning.
const FIXED: [(&str, StorageType, &str, bool, &str); 10] = [
    ("slot", StorageType::Int32, "1", false, "index into plan.slots of run.json"),
    ("thread", StorageType::Int32, "1", false, "the thread's id as the kernel counts"),
    ("operation", StorageType::Text, "1", false, "which kind of operation, in the program's words"),
    ("start_ns", StorageType::Int64, "ns", false, "when it began, CLOCK_MONOTONIC of the target"),
    ("wall_ns", StorageType::Int64, "ns", false, "how long it took, what recording cost taken off"),
    (
        "preempted_ns",
        StorageType::Int64,
        "ns",
        true,
        "of those, the thread was ready and another ran; missing where none",
    ),
    ("waited_ns", StorageType::Int64, "ns", true, "of those, the thread waited; missing where none"),
    ("faults", StorageType::Int64, "1", true, "pages that were not there when touched; missing where none"),
    (
        "flags",
        StorageType::Int64,
        "1",
        true,
        "1 a clock ran backwards, 2 beyond the tracer's limits, 4 ends without beginnings",
    ),
    ("target", StorageType::Int32, "1", true, "index into targets of run.json; missing on this host"),
];

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
        ParquetWriter::create(&stage.join(events_path(tracer)), &operation_columns(&words), &metadata)?;
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

fn operation_columns(words: &Vocabulary) -> Vec<StoredColumn> {
    let spans = words.spans.iter().flat_map(|name| {
        let time = "time in this span without the spans inside it; missing where it did not occur";
        [
            StoredColumn::new(&format!("{SPAN}{name}"), StorageType::Int64, "ns", "value", time).optional(),
            StoredColumn::new(
                &format!("{SPAN}{name}{COUNT}"),
                StorageType::Int64,
                "1",
                "value",
                "how often it occurred",
            )
            .optional(),
        ]
    });
    let numbers = words.numbers.iter().map(|name| {
        let meaning = "a number that the program told; missing where it told none";
        StoredColumn::new(&format!("{NUMBER}{name}"), StorageType::Int64, "1", "value", meaning).optional()
    });
    parquet_writer::event_columns(&FIXED).into_iter().chain(spans).chain(numbers).collect()
}

/// The columns as the format's page shows them: one span, one number.
#[cfg(test)]
pub(crate) fn documented_operation_columns() -> Vec<StoredColumn> {
    let name = |name: &str| vec![name.to_owned()];
    operation_columns(&Vocabulary { operations: Vec::new(), spans: name("SPAN"), numbers: name("NUMBER") })
}

/// Writes one iteration's rows.
fn append_operations(
    table: &mut ParquetWriter,
    iteration: TracedIteration,
    file: &TraceFile,
    words: &Vocabulary,
) -> Result<OperationTraceSummary, ArchiveError> {
    let own = file.vocabulary();
    let place = |names: &[String], all: &[String], first: usize, width: usize| -> Vec<usize> {
        let at = |name: &String| all.iter().position(|other| other == name).unwrap_or(0);
        names.iter().map(|name| first + at(name) * width).collect()
    };
    let spans = place(&own.spans, &words.spans, FIXED.len(), 2);
    let numbers = place(&own.numbers, &words.numbers, FIXED.len() + 2 * words.spans.len(), 1);
    let mut row = Vec::new();
    let mut failed = None;
    let reported = file.read_operations(|operation| {
        row.clear();
        row.resize(FIXED.len() + 2 * words.spans.len() + words.numbers.len(), StoredCell::Missing);
        fill_operation_row(&mut row, iteration, operation, own, (&spans, &numbers));
        if failed.is_none() {
            failed = table.push_row(row.iter().copied()).err();
        }
    });
    let reported = reported.map_err(ArchiveError::Trace)?;
    failed.map_or(Ok(trace_summary(iteration, reported, own)), Err)
}

fn fill_operation_row<'a>(
    row: &mut [StoredCell<'a>],
    iteration: TracedIteration,
    operation: &Operation,
    words: &'a Vocabulary,
    (spans, numbers): (&[usize], &[usize]),
) {
    let some = |value: u64| if value > 0 { StoredCell::Int(value as i64) } else { StoredCell::Missing };
    let flags = u64::from(operation.backwards)
        | u64::from(operation.beyond) << 1
        | u64::from(operation.unbalanced) << 2;
    let fixed = [
        StoredCell::Int(i64::from(iteration.slot)),
        StoredCell::Int(i64::from(operation.thread)),
        words
            .operations
            .get(usize::from(operation.kind))
            .map_or(StoredCell::Missing, |name| StoredCell::Text(name)),
        StoredCell::Int(operation.start as i64),
        StoredCell::Int(operation.wall as i64),
        some(operation.preempted),
        some(operation.waited),
        some(operation.faults.into()),
        some(flags),
        iteration.target.map_or(StoredCell::Missing, |target| StoredCell::Int(i64::from(target))),
    ];
    row.iter_mut().zip(fixed).for_each(|(cell, item)| *cell = item);
    let mut set = |at: Option<usize>, value: i64| {
        if let Some(cell) = at.and_then(|at| row.get_mut(at)) {
            *cell = StoredCell::Int(value);
        }
    };
    for span in &operation.spans {
        let at = spans.get(usize::from(span.kind)).copied();
        set(at, span.ns as i64);
        set(at.map(|at| at + 1), span.count.into());
    }
    for (kind, value) in &operation.numbers {
        set(numbers.get(usize::from(*kind)).copied(), *value);
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
    let (kinds, kind) = read_operation_kinds(&table, groups.clone())?;
    let sparse = |name: &str| table.sparse_column(name, groups.clone());
    let names: Vec<String> = table.columns()?.into_iter().map(|column| column.name).collect();
    let mut spans = Vec::new();
    for name in names.iter().filter_map(|name| name.strip_prefix(SPAN)).filter(|name| !name.ends_with(COUNT))
    {
        let (time, count) = (sparse(&format!("{SPAN}{name}"))?, sparse(&format!("{SPAN}{name}{COUNT}"))?);
        spans.push(SpanColumn { name: name.into(), time, count });
    }
    let mut numbers = Vec::new();
    for name in names.iter().filter_map(|name| name.strip_prefix(NUMBER)) {
        numbers.push(NumberColumn { name: name.into(), values: sparse(&format!("{NUMBER}{name}"))? });
    }
    Ok(OperationColumns {
        kinds,
        kind,
        thread: table.dense_column::<Int32Type>("thread", groups.clone())?,
        start: table.dense_column::<Int64Type>("start_ns", groups.clone())?,
        wall: table.dense_column::<Int64Type>("wall_ns", groups.clone())?,
        preempted: sparse("preempted_ns")?,
        waited: sparse("waited_ns")?,
        faults: sparse("faults")?,
        flags: sparse("flags")?,
        spans,
        numbers,
        summary,
    })
}

/// The names of the kinds of operation in the order of their first, and the kind of each row.
fn read_operation_kinds(
    table: &ParquetReader,
    groups: std::ops::Range<usize>,
) -> Result<(Vec<String>, Vec<u8>), ArchiveError> {
    let mut names: Vec<parquet::data_type::ByteArray> = Vec::new();
    let mut kinds = Vec::new();
    for name in table.dense_column::<ByteArrayType>("operation", groups)? {
        let at = names.iter().position(|other| *other == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        kinds.push(at.min(255) as u8);
    }
    let text = |name: &parquet::data_type::ByteArray| String::from_utf8_lossy(name.data()).into_owned();
    Ok((names.iter().map(text).collect(), kinds))
}
