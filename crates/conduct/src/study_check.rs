//! Mistakes of a study that only the catalogue, the monitors and the facts can reveal.

use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use perflab_guest::DistributionRoot;
use perflab_model::expression::ExpressionScope;
use perflab_model::study::{
    BesideSpec, CountersSpec, EVENTS_MONITOR, Factor, FactorKind, MonitorTiming, SlotOrder, Study,
    WorkloadSpec, stopping_rule_problems,
};
use perflab_model::{Metric, Problem};
use perflab_observe::CounterEvent;
use perflab_workload::{Catalogue, refuse_syscall_name};

use crate::case_expansion::{catalogue_name, factor_concerns};
use crate::run_hooks::render_hook;

/// All such problems.
pub(crate) fn check_study(study: &Study, catalogue: &Catalogue, scope: &ExpressionScope) -> Vec<Problem> {
    let mut found = Vec::new();
    check_workloads(study, catalogue, &mut found);
    // Levels that the command line left out, or a rule that it gave.
    found.extend(stopping_rule_problems(study));
    for (name, factor) in &study.factor {
        found.extend(factor_problem(name, factor, study, catalogue));
        check_levels(name, factor, scope, &mut found);
    }
    found.extend(hook_problems(study, scope));
    check_monitors(study, &mut found);
    check_roots(study, &mut found);
    check_counters(study, &mut found);
    check_events(study, &mut found);
    found.extend(series_problems(study, catalogue));
    check_fact_families(study, &mut found);
    check_metrics(study, catalogue, &mut found);
    found
}

/// What is not a mistake, and yet hardly meant: a factor that varies nothing, a value or a command's parameter that is not used.
pub fn study_warnings(study: &Study) -> Vec<Problem> {
    let single = study.factor.iter().filter(|(_, factor)| {
        let may_be_one =
            matches!(factor.kind, FactorKind::Label | FactorKind::Targets) || factor.varies_hosts();
        factor.levels.len() == 1 && !may_be_one
    });
    let single = single.map(|(name, factor)| {
        let problem = Problem::new(format!("factor.{name}.levels"), "has one level, so nothing is compared");
        let place = match factor.kind {
            FactorKind::Parameter => "`parameters` of the workload",
            FactorKind::Environment => "`environment` of the workload",
            FactorKind::Sysctl | FactorKind::File | FactorKind::Setting => "`[settings]`",
            _ => return problem.with_hint("add a second level, or leave the factor out"),
        };
        problem.with_hint(format!("add a second level, or set it for all in {place}"))
    });
    let mut texts = collect_texts(&serde_json::to_value(study).unwrap_or_default());
    texts.extend(study.brief.values().flat_map(collect_texts));
    let used = names_in(&texts);
    let unused = study.values.keys().filter(|name| !used.contains(name.as_str()));
    let unused = unused.map(|name| {
        Problem::new(format!("values.{name}"), "nobody uses this value")
            .with_hint(format!("write `{name}` in an expression, or remove it"))
    });
    let idle =
        (study.monitors.every.is_some() && study.monitors.preset.is_none() && study.monitors.is_empty())
            .then(|| {
                Problem::new("monitors.every", "no monitor is named that would be read so often")
                    .with_hint("add `preset = \"default\"`, or name a monitor with its own time")
            });
    let overwritten =
        study.workload.iter().filter_map(|(name, workload)| overwritten_setup(study, name, workload));
    let unused_parameters = study.workload.iter().flat_map(unused_parameters);
    single
        .chain(unused)
        .chain(unused_parameters)
        .chain(idle)
        .chain(overwritten)
        .chain(clashing_setups(study))
        .collect()
}

