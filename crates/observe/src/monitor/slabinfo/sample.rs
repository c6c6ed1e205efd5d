//! One tick: read, and read again while rows contradict themselves; then what differs from the tick before.

use std::collections::BTreeSet;

use perflab_model::{CellRow, SeriesSchema, TableCell};

use super::memory::{CacheListChange, UnchangedLines};
use crate::ObserveError;
use crate::monitor::line::MalformedLine;
use crate::monitor::proc_file::ProcFile;
use crate::monitor::slab::{CountConsistency, CountEstimates, REREADS, SlabCounts, add_row_flag};
use crate::monitor::{Monitor, MonitorReading};

/// Where the text comes from.
pub(super) trait SlabinfoSource: Send {
    /// All of it, as it is now.
    fn read(&mut self) -> Result<&str, ObserveError>;

    /// The error for one of its lines.
    fn malformed_error(&self, malformed: MalformedLine) -> ObserveError;
}

impl SlabinfoSource for ProcFile {
    fn read(&mut self) -> Result<&str, ObserveError> {
        ProcFile::read(self)
    }

    fn malformed_error(&self, malformed: MalformedLine) -> ObserveError {
        ProcFile::malformed_error(self, malformed)
    }
}

/// The monitor.
pub(super) struct SlabinfoMonitor<T> {
    schema: SeriesSchema,
    capped: CountEstimates,
    text: T,
    /// What was read last,
    memory: UnchangedLines,
    /// what was given last,
    reported_rows: Vec<CellRow>,
    /// the places at which the two differ, or may soon without a change of the text,
    watched: BTreeSet<usize>,
    /// and whether they are of other caches altogether.
    stale: bool,
    /// Caches with slabs of a lower order, found by two readings: they need no more.
    fallback: BTreeSet<(String, i64)>,
}

impl<T: SlabinfoSource> Monitor for SlabinfoMonitor<T> {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        self.read_changes()?;
        rows.extend_from_slice(&self.reported_rows);
        Ok(())
    }

    fn read_changes(&mut self) -> Result<MonitorReading, ObserveError> {
        let is_new = self.read_text()? == CacheListChange::Others || std::mem::take(&mut self.stale);
        let mut rows = self.candidate_rows(is_new);
        self.reread_inconsistent_rows(&mut rows);
        rows.iter_mut().for_each(|(place, row)| self.flag_estimate(*place, row));
        if is_new {
            self.reported_rows = rows.into_iter().map(|(_, row)| row).collect();
            return Ok(MonitorReading::Whole(self.reported_rows.clone()));
        }
        rows.retain(|(place, row)| self.reported_rows.get(*place) != Some(row));
        Ok(MonitorReading::Changed(
            rows.into_iter().filter_map(|(place, row)| self.record_change(place, row)).collect(),
        ))
    }
}

impl<T: SlabinfoSource> SlabinfoMonitor<T> {
    pub(super) fn new(schema: SeriesSchema, capped: CountEstimates, text: T) -> Self {
        let (memory, given, watched) = (UnchangedLines::default(), Vec::new(), BTreeSet::new());
        SlabinfoMonitor {
            schema,
            capped,
            text,
            memory,
            reported_rows: given,
            watched,
            stale: false,
            fallback: BTreeSet::new(),
        }
    }

    fn read_text(&mut self) -> Result<CacheListChange, ObserveError> {
        let read = self.memory.update(self.text.read()?);
        read.map_err(|malformed| self.text.malformed_error(malformed))
    }

    /// The rows that may not be as they were given, each behind its place.
    fn candidate_rows(&mut self, all: bool) -> Vec<(usize, CellRow)> {
        let mut places = std::mem::take(&mut self.watched);
        let rows = self.memory.rows();
        match all {
            true => rows.iter().cloned().enumerate().collect(),
            false => {
                places.extend(self.memory.changed_rows());
                places.into_iter().filter_map(|place| Some((place, rows.get(place)?.clone()))).collect()
            }
        }
    }

    fn record_change(&mut self, place: usize, row: CellRow) -> Option<(u32, CellRow)> {
        self.reported_rows.get_mut(place)?.clone_from(&row);
        Some((u32::try_from(place).ok()?, row))
    }

