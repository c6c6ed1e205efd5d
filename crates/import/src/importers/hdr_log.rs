//! Logs of HdrHistogram: latencies of intervals of time, perhaps of several tags. The percentiles of a tag are those of all its
//! intervals together; what each interval had is a series.

use indexmap::IndexMap;
use perflab_formats::hdr_log::{HdrLogLine, decode_hdr_histogram, is_hdr_log, parse_hdr_log_line};
use perflab_formats::reading_parser::LineOutcome;
use perflab_formats::value_histogram::{Percentile, ValueHistogram};
use perflab_model::{ColumnSpec, Direction, Nanos, TableCell};

use crate::document_import::{count_unusable, open_document};
use crate::dump_log::{FixedReadings, LoggedReading};
use crate::import_report::FileReport;
use crate::imported_run::{RunMetadata, imported_metric};
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument};
use crate::input_path::InputPath;
use crate::log_stream::LogStream;

/// Logs of HdrHistogram (V2), with tags.
pub(crate) const IMPORTER: Importer = Importer {
    name: "hdr-log",
    about: "log of HdrHistogram (V2)",
    knows_boots: false,
    recognises: Recognition::File(recognise_hdr_log),
    open: |path, options| open_document("hdr-log", path, options, read_hdr_log_document),
};

/// Percentiles that are asked for, and whether they decide.
const PERCENTILES: [(f64, bool); 6] =
    [(50.0, true), (90.0, false), (95.0, false), (99.0, true), (99.9, true), (99.99, false)];

/// HdrHistogram's tools record nanoseconds, and write maxima of intervals in milliseconds beside them.
const MAXIMUM_DIVISOR: f64 = 1e6;
const NANOS_OF_A_MICRO: f64 = 1000.0;
const SECOND: f64 = 1e9;

/// A year: times of intervals that lie so far before the start are relative to it, as HdrHistogram's own reader decides.
const YEAR: f64 = 365.0 * 24.0 * 3600.0;

/// No clock goes further.
const LAST_TIME: f64 = 1e10;

fn recognise_hdr_log(input: &InputPath) -> bool {
    input.first_lines().is_some_and(|lines| is_hdr_log(&lines.join("\n")))
}

/// What is known of a tag: all its values, and from when to when it was recorded.
#[derive(Default)]
struct TagRecord {
    histogram: ValueHistogram,
    intervals: u64,
    seconds: f64,
    span: Option<(f64, f64)>,
}

/// What times of intervals count from.
#[derive(Default)]
struct LogTimes {
    start: Option<f64>,
    base: Option<f64>,
}

impl LogTimes {
    /// Seconds since 1970.
    fn absolute(&self, time: f64) -> f64 {
        match (self.base, self.start) {
            (Some(base), _) => base + time,
            (None, Some(start)) if time < start - YEAR => start + time,
            _ => time,
        }
    }
}

fn read_hdr_log_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    let mut times = LogTimes::default();
    let mut tags: IndexMap<Option<String>, TagRecord> = IndexMap::new();
    let mut readings: Vec<LoggedReading> = Vec::new();
    let mut odd_maximum = None;
    for (number, text, _) in document.numbered_lines() {
        let interval = match parse_hdr_log_line(text) {
            Ok(HdrLogLine::Interval(interval)) => interval,
            Ok(HdrLogLine::StartTime(start)) => {
                times.start = Some(start);
                continue;
            }
            Ok(HdrLogLine::BaseTime(base)) => {
                times.base = Some(base);
                continue;
            }
            Ok(HdrLogLine::Remark) => continue,
            Err(error) => {
                count_unusable(report, number, error.to_string());
                continue;
            }
        };
        let begin = times.absolute(interval.start);
        if !(0.0..LAST_TIME).contains(&begin) || !(0.0..LAST_TIME).contains(&interval.length) {
            count_unusable(report, number, "its time is none".into());
            continue;
        }
        let record = tags.entry(interval.tag.map(str::to_owned)).or_default();
        let merged = decode_hdr_histogram(interval.encoded).and_then(|histogram| {
            record.histogram.merge(&histogram)?;
            Ok(histogram)
        });
        let histogram = match merged {
            Ok(histogram) => histogram,
            Err(error) => {
                count_unusable(report, number, error.to_string());
                continue;
            }
        };
        report.count_row(number, LineOutcome::Used);
        record.intervals += 1;
        record.seconds += interval.length;
        let (first, last) = record.span.unwrap_or((begin, begin));
        record.span = Some((first.min(begin), last.max(begin + interval.length)));
        if let Some(largest) = histogram.largest().filter(|_| interval.max > 0.0) {
            let divisor = largest / interval.max;
            // Maxima are printed with three digits behind the point.
            let rounding = 0.001 / interval.max + 0.01;
            let is_usual = (divisor / MAXIMUM_DIVISOR - 1.0).abs() <= rounding;
            odd_maximum = odd_maximum.or((!is_usual).then_some(divisor));
        }
        let time = Some(to_nanos(begin));
        let row = interval_row(interval.tag, interval.length, &histogram);
        match readings.last_mut().filter(|reading| reading.time == time) {
            Some(reading) => reading.rows.push(row),
            None => readings.push(LoggedReading { time, rows: vec![row] }),
        }
    }
    if let Some(divisor) = odd_maximum {
        report.add_note(format!(
            "values are taken for nanoseconds, as HdrHistogram's tools record them; the maxima beside them are {divisor:.0} times \
             smaller, where theirs are a million times smaller: where the values are in another unit, so are all times here"
        ));
    }
    tags.retain(|_, record| record.intervals > 0);
    for (tag, record) in &tags {
        add_tag_samples(tag.as_deref(), record, metadata, report);
    }
    if readings.is_empty() {
        return Ok(Vec::new());
    }
    // Tags may follow one another in the file.
    readings.sort_by_key(|reading| reading.time);
    let mut series = FileReport::new(&document.path, "hdr-log");
    readings.iter().flat_map(|reading| &reading.rows).for_each(|_| series.count_row(0, LineOutcome::Used));
    let given = FixedReadings::new("hdr-log", "HdrHistogram log", interval_columns(), readings, series);
    let stream = LogStream::from_source(Box::new(given));
    stream.map(|stream| vec![stream]).map_err(|error| DocumentError::new(error.to_string()))
}

