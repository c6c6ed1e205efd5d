//! `/proc/slabinfo` on a clock: read again while rows contradict themselves, unchanged lines not parsed again, changes
//! only.
//!
//! Rows of the last reading are kept by line: at short intervals most lines are unchanged, and comparing is cheaper
//! than parsing.

use std::collections::BTreeSet;

use perflab_formats::column::add_row_flag;
use perflab_formats::kernel::slab_counts::CountConsistency;
use perflab_formats::kernel::slabinfo::{SLABINFO, SlabinfoCells, SlabinfoLine, SlabinfoRow, parse_slabinfo};
use perflab_formats::reading_parser::{MalformedLine, text_lines};
use perflab_model::{CellRow, SeriesSchema};

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext, MonitorReading};
use crate::monitor::slab_caches::read_page_size;
use crate::monitor::slab_tree::{CountEstimates, REREADS};
use crate::monitor::text_file::ProcFile;

pub(crate) fn open_slabinfo(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let file = ProcFile::open(opening.root, SLABINFO.source)?;
    let (schema, page) = (opening.declared_schema(), read_page_size(opening.root));
    Ok(Box::new(SlabinfoMonitor::new(schema, CountEstimates::new(opening.root), page, file)))
}

/// Where the text comes from.
trait SlabinfoSource: Send {
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
struct SlabinfoMonitor<T> {
    schema: SeriesSchema,
    capped: CountEstimates,
    text: T,
    /// What was read last,
    memory: UnchangedLines,
    /// what was given last,
    reported_rows: Vec<CellRow>,
    /// the indices at which the two differ, or may soon without a change of the text,
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
        rows.iter_mut().for_each(|(index, row)| self.flag_estimate(*index, row));
        if is_new {
            self.reported_rows = rows.into_iter().map(|(_, row)| row).collect();
            return Ok(MonitorReading::Whole(self.reported_rows.clone()));
        }
        rows.retain(|(index, row)| self.reported_rows.get(*index) != Some(row));
        Ok(MonitorReading::Changed(
            rows.into_iter().filter_map(|(index, row)| self.record_change(index, row)).collect(),
        ))
    }
}

