//! Formats on arbitrary and on damaged text: nothing panics, every row fits its schema, every row is counted.

use std::io::{Cursor, Read as _};
use std::path::Path;

use perflab_model::series::ColumnType;
use perflab_model::{CellRow, ColumnSpec, TableCell};
use proptest::prelude::*;

use super::format::{LoggedReading, ReadingParser, ReadingSource};
use super::iostat::IostatParser;
use super::lines::InputLines;
use super::log::DumpLog;
use super::meminfo::MeminfoParser;
use super::mpstat::MpstatParser;
use super::page_size::{PageSizeVotes, SlabShape};
use super::perf_stat_log::PerfStatParser;
use super::proc_vmstat::ProcVmstatParser;
use super::slabinfo::SlabinfoParser;
use super::slabinfo_tool::SlabinfoToolParser;
use super::took::FileReport;
use super::vmstat_tool::VmstatToolParser;
use crate::ArchiveError;

const DUMP: &str = "time: 100\nslabinfo - version: 2.1\n\
    # name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit>\n\
    nfsd4_stateids         0      0    168   24    1 : tunables    0    0    0 : slabdata      0      0      0\n\
    ext4 inode cache    1040   1080   1088   30    8 : tunables    0    0    0 : slabdata     36     36      0\n\
    :a-0000104        102185 102219    104   39    1 : tunables    0    0    0 : slabdata   2621   2621      0\n\
    kmalloc-8k            40     40   8192    4    8 : tunables    0    0    0 : slabdata     10     10      0\n\
    time: 101\nslabinfo - version: 2.1\n\
    nfsd4_stateids         0      0    168   24    1 : tunables    0    0    0 : slabdata      0      0      0\n";
const TOOL: &str = "time: 100\n\
    Name                   Objects Objsize           Space Slabs/Part/Cpu  O/S O %Fr %Ef Flg\n\
    :0000024                  8840      24          212.9K        12/0/40  170 0   0  99 *\n\
    anon vma                  9292      80          827.3K       120/0/82   46 0   0  89 \n";
const MEMORY: &str = "time: 100\nMemTotal:       16422936 kB\nHugePages_Total:       0\nSlab: 477172 kB\n\
    time: 101\nMemTotal:       16422936 kB\nHugePages_Total:       0\nSlab: 477180 kB\n";

const VMSTAT: &str = " 1700000000.5000   0.0000     0.0000 -- procs -----------memory---------- ---swap-- -----io----\n\
    \x20 1700000000.5000   0.0000     0.0000 --  r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n\
    \x20 1700000000.5000   0.0000     0.0000 -- 16  0      0 239300 467448 22721772    0    0   230  4230  542 1954 72  7 21  0  0\n\
    \x20 1700000001.5000   1.0000     1.0000 -- 10  0      0 239300 467448 22721772    0    0    20   352  905 1409 95  5  0  0  0\n";
const IOSTAT: &str = "Linux 6.18.44 (vm) \t11/21/26 \t_x86_64_\t(2 CPU)\n\navg-cpu:  %user   %nice %system %iowait  %steal   %idle\n\
    \x20          62.61    8.96    7.30    0.17    0.16   20.80\n\nDevice            r/s     rkB/s   rrqm/s  %rrqm r_await\n\
    loop0            0.49      6.53     0.00   0.14    0.18\n\nDevice            r/s     rkB/s   rrqm/s  %rrqm r_await\n\
    vda             23.57    452.45     2.44   9.37    0.22\n";
const MPSTAT: &str = "time: 1700000000\nLinux 6.18.44 (vm) \t11/21/26 \t_x86_64_\t(2 CPU)\n\ntime: 1700000001\n\
    18:56:53     CPU    %usr   %nice    %sys\n18:56:54     all   94.03    0.00    5.47\n18:56:54       0   96.97    0.00    3.03\n";
const PERF: &str = "time: 1700000000\n\n Performance counter stats for 'system wide':\n\n\
    \x20          2011.42 msec cpu-clock                        #    1.999 CPUs utilized          \n\
    \x20             1444      context-switches                 #  717.900 /sec                   \n\
    \x20  <not supported>      cycles                                                      \n\n       1.006 seconds time elapsed\n";
const PROC_VMSTAT: &str =
    "time: 1700000000\nnr_free_pages 59766\npgfault 10\ntime: 1700000001\nnr_free_pages 59760\npgfault 11\n";

