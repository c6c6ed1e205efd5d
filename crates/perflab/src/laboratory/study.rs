//! Study files: `perflab study check`, `expand`, `schema`, `new`, `from`, `list`, `find`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use perflab_conduct::{PlanChoices, find_refusals, plan_study};
use perflab_import::{LineFate, convert_study};
use perflab_model::study::{DiskKind, FactorSide, ScratchDisk, TomlSource};
use perflab_model::{Bytes, Case, PlannedSetting, PlannedTarget, Problem, RunPlan, Scalar, Study};
use perflab_observe::{EventFault, find_event_fault};
use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
use perflab_present::count_text;
use serde_json::json;

use crate::app::App;
use crate::failure::{Exit, Failure};
use crate::inventory_file::find_inventory_of;
use crate::laboratory::answer_check::find_answer_problems;
use crate::laboratory::study_finder::{add_brief_forms, find_studies};
use crate::measure::run;
use crate::output_path::OutputPath;
use crate::study_source;
use crate::verb::Verb;

/// Does what was asked for.
pub fn run_study_verb(context: &App, args: &StudyArgs) -> Result<Exit, Failure> {
    match &args.verb {
        StudyVerb::Check { study } => check_named_study(context, study)?,
        StudyVerb::Expand { study, set, seed } => expand_study(context, study, set, *seed)?,
        StudyVerb::Schema => {
            context.print_json(&perflab_model::study::study_json_schema())?;
        }
        StudyVerb::New { file } => write_new_study(context, file)?,
        StudyVerb::From { file, output } => convert_foreign_study(context, file, output.as_ref())?,
        StudyVerb::List => list_shipped_studies(context)?,
        StudyVerb::Find { words } => print_found_studies(context, words)?,
    }
    Ok(Exit::Fine)
}

fn check_named_study(context: &App, name: &str) -> Result<(), Failure> {
    // A label's level is asked for at the run, so any one will do here.
    let source = study_source::find_study(name)?;
    let (study, plan) = plan_study_source(context, &source, &[], None, true)?;
    run::check_settings(context, &source, &study, &plan)?;
    if source.has_brief() {
        let brief = source.clone().shorten()?;
        let (study, plan) = plan_study_source(context, &brief, &[], None, true)?;
        run::check_settings(context, &brief, &study, &plan)?;
    }
    let unchecked = check_events(context, &source, &study)?;
    check_answers(context, &source, &study)?;
    run::note_study_warnings(&source, &study);
    let refusals = note_refusals(context, &source, &study, &plan)?;
    for (event, reason) in &unchecked {
        stderr_line!("warning: `events.{event}` was not checked: {reason}");
    }
    let (cases, slots) = (plan.cases.len(), plan.slots.len());
    if context.format == OutputFormat::Json {
        let unchecked: Vec<_> = unchecked
            .iter()
            .map(|(event, reason)| json!({ "key": format!("events.{event}"), "reason": reason }))
            .collect();
        let found = json!({
            "study": name, "title": study.title, "cases": cases, "iterations": slots, "unchecked": unchecked,
            "refusals": refusals
        });
        return context.print_json(&found);
    }
    let (case_text, slot_text) = (count_text(cases, "case"), count_text(slots, "iteration"));
    let verdict = match refusals.len() {
        0 => "is good",
        _ => "is good, but cannot run on this machine",
    };
    context.note(format!("{name} {verdict}: \"{}\", {case_text}, {slot_text} with warm-ups", study.title));
    Ok(())
}

/// Holds what a study says that it answers against the study.
fn check_answers(context: &App, source: &TomlSource, study: &Study) -> Result<(), Failure> {
    if study.answers.is_empty() {
        return Ok(());
    }
    let facts = perflab_observe::collect_facts(&context.root, None)?;
    let catalogue = context.catalogue_of(source, study)?;
    let found = find_answer_problems(context, study, &catalogue, &facts, &first_levels(study));
    if found.is_empty() { Ok(()) } else { Err(source.place_problems(found).into()) }
}

