//! Benchmark logs whose values are printed as they are, but in tables with heads of their own. hackbench, perfpipe and sysbench are
//! declared in `mmtests.toml`.
//!
//! | benchmark | logs |
//! |---|---|
//! | STREAM | `benchlog-THREADS-_-ITERATION` (current), `stream-ITERATION.log` (2020); the four best rates of each |
//! | dbench | `dbench-CLIENTS.log` (2020), or `benchlog-loadfile-CLIENTS`, `benchlog-tput-CLIENTS`, `benchlog-op-CLIENTS` |
//! | memtier_benchmark against Redis | `benchlog-CLIENTS-ITERATION`: the line of totals, in the columns that its head names |
//! | redis-benchmark | `redis-CLIENTS-ITERATION.log`, a line of CSV per operation |
//! | GNU time | `time-KEY-ITERATION` |
//!
//! dbench has one execution for each number of clients. memtier's percentiles of the latency came between mean
//! and bandwidth. Old logs of redis-benchmark hold requests per second only, current ones a head and latencies in
//! milliseconds; values keep MMTests' scale: thousands of requests, microseconds. What GNU time wrote of each execution
//! is all there is for builds and batch jobs, and explains the others.

use std::path::Path;

use indexmap::IndexMap;
use perflab_formats::reading_parser::{LineOutcome, TextLine};
use perflab_formats::tool::gnu_time::parse_short_gnu_time;
use perflab_model::{Direction, Nanos, Scalar};

use crate::benchmark_results::{
    BenchmarkResults, ImportedCaseId, ImportedExecutionId, ImportedMetricId, TimeRange,
};
use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::imported_run::imported_metric;
use crate::input_lines::InputLines;
use crate::packed_folder::{NumberedLog, PackedFolder};

/// One benchmark of one `iter-N`.
pub(crate) struct BenchmarkLogReader<'a> {
    pub(crate) name: &'a str,
    /// Which `iter-N` of the run, counted from 0.
    pub(crate) boot: u32,
    /// When the benchmark ran.
    pub(crate) span: Option<TimeRange>,
    pub(crate) results: &'a mut BenchmarkResults,
    pub(crate) report: &'a mut Vec<FileReport>,
}

/// A metric as the parsers declare it: name, unit, direction.
pub(crate) type DeclaredMetric = (&'static str, &'static str, Direction);

impl BenchmarkLogReader<'_> {
    /// The case at that point; whole numbers are numbers.
    pub(crate) fn case_at(&mut self, point: &[(&str, &str)]) -> ImportedCaseId {
        let value = |text: &str| text.parse().map_or_else(|_| Scalar::from(text), Scalar::Int);
        let point = point.iter().map(|(name, text)| ((*name).to_owned(), value(text)));
        self.results.find_or_add_case(self.name, point.collect::<IndexMap<_, _>>())
    }

    pub(crate) fn primary_metric(
        &mut self,
        case: ImportedCaseId,
        (name, unit, direction): DeclaredMetric,
    ) -> ImportedMetricId {
        self.metric_named(case, name, unit, direction, true)
    }

    /// A metric that explains and does not decide.
    pub(crate) fn secondary_metric(
        &mut self,
        case: ImportedCaseId,
        (name, unit, direction): DeclaredMetric,
    ) -> ImportedMetricId {
        self.metric_named(case, name, unit, direction, false)
    }

    pub(crate) fn metric_named(
        &mut self,
        case: ImportedCaseId,
        name: &str,
        unit: &str,
        direction: Direction,
        primary: bool,
    ) -> ImportedMetricId {
        self.results.find_or_add_metric(case, imported_metric(name, unit, direction, primary))
    }

    /// The next execution of a case.
    pub(crate) fn next_execution(&mut self, case: ImportedCaseId) -> ImportedExecutionId {
        self.results.next_execution(case, self.boot, self.span)
    }

    /// A value of an execution.
    pub(crate) fn add_sample(
        &mut self,
        execution: ImportedExecutionId,
        metric: ImportedMetricId,
        value: f64,
    ) {
        self.results.add_sample(execution, metric, value, None);
    }

    /// A value of a part of an execution.
    pub(crate) fn add_sample_at(
        &mut self,
        execution: ImportedExecutionId,
        metric: ImportedMetricId,
        value: f64,
        (from, to): (Nanos, Nanos),
    ) {
        self.results.add_sample(execution, metric, value, Some((from, to)));
    }

    /// Reads a file line by line; `row` says what became of a line that should hold a result. Gives what was taken of
    /// the file, for further remarks before it is [kept](BenchmarkLogReader::keep_report).
    pub(crate) fn read_lines(
        &mut self,
        file: &Path,
        mut row: impl FnMut(&mut Self, TextLine<'_>) -> Option<LineOutcome>,
    ) -> Result<FileReport, ImportError> {
        let mut lines = InputLines::open_optional(file);
        let mut report = FileReport::new(file, "samples");
        while let Some(line) = lines.next_line()? {
            let number = line.number;
            if let Some(read) = row(self, line) {
                report.count_row(number, read);
            }
        }
        report.note_early_end(&lines);
        Ok(report)
    }

    /// Keeps what was taken of a file; one without any result says so.
    pub(crate) fn keep_report(&mut self, mut report: FileReport) {
        if report.rows_read == 0 && report.refused.is_none() {
            report.add_note(
                "there is no result in it: the benchmark was stopped or failed, or it is another's log",
            );
        }
        self.report.push(report);
    }
}

