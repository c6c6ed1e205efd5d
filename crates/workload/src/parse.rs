//! From what a workload printed to measured values.
//!
//! Owns the rules of `[[metric]]`. Refuses what is not a finite number, and never makes one up: a
//! rule that finds nothing is an error that names the metric and the rule.

mod aggregate;
mod find;

pub(crate) use aggregate::median;

use perflab_model::{Metric, Nanos};

use crate::WorkloadDefinition;
use crate::definition::{ExtractionRule, MetricRule, OutputStream};

/// One value of one metric, in the metric's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricValue {
    /// What was measured.
    pub metric: Metric,
    /// A finite number.
    pub value: f64,
}

/// Why an output is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetricParseError {
    /// The rule found nothing.
    #[error("metric `{metric}`: {rule} found nothing in {from} ({shown})")]
    NothingFound {
        /// the metric
        metric: String,
        /// its rule
        rule: String,
        /// where it looked
        from: OutputStream,
        /// the beginning of what was there
        shown: String,
    },
    /// The output is not in the rule's format.
    #[error("metric `{metric}`: {rule}: {from} is not understood: {reason}")]
    WrongFormat {
        /// the metric
        metric: String,
        /// its rule
        rule: String,
        /// where it looked
        from: OutputStream,
        /// why
        reason: String,
    },
    /// What was found is not a finite number.
    #[error("metric `{metric}`: {rule} found `{text}`, which is not a finite number")]
    NotANumber {
        /// the metric
        metric: String,
        /// its rule
        rule: String,
        /// what was found
        text: String,
    },
}

impl WorkloadDefinition {
    /// All metrics of one execution. `wall` is its length, for rules `time = "wall"`.
    ///
    /// Optional metrics that are not there are left out. The first rule that fails is the error.
    pub fn parse_metrics(
        &self,
        stdout: &str,
        stderr: &str,
        wall: Nanos,
    ) -> Result<Vec<MetricValue>, MetricParseError> {
        let output = ExecutionOutput { stdout, stderr, wall };
        let measured = self.rules.iter().map(|rule| output.measure(rule));
        measured.filter_map(Result::transpose).collect()
    }
}

/// What one execution left behind.
struct ExecutionOutput<'a> {
    stdout: &'a str,
    stderr: &'a str,
    wall: Nanos,
}

impl ExecutionOutput<'_> {
    fn measure(&self, rule: &MetricRule) -> Result<Option<MetricValue>, MetricParseError> {
        let numbers = self.find_numbers(rule)?;
        let Some(number) = aggregate::aggregate_numbers(&numbers, rule.aggregate) else {
            return if rule.optional { Ok(None) } else { Err(self.nothing_found_error(rule)) };
        };
        let value = number * rule.scale;
        if !value.is_finite() {
            return Err(not_a_number_error(rule, &value.to_string()));
        }
        Ok(Some(MetricValue { metric: rule.metric.clone(), value }))
    }

    fn find_numbers(&self, rule: &MetricRule) -> Result<Vec<f64>, MetricParseError> {
        if let ExtractionRule::Wall = rule.rule {
            return Ok(vec![self.wall.seconds()]);
        }
        let texts = find::find_texts(&rule.rule, self.stream_text(rule.from)).map_err(|reason| {
            MetricParseError::WrongFormat {
                metric: rule.metric.name.clone(),
                rule: rule.rule.to_string(),
                from: rule.from,
                reason,
            }
        })?;
        texts
            .iter()
            .map(|text| parse_finite_number(text).ok_or_else(|| not_a_number_error(rule, text)))
            .collect()
    }

    fn stream_text(&self, from: OutputStream) -> &str {
        match from {
            OutputStream::Stdout => self.stdout,
            OutputStream::Stderr => self.stderr,
        }
    }

    fn nothing_found_error(&self, rule: &MetricRule) -> MetricParseError {
        MetricParseError::NothingFound {
            metric: rule.metric.name.clone(),
            rule: rule.rule.to_string(),
            from: rule.from,
            shown: shorten_first_line(self.stream_text(rule.from)),
        }
    }
}

/// A finite number, with or without commas between thousands.
fn parse_finite_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let parsed = text.parse::<f64>().or_else(|_| text.replace(',', "").parse::<f64>());
    parsed.ok().filter(|number| number.is_finite())
}

fn not_a_number_error(rule: &MetricRule, text: &str) -> MetricParseError {
    let text = text.chars().take(60).collect();
    MetricParseError::NotANumber { metric: rule.metric.name.clone(), rule: rule.rule.to_string(), text }
}

/// The first line with something in it, short enough for a message.
fn shorten_first_line(text: &str) -> String {
    match text.lines().map(str::trim).find(|line| !line.is_empty()) {
        None => "it is empty".into(),
        Some(line) => format!("it begins `{}`", line.chars().take(60).collect::<String>()),
    }
}

#[cfg(test)]
mod tests;
