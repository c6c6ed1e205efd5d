//! `perflab patch`: what a change of the kernel does, from the tree that it was made in to a text for the list.
//!
//! Two kernels are built from the user's tree, the one without the change and the one with it; the study runs on guests that
//! boot the one and the other in random order, and what comes out is a run with the factor `kernel`.

use std::path::PathBuf;

use clap::Args;
use perflab_archive::RunDir;
use perflab_conduct::RunPermissions;
use perflab_guest::{KernelRequest, SourceIdentity};
use perflab_model::study::{TargetKind, TomlSource};
use perflab_model::{Manifest, RunStatus, Study, fact_table};
use perflab_present::comparison::{
    OutputFormat, StudyComparison, StudyComparisons, render_comparisons, studies_mail,
};
use perflab_present::wrap_text;

use crate::app::App;
use crate::failure::{Exit, Failure, UsageError};
use crate::instruments::flame::{FlameDiffArgs, compare_profiles};
use crate::measure::command_words::quote_toml;
use crate::measure::run::{self, RunArgs};
use crate::output_path::OutputPath;
use crate::selection::parse_label;
use crate::study_source;
use crate::verb::Verb;

/// Say what a kernel patch does, from its tree to a mail for the list
#[derive(Debug, Args)]
#[command(after_long_help = PATCH)]
pub struct PatchArgs {
    /// The kernel's tree, a git repository; it is only read
    pub tree: PathBuf,
    /// The study that says what is measured
    #[arg(long, value_name = "STUDY")]
    pub study: String,
    /// The revision without the change (default: HEAD where the tree has changes that were not committed, else the commit before it)
    #[arg(long, value_name = "REV")]
    pub base: Option<String>,
    /// The recipe that says how both are configured and built
    #[arg(long, value_name = "RECIPE", default_value = DEFAULT_RECIPE)]
    pub recipe: String,
    /// How often each kernel is booted (default: as the study says, and at least 5)
    #[arg(long, value_name = "N")]
    pub boots: Option<u32>,
    /// Run the brief form of the study
    #[arg(long)]
    pub brief: bool,
    /// Where the text for the list goes
    #[arg(long, value_name = "FILE", default_value = "-", value_parser = OutputPath::parser())]
    pub mail: OutputPath,
    /// A name for the run
    #[arg(long, value_parser = parse_label)]
    pub label: Option<String>,
    /// Seed of the random order
    #[arg(long)]
    pub seed: Option<u64>,
    /// Write no report
    #[arg(long)]
    pub no_report: bool,
}

const DEFAULT_RECIPE: &str = "linux-guest";

const PATCH: &str = "\
Examples:
  perflab patch ~/linux --study scheduler              what was not committed, against HEAD
  perflab patch ~/linux --base v6.5 --study memory     HEAD against v6.5
  perflab patch ~/linux --study my.toml --recipe mine.toml --mail result.txt

A study without targets runs in a guest with this host's files. One with guests keeps
them, and boots them with the two kernels. What is built once is not built again.";

impl Verb for PatchArgs {
    fn run(&self, app: &App) -> Result<Exit, Failure> {
        measure_patch(app, self)
    }
}

/// The two kernels.
struct PatchedKernels {
    /// without the change, with it
    names: [String; 2],
    sources: [SourceIdentity; 2],
}

/// Builds both kernels, measures, and says what came out.
fn measure_patch(context: &App, args: &PatchArgs) -> Result<Exit, Failure> {
    run::undo_leftovers(context);
    let kernels = find_kernels(args)?;
    let source = study_source::find_study(&args.study)?;
    let source = if args.brief { source.shorten()? } else { source };
    let study = source.parse_study()?;
    let source = TomlSource::new("patch", overlay_text(&study, &kernels, args)?).extend(&source)?;
    let run_args = RunArgs { label: args.label.clone(), seed: args.seed, ..RunArgs::default() };
    let (manifest, catalogue) = run::prepare_written_study(context, source, &run_args, |_| ())?;
    let (status, found) = run::execute_manifest(context, &manifest, catalogue, &RunPermissions::default())?;
    conclude_patch(context, args, &kernels, status, &found)
}

