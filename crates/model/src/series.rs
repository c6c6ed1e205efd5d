//! A monitor's readings as a table: schema, gap, and rows stored once for all ticks they last.
//!
//! Two rows are the same if all their cells are, at the same position of consecutive ticks. Times must not go back: readings out of order are sorted by whoever has
//! them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::column::{ColumnSpec, ColumnType};
use crate::quantity::Nanos;

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
            ColumnType::Int | ColumnType::Int32 | ColumnType::Boolean => ColumnData::Int(Vec::new()),
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
    pub ticks: Vec<Nanos>,
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
    use super::*;

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
