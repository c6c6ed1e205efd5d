//! A log of dumps as readings with times.
//!
//! Each dump begins with `time: EPOCH`, or, where nobody wrote times, with its own head. Here is decided where a tick
//! begins and ends; what a line within it means is its [`ReadingParser`]'s. A document that was read at once gives its
//! ticks from memory. MMTests' monitors "with latency" put three times before each line: when it came, since the first,
//! since the one before.

use std::collections::VecDeque;
use std::path::Path;

use perflab_formats::reading_parser::{LineOutcome, ReadingParser, TextLine};
use perflab_model::{CellRow, ColumnSpec, Nanos};

use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::input_lines::InputLines;

/// Lines of one tick at most: it is held in memory.
const LONGEST_TICK: u64 = 200_000;

/// Bytes of one tick at most.
const LARGEST_TICK: u64 = 64 << 20;

const SECOND: f64 = 1e9;

/// A dump that is being read.
struct OpenDump {
    line: u64,
    time: Result<Option<Nanos>, String>,
    headed: bool,
    /// What the parser made of its end, once it has seen it.
    end: Option<Result<(), String>>,
    bytes: u64,
    rows: Vec<CellRow>,
}

/// A log in one format.
pub(crate) struct DumpLog {
    lines: InputLines,
    format: Box<dyn ReadingParser>,
    report: FileReport,
    open: Option<OpenDump>,
    over: bool,
    headless: bool,
    begun: Option<Nanos>,
}

impl DumpLog {
    pub(crate) fn open(path: &Path, format: Box<dyn ReadingParser>) -> Result<Self, ImportError> {
        Ok(DumpLog::from_lines(InputLines::open(path)?, format))
    }

    /// A log among other files, which cannot stop them from being read.
    pub(crate) fn open_optional(path: &Path, format: Box<dyn ReadingParser>) -> Self {
        DumpLog::from_lines(InputLines::open_optional(path), format)
    }

    pub(crate) fn from_lines(lines: InputLines, format: Box<dyn ReadingParser>) -> Self {
        let report = FileReport::new(lines.path(), format.series());
        DumpLog { lines, format, report, open: None, over: false, headless: false, begun: None }
    }

    /// The same, of a log that begins then, should its dumps not say when they were made.
    pub(crate) fn with_start(self, begun: Option<Nanos>) -> Self {
        DumpLog { begun, ..self }
    }

    /// Reads lines until a dump is complete.
    fn read_dump(&mut self) -> Result<Option<LoggedReading>, ImportError> {
        while !self.over {
            let done = self.take_line()?;
            if let Some(tick) = done.map(|open| self.close_dump(open)).transpose()?.flatten() {
                return Ok(Some(tick));
            }
        }
        Ok(None)
    }

    /// Takes one line; gives the dump that it ends.
    fn take_line(&mut self) -> Result<Option<OpenDump>, ImportError> {
        let Some(line) = self.lines.next_line()? else {
            self.over = true;
            return Ok(self.open.take());
        };
        if let Some(time) = line.text.strip_prefix("time:") {
            return Ok(self.open.replace(OpenDump::begin_at(line.number, parse_time_line(time))));
        }
        let (stamp, text) = split_time_stamp(line.text);
        let line = TextLine { text, ..line };
        if line.text.trim_ascii().is_empty() {
            return Ok(None);
        }
        let number = line.number;
        let role = match self.format.line_role(line.text) {
            Ok(role) => role,
            Err(reason) => return Err(self.line_error(number, reason)),
        };
        let begins = role.is_head() && self.open.as_ref().is_none_or(|open| open.headed);
        let begun = begins.then(|| OpenDump::begin_at(number, Ok(stamp)));
        let mut ended = begun.and_then(|begun| self.open.replace(begun));
        // Before the first row of the next one is parsed.
        if let Some(open) = &mut ended {
            open.end = Some(self.format.end_reading(&mut open.rows));
        }
        let open = self.open.get_or_insert_with(|| OpenDump::begin_at(number, Ok(stamp)));
        open.headed |= role.is_head();
        open.bytes += line.text.len() as u64;
        if role.is_row() {
            self.headless |= self.format.is_headed() && !open.headed;
            let read = parse_dump_row(open, line, &mut *self.format);
            self.report.count_row(number, read);
        }
        self.check_dump_size(number)?;
        Ok(ended)
    }

    /// A dump is held in memory, so it must not go on for ever.
    fn check_dump_size(&self, number: u64) -> Result<(), ImportError> {
        let Some(open) = &self.open else { return Ok(()) };
        if number - open.line > LONGEST_TICK {
            return Err(self.line_error(number, format!("no dump ends within {LONGEST_TICK} lines")));
        }
        if open.bytes > LARGEST_TICK {
            return Err(self.line_error(number, format!("no dump ends within {LARGEST_TICK} bytes")));
        }
        Ok(())
    }

