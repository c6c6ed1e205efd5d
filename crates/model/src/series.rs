//! A monitor's readings as a table: schema, gap, and rows stored once for all ticks they last.
//!
//! A schema declares the columns once; rows are plain cells. Two rows are the same if all their cells are, at the
//! same position of consecutive ticks. Times must not go back: readings out of order are sorted by whoever has
//! them.

use std::fmt;
use std::ops::Range;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Nanos, Unit};

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
    /// The requested time between ticks.
    pub interval: Nanos,
    /// The columns of a row, in order; the tick's time comes before them.
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

/// Written by hand, as the derived one tries a variant after the other and builds an error for each that does not fit: most
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

/// A part of a series without rows, and why: never a silent absence.
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
    /// Whether this is `earlier` sent again, now with its end.
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

/// The rows of a series, each with the ticks at which it held.
///
/// Ten minutes at 100 Hz are 14 million rows of `slabinfo`, of which one in twenty differs from the tick before.
#[derive(Debug, Clone, PartialEq)]
pub struct RowRuns {
    /// The times of all ticks that have rows, rising.
    pub ticks: Vec<crate::quantity::Nanos>,
    /// Each row once, with the time of its first tick, in order of time and position.
    pub series: Series,
    /// For each row: its index among the rows of its ticks,
    pub places: Vec<u32>,
    /// and the number of its first tick,
    first: Vec<u32>,
    /// and of its last one.
    last: Vec<u32>,
    /// Rows of the whole series.
    rows: usize,
    /// The row at each index of the last tick; those from `placed` on are of the tick before.
    current_rows: Vec<u32>,
    placed: usize,
}

/// A tick is earlier than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrderTick;

impl RowRuns {
    /// Of no rows yet.
    #[must_use]
    pub fn new(schema: SeriesSchema) -> Self {
        RowRuns {
            ticks: Vec::new(),
            series: Series::empty(schema),
            places: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
            rows: 0,
            current_rows: Vec::new(),
            placed: 0,
        }
    }

    /// Of a whole series, sorted by time where it is not.
    #[must_use]
    pub fn from_series(series: &Series) -> Self {
        let mut rows: Vec<usize> = (0..series.at.len()).collect();
        rows.sort_by_key(|row| series.at.get(*row).copied());
        let mut spans = RowRuns::new(series.schema.clone());
        for row in rows {
            spans.push_row(series, row);
        }
        spans
    }

    /// Appends the next rows of the series.
    ///
    /// # Errors
    /// A row earlier than the last one; those before it were taken.
    pub fn extend(&mut self, part: &Series) -> Result<(), OutOfOrderTick> {
        for (row, at) in part.at.iter().enumerate() {
            if self.ticks.last().is_some_and(|last| at < last) {
                return Err(OutOfOrderTick);
            }
            self.push_row(part, row);
        }
        Ok(())
    }

    /// The whole series again, by tick and index.
    #[must_use]
    pub fn to_series(&self) -> Series {
        let times = |row: usize| self.ticks_of_row(row).map(move |tick| (tick, row));
        let mut rows: Vec<(usize, usize)> = (0..self.series.at.len()).flat_map(times).collect();
        rows.sort_by_key(|(tick, row)| (*tick, self.places.get(*row).copied()));
        let mut whole = Series::empty(self.series.schema.clone());
        for (tick, row) in rows {
            whole.at.extend(self.ticks.get(tick));
            let columns = whole.columns.iter_mut().zip(&self.series.columns);
            columns.for_each(|(whole, ours)| whole.push_cell_of(ours, row));
        }
        whole
    }

    /// The ticks of a row, as numbers of [`RowRuns::ticks`].
    #[must_use]
    pub fn ticks_of_row(&self, row: usize) -> Range<usize> {
        let tick = |of: &[u32]| of.get(row).map_or(0, |tick| *tick as usize);
        tick(&self.first)..tick(&self.last) + 1
    }

    /// Rows of the whole series: each as often as it held.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows
    }

    fn push_row(&mut self, from: &Series, row: usize) {
        let Some(at) = from.at.get(row) else { return };
        if self.ticks.last() != Some(at) {
            self.ticks.push(*at);
            self.current_rows.truncate(self.placed);
            self.placed = 0;
        }
        self.rows += 1;
        let tick = u32::try_from(self.ticks.len() - 1).unwrap_or(u32::MAX);
        let current = self.current_rows.get(self.placed).map(|current| *current as usize);
        self.placed += 1;
        match current.filter(|current| self.is_continued(*current, tick, from, row)) {
            Some(current) => self.last.iter_mut().skip(current).take(1).for_each(|last| *last = tick),
            None => self.begin_row(from, row, tick),
        }
    }

    /// Whether the row at that index of the tick before is the same.
    fn is_continued(&self, current: usize, tick: u32, from: &Series, row: usize) -> bool {
        let before = self.last.get(current).is_some_and(|last| last + 1 == tick);
        let mut columns = self.series.columns.iter().zip(&from.columns);
        before && columns.all(|(ours, theirs)| ours.is_same_cell(current, theirs, row))
    }

    fn begin_row(&mut self, from: &Series, row: usize, tick: u32) {
        let place = self.placed - 1;
        let number = u32::try_from(self.series.at.len()).unwrap_or(u32::MAX);
        match self.current_rows.get_mut(place) {
            Some(current) => *current = number,
            None => self.current_rows.push(number),
        }
        self.series.at.extend(from.at.get(row));
        for (ours, theirs) in self.series.columns.iter_mut().zip(&from.columns) {
            ours.push_cell_of(theirs, row);
        }
        self.places.push(u32::try_from(place).unwrap_or(u32::MAX));
        self.first.push(tick);
        self.last.push(tick);
    }
}

