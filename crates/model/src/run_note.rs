//! What somebody wrote about a run, afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::Nanos;

/// A note on a run, or on a step of a metric that it begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunNote {
    /// When it was written, in nanoseconds since 1970.
    pub at: Nanos,
    /// Who says they wrote it.
    pub by: String,
    /// What they wrote.
    pub text: String,
    /// Where it is about a step of a history that began with the run: the case, with the levels of its factors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The metric that stepped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
}