    fn close_dump(&mut self, mut open: OpenDump) -> Result<Option<LoggedReading>, ImportError> {
        let end = open.end.take().unwrap_or_else(|| self.format.end_reading(&mut open.rows));
        end.map_err(|reason| self.line_error(open.line, reason))?;
        if let Err(reason) = open.time {
            self.report.add_note(format!("line {}: {reason}: the rows of this dump are unusable", open.line));
            return Ok(None);
        }
        if open.rows.is_empty() && self.format.may_be_empty() {
            return Ok(None);
        }
        if open.rows.is_empty() {
            self.report.add_note(format!("line {}: this dump has no rows", open.line));
        }
        self.report.ticks += 1;
        let time = open.time.unwrap_or_default().or_else(|| self.assumed_time());
        Ok(Some(LoggedReading { time, rows: open.rows }))
    }

    /// A second after the other, from when the log is known to have begun.
    fn assumed_time(&mut self) -> Option<Nanos> {
        let begun = self.begun?;
        let passed = self.report.ticks.saturating_mul(1_000_000_000);
        if self.report.ticks == 1 {
            self.report.add_note(
                "its lines carry no time: taken as one a second from the beginning of its benchmark",
            );
        }
        Some(Nanos(begun.0.saturating_add(passed)))
    }

    fn line_error(&self, line: u64, reason: String) -> ImportError {
        ImportError::not_importable(self.lines.path(), Some(line), reason)
    }

    /// Notes that can only be made at the end.
    fn add_closing_notes(&mut self) {
        self.report.note_early_end(&self.lines);
        self.format.closing_note().into_iter().for_each(|remark| self.report.add_note(remark));
        if std::mem::take(&mut self.headless) {
            self.report
                .add_note("some dumps lack the lines that name version and columns: taken as the usual ones");
        }
    }
}

impl ReadingSource for DumpLog {
    fn series_name(&self) -> &'static str {
        self.format.series()
    }

    fn source(&self) -> &'static str {
        self.format.source()
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        self.format.columns()
    }

    fn page_size(&self) -> Option<u64> {
        self.format.page_size()
    }

    fn next_reading(&mut self) -> Result<Option<LoggedReading>, ImportError> {
        let before = self.over;
        let tick = self.read_dump()?;
        if self.over && !before {
            self.add_closing_notes();
        }
        Ok(tick)
    }

    fn report_mut(&mut self) -> &mut FileReport {
        &mut self.report
    }

    fn file_report(&self) -> &FileReport {
        &self.report
    }
}

impl OpenDump {
    fn begin_at(line: u64, time: Result<Option<Nanos>, String>) -> Self {
        OpenDump { line, time, headed: false, end: None, bytes: 0, rows: Vec::new() }
    }
}

fn parse_dump_row(open: &mut OpenDump, line: TextLine<'_>, format: &mut dyn ReadingParser) -> LineOutcome {
    match &open.time {
        _ if line.text.len() > format.longest_row() => {
            LineOutcome::Unusable(format!("it is longer than {} bytes", format.longest_row()))
        }
        Ok(_) => format.parse_row(line, &mut open.rows),
        Err(reason) => LineOutcome::Unusable(reason.clone()),
    }
}

/// `1570815211`, or with a fraction.
fn parse_time_line(text: &str) -> Result<Option<Nanos>, String> {
    let text = text.trim_ascii();
    let whole = text.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
    let fraction =
        || text.parse::<f64>().ok().filter(|time| (0.0..9e9).contains(time)).map(|t| (t * SECOND) as u64);
    let time = whole.filter(|time| *time < 9_000_000_000 * 1_000_000_000).or_else(fraction);
    time.map(|time| Some(Nanos(time)))
        .ok_or_else(|| format!("`time: {text}` is no time in seconds since 1970"))
}

/// One dump.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoggedReading {
    /// Nanoseconds since 1970, where the log says.
    pub(crate) time: Option<Nanos>,
    /// Its rows.
    pub(crate) rows: Vec<CellRow>,
}

/// Something that gives ticks in order.
pub(crate) trait ReadingSource {
    fn series_name(&self) -> &'static str;
    fn source(&self) -> &'static str;
    fn columns(&self) -> Vec<ColumnSpec>;
    fn page_size(&self) -> Option<u64>;
    fn next_reading(&mut self) -> Result<Option<LoggedReading>, ImportError>;
    fn report_mut(&mut self) -> &mut FileReport;
    fn file_report(&self) -> &FileReport;
}

/// A series that is in memory.
pub(crate) struct FixedReadings {
    series: &'static str,
    source: &'static str,
    columns: Vec<ColumnSpec>,
    ticks: VecDeque<LoggedReading>,
    report: FileReport,
}

