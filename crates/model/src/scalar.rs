//! One scalar of a study: parameter values and the levels of factors.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One scalar of a TOML or JSON document. Integers stay integers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Scalar {
    /// `true`, `false`
    Bool(bool),
    /// a whole number
    Int(i64),
    /// a number with a point
    Float(f64),
    /// a text: taken literally, as a quantity, or as an expression, as its reader decides
    Text(String),
}

impl Scalar {
    /// The value as a number, where it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Scalar::Int(n) => Some(*n as f64),
            Scalar::Float(n) => Some(*n),
            Scalar::Bool(_) | Scalar::Text(_) => None,
        }
    }

    /// What the value is, for messages: "an integer", "a text".
    pub fn type_description(&self) -> &'static str {
        match self {
            Scalar::Bool(_) => "a boolean",
            Scalar::Int(_) => "an integer",
            Scalar::Float(_) => "a float",
            Scalar::Text(_) => "a text",
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(b) => write!(f, "{b}"),
            Scalar::Int(n) => write!(f, "{n}"),
            Scalar::Float(n) => write!(f, "{n}"),
            Scalar::Text(t) => write!(f, "{t}"),
        }
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Self {
        Scalar::Text(text.into())
    }
}

impl From<i64> for Scalar {
    fn from(number: i64) -> Self {
        Scalar::Int(number)
    }
}
