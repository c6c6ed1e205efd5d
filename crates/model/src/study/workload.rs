//! `[workload.NAME]`: one use of a workload of the catalogue.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Scalar;

/// One workload with its parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkloadSpec {
    /// The workload's name in the catalogue, where it is not the name of this table.
    #[serde(default, rename = "use")]
    pub uses: Option<String>,
    /// Parameters with one value each. A text for a number is an expression: `threads = "2 * cpus"`.
    #[serde(default)]
    pub parameters: IndexMap<String, Scalar>,
    /// Parameters with several values: every combination is a case.
    #[serde(default)]
    pub matrix: IndexMap<String, Vec<Scalar>>,
    /// Environment variables.
    #[serde(default)]
    pub environment: IndexMap<String, String>,
}
