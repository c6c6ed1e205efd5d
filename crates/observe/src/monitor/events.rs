//! Series `events`: what the study's `[events]` count, where it happens.
//!
//! One row, `all`, or one a key beside it. Counts and sums only grow; quantiles, means and largest values are of what came since
//! the iteration began, where they are read at its end, and since the reading before on a clock.

use std::collections::{BTreeMap, BTreeSet};

use perflab_model::study::{EventOwner, KeptOfEvents};

use perflab_model::{CellRow, ColumnSpec, IterationEdge, SeriesSchema, TableCell};
use perflab_stacks::KernelSymbols;

use crate::error::ObserveError;
use crate::events::event_field::FieldMeaning;
use crate::events::loaded_event::{EventReading, EventTally};
use crate::events::run_events::{OpenEvent, RunTracepoints};
use crate::monitor::context::{Monitor, MonitorContext};
use crate::root::Root;

/// The row of an event over all its keys.
const ALL_KEYS: &str = "all";

/// What is told of values besides count, sum, mean and largest.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

struct EventsMonitor {
    root: Root,
    schema: SeriesSchema,
    events: RunTracepoints,
    columns: Vec<EventColumns>,
    has_keys: bool,
    /// Where a key is an address of code.
    symbols: Option<KernelSymbols>,
    /// Since when quantiles are: the last edge, or the last reading on a clock.
    base: Vec<EventReading>,
}

/// Which columns an event has, in this order: count; sum, mean, quantiles, largest; lost, unmatched.
struct EventColumns {
    has_values: bool,
    has_buckets: bool,
    counts_unmatched: bool,
    has_names: bool,
}

impl EventColumns {
    fn of(event: &OpenEvent) -> Self {
        let has_values = event.has_values();
        EventColumns {
            has_values,
            has_buckets: has_values && event.spec.kept() == KeptOfEvents::Histogram,
            counts_unmatched: event.spec.is_pair() && event.spec.of != Some(EventOwner::Workload),
            has_names: event.has_key_of(FieldMeaning::Device) || event.has_key_of(FieldMeaning::Code),
        }
    }

    fn specs(&self, event: &OpenEvent) -> Vec<ColumnSpec> {
        let (name, unit) = (&event.name, event.spec.value_unit());
        let owner = event.spec.of.unwrap_or_default().name();
        let meaning = format!(
            "{}, of the {owner}, by {}",
            event.spec.describe_tracepoints(),
            event.describe_back_end()
        );
        let mut specs = vec![ColumnSpec { meaning, ..ColumnSpec::counter(&format!("{name}.count"), "1") }];
        if self.has_values {
            specs.push(ColumnSpec::counter(&format!("{name}.sum"), unit));
            specs.push(ColumnSpec::float_gauge(&format!("{name}.mean"), unit));
            if self.has_buckets {
                let quantiles = QUANTILES.iter();
                specs.extend(quantiles.map(|(label, _)| ColumnSpec::gauge(&format!("{name}.{label}"), unit)));
            }
            specs.push(ColumnSpec::gauge(&format!("{name}.max"), unit));
        }
        specs.push(ColumnSpec::counter(&format!("{name}.lost"), "1"));
        if self.counts_unmatched {
            specs.push(ColumnSpec::counter(&format!("{name}.unmatched"), "1"));
        }
        specs
    }

    /// The cells of a row; largest values are known at the end of an iteration only.
    fn cells(&self, now: Option<&EventTally>, base: Option<&EventTally>, kind: ReadingKind) -> CellRow {
        let mut cells = Vec::new();
        let number = |value: u64| i64::try_from(value).map_or(TableCell::Missing, TableCell::Int);
        let nothing = EventTally::default();
        let before = base.unwrap_or(&nothing);
        cells.push(now.map_or(TableCell::Missing, |now| number(now.count)));
        if !self.has_values {
            return cells;
        }
        cells.push(now.map_or(TableCell::Missing, |now| number(now.sum)));
        let grown = now.filter(|_| kind != ReadingKind::Begin).map(|now| EventTally {
            count: now.count.saturating_sub(before.count),
            sum: now.sum.wrapping_sub(before.sum),
            max: now.max,
            buckets: now.buckets.as_ref().map(|buckets| {
                before.buckets.as_ref().map_or_else(|| buckets.clone(), |before| buckets.since(before))
            }),
        });
        let grown = grown.filter(|grown| grown.count > 0);
        let mean = grown.as_ref().map(|grown| grown.sum as f64 / grown.count as f64);
        cells.push(mean.map_or(TableCell::Missing, TableCell::Float));
        let max = grown.as_ref().filter(|_| kind == ReadingKind::End).map(|grown| grown.max);
        if self.has_buckets {
            for (_, part) in QUANTILES {
                let value = grown.as_ref().and_then(|grown| grown.buckets.as_ref()?.quantile(part));
                // The middle of the last bucket may lie beyond the largest of its values.
                let value = value.map(|value| max.map_or(value, |max| value.min(max)));
                cells.push(value.map_or(TableCell::Missing, number));
            }
        }
        cells.push(max.map_or(TableCell::Missing, number));
        cells
    }

