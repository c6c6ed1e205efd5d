//! The text of `go test -bench`: a line per execution, pairs of a value and a unit.

use std::borrow::Cow;
use std::collections::HashMap;

use indexmap::IndexMap;
use perflab_formats::reading_parser::LineOutcome;
use perflab_model::fact_table;
use perflab_model::go_unit::tidy_unit;
use perflab_model::{Direction, Scalar, UNKNOWN_PARAMETER};
use serde::Deserialize;

use crate::benchmark_results::ImportedCaseId;
use crate::document_import::{count_failed, count_unusable, open_document};
use crate::import_report::FileReport;
use crate::imported_run::{RunMetadata, imported_metric};
use crate::importer::{Importer, Recognition};
use crate::input_document::{DocumentError, InputDocument};
use crate::log_stream::LogStream;

/// Output of go test -bench, also with -json.
pub(crate) const IMPORTER: Importer = Importer {
    name: "go-bench",
    about: "output of go test -bench, also with -json",
    knows_boots: false,
    recognises: Recognition::File(|input| {
        input
            .document_with(&["Benchmark", "goos:", "pkg:", "--- FAIL: Benchmark", "{"])
            .is_some_and(is_go_bench_document)
    }),
    open: |path, options| open_document("go-bench", path, options, read_go_bench_document),
};

/// Facts of the lines before the benchmarks.
const FACTS: &[(&str, fact_table::FactKey)] =
    &[("goos", fact_table::GO_OS), ("goarch", fact_table::CPU_ARCHITECTURE), ("cpu", fact_table::CPU_MODEL)];

fn is_go_bench_document(document: &InputDocument) -> bool {
    unwrap_go_test_lines(document).0.iter().any(|line| {
        parse_go_bench_line(&line.text, line.whole).is_some_and(|line| line.is_ok())
            || parse_failed_benchmark(&line.text).is_some()
    })
}

/// A line of text, and in which line of the document it ends.
struct GoBenchText<'a> {
    number: u64,
    text: Cow<'a, str>,
    whole: bool,
}

/// What `go test -json` says in a line.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GoTestEvent {
    action: String,
    #[serde(default)]
    package: String,
    #[serde(default)]
    output: String,
}

/// The text of `go test`, also where `-json` wrapped it, which splits lines and mixes packages; and the numbers of lines
/// that hold neither.
fn unwrap_go_test_lines(document: &InputDocument) -> (Vec<GoBenchText<'_>>, Vec<u64>) {
    if !document.text.starts_with('{') {
        let plain = |(number, text, whole)| GoBenchText { number, text: Cow::Borrowed(text), whole };
        return (document.numbered_lines().map(plain).collect(), Vec::new());
    }
    let mut packages: IndexMap<String, GoPackage> = IndexMap::new();
    let mut broken = Vec::new();
    for (number, text, _) in document.numbered_lines() {
        match serde_json::from_str::<GoTestEvent>(text) {
            Ok(event) if event.action == "output" => {
                packages.entry(event.package).or_default().push_output(&event.output, number);
            }
            Ok(_) => {}
            Err(_) => broken.push(number),
        }
    }
    (packages.into_values().flat_map(GoPackage::into_lines).collect(), broken)
}

/// What one package printed: its lines, and one that has not ended.
#[derive(Default)]
struct GoPackage {
    texts: Vec<GoBenchText<'static>>,
    held: String,
    number: u64,
}

impl GoPackage {
    fn push_output(&mut self, output: &str, number: u64) {
        self.held.push_str(output);
        self.number = number;
        if self.held.ends_with('\n') {
            self.end_line(true);
        }
    }

    fn end_line(&mut self, whole: bool) {
        let text = std::mem::take(&mut self.held).trim_end_matches('\n').to_owned();
        self.texts.push(GoBenchText { number: self.number, text: Cow::Owned(text), whole });
    }

    fn into_lines(mut self) -> Vec<GoBenchText<'static>> {
        if !self.held.is_empty() {
            self.end_line(false);
        }
        self.texts
    }
}

