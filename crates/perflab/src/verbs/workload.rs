//! `perflab workload list|show|install|try`, and the hidden `perflab load`.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use indexmap::IndexMap;
use perflab_conduct::executions::ExecutionRecord;
use perflab_conduct::leftovers::TemporaryFolder;
use perflab_model::expression::Scope;
use perflab_model::{Nanos, Problem, Value};
use perflab_present::table::{Cell, Column, Format, Grid};
use perflab_workload::{Definition, Finished, HostPaths, Parameter, install};
use serde_json::json;

use crate::arguments::{self, WorkloadVerb};
use crate::context::Context;
use crate::exit::{Exit, Usage};

/// Does what was asked for.
pub fn run(context: &Context, wanted: &arguments::Workload) -> anyhow::Result<Exit> {
    match &wanted.verb {
        WorkloadVerb::List => list(context),
        WorkloadVerb::Show { name } => show(context, &find(context, name)?),
        WorkloadVerb::Install { name, apply } => install_one(context, &find(context, name)?, *apply),
        WorkloadVerb::Try { name, parameters } => try_once(context, &find(context, name)?, parameters),
    }
}

/// `perflab load NAME …`
pub fn load(wanted: &arguments::Load) -> ExitCode {
    perflab_workload::load(&wanted.arguments)
}

fn find(context: &Context, name: &str) -> anyhow::Result<Definition> {
    let catalogue = context.catalogue()?;
    let found = catalogue.get(name).cloned();
    found.ok_or_else(|| {
        Usage::new(format!("the catalogue has no workload `{name}`"), catalogue.hint(name)).into()
    })
}