/// A number that a line shows behind `mark`, and whose digits are all there.
pub(crate) fn number_after(line: TextLine<'_>, mark: &str) -> Option<Result<f64, String>> {
    let (_, rest) = line.text.split_once(mark)?;
    Some(parse_whole_number(line, rest))
}

/// The number that `rest`, a part of `line` up to its end, begins with.
fn parse_whole_number(line: TextLine<'_>, rest: &str) -> Result<f64, String> {
    let rest = rest.trim_ascii_start();
    let word = rest.split_ascii_whitespace().next().unwrap_or("");
    if !line.whole && word.len() == rest.len() {
        return Err(format!("the line is cut off, so that `{word}` may lack digits"));
    }
    parse_finite_number(word)
}

/// A finite number.
pub(crate) fn parse_finite_number(word: &str) -> Result<f64, String> {
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("`{}` is no number", word.chars().take(40).collect::<String>()))
}

/// What became of a row with that value.
pub(crate) fn outcome_of(value: Result<f64, String>, take: impl FnOnce(f64)) -> LineOutcome {
    match value {
        Ok(value) => {
            take(value);
            LineOutcome::Used
        }
        Err(reason) => LineOutcome::Unusable(reason),
    }
}

const KERNELS: [&str; 4] = ["Copy", "Scale", "Add", "Triad"];

pub(crate) fn read_stream(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    for log in folder.numbered_logs("benchlog") {
        if let Some(threads) = log.number_at(0) {
            read_stream_log(&log, Some(threads), bench)?;
        }
    }
    for log in folder.numbered_logs("stream").iter().filter(|log| log.number_at(0).is_some()) {
        read_stream_log(log, None, bench)?;
    }
    Ok(())
}