/// Holds a study's events against the tracepoints of this machine; gives those that could not be, each with why.
fn check_events(context: &App, source: &TomlSource, study: &Study) -> Result<Vec<(String, String)>, Failure> {
    let (mut problems, mut unchecked) = (Vec::new(), Vec::new());
    for (name, spec) in &study.events {
        if !study.target.is_empty() {
            unchecked.push((name.clone(), "the kernels of the targets count it".to_owned()));
            continue;
        }
        let Some(EventFault { part, message }) = find_event_fault(&context.root, spec) else { continue };
        let Some(part) = part else {
            unchecked.push((name.clone(), message));
            continue;
        };
        // What a recipe names stands in no key of its own.
        let own = format!("events.{name}.{part}");
        let key = if source.locate(&own).is_some() { own } else { format!("events.{name}") };
        let hint = "`perflab event list` says what this machine counts";
        problems.push(Problem::new(key, message).with_hint(hint));
    }
    if problems.is_empty() { Ok(unchecked) } else { Err(source.place_problems(problems).into()) }
}

/// Says what this machine lacks for a study: another one may have it.
fn note_refusals(
    context: &App,
    source: &TomlSource,
    study: &Study,
    plan: &RunPlan,
) -> Result<Vec<String>, Failure> {
    let catalogue = context.catalogue_of(source, study)?;
    let facts = perflab_observe::collect_facts(&context.root, None)?;
    let manifest = run::build_manifest(source, study.clone(), plan.clone(), facts, None, &context.root);
    let machine = run::local_machine(context, catalogue)?;
    let refusals: Vec<String> = find_refusals(&manifest, &machine).iter().map(ToString::to_string).collect();
    refusals.iter().for_each(|refusal| stderr_line!("warning: not on this machine: {refusal}"));
    Ok(refusals)
}

fn plan_study_source(
    context: &App,
    source: &TomlSource,
    set: &[String],
    seed: Option<u64>,
    any_label: bool,
) -> Result<(Study, RunPlan), Failure> {
    let study = source.parse_study()?;
    let facts = perflab_observe::collect_facts(&context.root, None)?;
    let mut set = run::parse_level_choices(set)?;
    if any_label {
        set.extend(first_levels(&study));
    }
    let inventory = find_inventory_of(source, &study)?;
    let seed = seed.unwrap_or_else(rand::random);
    let choices = PlanChoices { set, seed, inventory, ..PlanChoices::default() };
    let plan = plan_study(&study, &context.catalogue_of(source, &study)?, &facts, &choices)
        .map_err(|found| source.place_problems(found))?;
    Ok((study, plan))
}

fn first_levels(study: &Study) -> Vec<(String, String)> {
    let labels =
        study.factor.iter().filter(|(_, factor)| factor.kind == perflab_model::study::FactorKind::Label);
    labels.filter_map(|(name, factor)| Some((name.clone(), factor.levels.first()?.name.clone()))).collect()
}

fn expand_study(context: &App, name: &str, set: &[String], seed: Option<u64>) -> Result<(), Failure> {
    let (study, plan) = plan_study_source(context, &study_source::find_study(name)?, set, seed, false)?;
    let mut grid = Grid::new(
        ["slot", "block", "case", "parameters", "environment", "settings", "disk"].map(GridColumn::left),
    );
    for (index, slot) in plan.slots.iter().enumerate() {
        let Some(case) = plan.case(slot.case) else { continue };
        let block = if slot.warmup { format!("warm-up {}", slot.block) } else { slot.block.to_string() };
        let (parameters, environment) = (parameters_text(case), environment_text(case));
        let (settings, disk) = (settings_text(&plan, case), plan.case_disk(case));
        // Without a table of its own, it is a directory like any other.
        let own = disk.filter(|_| study.disk.is_some()).map(|planned| disk_text(&planned.disk));
        let disk = own.unwrap_or_default();
        let text = [index.to_string(), block, case.label(), parameters, environment, settings, disk];
        grid.add_row(text.map(|text| GridCell::from(text.as_str())));
    }
    context.note(format!("{} order, seed {}", plan.order, plan.seed));
    for target in &plan.targets {
        context.note_line(&target_text(target));
    }
    context.print_grid(&grid)
}

