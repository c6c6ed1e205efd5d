//! A monitor's series as samples of a metric: one per iteration, or one per reading.
//!
//! Per iteration: the mean of a gauge, the rate of a counter, so that it is compared like any metric; of what the workload itself
//! caused, and of events, the counts. Where the monitor was read
//! at the iteration's edges, rates are exact however short it was; without, iterations with too few ticks are counted and
//! left out. A counter that went backwards in between has no rate. Per reading: every value while a workload ran, for tables over readings
//! as other tools print them.

use std::collections::{BTreeMap, BTreeSet};

use perflab_formats::kernel::counters::counts_of_workload;
use perflab_formats::kernel::events::tells_of_iterations;
use perflab_formats::kernel::loadavg::LoadavgRow;
use perflab_formats::kernel::pressure::PressureRow;
use perflab_formats::kernel::{Divisor, derived_columns};
use perflab_model::column::{ColumnKind, ColumnSpec};
use perflab_model::fact_table;
use perflab_model::quantity::is_count_unit;
use perflab_model::series::Series;
use perflab_model::table::CellColumn;
use perflab_model::{
    Direction, EdgeReadings, IterationRecord, Nanos, RowSchema, RunRecord, Sample, Slot, Unit,
};

use crate::iteration_readings::{ColumnReading, IterationReadings};
use crate::keyed_rows::{TimeSpan, rows_by_key, rows_within};

/// What a series became.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorSamples {
    /// The run with one sample a column (and key) and iteration, instead of its own samples.
    pub record: RunRecord,
    /// Iterations in which the monitor was not read (twice, for counters) or not for half of the time, or of which nobody
    /// knows when they were.
    pub left_out: usize,
    /// Of each sample, how far its value may be off since a reading takes time and the kernel gives each number at some moment of
    /// it; 0 where that is not known.
    pub reading_errors: Vec<f64>,
    /// Counters that went backwards within an iteration, each with how often: it has no rate there.
    pub went_back: BTreeMap<String, usize>,
}

/// Columns that the kernel itself averages, each with how long: over iterations that are shorter they are not independent of
/// one another, and as many of them as one likes are one value.
const AVERAGES: &[(&str, &[(&str, u64)])] = &[
    (
        PressureRow::NAME,
        &[
            (PressureRow::AVG10.name(), 10),
            (PressureRow::AVG60.name(), 60),
            (PressureRow::AVG300.name(), 300),
        ],
    ),
    (
        LoadavgRow::NAME,
        &[
            (LoadavgRow::LOAD_1.name(), 60),
            (LoadavgRow::LOAD_5.name(), 300),
            (LoadavgRow::LOAD_15.name(), 900),
        ],
    ),
];

/// The columns of a monitor that the kernel averages, each with the time over which it does.
pub fn kernel_averages(monitor: &str) -> impl Iterator<Item = (&'static str, Nanos)> {
    let found = AVERAGES.iter().find(|(name, _)| *name == monitor).map_or(&[][..], |(_, columns)| columns);
    found.iter().map(|(column, seconds)| (*column, Nanos(seconds * 1_000_000_000)))
}

/// A column of a series over a span of time: the mean of a gauge, the rate of a counter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ColumnSummary {
    /// the column's name
    pub(crate) column: String,
    /// its row's keys, `device=sda`; empty where the series has none
    pub(crate) key: String,
    pub(crate) value: f64,
    pub(crate) unit: Unit,
}

/// Every column of a series over a span of time; those without a reading in it are left out.
pub(crate) fn summarise_span(series: &Series, span: TimeSpan) -> Vec<ColumnSummary> {
    let keyed = rows_by_key(series, " ", |column, text| Some(format!("{column}={text}")));
    let columns = series.table.cell_columns();
    let mut found = Vec::new();
    for (key, rows) in &keyed {
        let inside = rows_within(rows, series, span);
        found.extend(series.schema.columns.iter().zip(&columns).filter_map(|(column, data)| {
            let readings = inside.iter().filter_map(|row| ColumnReading::tick(series, *data, *row));
            let ColumnOutcome::Value { value, unit, .. } =
                summarise_column(column, &readings.collect::<Vec<_>>())
            else {
                return None;
            };
            Some(ColumnSummary { column: column.name.clone(), key: key.clone(), value, unit })
        }));
    }
    found
}

