//! One workload's TOML file: argv, requirements, installation, metrics; and what its text can get wrong.
//!
//! Whatever can be checked from the text alone is checked when it is read and not after an hour of measuring.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use perflab_formats::histogram_rules::{HistogramRule, HistogramRuleDocument};
use perflab_formats::metric_extraction::{MetricParseError, MetricValue, extract_metrics};
use perflab_formats::metric_rules::{MetricAggregate, MetricRule, MetricRuleDocument, OutputStream};
use perflab_formats::series_rules::{SeriesPoint, SeriesReadError, SeriesRule, SeriesRuleDocument};
use perflab_model::expression::ExpressionScope;
use perflab_model::resource_use::ResourceMetric;
use perflab_model::study::TomlSource;
use perflab_model::{Bytes, Facts, Metric, Nanos, Problem, Problems, Scalar};
use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};

use crate::argv_element::ArgvElement;
use crate::data_spec::{DATA_COMMAND, DataSpec};
use crate::parameter::{self, ParameterKind, WorkloadParameter};
use crate::server::{ServerDocument, ServerSpec};

/// One workload of the catalogue.
#[derive(Debug, Clone)]
pub struct WorkloadDefinition {
    /// The name of its file, without `.toml`.
    pub name: String,
    /// Its file, as the user would find it.
    pub file: String,
    /// SHA-256, in hex, of what its text makes it do and measure: titles, installation and the like are not part of it.
    pub digest: String,
    /// One line.
    pub title: String,
    /// What its numbers mean, for a reader who never ran it.
    pub measures: String,
    /// Where it comes from.
    pub homepage: Option<String>,
    /// Its licence as an SPDX expression.
    pub licence: Option<String>,
    /// What can be turned, in the order of the file.
    pub parameters: IndexMap<String, WorkloadParameter>,
    /// How it is installed; empty for a built-in load.
    pub install: InstallSpec,
    /// The command; templates over parameters, host facts, `scratch`, `perflab`.
    pub argv: Vec<ArgvElement>,
    /// Whether the first of `argv` is a script for /bin/sh, with the others as `$1`, `$2`, ….
    pub shell: bool,
    /// What runs around its iterations and is not timed.
    pub phases: UntimedPhases,
    /// What it works on, made once and restored before each iteration.
    pub data: Option<DataSpec>,
    /// What it needs while it runs, started before each iteration.
    pub server: Option<ServerSpec>,
    /// Exit codes that are no failure besides 0; -1 stands for all.
    pub allow_exit: Vec<i32>,
    /// Whether it runs under perflab's own language, in place of C's: for those of whose output nothing is read.
    pub keeps_locale: bool,
    /// Whether the program is linked with optrace and writes a trace to the file that it is given.
    pub traced: bool,
    /// Environment variables; templates.
    pub environment: IndexMap<String, String>,
    /// What must be there.
    pub needs: Requirements,
    /// argv that prints a version; empty where there is none.
    pub version: Vec<String>,
    /// Parameters for a run of about a second: `perflab workload try`, and the tests.
    pub brief: IndexMap<String, Scalar>,
    /// Kernel operations that one execution does, where that is known: expressions over parameters and host facts.
    pub operations: IndexMap<String, String>,
    /// How its output becomes metrics. There is at least one of these, or a histogram.
    pub rules: Vec<MetricRule>,
    /// Histograms in its output, and which metrics they become.
    pub histograms: Vec<HistogramRule>,
    /// What its output says of moments within an execution.
    pub series: Vec<SeriesRule>,
}

/// Commands around the iterations of a case, which are not timed; each empty where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UntimedPhases {
    /// Before the first iteration.
    pub setup: Vec<ArgvElement>,
    /// Before each iteration.
    pub prepare: Vec<ArgvElement>,
    /// After each iteration, also a failed one.
    pub conclude: Vec<ArgvElement>,
    /// After the last iteration, however the run ends.
    pub cleanup: Vec<ArgvElement>,
}

/// When an untimed command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UntimedPhase {
    /// before the first iteration of a case
    Setup,
    /// before each iteration
    Prepare,
    /// after each iteration
    Conclude,
    /// after the last iteration
    Cleanup,
}

impl UntimedPhase {
    /// Its key in a definition and in a study.
    pub fn key(self) -> &'static str {
        match self {
            UntimedPhase::Setup => "setup",
            UntimedPhase::Prepare => "prepare",
            UntimedPhase::Conclude => "conclude",
            UntimedPhase::Cleanup => "cleanup",
        }
    }
}

impl UntimedPhases {
    /// The command of a phase.
    pub fn argv(&self, phase: UntimedPhase) -> &[ArgvElement] {
        match phase {
            UntimedPhase::Setup => &self.setup,
            UntimedPhase::Prepare => &self.prepare,
            UntimedPhase::Conclude => &self.conclude,
            UntimedPhase::Cleanup => &self.cleanup,
        }
    }
}

/// `[install]`: packages by manager, or a source archive.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InstallSpec {
    /// Packages of Debian and Ubuntu.
    pub apt: Vec<String>,
    /// Packages of Fedora and RHEL.
    pub dnf: Vec<String>,
    /// Packages of SUSE.
    pub zypper: Vec<String>,
    /// Packages of Arch Linux.
    pub pacman: Vec<String>,
    /// What to build where no package is.
    pub source: Option<SourceArchive>,
}

