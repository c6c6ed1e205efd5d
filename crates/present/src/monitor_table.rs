//! What a monitor recorded in a run, as a table: each of its columns, and those that are worked out of them, over the iterations.

use std::collections::BTreeMap;

use perflab_analyze::monitor_metric::MonitorSamples;
use perflab_model::Case;

use crate::comparison::{Grid, GridCell, GridColumn};

/// The table, and how many rows are not in it.
#[derive(Debug)]
pub struct MonitorTable {
    /// A row a case and column, in the monitor's order.
    pub grid: Grid,
    /// Rows that would say that nothing ever happened.
    pub left_out: usize,
}

/// Makes the table; rows that are 0 in every iteration are left out of it unless all are wanted.
pub fn monitor_table(found: &MonitorSamples, is_whole: bool) -> MonitorTable {
    let left = ["case", "column", "unit"].map(GridColumn::left);
    let right = ["median", "min", "max", "reading error", "n"].map(GridColumn::right);
    let mut grid = Grid::new(left.into_iter().chain(right));
    let mut order: Vec<(u32, &str)> = Vec::new();
    let mut rows: BTreeMap<(u32, &str), ColumnValues> = BTreeMap::new();
    for (sample, error) in found.record.samples.iter().zip(&found.reading_errors) {
        let key = (sample.case, sample.metric.as_str());
        let row = rows.entry(key).or_insert_with(|| {
            order.push(key);
            ColumnValues { unit: &sample.unit.0, values: Vec::new(), error: 0.0 }
        });
        row.values.push(sample.value);
        row.error = row.error.max(*error);
    }
    order.sort_by_key(|(case, _)| *case);
    let mut left_out = 0;
    for key in order {
        let Some(ColumnValues { unit, values, error }) = rows.get_mut(&key) else { continue };
        if !is_whole && values.iter().all(|value| *value == 0.0) {
            left_out += 1;
            continue;
        }
        values.sort_by(f64::total_cmp);
        let show = |value: Option<f64>| {
            value.map_or_else(GridCell::missing, |value| GridCell::quantity(value, unit))
        };
        let label = found.record.manifest.plan.case(key.0).map(Case::label).unwrap_or_default();
        let known_error = Some(*error).filter(|error| *error > 0.0);
        grid.add_row([
            GridCell::from(label.as_str()),
            key.1.into(),
            (*unit).into(),
            show(perflab_analyze::median(values).ok()),
            show(values.first().copied()),
            show(values.last().copied()),
            show(known_error),
            (values.len() as u64).into(),
        ]);
    }
    MonitorTable { grid, left_out }
}

/// What a column was in the iterations of a case.
struct ColumnValues<'a> {
    unit: &'a str,
    values: Vec<f64>,
    /// The largest that the duration of readings explains.
    error: f64,
}