/// A set-up that writes something else for each case into one file of the folder that all cases share: the last one's is there when
/// iterations begin.
fn overwritten_setup(study: &Study, name: &str, workload: &WorkloadSpec) -> Option<Problem> {
    let matrix = workload.matrix.keys().map(String::as_str);
    let factors = study
        .factor
        .iter()
        .filter(|(_, factor)| factor.kind == FactorKind::Parameter && factor.levels.len() > 1);
    let factors = factors.map(|(name, factor)| factor.key.as_deref().unwrap_or(name));
    let varied: BTreeSet<String> = matrix.chain(factors).map(|name| name.replace('-', "_")).collect();
    let names_of = |text: &str| -> BTreeSet<String> {
        let in_braces = text.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
        let expressions: Vec<String> = in_braces.map(|(expression, _)| expression.to_owned()).collect();
        names_in(&expressions).into_iter().filter(|name| varied.contains(*name)).map(str::to_owned).collect()
    };
    let written = list_setup_writes(workload);
    let lost = written
        .iter()
        .find_map(|write| names_of(&write.command).difference(&names_of(&write.file)).next().cloned())?;
    let what = "writes something else for each case to one file of `{{ kept }}`, which all cases share: only the last one's stays";
    let hint = format!("name the file after the case: `{{{{ kept }}}}/NAME-{{{{ {lost} }}}}`");
    Some(Problem::new(format!("workload.{name}.setup"), what).with_hint(hint))
}

/// A file of `{{ kept }}` that a set-up writes, and the command that does, without blanks in braces.
struct SetupWrite {
    file: String,
    command: String,
}

/// The first file that each command of a set-up writes to in the folder that all cases share.
fn list_setup_writes(workload: &WorkloadSpec) -> Vec<SetupWrite> {
    let Ok(setup) = serde_json::to_value(&workload.setup) else { return Vec::new() };
    let text = collect_texts(&setup).join(" ");
    // What stands in braces is one word, and a file stands at the sign before it.
    let mut depth = 0_i32;
    let joined: String = text
        .chars()
        .filter(|letter| {
            depth += i32::from(*letter == '{') - i32::from(*letter == '}');
            depth == 0 || !letter.is_whitespace()
        })
        .collect();
    let joined = joined.replace("> ", ">").replace("||", ";").replace("&&", ";");
    let commands = joined.split([';', '\n']).map(str::trim);
    let write = |command: &str| {
        let written = command.split_whitespace().filter_map(|word| word.split_once('>'));
        let mut files = written.map(|(_, file)| file).filter(|file| file.contains("{{kept}}"));
        files.next().map(|file| SetupWrite { file: file.to_owned(), command: command.to_owned() })
    };
    commands.filter_map(write).collect()
}

/// Set-ups of two workloads that write something else to one file: in turns, each has the other's.
fn clashing_setups(study: &Study) -> Vec<Problem> {
    if study.run.order == SlotOrder::Sequential {
        return Vec::new();
    }
    let mut known: BTreeMap<String, (&String, String)> = BTreeMap::new();
    let mut found = Vec::new();
    for (name, workload) in &study.workload {
        let filled_in = |text: &str| {
            let parameters = workload.parameters.iter();
            parameters.fold(text.to_owned(), |text, (key, value)| {
                text.replace(&format!("{{{{{}}}}}", key.replace('-', "_")), &value.to_string())
            })
        };
        for write in list_setup_writes(workload) {
            let (file, command) = (filled_in(&write.file), filled_in(&write.command));
            let Some((other, _)) = known.get(&file).filter(|(_, other)| *other != command) else {
                known.insert(file, (name, command));
                continue;
            };
            let what = format!(
                "writes something else than the set-up of `{other}` to one file, {file}, which both share"
            );
            let hint = "name the file after the workload: `{{ kept }}/NAME-WORKLOAD`";
            found.push(Problem::new(format!("workload.{name}.setup"), what).with_hint(hint));
        }
    }
    found
}

/// Parameters that none of the commands of a workload of the study's own uses.
fn unused_parameters((name, workload): (&String, &WorkloadSpec)) -> Vec<Problem> {
    if workload.command.is_none() {
        return Vec::new();
    }
    let rest = WorkloadSpec { parameters: IndexMap::new(), matrix: IndexMap::new(), ..workload.clone() };
    let texts = collect_texts(&serde_json::to_value(rest).unwrap_or_default());
    let used = names_in(&texts);
    let unused = |key: &&String| !used.contains(key.as_str());
    let problem = |(table, key): (&str, &String), so: &str| {
        // A template reads `a-b` as a difference.
        let (spelt, first) = (key.replace('-', "_"), if key.contains('-') { "rename it, and " } else { "" });
        let hint = format!("{first}write `{{{{ {spelt} }}}}` in the command, or remove it");
        Problem::new(format!("workload.{name}.{table}.{key}"), format!("no command uses this parameter{so}"))
            .with_hint(hint)
    };
    let single = workload.parameters.keys().filter(unused).map(|key| problem(("parameters", key), ""));
    let several = workload.matrix.keys().filter(unused);
    single.chain(several.map(|key| problem(("matrix", key), ", so its values make equal cases"))).collect()
}