/// Every column of a monitor over one iteration, from its edges and the ticks within; those without a reading are left out.
pub(crate) fn summarise_iteration(
    series: &Series,
    edges: Option<&EdgeReadings>,
    iteration: &IterationRecord,
) -> Vec<ColumnSummary> {
    let readings = IterationReadings::new(series, edges);
    let columns = &readings.schema().columns;
    let mut found = Vec::new();
    for row in readings.rows(iteration) {
        found.extend(columns.iter().enumerate().filter_map(|(place, column)| {
            match summarise_column(column, &row.readings(place)) {
                ColumnOutcome::Value { value, unit, .. } => {
                    Some(ColumnSummary { column: column.name.clone(), key: row.key.to_owned(), value, unit })
                }
                ColumnOutcome::WentBack | ColumnOutcome::Unknown => None,
            }
        }));
    }
    found
}

/// Summarises one series of a run over each of its measured iterations, from its ticks and from what was read at their edges.
#[must_use]
pub fn summarise_monitor(
    record: &RunRecord,
    series: &Series,
    edges: Option<&EdgeReadings>,
) -> MonitorSamples {
    summarise_counters_as(record, series, edges, CounterMeasure::Rate)
}

/// What a counter of the machine comes to in an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CounterMeasure {
    /// its growth a second
    Rate,
    /// its growth in the whole iteration; nothing is worked out of several counters
    Growth,
}

pub(crate) fn summarise_counters_as(
    record: &RunRecord,
    series: &Series,
    edges: Option<&EdgeReadings>,
    measure: CounterMeasure,
) -> MonitorSamples {
    let readings = IterationReadings::new(series, edges);
    let schema = readings.schema();
    let derived = match measure {
        CounterMeasure::Rate => derived_columns(&schema.monitor),
        CounterMeasure::Growth => &[],
    };
    let operations = IterationOperations::new(record, &schema.monitor);
    let untimed = spans_of_unknown_time(record);
    let counts_iterations =
        edges.is_some() && (counts_of_workload(&schema.monitor) || tells_of_iterations(&schema.monitor));
    let mut found = MonitorSamples {
        record: RunRecord { samples: Vec::new(), ..record.clone() },
        left_out: 0,
        reading_errors: Vec::new(),
        went_back: BTreeMap::new(),
    };
    for iteration in &record.iterations {
        let slot = record.manifest.plan.slots.get(iteration.slot as usize);
        let Some(slot) = slot.filter(|slot| !slot.warmup && iteration.outcome == perflab_model::Outcome::Ok)
        else {
            continue;
        };
        let before = found.record.samples.len();
        let is_known = !untimed.contains(&(iteration.start, iteration.end));
        let lasts = iteration.end.since(iteration.start);
        for row in readings.rows(iteration).iter().filter(|_| is_known) {
            let name = |column: &str| {
                if row.key.is_empty() { column.to_owned() } else { format!("{column} {}", row.key) }
            };
            let mut growths: BTreeMap<&str, CounterGrowth> = BTreeMap::new();
            for (place, column) in schema.columns.iter().enumerate() {
                if kernel_averages(&schema.monitor).any(|(name, over)| name == column.name && lasts < over) {
                    continue;
                }
                let readings = row.readings(place);
                match summarise_column(column, &readings) {
                    // All that the workload caused: reading takes nothing away from it, and adds nothing.
                    ColumnOutcome::Value { growth: Some(growth), .. } if counts_iterations => {
                        growths.insert(column.name.as_str(), growth);
                        let value = (growth.grown, column.unit.clone());
                        found.push((slot, iteration), name(&column.name), value, 0.0);
                    }
                    ColumnOutcome::Value { growth: Some(growth), .. }
                        if measure == CounterMeasure::Growth =>
                    {
                        // Edges enclose the iteration; ticks lie within it.
                        let unread = lasts.seconds() / growth.seconds;
                        let grown = growth.grown * unread.max(1.0);
                        let error = grown.abs() * growth.relative_error();
                        found.push(
                            (slot, iteration),
                            name(&column.name),
                            (grown, column.unit.clone()),
                            error,
                        );
                    }
                    ColumnOutcome::Value { value, unit, growth } => {
                        growths.extend(growth.map(|growth| (column.name.as_str(), growth)));
                        let error = growth.map_or(0.0, |growth| value.abs() * growth.relative_error());
                        found.push((slot, iteration), name(&column.name), (value, unit), error);
                    }
                    ColumnOutcome::WentBack => *found.went_back.entry(name(&column.name)).or_default() += 1,
                    ColumnOutcome::Unknown => {}
                }
            }
            for column in derived {
                let Some(span) = column.counters().find_map(|name| growths.get(name)) else { continue };
                let growth = |name: &str| growths.get(name).map(|growth| growth.grown);
                let operations = operations.of(slot);
                let Some(value) = column.value(growth, span.seconds, operations) else { continue };
                let is_rate = column.divisor == Divisor::Time;
                let error = if is_rate { value.abs() * span.relative_error() } else { 0.0 };
                let value = (value, Unit::new(column.unit));
                found.push((slot, iteration), name(column.name), value, error);
            }
        }
        found.left_out += usize::from(found.record.samples.len() == before);
    }
    found
}

