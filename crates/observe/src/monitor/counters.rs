//! Series `counters` and `cpu-counters`: what the study's `[counters]` count, of the workload and on each CPU.
//!
//! The workload's are one row; it is opened by the thread that starts the workloads, and every monitor of the run reads the same
//! counters. Events that may have had to take turns have their times beside them, `NAME.enabled` and `NAME.running`, and are
//! scaled by these; `counted` is the part of the time in which the one that had the fewest turns was counted.

use std::sync::Arc;

use perflab_formats::kernel::small_values::parse_cpu_list;
use perflab_model::{CellRow, ColumnSpec, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::folder::SmallFile;
use crate::root::Root;
use crate::run_counters::{OpenCounter, OpenCounters, RunCounters, ScaledCount};

const COUNTED: &str = "counted";

/// The columns of some counters: of those that take turns, times too.
fn counter_columns(counters: &[OpenCounter]) -> Vec<ColumnSpec> {
    let mut columns: Vec<ColumnSpec> = Vec::new();
    for counter in counters {
        let name = &counter.event.name;
        columns.push(ColumnSpec::counter(name, counter.code.unit));
        if counter.event.takes_turns() {
            columns.push(ColumnSpec::counter(&format!("{name}.enabled"), "ns"));
            columns.push(ColumnSpec::counter(&format!("{name}.running"), "ns"));
        }
    }
    if counters.iter().any(|counter| counter.event.takes_turns()) {
        columns.push(ColumnSpec::float_gauge(COUNTED, "1"));
    }
    columns
}

/// Counters with what they counted when they were last read.
struct CounterReader {
    counters: Arc<OpenCounters>,
    counts: Vec<ScaledCount>,
}

impl CounterReader {
    fn new(counters: Arc<OpenCounters>) -> Self {
        let counts = vec![ScaledCount::default(); counters.counters.len()];
        CounterReader { counters, counts }
    }

    /// Whether none has run since it was last read, as is so of a CPU's when it was taken offline.
    fn has_stopped(&self) -> bool {
        let mut counters = self.counters.counters.iter().zip(&self.counts);
        let stands = |(counter, count): (&OpenCounter, &ScaledCount)| {
            counter.read().is_none_or(|reading| count.has_stopped_at(reading))
        };
        !self.counts.is_empty() && counters.all(stands)
    }

    /// Each counter's cells by the name of its column, and the smallest part of the time that one was counted.
    fn read(&mut self, mut add: impl FnMut(&str, TableCell)) -> Option<f64> {
        let cell = |number: u64| i64::try_from(number).map_or(TableCell::Missing, TableCell::Int);
        let mut counted: Option<f64> = None;
        for (counter, count) in self.counters.counters.iter().zip(&mut self.counts) {
            let name = counter.event.name.as_str();
            let Some(reading) = counter.read() else { continue };
            let (total, part) = count.advance(reading);
            let total = total.map(|total| (total * counter.code.scale).round());
            add(name, total.map_or(TableCell::Missing, |total| cell(total as u64)));
            if counter.event.takes_turns() {
                add(&format!("{name}.enabled"), cell(reading.enabled));
                add(&format!("{name}.running"), cell(reading.running));
                counted = part.map(|part| counted.map_or(part, |least| least.min(part))).or(counted);
            }
        }
        counted
    }
}

/// The place of each column of a row, in order.
fn fill_row(columns: &[ColumnSpec], row: &mut CellRow, name: &str, cell: TableCell) {
    let place = columns.iter().position(|column| column.name == name);
    if let Some(known) = place.and_then(|place| row.get_mut(place)) {
        *known = cell;
    }
}

struct WorkloadCountersMonitor {
    schema: SeriesSchema,
    reader: CounterReader,
}

/// Opens the monitor of the workload's counters.
pub(crate) fn open_counters(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let opened = opening.counters.workload().ok_or(ObserveError::NothingCounted { table: "events" })?;
    let columns = counter_columns(&opened.counters);
    let schema = opening.schema_with_columns(columns);
    Ok(Box::new(WorkloadCountersMonitor { schema, reader: CounterReader::new(opened) }))
}

impl Monitor for WorkloadCountersMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let columns = &self.schema.columns;
        let mut row = vec![TableCell::Missing; columns.len()];
        let counted = self.reader.read(|name, cell| fill_row(columns, &mut row, name, cell));
        fill_row(columns, &mut row, COUNTED, counted.map_or(TableCell::Missing, TableCell::Float));
        rows.push(row);
        Ok(())
    }
}

