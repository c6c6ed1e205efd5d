//! A command of a study, `[workload.NAME] command = …`, as a definition of the catalogue: what a person would have written
//! into a file.
//!
//! It is made as text, so that an agent elsewhere reads what it reads of any other definition.

use std::collections::BTreeSet;

use perflab_model::expression::template_names;
use perflab_model::study::{
    BesideSpec, CommandLine, DataCommand, FactorKind, ServerCommand, ServerReadiness, Study, TomlSource,
    WorkloadSpec,
};
use perflab_model::{Problem, Scalar};
use toml::Value;

/// What runs a text where a study names no shell.
const DEFAULT_SHELL: &str = "/bin/sh";

/// The word for no shell at all.
const NO_SHELL: &str = "none";

/// The definition of the command of workload `name` in `study`, as the file that it could be; `None` for a workload of the
/// catalogue.
pub(crate) fn write_inline_definition(name: &str, study: &Study) -> Option<TomlSource> {
    let spec = study.workload.get(name)?;
    let command = spec.command.as_ref()?;
    let mut document = toml::Table::new();
    let mut put = |key: &str, value: Value| drop(document.insert(key.to_owned(), value));
    put("title", "a command of the study".into());
    put("measures", "how long it takes".into());
    put("argv", command_elements(command, spec.shell.as_deref()));
    for (key, command) in spec.untimed_commands() {
        put(key, command_elements(command, spec.shell.as_deref()));
    }
    if let Some(data) = &spec.data {
        put("data", data_table(data, spec));
    }
    if let Some(server) = &spec.server {
        put("server", server_table(server, spec));
    }
    if !spec.allow_exit.is_empty() {
        put("allow-exit", spec.allow_exit.iter().map(|code| i64::from(*code)).collect::<Vec<_>>().into());
    }
    if spec.metric.is_empty() && spec.histogram.is_empty() && spec.series.is_empty() {
        put("keeps-locale", true.into());
    }
    // What is restored has to be somewhere.
    if spec.data.is_some() || names_scratch(command_texts(spec)) {
        put("needs", scratch_need());
    }
    let parameters = parameter_names(name, spec, study).into_iter().map(|name| (name, text_parameter()));
    put("parameter", toml::Table::from_iter(parameters).into());
    put("metric", metric_rules(&spec.metric, &spec.histogram));
    if !spec.histogram.is_empty() {
        put("histogram", spec.histogram.iter().map(rule_to_toml).collect::<Vec<_>>().into());
    }
    if !spec.series.is_empty() {
        put("series", spec.series.iter().map(rule_to_toml).collect::<Vec<_>>().into());
    }
    // Keys and values are TOML's own: there is nothing that cannot be written.
    let text = toml::to_string(&document).unwrap_or_default();
    Some(TomlSource::new(format!("{name}.toml"), text))
}

/// What a definition of a command that runs beside others is called.
pub(crate) fn beside_definition_name(name: &str) -> String {
    format!("beside {name}")
}

/// The definition of `[beside.NAME]`, as the file that it could be.
pub(crate) fn write_beside_definition(name: &str, beside: &BesideSpec, study: &Study) -> TomlSource {
    let mut document = toml::Table::new();
    let mut put = |key: &str, value: Value| drop(document.insert(key.to_owned(), value));
    put("title", "runs beside iterations".into());
    put("measures", "nothing: it disturbs".into());
    put("argv", command_elements(&beside.command, beside.shell.as_deref()));
    put("keeps-locale", true.into());
    if names_scratch(beside.command.templates()) {
        put("needs", scratch_need());
    }
    let used = needed_names(beside.command.templates());
    let values = study.values.keys().filter(|value| used.contains(*value));
    let parameters = values.map(|value| (value.clone(), text_parameter()));
    put("parameter", toml::Table::from_iter(parameters).into());
    put("metric", metric_rules(&[], &[]));
    // Keys and values are TOML's own: there is nothing that cannot be written.
    let text = toml::to_string(&document).unwrap_or_default();
    TomlSource::new(format!("{}.toml", beside_definition_name(name)), text)
}