fn read_stream_log(
    log: &NumberedLog<'_>,
    threads: Option<&str>,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let mut found: Vec<(&'static str, f64)> = Vec::new();
    let mut counted = None;
    let mut unit = "MB/s";
    let report = bench.read_lines(log.path, |_, line| {
        if let Some((_, count)) = line.text.split_once("Number of Threads counted =") {
            counted = count.trim().parse::<u32>().ok();
        }
        unit = if line.text.contains("Rate") && line.text.contains("GB/s") { "GB/s" } else { unit };
        let (name, rest) = line.text.split_once(':')?;
        let kernel = KERNELS.into_iter().find(|kernel| *kernel == name)?;
        Some(outcome_of(parse_whole_number(line, rest), |value| found.push((kernel, value))))
    })?;
    let counted = counted.map(|count| count.to_string());
    let threads = threads.or(counted.as_deref());
    let case = bench.case_at(&threads.map(|threads| ("threads", threads)).into_iter().collect::<Vec<_>>());
    if !found.is_empty() {
        let execution = bench.next_execution(case);
        for (kernel, value) in found {
            let metric = bench.metric_named(case, kernel, unit, Direction::Higher, true);
            bench.add_sample(execution, metric, value);
        }
    }
    bench.keep_report(report);
    Ok(())
}

const LOADFILE: DeclaredMetric = ("loadfile", "ms", Direction::Lower);

const THROUGHPUT: DeclaredMetric = ("tput", "MB/s", Direction::Higher);

/// More milliseconds than this are a negative number that wrapped around.
const WRAPPED: f64 = (1_u64 << 31) as f64;

pub(crate) fn read_dbench(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let mut done: Vec<(&str, ImportedExecutionId, ImportedCaseId)> = Vec::new();
    for log in folder.numbered_logs("benchlog") {
        if let (["loadfile" | "tput" | "op", _], Some(clients)) = (&log.keys[..], log.number_at(1)) {
            let known = done.iter().find(|(known, ..)| *known == clients).copied();
            let (clients, execution, case) = known.unwrap_or_else(|| begin_dbench_execution(clients, bench));
            if known.is_none() {
                done.push((clients, execution, case));
            }
            read_dbench_report(log.path, (case, execution), bench)?;
        }
    }
    for log in folder.numbered_logs("dbench") {
        let Some(clients) =
            log.number_at(0).filter(|clients| done.iter().all(|(known, ..)| known != clients))
        else {
            continue;
        };
        let (_, execution, case) = begin_dbench_execution(clients, bench);
        read_dbench_report(log.path, (case, execution), bench)?;
    }
    Ok(())
}

fn begin_dbench_execution<'a>(
    clients: &'a str,
    bench: &mut BenchmarkLogReader<'_>,
) -> (&'a str, ImportedExecutionId, ImportedCaseId) {
    let case = bench.case_at(&[("clients", clients)]);
    (clients, bench.next_execution(case), case)
}

/// What a line says, if it is one of results.
enum DbenchLine<'a> {
    Loadfile(f64),
    Throughput(f64),
    Operation(&'a str, f64),
}

fn read_dbench_report(
    path: &Path,
    (case, execution): (ImportedCaseId, ImportedExecutionId),
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    let report = bench.read_lines(path, |bench, line| {
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        let output = match parse_dbench_line(&words)? {
            _ if !line.whole => return Some(LineOutcome::Unusable("the line is cut off".into())),
            Err(reason) => return Some(LineOutcome::Unusable(reason)),
            Ok(output) => output,
        };
        let (metric, value) = match output {
            DbenchLine::Loadfile(value) => (bench.primary_metric(case, LOADFILE), value),
            DbenchLine::Throughput(value) => (bench.primary_metric(case, THROUGHPUT), value),
            DbenchLine::Operation(name, value) => {
                (bench.metric_named(case, &format!("op-{name}"), "ms", Direction::Lower, false), value)
            }
        };
        bench.add_sample(execution, metric, value);
        Some(LineOutcome::Used)
    })?;
    bench.keep_report(report);
    Ok(())
}

fn parse_dbench_line<'a>(words: &[&'a str]) -> Option<Result<DbenchLine<'a>, String>> {
    match words {
        [_, "completed", "in", time, ..] => Some(parse_finite_number(time).and_then(|time| {
            let sound = (0.0..=WRAPPED).contains(&time);
            if sound {
                Ok(DbenchLine::Loadfile(time))
            } else {
                Err(format!("{time} ms are a time that wrapped around"))
            }
        })),
        [_, _, rate, "MB/sec", "execute", ..] => Some(parse_finite_number(rate).map(DbenchLine::Throughput)),
        [name, count, average, most] if name.starts_with(|c: char| c.is_ascii_uppercase()) => {
            let numbers = parse_finite_number(count)
                .and_then(|_| parse_finite_number(most))
                .and_then(|_| parse_finite_number(average));
            // The head of this table has four words too, none of them a number.
            (count.starts_with(|c: char| c.is_ascii_digit()))
                .then(|| numbers.map(|average| DbenchLine::Operation(name, average)))
        }
        _ => None,
    }
}

/// What its head calls a column, and the metric.
const MEMTIER_COLUMNS: &[(&str, DeclaredMetric)] = &[
    ("Ops/sec", ("ops/sec", "ops/s", Direction::Higher)),
    ("Hits/sec", ("hits/sec", "ops/s", Direction::Higher)),
    ("Misses/sec", ("misses/sec", "ops/s", Direction::Higher)),
    ("Latency", ("latency", "ms", Direction::Lower)),
    ("KB/sec", ("kb/sec", "KiB/s", Direction::Higher)),
];