impl ColumnData {
    /// Whether two cells are the same; floats to the bit, so that what was not a number stays one.
    fn is_same_cell(&self, row: usize, other: &ColumnData, its: usize) -> bool {
        match (self, other) {
            (ColumnData::Int(a), ColumnData::Int(b)) => a.get(row) == b.get(its),
            (ColumnData::Text(a), ColumnData::Text(b)) => a.get(row) == b.get(its),
            (ColumnData::Float(a), ColumnData::Float(b)) => {
                let bits = |cells: &[Option<f64>], row: usize| cells.get(row).map(|n| n.map(f64::to_bits));
                bits(a, row) == bits(b, its)
            }
            _ => false,
        }
    }

    /// Appends a cell of another column of the same type; of another type, a missing one.
    fn push_cell_of(&mut self, other: &ColumnData, row: usize) {
        match (self, other) {
            (ColumnData::Int(a), ColumnData::Int(b)) => a.push(b.get(row).copied().flatten()),
            (ColumnData::Float(a), ColumnData::Float(b)) => a.push(b.get(row).copied().flatten()),
            (ColumnData::Text(a), ColumnData::Text(b)) => a.push(b.get(row).cloned().flatten()),
            (ColumnData::Int(a), _) => a.push(None),
            (ColumnData::Float(a), _) => a.push(None),
            (ColumnData::Text(a), _) => a.push(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ColumnSpec;
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

    /// Rows of time, name and number.
    fn name_number_series(rows: &[(u64, &str, i64)]) -> Series {
        let columns = vec![ColumnSpec::key("cache"), ColumnSpec::gauge("slabs", "slabs")];
        let (source, interval) = (String::new(), Nanos(1));
        let schema = SeriesSchema { monitor: "slabinfo".into(), source, interval, columns };
        Series {
            schema,
            at: rows.iter().map(|(at, ..)| Nanos(*at)).collect(),
            columns: vec![
                ColumnData::Text(rows.iter().map(|(_, name, _)| Some((*name).into())).collect()),
                ColumnData::Int(rows.iter().map(|(.., number)| Some(*number)).collect()),
            ],
        }
    }

    #[test]
    fn a_row_that_says_the_same_at_the_next_tick_stands_once() {
        let rows = [(1, "a", 1), (1, "b", 1), (2, "a", 1), (2, "b", 2), (3, "a", 1), (3, "b", 2)];
        let spans = RowRuns::from_series(&name_number_series(&rows));
        assert_eq!((spans.series.at.len(), spans.row_count()), (3, 6));
        assert_eq!([spans.ticks_of_row(0), spans.ticks_of_row(1), spans.ticks_of_row(2)], [0..3, 0..1, 1..3]);
        assert_eq!(spans.to_series(), name_number_series(&rows));
    }

    #[test]
    fn rows_that_come_go_and_move_are_told_at_their_ticks() {
        let rows = [
            (1, "a", 1),
            (1, "c", 1),
            (2, "a", 1),
            (2, "b", 1),
            (2, "c", 1),
            (3, "a", 1),
            (4, "a", 1),
            (4, "b", 1),
            (4, "b", 1),
            (5, "c", 1),
            (5, "b", 1),
            (5, "b", 1),
        ];
        let spans = RowRuns::from_series(&name_number_series(&rows));
        assert_eq!(spans.to_series(), name_number_series(&rows));
        assert_eq!(spans.row_count(), rows.len());
    }

    #[test]
    fn parts_may_cut_a_tick_and_disorder_is_refused() {
        let rows = [(1, "a", 1), (1, "b", 1), (2, "a", 1), (2, "b", 1)];
        let mut parted = RowRuns::new(name_number_series(&[]).schema);
        for row in &rows {
            parted.extend(&name_number_series(&[*row])).unwrap();
        }
        assert_eq!(parted, RowRuns::from_series(&name_number_series(&rows)));
        assert_eq!(parted.extend(&name_number_series(&[(1, "a", 1)])), Err(OutOfOrderTick));
        let sorted = RowRuns::from_series(&name_number_series(&[(2, "a", 1), (1, "a", 1)]));
        assert_eq!(sorted.to_series(), name_number_series(&[(1, "a", 1), (2, "a", 1)]));
    }
}
