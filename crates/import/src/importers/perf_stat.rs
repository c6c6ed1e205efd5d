//! `perf stat` for machines: `-j` (a JSON object per line) and `-x` (separated fields).
//!
//! Counters of a whole command are samples; with `-I` they are a series, a row per counter and interval.

use indexmap::{IndexMap, IndexSet};
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::{ColumnSpec, Direction, Nanos, TableCell};
use serde_json::Value;

use crate::document_import::{count_unusable, open_document};
use crate::dump_log::{FixedReadings, LoggedReading};
use crate::import_report::FileReport;
use crate::imported_run::{RunMetadata, imported_metric};
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument, json_text};
use crate::input_path::InputPath;
use crate::log_stream::LogStream;

/// Output of perf stat -j or -x.
pub(crate) const IMPORTER: Importer = Importer {
    name: "perf-stat",
    about: "output of perf stat -j or -x",
    knows_boots: false,
    recognises: Recognition::File(recognise_counters),
    open: |path, options| open_document("perf-stat", path, options, read_perf_stat_document),
};

/// What perf writes to a terminal has no head: its first line is a counter.
fn recognise_counters(input: &InputPath) -> bool {
    let first = input.first_lines().and_then(<[String]>::first);
    let document = match first.is_some_and(|line| is_counter(line.trim_start())) {
        true => input.read_document(),
        false => input.document_with(&["{", "# started on "]),
    };
    document.is_some_and(is_perf_stat_document)
}

const STARTED: &str = "# started on ";

/// Separators that no name of an event holds.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];

/// What numbers, words and `<not counted>` are made of besides letters and digits: no separator.
const OF_WORDS: &str = "._-<>%#\"'";

/// One counter, once.
#[derive(Debug, PartialEq)]
struct PerfCounter {
    /// Seconds since the start, with `-I`.
    interval: Option<f64>,
    /// The CPU, core or socket, where not all were added up.
    place: String,
    /// Missing where it was not counted.
    value: Option<f64>,
    unit: String,
    event: String,
    /// Share of the time that it was counted, in percent.
    running: Option<f64>,
}

/// Whether a line is a counter in separated fields: what perf wrote to a terminal has no head.
fn is_counter(text: &str) -> bool {
    let sound = |counter: PerfCounter| {
        let share = counter.running.is_some_and(|share| (0.0..=100.0).contains(&share));
        share && !counter.event.contains(' ')
    };
    !text.starts_with('{') && parse_perf_counter(text, true).and_then(Result::ok).is_some_and(sound)
}

fn is_perf_stat_document(document: &InputDocument) -> bool {
    let mut lines =
        document.numbered_lines().filter(|(_, text, _)| !text.trim().is_empty() && !text.starts_with('#'));
    let first = lines.next().filter(|(_, text, _)| !text.starts_with("Benchmark"));
    first.is_some_and(|(_, text, whole)| {
        parse_perf_counter(text, whole).is_some_and(|counter| counter.is_ok())
    })
}

fn read_perf_stat_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    let mut counters = Vec::new();
    for (number, text, whole) in document.numbered_lines() {
        match parse_perf_counter(text, whole) {
            None => {}
            Some(Err(reason)) => count_unusable(report, number, reason),
            Some(Ok(counter)) => {
                let missing = counter.value.is_none().then(|| format!("`{}` was not counted", counter.event));
                report.count_row(number, missing.map_or(LineOutcome::Used, LineOutcome::Flagged));
                counters.push(counter);
            }
        }
    }
    let begun = document.text.lines().find_map(|line| parse_perf_stat_start(line.strip_prefix(STARTED)?));
    if counters.iter().any(|counter| counter.interval.is_some()) {
        let empty = FileReport::new(&report.file, report.became);
        let own = FileReport { became: "perf-stat", ..std::mem::replace(report, empty) };
        return counter_stream(counters, begun, own).map(|stream| vec![stream]);
    }
    add_counter_samples(&counters, begun, metadata);
    Ok(Vec::new())
}