    /// Reads again while some row contradicts itself, and flags those that still do in the end.
    fn reread_inconsistent_rows(&mut self, rows: &mut [(usize, CellRow)]) {
        let mut doubtful: Vec<&mut (usize, CellRow)> =
            rows.iter_mut().filter(|(_, row)| self.is_doubtful(row)).collect();
        for _ in 0..REREADS {
            if doubtful.is_empty() || !self.reread() {
                break;
            }
            doubtful.retain_mut(|(place, row)| !self.replace_row(*place, row));
        }
        for (place, row) in doubtful {
            add_row_flag(row, "torn");
            self.watched.insert(*place);
        }
    }

    /// A reading that fails makes the next tick a gap; this one has its rows. What it changes beside the doubtful rows is
    /// for the next tick.
    fn reread(&mut self) -> bool {
        match self.read_text() {
            Ok(CacheListChange::Same) => self.watched.extend(self.memory.changed_rows()),
            Ok(CacheListChange::Others) => self.stale = true,
            Err(_) => return false,
        }
        true
    }

    fn is_doubtful(&self, row: &CellRow) -> bool {
        match row_consistency(row) {
            CountConsistency::Sound => false,
            CountConsistency::Short => !self.shows_lower_order(row),
            CountConsistency::Torn => true,
        }
    }

    fn shows_lower_order(&self, row: &CellRow) -> bool {
        !self.fallback.is_empty() && row_key(row).is_some_and(|key| self.fallback.contains(&key))
    }

    /// Takes the row of the new reading instead; says whether it is without contradiction. A cache that is gone by now
    /// keeps its old row.
    fn replace_row(&mut self, place: usize, row: &mut CellRow) -> bool {
        let rows = self.memory.rows();
        let same = |new: &&CellRow| new.get(..2) == row.get(..2);
        let Some(new) = rows.get(place).filter(same).or_else(|| rows.iter().find(same)) else {
            return false;
        };
        let earlier = row_counts(row);
        row.clone_from(new);
        let falls_back =
            row_counts(row).zip(earlier).is_some_and(|(now, earlier)| now.shows_lower_order(&earlier));
        if falls_back {
            self.fallback.extend(row_key(row));
        }
        !self.is_doubtful(row)
    }

    /// How many slabs are partial stands in another file, which may change alone.
    fn flag_estimate(&mut self, place: usize, row: &mut CellRow) {
        let Some((cache, counts)) = cache_name(row).zip(row_counts(row)) else { return };
        let (free, slabs) = (counts.objects.saturating_sub(counts.in_use), counts.slabs);
        if !self.capped.can_be_estimated(free, slabs) {
            return;
        }
        self.watched.insert(place);
        if self.capped.is_estimated(cache) {
            add_row_flag(row, "approximate");
        }
    }
}
/// A row that was not understood is flagged already, and reading it again would not help. A number that does not fit,
/// as a negative one does not, is a contradiction too.
pub(super) fn row_consistency(row: &CellRow) -> CountConsistency {
    let understood = matches!(row.last(), Some(TableCell::Text(flags)) if flags.is_empty());
    match row_counts(row) {
        _ if !understood => CountConsistency::Sound,
        Some(counts) if read_active_slabs(row).is_some_and(|active| active <= counts.slabs) => {
            counts.consistency()
        }
        _ => CountConsistency::Torn,
    }
}

pub(super) fn row_counts(row: &CellRow) -> Option<SlabCounts> {
    Some(SlabCounts {
        in_use: unsigned_cell(row, 2)?,
        objects: unsigned_cell(row, 3)?,
        per_slab: unsigned_cell(row, 5)?,
        slabs: unsigned_cell(row, 8)?,
    })
}

fn read_active_slabs(row: &CellRow) -> Option<u64> {
    unsigned_cell(row, 7)
}

fn unsigned_cell(row: &CellRow, place: usize) -> Option<u64> {
    match row.get(place)? {
        TableCell::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn cache_name(row: &CellRow) -> Option<&str> {
    match row.first()? {
        TableCell::Text(name) => Some(name),
        _ => None,
    }
}

/// Name and ordinal.
fn row_key(row: &CellRow) -> Option<(String, i64)> {
    match row.get(1)? {
        TableCell::Int(ordinal) => Some((cache_name(row)?.to_owned(), *ordinal)),
        _ => None,
    }
}
