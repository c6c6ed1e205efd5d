//! From what a workload printed to measured values.
//!
//! Owns the rules of `[[metric]]`. Refuses what is not a finite number, and never makes one up: a
//! rule that finds nothing is an error that names the metric and the rule.

mod aggregate;
mod find;

pub(crate) use aggregate::median;

use perflab_model::{Metric, Nanos};

use crate::Definition;
use crate::definition::{MetricRule, Rule, Stream};

/// One value of one metric, in the metric's unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What was measured.
    pub metric: Metric,
    /// A finite number.
    pub value: f64,
}

/// Why an output is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The rule found nothing.
    #[error("metric `{metric}`: {rule} found nothing in {from} ({shown})")]
    NothingFound {
        /// the metric
        metric: String,
        /// its rule
        rule: String,
        /// where it looked
        from: Stream,
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
        from: Stream,
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

impl Definition {
    /// All metrics of one execution. `wall` is its length, for rules `time = "wall"`.
    ///
    /// Optional metrics that are not there are left out. The first rule that fails is the error.
    pub fn parse(&self, stdout: &str, stderr: &str, wall: Nanos) -> Result<Vec<Measured>, ParseError> {
        let output = Output { stdout, stderr, wall };
        let measured = self.rules.iter().map(|rule| output.measure(rule));
        measured.filter_map(Result::transpose).collect()
    }
}

/// What one execution left behind.
struct Output<'a> {
    stdout: &'a str,
    stderr: &'a str,
    wall: Nanos,
}

impl Output<'_> {
    fn measure(&self, rule: &MetricRule) -> Result<Option<Measured>, ParseError> {
        let numbers = self.numbers(rule)?;
        let Some(number) = aggregate::one(&numbers, rule.aggregate) else {
            return if rule.optional { Ok(None) } else { Err(self.nothing(rule)) };
        };
        let value = number * rule.scale;
        if !value.is_finite() {
            return Err(not_a_number(rule, &value.to_string()));
        }
        Ok(Some(Measured { metric: rule.metric.clone(), value }))
    }

    fn numbers(&self, rule: &MetricRule) -> Result<Vec<f64>, ParseError> {
        if let Rule::Wall = rule.rule {
            return Ok(vec![self.wall.seconds()]);
        }
        let texts =
            find::texts(&rule.rule, self.text(rule.from)).map_err(|reason| ParseError::WrongFormat {
                metric: rule.metric.name.clone(),
                rule: rule.rule.to_string(),
                from: rule.from,
                reason,
            })?;
        texts.iter().map(|text| number(text).ok_or_else(|| not_a_number(rule, text))).collect()
    }

    fn text(&self, from: Stream) -> &str {
        match from {
            Stream::Stdout => self.stdout,
            Stream::Stderr => self.stderr,
        }
    }

    fn nothing(&self, rule: &MetricRule) -> ParseError {
        ParseError::NothingFound {
            metric: rule.metric.name.clone(),
            rule: rule.rule.to_string(),
            from: rule.from,
            shown: shown(self.text(rule.from)),
        }
    }
}

/// A finite number, with or without commas between thousands.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let parsed = text.parse::<f64>().or_else(|_| text.replace(',', "").parse::<f64>());
    parsed.ok().filter(|number| number.is_finite())
}

fn not_a_number(rule: &MetricRule, text: &str) -> ParseError {
    let text = text.chars().take(60).collect();
    ParseError::NotANumber { metric: rule.metric.name.clone(), rule: rule.rule.to_string(), text }
}

/// The first line with something in it, short enough for a message.
fn shown(text: &str) -> String {
    match text.lines().map(str::trim).find(|line| !line.is_empty()) {
        None => "it is empty".into(),
        Some(line) => format!("it begins `{}`", line.chars().take(60).collect::<String>()),
    }
}

#[cfg(test)]
mod tests;
