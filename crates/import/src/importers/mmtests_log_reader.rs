//! Reading the logs of one benchmark of MMTests line by line, and keeping what became of each line.

use std::path::Path;

use indexmap::IndexMap;
use perflab_formats::finite_number::require_finite_number;
use perflab_formats::reading_parser::{LineOutcome, TextLine};
use perflab_model::{Direction, Nanos, Scalar};

use crate::benchmark_results::{
    BenchmarkResults, ImportedCaseId, ImportedExecutionId, ImportedMetricId, TimeRange,
};
use crate::error::ImportError;
use crate::import_report::FileReport;
use crate::imported_run::imported_metric;
use crate::input_lines::InputLines;

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
    require_finite_number(word)
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