fn to_nanos(seconds: f64) -> Nanos {
    // Below 2^63, as no time is beyond the last.
    Nanos((seconds * SECOND) as u64)
}

fn add_tag_samples(
    tag: Option<&str>,
    record: &TagRecord,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) {
    let results = &mut metadata.results;
    let point = tag.map(|tag| ("tag".to_owned(), tag.into()));
    let case = results.find_or_add_case("hdr-log", point.into_iter().collect());
    let span = record.span.map(|(first, last)| (to_nanos(first), to_nanos(last)));
    let execution = results.next_execution(case, 0, span);
    let count = record.histogram.count();
    if count == 0 {
        let of = tag.map_or_else(String::new, |tag| format!(" of tag `{tag}`"));
        results.mark_failed(execution, "nothing was recorded");
        return report.add_note(format!("the intervals{of} hold no value"));
    }
    let mut add = |name: &str, unit: &str, direction: Direction, primary: bool, value: Option<f64>| {
        let metric = results.find_or_add_metric(case, imported_metric(name, unit, direction, primary));
        if let Some(value) = value {
            results.add_sample(execution, metric, value, None);
        }
    };
    for (percent, primary) in PERCENTILES {
        let Some(percentile) = Percentile::new(percent) else { continue };
        if percentile.is_carried_by(count) {
            let value = record.histogram.value_at_rank(percentile.nearest_rank(count));
            let name = format!("latency-{percentile}");
            add(&name, "us", Direction::Lower, primary, value.map(|nanos| nanos / NANOS_OF_A_MICRO));
        }
    }
    let largest = record.histogram.largest().map(|nanos| nanos / NANOS_OF_A_MICRO);
    add("latency-max", "us", Direction::Lower, false, largest);
    let mean = record.histogram.mean().map(|nanos| nanos / NANOS_OF_A_MICRO);
    add("latency-mean", "us", Direction::Lower, false, mean);
    let rate = (record.seconds > 0.0).then(|| count as f64 / record.seconds);
    add("values", "1/s", Direction::Neither, false, rate);
}

fn interval_columns() -> Vec<ColumnSpec> {
    vec![
        ColumnSpec::key("tag"),
        ColumnSpec::float_gauge("length", "s"),
        ColumnSpec::gauge("values", "1"),
        ColumnSpec::float_gauge("p50", "us"),
        ColumnSpec::float_gauge("p99", "us"),
        ColumnSpec::float_gauge("p99.9", "us"),
        ColumnSpec::float_gauge("max", "us"),
    ]
}

/// What an interval had; what it has too few values for is missing.
fn interval_row(tag: Option<&str>, length: f64, histogram: &ValueHistogram) -> Vec<TableCell> {
    let count = histogram.count();
    let micros = |nanos: Option<f64>| {
        nanos.map_or(TableCell::Missing, |nanos| TableCell::Float(nanos / NANOS_OF_A_MICRO))
    };
    let at = |percent: f64| {
        let percentile = Percentile::new(percent).filter(|percentile| percentile.is_carried_by(count));
        micros(percentile.and_then(|percentile| histogram.value_at_rank(percentile.nearest_rank(count))))
    };
    vec![
        TableCell::Text(tag.unwrap_or_default().into()),
        TableCell::Float(length),
        TableCell::Int(i64::try_from(count).unwrap_or(i64::MAX)),
        at(50.0),
        at(99.0),
        at(99.9),
        micros(histogram.largest()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_from_the_base_or_from_a_start_that_is_more_than_a_year_later() {
        let absolute = |base, start, time| LogTimes { start, base }.absolute(time);
        let start = 1_600_000_000.0;
        assert_eq!(absolute(Some(100.0), Some(start), 5.0), 105.0);
        assert_eq!(absolute(None, Some(start), 5.0), start + 5.0);
        assert_eq!(absolute(None, Some(start), start + 5.0), start + 5.0);
        assert_eq!(absolute(None, None, 5.0), 5.0);
    }
}
