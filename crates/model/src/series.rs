//! A monitor's readings as a table: schema, gap, and rows stored once for all ticks they last.
//!
//! Two rows are the same if all their cells are, at the same position of consecutive ticks. Times must not go back: readings
//! out of order are sorted by whoever has them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::column::{CellRow, ColumnRef, ColumnSpec, RowSchema};
use crate::quantity::Nanos;
use crate::table::{ArrayValue, StoredValue, Table, TableBuilder, TypedColumn};

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
    /// Where its numbers come from, and what its columns are.
    pub schema: SeriesSchema,
    /// Tick time of each row, CLOCK_MONOTONIC.
    pub at: Vec<Nanos>,
    /// Its columns, those of the schema, as long as `at`.
    pub table: Table,
}

impl Series {
    /// Without a row.
    #[must_use]
    pub fn empty(schema: SeriesSchema) -> Self {
        let table = Table::empty(schema.columns.clone().into());
        Series { schema, at: Vec::new(), table }
    }

    /// From rows of cells, each with its time.
    #[must_use]
    pub fn from_rows(schema: SeriesSchema, rows: &[(Nanos, CellRow)]) -> Self {
        let mut builder = TableBuilder::new(schema.columns.clone().into());
        rows.iter().for_each(|(_, row)| builder.push_cells(row));
        Series { schema, at: rows.iter().map(|(at, _)| *at).collect(), table: builder.finish() }
    }

    /// A column; one without a value in any row where the series lacks it, or has it of another type.
    pub fn column<R: RowSchema, T: ArrayValue + ?Sized>(
        &self,
        column: ColumnRef<R, T>,
    ) -> TypedColumn<'_, T> {
        self.named_column(column.name())
    }

    /// The same, of a name that a kernel or a tool chose.
    pub fn named_column<T: ArrayValue + ?Sized>(&self, name: &str) -> TypedColumn<'_, T> {
        self.table.column(name).unwrap_or_else(TypedColumn::absent)
    }
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
}

/// A tick is earlier than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfOrderTick;

impl RowRuns {
    /// Of a whole series, sorted by time where it is not.
    #[must_use]
    pub fn from_series(series: &Series) -> Self {
        let mut rows: Vec<usize> = (0..series.at.len()).collect();
        rows.sort_by_key(|row| series.at.get(*row).copied());
        let mut runs = RowRunsBuilder::new(series.schema.clone());
        runs.push_rows(series, rows.into_iter());
        runs.finish()
    }

    /// The whole series again, by tick and index.
    #[must_use]
    pub fn to_series(&self) -> Series {
        let times = |row: usize| self.ticks_of_row(row).map(move |tick| (tick, row));
        let mut rows: Vec<(usize, usize)> = (0..self.series.at.len()).flat_map(times).collect();
        rows.sort_by_key(|(tick, row)| (*tick, self.places.get(*row).copied()));
        let at = rows.iter().filter_map(|(tick, _)| self.ticks.get(*tick).copied()).collect();
        let table = self.series.table.take_rows(rows.iter().map(|(_, row)| *row));
        Series { schema: self.series.schema.clone(), at, table }
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
}

/// [`RowRuns`] that are being gathered, part by part.
#[derive(Debug)]
pub struct RowRunsBuilder {
    schema: SeriesSchema,
    ticks: Vec<Nanos>,
    at: Vec<Nanos>,
    table: TableBuilder,
    places: Vec<u32>,
    first: Vec<u32>,
    last: Vec<u32>,
    rows: usize,
    /// The row at each index of the last tick; those from `placed` on are of the tick before.
    current_rows: Vec<u32>,
    placed: usize,
}

impl RowRunsBuilder {
    /// Of no rows yet.
    #[must_use]
    pub fn new(schema: SeriesSchema) -> Self {
        let table = TableBuilder::new(schema.columns.clone().into());
        RowRunsBuilder {
            schema,
            ticks: Vec::new(),
            at: Vec::new(),
            table,
            places: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
            rows: 0,
            current_rows: Vec::new(),
            placed: 0,
        }
    }

