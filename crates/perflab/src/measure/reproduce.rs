//! `perflab reproduce RUN`: what a run did, as a script that does it again; or done again, and compared.

use clap::{Args, FromArgMatches as _};
use indexmap::IndexMap;
use perflab_archive::RunDir;
use perflab_conduct::plan::expression_scope;
use perflab_model::fact_table;
use perflab_model::facts::FactChange;
use perflab_model::study::TomlSource;
use perflab_model::{Case, Manifest, Setting};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_workload::argv_element::quote_word;
use perflab_workload::{Catalogue, HostPaths, UntimedPhase, WorkloadDefinition};
use serde::Serialize;

use crate::app::{App, print_result};
use crate::failure::{Exit, Failure, UnexpectedError, UsageError};
use crate::measure::repeatable_run::check_reproducible;
use crate::measure::run::{self, RunArgs};
use crate::see::compare::CompareArgs;
use crate::selection;
use crate::verb::Verb;

/// Show what a run did as a script; or do it again, and compare
#[derive(Debug, Args)]
#[command(after_long_help = REPRODUCE)]
pub struct ReproduceArgs {
    /// The run (default: @latest)
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Do it again on this machine, with the same seed, and compare the two
    #[arg(long)]
    pub again: bool,
    /// With --again: a name for the new run
    #[arg(long, requires = "again", value_parser = selection::parse_label)]
    pub label: Option<String>,
    /// With --again: install missing workloads first
    #[arg(long, requires = "again")]
    pub install: bool,
}

const REPRODUCE: &str = "\
Examples:
  perflab reproduce @latest > again.sh     the study as it was run, settings and commands
  perflab reproduce 01M8 --again           do it again here, and compare it with the original

The script holds the study with all that the command line changed, and the seed of the order. What
each case sets and runs stands in comments, as one would type it. What is not as it was when the run
was made (kernel, settings, versions) is listed first. It overwrites no file.";

/// Where scratch files of the printed commands lie.
const SCRATCH: &str = "/tmp/scratch";

/// The line that ends the study in the script, if the study has none like it.
const END_OF_STUDY: &str = "END_OF_STUDY";

/// Letters of a run's id in the name of the study's file.
const ID_LETTERS: usize = 10;

/// What a run did.
#[derive(Debug, Serialize)]
struct Reproduction {
    run: String,
    writer: String,
    title: String,
    label: Option<String>,
    seed: u64,
    /// folders of definitions that were named beside the shipped ones
    workloads: Vec<String>,
    /// the study as it was run, as TOML
    study: String,
    /// what is not as it was
    changed: Vec<ChangedFact>,
    cases: Vec<ReproducedCase>,
}

#[derive(Debug, Serialize)]
struct ChangedFact {
    fact: String,
    then: Option<String>,
    now: Option<String>,
}

/// What a case sets and runs, as a shell takes it.
#[derive(Debug, Serialize)]
struct ReproducedCase {
    case: String,
    settings: Vec<String>,
    commands: Vec<ReproducedCommand>,
    /// why the commands are not those of then
    doubt: Option<String>,
}

#[derive(Debug, Serialize)]
struct ReproducedCommand {
    /// `command`, or what it is beside the one that was timed: `prepare`, `server`
    phase: &'static str,
    line: String,
}

fn reproduce_run(context: &App, args: &ReproduceArgs) -> Result<Exit, Failure> {
    let archive = context.archive()?;
    let found = selection::select_run(&archive, args.run.as_deref().unwrap_or("@latest"))?;
    let manifest = found.read_record()?.manifest;
    check_reproducible(&found, &manifest)?;
    if args.again {
        return run_again(context, args, &found, &manifest);
    }
    let reproduction = describe_run(context, &found, &manifest)?;
    match context.format {
        OutputFormat::Table | OutputFormat::Markdown => context.print_text(&reproduction.script())?,
        _ => print_result(context, &reproduction, || reproduction.grid())?,
    }
    Ok(Exit::Fine)
}

/// Carries the study out once more, and compares the two runs.
fn run_again(
    context: &App,
    args: &ReproduceArgs,
    original: &RunDir,
    manifest: &Manifest,
) -> Result<Exit, Failure> {
    run::undo_leftovers(context);
    let source = TomlSource::new(manifest.study_file.clone(), manifest.study_text.clone());
    let run_args = RunArgs {
        label: args.label.clone(),
        seed: Some(manifest.plan.seed),
        install: args.install,
        ..RunArgs::default()
    };
    let (mut planned, catalogue) = run::plan_manifest(context, &source, manifest.study.clone(), &run_args)?;
    planned.brief = manifest.brief;
    let permissions = perflab_conduct::RunPermissions { install: args.install, ..Default::default() };
    let (status, again) = run::execute_manifest(context, &planned, catalogue, &permissions)?;
    let (before, after) = (original.short_id().to_owned(), again.short_id().to_owned());
    let ended = run::exit_of_run(context, status, &again);
    if ended != Exit::Fine {
        return Ok(ended);
    }
    let command = CompareArgs::augment_args(clap::Command::new("compare"));
    let matches = command.try_get_matches_from(["compare", &before, &after]);
    let compared = matches.and_then(|matches| CompareArgs::from_arg_matches(&matches));
    let compared = compared.map_err(|error| UnexpectedError(error.to_string()))?;
    crate::see::compare::compare_runs(context, &compared)
}