struct ParsedLog {
    ticks: Vec<LoggedReading>,
    took: FileReport,
    columns: Vec<ColumnSpec>,
}

fn parse_log<F: ReadingParser>(text: &[u8], format: F) -> Result<ParsedLog, ArchiveError> {
    let lines = InputLines::from_reader(Path::new("log"), Box::new(Cursor::new(text.to_vec())), u64::MAX);
    let mut log = DumpLog::from_lines(lines, format);
    let mut ticks = Vec::new();
    while let Some(tick) = log.next_reading()? {
        ticks.push(tick);
    }
    Ok(ParsedLog { ticks, columns: log.columns(), took: log.report_mut().clone() })
}

#[test]
fn a_line_that_does_not_end_ends_the_file() {
    let endless = std::io::BufReader::with_capacity(1 << 20, b"first\n".chain(std::io::repeat(b'x')));
    let mut lines = InputLines::from_reader(Path::new("log"), Box::new(endless), u64::MAX);
    assert_eq!(lines.next_line().unwrap().map(|line| line.text.to_owned()).as_deref(), Some("first"));
    assert!(lines.next_line().unwrap().is_some_and(|line| !line.whole));
    assert!(lines.next_line().unwrap().is_none());
    assert!(
        lines.cut_reason().is_some_and(|reason| reason.starts_with("line 2 ")),
        "{:?}",
        lines.cut_reason()
    );
}

fn fits_columns(row: &CellRow, columns: &[ColumnSpec]) -> bool {
    let cell = |(cell, column): (&TableCell, &ColumnSpec)| match cell {
        TableCell::Int(_) => column.stored == ColumnType::Int,
        TableCell::Float(_) => column.stored == ColumnType::Float,
        TableCell::Text(_) => column.stored == ColumnType::Text,
        TableCell::Missing => true,
    };
    row.len() == columns.len() && row.iter().zip(columns).all(cell)
}

/// What holds whatever the text is; an error is one way to hold.
fn check_parser<F: ReadingParser>(text: &[u8], format: F) {
    let Ok(outcome) = parse_log(text, format) else { return };
    let rows: Vec<&CellRow> = outcome.ticks.iter().flat_map(|tick| &tick.rows).collect();
    assert!(rows.iter().all(|row| fits_columns(row, &outcome.columns)), "{rows:?}");
    let took = &outcome.took;
    assert_eq!(took.rows_read, took.rows_used + took.rows_unusable);
    assert!(took.rows_flagged <= took.rows_used);
    // A dump of these two is one row, whatever its lines.
    if !["meminfo", "proc-vmstat"].contains(&F::SERIES) {
        assert_eq!(rows.len() as u64, took.rows_used, "a used row is in a tick");
        let missing = rows.iter().filter(|row| row.contains(&TableCell::Missing)).count();
        let uncounted =
            rows.iter().filter(|row| row.contains(&TableCell::Text("not counted".into()))).count();
        assert!(missing as u64 <= took.rows_flagged + uncounted as u64, "no hole without a flag");
    }
}

fn check_all_parsers(text: &[u8]) {
    check_parser(text, SlabinfoParser::new(None, None));
    check_parser(text, SlabinfoToolParser);
    check_parser(text, MeminfoParser::default());
    check_parser(text, VmstatToolParser::default());
    check_parser(text, IostatParser::default());
    check_parser(text, MpstatParser::default());
    check_parser(text, PerfStatParser::default());
    check_parser(text, ProcVmstatParser::default());
}