impl MonitorSamples {
    fn push(
        &mut self,
        (slot, iteration): (&Slot, &IterationRecord),
        metric: String,
        (value, unit): (f64, Unit),
        error: f64,
    ) {
        self.reading_errors.push(error);
        self.record.samples.push(Sample {
            boot: slot.boot,
            target: None,
            case: slot.case,
            iteration: slot.iteration,
            metric: metric.into(),
            value,
            unit,
            direction: Direction::Neither,
            primary: false,
            start: iteration.start,
            end: iteration.end,
        });
    }
}

/// How many operations the workload did in each iteration, where its deciding metric is operations a second.
struct IterationOperations(BTreeMap<(u32, u32, u32), f64>);

impl IterationOperations {
    /// Of all targets together, or of the one whose monitor this is.
    fn new(record: &RunRecord, monitor: &str) -> Self {
        let target = monitor.split_once('.').map(|(_, target)| target);
        let is_ours = |sample: &&Sample| {
            let of = sample.target.and_then(|index| record.manifest.targets.get(index as usize));
            target.is_none_or(|name| of.is_some_and(|of| of.name == name))
        };
        let mut found = BTreeMap::new();
        for sample in record.samples.iter().filter(|sample| sample.primary).filter(is_ours) {
            let what = sample.unit.0.strip_suffix("/s").unwrap_or_default();
            // Work that is counted, not time or an amount of data.
            let is_count = !what.is_empty() && is_count_unit(what);
            if is_count {
                let done = sample.value * sample.end.since(sample.start).seconds();
                *found.entry((sample.boot, sample.case, sample.iteration)).or_insert(0.0) += done;
            }
        }
        IterationOperations(found)
    }

    fn of(&self, slot: &Slot) -> Option<f64> {
        self.0.get(&(slot.boot, slot.case, slot.iteration)).copied()
    }
}

/// Spans of a run that was imported in which several benchmarks ran: when one of them did is not known, so that it has the
/// time of the whole run.
fn spans_of_unknown_time(record: &RunRecord) -> BTreeSet<TimeSpan> {
    let plan = &record.manifest.plan;
    if record.manifest.facts.value(&fact_table::IMPORT_KIND).is_none() {
        return BTreeSet::new();
    }
    let timed = |iteration: &perflab_model::IterationRecord| {
        let slot = plan.slots.get(iteration.slot as usize)?;
        Some((plan.case(slot.case)?.workload.as_str(), (iteration.start, iteration.end)))
    };
    let all: BTreeSet<(&str, TimeSpan)> = record.iterations.iter().filter_map(timed).collect();
    let several =
        |(name, span): &&(&str, TimeSpan)| all.iter().any(|(of, other)| ran_inside(*span, name, *other, of));
    all.iter().filter(several).map(|(_, span)| *span).collect()
}