/// Which two kernels the arguments mean.
fn find_kernels(args: &PatchArgs) -> Result<PatchedKernels, Failure> {
    let tree = args.tree.display();
    let name = |revision: Option<&str>| {
        let revision = revision.map_or_else(String::new, |revision| format!("@{revision}"));
        format!("{}:{tree}{revision}", args.recipe)
    };
    let sources = |name: &str| -> Result<SourceIdentity, Failure> {
        let found = KernelRequest::parse(name)?.sources(&mut |_| ())?;
        Ok(found.ok_or_else(|| {
            UsageError::new(format!("`{name}` has no sources"), "name a git repository of Linux")
        })?)
    };
    let as_it_is = sources(&name(None))?;
    let Some(head) = as_it_is.commit.clone() else {
        let message = format!("{tree} is no git repository, so that there is nothing to compare it with");
        return Err(UsageError::new(
            message,
            "name a repository with the change as a commit, or not committed yet",
        )
        .into());
    };
    let base = args.base.as_deref().unwrap_or(if as_it_is.changed { "HEAD" } else { "HEAD~1" });
    let base = sources(&name(Some(base)))?;
    // Named by their commits, so that both stay what they are when somebody commits meanwhile.
    let base_name = name(base.commit.as_deref());
    let (patched_name, patched) =
        if as_it_is.changed { (name(None), as_it_is) } else { (name(Some(&head)), as_it_is) };
    if base.id == patched.id {
        let message = format!("there is no change: {tree} and the base have the same files");
        return Err(
            UsageError::new(message, "change something, or name an older revision with --base").into()
        );
    }
    Ok(PatchedKernels { names: [base_name, patched_name], sources: [base, patched] })
}

/// What is put on top of a study for its guests to boot this kernel, and one where it has none.
///
/// # Errors
/// It has targets that are no guests.
pub fn guest_kernel_text(study: &Study, kernel: &str) -> Result<String, UsageError> {
    if let Some(name) =
        study.target.iter().find(|(_, target)| target.kind != TargetKind::Vm).map(|(name, _)| name)
    {
        return Err(UsageError::new(
            format!("target `{name}` of the study is no guest, and only a guest boots another kernel"),
            "name a study whose targets are of kind \"vm\", or one without targets",
        ));
    }
    let kernel = quote_toml(kernel);
    if study.target.is_empty() {
        return Ok(format!(
            "\n[target.guest]\nkind = \"vm\"\nkernel = {kernel}\ncpus = 2\nmemory = \"1GiB\"\n"
        ));
    }
    let table = |name: &String| format!("\n[target.{}]\nkernel = {kernel}\n", quote_toml(name));
    Ok(study.target.keys().map(table).collect())
}

/// What is put on top of the study: the two kernels, and a guest where it has none.
fn overlay_text(study: &Study, kernels: &PatchedKernels, args: &PatchArgs) -> Result<String, UsageError> {
    let targets = guest_kernel_text(study, &kernels.names[0])?;
    if study.factor.contains_key(FACTOR) {
        return Err(UsageError::new(
            format!("the study has a factor `{FACTOR}` already"),
            "name a study that leaves the kernel open",
        ));
    }
    let [base, patched] = kernels.names.each_ref().map(|name| quote_toml(name));
    let boots = args.boots.unwrap_or_else(|| study.run.boots.max(BOOTS));
    Ok(format!(
        "[run]\nboots = {boots}\n\n[factor.{FACTOR}]\nkind = \"target\"\nkey = \"kernel\"\nlevels = [\n  {{ name = \"base\", value = {base} }},\n  {{ name = \"patched\", value = {patched} }},\n]\n{targets}"
    ))
}

const FACTOR: &str = "kernel";

/// Fewer boots decide little.
const BOOTS: u32 = 5;