impl<T: SlabinfoSource> SlabinfoMonitor<T> {
    pub(crate) fn new(schema: SeriesSchema, capped: CountEstimates, page: Option<u64>, text: T) -> Self {
        let memory = UnchangedLines { page, ..UnchangedLines::default() };
        let (given, watched) = (Vec::new(), BTreeSet::new());
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

    /// The rows that may not be as they were given, each with its index.
    fn candidate_rows(&mut self, all: bool) -> Vec<(usize, CellRow)> {
        let mut indices = std::mem::take(&mut self.watched);
        let rows = self.memory.rows();
        match all {
            true => rows.iter().cloned().enumerate().collect(),
            false => {
                indices.extend(self.memory.changed_rows());
                indices.into_iter().filter_map(|index| Some((index, rows.get(index)?.clone()))).collect()
            }
        }
    }

    fn record_change(&mut self, index: usize, row: CellRow) -> Option<(u32, CellRow)> {
        self.reported_rows.get_mut(index)?.clone_from(&row);
        Some((u32::try_from(index).ok()?, row))
    }

    /// Reads again while some row contradicts itself, and flags those that still do in the end.
    fn reread_inconsistent_rows(&mut self, rows: &mut [(usize, CellRow)]) {
        let mut doubtful: Vec<&mut (usize, CellRow)> =
            rows.iter_mut().filter(|(_, row)| self.is_doubtful(row)).collect();
        for _ in 0..REREADS {
            if doubtful.is_empty() || !self.reread() {
                break;
            }
            doubtful.retain_mut(|(index, row)| !self.replace_row(*index, row));
        }
        for (index, row) in doubtful {
            add_row_flag(row, SlabinfoRow::FLAGS, "torn");
            self.watched.insert(*index);
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
        match SlabinfoCells(row).consistency() {
            CountConsistency::Sound => false,
            CountConsistency::Short => !self.shows_lower_order(row),
            CountConsistency::Torn(_) => true,
        }
    }

    fn shows_lower_order(&self, row: &CellRow) -> bool {
        !self.fallback.is_empty() && row_key(row).is_some_and(|key| self.fallback.contains(&key))
    }

    /// Takes the row of the new reading instead; says whether it is without contradiction. A cache that is gone by now
    /// keeps its old row.
    fn replace_row(&mut self, index: usize, row: &mut CellRow) -> bool {
        let rows = self.memory.rows();
        let same = |new: &&CellRow| SlabinfoCells(new).is_same_cache(row);
        let Some(new) = rows.get(index).filter(same).or_else(|| rows.iter().find(same)) else {
            return false;
        };
        let earlier = SlabinfoCells(row).counts();
        row.clone_from(new);
        let falls_back = SlabinfoCells(row)
            .counts()
            .zip(earlier)
            .is_some_and(|(now, earlier)| now.shows_lower_order(&earlier));
        if falls_back {
            self.fallback.extend(row_key(row));
        }
        !self.is_doubtful(row)
    }

    /// How many slabs are partial is in another file, which may change alone.
    fn flag_estimate(&mut self, index: usize, row: &mut CellRow) {
        let seen = SlabinfoCells(row);
        let Some((cache, counts)) = seen.cache().zip(seen.counts()) else { return };
        if !self.capped.can_be_estimated(&counts) {
            return;
        }
        self.watched.insert(index);
        if self.capped.is_estimated(cache) {
            add_row_flag(row, SlabinfoRow::FLAGS, "approximate");
        }
    }
}

/// Name and ordinal.
fn row_key(row: &CellRow) -> Option<(String, i64)> {
    let row = SlabinfoCells(row);
    Some((row.cache()?.to_owned(), row.ordinal()?))
}

/// Lines above the first cache.
const HEADER_LINES: usize = 2;

/// The last text, and the row of each of its lines below the header.
#[derive(Debug, Default)]
struct UnchangedLines {
    /// The machine's page size in bytes.
    page: Option<u64>,
    text: String,
    /// Bytes of each line, its end with it.
    lengths: Vec<usize>,
    rows: Vec<CellRow>,
    changed: Vec<usize>,
}

/// How a text compares with the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheListChange {
    /// The same, line by line; [`UnchangedLines::changed`] are the rows that are not as they were.
    Same,
    /// Others, or in another order: all rows are new.
    Others,
}

impl UnchangedLines {
    /// Takes the next text.
    ///
    /// # Errors
    /// As [`parse_slabinfo`]; nothing is remembered then.
    fn update(&mut self, text: &str) -> Result<CacheListChange, MalformedLine> {
        self.changed.clear();
        let caches = match self.update_same_caches(text) {
            Some(()) => CacheListChange::Same,
            None => {
                let mut rows = Vec::with_capacity(self.rows.len());
                let parsed = parse_slabinfo(text, self.page, &mut rows);
                parsed.inspect_err(|_| {
                    *self = UnchangedLines { page: self.page, ..UnchangedLines::default() };
                })?;
                self.rows = rows;
                self.lengths = text.split_inclusive('\n').map(str::len).collect();
                CacheListChange::Others
            }
        };
        self.text.clear();
        self.text.push_str(text);
        Ok(caches)
    }

    /// The rows of the last text, as [`parse_slabinfo`] makes them.
    pub(crate) fn rows(&self) -> &[CellRow] {
        &self.rows
    }

    /// The indices of the rows that the last text changed; meaningless where it brought other caches.
    fn changed_rows(&self) -> &[usize] {
        &self.changed
    }

    /// Makes the rows those of `text`; nothing where its names are not those of the last one, line by line, for then
    /// ordinals may be others.
    fn update_same_caches(&mut self, text: &str) -> Option<()> {
        let (mut new, mut old) = (text, self.text.as_str());
        let (header, lengths) = self.lengths.split_at_mut_checked(HEADER_LINES)?;
        for length in header {
            next_changed_line(&mut new, &mut old, length)?.is_err().then_some(())?;
        }
        for (index, length) in lengths.iter_mut().enumerate() {
            let known = self.rows.get_mut(index)?;
            if let Ok(line) = next_changed_line(&mut new, &mut old, length)? {
                *known = parse_changed_line(line, known, self.page)?;
                self.changed.push(index);
            }
        }
        (new.is_empty() && self.rows.len() == lengths.len()).then_some(())
    }
}

/// The next line is as it was.
struct SameLineMarker;

/// Takes a line off both texts, off the old one as long as it was: the new one, where it differs.
fn next_changed_line<'a>(
    new: &mut &'a str,
    old: &mut &str,
    length: &mut usize,
) -> Option<Result<&'a str, SameLineMarker>> {
    let (before, left) = old.split_at_checked(*length)?;
    *old = left;
    if let Some(left) = new.strip_prefix(before) {
        *new = left;
        return Some(Err(SameLineMarker));
    }
    *length = new.find('\n').map_or(new.len(), |end| end + 1);
    let (line, left) = new.split_at_checked(*length)?;
    *new = left;
    Some(Ok(line))
}

