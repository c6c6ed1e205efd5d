use std::collections::VecDeque;

use proptest::prelude::*;

use perflab_model::{CellRow, Nanos, SeriesSchema, TableCell};

use super::memory::UnchangedLines;
use super::sample::{SlabinfoMonitor, SlabinfoSource, row_consistency, row_counts};
use super::{COLUMNS, CountEstimates, parse_slabinfo};
use crate::monitor::line::MalformedLine;
use crate::monitor::slab::{CountConsistency, REREADS, add_row_flag};
use crate::monitor::{Monitor, MonitorReading};
use crate::{ObserveError, Root};

/// A slabinfo of caches: name, active objects, objects, objects of a slab, slabs.
fn build_slabinfo_text(caches: &[(&str, &str, u64, u64, u64)]) -> String {
    let line = |(name, active, objects, per_slab, slabs): &(&str, &str, u64, u64, u64)| {
        format!("{name} {active} {objects} 192 {per_slab} 1 : tunables 0 0 0 : slabdata {slabs} {slabs} 0\n")
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
    let columns = COLUMNS.iter().map(super::DeclaredColumn::column).collect();
    let schema =
        SeriesSchema { monitor: "slabinfo".into(), source: String::new(), interval: Nanos(1), columns };
    SlabinfoMonitor::new(
        schema,
        CountEstimates::new(root),
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
    let cell = |cell: &TableCell| match cell {
        TableCell::Text(text) => text.clone(),
        TableCell::Int(number) => number.to_string(),
        _ => "-".to_owned(),
    };
    rows.iter().map(|row| [0, 1, 2, 3, 9].map(|place| cell(&row[place])).join(" ")).collect()
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
    assert_eq!(read_tick_lines(&mut monitor), ["more 0 1 21 torn", "wrapped 0 - 20 torn", "few 0 0 1 torn"]);
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

fn parse_row_lines(text: &str) -> Vec<String> {
    let mut rows = Vec::new();
    parse_slabinfo(text, &mut rows).unwrap();
    rows.iter().map(|row| format!("{row:?}")).collect()
}

const HEADER: &str = "slabinfo - version: 2.1\n# name <active_objs>\n";

#[test]
fn a_line_that_was_cut_is_a_row_without_numbers() {
    for cut in [
        "dentry 12 20 192",
        "dentry",
        "dentry 12 20 192 21 1 : tunab",
        "dentry 1 2 3 4 5 : tunables 0 0 0 : slabdata 6",
        "  dentry   1",
    ] {
        let row = parse_row_lines(&format!("{HEADER}{cut}\n")).concat();
        assert!(row.starts_with("[Text(\"dentry\"), Int(0), Missing, Missing"), "{row}");
        assert!(row.ends_with("Missing, Text(\"malformed\")]"), "{row}");
    }
}

#[test]
fn a_word_that_is_no_number_is_missing_and_the_rest_of_the_row_stays() {
    let row =
        parse_row_lines(&format!("{HEADER}a 1 2 oops 4 5 : tunables 0 0 0 : slabdata 6 7 0\n")).concat();
    assert_eq!(
        row,
        "[Text(\"a\"), Int(0), Int(1), Int(2), Missing, Int(4), Int(5), Int(6), Int(7), Text(\"malformed\")]"
    );
}

#[test]
fn what_the_debugging_slab_allocator_appended_is_left_out() {
    let more = ": globalstat 1 2 3 4 5 6 7 8 9 : cpustat 1 2 3 4";
    let row =
        parse_row_lines(&format!("{HEADER}a b 1 2 3 4 5 : tunables 120 60 8 : slabdata 6 7 0 {more}\n"))
            .concat();
    let numbers = "Int(1), Int(2), Int(3), Int(4), Int(5), Int(6), Int(7)";
    assert_eq!(row, format!("[Text(\"a b\"), Int(0), {numbers}, Text(\"\")]"));
}

#[test]
fn other_versions_and_texts_without_caches_are_errors_with_their_line() {
    let error = |text: &str| {
        let error = parse_slabinfo(text, &mut Vec::new()).unwrap_err();
        format!("line {}: {}", error.line, error.description)
    };
    let version = "`slabinfo - version: 2.` was expected for the first line, found";
    assert_eq!(error(""), format!("line 1: {version} ``"));
    assert_eq!(error("slabinfo - version: 1.1\n"), format!("line 1: {version} `slabinfo - version: 1.1`"));
    assert_eq!(error(HEADER), "line 2: at least one cache was expected for the file, found ``");
}

#[test]
fn only_the_second_line_is_a_comment() {
    assert_eq!(
        parse_row_lines(&format!("{HEADER}# odd 1 2 3 4 5 : tunables 0 0 0 : slabdata 6 7 0\n")).len(),
        1
    );
}

/// Lines that change a little, come, go and are cut from one text to the next.
fn any_changing_texts() -> impl Strategy<Value = Vec<String>> {
    let name = prop_oneof![Just("a"), Just("a b"), Just("c"), Just("")];
    let line = (name, 0..2_u32, 0..8_u32).prop_map(|(name, number, cut)| match cut {
        0 => format!("{name} {number}"),
        1 => String::new(),
        _ => format!("{name} {number} 2 3 4 5 : tunables 0 0 0 : slabdata 6 7 0"),
    });
    let text = (proptest::collection::vec(line, 0..4), 0..6_u32).prop_map(|(lines, header)| match header {
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
            prop_assert_eq!(&taken, &parse_slabinfo(&text, &mut parsed));
            prop_assert!(taken.is_err() || memory.rows() == parsed, "{:?}: {:?} {:?}", text, memory.rows(), parsed);
        }
    }
}

/// Readings of the same caches, torn ones and slabs of a lower order among them, at times with one cache more.
fn any_torn_readings() -> impl Strategy<Value = Vec<String>> {
    let cache = (0..3_u64, 0..2_u64).prop_map(|(active, short)| ((active * 15).to_string(), 20 - short * 5));
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
        parse_slabinfo(text, &mut rows).unwrap();
        rows
    });
    let mut fallback: Vec<CellRow> = Vec::new();
    let mut ticks = Vec::new();
    while let Some(mut rows) = readings.next() {
        let is_doubtful = |row: &CellRow, fallback: &[CellRow]| match row_consistency(row) {
            CountConsistency::Short => !fallback.iter().any(|known| known[..] == row[..2]),
            sound => sound != CountConsistency::Sound,
        };
        let mut doubtful: Vec<usize> =
            (0..rows.len()).filter(|row| is_doubtful(&rows[*row], &fallback)).collect();
        for _ in 0..REREADS {
            let again = if doubtful.is_empty() { None } else { readings.next() };
            doubtful.retain(|row| {
                let row = &mut rows[*row];
                let Some(new) = again.iter().flatten().find(|new| new[..2] == row[..2]) else { return true };
                let earlier = std::mem::replace(row, new.clone());
                if row_counts(row).unwrap().shows_lower_order(&row_counts(&earlier).unwrap()) {
                    fallback.push(row[..2].to_vec());
                }
                is_doubtful(row, &fallback)
            });
        }
        doubtful.into_iter().for_each(|row| add_row_flag(&mut rows[row], "torn"));
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
                MonitorReading::Changed(changes) => for (place, row) in changes {
                    prop_assert_ne!(&restored[place as usize], &row, "it is told without need");
                    restored[place as usize] = row;
                },
            }
            prop_assert_eq!(&restored, &expected);
        }
        prop_assert!(whole.read_rows(&mut Vec::new()).is_err());
    }
}