/// `[install.source]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceArchive {
    /// A tar archive: https:// or file://.
    pub url: String,
    /// Its SHA-256, in hex.
    pub sha256: String,
    /// Commands run in the archive's top folder, in order.
    pub build: Vec<Vec<String>>,
    /// The built program, relative to that folder.
    pub installs: String,
}

/// `[needs]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Requirements {
    /// Whether only root can run it.
    pub root: bool,
    /// Whether it writes under `{{ scratch }}`.
    pub scratch: bool,
    /// How much it writes there at most, with default parameters.
    #[serde(deserialize_with = "deserialize_size")]
    pub disk: Option<Bytes>,
    /// What must be on PATH. The first of `argv` is added where it is not a template.
    pub programs: Vec<String>,
    /// Where programs are looked for after PATH: patterns with `*`, of which the highest version counts first.
    #[serde(rename = "program-folders")]
    pub program_folders: Vec<String>,
    /// Memory of the machine, at least.
    #[serde(deserialize_with = "deserialize_size")]
    pub memory: Option<Bytes>,
    /// CPUs of the machine, at least.
    pub cpus: Option<u32>,
    /// Nodes of memory, at least.
    pub nodes: Option<u32>,
    /// Options of the kernel: `NUMA_BALANCING` (built in or a module), or with the value that it must have, `HZ=1000`.
    #[serde(rename = "kernel-config")]
    pub kernel_config: Vec<String>,
}

impl Requirements {
    /// Whether something of the machine itself is needed.
    pub fn asks_for_machine(&self) -> bool {
        self.memory.is_some() || self.cpus.is_some() || self.nodes.is_some() || !self.kernel_config.is_empty()
    }
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefinitionDocument {
    title: String,
    measures: String,
    homepage: Option<String>,
    licence: Option<String>,
    pub(crate) argv: Vec<ArgvElement>,
    #[serde(default)]
    pub(crate) shell: bool,
    #[serde(default)]
    setup: Vec<ArgvElement>,
    #[serde(default)]
    prepare: Vec<ArgvElement>,
    #[serde(default)]
    conclude: Vec<ArgvElement>,
    #[serde(default)]
    cleanup: Vec<ArgvElement>,
    data: Option<DataSpec>,
    server: Option<ServerDocument>,
    #[serde(default, rename = "allow-exit")]
    allow_exit: Vec<i32>,
    #[serde(default, rename = "keeps-locale")]
    keeps_locale: bool,
    #[serde(default)]
    traced: bool,
    #[serde(default)]
    version: Vec<String>,
    #[serde(default, rename = "parameter")]
    pub(crate) parameters: IndexMap<String, WorkloadParameter>,
    #[serde(default)]
    pub(crate) install: InstallSpec,
    #[serde(default)]
    pub(crate) environment: IndexMap<String, String>,
    #[serde(default)]
    pub(crate) needs: Requirements,
    #[serde(default)]
    brief: IndexMap<String, Scalar>,
    #[serde(default)]
    operations: IndexMap<String, String>,
    #[serde(default, rename = "metric")]
    pub(crate) metrics: Vec<MetricRuleDocument>,
    #[serde(default, rename = "histogram")]
    pub(crate) histograms: Vec<HistogramRuleDocument>,
    #[serde(default)]
    series: Vec<SeriesRuleDocument>,
}

impl DefinitionDocument {
    /// The timed command and the untimed ones, by their keys.
    fn commands(&self) -> [(&'static str, &[ArgvElement]); 8] {
        let server = self.server.as_ref();
        [
            (DATA_COMMAND, self.data.as_ref().map_or(&[], |data| &data.argv)),
            ("server.argv", server.map_or(&[], |server| &server.argv)),
            ("server.ready.command", server.map_or(&[], ServerDocument::readiness_command)),
            ("argv", &self.argv),
            ("setup", &self.setup),
            ("prepare", &self.prepare),
            ("conclude", &self.conclude),
            ("cleanup", &self.cleanup),
        ]
    }
}

impl WorkloadDefinition {
    /// Reads and checks one definition, as far as its text alone allows.
    pub fn read(source: &TomlSource) -> Result<WorkloadDefinition, Problems> {
        let document: DefinitionDocument =
            source.parse_requiring(&["title", "measures", "argv", "metric"])?;
        let mut list = definition_problems(&document);
        let mut rules = Vec::new();
        for (index, table) in document.metrics.into_iter().enumerate() {
            match table.into_rule(&format!("metric[{index}]")) {
                Ok(rule) if rule.aggregate == MetricAggregate::Each => list.push(
                    Problem::new(format!("metric[{index}].aggregate"), "`each` is for imported logs")
                        .with_hint("an execution has one value a metric: `last`, `mean`, …"),
                ),
                Ok(rule) => rules.push(rule),
                Err(problem) => list.push(problem),
            }
        }
        let mut histograms = Vec::new();
        for (index, table) in document.histograms.into_iter().enumerate() {
            match table.into_rule(&format!("histogram[{index}]")) {
                Ok(rule) => histograms.push(rule),
                Err(problem) => list.push(problem),
            }
        }
        list.extend(duplicate_metric_problems(&rules, &histograms));
        let mut series: Vec<SeriesRule> = Vec::new();
        for (index, table) in document.series.into_iter().enumerate() {
            match table.into_rule(&format!("series[{index}]")) {
                Ok(rule) if series.iter().any(|other| other.name == rule.name) => {
                    let message = format!("the series `{}` stands here twice", rule.name);
                    list.push(Problem::new(format!("series[{index}].name"), message));
                }
                Ok(rule) => series.push(rule),
                Err(problem) => list.push(problem),
            }
        }
        if !list.is_empty() {
            return Err(source.place_problems(list));
        }
        Ok(WorkloadDefinition {
            name: definition_name(&source.file),
            file: source.file.clone(),
            digest: hash_definition(&source.text),
            title: document.title,
            measures: document.measures,
            homepage: document.homepage,
            licence: document.licence,
            needs: require_program(document.needs, &document.argv, document.shell),
            parameters: document.parameters,
            install: document.install,
            argv: document.argv,
            shell: document.shell,
            phases: UntimedPhases {
                setup: document.setup,
                prepare: document.prepare,
                conclude: document.conclude,
                cleanup: document.cleanup,
            },
            data: document.data,
            server: document.server.and_then(ServerDocument::into_spec),
            allow_exit: document.allow_exit,
            keeps_locale: document.keeps_locale,
            traced: document.traced,
            environment: document.environment,
            version: document.version,
            brief: document.brief,
            operations: document.operations,
            rules,
            histograms,
            series,
        })
    }