/// The row of a line of the same cache.
fn parse_changed_line(line: &str, known: &CellRow, page: Option<u64>) -> Option<CellRow> {
    let line = SlabinfoLine::parse(text_lines(line).next()?).ok()?;
    let known = SlabinfoCells(known);
    (known.cache()? == line.name).then(|| known.ordinal().map(|ordinal| line.to_row(ordinal, page)))?
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use perflab_model::column::stored_columns;
    use perflab_model::{ColumnRef, Nanos};
    use proptest::prelude::*;

    use super::*;
    use crate::root::Root;

    /// A slabinfo of caches: name, active objects, objects, objects of a slab, slabs.
    fn build_slabinfo_text(caches: &[(&str, &str, u64, u64, u64)]) -> String {
        let line = |(name, active, objects, per_slab, slabs): &(&str, &str, u64, u64, u64)| {
            format!(
                "{name} {active} {objects} 192 {per_slab} 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n"
            )
        };
        let lines: String = caches.iter().map(line).collect();
        format!("slabinfo - version: 2.1\n# name <active_objs>\n{lines}")
    }

    /// Texts, one a reading; no more after the last.
    struct ScriptedSource(VecDeque<String>, String);

    impl SlabinfoSource for ScriptedSource {
        fn read(&mut self) -> Result<&str, ObserveError> {
            let gone = || ObserveError::read_failed("/proc/slabinfo", std::io::ErrorKind::NotFound.into());
            self.1 = self.0.pop_front().ok_or_else(gone)?;
            Ok(&self.1)
        }

        fn malformed_error(&self, malformed: MalformedLine) -> ObserveError {
            panic!("{malformed:?}: {}", self.1)
        }
    }

    /// A monitor whose every reading is the next of these texts, and fails when they are used up.
    fn scripted_monitor(root: &Root, texts: &[String]) -> impl Monitor + use<> {
        let columns = stored_columns(SLABINFO.columns);
        let schema = SeriesSchema {
            stored: perflab_model::series::StoredRows::Every,
            monitor: "slabinfo".into(),
            source: String::new(),
            interval: Nanos(1),
            columns,
        };
        SlabinfoMonitor::new(
            schema,
            CountEstimates::new(root),
            Some(4096),
            ScriptedSource(texts.to_vec().into(), String::new()),
        )
    }

    fn empty_root() -> Root {
        Root("/nowhere".into())
    }

    /// Name, ordinal, active objects, objects and flags of each row of a tick.
    fn read_tick_lines(monitor: &mut impl Monitor) -> Vec<String> {
        let mut rows = Vec::new();
        monitor.read_rows(&mut rows).unwrap();
        let line = |row: &CellRow| {
            let number = |column: ColumnRef<SlabinfoRow, i64>| {
                column.get(row).map_or_else(|| "-".to_owned(), |number| number.to_string())
            };
            let numbers = [SlabinfoRow::ORDINAL, SlabinfoRow::ACTIVE_OBJS, SlabinfoRow::NUM_OBJS].map(number);
            let text = |column: ColumnRef<SlabinfoRow, str>| column.get(row).unwrap();
            format!("{} {} {}", text(SlabinfoRow::CACHE), numbers.join(" "), text(SlabinfoRow::FLAGS))
        };
        rows.iter().map(line).collect()
    }

    #[test]
    fn a_torn_row_is_read_again_and_the_others_stay_as_they_were_first() {
        let first = build_slabinfo_text(&[("a", "10", 20, 10, 2), ("b", "30", 20, 10, 2)]);
        let second = build_slabinfo_text(&[("a", "11", 20, 10, 2), ("b", "15", 20, 10, 2)]);
        assert_eq!(
            read_tick_lines(&mut scripted_monitor(&empty_root(), &[first, second])),
            ["a 0 10 20 ", "b 0 15 20 "]
        );
    }

    #[test]
    fn a_row_that_stays_torn_is_flagged_after_two_more_readings_and_has_the_last_values() {
        let readings =
            [30, 31, 32, 33].map(|active: u64| build_slabinfo_text(&[("a", &active.to_string(), 20, 10, 2)]));
        let mut monitor = scripted_monitor(&empty_root(), &readings);
        assert_eq!(read_tick_lines(&mut monitor), ["a 0 32 20 torn"]);
    }

    #[test]
    fn more_objects_than_the_slabs_hold_are_torn_and_so_is_a_count_below_zero() {
        let wrapped = u64::MAX.to_string();
        let caches = build_slabinfo_text(&[
            ("more", "1", 21, 10, 2),
            ("wrapped", &wrapped, 20, 10, 2),
            ("few", "0", 1, 10, 2),
        ]);
        let mut monitor = scripted_monitor(&empty_root(), &[caches.clone(), caches.clone(), caches]);
        assert_eq!(
            read_tick_lines(&mut monitor),
            ["more 0 1 21 torn", "wrapped 0 - 20 torn", "few 0 0 1 torn"]
        );
    }

    #[test]
    fn slabs_of_a_lower_order_say_the_same_twice_and_cost_no_more_readings_then() {
        let short = build_slabinfo_text(&[("a", "5", 15, 10, 2)]);
        // The second tick has one reading left: a second one would fail.
        let mut monitor = scripted_monitor(&empty_root(), &[short.clone(), short.clone(), short]);
        assert_eq!(read_tick_lines(&mut monitor), ["a 0 5 15 "]);
        assert_eq!(read_tick_lines(&mut monitor), ["a 0 5 15 "]);
    }

    #[test]
    fn a_torn_cache_that_is_gone_at_the_next_reading_keeps_its_row() {
        let first = build_slabinfo_text(&[("a", "30", 20, 10, 2), ("b", "1", 20, 10, 2)]);
        let second = build_slabinfo_text(&[("b", "1", 20, 10, 2)]);
        let mut monitor = scripted_monitor(&empty_root(), &[first, second.clone(), second]);
        assert_eq!(read_tick_lines(&mut monitor), ["a 0 30 20 torn", "b 0 1 20 "]);
    }

    #[test]
    fn a_second_reading_that_fails_leaves_the_first() {
        let mut monitor = scripted_monitor(&empty_root(), &[build_slabinfo_text(&[("a", "30", 20, 10, 2)])]);
        assert_eq!(read_tick_lines(&mut monitor), ["a 0 30 20 torn"]);
    }

    #[test]
    fn repeated_names_are_told_apart_also_when_one_is_read_again() {
        let first =
            build_slabinfo_text(&[("a b", "1", 20, 10, 2), ("c", "1", 20, 10, 2), ("a b", "99", 20, 10, 2)]);
        let second = build_slabinfo_text(&[("a b", "7", 20, 10, 2), ("a b", "9", 20, 10, 2)]);
        let mut monitor = scripted_monitor(&empty_root(), &[first, second]);
        assert_eq!(read_tick_lines(&mut monitor), ["a b 0 1 20 ", "c 0 1 20 ", "a b 1 9 20 "]);
    }

    /// A tree of a kernel of that release, whose cache `big` has so many partial slabs.
    fn create_kernel_tree(release: &str, partial: Option<&str>) -> (tempfile::TempDir, Root) {
        let directory = tempfile::tempdir().unwrap();
        let root = Root(directory.path().into());
        let write = |path: &str, text: &str| {
            let path = root.path(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("/proc/sys/kernel/osrelease", release);
        partial.iter().for_each(|partial| write("/sys/kernel/slab/big/partial", partial));
        (directory, root)
    }

    fn read_row_flags(release: &str, partial: Option<&str>) -> String {
        let (_keep, root) = create_kernel_tree(release, partial);
        let caches = build_slabinfo_text(&[("big", "100000", 200_000, 10, 20_000)]);
        read_tick_lines(&mut scripted_monitor(&root, &[caches])).concat().replace("big 0 100000 200000 ", "")
    }

    #[test]
    fn counts_of_long_partial_lists_are_estimates_on_new_kernels() {
        assert_eq!(read_row_flags("6.18.44", Some("10001 N0=10001\n")), "approximate");
        assert_eq!(read_row_flags("6.18.44", Some("10000 N0=10000\n")), "");
        assert_eq!(read_row_flags("6.18.44", Some("16000 N0=8000 N1=8000\n")), "", "the limit is a node's");
        assert_eq!(read_row_flags("6.9.1", Some("10001 N0=10001\n")), "");
        assert_eq!(read_row_flags("7.0", None), "approximate", "not known to be counted");
        assert_eq!(read_row_flags("5.0.0-31-generic", None), "");
    }

    const HEADER: &str = "slabinfo - version: 2.1\n# name <active_objs>\n";

    /// Lines that change a little, come, go and are cut from one text to the next.
    fn any_changing_texts() -> impl Strategy<Value = Vec<String>> {
        let name = prop_oneof![Just("a"), Just("a b"), Just("c"), Just("")];
        let line = (name, 0..2_u32, 0..8_u32).prop_map(|(name, number, cut)| match cut {
            0 => format!("{name} {number}"),
            1 => String::new(),
            _ => format!("{name} {number} 2 3 4 5 : tunables 0 0 0 : slabdata 6 7 0"),
        });
        let text =
            (proptest::collection::vec(line, 0..4), 0..6_u32).prop_map(|(lines, header)| match header {
                0 => lines.join("\n"),
                _ => format!("{HEADER}{}\n", lines.join("\n")),
            });
        proptest::collection::vec(text, 1..6)
    }

    proptest! {
        #[test]
        fn what_is_remembered_changes_no_row(texts in any_changing_texts()) {
            let mut memory = UnchangedLines::default();
            for text in texts {
                let mut parsed = Vec::new();
                let taken = memory.update(&text).map(|_| ());
                prop_assert_eq!(&taken, &parse_slabinfo(&text, None, &mut parsed));
                prop_assert!(taken.is_err() || memory.rows() == parsed, "{:?}: {:?} {:?}", text, memory.rows(), parsed);
            }
        }
    }

    /// Readings of the same caches, torn ones and slabs of a lower order among them, at times with one cache more.
    fn any_torn_readings() -> impl Strategy<Value = Vec<String>> {
        let cache =
            (0..3_u64, 0..2_u64).prop_map(|(active, short)| ((active * 15).to_string(), 20 - short * 5));
        let reading = (proptest::collection::vec(cache, 3), 0..8_u8).prop_map(|(caches, more)| {
            let named = ["a", "b", "a"].iter().zip(&caches);
            let more = (more == 0).then_some(("c", "1", 20, 10, 2));
            let rows =
                named.map(|(name, (active, objects))| (*name, active.as_str(), *objects, 10, 2)).chain(more);
            build_slabinfo_text(&rows.collect::<Vec<_>>())
        });
        proptest::collection::vec(reading, 1..24)
    }

    /// What the monitor does, without memory: every reading is parsed whole, and every row of it looked at.
    fn read_without_memory(readings: &[String]) -> Vec<Vec<CellRow>> {
        let mut readings = readings.iter().map(|text| {
            let mut rows = Vec::new();
            parse_slabinfo(text, None, &mut rows).unwrap();
            rows
        });
        let mut fallback: Vec<CellRow> = Vec::new();
        let mut ticks = Vec::new();
        while let Some(mut rows) = readings.next() {
            let is_doubtful = |row: &CellRow, fallback: &[CellRow]| match SlabinfoCells(row).consistency() {
                CountConsistency::Short => {
                    !fallback.iter().any(|known| SlabinfoCells(row).is_same_cache(known))
                }
                sound => sound != CountConsistency::Sound,
            };
            let mut doubtful: Vec<usize> =
                (0..rows.len()).filter(|row| is_doubtful(&rows[*row], &fallback)).collect();
            for _ in 0..REREADS {
                let again = if doubtful.is_empty() { None } else { readings.next() };
                doubtful.retain(|row| {
                    let row = &mut rows[*row];
                    let Some(new) = again.iter().flatten().find(|new| SlabinfoCells(new).is_same_cache(row))
                    else {
                        return true;
                    };
                    let earlier = std::mem::replace(row, new.clone());
                    if SlabinfoCells(row)
                        .counts()
                        .unwrap()
                        .shows_lower_order(&SlabinfoCells(&earlier).counts().unwrap())
                    {
                        fallback.push(row.clone());
                    }
                    is_doubtful(row, &fallback)
                });
            }
            doubtful.into_iter().for_each(|row| add_row_flag(&mut rows[row], SlabinfoRow::FLAGS, "torn"));
            ticks.push(rows);
        }
        ticks
    }

    proptest! {
        #[test]
        fn ticks_told_as_changes_are_those_of_a_monitor_without_memory(readings in any_torn_readings()) {
            let (mut whole, mut changing) = (scripted_monitor(&empty_root(), &readings), scripted_monitor(&empty_root(), &readings));
            let mut restored: Vec<CellRow> = Vec::new();
            for expected in read_without_memory(&readings) {
                let mut rows = Vec::new();
                whole.read_rows(&mut rows).unwrap();
                prop_assert_eq!(&rows, &expected);
                match changing.read_changes().unwrap() {
                    MonitorReading::Whole(all) => restored = all,
                    MonitorReading::Changed(changes) => for (index, row) in changes {
                        prop_assert_ne!(&restored[index as usize], &row, "it is told without need");
                        restored[index as usize] = row;
                    },
                }
                prop_assert_eq!(&restored, &expected);
            }
            prop_assert!(whole.read_rows(&mut Vec::new()).is_err());
        }
    }
}