/// A line of results: name, values with their units.
struct GoBenchLine<'a> {
    name: &'a str,
    pairs: Vec<(f64, &'a str)>,
}

/// What `Unit NAME KEY=VALUE …` says of a unit, by its tidied name: which way is good, and whether its values are exact.
#[derive(Debug, Default)]
struct UnitMetadata<'a>(HashMap<(String, &'a str), &'a str>);

impl<'a> UnitMetadata<'a> {
    /// Takes a line of it; the first value of a key holds.
    fn take_line(&mut self, text: &'a str) -> Option<Result<(), String>> {
        let mut words = text.strip_prefix("Unit")?.strip_prefix([' ', '\t'])?.split_ascii_whitespace();
        let Some(unit) = words.next() else { return Some(Err("it names no unit".into())) };
        for word in words {
            let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                return Some(Err(format!("`{word}` is not `KEY=VALUE`")));
            };
            let known = self.0.entry((tidy_unit(unit).0, key)).or_insert(value);
            if *known != value {
                return Some(Err(format!("`{key}` of `{unit}` is {known} above")));
            }
        }
        Some(Ok(()))
    }

    fn value(&self, unit: &str, key: &'a str) -> Option<&'a str> {
        self.0.get(&(tidy_unit(unit).0, key)).copied()
    }

    fn is_exact(&self, unit: &str) -> bool {
        self.value(unit, "assume") == Some("exact")
    }

    /// The direction that a line gives it, if any.
    fn direction(&self, unit: &str) -> Option<Direction> {
        Some(match self.value(unit, "better")? {
            "higher" => Direction::Higher,
            "lower" => Direction::Lower,
            _ => Direction::Neither,
        })
    }
}

fn read_go_bench_document(
    document: &InputDocument,
    metadata: &mut RunMetadata,
    report: &mut FileReport,
) -> Result<Vec<LogStream>, DocumentError> {
    let (lines, broken) = unwrap_go_test_lines(document);
    broken.into_iter().for_each(|number| count_unusable(report, number, "it is no whole JSON".into()));
    let packages = lines.iter().filter(|line| line.text.starts_with("pkg: ")).count();
    let mut units = UnitMetadata::default();
    // A unit's line holds for the whole file, wherever it stands.
    for GoBenchText { number, text, .. } in &lines {
        match units.take_line(text) {
            None => {}
            Some(Ok(())) => report.count_row(*number, LineOutcome::Nothing),
            Some(Err(reason)) => count_unusable(report, *number, reason),
        }
    }
    let results = || lines.iter().filter_map(|line| parse_go_bench_line(&line.text, line.whole)?.ok());
    let procs = common_procs(results());
    let failed = lines.iter().filter_map(|line| parse_failed_benchmark(&line.text));
    let names: Vec<&str> = results().map(|line| line.name).chain(failed).collect();
    // With a benchmark inside of another, the other fails as well.
    let is_outer = |name: &str| {
        names.iter().any(|inner| inner.strip_prefix(name).is_some_and(|rest| rest.starts_with('/')))
    };
    let mut package = "";
    for GoBenchText { number, text, whole } in &lines {
        let (number, whole) = (*number, *whole);
        match text.split_once(": ") {
            Some(("pkg", name)) => package = name.trim(),
            Some((name, value)) => add_go_fact(name, value.trim(), metadata),
            None => {}
        }
        let package_of_several = (packages > 1).then_some(package);
        if let Some(name) = parse_failed_benchmark(text).filter(|name| !is_outer(name)) {
            // Its result's name ends with the number of threads, unless it failed before it knew.
            let name = match (split_procs(name), procs) {
                ((_, Some(_)), _) => name.to_owned(),
                ((name, None), procs) => format!("{name}-{}", procs.unwrap_or(UNKNOWN_PARAMETER)),
            };
            let case = find_go_case(&name, package_of_several, metadata);
            let execution = metadata.results.next_execution(case, 0, None);
            metadata
                .results
                .find_or_add_metric(case, imported_metric("time", "ns/op", Direction::Lower, true));
            let reason = format!("`{name}` failed");
            metadata.results.mark_failed(execution, &reason);
            count_failed(report, number, reason);
        }
        match parse_go_bench_line(text, whole) {
            None => {}
            Some(Err(reason)) => count_unusable(report, number, reason),
            Some(Ok(line)) => {
                add_go_results(&line, package_of_several, &units, metadata);
                report.count_row(number, LineOutcome::Used);
            }
        }
    }
    Ok(Vec::new())
}

