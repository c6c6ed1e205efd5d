//! Series `counters` and `cpu-counters`: what the study's `[counters]` count, of the workload and on each CPU.
//!
//! The workload's are one row; it is opened by the thread that starts the workloads, and every monitor of the run reads the same
//! counters. Events that may have had to take turns have their times beside them, `NAME.enabled` and `NAME.running`, and are
//! scaled by these; `counted` is the part of the time in which the one that had the fewest turns was counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use perflab_model::{CellRow, ColumnSpec, SeriesSchema, TableCell};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::online_cpus::OnlineCpus;
use crate::perf_counter::CounterReading;
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

/// Counters with what they counted when they were last read, and where in a row they stand.
struct CounterReader {
    counters: Arc<OpenCounters>,
    counts: Vec<ScaledCount>,
    places: CounterPlaces,
}

/// The columns of some counters in a row: of each its count, behind which stand its times.
struct CounterPlaces {
    counts: Vec<Option<usize>>,
    counted: Option<usize>,
}

impl CounterPlaces {
    fn find(columns: &[ColumnSpec], counters: &[OpenCounter]) -> Self {
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        let counts = counters.iter().map(|counter| place(&counter.event.name)).collect();
        CounterPlaces { counts, counted: place(COUNTED) }
    }
}

impl CounterReader {
    fn new(counters: Arc<OpenCounters>, columns: &[ColumnSpec]) -> Self {
        let counts = vec![ScaledCount::default(); counters.counters.len()];
        let places = CounterPlaces::find(columns, &counters.counters);
        CounterReader { counters, counts, places }
    }

    /// Goes on with counters that were opened in place of these; each keeps its sum.
    fn replace_counters(&mut self, counters: Arc<OpenCounters>, columns: &[ColumnSpec]) {
        let before = std::mem::replace(self, CounterReader::new(counters, columns));
        let known = before.counters.counters.iter().zip(&before.counts);
        for (counter, count) in self.counters.counters.iter().zip(&mut self.counts) {
            let same = known.clone().find(|(one, _)| one.event == counter.event);
            *count = same.map_or(*count, |(_, sum)| *sum);
        }
    }

    /// What each says now.
    fn read_counters(&self) -> Vec<Option<CounterReading>> {
        self.counters.counters.iter().map(OpenCounter::read).collect()
    }

    /// Whether none has run since it was last read, as is so of a CPU's when it was taken offline.
    fn has_stopped_at(&self, readings: &[Option<CounterReading>]) -> bool {
        let mut counters = readings.iter().zip(&self.counts);
        let stands = |(reading, count): (&Option<CounterReading>, &ScaledCount)| {
            reading.is_none_or(|reading| count.has_stopped_at(reading))
        };
        !self.counts.is_empty() && counters.all(stands)
    }

    /// Puts what these readings say into a row.
    fn fill_row(&mut self, readings: &[Option<CounterReading>], row: &mut CellRow) {
        let mut put = |place: Option<usize>, cell: TableCell| {
            if let Some(known) = place.and_then(|place| row.get_mut(place)) {
                *known = cell;
            }
        };
        let cell = |number: u64| i64::try_from(number).map_or(TableCell::Missing, TableCell::Int);
        let mut counted: Option<f64> = None;
        let counters = self.counters.counters.iter().zip(&mut self.counts).zip(&self.places.counts);
        for (((counter, count), place), reading) in counters.zip(readings) {
            let Some(reading) = *reading else { continue };
            let (total, part) = count.advance(reading);
            let total = total.map(|total| (total * counter.code.scale).round());
            put(*place, total.map_or(TableCell::Missing, |total| cell(total as u64)));
            if counter.event.takes_turns() {
                put(place.map(|place| place + 1), cell(reading.enabled));
                put(place.map(|place| place + 2), cell(reading.running));
                counted = part.map(|part| counted.map_or(part, |least| least.min(part))).or(counted);
            }
        }
        put(self.places.counted, counted.map_or(TableCell::Missing, TableCell::Float));
    }
}

struct WorkloadCountersMonitor {
    schema: SeriesSchema,
    reader: CounterReader,
}

/// Opens the monitor of the workload's counters.
pub(crate) fn open_counters(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let opened = opening.counters.workload().ok_or(ObserveError::NothingCounted { table: "events" })?;
    let schema = opening.schema_with_columns(counter_columns(&opened.counters));
    let reader = CounterReader::new(opened, &schema.columns);
    Ok(Box::new(WorkloadCountersMonitor { schema, reader }))
}

impl Monitor for WorkloadCountersMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let mut row = vec![TableCell::Missing; self.schema.columns.len()];
        let readings = self.reader.read_counters();
        self.reader.fill_row(&readings, &mut row);
        rows.push(row);
        Ok(())
    }
}

struct CpuCountersMonitor {
    root: Root,
    counters: RunCounters,
    schema: SeriesSchema,
    online: OnlineCpus,
    /// Those of CPUs that are offline keep their sums until these come back.
    readers: BTreeMap<u32, CounterReader>,
}

/// Opens the monitor of the CPUs' counters.
pub(crate) fn open_cpu_counters(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let nothing = || ObserveError::NothingCounted { table: "cpus" };
    let (run, root) = (opening.counters, opening.root);
    if !run.counts_cpus() {
        return Err(nothing());
    }
    let online = OnlineCpus::open(root)?;
    let opened = online.cpus().iter().map(|cpu| (*cpu, run.open_cpu(*cpu, None, root)));
    let opened: Vec<(u32, Arc<OpenCounters>)> = opened.collect();
    let mut columns = vec![ColumnSpec::key("cpu")];
    // A unit's are counted on some CPUs only.
    for column in opened.iter().flat_map(|(_, counters)| counter_columns(&counters.counters)) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    if columns.len() == 1 {
        return Err(nothing());
    }
    let readers = opened.into_iter().map(|(cpu, counters)| (cpu, CounterReader::new(counters, &columns)));
    Ok(Box::new(CpuCountersMonitor {
        root: root.clone(),
        counters: run.clone(),
        readers: readers.collect(),
        schema: opening.schema_with_columns(columns),
        online,
    }))
}

impl Monitor for CpuCountersMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let before = self.online.read_changes()?;
        let columns = &self.schema.columns;
        for &cpu in self.online.cpus() {
            let open = |stale: Option<&Arc<OpenCounters>>| self.counters.open_cpu(cpu, stale, &self.root);
            let came_back = before.as_ref().is_some_and(|before| !before.contains(&cpu))
                && self.readers.contains_key(&cpu);
            let reader = self.readers.entry(cpu).or_insert_with(|| CounterReader::new(open(None), columns));
            let mut readings = reader.read_counters();
            // It was offline, and may have been for a while between two readings.
            if came_back || reader.has_stopped_at(&readings) {
                let opened = open(Some(&reader.counters));
                reader.replace_counters(opened, columns);
                readings = reader.read_counters();
            }
            let mut row = vec![TableCell::Missing; columns.len()];
            if let Some(key) = row.first_mut() {
                *key = TableCell::Text(format!("cpu{cpu}"));
            }
            reader.fill_row(&readings, &mut row);
            rows.push(row);
        }
        Ok(())
    }
}
