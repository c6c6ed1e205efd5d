//! Benchmark logs of MMTests that `mmtests.toml` declares: which files, and the `[[metric]]` rules that find values in their lines.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use perflab_formats::metric_rules::{ExtractionRule, MetricRule, MetricRuleDocument};
use perflab_formats::reading_parser::{LineOutcome, TextLine};
use regex::Regex;
use serde::Deserialize;

use crate::error::ImportError;
use crate::importers::mmtests_rules::{BenchmarkLogReader, parse_finite_number};
use crate::packed_folder::{NumberedLog, PackedFolder};

/// A benchmark as `mmtests.toml` declares it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredBenchmark {
    folder: String,
    #[serde(default)]
    named: String,
    logs: Vec<String>,
    parameters: Vec<String>,
    execution: DeclaredExecution,
    lines_with: Vec<String>,
    #[serde(default)]
    begins: Vec<String>,
    #[serde(rename = "metric")]
    documents: Vec<MetricRuleDocument>,
    #[serde(skip)]
    rules: Vec<LineRule>,
    /// `lines_with`, made ready to be looked for in hundreds of thousands of lines
    #[serde(skip)]
    marks: Vec<Finder<'static>>,
}

/// What an execution of a benchmark is in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeclaredExecution {
    /// every line with a value
    Line,
    /// the lines of a log, until a metric comes again
    Log,
}

/// The file.
#[derive(Deserialize)]
struct DeclaredBenchmarks {
    benchmark: Vec<DeclaredBenchmark>,
}

/// A metric, and what finds it in a line.
#[derive(Debug)]
struct LineRule {
    metric: MetricRule,
    regex: Regex,
}

static DECLARED: LazyLock<Vec<DeclaredBenchmark>> =
    LazyLock::new(|| read_declarations(include_str!("mmtests.toml")).unwrap_or_default());

/// Reads such a file; an error says what is wrong with it.
fn read_declarations(text: &str) -> Result<Vec<DeclaredBenchmark>, String> {
    let declared: DeclaredBenchmarks = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut all = declared.benchmark;
    for benchmark in &mut all {
        let marks = benchmark.lines_with.iter();
        benchmark.marks = marks.map(|mark| Finder::new(mark.as_bytes()).into_owned()).collect();
        for (number, document) in std::mem::take(&mut benchmark.documents).into_iter().enumerate() {
            let key = format!("{}.metric[{number}]", benchmark.folder);
            let metric = document
                .into_rule(&key)
                .map_err(|problem| format!("{}: {}", problem.key, problem.message))?;
            let ExtractionRule::Regex(regex) = metric.rule.clone() else {
                return Err(format!("{key}: only `regex` is asked of a line"));
            };
            benchmark.rules.push(LineRule { metric, regex });
        }
    }
    Ok(all)
}

/// What is declared of the benchmark in a folder of that name.
pub(crate) fn find_declared_benchmark(folder: &str) -> Option<&'static DeclaredBenchmark> {
    DECLARED.iter().find(|one| folder.starts_with(&one.folder) && folder.contains(&one.named))
}

impl DeclaredBenchmark {
    /// Reads its logs.
    pub(crate) fn read_logs(
        &self,
        folder: &PackedFolder,
        bench: &mut BenchmarkLogReader<'_>,
    ) -> Result<(), ImportError> {
        for name in &self.logs {
            for log in folder.numbered_logs(name) {
                if let Some(point) = self.case_point(&log) {
                    self.read_log(&log, &point, bench)?;
                }
            }
        }
        Ok(())
    }

    /// The parameters that a log's name gives; nothing where one of them is no number.
    fn case_point<'a>(&'a self, log: &NumberedLog<'a>) -> Option<Vec<(&'a str, &'a str)>> {
        let value = |(place, name): (usize, &'a String)| Some((name.as_str(), log.number_at(place)?));
        self.parameters.iter().enumerate().map(value).collect()
    }

    fn read_log(
        &self,
        log: &NumberedLog<'_>,
        point: &[(&str, &str)],
        bench: &mut BenchmarkLogReader<'_>,
    ) -> Result<(), ImportError> {
        let case = bench.case_at(point);
        if self.execution == DeclaredExecution::Line {
            for rule in &self.rules {
                bench.results.find_or_add_metric(case, rule.metric.metric.clone());
            }
        }
        let (mut begun, mut execution, mut seen) = (0, None, Vec::new());
        let mut report = bench.read_lines(log.path, |bench, line| {
            begun += u64::from(self.begins.iter().any(|begin| line.text.starts_with(begin)));
            let (number, rule, value) = self.find_value(line)?;
            let value = match value {
                Ok(value) => value,
                Err(reason) => return Some(LineOutcome::Unusable(reason)),
            };
            if self.execution == DeclaredExecution::Line || execution.is_none() || seen.contains(&number) {
                execution = Some(bench.next_execution(case));
                seen.clear();
            }
            seen.push(number);
            let metric = bench.results.find_or_add_metric(case, rule.metric.clone());
            let value = value * rule.scale;
            execution.into_iter().for_each(|execution| bench.add_sample(execution, metric, value));
            Some(LineOutcome::Used)
        })?;
        if begun > report.rows_read {
            report
                .add_note(format!("{} executions began in it and have no result", begun - report.rows_read));
        }
        bench.keep_report(report);
        Ok(())
    }

    /// The first rule that finds something in a line, its number, and the value, whose digits must all be there.
    fn find_value<'s>(&'s self, line: TextLine<'_>) -> Option<(usize, &'s MetricRule, Result<f64, String>)> {
        if !self.marks.iter().any(|mark| mark.find(line.text.as_bytes()).is_some()) {
            return None;
        }
        let found = |(number, rule): (usize, &'s LineRule)| {
            let value = rule.regex.captures(line.text)?.name("value")?;
            let is_cut = !line.whole && value.end() == line.text.len();
            let word = value.as_str();
            let value = match is_cut {
                true => Err(format!("the line is cut off, so that `{word}` may lack digits")),
                false => parse_finite_number(word),
            };
            Some((number, &rule.metric, value))
        };
        self.rules.iter().enumerate().find_map(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declarations_are_sound() {
        let declared = read_declarations(include_str!("mmtests.toml")).unwrap();
        assert!(declared.iter().all(|one| !one.rules.is_empty() && !one.logs.is_empty()));
        assert_eq!(find_declared_benchmark("sysbenchmutex").unwrap().named, "mutex");
        assert_eq!(find_declared_benchmark("sysbenchcpu").unwrap().named, "");
        assert!(find_declared_benchmark("netperf").is_none());
        assert!(read_declarations("benchmark = 1").is_err());
    }
}
