//! `[profile]` and `[io]`: call stacks sampled, and I/O traced, while iterations run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[profile]`: sample call stacks, kernel and user, while each iteration runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileSpec {
    /// Samples a second on each CPU. A sample costs some microseconds: 999 is a good choice, 4999 is felt.
    pub frequency: u32,
    /// Whose stacks.
    pub scope: ProfileScope,
    /// A process that runs already, instead of a scope.
    pub pid: Option<i32>,
    /// Kernel symbols to look up besides those that samples hit; perflab fills in what its rule tables ask for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<String>,
}

impl ProfileSpec {
    /// The highest `frequency`, in samples a second.
    pub const HIGHEST_FREQUENCY: u32 = 50_000;
}

impl Default for ProfileSpec {
    fn default() -> Self {
        ProfileSpec { frequency: 499, scope: ProfileScope::System, pid: None, symbols: Vec::new() }
    }
}

/// Whose stacks are sampled, or whose pages are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProfileScope {
    /// everybody's, on every CPU
    #[default]
    System,
    /// the workload's processes alone, and their children
    Workload,
}

/// `[io]`: trace pages that come into the page cache, pages that are used and disk requests, while each iteration runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IoTraceSpec {
    /// Whose pages; disk requests are always everybody's.
    pub scope: ProfileScope,
}
