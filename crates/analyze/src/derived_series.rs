//! A series with the columns that are worked out of its counters (`perflab_formats::kernel::DerivedColumn`), from one reading of
//! a row to the next.

use std::borrow::Cow;

use perflab_formats::kernel::{DerivedColumn, derived_columns};
use perflab_model::ColumnSpec;
use perflab_model::series::{RowRuns, Series};
use perflab_model::table::CellColumn;

use crate::keyed_rows::{describe_key, rows_by_key};

/// The series with derived columns at its end, as gauges: at each reading what there was since the one before of the same row.
/// Those without a single value are left out, as are those that need to know what the workload did.
#[must_use]
pub fn derive_columns(series: &Series) -> Cow<'_, Series> {
    let derived = derived_columns(&series.schema.monitor);
    if derived.is_empty() {
        return Cow::Borrowed(series);
    }
    let counters = Counters::new(series);
    let mut values: Vec<Vec<Option<f64>>> = vec![vec![None; series.at.len()]; derived.len()];
    for rows in rows_by_key(series, " ", describe_key).into_values() {
        for pair in rows.windows(2) {
            let [before, row] = pair else { continue };
            let times = series.at.get(*before).zip(series.at.get(*row));
            let seconds = times.map_or(0.0, |(before, at)| at.since(*before).seconds());
            for (column, values) in derived.iter().zip(&mut values) {
                let growth = |name: &str| counters.growth(name, *before, *row);
                let value = column.value(growth, seconds, None).filter(|_| seconds > 0.0);
                values.iter_mut().skip(*row).take(1).for_each(|cell| *cell = value);
            }
        }
    }
    let added = derived.iter().zip(values).filter(|(_, values)| values.iter().any(Option::is_some));
    let added: Vec<(ColumnSpec, Vec<Option<f64>>)> =
        added.map(|(column, values)| (derived_spec(column), values)).collect();
    let Ok(table) = series.table.with_floats(&added) else { return Cow::Borrowed(series) };
    let mut schema = series.schema.clone();
    schema.columns = table.columns().to_vec();
    Cow::Owned(Series { schema, table, ..series.clone() })
}

/// The same of a series whose rows stand once.
#[must_use]
pub fn derive_row_runs(runs: &RowRuns) -> Cow<'_, RowRuns> {
    if derived_columns(&runs.series.schema.monitor).is_empty() {
        return Cow::Borrowed(runs);
    }
    Cow::Owned(RowRuns::from_series(&derive_columns(&runs.to_series())))
}

/// A derived column as one of a table.
pub(crate) fn derived_spec(column: &DerivedColumn) -> ColumnSpec {
    ColumnSpec { meaning: column.meaning.into(), ..ColumnSpec::float_gauge(column.name, column.unit) }
}

/// The columns of a series by name.
struct Counters<'a> {
    columns: Vec<(&'a str, CellColumn<'a>)>,
}

impl<'a> Counters<'a> {
    fn new(series: &'a Series) -> Self {
        let names = series.schema.columns.iter().map(|column| column.name.as_str());
        Counters { columns: names.zip(series.table.cell_columns()).collect() }
    }

    /// How much a counter has grown; none where it is not known or went backwards.
    fn growth(&self, name: &str, before: usize, row: usize) -> Option<f64> {
        let (_, column) = self.columns.iter().find(|(known, _)| *known == name)?;
        Some(column.number(row)? - column.number(before)?).filter(|grown| *grown >= 0.0)
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::series::SeriesSchema;
    use perflab_model::{CellRow, Nanos, TableCell};

    use super::*;

    /// iostat(1) over two lines of /proc/diskstats, a second apart: 20 reads of 4 KiB that took 10 ms together, 5 of 25 merged,
    /// 250 ms busy, 500 ms times requests in the queue.
    #[test]
    fn a_disk_has_what_iostat_prints() {
        let columns = ["read_ios", "read_merges", "read_bytes", "read_ns", "io_ns", "queue_ns"];
        let specs = std::iter::once(ColumnSpec::key("device"))
            .chain(columns.iter().map(|name| ColumnSpec::counter(name, "1")));
        let schema = SeriesSchema {
            monitor: "diskstats".into(),
            source: "/proc/diskstats".into(),
            interval: Nanos(1_000_000_000),
            columns: specs.collect(),
            stored: perflab_model::series::StoredRows::Every,
        };
        let row = |device: &str, numbers: [i64; 6]| -> CellRow {
            let numbers = numbers.into_iter().map(TableCell::Int);
            std::iter::once(TableCell::Text(device.into())).chain(numbers).collect()
        };
        let second = Nanos(1_000_000_000);
        let rows = [
            (Nanos(0), row("vda", [100, 10, 0, 0, 0, 0])),
            (Nanos(0), row("vdb", [7; 6])),
            (second, row("vda", [120, 15, 81_920, 10_000_000, 250_000_000, 500_000_000])),
            (second, row("vdb", [3; 6])),
        ];
        let series = Series::from_rows(schema, &rows);
        let derived = derive_columns(&series);
        let value = |name: &str, row| derived.named_column::<f64>(name).get(row);
        assert_eq!(value("r_await", 2), Some(500_000.0));
        assert_eq!(value("rrqm", 2), Some(20.0));
        assert_eq!(value("rareq_sz", 2), Some(4096.0));
        assert!((value("util", 2).unwrap() - 25.0).abs() < 1e-9);
        assert!((value("aqu_sz", 2).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(value("r_await", 0), None, "nothing came before");
        assert_eq!(value("r_await", 3), None, "its counters went backwards");
        assert!(derived.schema.columns.iter().all(|column| column.name != "w_await"));
        assert_eq!(derived.schema.columns[..7], series.schema.columns[..]);
        let runs = RowRuns::from_series(&series);
        assert_eq!(derive_row_runs(&runs).to_series(), *derived);
    }

    #[test]
    fn a_monitor_without_any_stays_as_it_is() {
        let schema = SeriesSchema {
            monitor: "meminfo".into(),
            source: "/proc/meminfo".into(),
            interval: Nanos(1),
            columns: vec![ColumnSpec::gauge("Dirty", "bytes")],
            stored: perflab_model::series::StoredRows::Every,
        };
        let series = Series::from_rows(schema, &[(Nanos(0), vec![TableCell::Int(1)])]);
        assert!(matches!(derive_columns(&series), Cow::Borrowed(_)));
    }
}
