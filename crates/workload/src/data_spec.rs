//! `[data]`: what iterations begin with, made once: a database with its rows, an unpacked source. It is not timed.

use std::path::{Component, PathBuf};

use perflab_model::Problem;
use perflab_model::study::DataLifetime;
use serde::Deserialize;

use crate::argv_element::ArgvElement;

/// The key of the command that makes data.
pub(crate) const DATA_COMMAND: &str = "data.argv";

/// `[data]` of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSpec {
    /// The command that fills the empty folder `{{ data }}`, in which it runs; templates, but nothing of an iteration.
    pub argv: Vec<ArgvElement>,
    /// Who shares it.
    #[serde(default)]
    pub once: DataLifetime,
    /// What of it is copied into `{{ scratch }}`; everything where the definition does not say.
    pub restore: Option<Vec<PathBuf>>,
}

impl DataSpec {
    /// What it can get wrong besides its templates.
    pub(crate) fn problems(&self, has_scratch: bool) -> Vec<Problem> {
        let mut found = Vec::new();
        if self.argv.is_empty() {
            let problem = Problem::new("data.argv", "is empty");
            found.push(problem.with_hint("name the program that fills {{ data }}, and its arguments"));
        }
        if !has_scratch {
            let problem = Problem::new("data", "has no directory to be restored to");
            found.push(problem.with_hint("write `scratch = true` into `[needs]`"));
        }
        for (index, path) in self.restore.iter().flatten().enumerate() {
            let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
            if !inside || path.as_os_str().is_empty() {
                let message = format!("`{}` is no path below {{{{ data }}}}", path.display());
                found.push(Problem::new(format!("data.restore[{index}]"), message));
            }
        }
        found
    }
}
