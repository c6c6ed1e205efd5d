//! `perflab workload list|show|install|try`, and the hidden `perflab load`.

use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use indexmap::IndexMap;
use perflab_model::expression::Scope;
use perflab_model::{Nanos, Problem, Value};
use perflab_present::table::{Grid, scaled};
use perflab_workload::{Definition, Ending, Finished, HostPaths};

use crate::arguments::{self, WorkloadVerb};
use crate::context::Context;
use crate::exit::{Exit, Usage};

/// Does what was asked for.
pub fn run(context: &Context, wanted: &arguments::Workload) -> anyhow::Result<Exit> {
    match &wanted.verb {
        WorkloadVerb::List => list(context),
        WorkloadVerb::Show { name } => show(context, &find(context, name)?),
        WorkloadVerb::Install { name, apply } => install(context, &find(context, name)?, *apply),
        WorkloadVerb::Try { name, parameters } => try_once(context, &find(context, name)?, parameters),
    }
}

/// `perflab load NAME …`
pub fn load(wanted: &arguments::Load) -> Exit {
    match perflab_workload::load(&wanted.arguments) {
        Ok(()) => Exit::Fine,
        Err(error) => {
            eprintln!("error: {error}");
            Exit::Usage
        }
    }
}

fn find(context: &Context, name: &str) -> anyhow::Result<Definition> {
    let catalogue = context.catalogue()?;
    let found = catalogue.get(name).cloned();
    found.ok_or_else(|| {
        let hint = perflab_model::nearest::hint(name, catalogue.names());
        Usage::new(format!("the catalogue has no workload `{name}`"), hint).into()
    })
}

fn list(context: &Context) -> anyhow::Result<Exit> {
    let mut grid = Grid::new(&["workload", "measures", "metrics", "ready"]);
    for definition in context.catalogue()?.iter() {
        let metrics: Vec<String> = definition.metrics().into_iter().map(|metric| metric.name).collect();
        let ready = definition.ready().map_or_else(|error| error.to_string(), |()| "yes".into());
        grid.row(vec![definition.name.clone(), definition.title.clone(), metrics.join(", "), ready]);
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}

fn show(context: &Context, definition: &Definition) -> anyhow::Result<Exit> {
    context.say(format!("{}: {}", definition.name, definition.title));
    context.say(&definition.measures);
    context.say(format!("{}, {}", definition.homepage, definition.licence));
    context.say(format!("run as: {}", definition.argv_text()));
    let mut grid = Grid::new(&["parameter", "type", "default", "allowed", "about"]);
    for (name, parameter) in &definition.parameters {
        grid.row(vec![
            name.clone(),
            parameter.kind.to_string(),
            parameter.default.as_ref().map(ToString::to_string).unwrap_or_default(),
            parameter.allowed(),
            parameter.about.clone(),
        ]);
    }
    context.print(&grid)?;
    let mut grid = Grid::new(&["metric", "unit", "better", "primary"]);
    for metric in definition.metrics() {
        let primary = if metric.primary { "yes" } else { "" };
        grid.row(vec![metric.name, metric.unit.0, metric.direction.to_string(), primary.into()]);
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}

fn install(context: &Context, definition: &Definition, apply: bool) -> anyhow::Result<Exit> {
    if definition.ready().is_ok() {
        context.say(format!("{} is ready", definition.name));
        return Ok(Exit::Fine);
    }
    let steps = perflab_workload::install::plan(definition)?;
    for step in &steps {
        context.write(&step.to_string())?;
    }
    if apply {
        perflab_workload::install::apply(definition)?;
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
    let scratch = definition.needs.scratch.then(tempfile::tempdir).transpose()?;
    let host = HostPaths {
        perflab: std::env::current_exe()?,
        scratch: scratch.as_ref().map(|directory| directory.path().to_owned()),
    };
    let invocation = definition.invocation(&parameters, &scope, &host)?;
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
    Usage::new(found.iter().map(said).collect::<Vec<_>>().join("\n"), "`perflab workload show` lists the parameters")
}

fn measured(context: &Context, definition: &Definition, finished: &Finished) -> anyhow::Result<Exit> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&finished.stdout), text(&finished.stderr));
    if finished.ending != (Ending::Exit { code: 0 }) {
        context.write(&stdout)?;
        eprintln!("{stderr}error: {}: {}", definition.name, finished.ending);
        return Ok(Exit::WorkloadFailed);
    }
    let wall = Nanos(finished.end.0.saturating_sub(finished.start.0));
    let mut grid = Grid::new(&["metric", "value", "better"]);
    for one in definition.parse(&stdout, &stderr, wall)? {
        grid.row(vec![one.metric.name, scaled(one.value, &one.metric.unit.0), one.metric.direction.to_string()]);
    }
    context.print(&grid)?;
    Ok(Exit::Fine)
}
