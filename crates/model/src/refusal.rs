//! One thing that the environment lacks or refuses, with what to do.

use std::fmt;

/// One thing that the environment lacks or refuses, with what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is missing or refused.
    pub what: String,
    /// What to do about it; empty where `what` says it already.
    pub hint: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hint.is_empty() { f.write_str(&self.what) } else { write!(f, "{}; {}", self.what, self.hint) }
    }
}
