//! Benchmark logs of MMTests that `mmtests.toml` declares: which files, what an execution is in them, and the `[[metric]]`
//! rules that find values in their lines.

use std::sync::LazyLock;

use indexmap::{IndexMap, IndexSet};
use memchr::memmem::Finder;
use perflab_formats::metric_lines::{LineFindError, LineFinder};
use perflab_formats::metric_rules::{
    ExtractionRule, MetricAggregate, MetricFind, MetricRule, MetricRuleDocument, OutputStream,
};
use perflab_formats::reading_parser::{LineOutcome, TextLine};
use perflab_model::{Metric, Scalar};
use regex::Regex;
use serde::Deserialize;

use crate::benchmark_results::{ImportedCaseId, ImportedExecutionId};
use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::importers::mmtests_log_reader::BenchmarkLogReader;
use crate::packed_folder::PackedFolder;

const FILE: &str = "mmtests.toml";

/// Names and values of a case's parameters.
type CasePoint = IndexMap<String, Scalar>;

/// A benchmark as `mmtests.toml` declares it.
#[derive(Debug)]
pub(crate) struct DeclaredBenchmark {
    document: BenchmarkDocument,
    logs: Vec<Regex>,
    rules: Vec<MetricRule>,
    line_parameters: IndexMap<String, Regex>,
    /// `lines_with`, made ready to be looked for in hundreds of thousands of lines
    marks: Vec<Finder<'static>>,
}

/// The table as it is written; the file says what each key is.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BenchmarkDocument {
    #[serde(default)]
    folders: Vec<String>,
    #[serde(default)]
    named: String,
    beside: Option<String>,
    logs: Vec<String>,
    #[serde(default)]
    line_parameters: IndexMap<String, String>,
    execution: DeclaredExecution,
    #[serde(default)]
    lines_with: Vec<String>,
    #[serde(default)]
    begins: Vec<String>,
    #[serde(default, rename = "metric")]
    metrics: Vec<MetricRuleDocument>,
}

/// What an execution of a benchmark is in its logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DeclaredExecution {
    /// every line with a value
    Line,
    /// the lines of a log, until a metric comes again
    Round,
    /// a log
    Log,
    /// all logs of the same parameters
    Parameters,
}

/// The file.
#[derive(Deserialize)]
struct BenchmarksDocument {
    benchmark: Vec<BenchmarkDocument>,
}

static DECLARED: LazyLock<Result<Vec<DeclaredBenchmark>, String>> =
    LazyLock::new(|| read_declarations(include_str!("mmtests.toml")));

/// Reads such a file; an error says what is wrong with it.
fn read_declarations(text: &str) -> Result<Vec<DeclaredBenchmark>, String> {
    let documents: BenchmarksDocument = toml::from_str(text).map_err(|error| error.to_string())?;
    documents.benchmark.into_iter().map(DeclaredBenchmark::compile).collect()
}

fn declared_benchmarks() -> Result<&'static [DeclaredBenchmark], ImportError> {
    let declared = DECLARED.as_ref();
    let wrong = |reason: &String| ImportError::Declaration { file: FILE, reason: reason.clone() };
    declared.map(Vec::as_slice).map_err(wrong)
}

impl DeclaredBenchmark {
    fn compile(mut document: BenchmarkDocument) -> Result<Self, String> {
        let title = document.folders.first().or(document.beside.as_ref()).cloned().unwrap_or_default();
        let regex = |text: String| Regex::new(&text).map_err(|error| format!("{title}: {error}"));
        let logs = document.logs.iter().map(|log| regex(format!("^(?:{log})$"))).collect::<Result<_, _>>()?;
        let line_parameters = document.line_parameters.iter();
        let line_parameters = line_parameters
            .map(|(name, text)| Ok((name.clone(), regex(text.clone())?)))
            .collect::<Result<_, String>>()?;
        let mut rules = Vec::new();
        for (number, metric) in std::mem::take(&mut document.metrics).into_iter().enumerate() {
            let key = format!("{title}.metric[{number}]");
            let rule =
                metric.into_rule(&key).map_err(|problem| format!("{}: {}", problem.key, problem.message))?;
            let of_document = matches!(rule.rule, ExtractionRule::Json(_) | ExtractionRule::Wall);
            if of_document || rule.from != OutputStream::Stdout {
                return Err(format!("{key}: a log has lines, and no other output"));
            }
            let by_log = matches!(document.execution, DeclaredExecution::Log | DeclaredExecution::Parameters);
            if rule.aggregate != MetricAggregate::Each && !by_log {
                return Err(format!(
                    "{key}: an execution has one value of a metric: write `aggregate = \"each\"`"
                ));
            }
            rules.push(rule);
        }
        if rules.is_empty() || document.logs.is_empty() || title.is_empty() {
            return Err(format!("`{title}`: it needs a folder, logs and metrics"));
        }
        let marks = document.lines_with.iter();
        let marks = marks.map(|mark| Finder::new(mark.as_bytes()).into_owned()).collect();
        Ok(DeclaredBenchmark { document, logs, rules, line_parameters, marks })
    }