fn describe_run(context: &App, found: &RunDir, manifest: &Manifest) -> Result<Reproduction, Failure> {
    let source = TomlSource::new(manifest.study_file.clone(), manifest.study_text.clone());
    let catalogue = context.catalogue_of(&source, &manifest.study)?;
    let mut now = perflab_observe::collect_facts(&context.root, manifest.study.facts.as_deref())?;
    now.extend(run::read_environment_facts(&manifest.study, &manifest.plan));
    let text = |value: Option<&perflab_model::Scalar>| value.map(ToString::to_string);
    // The versions of workloads are asked for when one is run.
    let is_asked = |change: &FactChange<'_>| {
        now.stored(change.key).is_some() || fact_table::ENVIRONMENT.matches(change.key)
    };
    let changed = manifest.facts.changes_to(&now).into_iter().filter(is_asked).map(|change| ChangedFact {
        fact: change.key.to_owned(),
        then: text(change.ours),
        now: text(change.theirs),
    });
    Ok(Reproduction {
        run: found.id().to_owned(),
        writer: manifest.writer.clone(),
        title: manifest.study.title.clone(),
        label: manifest.label.clone(),
        seed: manifest.plan.seed,
        workloads: context.workloads.iter().map(|folder| folder.display().to_string()).collect(),
        study: write_study(manifest)?,
        changed: changed.collect(),
        cases: manifest.plan.cases.iter().map(|case| describe_case(case, manifest, &catalogue)).collect(),
    })
}

/// The study as it was run, without its seed, which may be larger than numbers of TOML, and without tables that hold nothing.
fn write_study(manifest: &Manifest) -> Result<String, Failure> {
    let mut study = manifest.study.clone();
    study.run.seed = None;
    let mut table = toml::Table::try_from(&study)
        .map_err(|error| UnexpectedError(format!("the study cannot be written as TOML: {error}")))?;
    let is_empty = |value: &toml::Value| value.as_table().is_some_and(toml::Table::is_empty);
    table.retain(|_, value| !is_empty(value));
    for (_, workload) in table.get_mut("workload").and_then(toml::Value::as_table_mut).into_iter().flatten() {
        if let Some(keys) = workload.as_table_mut() {
            keys.retain(|_, value| !is_empty(value));
        }
    }
    Ok(table.to_string())
}

fn describe_case(case: &Case, manifest: &Manifest, catalogue: &Catalogue) -> ReproducedCase {
    let mut settings: Vec<String> =
        manifest.plan.case_settings(case, None).map(|planned| setting_line(&planned.setting)).collect();
    let placement = manifest.plan.case_placement(case);
    settings.extend(placement.map(|planned| format!("placed on {}", planned.placement)));
    let mut described = ReproducedCase { case: case.label(), settings, commands: Vec::new(), doubt: None };
    let Some(definition) = catalogue.get(&case.uses) else {
        described.doubt =
            Some(format!("there is no workload `{}` here: name its folder by --workloads", case.uses));
        return described;
    };
    if manifest.plan.definitions.get(&case.uses).is_some_and(|digest| *digest != definition.digest) {
        described.doubt = Some(format!("the definition of `{}` has changed since", case.uses));
    }
    match command_lines(definition, case, manifest, catalogue) {
        Ok(commands) => described.commands = commands,
        Err(error) => described.doubt = Some(error.to_string()),
    }
    described
}

