//! `perf stat` for machines: `-j` (a JSON object a line) and `-x` (separated fields). Counters of a whole command are
//! samples; with `-I` they are a series, a row a counter an interval.

use indexmap::{IndexMap, IndexSet};
use perflab_model::{Cell, Column, Direction, Nanos};
use serde_json::Value;

use super::super::feed::Feed;
use super::super::format::Tick;
use super::super::given::Given;
use super::super::story::{Story, metric};
use super::super::took::{Read, Took};
use super::document::text;
use super::{Document, Fault, left_out};

const STARTED: &str = "# started on ";
/// Separators that no name of an event holds.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];
/// What numbers, words and `<not counted>` are made of besides letters and digits: no separator.
const OF_WORDS: &str = "._-<>%#\"'";

/// One counter, once.
#[derive(Debug, PartialEq)]
struct Counter {
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
pub(super) fn is_counter(text: &str) -> bool {
    let sound = |counter: Counter| {
        let share = counter.running.is_some_and(|share| (0.0..=100.0).contains(&share));
        share && !counter.event.contains(' ')
    };
    !text.starts_with('{') && parse(text, true).and_then(Result::ok).is_some_and(sound)
}

pub(super) fn looks(document: &Document) -> bool {
    let mut lines = document.lines().filter(|(_, text, _)| !text.trim().is_empty() && !text.starts_with('#'));
    let first = lines.next().filter(|(_, text, _)| !text.starts_with("Benchmark"));
    first.is_some_and(|(_, text, whole)| parse(text, whole).is_some_and(|counter| counter.is_ok()))
}

pub(super) fn read(document: &Document, story: &mut Story, took: &mut Took) -> Result<Vec<Feed>, Fault> {
    let mut counters = Vec::new();
    for (number, text, whole) in document.lines() {
        match parse(text, whole) {
            None => {}
            Some(Err(reason)) => left_out(took, number, reason),
            Some(Ok(counter)) => {
                let missing = counter.value.is_none().then(|| format!("`{}` was not counted", counter.event));
                took.count(number, missing.map_or(Read::Used, Read::Flagged));
                counters.push(counter);
            }
        }
    }
    let begun = document.text.lines().find_map(|line| started(line.strip_prefix(STARTED)?));
    if counters.iter().any(|counter| counter.interval.is_some()) {
        let empty = Took::of(&took.file, took.became);
        let own = Took { became: "perf-stat", ..std::mem::replace(took, empty) };
        return series(counters, begun, own).map(|feed| vec![feed]);
    }
    samples(&counters, begun, story);
    Ok(Vec::new())
}

/// `Sat Nov 21 19:18:29 2026`, on the machine's own clock; taken as UTC.
fn started(text: &str) -> Option<Nanos> {
    let time = jiff::civil::DateTime::strptime("%a %b %e %H:%M:%S %Y", text.trim()).ok()?;
    let second = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    Some(Nanos(u64::try_from(second).ok()?.checked_mul(1_000_000_000)?))
}

/// Nothing for comments and blanks.
fn parse(text: &str, whole: bool) -> Option<Result<Counter, String>> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    if text.starts_with('{') {
        return Some(json(text));
    }
    if !whole {
        return Some(Err("the line is cut off".into()));
    }
    let separated = SEPARATORS.iter().filter_map(|separator| {
        let fields: Vec<&str> = text.split(*separator).map(str::trim).collect();
        (fields.len() >= 5).then(|| fields_of(&fields))?
    });
    let separated = separated.into_iter().next().or_else(|| oddly_separated(text));
    Some(separated.ok_or_else(|| "it is no counter of perf stat".into()))
}

/// Fields with any other character between them (`-x ' '`, `-x :`), which names of events may hold too: the time that the
/// counter ran and its share with two decimals end the name.
fn oddly_separated(text: &str) -> Option<Counter> {
    let text = text.replace("<not ", "<not_");
    let is_one = |c: &char| !c.is_alphanumeric() && !SEPARATORS.contains(c) && !OF_WORDS.contains(*c);
    let found: IndexSet<char> = text.chars().filter(is_one).collect();
    found.into_iter().find_map(|separator| named_by_its_end(&text, separator))
}

fn named_by_its_end(text: &str, separator: char) -> Option<Counter> {
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
        let is_none = |place: usize| fields.get(place).is_some_and(|field| !is_value(field));
        fields.get(*begin).is_some_and(|value| is_value(value)) && is_none(begin + 1) && is_none(begin + 2)
    })?;
    let last = fields.get(end.checked_sub(1)?)?;
    let end = if last.ends_with('%') { end - 1 } else { end };
    let name = fields.get(begin + 2..end)?.join(&separator.to_string());
    fields_of(&[fields.get(..begin + 2)?, &[name.as_str()], fields.get(end..)?].concat())
}