    /// What is declared of the benchmark in a folder of that name.
    pub(crate) fn find(folder: &str) -> Result<Option<&'static Self>, ImportError> {
        let is_of = |one: &&Self| {
            let begins = one.document.folders.iter().any(|begin| folder.starts_with(begin));
            begins && folder.contains(&one.document.named)
        };
        Ok(declared_benchmarks()?.iter().find(is_of))
    }

    /// What is read beside the own logs of any benchmark.
    pub(crate) fn beside_others() -> Result<impl Iterator<Item = &'static Self>, ImportError> {
        Ok(declared_benchmarks()?.iter().filter(|one| one.document.beside.is_some()))
    }

    /// Whether a file of that name is one of its logs.
    pub(crate) fn reads_log(&self, name: &str) -> bool {
        self.logs.iter().any(|pattern| self.name_point(pattern, name).is_some())
    }

    /// Reads its logs; whether its primary metrics are to decide.
    pub(crate) fn read_logs(
        &self,
        folder: &PackedFolder,
        bench: &mut BenchmarkLogReader<'_>,
        decide: bool,
    ) -> Result<(), ImportError> {
        let mut kept = KeptExecutions::default();
        for pattern in &self.logs {
            let known: IndexSet<String> = kept.0.keys().cloned().collect();
            for (name, path) in folder.iter() {
                let Some(point) = self.name_point(pattern, name) else { continue };
                let key = format!("{point:?}");
                if self.document.execution == DeclaredExecution::Parameters && known.contains(&key) {
                    continue;
                }
                let mut log = DeclaredLog::new(self, point, decide);
                let mut report = bench.read_lines(path, |bench, line| log.take_line(line, bench))?;
                log.finish(bench, &mut report, &mut kept, key);
                bench.keep_report(report);
            }
        }
        Ok(())
    }

    /// The parameters that a log's name gives, if it is one.
    fn name_point(&self, pattern: &Regex, name: &str) -> Option<CasePoint> {
        let name = name.strip_suffix(".log").unwrap_or(name);
        let captures = pattern.captures(name)?;
        let group = |group: &str| Some((group.to_owned(), self.parameter(captures.name(group)?.as_str())));
        Some(pattern.capture_names().flatten().filter_map(group).collect())
    }

    /// Whole numbers are numbers; what is beside a benchmark names one of its parts, whatever it looks like.
    fn parameter(&self, text: &str) -> Scalar {
        match text.parse() {
            Ok(number) if self.document.beside.is_none() => Scalar::Int(number),
            _ => text.into(),
        }
    }

    fn find_case(&self, point: &CasePoint, bench: &mut BenchmarkLogReader<'_>) -> ImportedCaseId {
        let workload = match &self.document.beside {
            Some(beside) => format!("{}-{beside}", bench.name),
            None => bench.name.to_owned(),
        };
        bench.results.find_or_add_case(&workload, point.clone())
    }

    fn is_looked_at(&self, line: &str) -> bool {
        self.marks.is_empty() || self.marks.iter().any(|mark| mark.find(line.as_bytes()).is_some())
    }
}

/// Executions that several logs are of, by their parameters.
#[derive(Default)]
struct KeptExecutions(IndexMap<String, ImportedExecutionId>);

/// A log that is being read.
struct DeclaredLog<'d> {
    benchmark: &'d DeclaredBenchmark,
    finders: Vec<LineFinder<'d>>,
    point: CasePoint,
    decide: bool,
    /// Executions that began.
    begun: u64,
    /// The one that goes on, with the rules that gave it a value.
    execution: Option<ImportedExecutionId>,
    seen: Vec<(usize, Option<String>)>,
    /// What waits for the end of the log: rule and find.
    found: Vec<(usize, MetricFind)>,
}

impl<'d> DeclaredLog<'d> {
    fn new(benchmark: &'d DeclaredBenchmark, point: CasePoint, decide: bool) -> Self {
        DeclaredLog {
            benchmark,
            finders: benchmark.rules.iter().map(LineFinder::new).collect(),
            point,
            decide,
            begun: 0,
            execution: None,
            seen: Vec::new(),
            found: Vec::new(),
        }
    }