/// All that could be the name of a value in these texts.
fn names_in(texts: &[String]) -> BTreeSet<&str> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    texts.iter().flat_map(|text| text.split(move |part| !is_name(part))).collect()
}

/// Every text of a document that is not a key.
fn collect_texts(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::String(text) => vec![text.clone()],
        serde_json::Value::Array(list) => list.iter().flat_map(collect_texts).collect(),
        serde_json::Value::Object(table) => table.values().flat_map(collect_texts).collect(),
        _ => Vec::new(),
    }
}

fn check_workloads(study: &Study, catalogue: &Catalogue, found: &mut Vec<Problem>) {
    for (name, workload) in &study.workload {
        let requested = catalogue_name(name, workload);
        if catalogue.get(requested).is_none() {
            let key = if workload.uses.is_some() {
                format!("workload.{name}.use")
            } else {
                format!("workload.{name}")
            };
            found.push(
                Problem::new(key, format!("the catalogue has no workload `{requested}`"))
                    .with_hint(catalogue.unknown_name_hint(requested)),
            );
        }
    }
}

/// The templates of hooks, which concern all cases.
fn hook_problems(study: &Study, scope: &ExpressionScope) -> Vec<Problem> {
    let failed = |(key, command)| {
        let error = render_hook(command, scope).err()?;
        Some(Problem::new(format!("hooks.{key}"), error.to_string()))
    };
    study.hooks.commands().filter_map(failed).collect()
}

fn factor_problem(name: &str, factor: &Factor, study: &Study, catalogue: &Catalogue) -> Option<Problem> {
    if factor.kind == FactorKind::Label && factor.levels.len() > 1 {
        let names: Vec<&str> = factor.levels.iter().map(|level| level.name.as_str()).collect();
        let message =
            format!("perflab cannot change `{name}` itself, and does not know which level is in force");
        let hint = format!("say which one it is: --set {name}={}", names.join("|"));
        return Some(Problem::new(format!("factor.{name}"), message).with_hint(hint));
    }
    if factor.kind == FactorKind::Syscall {
        let (message, hint) = refuse_syscall_name(factor.key.as_deref().unwrap_or(name))?;
        let key = if factor.key.is_some() { format!("factor.{name}.key") } else { format!("factor.{name}") };
        return Some(Problem::new(key, message).with_hint(hint));
    }
    let unused = factor.kind == FactorKind::Parameter
        && !study.workload.iter().any(|(workload, use_)| {
            catalogue
                .get(catalogue_name(workload, use_))
                .is_none_or(|definition| factor_concerns(name, factor, workload, definition))
        });
    let parameter = factor.key.as_deref().unwrap_or(name);
    unused.then(|| {
        let names = parameter_names(study, catalogue);
        let hint = perflab_model::suggest_name(parameter, names.iter().map(String::as_str));
        Problem::new(format!("factor.{name}"), format!("no workload here has a parameter `{parameter}`"))
            .with_hint(hint)
    })
}

fn parameter_names(study: &Study, catalogue: &Catalogue) -> Vec<String> {
    let definitions =
        study.workload.iter().filter_map(|(name, workload)| catalogue.get(catalogue_name(name, workload)));
    definitions.flat_map(|definition| definition.parameters.keys().cloned()).collect()
}

fn check_levels(name: &str, factor: &Factor, scope: &ExpressionScope, found: &mut Vec<Problem>) {
    let templates = factor.kind.spec().is_templated;
    for (index, level) in factor.levels.iter().enumerate().filter(|_| templates) {
        if let Err(error) = scope.render(&level.value.to_string()) {
            found.push(Problem::new(format!("factor.{name}.levels[{index}]"), error.to_string()));
        }
    }
}