/// Whether another workload ran in that span; reports of one benchmark share it and the beginning of their names.
fn ran_inside(span: TimeSpan, name: &str, other: TimeSpan, of: &str) -> bool {
    let related = name.starts_with(of) || of.starts_with(name) || of == "duration" || name == "duration";
    !related && span.0 <= other.0 && other.1 <= span.1 && other.0 < other.1
}

/// What a column comes to.
#[derive(Debug, Clone, PartialEq)]
enum ColumnOutcome {
    Value {
        value: f64,
        unit: Unit,
        /// of one that counts
        growth: Option<CounterGrowth>,
    },
    /// It counts, and was less than before: it was reset, or wrapped. Its growth is not known.
    WentBack,
    /// It was not read often enough, or is no number.
    Unknown,
}

/// How much a counter has grown between its first reading and its last.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CounterGrowth {
    grown: f64,
    seconds: f64,
    /// How long these two readings took together.
    took: Nanos,
}

impl CounterGrowth {
    /// How far the time between them may be off, of itself: half of each reading.
    fn relative_error(&self) -> f64 {
        self.took.seconds() / 2.0 / self.seconds
    }
}

/// The mean of a gauge, the rate of a counter, from readings in the order of their times.
fn summarise_column(column: &ColumnSpec, readings: &[ColumnReading]) -> ColumnOutcome {
    match column.kind {
        ColumnKind::Counter => {
            if readings.windows(2).any(|pair| matches!(pair, [one, next] if next.value < one.value)) {
                return ColumnOutcome::WentBack;
            }
            let (Some(first), Some(last)) = (readings.first(), readings.last()) else {
                return ColumnOutcome::Unknown;
            };
            let seconds = last.at.since(first.at).seconds();
            if seconds <= 0.0 {
                return ColumnOutcome::Unknown;
            }
            let took = Nanos(first.took.0.saturating_add(last.took.0));
            let grown = last.value - first.value;
            let growth = Some(CounterGrowth { grown, seconds, took });
            ColumnOutcome::Value { value: grown / seconds, unit: column.unit.per_second(), growth }
        }
        ColumnKind::Gauge => {
            // The edges are no sample of the time between them: they are all there is where there is no tick.
            let ticks: Vec<f64> =
                readings.iter().filter(|reading| reading.is_tick).map(|reading| reading.value).collect();
            let all = || readings.iter().map(|reading| reading.value).collect();
            let values = if ticks.is_empty() { all() } else { ticks };
            perflab_stats::mean(&values).map_or(ColumnOutcome::Unknown, |value| ColumnOutcome::Value {
                value,
                unit: column.unit.clone(),
                growth: None,
            })
        }
        _ => ColumnOutcome::Unknown,
    }
}

/// Every reading of a series as a sample of the workload that ran then, for tables over readings: the value of a gauge,
/// the growth of a counter since the reading before. `vda-w_await`: keys, then the column.
#[must_use]
pub fn monitor_readings(record: &RunRecord, series: &Series) -> RunRecord {
    let shown_key = |column: &str, text: &str| {
        (!["unit", "flags"].contains(&column) && !text.is_empty()).then(|| text.to_owned())
    };
    let keyed = rows_by_key(series, "-", shown_key);
    let columns = series.table.cell_columns();
    let mut samples: Vec<Sample> = Vec::new();
    for ((case, boot, ..), span) in workload_spans(record) {
        for (key, rows) in &keyed {
            let inside = rows_within(rows, series, span);
            for (column, data) in series.schema.columns.iter().zip(&columns) {
                let metric = match (key.as_str(), column.name.as_str()) {
                    ("", name) => name.to_owned(),
                    (key, "value") => key.to_owned(),
                    (key, name) => format!("{key}-{name}"),
                };
                let values = column_readings(column, *data, inside);
                samples.extend((0..).zip(values).map(|(iteration, value)| Sample {
                    boot,
                    target: None,
                    case,
                    iteration,
                    metric: metric.as_str().into(),
                    value,
                    unit: column.unit.clone(),
                    direction: Direction::Neither,
                    primary: false,
                    start: span.0,
                    end: span.1,
                }));
            }
        }
    }
    RunRecord { samples, ..record.clone() }
}

