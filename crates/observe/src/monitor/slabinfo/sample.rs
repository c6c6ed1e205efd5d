//! One tick: read, and read again while rows contradict themselves.

use std::collections::BTreeSet;

use perflab_model::{Cell, Row, SeriesSchema};

use crate::ObserveError;
use crate::monitor::Monitor;
use crate::monitor::slab::{Capped, Counts, REREADS, Soundness, flag};

/// The monitor; `read` appends the rows of one reading.
pub(super) struct Slabinfo<R> {
    schema: SeriesSchema,
    capped: Capped,
    read: R,
    again: Vec<Row>,
    /// Caches with slabs of a lower order, found by two readings: they need no more.
    fallback: BTreeSet<(String, i64)>,
}

impl<R> Monitor for Slabinfo<R>
where
    R: FnMut(&mut Vec<Row>) -> Result<(), ObserveError> + Send,
{
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn sample(&mut self, rows: &mut Vec<Row>) -> Result<(), ObserveError> {
        let first = rows.len();
        (self.read)(rows)?;
        let rows = rows.get_mut(first..).unwrap_or_default();
        self.settle(rows);
        rows.iter_mut().for_each(|row| self.mark_estimate(row));
        Ok(())
    }
}

impl<R> Slabinfo<R>
where
    R: FnMut(&mut Vec<Row>) -> Result<(), ObserveError> + Send,
{
    pub(super) fn new(schema: SeriesSchema, capped: Capped, read: R) -> Self {
        Slabinfo { schema, capped, read, again: Vec::new(), fallback: BTreeSet::new() }
    }

    /// Reads again while some row contradicts itself, and flags those that still do in the end.
    fn settle(&mut self, rows: &mut [Row]) {
        let mut doubtful: Vec<&mut Row> = rows.iter_mut().filter_map(|row| self.doubt(row)).collect();
        for _ in 0..REREADS {
            self.again.clear();
            // A reading that fails makes the next tick a gap; this one has its rows.
            if doubtful.is_empty() || (self.read)(&mut self.again).is_err() {
                break;
            }
            doubtful.retain_mut(|row| !self.replace(row));
        }
        doubtful.into_iter().for_each(|row| flag(row, "torn"));
    }

    /// The row, where it contradicts itself.
    fn doubt<'a>(&self, row: &'a mut Row) -> Option<&'a mut Row> {
        match soundness(row) {
            Soundness::Sound => None,
            Soundness::Short if self.falls_back(row) => None,
            _ => Some(row),
        }
    }

    fn falls_back(&self, row: &Row) -> bool {
        !self.fallback.is_empty() && key(row).is_some_and(|key| self.fallback.contains(&key))
    }

    /// Takes the row of the new reading instead; says whether it is without contradiction. A cache that is gone by now
    /// keeps its old row.
    fn replace(&mut self, row: &mut Row) -> bool {
        let Some(place) = self.again.iter().position(|new| new.get(..2) == row.get(..2)) else {
            return false;
        };
        let earlier = counts(row);
        *row = self.again.swap_remove(place);
        let falls_back = counts(row).zip(earlier).is_some_and(|(now, earlier)| now.falls_back(&earlier));
        if falls_back {
            self.fallback.extend(key(row));
        }
        self.doubt(row).is_none()
    }

    fn mark_estimate(&mut self, row: &mut Row) {
        let Some((cache, counts)) = name(row).zip(counts(row)) else { return };
        if self.capped.may_be(cache, counts.objects.saturating_sub(counts.in_use), counts.slabs) {
            flag(row, "approximate");
        }
    }
}

/// A row that was not understood is flagged already, and reading it again would not help. A number that does not fit,
/// as a negative one does not, is a contradiction too.
fn soundness(row: &Row) -> Soundness {
    let understood = matches!(row.last(), Some(Cell::Text(flags)) if flags.is_empty());
    match counts(row) {
        _ if !understood => Soundness::Sound,
        Some(counts) if active_slabs(row).is_some_and(|active| active <= counts.slabs) => counts.soundness(),
        _ => Soundness::Torn,
    }
}

fn counts(row: &Row) -> Option<Counts> {
    Some(Counts { in_use: at(row, 2)?, objects: at(row, 3)?, per_slab: at(row, 5)?, slabs: at(row, 8)? })
}

fn active_slabs(row: &Row) -> Option<u64> {
    at(row, 7)
}

fn at(row: &Row, place: usize) -> Option<u64> {
    match row.get(place)? {
        Cell::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn name(row: &Row) -> Option<&str> {
    match row.first()? {
        Cell::Text(name) => Some(name),
        _ => None,
    }
}

/// Name and ordinal.
fn key(row: &Row) -> Option<(String, i64)> {
    match row.get(1)? {
        Cell::Int(ordinal) => Some((name(row)?.to_owned(), *ordinal)),
        _ => None,
    }
}
