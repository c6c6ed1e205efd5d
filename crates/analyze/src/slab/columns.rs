//! Owns the way from a series to its columns by name. It refuses to guess: a column that is not there, or is of
//! another type, reads as missing everywhere.

use perflab_model::Nanos;
use perflab_model::series::{ColumnData, Series};

/// A column of integers, perhaps absent.
#[derive(Clone, Copy)]
pub(super) struct IntColumn<'a>(Option<&'a [Option<i64>]>);

/// A column of texts, perhaps absent.
#[derive(Clone, Copy)]
pub(super) struct TextColumn<'a>(Option<&'a [Option<String>]>);

impl IntColumn<'_> {
    /// The count in a row; nothing where it is missing or below zero.
    pub(super) fn count(&self, row: usize) -> Option<u64> {
        u64::try_from(self.integer(row)?).ok()
    }

    /// The number in a row.
    pub(super) fn integer(&self, row: usize) -> Option<i64> {
        *self.0?.get(row)?
    }
}

impl<'a> TextColumn<'a> {
    /// The text in a row.
    pub(super) fn text(&self, row: usize) -> Option<&'a str> {
        self.0?.get(row)?.as_deref()
    }
}

fn find_column<'a>(series: &'a Series, name: &str) -> Option<&'a ColumnData> {
    let number = series.schema.columns.iter().position(|column| column.name == name)?;
    series.columns.get(number)
}

pub(super) fn int_column<'a>(series: &'a Series, name: &str) -> IntColumn<'a> {
    IntColumn(match find_column(series, name) {
        Some(ColumnData::Int(values)) => Some(values),
        _ => None,
    })
}

pub(super) fn text_column<'a>(series: &'a Series, name: &str) -> TextColumn<'a> {
    TextColumn(match find_column(series, name) {
        Some(ColumnData::Text(values)) => Some(values),
        _ => None,
    })
}

/// Row numbers in order of time; of equal times, as recorded.
pub(super) fn rows_in_time_order(series: &Series) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..series.at.len()).collect();
    if !series.at.is_sorted() {
        rows.sort_by_key(|row| series.at.get(*row).copied());
    }
    rows
}

/// The time of a row.
pub(super) fn row_time(series: &Series, row: usize) -> Nanos {
    series.at.get(row).copied().unwrap_or_default()
}
