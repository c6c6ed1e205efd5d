//! The command line as clap reads it: the verbs, the options of every verb, and the help made of them.

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

use crate::internal::{AgentArgs, BuiltInLoadArgs, DiskServerArgs, ExecutionGuardArgs};
use crate::keep::exchange::{ExportArgs, ImportArgs};
use crate::keep::runs::{LabelArgs, ListArgs, PruneArgs, RmArgs};
use crate::laboratory::machine::{CheckArgs, MonitorArgs, UndoArgs};
use crate::laboratory::study::StudyArgs;
use crate::laboratory::workload::WorkloadArgs;
use crate::measure::run::RunArgs;
use crate::see::compare::CompareArgs;
use crate::see::report::ReportArgs;
use crate::see::show::{DiffArgs, ShowArgs};

/// Tells you what a change does to a Linux system: runs workloads over and over, records what the
/// kernel did meanwhile, and shows the difference.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_long_help = AFTER)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub verb: VerbArgs,
}

const AFTER: &str = "\
A first run, with nothing to set up:
  perflab run quickstart
  perflab compare @latest --by pages

Runs are named by the shortest unique beginning of their id, by their label, by @latest
(@latest~1 is the one before), or by the path of an exported file.

Exit codes: 0 fine, 1 unexpected, 2 usage, 3 the environment refuses, 4 a workload failed
or the run was stopped, 5 a regression was found (--fail-if, guard), 6 settings are not what
they were, 7 nothing could be judged (guard, noise, --fail-if).";

/// Options of every verb that mean nothing to some, whose help leaves them out; they are accepted everywhere. A verb stands for
/// those below it.
const MEANINGLESS: &[(&str, &[&str])] = &[
    ("archive", &["study", "workload", "monitor", "vm", "kernel", "prefetch", "check", "undo"]),
    (
        "workloads",
        &[
            "compare",
            "report",
            "history",
            "guard",
            "plan",
            "list",
            "show",
            "diff",
            "label",
            "rm",
            "prune",
            "export",
            "import",
            "monitor",
            "vm",
            "kernel",
            "prefetch",
            "check",
            "undo",
            "slab",
            "trace",
            "io",
            "startup",
            "flame record",
            "flame import",
            "flame show",
            "flame html",
            "flame svg",
            "flame export",
        ],
    ),
    ("format", WITHOUT_RESULT),
];

/// Verbs that print nothing of their own which a format could change: a picture, another program's output, nothing.
const WITHOUT_RESULT: &[&str] =
    &["label", "rm", "vm shell", "vm stop", "flame svg", "flame export", "trace plot", "prefetch daemon"];

/// Verbs that print one value, such as a file's name, or a text: JSON wraps it, and there is no table.
const WITHOUT_TABLE: &[&str] = &[
    "report",
    "export",
    "show --output",
    "study check",
    "study new",
    "workload install",
    "kernel fetch",
    "kernel build",
    "vm boot",
    "flame html",
    "io export",
    "trace run",
    "trace attach",
    "trace import",
    "prefetch learn",
    "prefetch replay",
    "undo",
];

impl Cli {
    /// The command line as clap knows it, with help that shows of the options of every verb what means something to it.
    pub fn visible_command() -> clap::Command {
        let all = Cli::command();
        let options: Vec<clap::Arg> =
            all.get_arguments().filter(|one| one.is_global_set()).cloned().collect();
        MEANINGLESS.iter().fold(all, |all, (name, verbs)| {
            let option = options.iter().find(|option| option.get_id() == name);
            verbs.iter().fold(all, |all, verb| match option {
                Some(option) => hide_option_in(all, &verb.split(' ').collect::<Vec<_>>(), option),
                None => all,
            })
        })
    }

    /// What the user typed.
    pub fn read() -> Result<Self, clap::Error> {
        let mut shown = Cli::visible_command();
        let matches = shown.try_get_matches_from_mut(std::env::args_os())?;
        let arguments = Cli::from_arg_matches(&matches)?;
        let mut verb = typed_verb_path(&matches);
        if matches!(arguments.verb, VerbArgs::Show(ShowArgs { output: Some(_), .. })) {
            verb += " --output";
        }
        match format_without_effect(&verb, arguments.global.format) {
            Some(message) => Err(shown.error(ErrorKind::ArgumentConflict, message)),
            None => Ok(arguments),
        }
    }
}

