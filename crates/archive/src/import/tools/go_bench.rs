//! The text of `go test -bench`: a line an execution, pairs of a value and a unit.

use std::borrow::Cow;

use indexmap::IndexMap;
use perflab_model::{Direction, Value as Parameter};
use serde::Deserialize;

use super::super::feed::Feed;
use super::super::story::{Story, metric};
use super::super::took::{Read, Took};
use super::{Document, Fault, left_out};

/// Facts of the lines before the benchmarks.
const FACTS: &[(&str, &str)] = &[("goos", "go.os"), ("goarch", "cpu.architecture"), ("cpu", "cpu.model")];

pub(super) fn looks(document: &Document) -> bool {
    lines(document).0.iter().any(|line| parse(&line.text, line.whole).is_some_and(|line| line.is_ok()))
}

/// A line of text, and in which line of the document it ends.
struct Text<'a> {
    number: u64,
    text: Cow<'a, str>,
    whole: bool,
}

/// What `go test -json` says in a line.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Said {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    output: String,
}

/// The text of `go test`, also where `-json` wrapped it, which splits lines and mixes packages; and the numbers of lines
/// that hold neither.
fn lines(document: &Document) -> (Vec<Text<'_>>, Vec<u64>) {
    if !document.text.starts_with('{') {
        let plain = |(number, text, whole)| Text { number, text: Cow::Borrowed(text), whole };
        return (document.lines().map(plain).collect(), Vec::new());
    }
    let mut packages: IndexMap<String, Package> = IndexMap::new();
    let mut broken = Vec::new();
    for (number, text, _) in document.lines() {
        match serde_json::from_str::<Said>(text) {
            Ok(said) if said.action == "output" => {
                packages.entry(said.package).or_default().add(&said.output, number);
            }
            Ok(_) => {}
            Err(_) => broken.push(number),
        }
    }
    (packages.into_values().flat_map(Package::texts).collect(), broken)
}

/// What one package printed: its lines, and one that has not ended.
#[derive(Default)]
struct Package {
    texts: Vec<Text<'static>>,
    held: String,
    number: u64,
}

impl Package {
    fn add(&mut self, output: &str, number: u64) {
        self.held.push_str(output);
        self.number = number;
        if self.held.ends_with('\n') {
            self.end(true);
        }
    }

    fn end(&mut self, whole: bool) {
        let text = std::mem::take(&mut self.held).trim_end_matches('\n').to_owned();
        self.texts.push(Text { number: self.number, text: Cow::Owned(text), whole });
    }

    fn texts(mut self) -> Vec<Text<'static>> {
        if !self.held.is_empty() {
            self.end(false);
        }
        self.texts
    }
}

/// A line of results: name, values with their units.
struct Line<'a> {
    name: &'a str,
    pairs: Vec<(f64, &'a str)>,
}

pub(super) fn read(document: &Document, story: &mut Story, took: &mut Took) -> Result<Vec<Feed>, Fault> {
    let (lines, broken) = lines(document);
    broken.into_iter().for_each(|number| left_out(took, number, "it is no whole JSON".into()));
    let packages = lines.iter().filter(|line| line.text.starts_with("pkg: ")).count();
    let mut package = "";
    for Text { number, text, whole } in &lines {
        let (number, whole) = (*number, *whole);
        match text.split_once(": ") {
            Some(("pkg", name)) => package = name.trim(),
            Some((name, value)) => fact(name, value.trim(), story),
            None => {}
        }
        match parse(text, whole) {
            None => {}
            Some(Err(reason)) => left_out(took, number, reason),
            Some(Ok(line)) => {
                tell(&line, (packages > 1).then_some(package), story);
                took.count(number, Read::Used);
            }
        }
    }
    Ok(Vec::new())
}

fn fact(name: &str, value: &str, story: &mut Story) {
    if let Some((_, ours)) = FACTS.iter().find(|(theirs, _)| *theirs == name) {
        story.facts.add(ours, value, "go test");
    }
}

/// `BenchmarkName/size=4-8   200   6202 ns/op   6400 B/op`; nothing where it is no benchmark's line.
fn parse(text: &str, whole: bool) -> Option<Result<Line<'_>, String>> {
    let rest = text.strip_prefix("Benchmark")?;
    let mut words = rest.split_ascii_whitespace();
    let name = words.next().filter(|_| !rest.starts_with(char::is_whitespace))?;
    let words: Vec<&str> = words.collect();
    let Some((count, pairs)) = words.split_first() else {
        // Its name alone is printed before a benchmark that logs, or that failed.
        return None;
    };
    if count.parse::<u64>().is_err() || pairs.is_empty() || pairs.len() % 2 == 1 || !whole {
        return Some(Err(format!("`{name}` is not followed by a count and pairs of value and unit")));
    }
    let pair = |pair: &[&'_ str]| Some((pair.first()?.parse::<f64>().ok().filter(|v| v.is_finite())?, ()));
    let numbers: Option<Vec<f64>> = pairs.chunks(2).map(|chunk| Some(pair(chunk)?.0)).collect();
    let units = pairs.chunks(2).filter_map(|chunk| chunk.get(1).copied());
    match numbers {
        Some(numbers) => Some(Ok(Line { name, pairs: numbers.into_iter().zip(units).collect() })),
        None => Some(Err(format!("a value of `{name}` is no number"))),
    }
}

fn tell(line: &Line<'_>, package: Option<&str>, story: &mut Story) {
    let (name, procs) = match line.name.rsplit_once('-') {
        Some((name, procs)) if procs.parse::<u32>().is_ok() => (name, procs),
        _ => (line.name, "1"),
    };
    let mut parts = name.split('/');
    let workload = parts.next().unwrap_or(name);
    let value = |text: &str| text.parse().map_or_else(|_| Parameter::from(text), Parameter::Int);
    let mut point: IndexMap<String, Parameter> =
        package.map(|name| ("pkg".to_owned(), name.into())).into_iter().collect();
    for (place, part) in parts.enumerate() {
        let (key, text) = part
            .split_once('=')
            .map_or((format!("sub{}", place + 1), part), |(key, text)| (key.into(), text));
        point.insert(key, value(text));
    }
    point.insert("procs".into(), value(procs));
    let case = story.results.case(workload, point);
    let execution = story.results.execution(case, 0, None);
    for (value, unit) in &line.pairs {
        let (name, direction, primary) = meaning(unit);
        let id = story.results.metric(case, metric(name, unit, direction, primary));
        story.results.sample(execution, id, *value, None);
    }
}

/// The name of a unit's metric and which way is good. Of a unit that a benchmark made up, nobody knows.
fn meaning(unit: &str) -> (&str, Direction, bool) {
    match unit {
        "ns/op" | "sec/op" => ("time", Direction::Lower, true),
        "B/op" => ("allocated", Direction::Lower, false),
        "allocs/op" => ("allocations", Direction::Lower, false),
        "MB/s" | "B/s" => ("throughput", Direction::Higher, false),
        _ if unit.ends_with("/s") => (unit, Direction::Higher, false),
        _ => (unit, Direction::Neither, false),
    }
}
