//! Every column of a monitor's table as steps over time, for a timeline that shows them all: gauges as they were, counters as their
//! growth a second.

use perflab_model::column::{ColumnKind, ColumnSpec};
use perflab_model::series::Series;
use perflab_model::table::CellColumn;
use perflab_model::{Nanos, Unit};

use crate::derived_series::derive_columns;
use crate::keyed_rows::rows_by_key;

/// A column of one row of a monitor over time.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterTrack {
    /// The row: `sda`, or `a b` of two keys; empty where the monitor has one row.
    pub key: String,
    /// The column.
    pub column: String,
    /// Unit of the values: of a counter, a second.
    pub unit: Unit,
    /// From when on which value holds (CLOCK_MONOTONIC of the machine that records), ascending; a value that does not change is there once.
    pub steps: Vec<(Nanos, f64)>,
}

/// The tracks of a series, row by row, derived columns behind those of the kernel. A gauge holds from its reading on, the growth of
/// a counter from the reading before, since that is when it grew. Columns that are 0 throughout are left out, and the growth of a
/// counter that went backwards, as it was reset.
#[must_use]
pub fn counter_tracks(series: &Series) -> Vec<CounterTrack> {
    let series = derive_columns(series);
    let mut tracks = Vec::new();
    for (key, mut rows) in rows_by_key(&series, " ", |_, text| Some(text.to_owned())) {
        rows.sort_by_key(|row| series.at.get(*row).copied());
        for (spec, column) in series.schema.columns.iter().zip(series.table.cell_columns()) {
            let Some(steps) = column_steps(spec, &column, &series.at, &rows) else { continue };
            if steps.iter().any(|(_, value)| *value != 0.0) {
                let is_rate = spec.kind == ColumnKind::Counter;
                let unit = if is_rate { spec.unit.per_second() } else { spec.unit.clone() };
                tracks.push(CounterTrack { key: key.clone(), column: spec.name.clone(), unit, steps });
            }
        }
    }
    tracks
}

/// None of a column that has no number to draw.
fn column_steps(
    spec: &ColumnSpec,
    column: &CellColumn,
    at: &[Nanos],
    rows: &[usize],
) -> Option<Vec<(Nanos, f64)>> {
    let number = |row: &usize| Some((*at.get(*row)?, column.number(*row)?));
    let values = rows.iter().filter_map(number);
    let mut steps: Vec<(Nanos, f64)> = match spec.kind {
        ColumnKind::Gauge => values.collect(),
        ColumnKind::Counter => growth_steps(&values.collect::<Vec<_>>()),
        ColumnKind::Key | ColumnKind::Value => return None,
    };
    steps.dedup_by(|next, held| next.1 == held.1);
    Some(steps)
}

/// Growth a second from each reading to the next.
fn growth_steps(values: &[(Nanos, f64)]) -> Vec<(Nanos, f64)> {
    let growth = |pair: &[(Nanos, f64)]| {
        let [(before, one), (at, next)] = pair else { return None };
        let seconds = at.since(*before).seconds();
        (*next >= *one && seconds > 0.0).then(|| (*before, (next - one) / seconds))
    };
    values.windows(2).filter_map(growth).collect()
}

#[cfg(test)]
mod tests {
    use perflab_model::series::{SeriesSchema, StoredRows};
    use perflab_model::{CellRow, TableCell};

    use super::*;

    fn series(rows: &[(u64, &str, i64, i64)]) -> Series {
        let columns = vec![
            ColumnSpec::key("device"),
            ColumnSpec::counter("reads", "requests"),
            ColumnSpec::gauge("queue", "1"),
        ];
        let schema = SeriesSchema {
            stored: StoredRows::Every,
            monitor: "m".into(),
            source: "s".into(),
            interval: Nanos(1_000_000_000),
            columns,
        };
        let row = |(at, device, reads, queue): &(u64, &str, i64, i64)| -> (Nanos, CellRow) {
            let cells =
                vec![TableCell::Text((*device).into()), TableCell::Int(*reads), TableCell::Int(*queue)];
            (Nanos(at * 1_000_000_000), cells)
        };
        Series::from_rows(schema, &rows.iter().map(row).collect::<Vec<_>>())
    }

    #[test]
    fn growth_holds_from_the_reading_before() {
        let read = series(&[(1, "sda", 0, 3), (2, "sda", 10, 3), (4, "sda", 50, 1)]);
        let tracks = counter_tracks(&read);
        let seconds = |track: &CounterTrack| -> Vec<(f64, f64)> {
            track.steps.iter().map(|(at, value)| (at.seconds(), *value)).collect()
        };
        let [reads, queue] = &tracks[..] else { panic!("{tracks:?}") };
        assert_eq!((reads.column.as_str(), reads.unit.to_string().as_str()), ("reads", "requests/s"));
        assert_eq!(seconds(reads), [(1.0, 10.0), (2.0, 20.0)]);
        assert_eq!(seconds(queue), [(1.0, 3.0), (4.0, 1.0)]);
    }

    #[test]
    fn what_is_always_0_or_went_backwards_is_left_out() {
        let read = series(&[
            (1, "sda", 9, 0),
            (1, "sdb", 5, 0),
            (2, "sda", 2, 0),
            (2, "sdb", 5, 0),
            (3, "sda", 4, 0),
        ]);
        let tracks = counter_tracks(&read);
        let [track] = &tracks[..] else { panic!("{tracks:?}") };
        assert_eq!((track.key.as_str(), track.steps.as_slice()), ("sda", &[(Nanos(2_000_000_000), 2.0)][..]));
    }
}