/// `Sat Nov 21 19:18:29 2026`, on the machine's own clock; taken as UTC.
fn parse_perf_stat_start(text: &str) -> Option<Nanos> {
    let time = jiff::civil::DateTime::strptime("%a %b %e %H:%M:%S %Y", text.trim()).ok()?;
    let second = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    Some(Nanos(u64::try_from(second).ok()?.checked_mul(1_000_000_000)?))
}

/// Nothing for comments and blanks.
fn parse_perf_counter(text: &str, whole: bool) -> Option<Result<PerfCounter, String>> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    if text.starts_with('{') {
        return Some(parse_json_counter(text));
    }
    if !whole {
        return Some(Err("the line is cut off".into()));
    }
    let separated = SEPARATORS.iter().filter_map(|separator| {
        let fields: Vec<&str> = text.split(*separator).map(str::trim).collect();
        (fields.len() >= 5).then(|| parse_counter_fields(&fields))?
    });
    let separated = separated.into_iter().next().or_else(|| parse_oddly_separated(text));
    Some(separated.ok_or_else(|| "it is no counter of perf stat".into()))
}

/// Fields with any other character between them (`-x ' '`, `-x :`), which names of events may hold too: the time that the
/// counter ran and its share with two decimals end the name.
fn parse_oddly_separated(text: &str) -> Option<PerfCounter> {
    let text = text.replace("<not ", "<not_");
    let is_one = |c: &char| !c.is_alphanumeric() && !SEPARATORS.contains(c) && !OF_WORDS.contains(*c);
    let found: IndexSet<char> = text.chars().filter(is_one).collect();
    found.into_iter().find_map(|separator| parse_with_separator(&text, separator))
}

fn parse_with_separator(text: &str, separator: char) -> Option<PerfCounter> {
    let fields: Vec<&str> = text.split(separator).collect();
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_share = |text: &str| {
        text.split_once('.')
            .is_some_and(|(whole, rest)| is_digits(whole) && is_digits(rest) && rest.len() == 2)
    };
    let end = fields
        .windows(2)
        .position(|pair| matches!(pair, [time, share] if is_digits(time) && is_share(share)))?;
    let begin = (0..=3).find(|begin| {
        let is_none = |place: usize| fields.get(place).is_some_and(|field| !is_counter_value(field));
        fields.get(*begin).is_some_and(|value| is_counter_value(value))
            && is_none(begin + 1)
            && is_none(begin + 2)
    })?;
    let last = fields.get(end.checked_sub(1)?)?;
    let end = if last.ends_with('%') { end - 1 } else { end };
    let name = fields.get(begin + 2..end)?.join(&separator.to_string());
    parse_counter_fields(&[fields.get(..begin + 2)?, &[name.as_str()], fields.get(end..)?].concat())
}

fn parse_json_counter(text_: &str) -> Result<PerfCounter, String> {
    let object: Value =
        serde_json::from_str(text_).map_err(|error| format!("it is no whole JSON: {error}"))?;
    let (value, event) = (json_text(&object, "counter-value"), json_text(&object, "event"));
    if event.is_empty() {
        return Err("it has no `event`".into());
    }
    let place =
        ["cpu", "core", "die", "socket", "node", "thread"].map(|name| json_text(&object, name)).join("");
    Ok(PerfCounter {
        interval: object.get("interval").and_then(Value::as_f64),
        place,
        value: parse_counter_value(value)?,
        unit: perf_stat_unit(json_text(&object, "unit")),
        event: event.into(),
        running: object.get("pcnt-running").and_then(Value::as_f64),
    })
}

