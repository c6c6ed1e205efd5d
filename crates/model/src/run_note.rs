//! What somebody wrote about a run, afterwards.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::Nanos;

/// A note on a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunNote {
    /// When it was written, in nanoseconds since 1970.
    pub at: Nanos,
    /// Who says they wrote it.
    pub by: String,
    /// What they wrote.
    pub text: String,
}