/// One change of a text: at which byte, what to do, with which byte.
fn mutate_text(text: &str, changes: &[(usize, u8, u8)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (place, what, byte) in changes {
        let place = place % bytes.len().max(1);
        match what % 6 {
            0 if !bytes.is_empty() => bytes[place] = *byte,
            1 => bytes.insert(place, *byte),
            2 if !bytes.is_empty() => drop(bytes.remove(place)),
            3 => bytes.truncate(place.max(1)),
            4 => bytes.insert(place, b'\n'),
            _ => bytes.extend_from_within(place.min(bytes.len())..),
        }
    }
    bytes
}

const LOGS: [&str; 8] = [DUMP, TOOL, MEMORY, VMSTAT, IOSTAT, MPSTAT, PERF, PROC_VMSTAT];

/// As they stand, all of them give rows.
#[test]
fn every_log_is_read() {
    let rows = |outcome: ParsedLog| outcome.ticks.iter().map(|tick| tick.rows.len()).collect::<Vec<_>>();
    assert_eq!(rows(parse_log(VMSTAT.as_bytes(), VmstatToolParser::default()).unwrap()), [1]);
    assert_eq!(rows(parse_log(IOSTAT.as_bytes(), IostatParser::default()).unwrap()), [1]);
    assert_eq!(rows(parse_log(MPSTAT.as_bytes(), MpstatParser::default()).unwrap()), [2]);
    assert_eq!(rows(parse_log(PERF.as_bytes(), PerfStatParser::default()).unwrap()), [3]);
    assert_eq!(rows(parse_log(PROC_VMSTAT.as_bytes(), ProcVmstatParser::default()).unwrap()), [1, 1]);
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        check_all_parsers(&bytes);
    }

    #[test]
    fn any_words_are_survived(text in "(time: [0-9a-z.-]{0,12}\n|slabinfo - version: 2.[01]\n|[a-z0-9 :/]{0,40}(: tunables|: slabdata|/)[0-9 ]{0,20}\n){0,12}") {
        check_all_parsers(text.as_bytes());
    }

    #[test]
    fn damaged_logs_are_survived(
        which in 0..LOGS.len(),
        changes in proptest::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..8),
    ) {
        check_all_parsers(&mutate_text(LOGS[which], &changes));
    }

    /// A change of one byte of one line leaves all other rows as they were.
    #[test]
    fn a_damaged_line_costs_itself_only(place in 0..96_usize, byte in 32..127_u8) {
        let lines: Vec<&str> = DUMP.lines().collect();
        let mut line = lines[5].as_bytes().to_vec();
        line[place] = byte;
        let text = DUMP.replace(lines[5], std::str::from_utf8(&line).unwrap());
        let before = parse_log(DUMP.as_bytes(), SlabinfoParser::new(None, None)).unwrap();
        let Ok(after) = parse_log(text.as_bytes(), SlabinfoParser::new(None, None)) else { return Ok(()) };
        let others = |outcome: &ParsedLog| -> Vec<CellRow> {
            let rows = outcome.ticks.iter().flat_map(|tick| tick.rows.clone());
            rows.filter(|row| !format!("{row:?}").contains("0000104")).collect()
        };
        let lost = others(&before).into_iter().filter(|row| !others(&after).contains(row)).count();
        prop_assert_eq!(lost, 0);
        prop_assert!(after.took.rows_read >= before.took.rows_read - 1);
    }
}

#[test]
fn rows_are_read_from_their_marks() {
    let outcome = parse_log(DUMP.as_bytes(), SlabinfoParser::new(None, None)).unwrap();
    assert_eq!(outcome.took.format_counts(), "5 rows read, 5 used, 0 flagged, 0 unusable");
    let TableCell::Text(name) = &outcome.ticks[0].rows[1][0] else { panic!("a name") };
    assert_eq!(name, "ext4 inode cache");
    let numbers = [0, 1040, 1080, 1088, 30, 8, 36, 36].map(TableCell::Int);
    assert_eq!(outcome.ticks[0].rows[1][1..9], numbers);
    assert_eq!(outcome.ticks[0].rows[1][9], TableCell::Text(String::new()));
}

#[test]
fn the_tool_is_kept_as_printed() {
    let outcome = parse_log(TOOL.as_bytes(), SlabinfoToolParser).unwrap();
    let text = |text: &str| TableCell::Text(text.into());
    let int = TableCell::Int;
    let first = [
        text(":0000024"),
        int(8840),
        int(24),
        text("212.9K"),
        int(12),
        int(0),
        int(40),
        int(170),
        int(0),
        int(0),
        int(99),
        text("*"),
    ];
    assert_eq!(outcome.ticks[0].rows[0], first);
    assert_eq!(outcome.ticks[0].rows[1][0], text("anon vma"));
    assert_eq!(outcome.ticks[0].rows[1][11], text(""));
}