/// Whether one of these texts is about the scratch directory, or about the one beside it that all cases share.
fn names_scratch<'a>(texts: impl IntoIterator<Item = &'a String>) -> bool {
    let names = needed_names(texts);
    names.contains("scratch") || names.contains("kept")
}

/// `[needs]` of who needs a scratch directory.
fn scratch_need() -> Value {
    toml::Table::from_iter([("scratch".to_owned(), true.into())]).into()
}

/// Where the study says what a key of the definition says.
pub(crate) fn place_in_study(name: &str, problem: Problem) -> Problem {
    let (first, rest) = match problem.key.find(['.', '[']) {
        Some(at) => problem.key.split_at(at),
        None => (problem.key.as_str(), ""),
    };
    let key = match first {
        "argv" => format!("workload.{name}.command"),
        "metric" | "histogram" | "series" => format!("workload.{name}.{first}{rest}"),
        "data" => format!("workload.{name}.data{}", rest.replace(".argv", ".command")),
        "server" => format!("workload.{name}.server{}", rest.replace(".argv", ".command")),
        "parameter" => format!("workload.{name}.parameters"),
        "setup" | "prepare" | "conclude" | "cleanup" | "allow-exit" => format!("workload.{name}.{first}"),
        _ => format!("workload.{name}"),
    };
    Problem { key, span: None, ..problem }
}

/// The elements of `argv` that run a command.
fn command_elements(command: &CommandLine, shell: Option<&str>) -> Value {
    let shell = shell.unwrap_or(DEFAULT_SHELL);
    match command {
        CommandLine::Words(words) => words.clone().into(),
        CommandLine::Text(text) if shell == NO_SHELL => {
            vec![Value::from(toml::Table::from_iter([("words".to_owned(), text.as_str().into())]))].into()
        }
        CommandLine::Text(text) => {
            let mut argv = shlex::split(shell).unwrap_or_else(|| vec![shell.to_owned()]);
            argv.extend(["-c".to_owned(), text.clone()]);
            argv.into()
        }
    }
}

/// The data of a command as a definition has them.
fn data_table(data: &DataCommand, spec: &WorkloadSpec) -> Value {
    let mut table = toml::Table::new();
    table.insert("argv".to_owned(), command_elements(&data.command, spec.shell.as_deref()));
    table.insert("once".to_owned(), data.once.name().into());
    table.extend(data.restore.iter().map(|parts| ("restore".to_owned(), parts.clone().into())));
    table.into()
}

/// The server of a command as a definition has it.
fn server_table(server: &ServerCommand, spec: &WorkloadSpec) -> Value {
    let mut table = toml::Table::new();
    table.insert("argv".to_owned(), command_elements(&server.command, spec.shell.as_deref()));
    let ServerReadiness { port, line, file, command } = &server.ready;
    let mut ready = toml::Table::new();
    for (key, text) in [("port", port), ("line", line), ("file", file)] {
        ready.extend(text.iter().map(|text| (key.to_owned(), text.as_str().into())));
    }
    ready.extend(
        command
            .iter()
            .map(|command| ("command".to_owned(), command_elements(command, spec.shell.as_deref()))),
    );
    table.insert("ready".to_owned(), ready.into());
    for (key, time) in [("within", server.within), ("stop-within", server.stop_within)] {
        table.extend(time.map(|time| (key.to_owned(), format!("{}ns", time.0.0).into())));
    }
    table.into()
}

/// All texts of the commands, timed and untimed.
fn command_texts(spec: &WorkloadSpec) -> impl Iterator<Item = &String> {
    let commands = spec
        .untimed_commands()
        .chain(spec.server_commands())
        .chain(spec.data_commands())
        .map(|(_, command)| command);
    let readiness = spec.server.iter().flat_map(|server| server.ready.port.iter().chain(&server.ready.file));
    commands.chain(spec.command.as_ref()).flat_map(CommandLine::templates).chain(readiness)
}

/// The names that texts need from parameters and host. One that is no template is told with its place when the definition is
/// read.
fn needed_names<'a>(texts: impl IntoIterator<Item = &'a String>) -> BTreeSet<String> {
    texts.into_iter().flat_map(|text| template_names(text).unwrap_or_default()).collect()
}

