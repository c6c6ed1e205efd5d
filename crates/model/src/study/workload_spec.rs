//! `[workload.NAME]`: a workload of the catalogue, or a command of the study's own, with its parameters.

use std::fmt;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::metric::{Direction, Metric, Unit};
use crate::problem::Problem;
use crate::quantity::DurationText;
use crate::scalar::Scalar;
use crate::study::study_list::StudyList;

/// One workload with its parameters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkloadSpec {
    /// The workload's name in the catalogue, where it is not the name of this table.
    #[serde(default, rename = "use")]
    pub uses: Option<String>,
    /// A command of your own in place of a workload of the catalogue: a text for the shell, or a list of words. It is
    /// timed; `{{ NAME }}` stands for a parameter, a value of the study or a fact of the host, `{{ scratch }}` for an empty folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
    /// What runs the texts among the commands: a shell such as `bash`, or `none`, which splits a text into words as a
    /// shell would (default: /bin/sh).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// A command before the first iteration of a case, not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<CommandLine>,
    /// A command before each iteration, not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<CommandLine>,
    /// A command after each iteration, not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclude: Option<CommandLine>,
    /// A command after the last iteration, however the run ends; not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<CommandLine>,
    /// What iterations begin with, made once and restored into `{{ scratch }}` before each; not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<DataCommand>,
    /// A server that the command needs while it runs, started before each iteration and ended after it; not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerCommand>,
    /// Exit codes of the command that are no failure besides 0; `[-1]` stands for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_exit: Vec<i32>,
    /// What the command's output says, as `[[metric]]` of a workload's file; without any, the time it took decides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metric: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Histograms in the command's output, as `[[histogram]]` of a workload's file: their percentiles are metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram: Vec<serde_json::Map<String, serde_json::Value>>,
    /// What the command's output says of moments within an iteration, as `[[series]]` of a workload's file: a table like a
    /// monitor's, called WORKLOAD-NAME.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<serde_json::Map<String, serde_json::Value>>,
    /// Parameters with one value each. A text for a number is an expression: `threads = "2 * cpus"`; a command's
    /// parameters are texts.
    #[serde(default)]
    pub parameters: IndexMap<String, Scalar>,
    /// Parameters with several values: every combination is a case. A list, or an expression over host facts that gives one:
    /// `threads = "powers(1, 2 * cpus)"`.
    #[serde(default)]
    pub matrix: IndexMap<String, StudyList<Scalar>>,
    /// Environment variables.
    #[serde(default)]
    pub environment: IndexMap<String, String>,
}

/// `[beside.NAME]`: a command that runs beside iterations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BesideSpec {
    /// Started before an iteration, again whenever it ends, and ended with all that it started after the iteration. A text for the
    /// shell, or a list of words; `{{ NAME }}` stands for a value of the study or a fact of the host,
    /// `{{ scratch }}` for the iteration's folder.
    pub command: CommandLine,
    /// What runs a text, as of a workload's command (default: /bin/sh).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
}

impl BesideSpec {
    /// The level of a factor of kind `beside` at which nothing runs beside.
    pub const NONE: &str = "none";

    /// The metric that says how often the command of `[beside.NAME]` came to its end: it explains, and decides nothing.
    pub fn rate_metric(name: &str) -> Metric {
        Metric {
            name: format!("beside-{name}"),
            unit: Unit::new("runs/s"),
            direction: Direction::Higher,
            primary: false,
        }
    }
}

/// `[workload.NAME.data]`: what iterations begin with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DataCommand {
    /// What fills the empty folder `{{ data }}`, in which it runs.
    pub command: CommandLine,
    /// Who shares it (default: disk).
    #[serde(default)]
    pub once: DataLifetime,
    /// What of it is copied into `{{ scratch }}`: everything unless given; with `[]` it is only read, in `{{ data }}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Vec<String>>,
}

/// Who shares data that are made once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DataLifetime {
    /// All cases on a disk whose command is the same.
    #[default]
    Disk,
    /// The iterations of a case: its settings count for how they are made.
    Case,
}

impl DataLifetime {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            DataLifetime::Disk => "disk",
            DataLifetime::Case => "case",
        }
    }
}

/// `[workload.NAME.server]`: a program that is there while the command runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerCommand {
    /// What is started. `{{ free_port }}` stands for a TCP port that is free, here as in all commands of the workload.
    pub command: CommandLine,
    /// When it is ready: one of the four.
    pub ready: ServerReadiness,
    /// How long that may take (default: 10s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<DurationText>,
    /// How long it may take to end when it is asked to; then it is killed (default: 5s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_within: Option<DurationText>,
}

/// When a server is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerReadiness {
    /// A TCP port of 127.0.0.1 accepts connections: `"{{ free_port }}"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// A line of its output fits this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// A file is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A command ends with exit code 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandLine>,
}

/// A command: a text for a shell, or its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// `"make -j4 | tail"`
    Text(String),
    /// `["make", "-j4"]`
    Words(Vec<String>),
}

