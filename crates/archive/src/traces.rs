//! `events/TRACER.parquet`: what a tracer wrote down, one row an operation. Owns the way from its files, which are kept
//! under `raw/` while the run lives, to one table, and back to columns in memory, one iteration at a time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use optrace::{File, Operation, Told, Words};
use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use perflab_model::trace::{NumberColumn, Operations, ProbeCost, SpanColumn, Traced};

use crate::fresh_file::create_fresh_file;
use crate::layout::{EVENTS, RAW, events_file, raw_file};
use crate::table::{self, Declaration, Item, Stored, TableReader, TableWriter};
use crate::{ArchiveError, io};

/// The tracers that are understood.
const OPTRACE: &str = "optrace";
const TRACER_KEY: &str = "perflab.tracer";
const TOLD_KEY: &str = "perflab.traced";
const SPAN: &str = "span.";
const COUNT: &str = ".count";
const NUMBER: &str = "number.";

/// Columns that every tracer's table has: name, type, unit, whether cells may be missing, meaning.
const FIXED: [(&str, Stored, &str, bool, &str); 9] = [
    ("slot", Stored::Int32, "1", false, "index into plan.slots of run.json"),
    ("thread", Stored::Int32, "1", false, "the thread's id as the kernel counts"),
    ("operation", Stored::Text, "1", false, "which kind of operation, in the program's words"),
    ("start_ns", Stored::Int64, "ns", false, "when it began, CLOCK_MONOTONIC of the target"),
    ("wall_ns", Stored::Int64, "ns", false, "how long it took, what recording cost taken off"),
    (
        "preempted_ns",
        Stored::Int64,
        "ns",
        true,
        "of those, the thread was ready and another ran; missing where none",
    ),
    ("waited_ns", Stored::Int64, "ns", true, "of those, the thread waited; missing where none"),
    ("faults", Stored::Int64, "1", true, "pages that were not there when touched; missing where none"),
    (
        "flags",
        Stored::Int64,
        "1",
        true,
        "1 a clock ran backwards, 2 beyond the tracer's limits, 4 ends without beginnings",
    ),
];