/// `[interval,][place,][members,]value,unit,event,…`
fn parse_counter_fields(fields: &[&str]) -> Option<PerfCounter> {
    let begin = (0..=3).find(|begin| {
        let event = fields.get(begin + 2).copied().unwrap_or("");
        let unit = fields.get(begin + 1).copied().unwrap_or("0");
        fields.get(*begin).is_some_and(|value| is_counter_value(value))
            && !is_counter_value(unit)
            && !event.is_empty()
            && !is_counter_value(event)
    })?;
    let before = fields.get(..begin)?;
    let interval = before.first().and_then(|text| text.parse().ok());
    let place = before.iter().find(|text| text.starts_with(|c: char| c.is_ascii_alphabetic()));
    // With -r a spread stands before the running time.
    let spread = fields.get(begin + 3).is_some_and(|text| text.ends_with('%'));
    let running = fields.get(begin + if spread { 5 } else { 4 });
    Some(PerfCounter {
        interval,
        place: place.map_or_else(String::new, |text| (*text).into()),
        value: parse_counter_value(fields.get(begin)?).ok()?,
        unit: perf_stat_unit(fields.get(begin + 1)?),
        event: (*fields.get(begin + 2)?).into(),
        running: running.and_then(|text| text.parse().ok()),
    })
}

fn is_counter_value(text: &str) -> bool {
    text.starts_with('<') || text.parse::<f64>().is_ok()
}

/// The value, nothing for one that was not counted.
fn parse_counter_value(text: &str) -> Result<Option<f64>, String> {
    match text {
        "<not counted>" | "<not supported>" | "<not_counted>" | "<not_supported>" => Ok(None),
        _ => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Some(value)),
            _ => Err(format!("`{text}` is no count")),
        },
    }
}

fn perf_stat_unit(text: &str) -> String {
    match text {
        "" => "1".into(),
        "msec" => "ms".into(),
        other => other.into(),
    }
}

fn add_counter_samples(counters: &[PerfCounter], begun: Option<Nanos>, metadata: &mut RunMetadata) {
    for counter in counters {
        let Some(value) = counter.value else { continue };
        let point = (!counter.place.is_empty()).then(|| ("place".to_owned(), counter.place.as_str().into()));
        let results = &mut metadata.results;
        let case = results.find_or_add_case("perf-stat", point.into_iter().collect::<IndexMap<_, _>>());
        let execution = results.only_execution(case, begun.map(|at| (at, at)));
        let id = results.find_or_add_metric(
            case,
            imported_metric(&counter.event, &counter.unit, Direction::Neither, false),
        );
        results.add_sample(execution, id, value, None);
    }
}

fn counter_stream(
    counters: Vec<PerfCounter>,
    begun: Option<Nanos>,
    report: FileReport,
) -> Result<LogStream, DocumentError> {
    let columns = vec![
        ColumnSpec::key("event"),
        ColumnSpec::key("place"),
        ColumnSpec::float_gauge("value", "see column unit"),
        ColumnSpec::key("unit"),
        ColumnSpec::float_gauge("running", "%"),
        ColumnSpec::key("flags"),
    ];
    let mut ticks: Vec<LoggedReading> = Vec::new();
    for counter in counters {
        let at = counter.interval.filter(|at| (0.0..1e9).contains(at)).unwrap_or(0.0);
        let time = Some(Nanos(begun.unwrap_or(Nanos(0)).0 + (at * 1e9) as u64));
        let flag = if counter.value.is_none() { "not counted" } else { "" };
        let float = |value: Option<f64>| value.map_or(TableCell::Missing, TableCell::Float);
        let [event, place, unit] = [counter.event, counter.place, counter.unit].map(TableCell::Text);
        let row = vec![
            event,
            place,
            float(counter.value),
            unit,
            float(counter.running),
            TableCell::Text(flag.into()),
        ];
        match ticks.last_mut().filter(|tick| tick.time == time) {
            Some(tick) => tick.rows.push(row),
            None => ticks.push(LoggedReading { time, rows: vec![row] }),
        }
    }
    let given = FixedReadings::new("perf-stat", "perf stat -I", columns, ticks, report);
    LogStream::from_source(Box::new(given)).map_err(|error| DocumentError::new(error.to_string()))
}