/// A line cut off anywhere: what was whole is used and flagged, and a number that lost digits is not used.
#[test]
fn a_line_cut_off_is_never_a_smaller_number() {
    let line = ":a-0000104        102185 102219    104   39    1 : tunables    0    0    0 : slabdata   2621   2621      0";
    let whole = parse_log(format!("{line}\n").as_bytes(), SlabinfoParser::new(None, None))
        .unwrap()
        .ticks
        .remove(0)
        .rows
        .remove(0);
    for end in 1..line.len() {
        let text = line.get(..end).unwrap();
        let outcome = parse_log(text.as_bytes(), SlabinfoParser::new(None, None)).unwrap();
        assert_eq!(outcome.took.rows_read, u64::from(!text.trim().is_empty()), "{text}");
        for row in outcome.ticks.iter().flat_map(|tick| &tick.rows) {
            let same = |(cell, whole): (&TableCell, &TableCell)| *cell == TableCell::Missing || cell == whole;
            assert!(row[..9].iter().zip(&whole).all(same), "{text}: {row:?}");
            let flagged = row[9] == TableCell::Text("malformed".into());
            assert_eq!(flagged, row.contains(&TableCell::Missing), "{text}");
        }
    }
}

fn slabinfo_line(numbers: &str) -> String {
    format!("c {numbers} 0\n").replace('|', ": tunables 0 0 0 : slabdata")
}

fn parse_flags(text: &str, kernel: Option<&str>) -> Vec<String> {
    let outcome = parse_log(text.as_bytes(), SlabinfoParser::new(None, kernel)).unwrap();
    let rows = outcome.ticks.into_iter().flat_map(|tick| tick.rows);
    let flag = |row: CellRow| {
        if let Some(TableCell::Text(flag)) = row.last() { flag.clone() } else { panic!("a flag") }
    };
    rows.map(flag).collect()
}

#[test]
fn impossible_counts_are_torn_and_stay() {
    let flag = |numbers: &str| parse_flags(&slabinfo_line(numbers), None).remove(0);
    assert_eq!(flag("10 42 192 21 1 | 2 2"), "");
    assert_eq!(flag("43 42 192 21 1 | 2 2"), "torn");
    assert_eq!(flag("10 43 192 21 1 | 2 2"), "torn");
    assert_eq!(flag("10 42 192 21 1 | 3 2"), "torn");
    assert_eq!(flag("1 1 192 21 1 | 2 2"), "torn");
    assert_eq!(flag("10 20 192 21 1 | 2 2"), "torn");
    assert_eq!(flag("10 x 192 21 1 | 2 2"), "malformed");
    assert_eq!(flag("10 -5 192 21 1 | 2 2"), "malformed");
    assert_eq!(flag("10 99999999999999999999 192 21 1 | 2 2"), "malformed");
}

#[test]
fn slabs_of_a_lower_order_are_not_torn_for_ever() {
    let dumps = |numbers: &[&str]| -> String {
        let dump = |(at, numbers): (usize, &&str)| format!("time: {at}\n{}", slabinfo_line(numbers));
        numbers.iter().enumerate().map(dump).collect()
    };
    let short = "10 35 192 21 1 | 2 2";
    let log = dumps(&["10 42 192 21 1 | 2 2", short, short, "10 56 192 21 1 | 3 3", "10 64 192 21 1 | 3 3"]);
    assert_eq!(parse_flags(&log, None), ["", "torn", "", "", "torn"]);
}

#[test]
fn estimates_are_flagged_where_the_kernel_makes_them() {
    let long = slabinfo_line("400000 420000 192 21 1 | 20000 20000");
    assert_eq!(parse_flags(&long, None), ["approximate"]);
    assert_eq!(parse_flags(&long, Some("6.18.44-fc-v445")), ["approximate"]);
    assert_eq!(parse_flags(&long, Some("v6.9")), [""]);
    assert_eq!(parse_flags(&long, Some("5.0.0-31-generic")), [""]);
    assert_eq!(
        parse_flags(&slabinfo_line("400000 420001 192 21 1 | 20000 20000"), None),
        ["torn,approximate"]
    );
}

#[test]
fn page_sizes_are_told_by_how_slabs_are_filled() {
    let votes = |page: i64| {
        let mut votes = PageSizeVotes::default();
        for (object, order) in [(104, 0), (192, 0), (1088, 3), (5952, 3), (8192, 3), (168, 0)] {
            let pages = 1_i64 << order;
            votes.add(SlabShape { object, objects: pages * page / object, pages });
        }
        votes.best_page_size()
    };
    assert_eq!(votes(4096), Some(4096));
    assert_eq!(votes(16_384), Some(16_384));
    assert_eq!(votes(65_536), Some(65_536));
    assert_eq!(PageSizeVotes::default().best_page_size(), None);
}