    /// Appends the next rows of the series, which has the columns of the schema.
    ///
    /// # Errors
    /// A row earlier than the last one; those before it were taken.
    pub fn extend(&mut self, part: &Series) -> Result<(), OutOfOrderTick> {
        let mut last = self.ticks.last().copied();
        let rising = part.at.iter().take_while(|at| {
            let is_later = last.is_none_or(|last| **at >= last);
            last = Some(**at);
            is_later
        });
        let rows = rising.count();
        self.push_rows(part, 0..rows);
        if rows == part.at.len() { Ok(()) } else { Err(OutOfOrderTick) }
    }

    /// All rows so far.
    #[must_use]
    pub fn finish(mut self) -> RowRuns {
        let series = Series { schema: self.schema, at: self.at, table: self.table.finish() };
        let (ticks, places, first, last) = (self.ticks, self.places, self.first, self.last);
        RowRuns { ticks, series, places, first, last, rows: self.rows }
    }

    fn push_rows(&mut self, part: &Series, rows: impl Iterator<Item = usize>) {
        let columns = part.table.cell_columns();
        for row in rows {
            let Some(at) = part.at.get(row) else { continue };
            if self.ticks.last() != Some(at) {
                self.ticks.push(*at);
                self.current_rows.truncate(self.placed);
                self.placed = 0;
            }
            self.rows += 1;
            let tick = u32::try_from(self.ticks.len() - 1).unwrap_or(u32::MAX);
            let current = self.current_rows.get(self.placed).map(|current| *current as usize);
            self.placed += 1;
            let cells = || columns.iter().map(|column| column.get(row));
            match current.filter(|current| self.is_continued(*current, tick, cells())) {
                Some(current) => self.last.iter_mut().skip(current).take(1).for_each(|last| *last = tick),
                None => self.begin_row(*at, cells(), tick),
            }
        }
    }

    /// Whether the row at that index of the tick before is the same.
    fn is_continued<'a>(
        &self,
        current: usize,
        tick: u32,
        cells: impl Iterator<Item = Option<StoredValue<'a>>>,
    ) -> bool {
        let before = self.last.get(current).is_some_and(|last| last + 1 == tick);
        before && self.table.is_same_row(current, cells)
    }

    fn begin_row<'a>(&mut self, at: Nanos, cells: impl Iterator<Item = Option<StoredValue<'a>>>, tick: u32) {
        let place = self.placed - 1;
        let number = u32::try_from(self.at.len()).unwrap_or(u32::MAX);
        match self.current_rows.get_mut(place) {
            Some(current) => *current = number,
            None => self.current_rows.push(number),
        }
        self.at.push(at);
        for (column, cell) in cells.enumerate() {
            cell.into_iter().for_each(|cell| self.table.set(column, cell));
        }
        self.table.end_row();
        self.places.push(u32::try_from(place).unwrap_or(u32::MAX));
        self.first.push(tick);
        self.last.push(tick);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::TableCell;

    /// Rows of time, name and number.
    fn name_number_series(rows: &[(u64, &str, i64)]) -> Series {
        let columns = vec![ColumnSpec::key("cache"), ColumnSpec::gauge("slabs", "slabs")];
        let (source, interval) = (String::new(), Nanos(1));
        let schema = SeriesSchema { monitor: "slabinfo".into(), source, interval, columns };
        let cells = |(at, name, number): &(u64, &str, i64)| {
            (Nanos(*at), vec![TableCell::Text((*name).into()), TableCell::Int(*number)])
        };
        Series::from_rows(schema, &rows.iter().map(cells).collect::<Vec<_>>())
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
        let mut parted = RowRunsBuilder::new(name_number_series(&[]).schema);
        for row in &rows {
            parted.extend(&name_number_series(&[*row])).unwrap();
        }
        assert_eq!(parted.extend(&name_number_series(&[(1, "a", 1)])), Err(OutOfOrderTick));
        assert_eq!(parted.finish(), RowRuns::from_series(&name_number_series(&rows)));
        let sorted = RowRuns::from_series(&name_number_series(&[(2, "a", 1), (1, "a", 1)]));
        assert_eq!(sorted.to_series(), name_number_series(&[(1, "a", 1), (2, "a", 1)]));
    }
}