/// The table, the report, and the text for the list.
fn conclude_patch(
    context: &App,
    args: &PatchArgs,
    kernels: &PatchedKernels,
    status: RunStatus,
    found: &RunDir,
) -> Result<Exit, Failure> {
    let manifest = found.read_record()?.manifest;
    let compared = crate::see::report::compare_levels_of_run(context, found);
    // A run that was stopped may lack a side.
    let comparisons = if status == RunStatus::Stopped { compared.unwrap_or_default() } else { compared? };
    context.print_text(&render_comparisons(&comparisons, context.format, context.width, context.colour)?)?;
    let outcome = comparisons.iter().find(|comparison| comparison.by.as_deref() == Some(FACTOR));
    if let Some(comparison) = outcome {
        let study = StudyComparison { study: manifest.study.title.clone(), outcome: Ok(comparison.clone()) };
        let studies = StudyComparisons {
            baseline: "base".into(),
            candidate: "patched".into(),
            studies: vec![study],
            one_sided: Vec::new(),
        };
        let text = format!(
            "{}\n{}\n{}",
            kernel_lines(kernels),
            studies_mail(&studies),
            machine_lines(&manifest, args, found)
        );
        let is_shown = args.mail != OutputPath::Stdout || matches!(context.format, OutputFormat::Table);
        if is_shown {
            args.mail.write(format!("\n{text}").as_bytes())?;
        }
    }
    // Where stacks were sampled: which functions moved.
    if manifest.study.profile.is_some()
        && status == RunStatus::Finished
        && context.format == OutputFormat::Table
    {
        context.print_text("\n")?;
        compare_profiles(context, &FlameDiffArgs::of_factor(found.id(), FACTOR))?;
    }
    context.note(format!("run: {} in {}", found.short_id(), context.archive_path().display()));
    if !args.no_report {
        crate::see::report::write_run_report(context, found, comparisons)?;
    }
    Ok(run::exit_of_run(context, status, found))
}

/// What was compared: `base 0123456789ab (mm: ...)`.
fn kernel_lines(kernels: &PatchedKernels) -> String {
    let line = |(name, sources): (&str, &SourceIdentity)| {
        let commit = sources.commit.as_deref().unwrap_or_default();
        let subject = sources.subject.as_deref().unwrap_or_default();
        let changed = if sources.changed { ", and what was not committed" } else { "" };
        let line = format!("{name:7}  {} ({subject}){changed}", commit.get(..12).unwrap_or(commit));
        wrap_text(&line, MAIL_WIDTH, "", "         ").join("\n") + "\n"
    };
    ["base", "patched"].into_iter().zip(&kernels.sources).map(line).collect()
}

/// Columns of a mail.
const MAIL_WIDTH: usize = 72;

/// Where and how often it was measured, and how to measure it again.
fn machine_lines(manifest: &Manifest, args: &PatchArgs, found: &RunDir) -> String {
    let fact = |key| manifest.facts.text(&key);
    let rules = &manifest.study.run;
    let seed = rules.seed.map_or_else(String::new, |seed| format!(" --seed {seed}"));
    let base = args.base.as_ref().map_or_else(String::new, |base| format!(" --base {base}"));
    let brief = if args.brief { " --brief" } else { "" };
    let recipe = match args.recipe == DEFAULT_RECIPE {
        true => String::new(),
        false => format!(" --recipe {}", args.recipe),
    };
    let measured = format!(
        "Measured by {} in guests on {} ({}): {} boots of each, {} iterations a boot, run {}.",
        manifest.writer,
        fact(fact_table::CPU_MODEL),
        fact(fact_table::KERNEL_RELEASE),
        rules.boots,
        rules.iterations,
        found.id()
    );
    let again = format!(
        "Again: perflab patch TREE{base} --study {}{brief}{recipe} --boots {}{seed}",
        args.study, rules.boots
    );
    let lines =
        [wrap_text(&measured, MAIL_WIDTH, "", "  "), wrap_text(&again, MAIL_WIDTH, "", "  ")].concat();
    lines.join("\n") + "\n"
}