    /// What it measures, in the order of the file; a name with a `*` covers those that its output gives.
    pub fn metrics(&self) -> Vec<Metric> {
        let of_histograms = self.histograms.iter().flat_map(HistogramRule::metrics);
        self.rules.iter().map(|rule| &rule.metric).chain(of_histograms).cloned().collect()
    }

    /// All that an execution gives: what its output says, and what it used of the machine where no rule has that name.
    pub fn all_metrics(&self) -> Vec<Metric> {
        let used = self.resource_metrics().map(ResourceMetric::declare);
        self.metrics().into_iter().chain(used).collect()
    }

    /// What it used of the machine, as far as its own rules give nothing of the name.
    pub fn resource_metrics(&self) -> impl Iterator<Item = &'static ResourceMetric> {
        let measured = self.metrics();
        let is_free = move |one: &&ResourceMetric| !measured.iter().any(|metric| metric.covers(one.name));
        ResourceMetric::ALL.iter().filter(is_free)
    }

    /// All metrics of one execution. `wall` is its length, for rules `time = "wall"`.
    ///
    /// # Errors
    /// The first rule that fails. Optional metrics that are not there are left out.
    pub fn parse_metrics(
        &self,
        stdout: &str,
        stderr: &str,
        wall: Nanos,
    ) -> Result<Vec<MetricValue>, MetricParseError> {
        let mut values = extract_metrics(&self.rules, stdout, stderr, wall)?;
        for histogram in &self.histograms {
            values.extend(histogram.measure(stream_text(histogram.from, stdout, stderr))?);
        }
        Ok(values)
    }

    /// The table of a series: no monitor is called so, as its name begins with the workload's.
    pub fn series_table(&self, rule: &SeriesRule) -> String {
        format!("{}-{}", self.name, rule.name)
    }

    /// What the output of one execution of that length says of moments within it: for each series its rows, in the order of time.
    ///
    /// # Errors
    /// The first series that is not there, though it is not optional, or has a row that is damaged.
    pub fn read_series(
        &self,
        stdout: &str,
        stderr: &str,
        wall: Nanos,
    ) -> Result<Vec<(&SeriesRule, Vec<SeriesPoint>)>, SeriesReadError> {
        let mut found = Vec::new();
        for rule in &self.series {
            found.push((rule, rule.read(stream_text(rule.from, stdout, stderr), wall)?));
        }
        Ok(found)
    }

    /// How many of each operation one execution does; those that the scope cannot resolve are left out.
    pub fn operation_counts(&self, scope: &ExpressionScope) -> std::collections::BTreeMap<String, f64> {
        let count =
            |(name, text): (&String, &String)| Some((name.clone(), scope.evaluate(text).ok()?.as_number()?));
        self.operations.iter().filter_map(count).collect()
    }

