//! Owns the summary of a monitor's series by iteration, so that it can be compared like any metric: the mean of a gauge, the
//! rate of a counter. It refuses iterations in which the monitor was not read often enough, and counts them.

mod readings;

use std::collections::{BTreeMap, BTreeSet};

use perflab_model::series::{ColumnData, ColumnKind, ColumnSpec, Series};
use perflab_model::{Direction, Nanos, RunRecord, Sample, Unit};

pub use readings::monitor_readings;

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
    ("pressure", &[("avg10", 10), ("avg60", 60), ("avg300", 300)]),
    ("loadavg", &[("load_1", 60), ("load_5", 300), ("load_15", 900)]),
];

/// The columns of a monitor that the kernel averages, each with the time over which it does.
pub fn kernel_averages(monitor: &str) -> impl Iterator<Item = (&'static str, Nanos)> {
    let found = AVERAGES.iter().find(|(name, _)| *name == monitor).map_or(&[][..], |(_, columns)| columns);
    found.iter().map(|(column, seconds)| (*column, Nanos(seconds * 1_000_000_000)))
}

/// The rows of one key (a CPU, a device): indexes, ascending in time.
type KeyedRows = BTreeMap<String, Vec<usize>>;

/// Summarises one series of a run over each of its measured iterations.
#[must_use]
pub fn summarise_monitor(record: &RunRecord, series: &Series) -> MonitorSamples {
    let keyed = rows_by_key(series, " ", |column, text| Some(format!("{column}={text}")));
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
            let values =
                series.schema.columns.iter().zip(&series.columns).filter(|(column, _)| !is_smeared(column));
            samples.extend(values.filter_map(|(column, data)| {
                let (value, unit) = summarise_column(column, data, inside, &series.at)?;
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
    if record.manifest.facts.value("import.kind").is_none() {
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
type TimeSpan = (Nanos, Nanos);

/// Whether another workload ran in that span; reports of one benchmark share it and the beginning of their names.
fn ran_inside(span: TimeSpan, name: &str, other: TimeSpan, of: &str) -> bool {
    let related = name.starts_with(of) || of.starts_with(name) || of == "duration" || name == "duration";
    !related && span.0 <= other.0 && other.1 <= span.1 && other.0 < other.1
}

/// Rows by the values of their key columns; one empty key where there is none.
fn rows_by_key(series: &Series, between: &str, told: impl Fn(&str, &str) -> Option<String>) -> KeyedRows {
    let keys: Vec<(&ColumnSpec, &ColumnData)> = series
        .schema
        .columns
        .iter()
        .zip(&series.columns)
        .filter(|(column, _)| column.kind == ColumnKind::Key)
        .collect();
    let mut found: KeyedRows = BTreeMap::new();
    for row in 0..series.at.len() {
        let texts = keys.iter().filter_map(|(column, data)| told(&column.name, &key_text(data, row)?));
        found.entry(texts.collect::<Vec<_>>().join(between)).or_default().push(row);
    }
    found
}

fn key_text(data: &ColumnData, row: usize) -> Option<String> {
    Some(match data {
        ColumnData::Int(values) => values.get(row)?.as_ref()?.to_string(),
        ColumnData::Float(values) => values.get(row)?.as_ref()?.to_string(),
        ColumnData::Text(values) => values.get(row)?.clone()?,
    })
}

fn number_at(data: &ColumnData, row: usize) -> Option<f64> {
    match data {
        ColumnData::Int(values) => values.get(row)?.map(|value| value as f64),
        ColumnData::Float(values) => *values.get(row)?,
        ColumnData::Text(_) => None,
    }
}

/// The mean of a gauge, the rate of a counter.
fn summarise_column(
    column: &ColumnSpec,
    data: &ColumnData,
    rows: &[usize],
    at: &[Nanos],
) -> Option<(f64, Unit)> {
    match column.kind {
        ColumnKind::Counter => {
            let known = |row: &&usize| number_at(data, **row).is_some();
            let (first, last) = (rows.iter().find(known)?, rows.iter().rev().find(known)?);
            let seconds = at.get(*last)?.since(*at.get(*first)?).seconds();
            let grown = number_at(data, *last)? - number_at(data, *first)?;
            // A counter that went back was reset: its growth is not known.
            let unit = if column.unit.0 == "1" { "1/s".into() } else { format!("{}/s", column.unit) };
            (seconds > 0.0 && grown >= 0.0).then(|| (grown / seconds, Unit(unit.into())))
        }
        ColumnKind::Gauge => {
            let values: Vec<f64> = rows.iter().filter_map(|row| number_at(data, *row)).collect();
            Some((perflab_stats::mean(&values).ok()?, column.unit.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
