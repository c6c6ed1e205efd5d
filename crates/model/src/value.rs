//! A scalar as it stands in a study: parameter values and the levels of factors.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One scalar of a TOML or JSON document. Integers stay integers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// `true`, `false`
    Bool(bool),
    /// a whole number
    Int(i64),
    /// a number with a point
    Float(f64),
    /// a text: taken literally, as a quantity, or as an expression, as the place that reads it says
    Text(String),
}

impl Value {
    /// The value as a number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(n) => Some(*n),
            Value::Bool(_) | Value::Text(_) => None,
        }
    }

    /// What the value is, for messages: "an integer", "a text".
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a text",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(b) => write!(f, "{b}"),
            Value::Int(n) => write!(f, "{n}"),
            Value::Float(n) => write!(f, "{n}"),
            Value::Text(t) => write!(f, "{t}"),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}