    /// Values of all parameters, in the order of the file: those given, and defaults for the others.
    ///
    /// Sizes become integers of bytes, durations floats of seconds; a bare number is taken in that
    /// unit, so that resolving what was resolved changes nothing. A default may use `scope` and the
    /// parameters above it, and a text that is given the other parameters. [`Problem::key`] is the parameter's name.
    pub fn resolve_parameters(
        &self,
        given: &IndexMap<String, Scalar>,
        scope: &ExpressionScope,
    ) -> Result<IndexMap<String, Scalar>, Vec<Problem>> {
        let mut problems: Vec<Problem> =
            given.keys().filter_map(|name| self.unknown_parameter_problem(name)).collect();
        let mut known = scope.clone();
        let mut values = IndexMap::new();
        let mut open: Vec<(&String, &WorkloadParameter)> = Vec::new();
        for (name, parameter) in &self.parameters {
            let resolved = match given.get(name) {
                Some(text) => parameter::resolve_parameter(name, parameter, text, scope),
                None => parameter::resolve_parameter(name, parameter, &parameter.default, &known),
            };
            match resolved {
                Ok(value) => {
                    known.set(name, value.clone());
                    values.insert(name.clone(), value);
                }
                Err(_) if given.get(name).is_some_and(is_template) => open.push((name, parameter)),
                Err(problem) => problems.push(problem),
            }
        }
        // A text that names parameters is resolved once they are.
        for (name, parameter) in open {
            let text = given.get(name).unwrap_or(&parameter.default);
            match parameter::resolve_parameter(name, parameter, text, &known) {
                Ok(value) => drop(values.insert(name.clone(), value)),
                Err(problem) => problems.push(problem),
            }
        }
        values.sort_by_cached_key(|name, _| self.parameters.get_index_of(name));
        if problems.is_empty() { Ok(values) } else { Err(problems) }
    }

    fn unknown_parameter_problem(&self, name: &str) -> Option<Problem> {
        if self.parameters.contains_key(name) {
            return None;
        }
        let hint = if self.parameters.is_empty() {
            format!("`{}` has no parameter", self.name)
        } else {
            perflab_model::suggest_name(name, self.parameters.keys().map(String::as_str))
        };
        Some(
            Problem::new(name, format!("workload `{}` has no parameter `{name}`", self.name)).with_hint(hint),
        )
    }

    /// Whether perflab itself is the program, so that nothing has to be installed.
    pub fn is_built_in(&self) -> bool {
        self.argv
            .first()
            .is_some_and(|first| matches!(first, ArgvElement::Plain(text) if text.contains("perflab }}")))
    }
}

fn stream_text<'a>(from: OutputStream, stdout: &'a str, stderr: &'a str) -> &'a str {
    match from {
        OutputStream::Stdout => stdout,
        OutputStream::Stderr => stderr,
    }
}

/// Whether a value is a text with a template in it.
fn is_template(value: &Scalar) -> bool {
    matches!(value, Scalar::Text(text) if text.contains("{{"))
}

/// What a definition holds for people, for installing it or for trying it.
const NOT_MEASURED: &[&str] =
    &["title", "measures", "homepage", "licence", "install", "needs", "version", "brief", "operations"];

/// What a definition makes a workload do and measure, of its text.
fn measured_table(text: &str) -> toml::Table {
    let mut document: toml::Table = text.parse().unwrap_or_default();
    document.retain(|key, _| !NOT_MEASURED.contains(&key));
    document
}

/// The same as a document that can be kept: two of one digest are the same.
#[must_use]
pub fn definition_parts(source: &TomlSource) -> serde_json::Value {
    serde_json::to_value(measured_table(&source.text)).unwrap_or_default()
}

/// Of the document's keys in order, so that comments, spaces and the order of tables do not count.
fn hash_definition(text: &str) -> String {
    let document = measured_table(text);
    let mut sha = Sha256::new();
    hash_toml_value(&toml::Value::Table(document), &mut sha);
    sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_toml_value(value: &toml::Value, sha: &mut Sha256) {
    match value {
        toml::Value::Table(table) => {
            let sorted: std::collections::BTreeMap<&String, &toml::Value> = table.iter().collect();
            sha.update(format!("{{{}", sorted.len()));
            for (key, value) in sorted {
                sha.update(format!("{key:?}"));
                hash_toml_value(value, sha);
            }
        }
        toml::Value::Array(items) => {
            sha.update(format!("[{}", items.len()));
            items.iter().for_each(|item| hash_toml_value(item, sha));
        }
        other => sha.update(other.to_string()),
    }
}

fn definition_name(file: &str) -> String {
    let base = file.rsplit('/').next().unwrap_or(file);
    base.strip_suffix(".toml").unwrap_or(base).to_owned()
}

fn require_program(mut needs: Requirements, argv: &[ArgvElement], shell: bool) -> Requirements {
    if let (Some(ArgvElement::Plain(program)), false) = (argv.first(), shell)
        && !program.contains("{{")
        && !needs.programs.contains(program)
    {
        needs.programs.insert(0, program.clone());
    }
    needs
}

fn deserialize_size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    let text = String::deserialize(deserializer)?;
    Bytes::parse(&text).map(Some).map_err(serde::de::Error::custom)
}

/// Names that a template may use besides the parameters; `target` and `targets` are tables that a target of a run has.
fn template_names<'a>() -> impl Iterator<Item = &'a str> {
    let others = ["scratch", "kept", "perflab", "free_port", "target", "targets"];
    Facts::VARIABLES.iter().map(|(name, _)| *name).chain(others)
}

/// All problems of a definition except those of its metrics.
fn definition_problems(document: &DefinitionDocument) -> Vec<Problem> {
    let mut found = Vec::new();
    if document.argv.is_empty() {
        found.push(Problem::new("argv", "is empty").with_hint("name the program and its arguments"));
    }
    if document.metrics.is_empty() && document.histograms.is_empty() {
        let problem = Problem::new("metric", "nothing is measured");
        found.push(problem.with_hint("add a table `[[metric]]` or `[[histogram]]`"));
    }
    for (name, parameter) in &document.parameters {
        check_parameter(name, parameter, &mut found);
    }
    found.extend(brief_problems(document));
    found.extend(script_problem(document));
    found.extend(document.server.iter().flat_map(ServerDocument::problems));
    found.extend(document.data.iter().flat_map(|data| data.problems(document.needs.scratch)));
    found.extend(archive_problem(document));
    found.extend(folder_problems(document));
    found.extend(template_problems(document));
    found
}

/// Metrics named twice; a name with a `*` also where it covers another's.
fn duplicate_metric_problems(metrics: &[MetricRule], histograms: &[HistogramRule]) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let again = metrics.iter().enumerate().filter(|(_, rule)| !seen.insert(&rule.metric.name));
    let mut problems: Vec<Problem> = again
        .map(|(index, rule)| {
            let message = format!("the metric `{}` stands here twice", rule.metric.name);
            Problem::new(format!("metric[{index}].name"), message)
        })
        .collect();
    for (index, rule) in histograms.iter().enumerate() {
        let is_covered = |name: &String| metrics.iter().any(|rule| rule.metric.covers(name));
        let twice = rule.metrics().find(|metric| is_covered(&metric.name) || !seen.insert(&metric.name));
        problems.extend(twice.map(|metric| {
            let message = format!("its metric `{}` stands here twice", metric.name);
            Problem::new(format!("histogram[{index}].name"), message)
        }));
    }
    problems
}