fn list(context: &Context) -> anyhow::Result<Exit> {
    let mut grid = Grid::new(["workload", "measures", "metrics", "ready"].map(Column::left));
    for definition in context.catalogue()?.iter() {
        let metrics: Vec<String> = definition.metrics().into_iter().map(|metric| metric.name).collect();
        let ready = definition.ready().map_or_else(|error| error.to_string(), |()| "yes".into());
        let text = [definition.name.clone(), definition.title.clone(), metrics.join(", "), ready];
        grid.add(text.map(|text| Cell::from(text.as_str())));
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}

fn show(context: &Context, definition: &Definition) -> anyhow::Result<Exit> {
    context.say(format!("{}: {}", definition.name, definition.title));
    context.say(&definition.measures);
    let whence: Vec<&str> =
        definition.homepage.iter().chain(&definition.licence).map(String::as_str).collect();
    if !whence.is_empty() {
        context.say(whence.join(", "));
    }
    context.say(format!("run as: {}", argv(definition)));
    let (parameters, metrics) = (parameters(definition), metrics(definition));
    match context.format {
        // One document, or one table of which each line says what it is about.
        Format::Json => context.document(&json!({
            "workload": definition.name,
            "title": definition.title,
            "measures": definition.measures,
            "homepage": definition.homepage,
            "licence": definition.licence,
            "argv": argv(definition),
            "parameters": parameters.records(),
            "metrics": metrics.records(),
        }))?,
        _ => {
            context.print(&parameters)?;
            context.print(&metrics)?;
        }
    }
    Ok(Exit::Fine)
}

fn argv(definition: &Definition) -> String {
    let words = definition.argv.iter().flat_map(|argument| argument.templates()).map(String::as_str);
    words.collect::<Vec<_>>().join(" ")
}

fn parameters(definition: &Definition) -> Grid {
    let mut grid = Grid::new(["parameter", "wants", "default", "about"].map(Column::left));
    for (name, parameter) in &definition.parameters {
        let default = parameter.default.to_string();
        let text = [name.as_str(), &wants(parameter), &default, &parameter.about];
        grid.add(text.map(Cell::from));
    }
    grid
}

fn wants(parameter: &Parameter) -> String {
    let bound = |word: &str, bound: Option<String>| {
        bound.map(|bound| format!(", {word} {bound}")).unwrap_or_default()
    };
    match parameter.choices.is_empty() {
        false => parameter.choices.join(", "),
        true => format!(
            "{}{}{}",
            parameter.kind.wanted(),
            bound("at least", parameter.min.as_ref().map(ToString::to_string)),
            bound("at most", parameter.max.as_ref().map(ToString::to_string)),
        ),
    }
}

fn metrics(definition: &Definition) -> Grid {
    let mut grid = Grid::new(["metric", "unit", "better", "primary"].map(Column::left));
    for metric in definition.metrics() {
        let primary = if metric.primary { "yes" } else { "" };
        let text = [metric.name.as_str(), &metric.unit.0, &metric.direction.to_string(), primary];
        grid.add(text.map(Cell::from));
    }
    grid
}

fn install_one(context: &Context, definition: &Definition, apply: bool) -> anyhow::Result<Exit> {
    let is_ready = definition.ready().is_ok();
    let steps = if is_ready { install::Steps::Nothing } else { install::plan(definition)? };
    if context.format == Format::Json {
        let steps = install::show(&steps);
        context.document(&json!({ "workload": definition.name, "ready": is_ready, "steps": steps }))?;
    }
    if is_ready {
        context.say(format!("{} is ready", definition.name));
        return Ok(Exit::Fine);
    }
    if context.format != Format::Json {
        for step in install::show(&steps) {
            context.write(&step)?;
        }
    }
    if apply {
        install::apply(&steps, &mut |line| context.say(line))?;
        context.say(format!("{} is installed", definition.name));
    } else {
        context.say("--apply runs these commands");
    }
    Ok(Exit::Fine)
}

fn try_once(context: &Context, definition: &Definition, parameters: &[String]) -> anyhow::Result<Exit> {
    let facts = perflab_observe::facts(&context.root, None)?;
    let scope = Scope::new(facts.variables());
    let parameters = definition.resolve(&given(parameters)?, &scope).map_err(|found| wrong(&found))?;
    definition.ready().with_context(|| format!("workload {}", definition.name))?;
    let boot = perflab_observe::boot_id(&context.root);
    let made = || TemporaryFolder::make(&perflab_observe::own_directories::state(), &boot);
    let [scratch, kept] = [(); 2].map(|()| definition.needs.scratch.then(made).transpose());
    let (scratch, kept) = (scratch?, kept?);
    let path = |folder: &Option<TemporaryFolder>| folder.as_ref().map(|folder| folder.path().to_owned());
    let host = HostPaths { perflab: std::env::current_exe()?, scratch: path(&scratch), kept: path(&kept) };
    let invocation = definition.invocation(&parameters, &scope, &host)?;
    let _executions = ExecutionRecord::write(&perflab_observe::own_directories::state(), &boot).ok();
    let finished = perflab_workload::run(&invocation, &[], Nanos(600_000_000_000), &AtomicBool::new(false))?;
    measured(context, definition, &finished)
}

fn given(parameters: &[String]) -> Result<IndexMap<String, Value>, Usage> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            Usage::new(format!("`{text}` is not PARAMETER=VALUE"), "write, for example, threads=2")
        })?;
        let value = value.parse().map_or_else(|_| Value::Text(value.into()), Value::Int);
        Ok((name.to_owned(), value))
    };
    parameters.iter().map(pair).collect()
}

fn wrong(found: &[Problem]) -> Usage {
    let said = |problem: &Problem| match &problem.hint {
        Some(hint) => format!("`{}`: {}; {hint}", problem.key, problem.message),
        None => format!("`{}`: {}", problem.key, problem.message),
    };
    Usage::new(
        found.iter().map(said).collect::<Vec<_>>().join("\n"),
        "`perflab workload show` lists the parameters",
    )
}

fn measured(context: &Context, definition: &Definition, finished: &Finished) -> anyhow::Result<Exit> {
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    if let Some(failure) = finished.failure() {
        context.conclude(&stdout)?;
        stderr_line!("{stderr}error: {} {failure}", definition.name);
        return Ok(Exit::WorkloadFailed);
    }
    let mut grid = Grid::new([Column::left("metric"), Column::right("value"), Column::left("better")]);
    for one in definition.parse(&stdout, &stderr, finished.wall())? {
        let value = Cell::quantity(one.value, &one.metric.unit.0);
        grid.add([one.metric.name.as_str().into(), value, one.metric.direction.to_string().as_str().into()]);
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}