/// Takes a tracer's file into the run.
pub(crate) fn keep(run: &Path, slot: u32, tracer: &str, file: &Path) -> Result<(), ArchiveError> {
    let place = run.join(raw_file(tracer, slot));
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

/// Writes the table of each tracer under `stage`, from the files under `run`; `traced` are slots and tracers.
pub(crate) fn write(run: &Path, stage: &Path, traced: &[(u32, String)]) -> Result<(), ArchiveError> {
    let tracers: BTreeSet<&str> = traced.iter().map(|(_, tracer)| tracer.as_str()).collect();
    for tracer in tracers.into_iter().filter(|tracer| *tracer == OPTRACE) {
        let slots = traced.iter().filter(|(_, of)| of == tracer).map(|(slot, _)| *slot);
        let read = |slot| Some((slot, File::open(&run.join(raw_file(tracer, slot)))));
        table(stage, tracer, slots.filter_map(read).collect())?;
    }
    let io: Vec<u32> = traced.iter().filter(|(_, tracer)| tracer == io::IO).map(|(slot, _)| *slot).collect();
    if io.is_empty() { Ok(()) } else { io::write(run, stage, &io) }
}

type Opened = Vec<(u32, Result<File, optrace::Error>)>;

fn table(stage: &Path, tracer: &str, files: Opened) -> Result<(), ArchiveError> {
    let directory = stage.join(EVENTS);
    fs::create_dir_all(&directory).map_err(ArchiveError::io("create", &directory))?;
    let words = union(files.iter().filter_map(|(_, file)| Some(file.as_ref().ok()?.words())));
    let metadata = [(TRACER_KEY, tracer.to_owned())];
    let mut table = TableWriter::create(&stage.join(events_file(tracer)), &columns(&words), &metadata)?;
    let mut all = Vec::new();
    for (slot, file) in files {
        all.push(match file {
            Ok(file) => operations_of(&mut table, slot, &file, &words)?,
            // A program that was killed early, or another version: the iteration has no operations, and says why.
            Err(error) => Traced { slot, cut: Some(error.to_string()), ..Traced::default() },
        });
        table.cut()?;
    }
    table.note(TOLD_KEY, serde_json::to_string(&all).unwrap_or_default());
    table.close()
}

/// All words of several programs, each once.
fn union<'a>(all: impl Iterator<Item = &'a Words>) -> Words {
    let mut union = Words::default();
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

fn columns(words: &Words) -> Vec<Declaration> {
    let spans = words.spans.iter().flat_map(|name| {
        let time = "time in this span without the spans inside it; missing where it did not occur";
        [
            Declaration::new(&format!("{SPAN}{name}"), Stored::Int64, "ns", "value", time).optional(),
            Declaration::new(
                &format!("{SPAN}{name}{COUNT}"),
                Stored::Int64,
                "1",
                "value",
                "how often it occurred",
            )
            .optional(),
        ]
    });
    let numbers = words.numbers.iter().map(|name| {
        let meaning = "a number that the program told; missing where it told none";
        Declaration::new(&format!("{NUMBER}{name}"), Stored::Int64, "1", "value", meaning).optional()
    });
    table::events(&FIXED).into_iter().chain(spans).chain(numbers).collect()
}

/// The columns as the format's page shows them: one span, one number.
#[cfg(test)]
pub(crate) fn documented_columns() -> Vec<Declaration> {
    let name = |name: &str| vec![name.to_owned()];
    columns(&Words { operations: Vec::new(), spans: name("SPAN"), numbers: name("NUMBER") })
}

/// Writes one iteration's rows.
fn operations_of(
    table: &mut TableWriter,
    slot: u32,
    file: &File,
    words: &Words,
) -> Result<Traced, ArchiveError> {
    let own = file.words();
    let place = |names: &[String], all: &[String], first: usize, width: usize| -> Vec<usize> {
        let at = |name: &String| all.iter().position(|other| other == name).unwrap_or(0);
        names.iter().map(|name| first + at(name) * width).collect()
    };
    let spans = place(&own.spans, &words.spans, FIXED.len(), 2);
    let numbers = place(&own.numbers, &words.numbers, FIXED.len() + 2 * words.spans.len(), 1);
    let mut row = Vec::new();
    let mut failed = None;
    let told = file.read(|operation| {
        row.clear();
        row.resize(FIXED.len() + 2 * words.spans.len() + words.numbers.len(), Item::Missing);
        fill(&mut row, slot, operation, own, (&spans, &numbers));
        if failed.is_none() {
            failed = table.push(row.iter().copied()).err();
        }
    });
    let told = told.map_err(ArchiveError::Trace)?;
    failed.map_or(Ok(traced_of(slot, told, own)), Err)
}

fn fill<'a>(
    row: &mut [Item<'a>],
    slot: u32,
    operation: &Operation,
    words: &'a Words,
    (spans, numbers): (&[usize], &[usize]),
) {
    let some = |value: u64| if value > 0 { Item::Int(value as i64) } else { Item::Missing };
    let flags = u64::from(operation.backwards)
        | u64::from(operation.beyond) << 1
        | u64::from(operation.unbalanced) << 2;
    let fixed = [
        Item::Int(i64::from(slot)),
        Item::Int(i64::from(operation.thread)),
        words.operations.get(usize::from(operation.kind)).map_or(Item::Missing, |name| Item::Text(name)),
        Item::Int(operation.start as i64),
        Item::Int(operation.wall as i64),
        some(operation.preempted),
        some(operation.waited),
        some(operation.faults.into()),
        some(flags),
    ];
    row.iter_mut().zip(fixed).for_each(|(cell, item)| *cell = item);
    let mut set = |at: Option<usize>, value: i64| {
        if let Some(cell) = at.and_then(|at| row.get_mut(at)) {
            *cell = Item::Int(value);
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

fn traced_of(slot: u32, told: Told, words: &Words) -> Traced {
    let costs = |names: &[String], costs: &[optrace::StampCost], span: bool| -> Vec<ProbeCost> {
        let cost = |(name, cost): (&String, &optrace::StampCost)| ProbeCost {
            name: name.clone(),
            span,
            own_ns: cost.between,
            pair_ns: cost.pair,
            inside_ns: 0.0,
        };
        names.iter().zip(costs).map(cost).collect()
    };
    let mut probe_costs = costs(&words.operations, &told.operation_costs, false);
    for (cost, (operations, inside)) in probe_costs.iter_mut().zip(&told.inside) {
        cost.inside_ns = *inside as f64 / (*operations).max(1) as f64;
    }
    probe_costs.extend(costs(&words.spans, &told.span_costs, true));
    Traced {
        probe_costs,
        slot,
        operations: told.operations,
        lost: told.lost,
        cut: told.cut,
        backwards: told.backwards,
        beyond: told.beyond,
        unbalanced: told.unbalanced,
        abandoned: told.entries.abandoned,
        nested: told.entries.nested,
        open: told.entries.open,
        rescued: told.rescued,
        forks: told.forks,
        waits: told.waits,
        waited_ns: told.waited,
        threads: told.threads,
        events: told.events,
        events_lost: told.events_lost,
        refused: told.refused,
        operation_cost_ns: told.operation_cost,
        span_cost_ns: told.span_cost,
    }
}

/// The tracers of a closed run, sorted.
pub(crate) fn tracers(run: &Path) -> Result<Vec<String>, ArchiveError> {
    let Ok(entries) = fs::read_dir(run.join(EVENTS)) else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for entry in entries.flatten() {
        names.extend(
            TableReader::open(run, Path::new(EVENTS).join(entry.file_name()))?
                .metadata(TRACER_KEY)
                .map(String::from),
        );
    }
    names.sort();
    Ok(names)
}

fn open(run: &Path, id: &str, tracer: &str) -> Result<(TableReader, Vec<Traced>), ArchiveError> {
    let path = run.join(events_file(tracer));
    if !path.exists() {
        return Err(ArchiveError::NoTrace { id: id.into(), what: tracer.into() });
    }
    let table = TableReader::open(run, events_file(tracer))?;
    let told = serde_json::from_str(table.metadata(TOLD_KEY).unwrap_or_default());
    Ok((table, told.map_err(ArchiveError::damaged(&path))?))
}

/// What the tracer said about each iteration.
pub(crate) fn traced(run: &Path, id: &str, tracer: &str) -> Result<Vec<Traced>, ArchiveError> {
    open(run, id, tracer).map(|(_, told)| told)
}

/// Every operation of one iteration.
pub(crate) fn operations(run: &Path, id: &str, tracer: &str, slot: u32) -> Result<Operations, ArchiveError> {
    let (table, told) = open(run, id, tracer)?;
    let none = || ArchiveError::NoTrace { id: id.into(), what: format!("{tracer} in slot {slot}") };
    let at = told.iter().position(|told| told.slot == slot).ok_or_else(none)?;
    let first = told.iter().take(at).map(|told| told.operations).sum();
    let told = told.into_iter().nth(at).ok_or_else(none)?;
    let groups = table.groups_of(first, told.operations);
    let (kinds, kind) = kinds(&table, groups.clone())?;
    let sparse = |name: &str| table.sparse(name, groups.clone());
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
    Ok(Operations {
        kinds,
        kind,
        thread: table.dense::<Int32Type>("thread", groups.clone())?,
        start: table.dense::<Int64Type>("start_ns", groups.clone())?,
        wall: table.dense::<Int64Type>("wall_ns", groups.clone())?,
        preempted: sparse("preempted_ns")?,
        waited: sparse("waited_ns")?,
        faults: sparse("faults")?,
        flags: sparse("flags")?,
        spans,
        numbers,
        told,
    })
}

/// The names of the kinds of operation in the order of their first, and the kind of each row.
fn kinds(
    table: &TableReader,
    groups: std::ops::Range<usize>,
) -> Result<(Vec<String>, Vec<u8>), ArchiveError> {
    let mut names: Vec<parquet::data_type::ByteArray> = Vec::new();
    let mut kinds = Vec::new();
    for name in table.dense::<ByteArrayType>("operation", groups)? {
        let at = names.iter().position(|other| *other == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        kinds.push(at.min(255) as u8);
    }
    let text = |name: &parquet::data_type::ByteArray| String::from_utf8_lossy(name.data()).into_owned();
    Ok((names.iter().map(text).collect(), kinds))
}