fn json(text_: &str) -> Result<Counter, String> {
    let object: Value =
        serde_json::from_str(text_).map_err(|error| format!("it is no whole JSON: {error}"))?;
    let (value, event) = (text(&object, "counter-value"), text(&object, "event"));
    if event.is_empty() {
        return Err("it has no `event`".into());
    }
    let place = ["cpu", "core", "die", "socket", "node", "thread"].map(|name| text(&object, name)).join("");
    Ok(Counter {
        interval: object.get("interval").and_then(Value::as_f64),
        place,
        value: counted(value)?,
        unit: unit(text(&object, "unit")),
        event: event.into(),
        running: object.get("pcnt-running").and_then(Value::as_f64),
    })
}

/// `[interval,][place,][members,]value,unit,event,…`
fn fields_of(fields: &[&str]) -> Option<Counter> {
    let begin = (0..=3).find(|begin| {
        let event = fields.get(begin + 2).copied().unwrap_or("");
        let unit = fields.get(begin + 1).copied().unwrap_or("0");
        fields.get(*begin).is_some_and(|value| is_value(value))
            && !is_value(unit)
            && !event.is_empty()
            && !is_value(event)
    })?;
    let before = fields.get(..begin)?;
    let interval = before.first().and_then(|text| text.parse().ok());
    let place = before.iter().find(|text| text.starts_with(|c: char| c.is_ascii_alphabetic()));
    // With -r a spread stands before the running time.
    let spread = fields.get(begin + 3).is_some_and(|text| text.ends_with('%'));
    let running = fields.get(begin + if spread { 5 } else { 4 });
    Some(Counter {
        interval,
        place: place.map_or_else(String::new, |text| (*text).into()),
        value: counted(fields.get(begin)?).ok()?,
        unit: unit(fields.get(begin + 1)?),
        event: (*fields.get(begin + 2)?).into(),
        running: running.and_then(|text| text.parse().ok()),
    })
}

fn is_value(text: &str) -> bool {
    text.starts_with('<') || text.parse::<f64>().is_ok()
}

/// The value, nothing for one that was not counted.
fn counted(text: &str) -> Result<Option<f64>, String> {
    match text {
        "<not counted>" | "<not supported>" | "<not_counted>" | "<not_supported>" => Ok(None),
        _ => match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Some(value)),
            _ => Err(format!("`{text}` is no count")),
        },
    }
}

fn unit(text: &str) -> String {
    match text {
        "" => "1".into(),
        "msec" => "ms".into(),
        other => other.into(),
    }
}

fn samples(counters: &[Counter], begun: Option<Nanos>, story: &mut Story) {
    for counter in counters {
        let Some(value) = counter.value else { continue };
        let point = (!counter.place.is_empty()).then(|| ("place".to_owned(), counter.place.as_str().into()));
        let results = &mut story.results;
        let case = results.case("perf-stat", point.into_iter().collect::<IndexMap<_, _>>());
        let execution = results.same_or_next(case, begun.map(|at| (at, at)));
        let id = results.metric(case, metric(&counter.event, &counter.unit, Direction::Neither, false));
        results.sample(execution, id, value, None);
    }
}

fn series(counters: Vec<Counter>, begun: Option<Nanos>, took: Took) -> Result<Feed, Fault> {
    let columns = vec![
        Column::key("event"),
        Column::key("place"),
        Column::float_gauge("value", "see column unit"),
        Column::key("unit"),
        Column::float_gauge("running", "%"),
        Column::key("flags"),
    ];
    let mut ticks: Vec<Tick> = Vec::new();
    for counter in counters {
        let at = counter.interval.filter(|at| (0.0..1e9).contains(at)).unwrap_or(0.0);
        let time = Some(Nanos(begun.unwrap_or(Nanos(0)).0 + (at * 1e9) as u64));
        let flag = if counter.value.is_none() { "not counted" } else { "" };
        let float = |value: Option<f64>| value.map_or(Cell::Missing, Cell::Float);
        let [event, place, unit] = [counter.event, counter.place, counter.unit].map(Cell::Text);
        let row =
            vec![event, place, float(counter.value), unit, float(counter.running), Cell::Text(flag.into())];
        match ticks.last_mut().filter(|tick| tick.time == time) {
            Some(tick) => tick.rows.push(row),
            None => ticks.push(Tick { time, rows: vec![row] }),
        }
    }
    let given = Given::new("perf-stat", "perf stat -I", columns, ticks, took);
    Feed::open(Box::new(given)).map_err(|error| Fault::new(error.to_string()))
}