pub(crate) fn read_memtier(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    for log in folder.numbered_logs("benchlog") {
        let Some(clients) = log.number_at(0) else { continue };
        let (mut head, mut found) = (Vec::new(), Vec::new());
        let report = bench.read_lines(log.path, |_, line| {
            let mut words = line.text.split_ascii_whitespace();
            match words.next()? {
                "Type" => head = parse_memtier_head(line.text),
                "Totals" if !line.whole => return Some(LineOutcome::Unusable("the line is cut off".into())),
                "Totals" => {
                    let values: Vec<&str> = words.collect();
                    return Some(parse_memtier_totals(&head, &values, &mut found));
                }
                _ => {}
            }
            None
        })?;
        if !found.is_empty() {
            let case = bench.case_at(&[("clients", clients)]);
            let execution = bench.next_execution(case);
            for (declared, value) in found {
                let primary = declared.0 == "ops/sec";
                let id = if primary {
                    bench.primary_metric(case, declared)
                } else {
                    bench.secondary_metric(case, declared)
                };
                bench.add_sample(execution, id, value);
            }
        }
        bench.keep_report(report);
    }
    Ok(())
}

/// The names of the columns behind the first; `Avg. Latency` and `p50 Latency` are one column each.
fn parse_memtier_head(head: &str) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    let mut before = None;
    for word in head.split_ascii_whitespace().skip(1) {
        match (word, before.take()) {
            ("Latency", Some(which)) if which != "Avg." => columns.push(format!("{which} Latency")),
            (word, _) if word == "Avg." || word.starts_with('p') => before = Some(word),
            (word, _) => columns.push(word.into()),
        }
    }
    columns
}

fn parse_memtier_totals(
    head: &[String],
    values: &[&str],
    found: &mut Vec<(DeclaredMetric, f64)>,
) -> LineOutcome {
    if head.len() != values.len() {
        return LineOutcome::Unusable(format!("it has {} values and its head {}", values.len(), head.len()));
    }
    for (column, value) in head.iter().zip(values) {
        let Some((_, declared)) = MEMTIER_COLUMNS.iter().find(|(theirs, _)| theirs == column) else {
            continue;
        };
        match parse_finite_number(value) {
            Ok(value) => found.push((*declared, value)),
            Err(_) if *value == "---" => {}
            Err(reason) => return LineOutcome::Unusable(reason),
        }
    }
    LineOutcome::Used
}

const THOUSAND: f64 = 1e3;

/// Columns behind the name: theirs, ours.
const REDIS_COLUMNS: &[(&str, &str)] = &[
    ("rps", "RPS"),
    ("avg_latency_ms", "latAvg"),
    ("min_latency_ms", "latMin"),
    ("p50_latency_ms", "lat50"),
    ("p95_latency_ms", "lat95"),
    ("p99_latency_ms", "lat99"),
    ("max_latency_ms", "latMax"),
];

pub(crate) fn read_redis(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
) -> Result<(), ImportError> {
    for log in folder.numbered_logs("redis") {
        let (Some(clients), Some(_)) = (log.number_at(0), log.number_at(1)) else { continue };
        let case = bench.case_at(&[("clients", clients)]);
        let execution = bench.next_execution(case);
        let mut head: Vec<String> = vec!["rps".into()];
        let report = bench.read_lines(log.path, |bench, line| {
            let fields = split_redis_fields(line.text)?;
            if let Some(("test", rest)) = fields.split_first().map(|(first, rest)| (first.as_str(), rest)) {
                head = rest.to_vec();
                return None;
            }
            Some(parse_redis_row(line, &fields, &head, (case, execution), bench))
        })?;
        bench.keep_report(report);
    }
    Ok(())
}

/// The quoted fields of a line; nothing where it is no CSV.
fn split_redis_fields(text: &str) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('"')?;
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    Some(inner.split("\",\"").map(String::from).collect())
}