fn check_parameter(name: &str, parameter: &WorkloadParameter, found: &mut Vec<Problem>) {
    let key = |part: &str| format!("parameter.{name}.{part}");
    if (parameter.kind == ParameterKind::Choice) == parameter.choices.is_empty() {
        let hint = "list `choices` for `type = \"choice\"`, and for no other";
        found.push(Problem::new(key("choices"), "do not fit the type").with_hint(hint));
    }
    for (part, bound) in [("min", &parameter.min), ("max", &parameter.max)] {
        if let Some(bound) = bound
            && parameter::range_bound(parameter.kind, bound).is_none()
        {
            let message = format!("`{bound}` is no bound of type {}", parameter.kind);
            found.push(
                Problem::new(key(part), message)
                    .with_hint(format!("write {}", parameter.kind.expected_text())),
            );
        }
    }
    // A default that is an expression needs a host; the others are checked here and now.
    if parameter::is_literal(parameter.kind, &parameter.default)
        && let Err(problem) =
            parameter::resolve_parameter(name, parameter, &parameter.default, &ExpressionScope::default())
    {
        found.push(Problem { key: key("default"), ..problem });
    }
}

/// Values of `[brief]` that are not values of a parameter.
fn brief_problems(document: &DefinitionDocument) -> Vec<Problem> {
    let problem = |(name, given): (&String, &Scalar)| {
        let key = format!("brief.{name}");
        let Some(parameter) = document.parameters.get(name) else {
            let hint = perflab_model::suggest_name(name, document.parameters.keys().map(String::as_str));
            return Some(Problem::new(key, format!("there is no parameter `{name}`")).with_hint(hint));
        };
        let checked = parameter::is_literal(parameter.kind, given)
            .then(|| parameter::resolve_parameter(name, parameter, given, &ExpressionScope::default()));
        checked?.err().map(|problem| Problem { key, ..problem })
    };
    document.brief.iter().filter_map(problem).collect()
}

/// A script gets its values as `$1`, `$2`, so that no value can become part of the script.
fn script_problem(document: &DefinitionDocument) -> Option<Problem> {
    let [first, ..] = document.argv.as_slice() else { return None };
    let templated = document.shell && first.templates().iter().any(|text| text.contains("{{"));
    templated.then(|| {
        Problem::new("argv[0]", "a script takes no template")
            .with_hint("pass the value as a further element of argv and use \"$1\"")
    })
}

fn archive_problem(document: &DefinitionDocument) -> Option<Problem> {
    let source = document.install.source.as_ref()?;
    let hex = source.sha256.len() == 64 && source.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
    (!hex).then(|| {
        Problem::new("install.source.sha256", "is not a SHA-256").with_hint("64 hex digits: `sha256sum FILE`")
    })
}

/// Patterns of folders that are none, or that would depend on where perflab is started.
fn folder_problems(document: &DefinitionDocument) -> impl Iterator<Item = Problem> {
    document.needs.program_folders.iter().enumerate().filter_map(|(index, pattern)| {
        let key = format!("needs.program-folders[{index}]");
        match glob::Pattern::new(pattern) {
            Err(error) => Some(Problem::new(key, format!("`{pattern}`: {error}"))),
            Ok(_) if !pattern.starts_with('/') => {
                let problem = Problem::new(key, format!("`{pattern}` is no absolute path"));
                Some(problem.with_hint("write it from the root on, as in \"/usr/lib/postgresql/*/bin\""))
            }
            Ok(_) => None,
        }
    })
}

