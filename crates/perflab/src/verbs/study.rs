//! `perflab study check|expand|schema|new|list`

use perflab_conduct::{Choices, plan};
use perflab_model::{Case, Plan, Study};
use perflab_present::table::{Cell, Column, Format, Grid};
use serde_json::json;

use crate::arguments::{self, StudyVerb};
use crate::context::Context;
use crate::exit::Exit;
use crate::output_path::OutputPath;
use crate::shipped;

/// Does what was asked for.
pub fn run(context: &Context, wanted: &arguments::Study) -> anyhow::Result<Exit> {
    match &wanted.verb {
        StudyVerb::Check { study } => check(context, study)?,
        StudyVerb::Expand { study, set, seed } => expand(context, study, set, *seed)?,
        StudyVerb::Schema => {
            context.document(&perflab_model::study::json_schema())?;
        }
        StudyVerb::New { file } => new(context, file)?,
        StudyVerb::List => list(context)?,
    }
    Ok(Exit::Fine)
}

fn check(context: &Context, name: &str) -> anyhow::Result<()> {
    // A label's level is asked for at the run, so any one will do here.
    let (study, plan) = planned(context, name, &[], None, true)?;
    let source = shipped::find(name)?;
    super::run::check_settings(context, &source, &study)?;
    super::run::say_warnings(&source, &study);
    let (cases, slots) = (plan.cases.len(), plan.slots.len());
    if context.format == Format::Json {
        let found = json!({ "study": name, "title": study.title, "cases": cases, "iterations": slots });
        return context.document(&found);
    }
    context
        .say(format!("{name}: good: \"{}\", {cases} cases, {slots} iterations with warm-ups", study.title));
    Ok(())
}

fn planned(
    context: &Context,
    name: &str,
    set: &[String],
    seed: Option<u64>,
    any_label: bool,
) -> anyhow::Result<(Study, Plan)> {
    let source = shipped::find(name)?;
    let study = source.read()?;
    let facts = perflab_observe::facts(&context.root, None)?;
    let mut set = super::run::choices(set)?;
    if any_label {
        set.extend(first_labels(&study));
    }
    let choices = Choices { set, only: None, seed: seed.unwrap_or_else(rand::random) };
    let plan =
        plan(&study, &context.catalogue()?, &facts, &choices).map_err(|found| source.problems(found))?;
    Ok((study, plan))
}

fn first_labels(study: &Study) -> Vec<(String, String)> {
    let labels =
        study.factor.iter().filter(|(_, factor)| factor.kind == perflab_model::study::FactorKind::Label);
    labels.filter_map(|(name, factor)| Some((name.clone(), factor.levels.first()?.name.clone()))).collect()
}

fn expand(context: &Context, name: &str, set: &[String], seed: Option<u64>) -> anyhow::Result<()> {
    let (_, plan) = planned(context, name, set, seed, false)?;
    let mut grid = Grid::new(["slot", "block", "case", "parameters", "environment"].map(Column::left));
    for (index, slot) in plan.slots.iter().enumerate() {
        let Some(case) = plan.case(slot.case) else { continue };
        let block = if slot.warmup { format!("warm-up {}", slot.block) } else { slot.block.to_string() };
        let text = [index.to_string(), block, case.label(), parameters(case), environment(case)];
        grid.add(text.map(|text| Cell::from(text.as_str())));
    }
    context.say(format!("{} order, seed {}", plan.order, plan.seed));
    context.print(&grid)
}

fn parameters(case: &Case) -> String {
    case.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn environment(case: &Case) -> String {
    case.environment.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn new(context: &Context, file: &OutputPath) -> anyhow::Result<()> {
    file.write_new(|out| Ok(out.write_all(shipped::STARTER.as_bytes())?))?;
    if *file != OutputPath::Stdout {
        context.say(format!("{file}: edit it, then `perflab study check {file}`"));
        if context.format == Format::Json {
            context.answer("file", &file.to_string())?;
        }
    }
    Ok(())
}

fn list(context: &Context) -> anyhow::Result<()> {
    let mut grid = Grid::new(["study", "title"].map(Column::left));
    for shipped in shipped::STUDIES {
        let study = shipped::find(shipped.name)?.read()?;
        grid.add([shipped.name.into(), study.title.as_str().into()]);
    }
    context.print(&grid)
}
