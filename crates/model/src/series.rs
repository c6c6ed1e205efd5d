//! Series: what a monitor records. A schema declares the columns once; rows are plain cells.

mod latest;
mod spans;

use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Nanos, Unit};

pub use latest::LatestTicks;
pub use spans::{OutOfOrderTick, RowRuns};

/// What a column's numbers do over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// names the row's subject (a cache, a CPU, a device); text
    Key,
    /// only grows; its rate means something
    Counter,
    /// goes up and down; its value means something
    Gauge,
}

/// The stored type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// signed 64-bit
    Int,
    /// 64-bit float
    Float,
    /// UTF-8
    Text,
}

/// One column of a series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// The kernel's own name where it has one.
    pub name: String,
    /// The unit of its numbers; `1` for keys and bare counts.
    pub unit: Unit,
    /// Whether it counts, gauges or names.
    pub kind: ColumnKind,
    /// How it is stored.
    #[serde(rename = "type")]
    pub stored: ColumnType,
}

impl ColumnSpec {
    /// A text column that names the row's subject.
    pub fn key(name: &str) -> Self {
        ColumnSpec::new(name, "1", ColumnKind::Key, ColumnType::Text)
    }

    /// An integer that only grows.
    pub fn counter(name: &str, unit: &str) -> Self {
        ColumnSpec::new(name, unit, ColumnKind::Counter, ColumnType::Int)
    }

    /// An integer that goes up and down.
    pub fn gauge(name: &str, unit: &str) -> Self {
        ColumnSpec::new(name, unit, ColumnKind::Gauge, ColumnType::Int)
    }

    /// A float that goes up and down.
    pub fn float_gauge(name: &str, unit: &str) -> Self {
        ColumnSpec::new(name, unit, ColumnKind::Gauge, ColumnType::Float)
    }

    fn new(name: &str, unit: &str, kind: ColumnKind, stored: ColumnType) -> Self {
        ColumnSpec { name: name.into(), unit: Unit::new(unit), kind, stored }
    }
}

/// What one monitor of one target records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesSchema {
    /// The monitor's name, and the table's: `slabinfo`, `vmstat`.
    pub monitor: String,
    /// Where the numbers come from: `/proc/slabinfo`.
    pub source: String,
    /// The wanted time between ticks.
    pub interval: Nanos,
    /// The columns of a row, in order; the tick's time stands before them.
    pub columns: Vec<ColumnSpec>,
}

/// One cell of a row: in JSON a number with or without a point, a text, or null.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TableCell {
    /// for [`ColumnType::Int`]
    Int(i64),
    /// for [`ColumnType::Float`]
    Float(f64),
    /// for [`ColumnType::Text`]
    Text(String),
    /// the kernel did not give this value in this row
    Missing,
}

/// By hand, as the derived one tries a variant after the other and builds an error for each that does not fit: most
/// of the time of closing a run.
impl<'de> Deserialize<'de> for TableCell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor)
    }
}

struct CellVisitor;

impl Visitor<'_> for CellVisitor {
    type Value = TableCell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text or null")
    }

    fn visit_i64<E>(self, number: i64) -> Result<TableCell, E> {
        Ok(TableCell::Int(number))
    }

    /// What is too large for a signed number keeps its size and loses its last digits.
    fn visit_u64<E>(self, number: u64) -> Result<TableCell, E> {
        Ok(i64::try_from(number).map_or(TableCell::Float(number as f64), TableCell::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<TableCell, E> {
        Ok(TableCell::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<TableCell, E> {
        Ok(TableCell::Text(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<TableCell, E> {
        Ok(TableCell::Text(text))
    }

    fn visit_unit<E>(self) -> Result<TableCell, E> {
        Ok(TableCell::Missing)
    }

    fn visit_none<E>(self) -> Result<TableCell, E> {
        Ok(TableCell::Missing)
    }
}

/// One row: as many cells as the schema has columns.
pub type CellRow = Vec<TableCell>;

/// A stretch of a series without rows, and why: never a silent hole.
///
/// A gap is sent as soon as it begins, without its end; when the monitor comes back, it is sent again with its end and
/// takes the place of the first (see [`SeriesGap::is_end_of`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesGap {
    /// The monitor.
    pub monitor: String,
    /// Since when (target's CLOCK_MONOTONIC).
    pub from: Nanos,
    /// Until when; `None` for the rest of the run.
    pub to: Option<Nanos>,
    /// The reason, naming the path: "/proc/schedstat: no such file or directory".
    pub reason: String,
}

impl SeriesGap {
    /// Whether this is `earlier` told again, now with its end.
    pub fn is_end_of(&self, earlier: &SeriesGap) -> bool {
        self.monitor == earlier.monitor && self.from == earlier.from && earlier.to.is_none()
    }
}

/// A whole series in memory, column by column, as readers give it.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What the columns are.
    pub schema: SeriesSchema,
    /// Tick time of each row, CLOCK_MONOTONIC.
    pub at: Vec<Nanos>,
    /// One vector a column of the schema, each as long as `at`.
    pub columns: Vec<ColumnData>,
}

impl Series {
    /// Without a row.
    #[must_use]
    pub fn empty(schema: SeriesSchema) -> Self {
        let columns = schema.columns.iter().map(|column| ColumnData::empty(column.stored)).collect();
        Series { schema, at: Vec::new(), columns }
    }
}

impl ColumnData {
    /// Without a cell.
    #[must_use]
    pub fn empty(stored: ColumnType) -> Self {
        match stored {
            ColumnType::Int => ColumnData::Int(Vec::new()),
            ColumnType::Float => ColumnData::Float(Vec::new()),
            ColumnType::Text => ColumnData::Text(Vec::new()),
        }
    }
}

/// The cells of one column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnData {
    /// integers; `None` where missing
    Int(Vec<Option<i64>>),
    /// floats; `None` where missing
    Float(Vec<Option<f64>>),
    /// texts; `None` where missing
    Text(Vec<Option<String>>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_plain_values_of_json() {
        let cells = [
            (TableCell::Int(-3), "-3"),
            (TableCell::Int(i64::MAX), "9223372036854775807"),
            (TableCell::Float(1.5), "1.5"),
            (TableCell::Text("a\"b".into()), "\"a\\\"b\""),
            (TableCell::Missing, "null"),
        ];
        for (cell, text) in cells {
            assert_eq!(serde_json::to_string(&cell).unwrap(), text);
            assert_eq!(serde_json::from_str::<TableCell>(text).unwrap(), cell);
        }
        assert_eq!(
            serde_json::from_str::<TableCell>("18446744073709551615").unwrap(),
            TableCell::Float(u64::MAX as f64)
        );
        assert!(serde_json::from_str::<TableCell>("true").is_err());
        assert!(serde_json::from_str::<TableCell>("[1]").is_err());
    }
}
