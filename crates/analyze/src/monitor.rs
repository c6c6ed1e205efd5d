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
        let Some(slot) = slot.filter(|slot| !slot.warmup && iteration.outcome == perflab_model::Outcome::Ok) else {
            continue;
        };
        let before = samples.len();
        for (key, rows) in &keyed {
            let from = rows.partition_point(|row| series.at.get(*row).is_some_and(|at| *at < iteration.start));
            let to = rows.partition_point(|row| series.at.get(*row).is_some_and(|at| *at <= iteration.end));
            let inside = rows.get(from..to).unwrap_or_default();
            let values = series.schema.columns.iter().zip(&series.columns);
            samples.extend(values.filter_map(|(column, data)| {
                let (value, unit) = summary(column, data, inside, &series.at)?;
                let metric = if key.is_empty() { column.name.clone() } else { format!("{} {key}", column.name) };
                Some(Sample {
                    boot: slot.boot,
                    target: None,
                    case: slot.case,
                    iteration: slot.iteration,
                    metric,
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
    let keys: Vec<(&Column, &ColumnData)> =
        series.schema.columns.iter().zip(&series.columns).filter(|(column, _)| column.kind == ColumnKind::Key).collect();
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
            (seconds > 0.0 && grown >= 0.0).then(|| (grown / seconds, Unit(unit)))
        }
        ColumnKind::Gauge => {
            let values: Vec<f64> = rows.iter().filter_map(|row| number(data, *row)).collect();
            Some((perflab_stats::mean(&values).ok()?, column.unit.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::series::SeriesSchema;

    use super::*;

    #[path = "../tests/it/build.rs"]
    #[expect(dead_code, reason = "only one plain run is wanted")]
    mod build;

    /// One tick each 100 ms over runs of half a second each: a counter of 10 a tick and a gauge, by device.
    fn series(ticks: u64) -> Series {
        let columns =
            vec![Column::key("device"), Column::counter("reads", "requests"), Column::gauge("queue", "requests")];
        let schema = SeriesSchema { monitor: "m".into(), source: "s".into(), interval: Nanos(100_000_000), columns };
        let at = (0..ticks).flat_map(|tick| [Nanos(1_000_000_000 + tick * 100_000_000); 2]).collect();
        let each = |make: fn(u64) -> [i64; 2]| ColumnData::Int((0..ticks).flat_map(make).map(Some).collect());
        let names = ColumnData::Text((0..ticks).flat_map(|_| ["sda", "sdb"]).map(|n| Some(n.into())).collect());
        Series { schema, at, columns: vec![names, each(|t| [10 * t as i64, 0]), each(|_| [4, 2])] }
    }

    #[test]
    fn counters_become_rates_and_gauges_means_of_each_key() {
        let record = build::Lab::new("01JD").with(|lab| lab.iterations = 3).run(|_| Some(1.0));
        let found = summarise(&record, &series(25));
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
        let record = build::Lab::new("01JD").with(|lab| lab.iterations = 3).run(|_| Some(1.0));
        assert_eq!(summarise(&record, &series(8)).left_out, 2);
    }
}
