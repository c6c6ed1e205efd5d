//! Where the parsers of benchmarks put what they read: one benchmark of one iteration directory.

use std::path::Path;

use indexmap::IndexMap;
use perflab_model::{Direction, Nanos, Value};

use super::super::lines::{Line, Lines};
use super::super::results::{CaseId, ExecutionId, MetricId, Results, Span};
use super::super::story::metric;
use super::super::took::{Read, Took};
use crate::ArchiveError;

/// One benchmark of one `iter-N`.
pub(super) struct Bench<'a> {
    pub(super) name: &'a str,
    /// Which `iter-N` of the run, counted from 0.
    pub(super) boot: u32,
    /// When the benchmark ran.
    pub(super) span: Option<Span>,
    pub(super) results: &'a mut Results,
    pub(super) took: &'a mut Vec<Took>,
}

/// A metric as the parsers declare it: name, unit, direction.
pub(super) type Declared = (&'static str, &'static str, Direction);

impl Bench<'_> {
    /// The case at that point; whole numbers are numbers.
    pub(super) fn case(&mut self, point: &[(&str, &str)]) -> CaseId {
        let value = |text: &str| text.parse().map_or_else(|_| Value::from(text), Value::Int);
        let point = point.iter().map(|(name, text)| ((*name).to_owned(), value(text)));
        self.results.case(self.name, point.collect::<IndexMap<_, _>>())
    }

    pub(super) fn metric(&mut self, case: CaseId, (name, unit, direction): Declared) -> MetricId {
        self.named(case, name, unit, direction, true)
    }

    /// A metric that explains and does not decide.
    pub(super) fn explaining(&mut self, case: CaseId, (name, unit, direction): Declared) -> MetricId {
        self.named(case, name, unit, direction, false)
    }

    pub(super) fn named(
        &mut self,
        case: CaseId,
        name: &str,
        unit: &str,
        direction: Direction,
        primary: bool,
    ) -> MetricId {
        self.results.metric(case, metric(name, unit, direction, primary))
    }

    /// The next execution of a case.
    pub(super) fn execution(&mut self, case: CaseId) -> ExecutionId {
        self.results.execution(case, self.boot, self.span)
    }

    /// A value of an execution.
    pub(super) fn sample(&mut self, execution: ExecutionId, metric: MetricId, value: f64) {
        self.results.sample(execution, metric, value, None);
    }

    /// A value of a part of an execution.
    pub(super) fn sample_at(
        &mut self,
        execution: ExecutionId,
        metric: MetricId,
        value: f64,
        (from, to): (Nanos, Nanos),
    ) {
        self.results.sample(execution, metric, value, Some((from, to)));
    }

    /// Reads a file line by line; `row` says what became of a line that should hold a result. Gives what was taken of
    /// the file, for further remarks before it is [kept](Bench::keep).
    pub(super) fn read(
        &mut self,
        file: &Path,
        mut row: impl FnMut(&mut Self, Line<'_>) -> Option<Read>,
    ) -> Result<Took, ArchiveError> {
        let mut lines = Lines::among(file);
        let mut took = Took::of(file, "samples");
        while let Some(line) = lines.next()? {
            let number = line.number;
            if let Some(read) = row(self, line) {
                took.count(number, read);
            }
        }
        took.ended(&lines);
        Ok(took)
    }

    /// Keeps what was taken of a file; one without any result says so.
    pub(super) fn keep(&mut self, mut took: Took) {
        if took.rows_read == 0 && took.refused.is_none() {
            took.note(
                "there is no result in it: the benchmark was stopped or failed, or it is another's log",
            );
        }
        self.took.push(took);
    }
}

/// A number that a line shows behind `mark`, and whose digits are all there.
pub(super) fn behind(line: Line<'_>, mark: &str) -> Option<Result<f64, String>> {
    let (_, rest) = line.text.split_once(mark)?;
    Some(whole_number(line, rest))
}

/// The number that `rest`, a part of `line` up to its end, begins with.
pub(super) fn whole_number(line: Line<'_>, rest: &str) -> Result<f64, String> {
    let rest = rest.trim_ascii_start();
    let word = rest.split_ascii_whitespace().next().unwrap_or("");
    if !line.whole && word.len() == rest.len() {
        return Err(format!("the line is cut off, so that `{word}` may lack digits"));
    }
    number(word)
}

/// A finite number.
pub(super) fn number(word: &str) -> Result<f64, String> {
    let number = word.parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("`{}` is no number", word.chars().take(40).collect::<String>()))
}

/// What became of a row with that value.
pub(super) fn used(value: Result<f64, String>, take: impl FnOnce(f64)) -> Read {
    match value {
        Ok(value) => {
            take(value);
            Read::Used
        }
        Err(reason) => Read::Unusable(reason),
    }
}
