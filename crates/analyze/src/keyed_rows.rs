//! The rows of a series by what they are of (a CPU, a device), and those of a span of time.

use std::collections::BTreeMap;

use perflab_model::Nanos;
use perflab_model::column::{ColumnKind, ColumnSpec};
use perflab_model::series::Series;
use perflab_model::table::{CellColumn, StoredValue, Table};

/// When something ran.
pub(crate) type TimeSpan = (Nanos, Nanos);

/// The rows of one key (a CPU, a device): indexes, ascending in time.
pub(crate) type KeyedRows = BTreeMap<String, Vec<usize>>;

/// `cpu=3`
pub(crate) fn describe_key(column: &str, text: &str) -> Option<String> {
    Some(format!("{column}={text}"))
}

/// Spans of as many readings may begin and end as they like; longer ones are to be covered by half.
const FEW_READINGS: u64 = 4;

/// The rows of a span; none where they cover less than half of it, as they are the end of what was recorded of another. One
/// at its very end is the next one's, as spans that were imported have whole seconds only.
pub(crate) fn rows_within<'a>(rows: &'a [usize], series: &Series, (start, end): TimeSpan) -> &'a [usize] {
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

/// Rows by the values of their key columns; one empty key where there is none.
pub(crate) fn rows_by_key(
    series: &Series,
    between: &str,
    key_text_of: impl Fn(&str, &str) -> Option<String>,
) -> KeyedRows {
    table_rows_by_key(&series.schema.columns, &series.table, between, key_text_of)
}

/// The same of a table.
pub(crate) fn table_rows_by_key(
    columns: &[ColumnSpec],
    table: &Table,
    between: &str,
    key_text_of: impl Fn(&str, &str) -> Option<String>,
) -> KeyedRows {
    let columns = columns.iter().zip(table.cell_columns());
    let keys: Vec<(&ColumnSpec, CellColumn)> =
        columns.filter(|(column, _)| column.kind == ColumnKind::Key).collect();
    let mut found: KeyedRows = BTreeMap::new();
    for row in 0..table.row_count() {
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