fn parameters_text(case: &Case) -> String {
    case.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn environment_text(case: &Case) -> String {
    case.environment.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

/// What is set for a case, and by what it is undone where that is not the value before.
fn settings_text(plan: &RunPlan, case: &Case) -> String {
    let text = |planned: &PlannedSetting| {
        let side = if planned.on == Some(FactorSide::Guest) { "guest: " } else { "" };
        Some(format!("{side}{}", planned.setting.describe()?))
    };
    plan.case_settings(case, None).filter_map(text).collect::<Vec<_>>().join("; ")
}

/// What a disk is, and where.
fn disk_text(disk: &ScratchDisk) -> String {
    let kind = match disk.kind {
        DiskKind::Directory => "directory",
        DiskKind::Image => "image",
        DiskKind::Partition => "partition",
    };
    let size = disk.size.as_ref().filter(|_| disk.kind == DiskKind::Image).map(|size| match size {
        Scalar::Int(bytes) => Bytes(u64::try_from(*bytes).unwrap_or(0)).to_string(),
        expression => expression.to_string(),
    });
    let filesystem = (disk.kind != DiskKind::Directory).then(|| disk.filesystem.as_deref().unwrap_or("ext4"));
    let model = disk.model.map(|model| format!("as {}", model.name()));
    let parts = [Some(kind), size.as_deref(), filesystem, disk.mount.as_deref(), model.as_deref()];
    let parts: Vec<&str> = parts.into_iter().flatten().chain(disk.path.as_deref()).collect();
    parts.join(" ")
}

/// What a target is: `guest1: vm, kernel debian-cloud, CPUs 2, memory 1GiB`.
fn target_text(target: &PlannedTarget) -> String {
    let spec = &target.spec;
    let parts = [
        Some(spec.kind.to_string()),
        spec.kernel.as_ref().map(|kernel| format!("kernel {kernel}")),
        spec.cpus.map(|cpus| format!("CPUs {cpus}")),
        spec.memory.as_ref().map(|memory| format!("memory {memory}")),
        spec.root.as_ref().map(|root| format!("root {root}")),
        spec.domain.as_ref().map(|domain| format!("domain {domain}")),
        spec.host.as_ref().map(|host| format!("host {host}")),
        spec.address.as_ref().map(|address| format!("at {address}")),
        spec.partition.as_ref().map(|partition| format!("partition {partition}")),
        spec.constraint.as_ref().map(|constraint| format!("constraint {constraint}")),
    ];
    format!("{}: {}", target.name, parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn write_new_study(context: &App, file: &OutputPath) -> Result<(), Failure> {
    file.write_new(|out| Ok(out.write_all(study_source::STARTER.as_bytes())?))?;
    if *file != OutputPath::Stdout {
        context.note(format!("{file}: edit it, then `perflab study check {file}`"));
        if context.format == OutputFormat::Json {
            context.print_value("file", &file.to_string())?;
        }
    }
    Ok(())
}

/// Writes the study that a configuration of another suite becomes, and prints what became of its lines.
fn convert_foreign_study(context: &App, file: &Path, output: Option<&OutputPath>) -> Result<(), Failure> {
    let study = convert_study(file)?;
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let own = name.trim_start_matches("config-").trim_end_matches(".yaml").trim_end_matches(".yml");
    let own: String = own.chars().map(plain).collect();
    let own = format!("{}.toml", if own.is_empty() { "study" } else { &own });
    let output = output.cloned().unwrap_or_else(|| OutputPath::File(own.into()));
    output.write_new(|out| Ok(out.write_all(study.text.as_bytes())?))?;
    let counts = study.account.count();
    if context.format == OutputFormat::Json {
        let lines: Vec<serde_json::Value> =
            study.account.iter().map(|(line, fate)| json!({ "line": line, "became": fate })).collect();
        let found = json!({ "file": output.to_string(), "counts": counts, "lines": lines });
        return context.print_json(&found);
    }
    let mut grid =
        Grid::new([GridColumn::right("lines"), GridColumn::left("became"), GridColumn::left("what")]);
    for (lines, fate) in study.account.join_lines() {
        let (became, what) = match fate {
            LineFate::Empty => continue,
            LineFate::Translated(what) => ("study", what),
            LineFate::NoMeaning(why) => ("nothing: no meaning here", why),
            LineFate::NotUnderstood(why) => ("left out", why),
        };
        let range = match lines.start() == lines.end() {
            true => lines.start().to_string(),
            false => format!("{}-{}", lines.start(), lines.end()),
        };
        grid.add_row([range.as_str().into(), became.into(), what.as_str().into()]);
    }
    context.print_grid(&grid)?;
    context.print_conclusion(&format!(
        "{} lines: {} in the study, {} without a meaning here, {} left out, {} empty or comments",
        counts.lines, counts.translated, counts.no_meaning, counts.not_understood, counts.empty
    ))?;
    if output != OutputPath::Stdout {
        context.note(format!("{output}: look at it, then `perflab study check {output}`"));
    }
    Ok(())
}

fn list_shipped_studies(context: &App) -> Result<(), Failure> {
    let mut grid = Grid::new(["study", "title"].map(GridColumn::left));
    for shipped in study_source::STUDIES {
        let study = study_source::find_study(shipped.name)?.parse_study()?;
        grid.add_row([shipped.name.into(), study.title.as_str().into()]);
    }
    context.print_grid(&grid)
}

fn print_found_studies(context: &App, words: &[String]) -> Result<(), Failure> {
    let mut found = find_studies(words)?;
    let facts = perflab_observe::collect_facts(&context.root, None)?;
    add_brief_forms(&context.catalogue()?, &facts, &mut found)?;
    if context.format == OutputFormat::Json {
        return context.print_json(&json!({ "query": words.join(" "), "studies": found }));
    }
    let mut grid = Grid::new(["study", "title", "command"].map(GridColumn::left));
    for one in &found {
        grid.add_row([one.study.as_str().into(), one.title.as_str().into(), one.command.as_str().into()]);
    }
    context.print_grid(&grid)?;
    for (one, what) in found.iter().flat_map(|one| one.differs.iter().map(move |what| (one, what))) {
        context.print_conclusion(&format!("{} differs: {what}", one.study))?;
    }
    // Of a list of studies, `study list` and each file say more.
    let [one] = &found[..] else { return Ok(()) };
    let conclusion = match (&one.brief, &one.brief_lacks) {
        (Some(brief), _) => {
            let takes = one
                .takes
                .as_ref()
                .map(|takes| format!(" ({})", takes.trim_start_matches("brief, ")))
                .unwrap_or_default();
            format!("{}, brief form{takes}: {brief}", one.study)
        }
        (None, Some(lacks)) => format!("{}: the brief form does not cover this: {lacks}", one.study),
        (None, None) => return Ok(()),
    };
    context.print_conclusion(&conclusion)
}

/// Check, expand, list or begin study files
#[derive(Debug, Args)]
pub struct StudyArgs {
    #[command(subcommand)]
    pub verb: StudyVerb,
}

impl Verb for StudyArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        run_study_verb(app, self)
    }
}

/// The verbs of studies.
#[derive(Debug, Subcommand)]
pub enum StudyVerb {
    /// Check a study: mistakes with line, key and hint
    Check {
        /// A study file, or the name of a shipped study
        study: String,
    },
    /// List every case in its order with all its settings
    Expand {
        /// A study file, or the name of a shipped study
        study: String,
        /// Keep one level of a factor
        #[arg(long, value_name = "FACTOR=LEVEL", value_delimiter = ',')]
        set: Vec<String>,
        /// Seed of the random order
        #[arg(long)]
        seed: Option<u64>,
    },
    /// Print the JSON Schema of studies, for editors
    Schema,
    /// Write a commented study to start from
    New {
        /// The file to write (never overwritten); `-` is standard output
        #[arg(value_parser = OutputPath::parser())]
        file: OutputPath,
    },
    /// Make a study of a configuration of MMTests or a job file of lkp-tests, without running it, and account for every line
    From {
        /// The configuration or job file; others that it includes lie beside it, those of a job also below its folder `jobs`
        file: PathBuf,
        /// The study to write (never overwritten), by default the file's name without `config-` and `.yaml`; `-` is
        /// standard output
        #[arg(short, long, value_name = "STUDY", value_parser = OutputPath::parser())]
        output: Option<OutputPath>,
    },
    /// List the shipped studies
    List,
    /// Find the shipped study that answers a configuration of MMTests, or that matches some words
    Find {
        /// The name of a configuration (`config-io-dbench4-async-xfs`), or words from a study's title, description or workloads
        #[arg(required = true)]
        words: Vec<String>,
    },
}
