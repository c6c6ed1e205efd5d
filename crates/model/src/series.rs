//! A monitor's readings as a table: schema, gap, and rows stored once for all ticks they last.
//!
//! Two rows are the same if all their cells are, at the same position of consecutive ticks. Times must not go back: readings
//! out of order are sorted by whoever has them.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::column::{CellRow, ColumnKind, ColumnRef, ColumnSpec, RowSchema, TableCell};
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
    /// Which rows its table has.
    #[serde(default, skip_serializing_if = "StoredRows::is_every")]
    pub stored: StoredRows,
}

/// Which rows of a tick are stored in a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredRows {
    /// all of them
    #[default]
    Every,
    /// those that differ from the tick before, of a series with many rows of which few change: its readers hold the others
    /// ([`Series::with_unchanged_rows`])
    Changed,
}

impl StoredRows {
    /// Whether all rows are stored.
    pub fn is_every(&self) -> bool {
        *self == StoredRows::Every
    }

    /// As it is stored.
    pub fn name(self) -> &'static str {
        match self {
            StoredRows::Every => "every",
            StoredRows::Changed => "changed",
        }
    }
}

/// A part of a series without rows, and why: never a silent absence.
///
/// A gap is sent as soon as it begins, without its end; when the monitor comes back, it is sent again with its end and
/// takes the place of the first (see [`SeriesGap::is_end_of`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesGap {
    /// The monitor.
    pub monitor: String,
    /// Since when (CLOCK_MONOTONIC of the machine that records; in what an agent sends, of its own).
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
    /// How long the reading of each row took, from `at` on; empty where nobody knows.
    pub took: Vec<Nanos>,
    /// Its columns, those of the schema, as long as `at`.
    pub table: Table,
}

impl Series {
    /// Without a row.
    #[must_use]
    pub fn empty(schema: SeriesSchema) -> Self {
        let table = Table::empty(schema.columns.clone().into());
        Series { schema, at: Vec::new(), took: Vec::new(), table }
    }

    /// From rows of cells, each with its time.
    #[must_use]
    pub fn from_rows(schema: SeriesSchema, rows: &[(Nanos, CellRow)]) -> Self {
        let mut builder = TableBuilder::new(schema.columns.clone().into());
        rows.iter().for_each(|(_, row)| builder.push_cells(row));
        let at = rows.iter().map(|(at, _)| *at).collect();
        Series { schema, at, took: Vec::new(), table: builder.finish() }
    }

    /// The same with the rows that a table of changed rows leaves out ([`StoredRows::Changed`]): at each tick, a row of each
    /// subject as it was stored last, in the order in which subjects first appear. A subject whose last row has nothing but
    /// its keys is gone.
    #[must_use]
    pub fn with_unchanged_rows(self) -> Self {
        if self.schema.stored.is_every() {
            return self;
        }
        let keys = self.key_columns();
        let columns = self.table.cell_columns();
        let key_of = |row: usize| -> Vec<Option<String>> {
            keys.iter()
                .map(|index| match columns.get(*index)?.get(row)? {
                    StoredValue::Text(text) => Some(text.to_owned()),
                    _ => None,
                })
                .collect()
        };
        let has_value = |row: usize| {
            let values = columns.iter().enumerate().filter(|(index, _)| !keys.contains(index));
            values.into_iter().any(|(_, column)| column.get(row).is_some())
        };
        let mut places: HashMap<Vec<Option<String>>, usize> = HashMap::new();
        let mut current: Vec<Option<usize>> = Vec::new();
        let (mut at, mut took, mut rows) = (Vec::new(), Vec::new(), Vec::new());
        let mut row = 0;
        while let Some(tick) = self.at.get(row).copied() {
            let lasted = self.took.get(row).copied();
            while self.at.get(row) == Some(&tick) {
                let place = *places.entry(key_of(row)).or_insert(current.len());
                current.resize(current.len().max(place + 1), None);
                current.iter_mut().skip(place).take(1).for_each(|held| *held = has_value(row).then_some(row));
                row += 1;
            }
            let before = rows.len();
            rows.extend(current.iter().flatten());
            at.resize(at.len() + rows.len() - before, tick);
            took.extend(
                lasted.into_iter().flat_map(|lasted| std::iter::repeat_n(lasted, rows.len() - before)),
            );
        }
        let table = self.table.take_rows(rows.into_iter());
        let schema = SeriesSchema { stored: StoredRows::Every, ..self.schema };
        Series { schema, at, took, table }
    }