/// Everything that the study sets or varies for this workload: parameters that others may use come first.
fn parameter_names(name: &str, spec: &WorkloadSpec, study: &Study) -> Vec<String> {
    let ours = study.factor.iter().filter(|(_, factor)| {
        factor.kind == FactorKind::Parameter
            && factor.workload.as_deref().is_none_or(|workload| workload == name)
    });
    let levels = ours.clone().flat_map(|(_, factor)| &factor.levels).filter_map(|level| match &level.value {
        Scalar::Text(text) => Some(text),
        _ => None,
    });
    let used = needed_names(command_texts(spec).chain(levels));
    let factors = ours.map(|(factor, found)| found.key.as_deref().unwrap_or(factor));
    // A factor that the command does not name varies another workload.
    let factors = factors.filter(|factor| used.contains(*factor));
    let values = study.values.keys().map(String::as_str).filter(|value| used.contains(*value));
    let mut names: Vec<String> = Vec::new();
    let own = spec.parameters.keys().chain(spec.matrix.keys()).map(String::as_str);
    for one in own.chain(factors).chain(values) {
        if !names.iter().any(|known| known == one) {
            names.push(one.to_owned());
        }
    }
    names
}

/// A parameter of which every case has a value.
fn text_parameter() -> Value {
    let keys = [("type", "text"), ("default", ""), ("about", "a parameter of the study")];
    toml::Table::from_iter(keys.map(|(key, value)| (key.to_owned(), value.into()))).into()
}

/// A table of the study that a definition has as it stands.
type RuleTable = serde_json::Map<String, serde_json::Value>;

fn rule_to_toml(rule: &RuleTable) -> Value {
    Value::try_from(rule).unwrap_or_else(|_| toml::Table::new().into())
}

