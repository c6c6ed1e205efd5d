//! A series in which a row that says the same tick after tick stands once. It owns what the same row is: all cells, in
//! the same place of the next tick. It refuses disorder: times that go back are sorted by whoever has them.

use std::ops::Range;

use super::{ColumnData, Series, SeriesSchema};
use crate::Nanos;

/// The rows of a series, each with the ticks at which it stood.
///
/// Ten minutes at 100 Hz are 14 million rows of `slabinfo`, of which one in twenty differs from the tick before.
#[derive(Debug, Clone, PartialEq)]
pub struct Spans {
    /// The times of all ticks that have rows, rising.
    pub ticks: Vec<Nanos>,
    /// Each row once, with the time of its first tick, in order of time and place.
    pub series: Series,
    /// For each row: its place among the rows of its ticks,
    pub place: Vec<u32>,
    /// and the number of its first tick,
    first: Vec<u32>,
    /// and of its last one.
    last: Vec<u32>,
    /// Rows of the whole series.
    rows: usize,
    /// The row that stands at each place of the last tick; those from `placed` on stood at the tick before.
    standing: Vec<u32>,
    placed: usize,
}

/// A tick is earlier than the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disordered;

impl Spans {
    /// Of no rows yet.
    #[must_use]
    pub fn new(schema: SeriesSchema) -> Self {
        Spans {
            ticks: Vec::new(),
            series: Series::empty(schema),
            place: Vec::new(),
            first: Vec::new(),
            last: Vec::new(),
            rows: 0,
            standing: Vec::new(),
            placed: 0,
        }
    }

    /// Of a whole series, sorted by time where it is not.
    #[must_use]
    pub fn of(series: &Series) -> Self {
        let mut rows: Vec<usize> = (0..series.at.len()).collect();
        rows.sort_by_key(|row| series.at.get(*row).copied());
        let mut spans = Spans::new(series.schema.clone());
        for row in rows {
            spans.push(series, row);
        }
        spans
    }

    /// Appends the next rows of the series.
    ///
    /// # Errors
    /// A row earlier than the last one; those before it were taken.
    pub fn extend(&mut self, part: &Series) -> Result<(), Disordered> {
        for (row, at) in part.at.iter().enumerate() {
            if self.ticks.last().is_some_and(|last| at < last) {
                return Err(Disordered);
            }
            self.push(part, row);
        }
        Ok(())
    }

    /// The whole series again, by tick and place.
    #[must_use]
    pub fn whole(&self) -> Series {
        let times = |row: usize| self.span(row).map(move |tick| (tick, row));
        let mut rows: Vec<(usize, usize)> = (0..self.series.at.len()).flat_map(times).collect();
        rows.sort_by_key(|(tick, row)| (*tick, self.place.get(*row).copied()));
        let mut whole = Series::empty(self.series.schema.clone());
        for (tick, row) in rows {
            whole.at.extend(self.ticks.get(tick));
            let columns = whole.columns.iter_mut().zip(&self.series.columns);
            columns.for_each(|(whole, ours)| whole.copy(ours, row));
        }
        whole
    }

    /// The ticks of a row, as numbers of [`Spans::ticks`].
    #[must_use]
    pub fn span(&self, row: usize) -> Range<usize> {
        let tick = |of: &[u32]| of.get(row).map_or(0, |tick| *tick as usize);
        tick(&self.first)..tick(&self.last) + 1
    }

    /// Rows of the whole series: each as often as it stood.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn push(&mut self, from: &Series, row: usize) {
        let Some(at) = from.at.get(row) else { return };
        if self.ticks.last() != Some(at) {
            self.ticks.push(*at);
            self.standing.truncate(self.placed);
            self.placed = 0;
        }
        self.rows += 1;
        let tick = u32::try_from(self.ticks.len() - 1).unwrap_or(u32::MAX);
        let standing = self.standing.get(self.placed).map(|standing| *standing as usize);
        self.placed += 1;
        match standing.filter(|standing| self.stands(*standing, tick, from, row)) {
            Some(standing) => self.last.iter_mut().skip(standing).take(1).for_each(|last| *last = tick),
            None => self.begin(from, row, tick),
        }
    }

    /// Whether the row that stood there at the tick before says the same.
    fn stands(&self, standing: usize, tick: u32, from: &Series, row: usize) -> bool {
        let before = self.last.get(standing).is_some_and(|last| last + 1 == tick);
        let mut columns = self.series.columns.iter().zip(&from.columns);
        before && columns.all(|(ours, theirs)| ours.same(standing, theirs, row))
    }

    fn begin(&mut self, from: &Series, row: usize, tick: u32) {
        let place = self.placed - 1;
        let number = u32::try_from(self.series.at.len()).unwrap_or(u32::MAX);
        match self.standing.get_mut(place) {
            Some(standing) => *standing = number,
            None => self.standing.push(number),
        }
        self.series.at.extend(from.at.get(row));
        for (ours, theirs) in self.series.columns.iter_mut().zip(&from.columns) {
            ours.copy(theirs, row);
        }
        self.place.push(u32::try_from(place).unwrap_or(u32::MAX));
        self.first.push(tick);
        self.last.push(tick);
    }
}

impl ColumnData {
    /// Whether two cells are the same; floats to the bit, so that what was no number stays one.
    fn same(&self, row: usize, other: &ColumnData, its: usize) -> bool {
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
    fn copy(&mut self, other: &ColumnData, row: usize) {
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
    use crate::Column;

    /// Rows of time, name and number.
    fn series(rows: &[(u64, &str, i64)]) -> Series {
        let columns = vec![Column::key("cache"), Column::gauge("slabs", "slabs")];
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
        let spans = Spans::of(&series(&rows));
        assert_eq!((spans.series.at.len(), spans.rows()), (3, 6));
        assert_eq!([spans.span(0), spans.span(1), spans.span(2)], [0..3, 0..1, 1..3]);
        assert_eq!(spans.whole(), series(&rows));
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
        let spans = Spans::of(&series(&rows));
        assert_eq!(spans.whole(), series(&rows));
        assert_eq!(spans.rows(), rows.len());
    }

    #[test]
    fn parts_may_cut_a_tick_and_disorder_is_refused() {
        let rows = [(1, "a", 1), (1, "b", 1), (2, "a", 1), (2, "b", 1)];
        let mut parted = Spans::new(series(&[]).schema);
        for row in &rows {
            parted.extend(&series(&[*row])).unwrap();
        }
        assert_eq!(parted, Spans::of(&series(&rows)));
        assert_eq!(parted.extend(&series(&[(1, "a", 1)])), Err(Disordered));
        let sorted = Spans::of(&series(&[(2, "a", 1), (1, "a", 1)]));
        assert_eq!(sorted.whole(), series(&[(1, "a", 1), (2, "a", 1)]));
    }
}