fn check_monitors(study: &Study, found: &mut Vec<Problem>) {
    let known = || perflab_observe::all_monitors().iter().map(|monitor| monitor.name);
    if let Some(preset) = study.monitors.preset.as_deref()
        && perflab_observe::find_monitor_preset(preset).is_none()
    {
        let presets = perflab_observe::MONITOR_PRESETS.iter().map(|preset| preset.name);
        let hint = perflab_model::suggest_name(preset, presets);
        let message = format!("there is no preset `{preset}` of monitors");
        found.push(Problem::new("monitors.preset", message).with_hint(hint));
    }
    for (name, timing) in study.monitors.iter() {
        let key = format!("monitors.{name}");
        if !known().any(|monitor| monitor == name) {
            let names: Vec<&str> = known().collect();
            let hint = perflab_model::suggest_name(name, names.iter().copied());
            found.push(Problem::new(&key, format!("there is no monitor `{name}`")).with_hint(hint));
        }
        if timing.is_too_often() {
            found.push(Problem::new(key, "is read too often").with_hint(MonitorTiming::SHORTEST_HINT));
        }
    }
}

/// Roots of releases that no distribution has, and levels that are one root.
fn check_roots(study: &Study, found: &mut Vec<Problem>) {
    for (name, target) in &study.target {
        if let Some(Some(Err(error))) = target.root.as_deref().map(DistributionRoot::parse) {
            found.push(Problem::new(format!("target.{name}.root"), error.to_string()));
        }
    }
    let is_root = |factor: &Factor| {
        let key = factor.key.as_deref().map(|key| key.rsplit('.').next().unwrap_or(key));
        factor.kind == FactorKind::Target && key == Some("root")
    };
    for (name, factor) in study.factor.iter().filter(|(_, factor)| is_root(factor)) {
        let mut known: Vec<DistributionRoot> = Vec::new();
        for level in factor.levels.iter() {
            let problem = match DistributionRoot::parse(&level.value.to_string()) {
                None => continue,
                Some(Ok(root)) => {
                    let same = known.iter().find(|other| other.is_same(&root));
                    let problem =
                        same.map(|other| format!("`{}` and `{}` are one root", other.text, root.text));
                    known.push(root);
                    problem
                }
                Some(Err(error)) => Some(error.to_string()),
            };
            found.extend(problem.map(|text| Problem::new(format!("factor.{name}.levels"), text)));
        }
    }
}

/// Names that are no events, events that are counted twice, and monitors of counters that there are not.
fn check_counters(study: &Study, found: &mut Vec<Problem>) {
    let none = CountersSpec::default();
    if study.counters.is_some() && study.run.order == SlotOrder::Duet {
        let hint = "leave `order` or the counters out: two levels run at once, and are counted as one";
        found.push(Problem::new("run.order", "`duet` does not go with [counters]").with_hint(hint));
    }
    let counters = study.counters.as_ref().unwrap_or(&none);
    for (monitor, table, groups) in [
        (CountersSpec::WORKLOAD_MONITOR, "events", &counters.events),
        (CountersSpec::CPU_MONITOR, "cpus", &counters.cpus),
    ] {
        let mut known = BTreeSet::new();
        for name in groups.names() {
            let key = format!("counters.{table}");
            match CounterEvent::parse(name) {
                Err(message) => found.push(Problem::new(key, message)),
                Ok(event) if !known.insert(event.name.clone()) => {
                    let message = format!("`{name}` is there twice");
                    found.push(Problem::new(key, message).with_hint("leave one out"));
                }
                Ok(_) => {}
            }
        }
        if groups.is_empty() && study.monitors.contains_key(monitor) {
            let message =
                format!("the monitor `{monitor}` counts what [counters] names under `{table}`: nothing");
            let hint = format!(
                "[counters] {table} = [\"task-clock\", \"context-switches\"], or leave the monitor out"
            );
            found.push(Problem::new(format!("monitors.{monitor}"), message).with_hint(hint));
        }
    }
}

/// A monitor of events that there are not.
fn check_events(study: &Study, found: &mut Vec<Problem>) {
    if study.events.is_empty() && study.monitors.contains_key(EVENTS_MONITOR) {
        let message = format!("the monitor `{EVENTS_MONITOR}` reads what [events.NAME] count: nothing");
        let hint = "[events.delay] recipe = \"run-queue-delay\", or leave the monitor out";
        found.push(Problem::new(format!("monitors.{EVENTS_MONITOR}"), message).with_hint(hint));
    }
    if !study.events.is_empty() && study.run.order == SlotOrder::Duet {
        let hint = "leave `order` or the events out: two levels run at once, and are counted as one";
        found.push(Problem::new("run.order", "`duet` does not go with [events]").with_hint(hint));
    }
}