/// The study's own rules, and the time: it decides where nothing else does.
fn metric_rules(own: &[RuleTable], histograms: &[RuleTable]) -> Value {
    let mut rules: Vec<Value> = own.iter().map(rule_to_toml).collect();
    let decides = |histogram: &RuleTable| {
        histogram.get("primary").and_then(|list| list.as_array()).is_some_and(|list| !list.is_empty())
    };
    let has_primary =
        own.iter().any(|rule| rule.get("primary") == Some(&true.into())) || histograms.iter().any(decides);
    if !own.iter().any(|rule| rule.get("name") == Some(&"time".into())) {
        let mut time = toml::Table::new();
        for (key, value) in [("name", "time"), ("unit", "s"), ("direction", "lower"), ("time", "wall")] {
            time.insert(key.to_owned(), value.into());
        }
        time.insert("primary".to_owned(), (!has_primary).into());
        rules.push(time.into());
    }
    rules.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;
    use crate::argv_element::ArgvElement;

    fn catalogue_of(text: &str) -> Result<Catalogue, Vec<Problem>> {
        let study = TomlSource::new("s.toml", text).parse_study().unwrap();
        Catalogue::default().with_commands_of(&study)
    }

    #[test]
    fn a_command_is_a_definition_with_the_parameters_that_it_names() {
        let text = r#"title = "t"
[workload.sort]
command = "sort -S {{ buffer }} {{ scratch }}/in"
prepare = ["sync"]
parameters = { lines = 3 }
[factor.buffer]
kind = "parameter"
levels = ["64M", "1G"]
[factor.other]
kind = "parameter"
levels = [1, 2]
"#;
        let catalogue = catalogue_of(text).unwrap();
        let found = catalogue.get("sort").unwrap();
        assert_eq!(found.parameters.keys().collect::<Vec<_>>(), ["lines", "buffer"]);
        assert!(found.needs.scratch);
        assert_eq!(found.phases.prepare, [ArgvElement::Plain("sync".into())]);
        assert_eq!(found.argv.len(), 3);
        let metrics = found.metrics();
        assert_eq!((metrics[0].name.as_str(), metrics[0].primary), ("time", true));
    }

    #[test]
    fn who_names_what_is_kept_has_a_disk() {
        let text = "title = \"t\"\n[workload.w]\ncommand = \"w\"\nsetup = \"touch {{ kept }}/f\"\n\
                    [beside.b]\ncommand = \"cat {{ kept }}/f\"\n";
        let catalogue = catalogue_of(text).unwrap();
        assert!(catalogue.get("w").unwrap().needs.scratch);
        assert!(catalogue.get_beside("b").unwrap().needs.scratch);
    }

    #[test]
    fn the_studys_values_may_stand_in_commands() {
        let text = "title = \"t\"\n[values]\nhalf = \"cpus / 2\"\nother = 1\n[workload.w]\n\
                    command = \"w -j {{ half }}\"\n[beside.b]\ncommand = \"b {{ half }}\"\n";
        let catalogue = catalogue_of(text).unwrap();
        assert_eq!(catalogue.get("w").unwrap().parameters.keys().collect::<Vec<_>>(), ["half"]);
        assert_eq!(catalogue.get_beside("b").unwrap().parameters.keys().collect::<Vec<_>>(), ["half"]);
    }

    #[test]
    fn a_rule_of_the_study_decides_in_place_of_the_time() {
        let text = "title = \"t\"\n[workload.w]\ncommand = \"w\"\n[[workload.w.metric]]\nname = \"rate\"\n\
                    unit = \"ops/s\"\ndirection = \"higher\"\nprimary = true\nregex = 'rate (?<value>\\d+)'\n";
        let catalogue = catalogue_of(text).unwrap();
        let metrics = catalogue.get("w").unwrap().metrics();
        let primary: Vec<(&str, bool)> = metrics.iter().map(|one| (one.name.as_str(), one.primary)).collect();
        assert_eq!(primary[..2], [("rate", true), ("time", false)]);
    }

    #[test]
    fn a_histogram_of_the_study_decides_too() {
        let text = "title = \"t\"\n[workload.w]\ncommand = \"w\"\n[[workload.w.histogram]]\nname = \"late\"\n\
                    unit = \"us\"\ndirection = \"lower\"\nprimary = [\"p99\"]\npercentiles = [50, 99]\njson = \"/h\"\n";
        let catalogue = catalogue_of(text).unwrap();
        let metrics = catalogue.get("w").unwrap().metrics();
        let primary: Vec<(&str, bool)> = metrics.iter().map(|one| (one.name.as_str(), one.primary)).collect();
        assert_eq!(primary, [("time", false), ("late-p50", false), ("late-p99", true)]);
    }

    #[test]
    fn mistakes_are_placed_in_the_study() {
        let keys = |workload: &str| -> Vec<String> {
            let text = format!("title = \"t\"\n[workload.w]\n{workload}");
            catalogue_of(&text).unwrap_err().into_iter().map(|problem| problem.key).collect()
        };
        assert_eq!(keys("command = \"ls {{ nowhere }}\""), ["workload.w.command"]);
        assert_eq!(keys("command = \"ls\"\nprepare = \"{{ a }}\""), ["workload.w.prepare"]);
        let rule = "command = \"ls\"\n[[workload.w.metric]]\nname = \"a\"\nunit = \"s\"\ndirection = \"lower\"\nregex = '('\n";
        assert_eq!(keys(rule), ["workload.w.metric[0].regex"]);
        let rule = "command = \"ls\"\n[[workload.w.histogram]]\nname = \"a\"\nunit = \"s\"\ndirection = \"lower\"\njson = \"/h\"\n\
                    percentiles = [50, 0]\n";
        assert_eq!(keys(rule), ["workload.w.histogram[0].percentiles[1]"]);
    }

    #[test]
    fn without_a_shell_a_text_is_split_into_words() {
        let catalogue =
            catalogue_of("title = \"t\"\n[workload.w]\nshell = \"none\"\ncommand = \"printf '%s b' a\"\n");
        let definition = catalogue.unwrap().get("w").unwrap().clone();
        let words = definition.argv[0].render(&Default::default()).unwrap();
        assert_eq!(words, ["printf", "%s b", "a"]);
    }
}
