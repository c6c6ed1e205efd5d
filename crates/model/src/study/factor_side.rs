//! `on`: which side of a study with targets is set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which side of a study with targets a setting belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FactorSide {
    /// the machine that perflab runs on
    Host,
    /// every target
    Guest,
}
