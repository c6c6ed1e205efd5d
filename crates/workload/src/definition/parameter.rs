//! `[parameter.NAME]`: what a user may turn, with its type, its default and its range.

use std::fmt;

use perflab_model::{Bytes, Nanos, Value};
use serde::Deserialize;

/// One parameter.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// What its values are.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Its value where a study gives none; may be an expression over the host.
    pub default: Value,
    /// What a number counts, for people: `threads`, `messages`.
    #[serde(default)]
    pub unit: Option<String>,
    /// The smallest allowed value.
    #[serde(default)]
    pub min: Option<Value>,
    /// The largest allowed value.
    #[serde(default)]
    pub max: Option<Value>,
    /// The allowed values, for a choice.
    #[serde(default)]
    pub choices: Vec<String>,
    /// One line of help.
    pub about: String,
}

/// What the values of a parameter are, and as what they reach a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
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

impl Kind {
    /// Whether its values are numbers, so that a text for it is a quantity or an expression.
    pub fn is_number(self) -> bool {
        matches!(self, Kind::Integer | Kind::Float | Kind::Size | Kind::Duration)
    }

    /// What to write, for messages.
    pub fn wanted(self) -> &'static str {
        match self {
            Kind::Integer => "a whole number or an expression such as \"2 * cpus\"",
            Kind::Float => "a number or an expression such as \"0.5 * cpus\"",
            Kind::Size => "a size such as \"64MiB\", or an expression in bytes such as \"memory / 4\"",
            Kind::Duration => "a time such as \"10s\", or an expression in seconds",
            Kind::Text => "a text",
            Kind::Choice => "one of its choices",
            Kind::Boolean => "true or false",
        }
    }

    /// A number of this kind as its unit shows it.
    pub fn show(self, number: f64) -> String {
        match self {
            Kind::Size => Bytes(number as u64).to_string(),
            Kind::Duration => Nanos((number * 1e9) as u64).to_string(),
            _ => number.to_string(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Integer => "integer",
            Kind::Float => "float",
            Kind::Size => "size",
            Kind::Duration => "duration",
            Kind::Text => "text",
            Kind::Choice => "choice",
            Kind::Boolean => "boolean",
        })
    }
}
