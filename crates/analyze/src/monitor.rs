//! Owns the summary of a monitor's series by iteration, so that it can be compared like any metric: the mean of a gauge, the
//! rate of a counter. It refuses iterations in which the monitor was not read often enough, and counts them.

use std::collections::BTreeMap;

use perflab_model::series::{Column, ColumnData, ColumnKind, Series};
use perflab_model::{Direction, Nanos, RunRecord, Sample, Unit};

/// What a series became.
#[derive(Debug, Clone, PartialEq)]
pub struct Summarised {
    /// The run with one sample a column (and key) and iteration, instead of its own samples.
    pub record: RunRecord,
    /// Iterations in which the monitor was not read (twice, for counters).
    pub left_out: usize,
}

/// The rows of one key (a CPU, a device): indexes, ascending in time.
type Keyed = BTreeMap<String, Vec<usize>>;

/// Summarises one series of a run over each of its measured iterations.
#[must_use]
pub fn summarise(record: &RunRecord, series: &Series) -> Summarised {
    let keyed = keyed(series);
    let mut samples = Vec::new();
    let mut left_out = 0;
    for iteration in &record.iterations {
        let slot = record.manifest.plan.slots.get(iteration.slot as usize);
        let Some(slot) = slot.filter(|slot| !slot.warmup && iteration.outcome == perflab_model::Outcome::Ok)
        else {
            continue;
        };
        let before = samples.len();
        for (key, rows) in &keyed {
            let from =
                rows.partition_point(|row| series.at.get(*row).is_some_and(|at| *at < iteration.start));
            let to = rows.partition_point(|row| series.at.get(*row).is_some_and(|at| *at <= iteration.end));
            let inside = rows.get(from..to).unwrap_or_default();
            let values = series.schema.columns.iter().zip(&series.columns);
            samples.extend(values.filter_map(|(column, data)| {
                let (value, unit) = summary(column, data, inside, &series.at)?;
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
    Summarised { record: RunRecord { samples, ..record.clone() }, left_out }
}

/// Rows by the values of their key columns; one empty key where there is none.
fn keyed(series: &Series) -> Keyed {
    let keys: Vec<(&Column, &ColumnData)> = series
        .schema
        .columns
        .iter()
        .zip(&series.columns)
        .filter(|(column, _)| column.kind == ColumnKind::Key)
        .collect();
    let mut found: Keyed = BTreeMap::new();
    for row in 0..series.at.len() {
        let texts: Vec<String> = keys.iter().filter_map(|(column, data)| key(column, data, row)).collect();
        found.entry(texts.join(" ")).or_default().push(row);
    }
    found
}

fn key(column: &Column, data: &ColumnData, row: usize) -> Option<String> {
    let text = match data {
        ColumnData::Int(values) => values.get(row)?.as_ref()?.to_string(),
        ColumnData::Float(values) => values.get(row)?.as_ref()?.to_string(),
        ColumnData::Text(values) => values.get(row)?.clone()?,
    };
    Some(format!("{}={text}", column.name))
}

fn number(data: &ColumnData, row: usize) -> Option<f64> {
    match data {
        ColumnData::Int(values) => values.get(row)?.map(|value| value as f64),
        ColumnData::Float(values) => *values.get(row)?,
        ColumnData::Text(_) => None,
    }
}

/// The mean of a gauge, the rate of a counter.
fn summary(column: &Column, data: &ColumnData, rows: &[usize], at: &[Nanos]) -> Option<(f64, Unit)> {
    match column.kind {
        ColumnKind::Counter => {
            let known = |row: &&usize| number(data, **row).is_some();
            let (first, last) = (rows.iter().find(known)?, rows.iter().rev().find(known)?);
            let seconds = at.get(*last)?.since(*at.get(*first)?).seconds();
            let grown = number(data, *last)? - number(data, *first)?;
            // A counter that went back was reset: its growth is not known.
            let unit = if column.unit.0 == "1" { "1/s".into() } else { format!("{}/s", column.unit) };
            (seconds > 0.0 && grown >= 0.0).then(|| (grown / seconds, Unit(unit.into())))
        }
        ColumnKind::Gauge => {
            let values: Vec<f64> = rows.iter().filter_map(|row| number(data, *row)).collect();
            Some((perflab_stats::mean(&values).ok()?, column.unit.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