/// The commands of a case in the order in which an iteration carries them out.
fn command_lines(
    definition: &WorkloadDefinition,
    case: &Case,
    manifest: &Manifest,
    catalogue: &Catalogue,
) -> Result<Vec<ReproducedCommand>, Failure> {
    let scope = expression_scope(&manifest.study, &manifest.facts)
        .map_err(|problem| UsageError::new(problem.message, "the run's own facts do not give the value"))?;
    let needs_scratch = definition.needs.scratch.then(|| SCRATCH.into());
    let host = HostPaths {
        perflab: "perflab".into(),
        scratch: needs_scratch,
        kept: Some(format!("{SCRATCH}-kept").into()),
        case: None,
        free_port: Some(perflab_workload::find_free_port().unwrap_or(1)),
    };
    let mut lines = Vec::new();
    let mut add = |phase, invocation: perflab_workload::Invocation| {
        let own = case.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
        let variables = invocation.environment.into_iter().chain(own);
        let variables = variables.map(|(name, value)| format!("{name}={}", quote_word(&value)));
        let words = invocation.argv.iter().map(|word| quote_word(word));
        let line = variables.chain(words).collect::<Vec<_>>().join(" ");
        lines.push(ReproducedCommand { phase, line });
    };
    let build_phase = |phase: UntimedPhase| {
        let has_command = !definition.phases.argv(phase).is_empty();
        let build = || definition.build_phase_invocation(phase, &case.parameters, &scope, &host);
        has_command.then(build).transpose()
    };
    if let Some(invocation) = build_phase(UntimedPhase::Setup)? {
        add(UntimedPhase::Setup.key(), invocation);
    }
    if let Some(data) = definition.build_data_set(&case.parameters, &scope, &host)? {
        add("data", data.into_invocation());
    }
    if let Some(server) = definition.build_server_invocation(&case.parameters, &scope, &host)? {
        add("server", server.into_invocation());
    }
    if let Some(invocation) = build_phase(UntimedPhase::Prepare)? {
        add(UntimedPhase::Prepare.key(), invocation);
    }
    for beside in manifest.plan.case_besides(case).filter_map(|name| catalogue.get_beside(name)) {
        let host = HostPaths { scratch: Some(SCRATCH.into()), ..host.clone() };
        add("beside", beside.build_invocation(&IndexMap::new(), &scope, &host)?);
    }
    add("command", definition.build_invocation(&case.parameters, &scope, &host)?);
    for phase in [UntimedPhase::Conclude, UntimedPhase::Cleanup] {
        if let Some(invocation) = build_phase(phase)? {
            add(phase.key(), invocation);
        }
    }
    Ok(lines)
}

fn setting_line(setting: &Setting) -> String {
    match setting {
        Setting::File { path, value, .. } => {
            format!("echo {} > {}", quote_word(value), quote_word(&path.display().to_string()))
        }
        Setting::DropCaches(which) => format!("sync; echo {which} > /proc/sys/vm/drop_caches"),
        Setting::Preset(level) => {
            format!("perflab tune --apply {}", quote_word(&format!("{}={}", level.name, level.level)))
        }
        Setting::Commands { apply, .. } => {
            apply.iter().map(|word| quote_word(word)).collect::<Vec<_>>().join(" ")
        }
    }
}

impl Reproduction {
    /// A script that runs the study as it was run. Whatever the run says stands in comments or in the study, where no shell reads
    /// it, and a file that is there is not overwritten.
    fn script(&self) -> String {
        let mut notes = vec![format!("Run {} by {}: {}", self.run, self.writer, self.title)];
        if !self.changed.is_empty() {
            notes.push("Not as it was then:".to_owned());
        }
        for change in &self.changed {
            let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".into());
            notes.push(format!("  {}: {} then, {} now", change.fact, side(&change.then), side(&change.now)));
        }
        for case in &self.cases {
            notes.push(format!("\ncase {}", case.case));
            let lines = case.settings.iter().map(|line| ("setting", line));
            let commands = case.commands.iter().map(|command| (command.phase, &command.line));
            notes.extend(lines.chain(commands).map(|(phase, line)| format!("  {phase}: {line}")));
            notes.extend(case.doubt.iter().map(|doubt| format!("  {doubt}")));
        }
        let mut text = "#!/bin/sh\n".to_owned();
        // A carriage return does not end a comment, and a terminal that goes back would hide it.
        let notes = notes.join("\n").replace('\r', " ");
        for line in notes.split('\n') {
            text += format!("# {line}").trim_end();
            text += "\n";
        }
        let mut end = END_OF_STUDY.to_owned();
        while self.study.lines().any(|line| line == end) {
            end.push('_');
        }
        let id: String = self.run.chars().take(ID_LETTERS).collect();
        let label = self.label.as_ref().map(|label| format!(" --label {}", quote_word(label)));
        let folders: String =
            self.workloads.iter().map(|folder| format!(" --workloads {}", quote_word(folder))).collect();
        text += &format!(
            "\nset -eC\ncat > study-{id}.toml <<'{end}'\n{}\n{end}\nperflab run study-{id}.toml --seed {}{}{folders}\n",
            self.study.trim_end(),
            self.seed,
            label.unwrap_or_default()
        );
        text
    }

    /// A row a setting and command.
    fn grid(&self) -> Grid {
        let mut grid = Grid::new(["case", "phase", "line"].map(GridColumn::left));
        for case in &self.cases {
            let settings = case.settings.iter().map(|line| ("setting", line));
            let commands = case.commands.iter().map(|command| (command.phase, &command.line));
            for (phase, line) in settings.chain(commands) {
                grid.add_row([case.case.as_str(), phase, line.as_str()].map(GridCell::from));
            }
        }
        grid
    }
}

impl Verb for ReproduceArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        reproduce_run(app, self)
    }
}