fn add_go_fact(name: &str, value: &str, metadata: &mut RunMetadata) {
    if let Some((_, ours)) = FACTS.iter().find(|(theirs, _)| *theirs == name) {
        metadata.facts.add(ours.clone(), value, "go test");
    }
}

/// `BenchmarkName/size=4-8   200   6202 ns/op   6400 B/op`; nothing where it is no benchmark's line.
fn parse_go_bench_line(text: &str, whole: bool) -> Option<Result<GoBenchLine<'_>, String>> {
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
        Some(numbers) => Some(Ok(GoBenchLine { name, pairs: numbers.into_iter().zip(units).collect() })),
        None => Some(Err(format!("a value of `{name}` is no number"))),
    }
}

/// `--- FAIL: BenchmarkName/size=4`, of a benchmark that failed; perflab's name of it.
fn parse_failed_benchmark(text: &str) -> Option<&str> {
    let rest = text.trim_start().strip_prefix("--- FAIL: Benchmark")?;
    rest.split_ascii_whitespace().next().filter(|_| !rest.starts_with(char::is_whitespace))
}

/// A benchmark's name, and the number of threads behind it; none where there is one thread.
fn split_procs(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('-') {
        Some((name, procs)) if procs == UNKNOWN_PARAMETER || procs.parse::<u32>().is_ok() => {
            (name, Some(procs))
        }
        _ => (name, None),
    }
}

/// The number of threads that all results of a file have.
fn common_procs<'a>(mut lines: impl Iterator<Item = GoBenchLine<'a>>) -> Option<&'a str> {
    let procs = |line: GoBenchLine<'a>| split_procs(line.name).1.unwrap_or("1");
    let first = procs(lines.next()?);
    lines.all(|line| procs(line) == first).then_some(first)
}

fn find_go_case(name: &str, package: Option<&str>, metadata: &mut RunMetadata) -> ImportedCaseId {
    let (name, procs) = split_procs(name);
    let procs = procs.unwrap_or("1");
    let mut parts = name.split('/');
    let workload = parts.next().unwrap_or(name);
    let value = |text: &str| text.parse().map_or_else(|_| Scalar::from(text), Scalar::Int);
    let mut point: IndexMap<String, Scalar> =
        package.map(|name| ("pkg".to_owned(), name.into())).into_iter().collect();
    for (place, part) in parts.enumerate() {
        let (key, text) = part
            .split_once('=')
            .map_or((format!("sub{}", place + 1), part), |(key, text)| (key.into(), text));
        point.insert(key, value(text));
    }
    point.insert("procs".into(), value(procs));
    metadata.results.find_or_add_case(workload, point)
}

fn add_go_results(
    line: &GoBenchLine<'_>,
    package: Option<&str>,
    units: &UnitMetadata<'_>,
    metadata: &mut RunMetadata,
) {
    let case = find_go_case(line.name, package, metadata);
    let execution = metadata.results.next_execution(case, 0, None);
    for (value, unit) in &line.pairs {
        let (value, unit) = scale_go_value(*value, unit);
        let (name, direction, primary) = go_unit_meaning(unit);
        let direction = units.direction(unit).unwrap_or(direction);
        if units.is_exact(unit) {
            metadata.results.mark_exact(name);
        }
        let id = metadata.results.find_or_add_metric(case, imported_metric(name, unit, direction, primary));
        metadata.results.add_sample(execution, id, value, None);
    }
}

/// Times and rates of other tools than `go test` have other prefixes: the same quantity has one unit.
fn scale_go_value(value: f64, unit: &str) -> (f64, &str) {
    match unit {
        "sec/op" => (value * 1e9, "ns/op"),
        "B/s" => (value / 1e6, "MB/s"),
        _ => (value, unit),
    }
}

