//! The tables and keys of a definition file.

use indexmap::IndexMap;
use perflab_model::expression::ExpressionScope;
use perflab_model::study::TomlSource;
use perflab_model::{Bytes, Metric, Problems, Scalar};
use serde::{Deserialize, Deserializer};
use sha2::{Digest as _, Sha256};

use super::metric::MetricRuleDocument;
use super::{ArgvElement, MetricRule, WorkloadParameter, check};

/// One workload of the catalogue.
#[derive(Debug, Clone)]
pub struct WorkloadDefinition {
    /// The name of its file, without `.toml`.
    pub name: String,
    /// The file it stands in, as the user would find it.
    pub file: String,
    /// SHA-256, in hex, of what its text makes it do and measure: titles, installation and the like are no part of it.
    pub digest: String,
    /// One line.
    pub title: String,
    /// What its numbers mean, for somebody who never ran it.
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
    /// Whether the program is linked with optrace and writes a trace where it is told to.
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
    /// How its output becomes metrics, at least one.
    pub rules: Vec<MetricRule>,
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
    /// What must be on PATH. The first of `argv` is added where it is no template.
    pub programs: Vec<String>,
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DefinitionDocument {
    title: String,
    measures: String,
    homepage: Option<String>,
    licence: Option<String>,
    pub(super) argv: Vec<ArgvElement>,
    #[serde(default)]
    pub(super) shell: bool,
    #[serde(default)]
    traced: bool,
    #[serde(default)]
    version: Vec<String>,
    #[serde(default, rename = "parameter")]
    pub(super) parameters: IndexMap<String, WorkloadParameter>,
    #[serde(default)]
    pub(super) install: InstallSpec,
    #[serde(default)]
    pub(super) environment: IndexMap<String, String>,
    #[serde(default)]
    pub(super) needs: Requirements,
    #[serde(default)]
    pub(super) brief: IndexMap<String, Scalar>,
    #[serde(default)]
    pub(super) operations: IndexMap<String, String>,
    #[serde(rename = "metric")]
    pub(super) metrics: Vec<MetricRuleDocument>,
}

impl WorkloadDefinition {
    /// Reads and checks one definition, as far as its text alone can tell.
    pub fn read(source: &TomlSource) -> Result<WorkloadDefinition, Problems> {
        let document: DefinitionDocument =
            source.parse_requiring(&["title", "measures", "argv", "metric"])?;
        let mut list = check::definition_problems(&document);
        let mut rules = Vec::new();
        for (index, table) in document.metrics.into_iter().enumerate() {
            match table.into_rule(&format!("metric[{index}]")) {
                Ok(rule) => rules.push(rule),
                Err(problem) => list.push(problem),
            }
        }
        list.extend(check::duplicate_metric_problems(&rules));
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
            traced: document.traced,
            environment: document.environment,
            version: document.version,
            brief: document.brief,
            operations: document.operations,
            rules,
        })
    }

    /// What it measures, in the order of the file.
    pub fn metrics(&self) -> Vec<Metric> {
        self.rules.iter().map(|rule| rule.metric.clone()).collect()
    }

    /// How many of each operation one execution does; those that the scope cannot tell are left out.
    pub fn operation_counts(&self, scope: &ExpressionScope) -> std::collections::BTreeMap<String, f64> {
        let count =
            |(name, text): (&String, &String)| Some((name.clone(), scope.evaluate(text).ok()?.as_number()?));
        self.operations.iter().filter_map(count).collect()
    }

    /// Whether perflab itself is the program, so that nothing has to be installed.
    pub fn is_built_in(&self) -> bool {
        self.argv
            .first()
            .is_some_and(|first| matches!(first, ArgvElement::Plain(text) if text.contains("perflab }}")))
    }
}

/// What stands in a definition for people, for installing it or for trying it.
const NOT_MEASURED: &[&str] =
    &["title", "measures", "homepage", "licence", "install", "needs", "version", "brief", "operations"];

/// Of the document's keys in order, so that comments, spaces and the order of tables do not count.
fn hash_definition(text: &str) -> String {
    let mut document: toml::Table = text.parse().unwrap_or_default();
    document.retain(|key, _| !NOT_MEASURED.contains(&key));
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
