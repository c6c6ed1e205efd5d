//! `[parameter.NAME]`: what a user may turn, with its type, its default and its range.

use std::fmt;

use perflab_model::{Bytes, Nanos, Scalar};
use serde::Deserialize;

/// One parameter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadParameter {
    /// What its values are.
    #[serde(rename = "type")]
    pub kind: ParameterKind,
    /// Its value where a study gives none; may be an expression over the host.
    pub default: Scalar,
    /// What a number counts, for people: `threads`, `messages`.
    #[serde(default)]
    pub unit: Option<String>,
    /// The smallest allowed value.
    #[serde(default)]
    pub min: Option<Scalar>,
    /// The largest allowed value.
    #[serde(default)]
    pub max: Option<Scalar>,
    /// The allowed values, for a choice.
    #[serde(default)]
    pub choices: Vec<String>,
    /// One line of help.
    pub about: String,
}

/// What the values of a parameter are, and as what they reach a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// a whole number
    Integer,
    /// a number
    Float,
    /// a size: a whole number of bytes; written `"64MiB"`
    Size,
    /// a length of time: a float of seconds; written `"10s"`
    Duration,
    /// any text
    Text,
    /// one of `choices`
    Choice,
    /// true or false
    Boolean,
}

impl ParameterKind {
    /// Whether its values are numbers, so that a text for it is a quantity or an expression.
    pub fn is_number(self) -> bool {
        matches!(
            self,
            ParameterKind::Integer | ParameterKind::Float | ParameterKind::Size | ParameterKind::Duration
        )
    }

    /// What to write, for messages.
    pub fn expected_text(self) -> &'static str {
        match self {
            ParameterKind::Integer => "a whole number or an expression such as \"2 * cpus\"",
            ParameterKind::Float => "a number or an expression such as \"0.5 * cpus\"",
            ParameterKind::Size => {
                "a size such as \"64MiB\", or an expression in bytes such as \"memory / 4\""
            }
            ParameterKind::Duration => "a time such as \"10s\", or an expression in seconds",
            ParameterKind::Text => "a text",
            ParameterKind::Choice => "one of its choices",
            ParameterKind::Boolean => "true or false",
        }
    }

    /// A number of this kind as its unit shows it.
    pub fn format_number(self, number: f64) -> String {
        match self {
            ParameterKind::Size => Bytes(number as u64).to_string(),
            ParameterKind::Duration => Nanos((number * 1e9) as u64).to_string(),
            _ => number.to_string(),
        }
    }
}

impl fmt::Display for ParameterKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParameterKind::Integer => "integer",
            ParameterKind::Float => "float",
            ParameterKind::Size => "size",
            ParameterKind::Duration => "duration",
            ParameterKind::Text => "text",
            ParameterKind::Choice => "choice",
            ParameterKind::Boolean => "boolean",
        })
    }
}