fn parse_redis_row(
    line: TextLine<'_>,
    fields: &[String],
    head: &[String],
    (case, execution): (ImportedCaseId, ImportedExecutionId),
    bench: &mut BenchmarkLogReader<'_>,
) -> LineOutcome {
    let Some((name, values)) = fields.split_first() else {
        return LineOutcome::Unusable("it is empty".into());
    };
    if values.len() != head.len() || !line.text.trim_end().ends_with('"') {
        let reason =
            format!("it has {} values and not {}: it is cut off or another's", values.len(), head.len());
        return LineOutcome::Unusable(reason);
    }
    let values: Result<Vec<f64>, String> = values.iter().map(|value| parse_finite_number(value)).collect();
    let values = match values {
        Ok(values) => values,
        Err(reason) => return LineOutcome::Unusable(reason),
    };
    let operation = redis_operation_name(name);
    for (column, value) in head.iter().zip(values) {
        let Some((_, ours)) = REDIS_COLUMNS.iter().find(|(theirs, _)| theirs == column) else { continue };
        let name = format!("{operation}-{ours}");
        let (metric, value) = match *ours {
            "RPS" => (bench.metric_named(case, &name, "kops/s", Direction::Higher, true), value / THOUSAND),
            _ => (bench.metric_named(case, &name, "us", Direction::Lower, false), value * THOUSAND),
        };
        bench.add_sample(execution, metric, value);
    }
    LineOutcome::Used
}

/// `LRANGE_100 (first 100 elements)` is known as LRANGE_100; the LPUSH that only prepares another test is not LPUSH.
fn redis_operation_name(name: &str) -> String {
    match name.split_once(" (") {
        Some((name, note)) if note.starts_with("needed") => format!("{name}-prepare"),
        Some((name, _)) => name.into(),
        None => name.into(),
    }
}

const NAMES: [&str; 3] = ["User", "System", "Elapsed"];

/// Reads them; they decide where the benchmark gave nothing else.
pub(crate) fn read_gnu_times(
    folder: &PackedFolder,
    bench: &mut BenchmarkLogReader<'_>,
    decide: bool,
) -> Result<(), ImportError> {
    for log in folder.numbered_logs("time") {
        let [key, ..] = log.keys[..] else { continue };
        let mut found = None;
        let report = bench.read_lines(log.path, |_, line| {
            let read = line.text.contains("elapsed").then(|| parse_short_gnu_time(line.text))?;
            Some(match read {
                Ok(times) => {
                    found = Some(times);
                    LineOutcome::Used
                }
                Err(reason) => LineOutcome::Unusable(reason),
            })
        })?;
        let case = bench
            .results
            .find_or_add_case(&format!("{}-time", bench.name), [("of".to_owned(), key.into())].into());
        if let Some(times) = found {
            let execution = bench.next_execution(case);
            for (name, value) in NAMES.into_iter().zip(times) {
                let metric = bench.metric_named(case, name, "s", Direction::Lower, decide);
                bench.add_sample(execution, metric, value);
            }
        }
        bench.keep_report(report);
    }
    Ok(())
}

#[cfg(test)]
mod tests {

    #[test]
    fn columns_are_those_of_the_head() {
        let old = "Type         Ops/sec     Hits/sec   Misses/sec      Latency       KB/sec ";
        assert_eq!(
            super::parse_memtier_head(old),
            ["Ops/sec", "Hits/sec", "Misses/sec", "Latency", "KB/sec"]
        );
        let new = "Type   Ops/sec Hits/sec Misses/sec Avg. Latency p50 Latency p99.9 Latency KB/sec";
        let names =
            ["Ops/sec", "Hits/sec", "Misses/sec", "Latency", "p50 Latency", "p99.9 Latency", "KB/sec"];
        assert_eq!(super::parse_memtier_head(new), names);
        let (head, mut found) = (super::parse_memtier_head(new), Vec::new());
        let values = ["52011.41", "---", "47278.84", "3.84", "3.7", "9.8", "2089.4"];
        assert_eq!(
            super::parse_memtier_totals(&head, &values, &mut found),
            perflab_formats::reading_parser::LineOutcome::Used
        );
        let reported: Vec<(&str, f64)> = found.iter().map(|((name, ..), value)| (*name, *value)).collect();
        assert_eq!(
            reported,
            [("ops/sec", 52011.41), ("misses/sec", 47278.84), ("latency", 3.84), ("kb/sec", 2089.4)]
        );
    }
}