struct CpuCountersMonitor {
    root: Root,
    counters: RunCounters,
    schema: SeriesSchema,
    cpus: Vec<(u32, CounterReader)>,
    online: SmallFile,
    online_before: String,
    buffer: Vec<u8>,
}

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Opens the monitor of the CPUs' counters.
pub(crate) fn open_cpu_counters(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let nothing = || ObserveError::NothingCounted { table: "cpus" };
    if !opening.counters.counts_cpus() {
        return Err(nothing());
    }
    let online = opening.root.read(ONLINE)?;
    let mut monitor = CpuCountersMonitor {
        root: opening.root.clone(),
        counters: opening.counters.clone(),
        schema: opening.schema_with_columns(Vec::new()),
        cpus: Vec::new(),
        online: SmallFile::new(opening.root.path(ONLINE)),
        online_before: String::new(),
        buffer: vec![0; 4096],
    };
    monitor.open_cpus(online.trim());
    let mut columns = vec![ColumnSpec::key("cpu")];
    for (_, reader) in &monitor.cpus {
        // A unit's are counted on some CPUs only.
        for column in counter_columns(&reader.counters.counters) {
            if !columns.contains(&column) {
                columns.push(column);
            }
        }
    }
    if columns.len() == 1 {
        return Err(nothing());
    }
    monitor.schema.columns = columns;
    Ok(Box::new(monitor))
}

impl CpuCountersMonitor {
    /// Opens the counters of CPUs that came, and closes those of CPUs that went; what one counted before it went stays in its sum.
    fn open_cpus(&mut self, online: &str) {
        let mut before = std::mem::take(&mut self.cpus);
        let was_online = parse_cpu_list(&self.online_before);
        for cpu in parse_cpu_list(online) {
            let known = before.iter().position(|(one, _)| *one == cpu).map(|index| before.swap_remove(index));
            let open = |stale: Option<&Arc<OpenCounters>>| self.counters.open_cpu(cpu, stale, &self.root);
            let reader = match known {
                Some((_, reader)) if was_online.contains(&cpu) => reader,
                Some((_, reader)) => CounterReader { counters: open(Some(&reader.counters)), ..reader },
                None => CounterReader::new(open(None)),
            };
            self.cpus.push((cpu, reader));
        }
        // Who is gone keeps its sums until it comes back.
        self.cpus.append(&mut before);
        self.cpus.sort_by_key(|(cpu, _)| *cpu);
        online.clone_into(&mut self.online_before);
    }
}

impl Monitor for CpuCountersMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let online = self.online.read(&mut self.buffer).map(|text| text.trim().to_owned());
        let online = online.map_err(|source| ObserveError::read_failed(ONLINE, source))?;
        if online != self.online_before {
            self.open_cpus(&online);
        }
        let (columns, online) = (&self.schema.columns, parse_cpu_list(&online));
        for (cpu, reader) in self.cpus.iter_mut().filter(|(cpu, _)| online.contains(cpu)) {
            if reader.has_stopped() {
                // It was offline since it was last read, for a while.
                reader.counters = self.counters.open_cpu(*cpu, Some(&reader.counters), &self.root);
            }
            let mut row = vec![TableCell::Missing; columns.len()];
            fill_row(columns, &mut row, "cpu", TableCell::Text(format!("cpu{cpu}")));
            let counted = reader.read(|name, cell| fill_row(columns, &mut row, name, cell));
            fill_row(columns, &mut row, COUNTED, counted.map_or(TableCell::Missing, TableCell::Float));
            rows.push(row);
        }
        Ok(())
    }
}