/// The name of a unit's metric and which way is good. Of a unit that a benchmark made up, nobody knows.
fn go_unit_meaning(unit: &str) -> (&str, Direction, bool) {
    match unit {
        "ns/op" => ("time", Direction::Lower, true),
        "B/op" => ("allocated", Direction::Lower, false),
        "allocs/op" => ("allocations", Direction::Lower, false),
        "MB/s" => ("throughput", Direction::Higher, false),
        _ if unit.ends_with("/s") => (unit, Direction::Higher, false),
        _ => (unit, Direction::Neither, false),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_unit_says_what_is_good_and_what_is_exact() {
        let text = "BenchmarkX 1 100 text-bytes 3 p99-ns\nUnit text-bytes assume=exact better=lower\nUnit p99-sec better=lower\n\
                    Unit text-bytes better=higher\nUnit\tx\nUnit\nUnited 1\nUnit x better\nBenchmarkX 1 2 sec/op 5 B/s 1 x\n";
        let mut metadata = RunMetadata::default();
        let mut report = FileReport::new(Path::new("f"), "samples");
        let read = read_go_bench_document(&InputDocument::from_text(text), &mut metadata, &mut report);
        assert!(read.is_ok());
        let plan = metadata.results.to_plan();
        assert_eq!(plan.exact, ["text-bytes"]);
        let found: Vec<(&str, &str, Direction)> = plan.metrics["X"]
            .iter()
            .map(|one| (one.name.as_str(), one.unit.0.as_ref(), one.direction))
            .collect();
        let (lower, higher, neither) = (Direction::Lower, Direction::Higher, Direction::Neither);
        assert_eq!(
            found,
            [
                ("text-bytes", "text-bytes", lower),
                ("p99-ns", "p99-ns", lower),
                ("time", "ns/op", lower),
                ("throughput", "MB/s", higher),
                ("x", "x", neither)
            ]
        );
        assert_eq!(report.unusable.iter().map(|remark| remark.line).collect::<Vec<_>>(), [4, 8]);
    }

    #[test]
    fn a_benchmark_that_failed_is_an_execution_that_failed() {
        let read = |text: &str| {
            let mut metadata = RunMetadata::default();
            let document = InputDocument::from_text(text);
            assert!(is_go_bench_document(&document));
            read_go_bench_document(&document, &mut metadata, &mut FileReport::new(Path::new("f"), "samples"))
                .map(drop)
                .unwrap();
            let plan = metadata.results.to_plan();
            let labels: Vec<String> = plan.cases.iter().map(perflab_model::Case::label).collect();
            (labels, plan.slots.len(), metadata.results.len())
        };
        let mixed = "BenchmarkA-8 10 5 ns/op\n--- FAIL: BenchmarkA-8\n    x_test.go:3: no\n--- FAIL: BenchmarkB/n=1\n--- FAIL: BenchmarkB\nFAIL\n";
        assert_eq!(read(mixed), (vec!["A procs=8".into(), "B n=1 procs=8".into()], 3, 1));
        let failed = "goos: linux\n--- FAIL: BenchmarkA\n    x_test.go:3: no\nFAIL\nexit status 1\n";
        assert_eq!(read(failed), (vec!["A procs=?".into()], 1, 0));
        let plain = InputDocument::from_text("--- FAIL: TestA (0.00s)\nFAIL\n");
        assert!(!is_go_bench_document(&plain));
    }

    #[test]
    fn as_many_names_as_a_file_likes_are_each_found_once() {
        let units: String = (0..3000).map(|n| format!(" 1.5 u{n}")).collect();
        let mut metadata = RunMetadata::default();
        let document = InputDocument::from_text(&format!("BenchmarkX 1{units}\nBenchmarkX 1{units}\n"));
        read_go_bench_document(&document, &mut metadata, &mut FileReport::new(Path::new("f"), "samples"))
            .map(drop)
            .unwrap();
        let plan = metadata.results.to_plan();
        assert_eq!((plan.metrics["X"].len(), plan.cases.len(), plan.slots.len()), (3000, 1, 2));
        assert_eq!(metadata.results.len(), 6000);
    }
}