/// Series of workloads whose table is a monitor's.
fn series_problems(study: &Study, catalogue: &Catalogue) -> Vec<Problem> {
    let mut found = Vec::new();
    for (name, workload) in &study.workload {
        let Some(definition) = catalogue.get(catalogue_name(name, workload)) else { continue };
        let tables = definition.series.iter().map(|rule| definition.series_table(rule));
        let is_monitor =
            |table: &String| perflab_observe::all_monitors().iter().any(|monitor| monitor.name == *table);
        found.extend(tables.filter(is_monitor).map(|table| {
            let message = format!("prints a series whose table `{table}` is a monitor's");
            Problem::new(format!("workload.{name}"), message)
                .with_hint("call the workload or the series otherwise")
        }));
    }
    found
}

fn check_fact_families(study: &Study, found: &mut Vec<Problem>) {
    let known: Vec<&str> = perflab_observe::all_fact_families().iter().map(|family| family.name).collect();
    for (index, name) in study.facts.iter().flatten().enumerate() {
        if !known.contains(&name.as_str()) {
            let hint = perflab_model::suggest_name(name, known.iter().copied());
            let message = format!("there is no family of facts `{name}`");
            found.push(Problem::new(format!("facts[{index}]"), message).with_hint(hint));
        }
    }
}

fn check_metrics(study: &Study, catalogue: &Catalogue, found: &mut Vec<Problem>) {
    let definitions =
        study.workload.iter().filter_map(|(name, workload)| catalogue.get(catalogue_name(name, workload)));
    let beside = study.beside.keys().map(|name| BesideSpec::rate_metric(name));
    let known: Vec<Metric> =
        definitions.flat_map(|definition| definition.all_metrics()).chain(beside).collect();
    for name in study.metric.keys().filter(|name| !known.iter().any(|metric| metric.covers(name))) {
        let hint = perflab_model::suggest_name(name, known.iter().map(|metric| metric.name.as_str()));
        found.push(
            Problem::new(format!("metric.{name}"), format!("no workload here measures `{name}`"))
                .with_hint(hint),
        );
    }
}

/// The declared metrics, with the study's choice of which of them are primary: `primary = true` of any makes the others
/// explain. A margin chooses nothing.
pub(crate) fn choose_primary_metrics(study: &Study, declared: Vec<Metric>) -> Vec<Metric> {
    // One that the study names and a `*` covers is declared by its name, before the `*`.
    let covered_names = |metric: &Metric| -> Vec<Metric> {
        let names = study.metric.keys().filter(|name| **name != metric.name && metric.covers(name));
        names.map(|name| Metric { name: name.clone(), ..metric.clone() }).collect()
    };
    let declared: Vec<Metric> =
        declared.into_iter().flat_map(|metric| covered_names(&metric).into_iter().chain([metric])).collect();
    let named = |name: &str| study.metric.get(name).and_then(|choice| choice.primary);
    let any = declared.iter().any(|metric| named(&metric.name) == Some(true));
    let choose = |metric: Metric| {
        let primary = named(&metric.name).unwrap_or(metric.primary && !any);
        Metric { primary, ..metric }
    };
    declared.into_iter().map(choose).collect()
}

#[cfg(test)]
mod tests {
    use perflab_model::study::TomlSource;
    use perflab_model::{Direction, Unit};

    use super::*;

    #[test]
    fn a_series_takes_no_monitors_table() {
        let problems = |workload: &str| -> Vec<String> {
            let text = format!(
                "title = \"t\"\n[workload.{workload}]\ncommand = \"true\"\n[[workload.{workload}.series]]\nname = \"dev\"\n\
                 regex = '(?<time>.)(?<v>.)'\ncolumns = {{ v = \"1\" }}\n"
            );
            let study = TomlSource::new("s.toml", text).parse_study().unwrap();
            let catalogue = Catalogue::default().with_commands_of(&study).unwrap();
            series_problems(&study, &catalogue).into_iter().map(|problem| problem.key).collect()
        };
        assert_eq!(problems("net"), ["workload.net"]);
        assert_eq!(problems("nets"), Vec::<String>::new());
    }

