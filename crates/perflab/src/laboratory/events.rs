//! `perflab event list` and `show`: recipes of events, and what this machine has of them.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use perflab_model::study::{EVENT_RECIPES, EventChoice, EventSpec, find_event_recipe};
use perflab_observe::find_event_refusal;
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::verb::Verb;

/// `perflab event list`
fn list_events(context: &App) -> Result<Exit, Failure> {
    let mut grid =
        Grid::new(["recipe", "what it says", "tracepoints", "told apart by", "here"].map(GridColumn::left));
    for recipe in EVENT_RECIPES {
        let spec = recipe.spec();
        let (points, keys) = (spec.describe_tracepoints(), describe_keys(&spec));
        grid.add_row(
            [recipe.name, recipe.about, &points, &keys, &describe_presence(context, &spec)]
                .map(GridCell::from),
        );
    }
    context.print_grid(&grid)?;
    context.note("any tracepoint is an event too: GROUP:NAME, as in sched:sched_migrate_task");
    Ok(Exit::Fine)
}

/// Whether this machine counts an event, by attaching to it for a moment; else why not.
fn describe_presence(context: &App, spec: &EventSpec) -> String {
    find_event_refusal(&context.root, spec).map_or_else(|| "yes".into(), |reason| format!("no: {reason}"))
}

fn describe_keys(spec: &EventSpec) -> String {
    spec.key.as_ref().map(|key| key.0.join(", ")).unwrap_or_default()
}

/// `perflab event show NAME`: as a study would write it, to change it there.
fn show_event(context: &App, name: &str) -> Result<Exit, Failure> {
    let named: Result<EventChoice, String> = name.parse();
    let EventChoice { name, spec } =
        named.map_err(|reason| UsageError::new(reason, "`perflab event list` has them all"))?;
    let spec = EventSpec { recipe: None, ..spec.resolve() };
    let here = describe_presence(context, &spec);
    if context.format == OutputFormat::Json {
        context.print_json(&json!({ "version": 1, "event": name, "spec": spec, "here": here }))?;
        return Ok(Exit::Fine);
    }
    if let Some(recipe) = find_event_recipe(&name) {
        context.note(format!("{name}: {}", recipe.about));
    }
    context.note(format!("here: {here}"));
    // Texts, numbers and lists of them: there is nothing in it that TOML lacks.
    let document =
        toml::to_string(&BTreeMap::from([("events", BTreeMap::from([(name, spec)]))])).unwrap_or_default();
    if context.format == OutputFormat::Table {
        context.print_text(document.trim_end())?;
        return Ok(Exit::Fine);
    }
    let mut grid = Grid::new([GridColumn::left("study")]);
    for line in document.lines().filter(|line| !line.is_empty()) {
        grid.add_row([GridCell::from(line)]);
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

/// Tracepoints and pairs that perflab counts by name
#[derive(Debug, Args)]
pub struct EventArgs {
    #[command(subcommand)]
    pub verb: EventVerb,
}

impl Verb for EventArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        match &self.verb {
            EventVerb::List => list_events(app),
            EventVerb::Show(args) => show_event(app, &args.name),
        }
    }
}

/// What there is to ask of events.
#[derive(Debug, Subcommand)]
pub enum EventVerb {
    /// List the recipes: what each says, and whether this machine counts it
    List,
    /// Show one as a study writes it, to change it there
    Show(ShowEventArgs),
}

/// `perflab event show`
#[derive(Debug, Args)]
pub struct ShowEventArgs {
    /// A recipe, or a tracepoint GROUP:NAME
    pub name: String,
}