/// Case and boot of a workload's readings, which iterations of imported benchmarks share.
type WorkloadReadingKey = (u32, u32, Nanos);

/// When each workload ran, each range once, in the workload's first case.
fn workload_spans(record: &RunRecord) -> BTreeMap<WorkloadReadingKey, TimeSpan> {
    let plan = &record.manifest.plan;
    let mut first: BTreeMap<&str, u32> = BTreeMap::new();
    let mut found = BTreeMap::new();
    for iteration in record.iterations.iter().filter(|one| one.outcome == perflab_model::Outcome::Ok) {
        let slot = plan.slots.get(iteration.slot as usize).filter(|slot| !slot.warmup);
        let Some((slot, case)) = slot.and_then(|slot| Some((slot, plan.case(slot.case)?))) else { continue };
        let case = *first.entry(case.workload.as_str()).or_insert(slot.case);
        found.insert((case, slot.boot, iteration.start), (iteration.start, iteration.end));
    }
    let untimed = spans_of_unknown_time(record);
    found.retain(|_, span| !untimed.contains(span));
    found
}

/// The readings of a gauge, the growth of a counter; a counter that went back was reset.
fn column_readings(column: &ColumnSpec, data: CellColumn<'_>, rows: &[usize]) -> Vec<f64> {
    let values = rows.iter().filter_map(|row| data.number(*row));
    match column.kind {
        ColumnKind::Gauge => values.collect(),
        ColumnKind::Counter => {
            let known: Vec<f64> = values.collect();
            let grown = known.windows(2).filter_map(|pair| Some(pair.get(1)? - pair.first()?));
            grown.filter(|grown| *grown >= 0.0).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::series::SeriesSchema;
    use perflab_model::{CellRow, EdgeStamp, IterationEdge, TableCell};

    use super::*;

    /// One tick each 100 ms over runs of half a second each: a counter of 10 a tick and a gauge, by device.
    fn make_series(ticks: u64) -> Series {
        let columns = vec![
            ColumnSpec::key("device"),
            ColumnSpec::counter("reads", "requests"),
            ColumnSpec::gauge("queue", "requests"),
        ];
        let schema = SeriesSchema {
            stored: perflab_model::series::StoredRows::Every,
            monitor: "m".into(),
            source: "s".into(),
            interval: Nanos(100_000_000),
            columns,
        };
        let rows: Vec<(Nanos, CellRow)> = (0..ticks)
            .flat_map(|tick| {
                let at = Nanos(1_000_000_000 + tick * 100_000_000);
                [("sda", 10 * tick as i64, 4), ("sdb", 0, 2)].map(|(name, reads, queue)| {
                    (at, vec![TableCell::Text(name.into()), TableCell::Int(reads), TableCell::Int(queue)])
                })
            })
            .collect();
        Series::from_rows(schema, &rows)
    }

    #[test]
    fn counters_become_rates_and_gauges_means_of_each_key() {
        let record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 3)
            .build_run(|_| Some(1.0));
        let found = summarise_monitor(&record, &make_series(25), None);
        let of = |name: &str| -> Vec<f64> {
            found.record.samples.iter().filter(|s| s.metric == name).map(|s| s.value).collect()
        };
        assert_eq!(of("reads device=sda"), [100.0; 3]);
        assert_eq!(of("reads device=sdb"), [0.0; 3]);
        assert_eq!(of("queue device=sdb"), [2.0; 3]);
        assert_eq!(found.record.samples[0].unit, Unit::new("requests/s"));
        assert_eq!(found.left_out, 0);
    }

    /// Edges of three iterations of the builder's run: the counter grows by 30, 30 and 30 between them, at 1 ms each.
    fn make_edges(values: [i64; 6]) -> EdgeReadings {
        let columns = vec![
            ColumnSpec::key("device"),
            ColumnSpec::counter("reads", "requests"),
            ColumnSpec::gauge("queue", "requests"),
        ];
        let schema = SeriesSchema {
            monitor: "m".into(),
            source: "s".into(),
            interval: Nanos(0),
            columns,
            stored: perflab_model::series::StoredRows::Every,
        };
        let rows: Vec<(EdgeStamp, CellRow)> = values
            .into_iter()
            .enumerate()
            .map(|(number, value)| {
                let edge = [IterationEdge::Begin, IterationEdge::End][number % 2];
                let slot = number as u32 / 2;
                // The end takes 20 us longer to read, so that its middle is 10 us later.
                let (at, took) = (Nanos(1_000_000 * number as u64), Nanos(20_000 * (number as u64 % 2)));
                let row = vec![TableCell::Text("sda".into()), TableCell::Int(value), TableCell::Int(value)];
                (EdgeStamp { slot, edge, at, took }, row)
            })
            .collect();
        EdgeReadings::from_rows(schema, &rows)
    }

    #[test]
    fn edges_make_a_rate_of_the_shortest_iteration() {
        let record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 3)
            .build_run(|_| Some(1.0));
        let edges = make_edges([10, 40, 40, 70, 100, 90]);
        let found = summarise_monitor(&record, &Series::empty(edges.schema.clone()), Some(&edges));
        let of = |name: &str| -> Vec<f64> {
            found.record.samples.iter().filter(|s| s.metric == name).map(|s| s.value).collect()
        };
        // 30 in 1 ms and half of 20 us, which may be off by another half.
        assert_eq!(of("reads device=sda"), [30.0 / 0.00101; 2]);
        assert_eq!(found.reading_errors.len(), found.record.samples.len());
        assert!((found.reading_errors[0] - 30.0 / 0.00101 * 0.00001 / 0.00101).abs() < 1e-6);
        assert_eq!(of("queue device=sda"), [25.0, 55.0, 95.0], "without a tick, the middle of both edges");
        assert_eq!(found.went_back, BTreeMap::from([("reads device=sda".to_owned(), 1)]));
        assert_eq!(found.left_out, 0);
    }

    /// Of events, a row is there from when its key first came; what is said at an end is of the whole iteration.
    #[test]
    fn events_tell_of_each_iteration_by_itself() {
        let record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 2)
            .build_run(|_| Some(1.0));
        let mut edges = make_edges([0, 30, 30, 60, 60, 90]);
        edges.schema.monitor = "events.guest1".into();
        let cells = |row: &EdgeStamp, device: &str, reads: i64, queue: Option<i64>| -> (EdgeStamp, CellRow) {
            let queue = queue.map_or(TableCell::Missing, TableCell::Int);
            (*row, vec![TableCell::Text(device.into()), TableCell::Int(reads), queue])
        };
        let [begin, end, next_begin, next_end] = [0, 1, 2, 3].map(|row| edges.stamps[row]);
        let rows = [
            cells(&begin, "all", 0, None),
            cells(&end, "all", 30, Some(7)),
            cells(&next_begin, "all", 31, None),
            cells(&next_end, "all", 36, Some(9)),
            cells(&next_end, "sda", 5, Some(3)),
        ];
        let edges = EdgeReadings::from_rows(edges.schema, &rows);
        let mut series = make_series(0);
        series.schema.monitor = "events.guest1".into();
        let found = summarise_monitor(&record, &series, Some(&edges));
        let of = |name: &str| -> Vec<f64> {
            found.record.samples.iter().filter(|s| s.metric == name).map(|s| s.value).collect()
        };
        assert_eq!(of("reads device=all"), [30.0, 5.0]);
        assert_eq!(of("reads device=sda"), [0.0, 5.0], "it had not come before");
        assert_eq!((of("queue device=all"), of("queue device=sda")), (vec![7.0, 9.0], vec![3.0]));
        assert_eq!(found.record.samples[0].unit, Unit::new("requests"));
    }

    /// A counter that was reset in between may be larger at the end than at the beginning.
    #[test]
    fn a_counter_that_was_reset_between_edges_has_no_rate() {
        let record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 1)
            .build_run(|_| Some(1.0));
        let edges = make_edges([0, 1_000, 0, 0, 0, 0]);
        let rates = |series: &Series| {
            let found = summarise_monitor(&record, series, Some(&edges));
            found.record.samples.iter().filter(|sample| sample.metric == "reads device=sda").count()
        };
        assert_eq!(rates(&make_series(25)), 1);
        let mut reset = make_series(25);
        let rows: Vec<(Nanos, CellRow)> = (0..5_u64)
            .map(|tick| {
                let reads = [10, 20, 30, 0, 10][tick as usize];
                let row = vec![TableCell::Text("sda".into()), TableCell::Int(reads), TableCell::Int(0)];
                (Nanos(1_000_000_000 + tick * 100_000_000), row)
            })
            .collect();
        reset = Series::from_rows(reset.schema, &rows);
        assert_eq!(rates(&reset), 0);
    }

    #[test]
    fn iterations_without_a_reading_are_counted() {
        let record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 3)
            .build_run(|_| Some(1.0));
        assert_eq!(summarise_monitor(&record, &make_series(8), None).left_out, 2);
    }

    /// Readings at the edge of a long iteration are the end of what another was watched with.
    #[test]
    fn iterations_that_were_hardly_watched_are_left_out() {
        let mut record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 1)
            .build_run(|_| Some(1.0));
        record.iterations[0].end = Nanos(record.iterations[0].start.0 + 10_000_000_000);
        assert_eq!(summarise_monitor(&record, &make_series(25), None).left_out, 1);
        record.iterations[0].end = Nanos(record.iterations[0].start.0 + 4_000_000_000);
        assert_eq!(summarise_monitor(&record, &make_series(25), None).left_out, 0);
    }

    /// What the kernel averages over ten seconds says nothing of an iteration of half a second.
    #[test]
    fn averages_of_the_kernel_are_no_samples_of_shorter_iterations() {
        let mut record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 1)
            .build_run(|_| Some(1.0));
        let mut pressure = make_series(25);
        pressure.schema.monitor = "pressure".into();
        pressure.schema.columns[2].name = "avg10".into();
        let names = |record: &RunRecord| -> Vec<String> {
            let found = summarise_monitor(record, &pressure, None).record.samples;
            found.iter().map(|sample| String::from(&sample.metric)).collect()
        };
        assert_eq!(names(&record), ["reads device=sda", "reads device=sdb"]);
        let mut long = pressure.clone();
        long.at = long.at.iter().map(|at| Nanos(at.0 * 10)).collect();
        long.schema.interval = Nanos(1_000_000_000);
        (record.iterations[0].start, record.iterations[0].end) =
            (Nanos(10_000_000_000), Nanos(21_000_000_000));
        assert_eq!(summarise_monitor(&record, &long, None).record.samples.len(), 4);
    }

    #[test]
    fn readings_are_single_values_of_the_workload() {
        let record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 1)
            .build_run(|_| Some(1.0));
        let found = monitor_readings(&record, &make_series(25));
        let of = |name: &str| -> Vec<f64> {
            found.samples.iter().filter(|s| s.metric == name).map(|s| s.value).collect()
        };
        let queue = of("sda-queue");
        assert!(queue.len() > 1 && queue.iter().all(|value| *value == 4.0), "{queue:?}");
        assert_eq!(of("sda-reads"), vec![10.0; queue.len() - 1], "the first growth is not known");
    }

    /// Without its times a benchmark has those of the whole run, and the readings may be another's.
    #[test]
    fn benchmarks_of_unknown_time_have_no_readings() {
        let mut record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 2)
            .build_run(|_| Some(1.0));
        let mut other = record.manifest.plan.cases[0].clone();
        other.workload = "unrelated".into();
        record.manifest.plan.cases.push(other);
        let (first, last) = (record.iterations[0].start, record.iterations[1].end);
        record.manifest.plan.slots[1].case = record.manifest.plan.cases.len() as u32 - 1;
        for iteration in &mut record.iterations {
            (iteration.start, iteration.end) = (first, last);
        }
        assert_eq!(
            summarise_monitor(&record, &make_series(25), None).left_out,
            0,
            "of our own runs the times are known"
        );
        record.manifest.facts.add(fact_table::IMPORT_KIND, "mmtests", "perflab");
        assert_eq!(summarise_monitor(&record, &make_series(25), None).left_out, 2);
        assert!(monitor_readings(&record, &make_series(25)).samples.is_empty());
    }
}
