//! `[target.NAME]`: where cases run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One target, or several alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TargetUse {
    /// What it is.
    pub kind: TargetKind,
    /// How many alike: two called `guest` are guest1 and guest2.
    #[serde(default = "one")]
    pub count: u32,
    /// ssh: `user@host`, or a name of your own ssh configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// a process of this host: several things at once under one kernel
    Process,
    /// a machine that ssh reaches; the perflab binary is copied there for the run
    Ssh,
}

impl std::fmt::Display for TargetKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TargetKind::Process => "process",
            TargetKind::Ssh => "ssh",
        })
    }
}

fn one() -> u32 {
    1
}