impl FixedReadings {
    pub(crate) fn new(
        series: &'static str,
        source: &'static str,
        columns: Vec<ColumnSpec>,
        ticks: Vec<LoggedReading>,
        mut report: FileReport,
    ) -> Self {
        report.ticks = ticks.len() as u64;
        FixedReadings { series, source, columns, ticks: ticks.into(), report }
    }

    /// One whose readings were all taken already, and are in its report.
    pub(crate) fn exhausted(
        series: &'static str,
        source: &'static str,
        columns: Vec<ColumnSpec>,
        report: FileReport,
    ) -> Self {
        FixedReadings { series, source, columns, ticks: VecDeque::new(), report }
    }
}

impl ReadingSource for FixedReadings {
    fn series_name(&self) -> &'static str {
        self.series
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn columns(&self) -> Vec<ColumnSpec> {
        self.columns.clone()
    }

    fn page_size(&self) -> Option<u64> {
        None
    }

    fn next_reading(&mut self) -> Result<Option<LoggedReading>, ImportError> {
        Ok(self.ticks.pop_front())
    }

    fn report_mut(&mut self) -> &mut FileReport {
        &mut self.report
    }

    fn file_report(&self) -> &FileReport {
        &self.report
    }
}

/// `1700000000.1234   0.0000     0.0000 -- text`
pub(crate) fn split_time_stamp(text: &str) -> (Option<Nanos>, &str) {
    let Some((stamp, rest)) =
        text.split_once(" -- ").or_else(|| text.strip_suffix(" --").map(|stamp| (stamp, "")))
    else {
        return (None, text);
    };
    let mut words = stamp.split_ascii_whitespace();
    let times = [words.next(), words.next(), words.next()].map(|word| word?.parse::<f64>().ok());
    match (times, words.next()) {
        ([Some(epoch), Some(_), Some(_)], None) if (0.0..9e9).contains(&epoch) => {
            (Some(Nanos((epoch * 1e9) as u64)), rest)
        }
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};
    use std::path::Path;

    use perflab_model::column::ColumnType;
    use perflab_model::{CellRow, ColumnSpec, TableCell};
    use proptest::prelude::*;

    use super::*;
    use super::{DumpLog, LoggedReading, ReadingParser, ReadingSource};
    use perflab_formats::kernel::slab_counts::LoggedMachine;
    use perflab_formats::kernel::slabinfo::{SLABINFO, SlabinfoParser};
    use perflab_formats::kernel::{KERNEL_FILES, find_kernel_file, open_log_parser};
    use perflab_formats::tool::{TOOL_LOGS, find_tool_log};

    use crate::error::ImportError;
    use crate::import_report::FileReport;
    use crate::input_lines::InputLines;

    // Formats on arbitrary and on damaged text: nothing panics, every row fits its schema, every row is counted.

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

    const PROC_VMSTAT: &str = "time: 1700000000\nnr_free_pages 59766\npgfault 10\ntime: 1700000001\nnr_free_pages 59760\npgfault 11\n";

    struct ParsedLog {
        ticks: Vec<LoggedReading>,
        report: FileReport,
        columns: Vec<ColumnSpec>,
    }

    fn parse_log(text: &[u8], format: Box<dyn ReadingParser>) -> Result<ParsedLog, ImportError> {
        let lines = InputLines::from_reader(Path::new("log"), Box::new(Cursor::new(text.to_vec())), u64::MAX);
        let mut log = DumpLog::from_lines(lines, format);
        let mut ticks = Vec::new();
        while let Some(tick) = log.next_reading()? {
            ticks.push(tick);
        }
        Ok(ParsedLog { ticks, columns: log.columns(), report: log.report_mut().clone() })
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
    fn check_parser(text: &[u8], format: Box<dyn ReadingParser>) {
        let series = format.series();
        let Ok(outcome) = parse_log(text, format) else { return };
        let rows: Vec<&CellRow> = outcome.ticks.iter().flat_map(|tick| &tick.rows).collect();
        assert!(rows.iter().all(|row| fits_columns(row, &outcome.columns)), "{rows:?}");
        let report = &outcome.report;
        assert_eq!(report.rows_read, report.rows_used + report.rows_unusable);
        assert!(report.rows_flagged <= report.rows_used);
        // Others than these may leave cells out that an older kernel did not have, or have several lines a row.
        if series == SLABINFO.name || find_tool_log(series).is_some() {
            assert_eq!(rows.len() as u64, report.rows_used, "a used row is in a tick");
            let missing = rows.iter().filter(|row| row.contains(&TableCell::Missing)).count();
            let uncounted =
                rows.iter().filter(|row| row.contains(&TableCell::Text("not counted".into()))).count();
            assert!(missing as u64 <= report.rows_flagged + uncounted as u64, "no hole without a flag");
        }
    }

    fn check_all_parsers(text: &[u8]) {
        let machine = LoggedMachine::default();
        let files = KERNEL_FILES.iter().filter_map(|file| open_log_parser(file, "label", &machine));
        files.chain(TOOL_LOGS.iter().map(|log| (log.parser)())).for_each(|parser| check_parser(text, parser));
    }

    fn slabinfo_parser() -> Box<dyn ReadingParser> {
        Box::new(SlabinfoParser::new(&LoggedMachine::default()))
    }

    fn kernel_file_parser(name: &str) -> Box<dyn ReadingParser> {
        open_log_parser(find_kernel_file(name).unwrap(), "", &LoggedMachine::default()).unwrap()
    }

    fn tool_log_parser(name: &str) -> Box<dyn ReadingParser> {
        (find_tool_log(name).unwrap().parser)()
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
        assert_eq!(rows(parse_log(VMSTAT.as_bytes(), tool_log_parser("vmstat-tool")).unwrap()), [1]);
        assert_eq!(rows(parse_log(IOSTAT.as_bytes(), tool_log_parser("iostat")).unwrap()), [1]);
        assert_eq!(rows(parse_log(MPSTAT.as_bytes(), tool_log_parser("mpstat")).unwrap()), [2]);
        assert_eq!(rows(parse_log(PERF.as_bytes(), tool_log_parser("perf-time-stat")).unwrap()), [3]);
        assert_eq!(rows(parse_log(PROC_VMSTAT.as_bytes(), kernel_file_parser("vmstat")).unwrap()), [1, 1]);
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
            let before = parse_log(DUMP.as_bytes(), slabinfo_parser()).unwrap();
            let Ok(after) = parse_log(text.as_bytes(), slabinfo_parser()) else { return Ok(()) };
            let others = |outcome: &ParsedLog| -> Vec<CellRow> {
                let rows = outcome.ticks.iter().flat_map(|tick| tick.rows.clone());
                rows.filter(|row| !format!("{row:?}").contains("0000104")).collect()
            };
            let lost = others(&before).into_iter().filter(|row| !others(&after).contains(row)).count();
            prop_assert_eq!(lost, 0);
            prop_assert!(after.report.rows_read >= before.report.rows_read - 1);
        }
    }

    #[test]
    fn rows_are_read_from_their_marks() {
        let outcome = parse_log(DUMP.as_bytes(), slabinfo_parser()).unwrap();
        assert_eq!(outcome.report.format_counts(), "5 rows read, 5 used, 0 flagged, 0 unusable");
        let TableCell::Text(name) = &outcome.ticks[0].rows[1][0] else { panic!("a name") };
        assert_eq!(name, "ext4 inode cache");
        let numbers = [0, 1040, 1080, 1088, 30, 8, 36, 36].map(TableCell::Int);
        assert_eq!(outcome.ticks[0].rows[1][1..9], numbers);
        assert_eq!(outcome.ticks[0].rows[1][9], TableCell::Text(String::new()));
    }

    #[test]
    fn the_tool_is_kept_as_printed() {
        let outcome = parse_log(TOOL.as_bytes(), tool_log_parser("slabinfo-tool")).unwrap();
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
        let whole = parse_log(format!("{line}\n").as_bytes(), slabinfo_parser())
            .unwrap()
            .ticks
            .remove(0)
            .rows
            .remove(0);
        for end in 1..line.len() {
            let text = line.get(..end).unwrap();
            let outcome = parse_log(text.as_bytes(), slabinfo_parser()).unwrap();
            assert_eq!(outcome.report.rows_read, u64::from(!text.trim().is_empty()), "{text}");
            for row in outcome.ticks.iter().flat_map(|tick| &tick.rows) {
                let same =
                    |(cell, whole): (&TableCell, &TableCell)| *cell == TableCell::Missing || cell == whole;
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
        let outcome = parse_log(
            text.as_bytes(),
            Box::new(SlabinfoParser::new(&LoggedMachine {
                page_size: None,
                kernel: kernel.map(str::to_owned),
            })),
        )
        .unwrap();
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
        let log =
            dumps(&["10 42 192 21 1 | 2 2", short, short, "10 56 192 21 1 | 3 3", "10 64 192 21 1 | 3 3"]);
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
    fn only_a_stamp_is_one() {
        let (time, text) = split_time_stamp(" 1700000000.5000   0.0000     0.0000 --  r  b");
        assert_eq!((time, text), (Some(Nanos(1_700_000_000_500_000_000)), " r  b"));
        assert_eq!(split_time_stamp("a -- b"), (None, "a -- b"));
        assert_eq!(split_time_stamp("sda 1 -- b"), (None, "sda 1 -- b"));
    }
}