/// Templates that do not compile or use a name that cannot exist.
fn template_problems(document: &DefinitionDocument) -> Vec<Problem> {
    let parameters = document.parameters.keys().map(String::as_str).chain(template_names());
    let known: Vec<&str> = parameters.chain(document.data.is_some().then_some("data")).collect();
    // What is made once knows nothing of an iteration.
    let lasting: Vec<&str> =
        known.iter().copied().filter(|name| !["scratch", "free_port"].contains(name)).collect();
    let mut texts = Vec::new();
    let commands = document.commands();
    let arguments = commands
        .iter()
        .flat_map(|(key, argv)| argv.iter().enumerate().map(move |(index, one)| (key, index, one)));
    for (command, index, argument) in arguments {
        let key = format!("{command}[{index}]");
        let rendered = argument.templates().iter().map(|text| (key.clone(), text.clone(), false));
        texts.extend(rendered);
        if let ArgvElement::When { when, .. } = argument {
            texts.push((key, when.clone(), true));
        }
    }
    let readiness = document.server.iter().flat_map(ServerDocument::readiness_templates);
    texts.extend(readiness.map(|(key, text)| (key.to_owned(), text.clone(), false)));
    let environment = document.environment.iter();
    texts.extend(environment.map(|(name, text)| (format!("environment.{name}"), text.clone(), false)));
    let has_data = document.data.is_some();
    let lasts = |key: &str| key.starts_with(DATA_COMMAND) || has_data && key.starts_with("environment.");
    let known_at = |key: &str| if lasts(key) { &lasting } else { &known };
    texts
        .iter()
        .filter_map(|(key, text, expression)| unknown_name_problem(key, text, *expression, known_at(key)))
        .collect()
}

