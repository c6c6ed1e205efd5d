//! One tick: read, and read again while rows contradict themselves; then what differs from the tick before.

use std::collections::BTreeSet;

use perflab_model::{Cell, Row, SeriesSchema};

use super::memory::{Caches, Memory};
use crate::ObserveError;
use crate::monitor::line::Malformed;
use crate::monitor::proc_file::ProcFile;
use crate::monitor::slab::{Capped, Counts, REREADS, Soundness, flag};
use crate::monitor::{Monitor, Tick};

/// Where the text comes from.
pub(super) trait Text: Send {
    /// All of it, as it is now.
    fn read(&mut self) -> Result<&str, ObserveError>;

    /// The error for one of its lines.
    fn malformed(&self, malformed: Malformed) -> ObserveError;
}

impl Text for ProcFile {
    fn read(&mut self) -> Result<&str, ObserveError> {
        ProcFile::read(self)
    }

    fn malformed(&self, malformed: Malformed) -> ObserveError {
        ProcFile::malformed(self, malformed)
    }
}

/// The monitor.
pub(super) struct Slabinfo<T> {
    schema: SeriesSchema,
    capped: Capped,
    text: T,
    /// What was read last,
    memory: Memory,
    /// what was given last,
    given: Vec<Row>,
    /// the places at which the two differ, or may soon without a change of the text,
    watched: BTreeSet<usize>,
    /// and whether they are of other caches altogether.
    stale: bool,
    /// Caches with slabs of a lower order, found by two readings: they need no more.
    fallback: BTreeSet<(String, i64)>,
}

impl<T: Text> Monitor for Slabinfo<T> {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn sample(&mut self, rows: &mut Vec<Row>) -> Result<(), ObserveError> {
        self.tick()?;
        rows.extend_from_slice(&self.given);
        Ok(())
    }

    fn tick(&mut self) -> Result<Tick, ObserveError> {
        let is_new = self.read()? == Caches::Others || std::mem::take(&mut self.stale);
        let mut rows = self.candidates(is_new);
        self.settle(&mut rows);
        rows.iter_mut().for_each(|(place, row)| self.mark_estimate(*place, row));
        if is_new {
            self.given = rows.into_iter().map(|(_, row)| row).collect();
            return Ok(Tick::Whole(self.given.clone()));
        }
        rows.retain(|(place, row)| self.given.get(*place) != Some(row));
        Ok(Tick::Changed(rows.into_iter().filter_map(|(place, row)| self.give(place, row)).collect()))
    }
}

impl<T: Text> Slabinfo<T> {
    pub(super) fn new(schema: SeriesSchema, capped: Capped, text: T) -> Self {
        let (memory, given, watched) = (Memory::default(), Vec::new(), BTreeSet::new());
        Slabinfo { schema, capped, text, memory, given, watched, stale: false, fallback: BTreeSet::new() }
    }

    fn read(&mut self) -> Result<Caches, ObserveError> {
        let read = self.memory.take(self.text.read()?);
        read.map_err(|malformed| self.text.malformed(malformed))
    }

    /// The rows that may not be as they were given, each behind its place.
    fn candidates(&mut self, all: bool) -> Vec<(usize, Row)> {
        let mut places = std::mem::take(&mut self.watched);
        let rows = self.memory.rows();
        match all {
            true => rows.iter().cloned().enumerate().collect(),
            false => {
                places.extend(self.memory.changed());
                places.into_iter().filter_map(|place| Some((place, rows.get(place)?.clone()))).collect()
            }
        }
    }

    fn give(&mut self, place: usize, row: Row) -> Option<(u32, Row)> {
        self.given.get_mut(place)?.clone_from(&row);
        Some((u32::try_from(place).ok()?, row))
    }

    /// Reads again while some row contradicts itself, and flags those that still do in the end.
    fn settle(&mut self, rows: &mut [(usize, Row)]) {
        let mut doubtful: Vec<&mut (usize, Row)> =
            rows.iter_mut().filter(|(_, row)| self.is_doubtful(row)).collect();
        for _ in 0..REREADS {
            if doubtful.is_empty() || !self.read_again() {
                break;
            }
            doubtful.retain_mut(|(place, row)| !self.replace(*place, row));
        }
        for (place, row) in doubtful {
            flag(row, "torn");
            self.watched.insert(*place);
        }
    }

    /// A reading that fails makes the next tick a gap; this one has its rows. What it changes beside the doubtful rows is
    /// for the next tick.
    fn read_again(&mut self) -> bool {
        match self.read() {
            Ok(Caches::Same) => self.watched.extend(self.memory.changed()),
            Ok(Caches::Others) => self.stale = true,
            Err(_) => return false,
        }
        true
    }

    fn is_doubtful(&self, row: &Row) -> bool {
        match soundness(row) {
            Soundness::Sound => false,
            Soundness::Short => !self.falls_back(row),
            Soundness::Torn => true,
        }
    }

    fn falls_back(&self, row: &Row) -> bool {
        !self.fallback.is_empty() && key(row).is_some_and(|key| self.fallback.contains(&key))
    }

    /// Takes the row of the new reading instead; says whether it is without contradiction. A cache that is gone by now
    /// keeps its old row.
    fn replace(&mut self, place: usize, row: &mut Row) -> bool {
        let rows = self.memory.rows();
        let same = |new: &&Row| new.get(..2) == row.get(..2);
        let Some(new) = rows.get(place).filter(same).or_else(|| rows.iter().find(same)) else {
            return false;
        };
        let earlier = counts(row);
        row.clone_from(new);
        let falls_back = counts(row).zip(earlier).is_some_and(|(now, earlier)| now.falls_back(&earlier));
        if falls_back {
            self.fallback.extend(key(row));
        }
        !self.is_doubtful(row)
    }

    /// How many slabs are partial stands in another file, which may change alone.
    fn mark_estimate(&mut self, place: usize, row: &mut Row) {
        let Some((cache, counts)) = name(row).zip(counts(row)) else { return };
        let (free, slabs) = (counts.objects.saturating_sub(counts.in_use), counts.slabs);
        if !self.capped.concerns(free, slabs) {
            return;
        }
        self.watched.insert(place);
        if self.capped.is_estimate(cache) {
            flag(row, "approximate");
        }
    }
}
/// A row that was not understood is flagged already, and reading it again would not help. A number that does not fit,
/// as a negative one does not, is a contradiction too.
pub(super) fn soundness(row: &Row) -> Soundness {
    let understood = matches!(row.last(), Some(Cell::Text(flags)) if flags.is_empty());
    match counts(row) {
        _ if !understood => Soundness::Sound,
        Some(counts) if active_slabs(row).is_some_and(|active| active <= counts.slabs) => counts.soundness(),
        _ => Soundness::Torn,
    }
}

pub(super) fn counts(row: &Row) -> Option<Counts> {
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