    fn take_line(&mut self, line: TextLine<'_>, bench: &mut BenchmarkLogReader<'_>) -> Option<LineOutcome> {
        let document = &self.benchmark.document;
        self.begun += u64::from(document.begins.iter().any(|begin| line.text.starts_with(begin)));
        self.take_parameters(line.text);
        if !self.benchmark.is_looked_at(line.text) {
            return None;
        }
        let finders = self.finders.iter_mut().enumerate();
        let found: Result<Vec<(usize, MetricFind)>, LineFindError> =
            finders.filter_map(|(rule, finder)| Some(finder.find(line)?.map(|find| (rule, find)))).collect();
        let found = match found {
            Ok(found) if found.is_empty() => return None,
            Ok(found) => found,
            Err(error) => return Some(LineOutcome::Unusable(error.to_string())),
        };
        match document.execution {
            DeclaredExecution::Line => {
                let case = self.begin_execution(bench);
                found.into_iter().for_each(|(rule, find)| self.add_find(case, rule, &find, bench));
            }
            DeclaredExecution::Round => {
                for (rule, find) in found {
                    let key = (rule, find.name.clone());
                    let case = match self.execution {
                        Some(_) if !self.seen.contains(&key) => self.benchmark.find_case(&self.point, bench),
                        _ => self.begin_execution(bench),
                    };
                    self.seen.push(key);
                    self.add_find(case, rule, &find, bench);
                }
            }
            DeclaredExecution::Log | DeclaredExecution::Parameters => self.found.extend(found),
        }
        Some(LineOutcome::Used)
    }

    /// Parameters that stand in the log and not in its name.
    fn take_parameters(&mut self, line: &str) {
        for (name, regex) in &self.benchmark.line_parameters {
            if !self.point.contains_key(name)
                && let Some(value) = regex.captures(line).and_then(|found| found.name("value"))
            {
                self.point.insert(name.clone(), self.benchmark.parameter(value.as_str()));
            }
        }
    }

    fn begin_execution(&mut self, bench: &mut BenchmarkLogReader<'_>) -> ImportedCaseId {
        let case = self.benchmark.find_case(&self.point, bench);
        self.execution = Some(bench.next_execution(case));
        self.seen.clear();
        case
    }

    fn add_find(
        &self,
        case: ImportedCaseId,
        rule: usize,
        find: &MetricFind,
        bench: &mut BenchmarkLogReader<'_>,
    ) {
        let (Some(rule), Some(execution)) = (self.benchmark.rules.get(rule), self.execution) else { return };
        let metric = rule.metric_of(find);
        let metric = Metric { primary: metric.primary && self.decide, ..metric };
        let id = bench.results.find_or_add_metric(case, metric);
        bench.add_sample(execution, id, find.value);
    }

    /// Adds what waited for the end of the log.
    fn finish(
        mut self,
        bench: &mut BenchmarkLogReader<'_>,
        report: &mut FileReport,
        kept: &mut KeptExecutions,
        key: String,
    ) {
        if self.begun > report.rows_read {
            let without = self.begun - report.rows_read;
            report.add_note(format!("{without} executions began in it and have no result"));
        }
        let found = self.aggregate_finds();
        if found.is_empty() {
            return;
        }
        let known =
            kept.0.get(&key).filter(|_| self.benchmark.document.execution == DeclaredExecution::Parameters);
        let case = match known {
            Some(execution) => {
                self.execution = Some(*execution);
                self.benchmark.find_case(&self.point, bench)
            }
            None => self.begin_execution(bench),
        };
        kept.0.extend(self.execution.map(|execution| (key, execution)));
        found.iter().for_each(|(rule, find)| self.add_find(case, *rule, find, bench));
    }

    /// One find of each name where its rule makes one value of several.
    fn aggregate_finds(&mut self) -> Vec<(usize, MetricFind)> {
        let found = std::mem::take(&mut self.found);
        let mut several: IndexMap<(usize, Option<String>), (MetricFind, Vec<f64>)> = IndexMap::new();
        let mut kept = Vec::new();
        for (place, find) in found {
            match self.benchmark.rules.get(place).map(|rule| rule.aggregate) {
                None => {}
                Some(MetricAggregate::Each) => kept.push((place, find)),
                Some(_) => {
                    let key = (place, find.name.clone());
                    let value = find.value;
                    several.entry(key).or_insert_with(|| (find, Vec::new())).1.push(value);
                }
            }
        }
        for ((place, _), (find, values)) in several {
            let aggregate = self.benchmark.rules.get(place).map(|rule| rule.aggregate).unwrap_or_default();
            kept.extend(aggregate.of(&values).map(|value| (place, MetricFind { value, ..find })));
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declarations_are_sound() {
        let named =
            |folder: &str| DeclaredBenchmark::find(folder).unwrap().map(|one| one.document.named.clone());
        assert_eq!(named("sysbenchmutex").as_deref(), Some("mutex"));
        assert_eq!(named("sysbenchcpu").as_deref(), Some(""));
        assert_eq!(named("netperf"), None);
        for folder in ["stream", "dbench4", "tbench4", "redis", "redis-memtier", "hackbench-process-pipes"] {
            assert!(named(folder).is_some(), "{folder}");
        }
        assert_eq!(DeclaredBenchmark::beside_others().unwrap().count(), 1);
        assert!(read_declarations("benchmark = 1").is_err());
        assert!(
            read_declarations("[[benchmark]]\nfolders = [\"x\"]\nlogs = [\"x\"]\nexecution = \"log\"")
                .is_err()
        );
    }
}
