//! Where the parsers of benchmarks put what they read: one benchmark of one iteration directory.

use std::path::Path;

use indexmap::IndexMap;
use perflab_model::{Direction, Nanos, Scalar};

use super::super::lines::{InputLines, LogLine};
use super::super::results::{
    BenchmarkResults, ImportedCaseId, ImportedExecutionId, ImportedMetricId, TimeRange,
};
use super::super::story::imported_metric;
use super::super::took::{FileReport, LineOutcome};
use crate::ArchiveError;

/// One benchmark of one `iter-N`.
pub(super) struct BenchmarkLogReader<'a> {
    pub(super) name: &'a str,
    /// Which `iter-N` of the run, counted from 0.
    pub(super) boot: u32,
    /// When the benchmark ran.
    pub(super) span: Option<TimeRange>,
    pub(super) results: &'a mut BenchmarkResults,
    pub(super) took: &'a mut Vec<FileReport>,
}

/// A metric as the parsers declare it: name, unit, direction.
pub(super) type DeclaredMetric = (&'static str, &'static str, Direction);

impl BenchmarkLogReader<'_> {
    /// The case at that point; whole numbers are numbers.
    pub(super) fn case_at(&mut self, point: &[(&str, &str)]) -> ImportedCaseId {
        let value = |text: &str| text.parse().map_or_else(|_| Scalar::from(text), Scalar::Int);
        let point = point.iter().map(|(name, text)| ((*name).to_owned(), value(text)));
        self.results.find_or_add_case(self.name, point.collect::<IndexMap<_, _>>())
    }

    pub(super) fn primary_metric(
        &mut self,
        case: ImportedCaseId,
        (name, unit, direction): DeclaredMetric,
    ) -> ImportedMetricId {
        self.metric_named(case, name, unit, direction, true)
    }

    /// A metric that explains and does not decide.
    pub(super) fn secondary_metric(
        &mut self,
        case: ImportedCaseId,
        (name, unit, direction): DeclaredMetric,
    ) -> ImportedMetricId {
        self.metric_named(case, name, unit, direction, false)
    }

    pub(super) fn metric_named(
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
    pub(super) fn next_execution(&mut self, case: ImportedCaseId) -> ImportedExecutionId {
        self.results.next_execution(case, self.boot, self.span)
    }

    /// A value of an execution.
    pub(super) fn add_sample(
        &mut self,
        execution: ImportedExecutionId,
        metric: ImportedMetricId,
        value: f64,
    ) {
        self.results.add_sample(execution, metric, value, None);
    }

    /// A value of a part of an execution.
    pub(super) fn add_sample_at(
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
    pub(super) fn read_lines(
        &mut self,
        file: &Path,
        mut row: impl FnMut(&mut Self, LogLine<'_>) -> Option<LineOutcome>,
    ) -> Result<FileReport, ArchiveError> {
        let mut lines = InputLines::open_optional(file);
        let mut took = FileReport::new(file, "samples");
        while let Some(line) = lines.next_line()? {
            let number = line.number;
            if let Some(read) = row(self, line) {
                took.count_row(number, read);
            }
        }
        took.note_early_end(&lines);
        Ok(took)
    }

    /// Keeps what was taken of a file; one without any result says so.
    pub(super) fn keep_report(&mut self, mut took: FileReport) {
        if took.rows_read == 0 && took.refused.is_none() {
            took.add_note(
                "there is no result in it: the benchmark was stopped or failed, or it is another's log",
            );
        }
        self.took.push(took);
    }
}

/// A number that a line shows behind `mark`, and whose digits are all there.
pub(super) fn number_after(line: LogLine<'_>, mark: &str) -> Option<Result<f64, String>> {
    let (_, rest) = line.text.split_once(mark)?;
    Some(parse_whole_number(line, rest))
}

/// The number that `rest`, a part of `line` up to its end, begins with.
pub(super) fn parse_whole_number(line: LogLine<'_>, rest: &str) -> Result<f64, String> {
    let rest = rest.trim_ascii_start();
    let word = rest.split_ascii_whitespace().next().unwrap_or("");
    if !line.whole && word.len() == rest.len() {
        return Err(format!("the line is cut off, so that `{word}` may lack digits"));
    }
    parse_finite_number(word)
}

/// A finite number.
pub(super) fn parse_finite_number(word: &str) -> Result<f64, String> {
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("`{}` is no number", word.chars().take(40).collect::<String>()))
}

/// What became of a row with that value.
pub(super) fn outcome_of(value: Result<f64, String>, take: impl FnOnce(f64)) -> LineOutcome {
    match value {
        Ok(value) => {
            take(value);
            LineOutcome::Used
        }
        Err(reason) => LineOutcome::Unusable(reason),
    }
}