/// The verb that was typed, with the one below it.
fn typed_verb_path(matches: &ArgMatches) -> String {
    let below = std::iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
    below.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
}

/// Why a format would change nothing of what a verb prints, if it would not.
fn format_without_effect(verb: &str, format: FormatName) -> Option<String> {
    let shown = format.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    match format {
        FormatName::Table => None,
        _ if WITHOUT_RESULT.contains(&verb) => Some(format!(
            "`perflab {verb}` prints no table: --format {shown} would change nothing; leave it out"
        )),
        FormatName::Csv | FormatName::Markdown if WITHOUT_TABLE.contains(&verb) => Some(format!(
            "`perflab {verb}` prints no table: --format {shown} would change nothing; leave it out, or take --format json"
        )),
        _ => None,
    }
}

/// The command with a hidden copy of an option of every verb in one of them, which is handed down in its place.
fn hide_option_in(command: clap::Command, path: &[&str], option: &clap::Arg) -> clap::Command {
    match path.split_first() {
        Some((verb, rest)) => command.mut_subcommand(verb, |verb| hide_option_in(verb, rest, option)),
        None => command.arg(option.clone().hide(true)),
    }
}

/// Options of every verb.
#[derive(Debug, Args)]
pub struct GlobalArgs {
    /// Directory that holds the runs (default: ./perflab-archive)
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Everywhere",
        env = "PERFLAB_ARCHIVE",
        hide_env_values = true
    )]
    pub archive: Option<PathBuf>,
    /// Directory with further workload definitions (may be repeated)
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    pub workloads: Vec<PathBuf>,
    /// How results are printed: table (for people), json (every number), csv, markdown
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t = FormatName::Table,
        hide_possible_values = true,
        help_heading = "Everywhere"
    )]
    pub format: FormatName,
    /// Say nothing on stderr but warnings and errors
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub quiet: bool,
}

/// The formats of `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatName {
    /// for people
    Table,
    /// every number, versioned
    Json,
    /// for spreadsheets
    Csv,
    /// for mails and issues
    Markdown,
}