impl CommandLine {
    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        match self {
            CommandLine::Text(text) => text.trim().is_empty(),
            CommandLine::Words(words) => words.first().is_none_or(String::is_empty),
        }
    }

    /// All its texts, each a template.
    pub fn templates(&self) -> &[String] {
        match self {
            CommandLine::Text(text) => std::slice::from_ref(text),
            CommandLine::Words(words) => words,
        }
    }
}

impl<'de> Deserialize<'de> for CommandLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CommandLineVisitor)
    }
}

/// Written by hand, because an untagged enum would answer every slip with "did not match any variant".
struct CommandLineVisitor;

impl<'de> Visitor<'de> for CommandLineVisitor {
    type Value = CommandLine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command: a text for the shell, or a list of words")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<CommandLine, E> {
        Ok(CommandLine::Text(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<CommandLine, A::Error> {
        Vec::deserialize(de::value::SeqAccessDeserializer::new(list)).map(CommandLine::Words)
    }
}

impl JsonSchema for CommandLine {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CommandLine".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A command: a text for the shell, or a list of words.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "minItems": 1 }],
        })
    }
}

impl WorkloadSpec {
    /// The commands besides the timed one, by their keys.
    pub fn untimed_commands(&self) -> impl Iterator<Item = (&'static str, &CommandLine)> {
        let all = [
            ("setup", &self.setup),
            ("prepare", &self.prepare),
            ("conclude", &self.conclude),
            ("cleanup", &self.cleanup),
        ];
        all.into_iter().filter_map(|(key, command)| Some((key, command.as_ref()?)))
    }

    /// The commands of its server, by their keys.
    pub fn server_commands(&self) -> impl Iterator<Item = (&'static str, &CommandLine)> {
        let server = self.server.iter();
        server.flat_map(|server| {
            let ready = server.ready.command.as_ref().map(|command| ("server.ready.command", command));
            [("server.command", &server.command)].into_iter().chain(ready)
        })
    }

    /// The command that makes its data, by its key.
    pub fn data_commands(&self) -> impl Iterator<Item = (&'static str, &CommandLine)> {
        self.data.iter().map(|data| ("data.command", &data.command))
    }

    /// What the table of the workload called `name` alone can get wrong.
    pub(crate) fn problems(&self, name: &str) -> Vec<Problem> {
        let key = |part: &str| format!("workload.{name}.{part}");
        let mut found = Vec::new();
        if let (Some(_), Some(_)) = (&self.uses, &self.command) {
            let problem = Problem::new(key("use"), "does not go with a `command` of the study's own");
            found.push(problem.with_hint("keep one of the two"));
        }
        let commands = self.command.iter().map(|command| ("command", command));
        let commands = commands.chain(self.untimed_commands()).chain(self.server_commands());
        let commands = commands.chain(self.data_commands());
        for (part, _) in commands.filter(|(_, command)| command.is_empty()) {
            found.push(Problem::new(key(part), "runs nothing").with_hint("name a program and its arguments"));
        }
        if self.command.is_none() {
            let needless = [
                ("shell", self.shell.is_some()),
                ("allow-exit", !self.allow_exit.is_empty()),
                ("metric", !self.metric.is_empty()),
                ("histogram", !self.histogram.is_empty()),
                ("series", !self.series.is_empty()),
                ("server", self.server.is_some()),
                ("data", self.data.is_some()),
            ];
            let needless = needless.into_iter().filter(|(_, given)| *given).map(|(part, _)| part);
            for part in needless.chain(self.untimed_commands().map(|(part, _)| part)) {
                let problem = Problem::new(key(part), "belongs to a `command` of the study's own");
                found.push(problem.with_hint("add `command = \"…\"`, or put it into the workload's file"));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::study::TomlSource;

    fn problem_keys(workload: &str) -> Vec<String> {
        let text = format!("title = \"t\"\n[workload.w]\n{workload}\n");
        let found = TomlSource::new("s.toml", text).parse_study().unwrap_err();
        found.list.into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn a_command_is_a_text_or_words() {
        let text =
            "title = \"t\"\n[workload.a]\ncommand = \"ls | wc\"\n[workload.b]\ncommand = [\"ls\", \"-l\"]\n";
        let study = TomlSource::new("s.toml", text).parse_study().unwrap();
        assert_eq!(study.workload["a"].command.as_ref().unwrap().templates(), ["ls | wc"]);
        assert_eq!(study.workload["b"].command.as_ref().unwrap().templates(), ["ls", "-l"]);
        assert_eq!(problem_keys("command = 3"), ["workload.w.command"]);
    }

    #[test]
    fn what_belongs_to_a_command_is_not_without_one() {
        assert_eq!(problem_keys("use = \"fio\"\ncommand = \"ls\""), ["workload.w.use"]);
        assert_eq!(problem_keys("command = []"), ["workload.w.command"]);
        assert_eq!(
            problem_keys("shell = \"bash\"\nprepare = \"sync\"\nallow-exit = [1]"),
            ["workload.w.shell", "workload.w.allow-exit", "workload.w.prepare"]
        );
    }
}
