//! The catalogue: `perflab workload list`, `show`, `install`, `try`.

use clap::{Args, Subcommand};
use indexmap::IndexMap;
use perflab_conduct::execution_records::ExecutionRecord;
use perflab_model::expression::ExpressionScope;
use perflab_model::{Nanos, Problem, Scalar};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_settings::TemporaryFolder;
use perflab_workload::argv_element::ArgvElement;
use perflab_workload::{HostPaths, WorkloadDefinition, WorkloadExecution, WorkloadParameter, install};
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::verb::Verb;

/// Does what was asked for.
pub fn run_workload_verb(context: &App, args: &WorkloadArgs) -> Result<Exit, Failure> {
    match &args.verb {
        WorkloadVerb::List => list_workloads(context),
        WorkloadVerb::Show { name } => show_workload(context, &find_definition(context, name)?),
        WorkloadVerb::Install { name, apply } => {
            install_workload(context, &find_definition(context, name)?, *apply)
        }
        WorkloadVerb::Try { name, parameters } => {
            try_workload(context, &find_definition(context, name)?, parameters)
        }
    }
}

fn find_definition(context: &App, name: &str) -> Result<WorkloadDefinition, Failure> {
    let catalogue = context.catalogue()?;
    let found = catalogue.get(name).cloned();
    found.ok_or_else(|| {
        UsageError::new(format!("the catalogue has no workload `{name}`"), catalogue.unknown_name_hint(name))
            .into()
    })
}

fn list_workloads(context: &App) -> Result<Exit, Failure> {
    let mut grid = Grid::new(["workload", "measures", "metrics", "ready"].map(GridColumn::left));
    for definition in context.catalogue()?.iter() {
        let metrics: Vec<String> = definition.metrics().into_iter().map(|metric| metric.name).collect();
        let ready = definition.check_requirements().map_or_else(|error| error.to_string(), |()| "yes".into());
        let text = [definition.name.clone(), definition.title.clone(), metrics.join(", "), ready];
        grid.add_row(text.map(|text| GridCell::from(text.as_str())));
    }
    context.print_grid(&grid)?;
    Ok(Exit::Fine)
}

fn show_workload(context: &App, definition: &WorkloadDefinition) -> Result<Exit, Failure> {
    context.note(format!("{}: {}", definition.name, definition.title));
    context.note(&definition.measures);
    let whence: Vec<&str> =
        definition.homepage.iter().chain(&definition.licence).map(String::as_str).collect();
    if !whence.is_empty() {
        context.note(whence.join(", "));
    }
    let data = definition.data.as_ref().map(|data| argv_text(&data.argv));
    let server = definition.server.as_ref().map(|server| argv_text(&server.argv));
    for (what, text) in [("data made once by", &data), ("server", &server)] {
        text.iter().for_each(|text| context.note(format!("{what}: {text}")));
    }
    context.note(format!("run as: {}", argv_text(&definition.argv)));
    for rule in &definition.series {
        let columns: Vec<&str> = rule.columns.iter().map(|column| column.name.as_str()).collect();
        context.note(format!("series {}: {}", definition.series_table(rule), columns.join(", ")));
    }
    let (parameters, metrics) = (parameter_grid(definition), metric_grid(definition));
    match context.format {
        // One document, or one table of which each line says what it is about.
        OutputFormat::Json => context.print_json(&json!({
            "workload": definition.name,
            "title": definition.title,
            "measures": definition.measures,
            "homepage": definition.homepage,
            "licence": definition.licence,
            "data": data,
            "server": server,
            "argv": argv_text(&definition.argv),
            "parameters": parameters.records(),
            "metrics": metrics.records(),
        }))?,
        _ => {
            context.print_grid(&parameters)?;
            context.print_grid(&metrics)?;
        }
    }
    Ok(Exit::Fine)
}

fn argv_text(argv: &[ArgvElement]) -> String {
    let words = argv.iter().flat_map(|argument| argument.templates()).map(String::as_str);
    words.collect::<Vec<_>>().join(" ")
}

fn parameter_grid(definition: &WorkloadDefinition) -> Grid {
    let mut grid = Grid::new(["parameter", "wants", "default", "about"].map(GridColumn::left));
    for (name, parameter) in &definition.parameters {
        let default = parameter.default.to_string();
        let text = [name.as_str(), &accepted_values_text(parameter), &default, &parameter.about];
        grid.add_row(text.map(GridCell::from));
    }
    grid
}

fn accepted_values_text(parameter: &WorkloadParameter) -> String {
    let bound = |word: &str, bound: Option<String>| {
        bound.map(|bound| format!(", {word} {bound}")).unwrap_or_default()
    };
    match parameter.choices.is_empty() {
        false => parameter.choices.join(", "),
        true => format!(
            "{}{}{}",
            parameter.kind.expected_text(),
            bound("at least", parameter.min.as_ref().map(ToString::to_string)),
            bound("at most", parameter.max.as_ref().map(ToString::to_string)),
        ),
    }
}

fn metric_grid(definition: &WorkloadDefinition) -> Grid {
    let mut grid = Grid::new(["metric", "unit", "better", "primary"].map(GridColumn::left));
    for metric in definition.metrics() {
        let primary = if metric.primary { "yes" } else { "" };
        let text = [metric.name.as_str(), &metric.unit.0, &metric.direction.to_string(), primary];
        grid.add_row(text.map(GridCell::from));
    }
    grid
}