impl From<FormatName> for perflab_present::comparison::OutputFormat {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Table => Self::Table,
            FormatName::Json => Self::Json,
            FormatName::Csv => Self::Csv,
            FormatName::Markdown => Self::Markdown,
        }
    }
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum VerbArgs {
    /// Run a study: progress, table and report at the end
    Run(RunArgs),
    /// Compare runs, or the levels of a factor within a run
    Compare(CompareArgs),
    /// Write one HTML file that shows runs and their difference, offline
    Report(ReportArgs),
    /// Show metrics over the runs of the archive, with the steps between them
    History(crate::see::history::HistoryArgs),
    /// Compare the newest run with its history; exit code 5 where a metric got worse, 7 where nothing could be judged
    Guard(crate::see::history::GuardArgs),
    /// Say how many boots and iterations a wanted precision costs, from earlier runs
    Plan(crate::laboratory::noise::SampleSizeArgs),
    /// Measure this machine's noise: the same variant under two labels
    Noise(crate::laboratory::noise::NoiseArgs),
    /// List the runs of the archive
    List(ListArgs),
    /// Show one run: what was done, how it went, medians
    Show(ShowArgs),
    /// Show what differs between two runs: facts, study, plan
    Diff(DiffArgs),
    /// Give a run another label, or none
    Label(LabelArgs),
    /// Remove runs
    Rm(RmArgs),
    /// Remove old runs (says what it would do; --apply does it)
    Prune(PruneArgs),
    /// Write a run as one portable file
    Export(ExportArgs),
    /// Take runs into the archive: exported ones, and other tools' results
    Import(ImportArgs),
    /// Check, expand, describe or begin a study file
    Study(StudyArgs),
    /// List, show, install or try the benchmarks of the catalogue
    Workload(WorkloadArgs),
    /// List the monitors and what they record
    Monitor(MonitorArgs),
    /// See where the kernel's object memory goes: live, over a run, between runs
    Slab(crate::instruments::slab::SlabArgs),
    /// See which functions the CPU time goes to: profiles, recorded or from other tools
    Flame(crate::instruments::flame::FlameArgs),
    /// Boot virtual machines: run anything under another kernel
    Vm(crate::laboratory::vm::VmArgs),
    /// Get kernels to boot: fetched as packages, or built
    Kernel(crate::laboratory::kernel::KernelArgs),
    /// Find what makes single operations of a program slow: every one recorded, with its causes
    Trace(crate::instruments::trace::TraceArgs),
    /// See what a program reads when it starts: files, metadata, disk requests
    Io(crate::instruments::io::IoArgs),
    /// Learn what a program reads when it starts, and read it ahead
    Prefetch(crate::instruments::prefetch::PrefetchArgs),
    /// Measure how long a program takes to start: cold or warm, with and without reading ahead
    Startup(crate::instruments::startup::StartupArgs),
    /// Check this machine for measuring: facts, and what disturbs
    Check(CheckArgs),
    /// Put back settings that a killed run left behind
    Undo(UndoArgs),
    /// Run a built-in load (what the catalogue's own workloads call)
    #[command(hide = true)]
    Load(BuiltInLoadArgs),
    /// Measure one start (what `perflab startup` calls)
    #[command(hide = true)]
    StartOnce(crate::instruments::startup::StartOnceArgs),
    /// Take orders from a perflab elsewhere, over standard input and output unless told otherwise
    #[command(hide = true)]
    Agent(AgentArgs),
    /// Serve an image with the delays of another disk, until it is unmounted
    #[command(hide = true)]
    DiskServer(DiskServerArgs),
    /// End what a perflab was running when it is killed
    #[command(hide = true)]
    ExecutionGuard(ExecutionGuardArgs),
    /// Answer execs while the prefetch daemon does not (what it starts by itself)
    #[command(hide = true)]
    PrefetchGuard(crate::instruments::prefetch::PrefetchGuardArgs),
    /// Become a program that ends with perflab
    #[command(hide = true)]
    Launch(crate::laboratory::vm::LaunchArgs),
    /// Become a program with a terminal of its own
    #[command(hide = true)]
    Terminal(crate::laboratory::vm::TerminalArgs),
}

#[cfg(test)]
mod tests {
    use clap::Command;

    /// What clap gives text beside options at most, on any terminal: longer lines are broken wherever they are.
    const WIDTH: usize = 100;

    fn collect_too_wide_lines(command: &Command, found: &mut Vec<String>) {
        let text = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
        let wide = |line: &&str| line.chars().count() > WIDTH;
        found.extend(
            text.unwrap_or_default()
                .lines()
                .filter(wide)
                .map(|line| format!("{}: {line}", command.get_name())),
        );
        command.get_subcommands().for_each(|verb| collect_too_wide_lines(verb, found));
    }

    #[test]
    fn what_help_explains_fits_into_its_lines() {
        let mut found = Vec::new();
        collect_too_wide_lines(&super::Cli::visible_command(), &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    /// clap looks for slips of its user in debug builds when it is asked.
    #[test]
    fn the_command_line_is_whole_and_options_that_are_not_shown_are_accepted() {
        let mut all = super::Cli::visible_command();
        all.build();
        let parsed = super::Cli::visible_command().try_get_matches_from([
            "perflab",
            "check",
            "--archive",
            "a",
            "--format",
            "json",
        ]);
        assert_eq!(parsed.unwrap().get_one::<std::path::PathBuf>("archive"), Some(&"a".into()));
        let check = all.find_subcommand("check").unwrap().clone().render_long_help().to_string();
        assert!(!check.contains("--archive") && check.contains("--format"), "{check}");
        let shell = all.find_subcommand("vm").unwrap().find_subcommand("shell").unwrap().clone();
        assert!(!shell.clone().render_long_help().to_string().contains("--format"));
    }
}
