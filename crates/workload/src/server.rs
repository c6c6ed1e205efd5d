//! `[server]`: a program that a workload needs while it runs, started before each iteration and ended after it. It is not timed.

use std::time::Duration;

use perflab_model::Problem;
use perflab_model::quantity::DurationText;
use regex::Regex;
use serde::Deserialize;

use crate::argv_element::ArgvElement;

/// How long a server may take until it is ready, where its definition does not say.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// How long it may take to end, where its definition does not say.
const STOP_WITHIN: Duration = Duration::from_secs(5);

/// The server of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSpec {
    /// The command; templates.
    pub argv: Vec<ArgvElement>,
    /// When it is ready.
    pub ready: ReadinessRule,
    /// How long that may take.
    pub within: Duration,
    /// How long it may take to end once it was asked to; then it is killed.
    pub stop_within: Duration,
}

/// When a server is ready. Texts but that of a line are templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadinessRule {
    /// a connection to this TCP port of 127.0.0.1 is accepted
    Port(String),
    /// a line of its output fits this regular expression
    Line(String),
    /// this file is there: a socket, a lock
    File(String),
    /// this command ends with exit code 0
    Command(Vec<ArgvElement>),
}

/// `[server]` as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ServerDocument {
    pub(crate) argv: Vec<ArgvElement>,
    ready: ReadinessDocument,
    within: Option<DurationText>,
    stop_within: Option<DurationText>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ReadinessDocument {
    port: Option<String>,
    line: Option<String>,
    file: Option<String>,
    command: Option<Vec<ArgvElement>>,
}

impl ServerDocument {
    /// What it can get wrong besides its templates.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        if self.argv.is_empty() {
            found
                .push(Problem::new("server.argv", "is empty").with_hint("name the server and its arguments"));
        }
        let ready = &self.ready;
        let given =
            [ready.port.is_some(), ready.line.is_some(), ready.file.is_some(), ready.command.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            let problem = Problem::new("server.ready", "says not exactly once when the server is ready");
            found.push(problem.with_hint("write one of `port`, `line`, `file` and `command`"));
        }
        if let Some(Err(error)) = ready.line.as_ref().map(|pattern| Regex::new(pattern)) {
            let text = error.to_string().replace('\n', " ");
            found.push(Problem::new("server.ready.line", text));
        }
        found
    }

    /// Its templates besides its arguments, with their keys.
    pub(crate) fn readiness_templates(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let texts = [("server.ready.port", &self.ready.port), ("server.ready.file", &self.ready.file)];
        texts.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?)))
    }

    /// The command that tells whether it is ready, if one does.
    pub(crate) fn readiness_command(&self) -> &[ArgvElement] {
        self.ready.command.as_deref().unwrap_or_default()
    }

    /// The server, where [`ServerDocument::problems`] found none.
    pub(crate) fn into_spec(self) -> Option<ServerSpec> {
        let ReadinessDocument { port, line, file, command } = self.ready;
        let rule = port.map(ReadinessRule::Port).or(line.map(ReadinessRule::Line));
        let rule = rule.or(file.map(ReadinessRule::File)).or(command.map(ReadinessRule::Command))?;
        let time = |given: Option<DurationText>, default| given.map_or(default, |text| text.0.into());
        Some(ServerSpec {
            argv: self.argv,
            ready: rule,
            within: time(self.within, READY_WITHIN),
            stop_within: time(self.stop_within, STOP_WITHIN),
        })
    }
}