/// Says how a workload is installed, or does it where `apply` is set.
pub fn install_workload(
    context: &App,
    definition: &WorkloadDefinition,
    apply: bool,
) -> Result<Exit, Failure> {
    let is_ready = definition.check_requirements().is_ok();
    let steps = if is_ready { install::InstallSteps::Nothing } else { install::plan_install(definition)? };
    if context.format == OutputFormat::Json {
        let steps = install::install_commands(&steps);
        context.print_json(&json!({ "workload": definition.name, "ready": is_ready, "steps": steps }))?;
    }
    if is_ready {
        context.note(format!("{} is ready", definition.name));
        return Ok(Exit::Fine);
    }
    if context.format != OutputFormat::Json {
        for step in install::install_commands(&steps) {
            context.print_text(&step)?;
        }
    }
    if apply {
        install::run_install(&steps, &mut |line| context.note(line))?;
        // Its definition may say nothing of how, or not all of it.
        definition.check_requirements()?;
        context.note(format!("{} is installed", definition.name));
    } else {
        context.note("--apply runs these commands");
    }
    Ok(Exit::Fine)
}

fn try_workload(
    context: &App,
    definition: &WorkloadDefinition,
    parameters: &[String],
) -> Result<Exit, Failure> {
    let facts = perflab_observe::collect_facts(&context.root, None)?;
    let scope = ExpressionScope::new(facts.expression_names());
    let parameters = definition
        .resolve_parameters(&parse_parameters(parameters)?, &scope)
        .map_err(|found| parameter_error(&found))?;
    definition.check_requirements()?;
    let boot = perflab_observe::read_boot_id(&context.root);
    let made = || TemporaryFolder::create(&perflab_observe::own_directories::state_directory(), &boot);
    let [scratch, kept] = [(); 2].map(|()| definition.needs.scratch.then(made).transpose());
    let (scratch, kept) = (scratch?, kept?);
    let path = |folder: &Option<TemporaryFolder>| folder.as_ref().map(|folder| folder.path().to_owned());
    let host = HostPaths {
        perflab: std::env::current_exe()?,
        scratch: path(&scratch),
        kept: path(&kept),
        case: None,
        free_port: perflab_workload::find_free_port(),
    };
    let _executions =
        ExecutionRecord::write(&perflab_observe::own_directories::state_directory(), &boot).ok();
    let limit = Nanos(600_000_000_000);
    let finished = perflab_workload::try_workload(definition, &parameters, &scope, &host, limit)?;
    print_measured_metrics(context, definition, &finished)
}

fn parse_parameters(parameters: &[String]) -> Result<IndexMap<String, Scalar>, UsageError> {
    let pair = |text: &String| {
        let (name, value) = text.split_once('=').ok_or_else(|| {
            UsageError::new(format!("`{text}` is not PARAMETER=VALUE"), "write, for example, threads=2")
        })?;
        let value = value.parse().map_or_else(|_| Scalar::Text(value.into()), Scalar::Int);
        Ok((name.to_owned(), value))
    };
    parameters.iter().map(pair).collect()
}

fn parameter_error(found: &[Problem]) -> UsageError {
    let describe = |problem: &Problem| match &problem.hint {
        Some(hint) => format!("`{}`: {}; {hint}", problem.key, problem.message),
        None => format!("`{}`: {}", problem.key, problem.message),
    };
    UsageError::new(
        found.iter().map(describe).collect::<Vec<_>>().join("\n"),
        "`perflab workload show` lists the parameters",
    )
}

fn print_measured_metrics(
    context: &App,
    definition: &WorkloadDefinition,
    finished: &WorkloadExecution,
) -> Result<Exit, Failure> {
    let (stdout, stderr) = (finished.stdout.text(), finished.stderr.text());
    if let Some(failure) = finished.failure() {
        context.print_conclusion(&stdout)?;
        stderr_line!("{stderr}error: {} {failure}", definition.name);
        return Ok(Exit::WORKLOAD_FAILED);
    }
    let mut grid =
        Grid::new([GridColumn::left("metric"), GridColumn::right("value"), GridColumn::left("better")]);
    for one in definition.parse_metrics(&stdout, &stderr, finished.wall_time())? {
        let value = GridCell::quantity(one.value, &one.metric.unit.0);
        grid.add_row([
            one.metric.name.as_str().into(),
            value,
            one.metric.direction.to_string().as_str().into(),
        ]);
    }
    let series = definition.read_series(&stdout, &stderr, finished.wall_time())?;
    context.print_grid(&grid)?;
    for (rule, points) in series {
        let columns: Vec<&str> = rule.columns.iter().map(|column| column.name.as_str()).collect();
        let table = definition.series_table(rule);
        context.note(format!("series {table} ({}): rows {}", columns.join(", "), points.len()));
    }
    Ok(Exit::Fine)
}

/// List, show, install or try the benchmarks of the catalogue
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    pub verb: WorkloadVerb,
}

impl Verb for WorkloadArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_workload_verb(app, self)
    }
}

/// The verbs of workloads.
#[derive(Debug, Subcommand)]
pub enum WorkloadVerb {
    /// List the catalogue
    List,
    /// Show one workload: what it measures, its parameters and metrics, how it runs
    Show {
        /// The name of the workload
        name: String,
    },
    /// Install it: packages of this distribution, or a source archive
    Install {
        /// The name of the workload
        name: String,
        /// Run the commands (they are only printed otherwise)
        #[arg(long)]
        apply: bool,
    },
    /// Run it once and print what it measured
    Try {
        /// The name of the workload
        name: String,
        /// Parameters: `threads=2`
        #[arg(value_name = "PARAMETER=VALUE")]
        parameters: Vec<String>,
    },
}