fn unknown_name_problem(key: &str, text: &str, expression: bool, known: &[&str]) -> Option<Problem> {
    use perflab_model::expression::ExpressionError;
    let mut scope = ExpressionScope::default();
    for name in known {
        scope.set(name, Scalar::Int(1));
    }
    let outcome = if expression { scope.evaluate(text).map(drop) } else { scope.render(text).map(drop) };
    match outcome {
        Err(ExpressionError::Unknown { name, .. }) => {
            let hint = perflab_model::suggest_name(&name, known.iter().copied());
            Some(
                Problem::new(key, format!("`{name}` is no parameter and no name of the host"))
                    .with_hint(hint),
            )
        }
        // A stand-in of 1 may not fit an expression about texts, but a syntax error is one for any value.
        Err(ExpressionError::Failed { reason, .. })
            if reason.contains("syntax") || reason.contains("unexpected") =>
        {
            Some(Problem::new(key, format!("`{text}`: {reason}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use perflab_model::study::TomlSource;

    use super::*;

    const GOOD: &str = r#"title = "a"
measures = "b"
homepage = "https://example.org"
licence = "MIT"
argv = ["tool", "--threads={{ threads }}", { when = "fast", args = ["--fast"] }]
[parameter.threads]
type = "integer"
default = "2 * cpus"
min = 1
about = "threads"
[parameter.fast]
type = "boolean"
default = false
about = "fast"
[brief]
threads = 1
[[metric]]
name = "rate"
unit = "ops/s"
direction = "higher"
primary = true
regex = 'rate (?<value>\d+)'
"#;

    fn definition_error_text(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        WorkloadDefinition::read(&TomlSource::new("w/tool.toml", GOOD.replace(from, to)))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_good_definition_reads() {
        let definition = WorkloadDefinition::read(&TomlSource::new("w/tool.toml", GOOD)).unwrap();
        assert_eq!(definition.name, "tool");
        assert_eq!(definition.needs.programs, ["tool"]);
        assert_eq!(definition.metrics().len(), 1);
        assert!(!definition.is_built_in());
    }

    #[test]
    fn an_unknown_key_gets_its_place_and_the_nearest_name() {
        let text = definition_error_text("licence =", "license =");
        assert_eq!(
            text,
            "w/tool.toml:4:1: `license`: the key `license` is not known here; did you mean `licence`?"
        );
        let text = definition_error_text("min = 1", "minimum = 1");
        insta::assert_snapshot!(text, @"w/tool.toml:9:1: `parameter.threads.minimum`: the key `minimum` is not known here; did you mean `min`?");
        let text = definition_error_text("unit = \"ops/s\"", "units = \"ops/s\"");
        insta::assert_snapshot!(text, @"w/tool.toml:19:1: the key `units` is not known here; did you mean `unit`?");
    }

    #[test]
    fn a_wrong_type_gets_its_place() {
        let text = definition_error_text("title = \"a\"", "title = 3");
        insta::assert_snapshot!(text, @r#"w/tool.toml:1:9: `title`: invalid type: integer `3`, expected a text; write `title = "3"`"#);
        let text = definition_error_text("type = \"integer\"", "type = \"int\"");
        insta::assert_snapshot!(text, @"w/tool.toml:7:8: `parameter.threads.type`: the value `int` is not known here; did you mean `integer`?");
        let text = definition_error_text("args = [\"--fast\"]", "arg = [\"--fast\"]");
        insta::assert_snapshot!(text, @"w/tool.toml:5:61: `argv[2].arg`: the key `arg` is not known here; did you mean `args`?");
    }

    #[test]
    fn rules_are_exactly_one_and_capture_a_value() {
        let text = definition_error_text("regex = 'rate (?<value>\\d+)'", "");
        insta::assert_snapshot!(text, @r#"w/tool.toml:17:1: `metric[0]`: has no rule that finds it; write exactly one of `regex`, `json`, `csv`, `column`, `key` and `time = "wall"`"#);
        let text = definition_error_text("primary = true", "time = \"wall\"");
        insta::assert_snapshot!(text, @r#"w/tool.toml:17:1: `metric[0]`: has more than one rule; write exactly one of `regex`, `json`, `csv`, `column`, `key` and `time = "wall"`"#);
        let text = definition_error_text("(?<value>\\d+)", "(\\d+)");
        insta::assert_snapshot!(text, @"w/tool.toml:22:1: `metric[0].regex`: captures nothing named `value`; write `(?<value>[0-9.]+)`");
        let text = definition_error_text("(?<value>\\d+)", "(?<value>\\d+");
        insta::assert_snapshot!(text, @r#"w/tool.toml:22:1: `metric[0].regex`: regex parse error:     rate (?<value>\d+          ^ error: unclosed group"#);
        let text = definition_error_text("regex = 'rate (?<value>\\d+)'", "json = \"a/b\"");
        insta::assert_snapshot!(text, @"w/tool.toml:22:1: `metric[0].json`: `a/b` is not a JSON pointer; begin with /");
    }

    #[test]
    fn templates_name_what_exists() {
        let text = definition_error_text("{{ threads }}", "{{ thread }}");
        insta::assert_snapshot!(text, @"w/tool.toml:5:17: `argv[1]`: `thread` is no parameter and no name of the host; did you mean `threads`?");
        let text = definition_error_text("{{ threads }}", "{{ threads");
        insta::assert_snapshot!(text, @"w/tool.toml:5:17: `argv[1]`: `--threads={{ threads`: unexpected end of input, expected end of variable block");
        let text = definition_error_text("when = \"fast\"", "when = \"fasst\"");
        insta::assert_snapshot!(text, @"w/tool.toml:5:44: `argv[2]`: `fasst` is no parameter and no name of the host; did you mean `fast`?");
    }

    #[test]
    fn defaults_bounds_and_brief_values_fit_their_parameter() {
        let text = definition_error_text("default = \"2 * cpus\"", "default = 0");
        insta::assert_snapshot!(text, @"w/tool.toml:8:1: `parameter.threads.default`: 0 is out of range; allowed: at least 1");
        let text = definition_error_text("min = 1", "min = \"few\"");
        insta::assert_snapshot!(text, @r#"w/tool.toml:9:1: `parameter.threads.min`: `few` is no bound of type integer; write a whole number or an expression such as "2 * cpus""#);
        let text = definition_error_text("threads = 1\n[[", "thread = 1\n[[");
        insta::assert_snapshot!(text, @"w/tool.toml:16:1: `brief.thread`: there is no parameter `thread`; did you mean `threads`?");
        let text = definition_error_text("type = \"boolean\"", "type = \"choice\"");
        insta::assert_snapshot!(text, @r#"
w/tool.toml:11:12: `parameter.fast.choices`: do not fit the type; list `choices` for `type = "choice"`, and for no other
w/tool.toml:13:1: `parameter.fast.default`: `false` is not a choice; allowed:
"#);
    }

    #[test]
    fn a_script_takes_its_values_as_positions() {
        let text =
            definition_error_text("argv = [\"tool\",", "shell = true\nargv = [\"tool {{ threads }}\",");
        insta::assert_snapshot!(text, @r#"w/tool.toml:6:9: `argv[0]`: a script takes no template; pass the value as a further element of argv and use "$1""#);
    }

    #[test]
    fn a_folder_of_programs_is_an_absolute_pattern() {
        let text =
            definition_error_text("[brief]", "[needs]\nprogram-folders = [\"/opt/[\", \"bin\"]\n[brief]");
        insta::assert_snapshot!(text, @r#"
w/tool.toml:16:20: `needs.program-folders[0]`: `/opt/[`: Pattern syntax error near position 5: invalid range pattern
w/tool.toml:16:30: `needs.program-folders[1]`: `bin` is no absolute path; write it from the root on, as in "/usr/lib/postgresql/*/bin"
"#);
    }

    #[test]
    fn an_output_may_name_its_metrics_and_gives_one_value_each() {
        let named = GOOD.replace(
            "name = \"rate\"",
            "name = \"rate-*\"\nhead = '^== (?<name>\\S+)'\naggregate = \"mean\"",
        );
        let definition = WorkloadDefinition::read(&TomlSource::new("w/tool.toml", named)).unwrap();
        let values = definition.parse_metrics("== a\nrate 1\nrate 3\n== b\nrate 5\n", "", Nanos(1)).unwrap();
        let values: Vec<(&str, f64)> =
            values.iter().map(|value| (value.metric.name.as_str(), value.value)).collect();
        assert_eq!(values, [("rate-a", 2.0), ("rate-b", 5.0)]);
        assert!(definition.metrics().iter().any(|metric| metric.covers("rate-a")));
        let text = definition_error_text("primary = true", "aggregate = \"each\"");
        insta::assert_snapshot!(text, @"w/tool.toml:21:1: `metric[0].aggregate`: `each` is for imported logs; an execution has one value a metric: `last`, `mean`, …");
    }

    #[test]
    fn percentiles_of_a_histogram_are_metrics() {
        let histogram = "[[histogram]]\nname = \"latency\"\nunit = \"us\"\ndirection = \"lower\"\npercentiles = [50, 99.9]\n\
                         primary = [\"p99.9\"]\nregex = '^(?<value>\\d+) (?<count>\\d+)$'\n";
        let read = |text: String| WorkloadDefinition::read(&TomlSource::new("w/tool.toml", text));
        let both = read(format!("{GOOD}{histogram}")).unwrap();
        let metrics = both.metrics();
        let declared: Vec<(&str, bool)> =
            metrics.iter().map(|metric| (metric.name.as_str(), metric.primary)).collect();
        assert_eq!(declared, [("rate", true), ("latency-p50", false), ("latency-p99.9", true)]);
        let output = "rate 7\n3 999\n8 1\n";
        let values = both.parse_metrics(output, "", Nanos(1)).unwrap();
        assert_eq!(values.iter().map(|value| value.value).collect::<Vec<_>>(), [7.0, 3.0, 3.0]);
        // Of fewer than a thousand values there is no thousandth.
        assert_eq!(both.parse_metrics("rate 7\n3 998\n8 1\n", "", Nanos(1)).unwrap().len(), 2);

        let (head, _) = GOOD.split_once("[[metric]]").unwrap();
        assert_eq!(read(format!("{head}{histogram}")).unwrap().metrics().len(), 2);
        let text = read(format!("{GOOD}{histogram}{histogram}")).unwrap_err().to_string();
        insta::assert_snapshot!(text, @"w/tool.toml:31:1: `histogram[1].name`: its metric `latency-p50` stands here twice");
        let text = read(GOOD.replace("name = \"rate\"", "name = \"latency-p50\"") + histogram)
            .unwrap_err()
            .to_string();
        insta::assert_snapshot!(text, @"w/tool.toml:24:1: `histogram[0].name`: its metric `latency-p50` stands here twice");
        let text =
            read(format!("{GOOD}{}", histogram.replace("50, 99.9", "50, 100"))).unwrap_err().to_string();
        insta::assert_snapshot!(text, @"w/tool.toml:27:20: `histogram[0].percentiles[1]`: 100 is no percentile; above 0 and below 100, with at most nine digits behind the point; the largest is `max = true`");
    }

    #[test]
    fn a_series_has_a_table_and_its_mistakes_a_place() {
        let series = "[[series]]\nname = \"progress\"\nregex = '^at (?<time>\\d+): (?<rate>\\d+)$'\ncolumns = { rate = \"1/s\" }\n";
        let read = |text: String| WorkloadDefinition::read(&TomlSource::new("w/tool.toml", text));
        let definition = read(format!("{GOOD}{series}")).unwrap();
        assert_eq!(definition.series_table(&definition.series[0]), "tool-progress");
        let found = definition.read_series("at 1: 7\nat 2: 9\n", "", Nanos(3_000_000_000)).unwrap();
        assert_eq!((found.len(), found[0].1.len()), (1, 2));
        assert!(definition.read_series("rate 7", "", Nanos(1)).is_err());
        let problem = |text: String| read(text).unwrap_err().list[0].key.clone();
        assert_eq!(problem(format!("{GOOD}{series}{series}")), "series[1].name");
        assert_eq!(problem(format!("{GOOD}{}", series.replace("rate =", "rat ="))), "series[0].columns.rat");
    }

    #[test]
    fn metrics_and_argv_must_be_there() {
        let text = definition_error_text(
            "argv = [\"tool\", \"--threads={{ threads }}\", { when = \"fast\", args = [\"--fast\"] }]",
            "argv = []",
        );
        insta::assert_snapshot!(text, @"w/tool.toml:5:1: `argv`: is empty; name the program and its arguments");
        let metric = GOOD.split_once("[[metric]]").unwrap().1;
        let text = definition_error_text("[[metric]]", &format!("[[metric]]{metric}\n[[metric]]"));
        insta::assert_snapshot!(text, @"w/tool.toml:25:1: `metric[1].name`: the metric `rate` stands here twice");
    }

    /// What is one's own needs no homepage and no licence; what ships has both.
    #[test]
    fn a_private_definition_says_what_it_does_and_no_more() {
        let text = "title = \"a\"\nmeasures = \"b\"\nargv = [\"true\"]\n[[metric]]\nname = \"time\"\nunit = \"s\"\n\
                direction = \"lower\"\ntime = \"wall\"\n";
        let definition = WorkloadDefinition::read(&TomlSource::new("w/own.toml", text)).unwrap();
        assert_eq!((&definition.homepage, &definition.licence), (&None, &None));
        let problems = WorkloadDefinition::read(&TomlSource::new("w/own.toml", "title = \"a\"")).unwrap_err();
        let messages: Vec<&str> = problems.list.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(messages, ["measures", "argv", "metric"].map(|key| format!("the key `{key}` is missing")));
        for shipped in crate::catalogue::Catalogue::embedded().iter() {
            assert!(shipped.homepage.is_some() && shipped.licence.is_some(), "{}", shipped.name);
        }
    }
}
