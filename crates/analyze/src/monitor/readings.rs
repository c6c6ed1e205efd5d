//! Every reading of a monitor's series while a workload ran, for tables over readings as other tools print them. Refuses to
//! make one value of an iteration's: [`summarise`](super::summarise_monitor) does.

use std::collections::BTreeMap;

use perflab_model::series::{ColumnData, ColumnKind, ColumnSpec, Series};
use perflab_model::{Direction, Nanos, RunRecord, Sample};

use super::{TimeSpan, number_at, rows_by_key, rows_within, spans_of_unknown_time};

/// Every reading of a series as a sample of the workload that ran then, for tables over readings: the value of a gauge,
/// the growth of a counter since the reading before. `vda-w_await`: keys, then the column.
#[must_use]
pub fn monitor_readings(record: &RunRecord, series: &Series) -> RunRecord {
    let told = |column: &str, text: &str| {
        (!["unit", "flags"].contains(&column) && !text.is_empty()).then(|| text.to_owned())
    };
    let keyed = rows_by_key(series, "-", told);
    let mut samples: Vec<Sample> = Vec::new();
    for ((case, boot, ..), span) in workload_spans(record) {
        for (key, rows) in &keyed {
            let inside = rows_within(rows, series, span);
            for (column, data) in series.schema.columns.iter().zip(&series.columns) {
                let metric = match (key.as_str(), column.name.as_str()) {
                    ("", name) => name.to_owned(),
                    (key, "value") => key.to_owned(),
                    (key, name) => format!("{key}-{name}"),
                };
                let values = column_readings(column, data, inside);
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

/// When each workload ran, each stretch once, in the workload's first case.
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
fn column_readings(column: &ColumnSpec, data: &ColumnData, rows: &[usize]) -> Vec<f64> {
    let values = rows.iter().filter_map(|row| number_at(data, *row));
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
