//! A monitor's series as samples of a metric: one per iteration, or one per reading.
//!
//! Per iteration: the mean of a gauge, the rate of a counter, so that it is compared like any metric; iterations with
//! too few readings are counted and left out. Per reading: every value while a workload ran, for tables over readings
//! as other tools print them.

use std::collections::{BTreeMap, BTreeSet};

use perflab_formats::kernel::loadavg::LoadavgRow;
use perflab_formats::kernel::pressure::PressureRow;
use perflab_model::column::{ColumnKind, ColumnSpec};
use perflab_model::fact_table;
use perflab_model::series::Series;
use perflab_model::table::{CellColumn, StoredValue};
use perflab_model::{Direction, Nanos, RowSchema, RunRecord, Sample, Unit};

/// What a series became.
#[derive(Debug, Clone, PartialEq)]
pub struct MonitorSamples {
    /// The run with one sample a column (and key) and iteration, instead of its own samples.
    pub record: RunRecord,
    /// Iterations in which the monitor was not read (twice, for counters) or not for half of the time, or of which nobody
    /// knows when they were.
    pub left_out: usize,
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

/// The rows of one key (a CPU, a device): indexes, ascending in time.
pub(crate) type KeyedRows = BTreeMap<String, Vec<usize>>;

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
            let (value, unit) = summarise_column(column, *data, inside, &series.at)?;
            Some(ColumnSummary { column: column.name.clone(), key: key.clone(), value, unit })
        }));
    }
    found
}

/// Summarises one series of a run over each of its measured iterations.
#[must_use]
pub fn summarise_monitor(record: &RunRecord, series: &Series) -> MonitorSamples {
    let keyed = rows_by_key(series, " ", |column, text| Some(format!("{column}={text}")));
    let columns = series.table.cell_columns();
    let untimed = spans_of_unknown_time(record);
    let mut samples = Vec::new();
    let mut left_out = 0;
    for iteration in &record.iterations {
        let slot = record.manifest.plan.slots.get(iteration.slot as usize);
        let Some(slot) = slot.filter(|slot| !slot.warmup && iteration.outcome == perflab_model::Outcome::Ok)
        else {
            continue;
        };
        let before = samples.len();
        let known = !untimed.contains(&(iteration.start, iteration.end));
        for (key, rows) in keyed.iter().filter(|_| known) {
            let inside = rows_within(rows, series, (iteration.start, iteration.end));
            let lasts = iteration.end.since(iteration.start);
            let is_smeared = |column: &ColumnSpec| {
                kernel_averages(&series.schema.monitor)
                    .any(|(name, over)| name == column.name && lasts < over)
            };
            let values = series.schema.columns.iter().zip(&columns).filter(|(column, _)| !is_smeared(column));
            samples.extend(values.filter_map(|(column, data)| {
                let (value, unit) = summarise_column(column, *data, inside, &series.at)?;
                let metric =
                    if key.is_empty() { column.name.clone() } else { format!("{} {key}", column.name) };
                Some(Sample {
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
                })
            }));
        }
        left_out += usize::from(samples.len() == before);
    }
    MonitorSamples { record: RunRecord { samples, ..record.clone() }, left_out }
}

/// Spans of as many readings may begin and end as they like; longer ones are to be covered by half.
const FEW_READINGS: u64 = 4;