    #[test]
    fn a_setup_that_each_case_overwrites_and_a_clock_without_monitors_are_warned_of() {
        let warned = |setup: &str, monitors: &str| -> Vec<String> {
            let text = format!(
                "title = \"t\"\n[workload.sort]\ncommand = \"sort {{{{ kept }}}}/x{{{{ lines }}}}\"\nsetup = \"{setup}\"\n\
                 matrix = {{ lines = [1, 2] }}\n[monitors]\n{monitors}\n"
            );
            let study = TomlSource::new("s.toml", text).parse_study().unwrap();
            study_warnings(&study).into_iter().map(|problem| problem.key).collect()
        };
        assert_eq!(warned("seq {{ lines }} > {{ kept }}/x", ""), ["workload.sort.setup"]);
        assert_eq!(warned("seq {{ lines }} > {{ kept }}/x{{ lines }}", ""), Vec::<String>::new());
        assert_eq!(warned("seq 9 > {{ kept }}/x", ""), Vec::<String>::new());
        for fine in [
            "seq {{ lines }} > /tmp/x",
            "cd {{ kept }} && seq {{ lines }} > f-{{ lines }}",
            "seq 10 > {{ kept }}/f; echo case {{ lines }}",
            "seq {{ lines }} > /dev/null && seq 5 > {{ kept }}/f",
            "cat {{ kept }}/common > /tmp/x-{{ lines }}",
            "make -j{{ lines }} -C {{ kept }}",
        ] {
            assert_eq!(warned(fine, ""), Vec::<String>::new(), "{fine}");
        }
        for lost in [
            "seq {{ lines }} | shuf >{{ kept }}/x",
            "seq {{ lines }} > {{ kept }}/a-{{ lines }}; seq {{ lines }} > {{ kept }}/b",
            "rm -f {{ kept }}/old-{{ lines }} && seq {{ lines }} > {{ kept }}/lines",
        ] {
            assert_eq!(warned(lost, ""), ["workload.sort.setup"], "{lost}");
        }
        assert_eq!(warned("true", "every = \"20ms\""), ["monitors.every"]);
        assert_eq!(warned("true", "every = \"20ms\"\npreset = \"memory\""), Vec::<String>::new());
    }

    #[test]
    fn set_ups_of_two_workloads_that_write_one_file_are_warned_of() {
        let warned = |order: &str, one: &str, two: &str| -> Vec<String> {
            let text = format!(
                "title = \"t\"\n[run]\norder = \"{order}\"\n[workload.one]\ncommand = \"cat {{{{ kept }}}}/x {{{{ n }}}}\"\nsetup = \"{one}\"\n\
                 parameters = {{ n = 1 }}\n[workload.two]\ncommand = \"cat {{{{ kept }}}}/x {{{{ n }}}}\"\nsetup = \"{two}\"\nparameters = {{ n = 2 }}\n"
            );
            let study = TomlSource::new("s.toml", text).parse_study().unwrap();
            study_warnings(&study).into_iter().map(|problem| problem.key).collect()
        };
        let turns = |one: &str, two: &str| warned("randomised", one, two);
        assert_eq!(turns("seq 1 > {{ kept }}/x", "seq 2 >{{ kept }}/x"), ["workload.two.setup"]);
        assert_eq!(turns("seq {{ n }} > {{ kept }}/x", "seq {{ n }} > {{ kept }}/x"), ["workload.two.setup"]);
        let none = Vec::<String>::new();
        assert_eq!(warned("sequential", "seq 1 > {{ kept }}/x", "seq 2 > {{ kept }}/x"), none);
        assert_eq!(turns("seq 1 > {{ kept }}/x", "seq 1 > {{ kept }}/x"), none);
        assert_eq!(turns("seq 1 > {{ kept }}/x", "seq 2 > {{ kept }}/y"), none);
        assert_eq!(turns("seq {{ n }} > {{ kept }}/x{{ n }}", "seq {{ n }} > {{ kept }}/x{{ n }}"), none);
    }

    #[test]
    fn a_study_may_choose_a_metric_that_the_output_names() {
        let text = "title = \"t\"\n[workload.fio]\n[metric.op-Close]\nprimary = true\n";
        let study = TomlSource::new("s.toml", text).parse_study().unwrap();
        let declared =
            Metric { name: "op-*".into(), unit: Unit::new("ms"), direction: Direction::Lower, primary: true };
        let chosen = choose_primary_metrics(&study, vec![declared]);
        let chosen: Vec<(&str, bool)> =
            chosen.iter().map(|metric| (metric.name.as_str(), metric.primary)).collect();
        assert_eq!(chosen, [("op-Close", true), ("op-*", false)]);
    }
}
