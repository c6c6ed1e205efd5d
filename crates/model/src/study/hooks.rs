//! `[hooks]`: commands of the user's around the run, its cases and its iterations, on this host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::study::workload_spec::CommandLine;

/// Commands around the run, around all iterations of a case, and around each iteration. They run on this host, also where cases run on
/// targets, and are not timed. Each is a text for the shell, or a list of words, with `{{ NAME }}` for a value of the study or a
/// fact of the host, and with `PERFLAB_RUN`, `PERFLAB_CASE` and `PERFLAB_ITERATION` in its environment. What is to come after
/// something is noted before that begins, so that it comes after a kill, too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct HooksSpec {
    /// Before the first iteration. If it fails, the run does not begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_run: Option<CommandLine>,
    /// After the last iteration, however the run ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_run: Option<CommandLine>,
    /// Before the first iteration of each case, under its settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_case: Option<CommandLine>,
    /// At the end, for each case that began: iterations of cases take turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_case: Option<CommandLine>,
    /// Before each iteration and each warm-up, under its settings. If it fails, so does the iteration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_iteration: Option<CommandLine>,
    /// After each iteration and each warm-up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_iteration: Option<CommandLine>,
}

impl HooksSpec {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == HooksSpec::default()
    }

    /// The hooks that there are, by their keys, in the order in which they run.
    pub fn commands(&self) -> impl Iterator<Item = (&'static str, &CommandLine)> {
        let all = [
            ("before-run", &self.before_run),
            ("before-case", &self.before_case),
            ("before-iteration", &self.before_iteration),
            ("after-iteration", &self.after_iteration),
            ("after-case", &self.after_case),
            ("after-run", &self.after_run),
        ];
        all.into_iter().filter_map(|(key, command)| Some((key, command.as_ref()?)))
    }

    /// What the text alone gets wrong.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let empty = self.commands().filter(|(_, command)| command.is_empty());
        let problem = |(key, _)| {
            Problem::new(format!("hooks.{key}"), "runs nothing").with_hint("name a program and its arguments")
        };
        empty.map(problem).collect()
    }
}