    /// The columns that name a row's subject, by index.
    fn key_columns(&self) -> Vec<usize> {
        let columns = self.schema.columns.iter().enumerate();
        columns.filter(|(_, column)| column.kind == ColumnKind::Key).map(|(index, _)| index).collect()
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
        Series { schema: self.series.schema.clone(), at, took: Vec::new(), table }
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

/// What of each tick a table of changed rows stores ([`StoredRows::Changed`]). No two rows of a tick have the same keys.
#[derive(Debug)]
pub struct RowChanges {
    keys: Vec<usize>,
    /// The rows of the last tick.
    before: Vec<CellRow>,
}

impl RowChanges {
    /// For rows with these columns.
    #[must_use]
    pub fn new(schema: &SeriesSchema) -> Self {
        RowChanges { keys: Series::empty(schema.clone()).key_columns(), before: Vec::new() }
    }

    /// The rows of a whole tick that are to be stored: new and changed ones, a row of keys alone for each subject that is gone,
    /// and the first where there would be none, so that the table knows of the tick.
    pub fn take_tick(&mut self, rows: &[CellRow]) -> Vec<CellRow> {
        let same_subjects = self.before.len() == rows.len()
            && self.before.iter().zip(rows).all(|(before, row)| self.subject(before).eq(self.subject(row)));
        let mut stored = Vec::new();
        if same_subjects {
            for (before, row) in self.before.iter_mut().zip(rows).filter(|(before, row)| before != row) {
                before.clone_from(row);
                stored.push(row.clone());
            }
        } else {
            let by_subject = |rows: &[CellRow]| -> HashMap<Vec<String>, usize> {
                let subject = |row: &CellRow| self.subject(row).map(|cell| format!("{cell:?}")).collect();
                rows.iter().enumerate().map(|(index, row)| (subject(row), index)).collect()
            };
            let (before, now) = (by_subject(&self.before), by_subject(rows));
            let mut changed: Vec<usize> = now
                .iter()
                .filter(|(subject, index)| {
                    let held = before.get(*subject).and_then(|index| self.before.get(*index));
                    held != rows.get(**index)
                })
                .map(|(_, index)| *index)
                .collect();
            changed.sort_unstable();
            stored.extend(changed.into_iter().filter_map(|index| rows.get(index).cloned()));
            let mut gone: Vec<usize> = before
                .iter()
                .filter(|(subject, _)| !now.contains_key(*subject))
                .map(|(_, index)| *index)
                .collect();
            gone.sort_unstable();
            stored
                .extend(gone.into_iter().filter_map(|index| Some(self.keys_alone(self.before.get(index)?))));
            self.before = rows.to_vec();
        }
        if stored.is_empty() {
            stored.extend(rows.first().cloned());
        }
        stored
    }

    fn subject<'r>(&'r self, row: &'r CellRow) -> impl Iterator<Item = Option<&'r TableCell>> {
        self.keys.iter().map(|index| row.get(*index))
    }

    fn keys_alone(&self, row: &CellRow) -> CellRow {
        let cells = row.iter().enumerate();
        cells
            .map(|(index, cell)| if self.keys.contains(&index) { cell.clone() } else { TableCell::Missing })
            .collect()
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
        let series =
            Series { schema: self.schema, at: self.at, took: Vec::new(), table: self.table.finish() };
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
        let schema =
            SeriesSchema { stored: StoredRows::Every, monitor: "slabinfo".into(), source, interval, columns };
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

    /// The rows that were stored of each tick.
    type StoredTicks = Vec<Vec<(String, Option<i64>)>>;

    /// Ticks of rows stored as what changed, and read again; what they were.
    fn store_changes(ticks: &[&[(&str, i64)]]) -> (StoredTicks, Series, Series) {
        let mut all = Vec::new();
        for (at, rows) in (1..).zip(ticks) {
            all.extend(rows.iter().map(|(name, number)| (at, *name, *number)));
        }
        let whole = name_number_series(&all);
        let mut changes = RowChanges::new(&whole.schema);
        let (mut stored, mut by_tick) = (Vec::new(), Vec::new());
        for (at, rows) in (1..).zip(ticks) {
            let rows: Vec<CellRow> = rows
                .iter()
                .map(|(name, number)| vec![TableCell::Text((*name).into()), TableCell::Int(*number)])
                .collect();
            let taken = changes.take_tick(&rows);
            by_tick.push(
                taken
                    .iter()
                    .map(|row| match (&row[0], &row[1]) {
                        (TableCell::Text(name), TableCell::Int(number)) => (name.clone(), Some(*number)),
                        (TableCell::Text(name), _) => (name.clone(), None),
                        other => panic!("{other:?}"),
                    })
                    .collect(),
            );
            stored.extend(taken.into_iter().map(|row| (Nanos(at), row)));
        }
        let schema = SeriesSchema { stored: StoredRows::Changed, ..whole.schema.clone() };
        let read = Series::from_rows(schema, &stored).with_unchanged_rows();
        (by_tick, read, whole)
    }

    #[test]
    fn rows_that_were_left_out_are_held_at_every_tick() {
        let (stored, read, whole) = store_changes(&[
            &[("a", 1), ("b", 5), ("c", 9)],
            &[("a", 1), ("b", 6), ("c", 9)],
            &[("a", 1), ("b", 6), ("c", 9)],
            &[("a", 2), ("b", 6), ("c", 9)],
        ]);
        let lengths: Vec<usize> = stored.iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 1, 1, 1]);
        assert_eq!(read, whole);
    }

    #[test]
    fn subjects_that_go_end_and_may_come_again() {
        let (stored, read, whole) =
            store_changes(&[&[("a", 1), ("b", 5)], &[("a", 1)], &[("a", 1)], &[("a", 1), ("b", 7)]]);
        assert_eq!(stored[1], [("b".to_owned(), None)]);
        assert_eq!(stored[2], [("a".to_owned(), Some(1))]);
        assert_eq!(stored[3], [("b".to_owned(), Some(7))]);
        assert_eq!(read, whole);
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