    /// What was lost; of all keys together.
    fn loss_cells(&self, reading: Option<&EventReading>) -> CellRow {
        let sum = |of: fn(&EventReading) -> u64| {
            let sum = reading.and_then(|reading| i64::try_from(of(reading)).ok());
            sum.map_or(TableCell::Missing, TableCell::Int)
        };
        let mut cells = vec![sum(|reading| {
            let lost = reading.lost.iter().map(|lost| lost.events);
            lost.fold(reading.missed, u64::saturating_add)
        })];
        if self.counts_unmatched {
            cells.push(sum(|reading| {
                reading.lost.iter().map(|lost| lost.unmatched).fold(0, u64::saturating_add)
            }));
        }
        cells
    }
}

/// What a reading is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadingKind {
    Begin,
    End,
    Tick,
}

/// Opens the monitor of a run's events.
pub(crate) fn open_events(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let (columns, specs, has_keys) = opening.events.with_events(|events| {
        let columns: Vec<EventColumns> = events.iter().map(EventColumns::of).collect();
        let specs = columns.iter().zip(events).flat_map(|(columns, event)| columns.specs(event));
        let specs: Vec<ColumnSpec> = specs.collect();
        (columns, specs, events.iter().any(OpenEvent::has_keys))
    });
    if columns.is_empty() {
        return Err(ObserveError::NoEvents);
    }
    let keys = has_keys.then(|| ColumnSpec::key("key"));
    let has_code =
        opening.events.with_events(|events| events.iter().any(|event| event.has_key_of(FieldMeaning::Code)));
    let text = has_code.then(|| opening.root.read("/proc/kallsyms").ok()).flatten();
    // Where it does not say where functions are, addresses stay as they are.
    let symbols = text.and_then(|text| KernelSymbols::parse(text).ok());
    Ok(Box::new(EventsMonitor {
        root: opening.root.clone(),
        schema: opening.schema_with_columns(keys.into_iter().chain(specs).collect()),
        events: opening.events.clone(),
        columns,
        has_keys,
        symbols,
        base: Vec::new(),
    }))
}

impl EventsMonitor {
    fn read(&mut self, kind: ReadingKind, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let read = self.events.read(kind == ReadingKind::Begin);
        let mut readings = read.map_err(|reason| ObserveError::Uncounted { reason })?;
        if readings.len() < self.columns.len() {
            // The run is over, and has closed them.
            return Ok(());
        }
        for (columns, reading) in self.columns.iter().zip(&mut readings) {
            if columns.has_names {
                name_keys(&self.root, self.symbols.as_ref(), reading);
            }
        }
        let sum_keys = |reading: &EventReading| {
            let mut sum = EventTally::default();
            reading.by_key.values().for_each(|tally| sum.add(tally));
            sum
        };
        let mut row = Vec::with_capacity(self.schema.columns.len());
        row.extend(self.has_keys.then(|| TableCell::Text(ALL_KEYS.into())));
        for (place, columns) in self.columns.iter().enumerate() {
            let now = readings.get(place).map(sum_keys);
            let base = self.base.get(place).map(sum_keys);
            row.extend(columns.cells(now.as_ref(), base.as_ref(), kind));
            row.extend(columns.loss_cells(readings.get(place)));
        }
        rows.push(row);
        let keys = readings.iter().flat_map(|reading| reading.by_key.keys()).filter(|key| !key.is_empty());
        for key in keys.collect::<BTreeSet<_>>() {
            // A task may be called so; the row of all keys is another one.
            let shown = if key == ALL_KEYS { format!("\"{key}\"") } else { key.clone() };
            let mut row = vec![TableCell::Text(shown)];
            for (place, columns) in self.columns.iter().enumerate() {
                let of = |readings: &[EventReading]| readings.get(place)?.by_key.get(key).cloned();
                row.extend(columns.cells(of(&readings).as_ref(), of(&self.base).as_ref(), kind));
                row.extend(columns.loss_cells(None));
            }
            rows.push(row);
        }
        if kind != ReadingKind::End {
            self.base = readings;
        }
        Ok(())
    }
}

/// Names disks and functions of the kernel as the machine does, where their numbers stand: `254:0` is `vda`. What then has one
/// name is one.
fn name_keys(root: &Root, symbols: Option<&KernelSymbols>, reading: &mut EventReading) {
    let tallies = std::mem::take(&mut reading.by_key);
    let mut names: BTreeMap<String, EventTally> = BTreeMap::new();
    for (key, tally) in tallies {
        let named = key.split(',').map(|part| {
            if let Some(digits) = part.strip_prefix("0x") {
                let function =
                    u64::from_str_radix(digits, 16).ok().and_then(|address| symbols?.name_function(address));
                return function.unwrap_or(part).to_owned();
            }
            let link = part.contains(':').then(|| root.path(&format!("/sys/dev/block/{part}")).read_link());
            let name = link.and_then(|link| Some(link.ok()?.file_name()?.to_string_lossy().into_owned()));
            name.unwrap_or_else(|| part.to_owned())
        });
        names.entry(named.collect::<Vec<_>>().join(",")).or_default().add(&tally);
    }
    reading.by_key = names;
}

impl Monitor for EventsMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.read(ReadingKind::Tick, rows)
    }

    fn read_edge(&mut self, edge: IterationEdge, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        let kind = if edge == IterationEdge::Begin { ReadingKind::Begin } else { ReadingKind::End };
        self.read(kind, rows)
    }
}