/// The rows of a span; none where they cover less than half of it, as they are the end of what was recorded of another. One
/// at its very end is the next one's, as spans that were imported have whole seconds only.
fn rows_within<'a>(rows: &'a [usize], series: &Series, (start, end): TimeSpan) -> &'a [usize] {
    let before = |time: Nanos| rows.partition_point(|row| series.at.get(*row).is_some_and(|at| *at < time));
    let inside = rows.get(before(start)..before(end)).unwrap_or_default();
    let at = |row: Option<&usize>| row.and_then(|row| series.at.get(*row)).copied();
    let (Some(first), Some(last)) = (at(inside.first()), at(inside.last())) else { return &[] };
    let (length, step) = (end.since(start).0, series.schema.interval.0);
    let covered = last.since(first).0.saturating_add(step);
    if length > step.saturating_mul(FEW_READINGS) && covered.saturating_mul(2) < length {
        &[]
    } else {
        inside
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

/// When something ran.
pub(crate) type TimeSpan = (Nanos, Nanos);

/// Whether another workload ran in that span; reports of one benchmark share it and the beginning of their names.
fn ran_inside(span: TimeSpan, name: &str, other: TimeSpan, of: &str) -> bool {
    let related = name.starts_with(of) || of.starts_with(name) || of == "duration" || name == "duration";
    !related && span.0 <= other.0 && other.1 <= span.1 && other.0 < other.1
}

/// Rows by the values of their key columns; one empty key where there is none.
pub(crate) fn rows_by_key(
    series: &Series,
    between: &str,
    key_text_of: impl Fn(&str, &str) -> Option<String>,
) -> KeyedRows {
    let columns = series.schema.columns.iter().zip(series.table.cell_columns());
    let keys: Vec<(&ColumnSpec, CellColumn)> =
        columns.filter(|(column, _)| column.kind == ColumnKind::Key).collect();
    let mut found: KeyedRows = BTreeMap::new();
    for row in 0..series.at.len() {
        let texts =
            keys.iter().filter_map(|(column, data)| key_text_of(&column.name, &key_text(*data, row)?));
        found.entry(texts.collect::<Vec<_>>().join(between)).or_default().push(row);
    }
    found
}

fn key_text(data: CellColumn<'_>, row: usize) -> Option<String> {
    Some(match data.get(row)? {
        StoredValue::Int(number) => number.to_string(),
        StoredValue::Float(number) => number.to_string(),
        StoredValue::Text(text) => text.to_owned(),
        StoredValue::Flag(flag) => flag.to_string(),
    })
}

/// The mean of a gauge, the rate of a counter.
fn summarise_column(
    column: &ColumnSpec,
    data: CellColumn<'_>,
    rows: &[usize],
    at: &[Nanos],
) -> Option<(f64, Unit)> {
    match column.kind {
        ColumnKind::Counter => {
            let known = |row: &&usize| data.number(**row).is_some();
            let (first, last) = (rows.iter().find(known)?, rows.iter().rev().find(known)?);
            let seconds = at.get(*last)?.since(*at.get(*first)?).seconds();
            let grown = data.number(*last)? - data.number(*first)?;
            // A counter that went back was reset: its growth is not known.
            let unit = if column.unit.0 == "1" { "1/s".into() } else { format!("{}/s", column.unit) };
            (seconds > 0.0 && grown >= 0.0).then(|| (grown / seconds, Unit(unit.into())))
        }
        ColumnKind::Gauge => {
            let values: Vec<f64> = rows.iter().filter_map(|row| data.number(*row)).collect();
            Some((perflab_stats::mean(&values).ok()?, column.unit.clone()))
        }
        _ => None,
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
    use perflab_model::{CellRow, TableCell};

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
        let found = summarise_monitor(&record, &make_series(25));
        let of = |name: &str| -> Vec<f64> {
            found.record.samples.iter().filter(|s| s.metric == name).map(|s| s.value).collect()
        };
        assert_eq!(of("reads device=sda"), [100.0; 3]);
        assert_eq!(of("reads device=sdb"), [0.0; 3]);
        assert_eq!(of("queue device=sdb"), [2.0; 3]);
        assert_eq!(found.record.samples[0].unit, Unit::new("requests/s"));
        assert_eq!(found.left_out, 0);
    }

    #[test]
    fn iterations_without_a_reading_are_counted() {
        let record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 3)
            .build_run(|_| Some(1.0));
        assert_eq!(summarise_monitor(&record, &make_series(8)).left_out, 2);
    }

    /// Readings at the edge of a long iteration are the end of what another was watched with.
    #[test]
    fn iterations_that_were_hardly_watched_are_left_out() {
        let mut record = fixtures::run_builder::RunBuilder::new("01JD")
            .with(|lab| lab.iterations = 1)
            .build_run(|_| Some(1.0));
        record.iterations[0].end = Nanos(record.iterations[0].start.0 + 10_000_000_000);
        assert_eq!(summarise_monitor(&record, &make_series(25)).left_out, 1);
        record.iterations[0].end = Nanos(record.iterations[0].start.0 + 4_000_000_000);
        assert_eq!(summarise_monitor(&record, &make_series(25)).left_out, 0);
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
            let found = summarise_monitor(record, &pressure).record.samples;
            found.iter().map(|sample| String::from(&sample.metric)).collect()
        };
        assert_eq!(names(&record), ["reads device=sda", "reads device=sdb"]);
        let mut long = pressure.clone();
        long.at = long.at.iter().map(|at| Nanos(at.0 * 10)).collect();
        long.schema.interval = Nanos(1_000_000_000);
        (record.iterations[0].start, record.iterations[0].end) =
            (Nanos(10_000_000_000), Nanos(21_000_000_000));
        assert_eq!(summarise_monitor(&record, &long).record.samples.len(), 4);
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
            summarise_monitor(&record, &make_series(25)).left_out,
            0,
            "of our own runs the times are known"
        );
        record.manifest.facts.add(fact_table::IMPORT_KIND, "mmtests", "perflab");
        assert_eq!(summarise_monitor(&record, &make_series(25)).left_out, 2);
        assert!(monitor_readings(&record, &make_series(25)).samples.is_empty());
    }
}
