//! The table of verbs, and the command line that is made of it: help in groups, suggestions, the reference page.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args as _, Command, FromArgMatches as _};
use perflab_model::named::Named as _;
use perflab_present::comparison::OutputFormat;

use crate::app::{App, GlobalArgs};
use crate::failure::{Exit, Failure};
use crate::help::completions::{CompleteArgs, CompletionsArgs};
use crate::help::first_hour::FirstHourArgs;
use crate::help::global_options::hide_global_option;
use crate::help::manual::ManArgs;
use crate::help::reference::ReferenceArgs;
use crate::instruments::flame::FlameArgs;
use crate::instruments::io::IoArgs;
use crate::instruments::prefetch::{PrefetchArgs, PrefetchGuardArgs};
use crate::instruments::slab::SlabArgs;
use crate::instruments::startup::StartupArgs;
use crate::instruments::startup_once::StartOnceArgs;
use crate::instruments::trace::TraceArgs;
use crate::internal::{
    AgentArgs, BuiltInLoadArgs, DiskServerArgs, ExecutionGuardArgs, HoldHostArgs, ReturnMachineArgs,
};
use crate::keep::exchange::{ExportArgs, ImportArgs};
use crate::keep::index::IndexArgs;
use crate::keep::remote_runs::{PullArgs, PushArgs, SyncArgs};
use crate::keep::runs::{LabelArgs, ListArgs, PruneArgs, RmArgs};
use crate::laboratory::events::EventArgs;
use crate::laboratory::host::HostArgs;
use crate::laboratory::kernel::KernelArgs;
use crate::laboratory::machine::{CheckArgs, UndoArgs};
use crate::laboratory::monitors::MonitorArgs;
use crate::laboratory::noise::{NoiseArgs, SampleSizeArgs};
use crate::laboratory::queue::{QueueArgs, QueuedRunArgs};
use crate::laboratory::setting::SettingArgs;
use crate::laboratory::study::StudyArgs;
use crate::laboratory::tune::TuneArgs;
use crate::laboratory::vm::{LaunchArgs, TerminalArgs, VmArgs};
use crate::laboratory::workload::WorkloadArgs;
use crate::measure::bench::BenchArgs;
use crate::measure::bisect::BisectArgs;
use crate::measure::patch::PatchArgs;
use crate::measure::reproduce::ReproduceArgs;
use crate::measure::resume::ResumeArgs;
use crate::measure::run::RunArgs;
use crate::measure::watch::WatchArgs;
use crate::see::compare::CompareArgs;
use crate::see::history::{GuardArgs, HistoryArgs};
use crate::see::plot::PlotArgs;
use crate::see::price::PriceArgs;
use crate::see::query::QueryArgs;
use crate::see::report::ReportArgs;
use crate::see::serve::ServeArgs;
use crate::see::show::{DiffArgs, ShowArgs};
use crate::see::why::WhyArgs;
use crate::verb::VerbGroup::{Internal, Keep, Laboratory, LookInto, Measure, See};
use crate::verb::{VerbEntry, VerbGroup};

/// What `perflab` without a word stands for.
const ALONE: &str = "first-hour";

/// Every verb: its arguments, its name, and its group in the help.
const VERBS: &[VerbEntry] = &[
    VerbEntry::new::<RunArgs>("run", Measure),
    VerbEntry::new::<BenchArgs>("bench", Measure),
    VerbEntry::new::<WatchArgs>("watch", Measure),
    VerbEntry::new::<PatchArgs>("patch", Measure),
    VerbEntry::new::<ResumeArgs>("resume", Measure),
    VerbEntry::new::<ReproduceArgs>("reproduce", Measure),
    VerbEntry::new::<BisectArgs>("bisect", Measure),
    VerbEntry::new::<CompareArgs>("compare", See),
    VerbEntry::new::<WhyArgs>("why", See),
    VerbEntry::new::<PriceArgs>("price", See),
    VerbEntry::new::<ReportArgs>("report", See),
    VerbEntry::new::<PlotArgs>("plot", See),
    VerbEntry::new::<HistoryArgs>("history", See),
    VerbEntry::new::<GuardArgs>("guard", See),
    VerbEntry::new::<ShowArgs>("show", See),
    VerbEntry::new::<DiffArgs>("diff", See),
    VerbEntry::new::<QueryArgs>("query", See),
    VerbEntry::new::<ServeArgs>("serve", See),
    VerbEntry::new::<ListArgs>("list", Keep),
    VerbEntry::new::<LabelArgs>("label", Keep),
    VerbEntry::new::<RmArgs>("rm", Keep),
    VerbEntry::new::<PruneArgs>("prune", Keep),
    VerbEntry::new::<ExportArgs>("export", Keep),
    VerbEntry::new::<ImportArgs>("import", Keep),
    VerbEntry::new::<PushArgs>("push", Keep),
    VerbEntry::new::<PullArgs>("pull", Keep),
    VerbEntry::new::<SyncArgs>("sync", Keep),
    VerbEntry::new::<IndexArgs>("index", Keep),
    VerbEntry::new::<SlabArgs>("slab", LookInto),
    VerbEntry::new::<FlameArgs>("flame", LookInto),
    VerbEntry::new::<TraceArgs>("trace", LookInto),
    VerbEntry::new::<IoArgs>("io", LookInto),
    VerbEntry::new::<StartupArgs>("startup", LookInto),
    VerbEntry::new::<PrefetchArgs>("prefetch", LookInto),
    VerbEntry::new::<StudyArgs>("study", Laboratory),
    VerbEntry::new::<WorkloadArgs>("workload", Laboratory),
    VerbEntry::new::<MonitorArgs>("monitor", Laboratory),
    VerbEntry::new::<EventArgs>("event", Laboratory),
    VerbEntry::new::<SettingArgs>("setting", Laboratory),
    VerbEntry::new::<KernelArgs>("kernel", Laboratory),
    VerbEntry::new::<VmArgs>("vm", Laboratory),
    VerbEntry::new::<HostArgs>("host", Laboratory),
    VerbEntry::new::<CheckArgs>("check", Laboratory),
    VerbEntry::new::<TuneArgs>("tune", Laboratory),
    VerbEntry::new::<NoiseArgs>("noise", Laboratory),
    VerbEntry::new::<SampleSizeArgs>("plan", Laboratory),
    VerbEntry::new::<QueueArgs>("queue", Laboratory),
    VerbEntry::new::<UndoArgs>("undo", Laboratory),
    VerbEntry::new::<CompletionsArgs>("completions", Laboratory),
    VerbEntry::new::<ManArgs>("man", Laboratory),
    VerbEntry::new::<BuiltInLoadArgs>("load", Internal),
    VerbEntry::new::<StartOnceArgs>("start-once", Internal),
    VerbEntry::new::<AgentArgs>("agent", Internal),
    VerbEntry::new::<HoldHostArgs>("hold-host", Internal),
    VerbEntry::new::<QueuedRunArgs>("queued-run", Internal),
    VerbEntry::new::<DiskServerArgs>("disk-server", Internal),
    VerbEntry::new::<ExecutionGuardArgs>("execution-guard", Internal),
    VerbEntry::new::<PrefetchGuardArgs>("prefetch-guard", Internal),
    VerbEntry::new::<LaunchArgs>("launch", Internal),
    VerbEntry::new::<TerminalArgs>("terminal", Internal),
    VerbEntry::new::<ReturnMachineArgs>("return-machine", Internal),
    VerbEntry::new::<ReferenceArgs>("reference", Internal),
    VerbEntry::new::<CompleteArgs>("complete", Internal),
    VerbEntry::new::<FirstHourArgs>(ALONE, Internal),
];

const ABOUT: &str = "\
Tells you what a change does to a Linux system: runs workloads over and over, records what the
kernel does meanwhile, and shows the difference.";

const AFTER: &str = "\
A first run, with nothing to set up:
  perflab run quickstart
  perflab compare @latest --by pages

A run is named by the shortest unique beginning of its id, by its label, by @latest (@latest~1 is
the one before), or by the path of an exported file.

Exit codes: 0 fine, 1 unexpected, 2 usage, 3 the environment refuses, 4 a workload failed or the
run was stopped, 5 a regression was found (--fail-if, --fail-on-differs, guard), 6 settings are not
what they were, 7 nothing could be judged (guard, noise, --fail-if), or
explained (why).";

/// Global options that mean nothing to some verbs, whose help leaves them out; they are accepted everywhere. A verb stands
/// for those below it.
const MEANINGLESS: &[(&str, &[&str])] = &[
    (
        "archive",
        &[
            "study",
            "workload",
            "monitor",
            "setting",
            "vm",
            "host",
            "kernel",
            "prefetch",
            "check",
            "tune",
            "undo",
            "completions",
            "man",
        ],
    ),
    (
        "workloads",
        &[
            "compare",
            "why",
            "report",
            "plot",
            "history",
            "guard",
            "plan",
            "list",
            "show",
            "diff",
            "query",
            "serve",
            "label",
            "rm",
            "prune",
            "export",
            "import",
            "push",
            "pull",
            "sync",
            "index",
            "monitor",
            "setting",
            "vm",
            "host",
            "kernel",
            "prefetch",
            "check",
            "tune",
            "undo",
            "completions",
            "man",
            "slab",
            "trace",
            "io",
            "startup",
            "flame record",
            "flame import",
            "flame show",
            "flame diff",
            "flame html",
            "flame svg",
            "flame export",
        ],
    ),
    ("format", WITHOUT_RESULT),
];

/// Verbs that print nothing of their own which a format could change: a picture, another program's output, nothing.
const WITHOUT_RESULT: &[&str] = &[
    "queue cancel",
    "queue run",
    "label",
    "rm",
    "vm shell",
    "vm stop",
    "flame svg",
    "flame export",
    "trace plot",
    "prefetch daemon",
    "plot strip",
    "plot ecdf",
    "plot histogram",
    "plot interval",
    "plot scaling",
    "plot timeline",
    "plot heatmap",
    "completions",
    "man",
];

/// Verbs whose rows have a form of one line each.
const WITH_SHORT: &[&str] = &["compare"];

/// Verbs whose tables have a form for mails.
const WITH_MAIL: &[&str] = &["compare"];

/// Verbs whose verdicts have forms for continuous integration.
const WITH_VERDICTS: &[&str] = &["compare", "guard"];

/// Verbs that print one value, such as a file's name, or a text: JSON wraps it, and there is no table.
const WITHOUT_TABLE: &[&str] = &[
    "queue add",
    "queue watch",
    ALONE,
    "bisect",
    "report",
    "serve",
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
    "prefetch learn",
    "prefetch replay",
    "undo",
];

/// What was typed: a verb, and what stands behind it.
pub struct TypedCommand {
    /// the line of the table
    pub verb: &'static VerbEntry,
    /// options of every verb
    pub global: GlobalArgs,
    matches: ArgMatches,
}

impl TypedCommand {
    /// Reads the process's arguments; help and the version are errors, too.
    ///
    /// # Errors
    /// What clap refuses, and a format that would change nothing.
    pub fn read() -> Result<Self, clap::Error> {
        let mut command = build_command();
        let mut words: Vec<OsString> = std::env::args_os().collect();
        if words.len() < 2 {
            words = ["perflab", ALONE].map(OsString::from).into();
        }
        let parsed = match command.try_get_matches_from_mut(words.clone()) {
            // Options of every verb and no verb: what `perflab` alone says, in that form.
            Err(error) if error.kind() == ErrorKind::MissingSubcommand => {
                words.push(ALONE.into());
                command.try_get_matches_from_mut(words).map_err(|_| error)
            }
            parsed => parsed,
        };
        let matches = parsed.map_err(|error| explain_unknown_verb(&command, error))?;
        let global = GlobalArgs::from_arg_matches(&matches)?;
        let typed = matches
            .subcommand()
            .and_then(|(name, behind)| Some((VERBS.iter().find(|verb| verb.name == name)?, behind.clone())));
        let Some((verb, behind)) = typed else {
            return Err(command.error(ErrorKind::MissingSubcommand, "no verb was named"));
        };
        match format_without_effect(&typed_verb_path(&matches), global.format) {
            Some(message) => Err(command.error(ErrorKind::ArgumentConflict, message)),
            None => Ok(TypedCommand { verb, global, matches: behind }),
        }
    }

    /// Carries it out.
    ///
    /// # Errors
    /// What ended it early.
    pub fn run(&self, app: &App) -> Result<Exit, Failure> {
        self.verb.run(&self.matches, app)
    }

    /// Whether it reads or writes runs of the archive.
    pub fn works_on_runs(&self) -> bool {
        let is_named = |list: &&[&str]| list.contains(&self.verb.name);
        let without = MEANINGLESS.iter().find(|(option, _)| *option == "archive").map(|(_, verbs)| *verbs);
        // The list of another archive is no list of this one.
        let is_of_another =
            self.verb.name == "list" && self.matches.try_contains_id("remote").is_ok_and(|is_named| is_named);
        if is_of_another {
            return false;
        }
        let is_shown = self.verb.group != VerbGroup::Internal || self.verb.name == "queued-run";
        is_shown && !without.is_some_and(|verbs| is_named(&verbs))
    }

    /// Whether it may write temporary files: all but what puts things back and what perflab itself starts.
    pub fn writes_temporary_files(&self) -> bool {
        match self.verb.name {
            "undo" => false,
            "load" => true,
            _ => self.verb.group != VerbGroup::Internal,
        }
    }
}

/// The command line as clap knows it; a verb's help shows those global options that mean something to it.
pub fn build_command() -> Command {
    let command = GlobalArgs::augment_args(Command::new("perflab"))
        .about(ABOUT.replace('\n', " ").trim_end_matches('.').to_owned())
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .subcommand_value_name("VERB")
        .help_template(help_template())
        .after_long_help(AFTER)
        .subcommands(VERBS.iter().map(VerbEntry::command));
    MEANINGLESS.iter().fold(command, |command, (name, verbs)| {
        verbs.iter().fold(command, |command, verb| hide_global_option(command, verb, name))
    })
}

/// The help of perflab itself, with its verbs in groups.
fn help_template() -> String {
    let mut template = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for group in VerbGroup::SHOWN {
        template += &format!("\n{}:\n", group.heading());
        for verb in VERBS.iter().filter(|verb| verb.group == group) {
            let about = verb.command().get_about().map(ToString::to_string).unwrap_or_default();
            template += &format!("  {:<9} {about}\n", verb.name);
        }
    }
    template + "\nOptions of every verb:\n{options}{after-help}"
}

/// The verb that was typed, with the one below it.
fn typed_verb_path(matches: &ArgMatches) -> String {
    let below = std::iter::successors(matches.subcommand(), |(_, matches)| matches.subcommand());
    let path = below.map(|(name, _)| name).collect::<Vec<_>>().join(" ");
    match matches.subcommand() {
        // What a command printed is a text.
        Some(("show", show)) if show.contains_id("output") => path + " --output",
        _ => path,
    }
}

/// Why a format would change nothing of what a verb prints, if it would not.
fn format_without_effect(verb: &str, format: OutputFormat) -> Option<String> {
    let shown = format.name();
    match format {
        OutputFormat::Table => None,
        OutputFormat::Short if !WITH_SHORT.contains(&verb) => {
            Some(format!("`perflab {verb}` has no short form: leave --format short out"))
        }
        OutputFormat::Mail if !WITH_MAIL.contains(&verb) => Some(format!(
            "`perflab {verb}` writes no mail: leave --format mail out, or use --format markdown"
        )),
        _ if format.is_for_ci() && !WITH_VERDICTS.contains(&verb) => {
            Some(format!("`perflab {verb}` gives no verdicts that --format {shown} could hold: leave it out"))
        }
        _ if WITHOUT_RESULT.contains(&verb) => Some(format!(
            "`perflab {verb}` prints no result that --format {shown} would change: leave it out"
        )),
        OutputFormat::Csv | OutputFormat::Markdown if WITHOUT_TABLE.contains(&verb) => Some(format!(
            "`perflab {verb}` prints no table: leave --format {shown} out, or use --format json"
        )),
        _ => None,
    }
}

/// A verb that a slip of the finger is never taken for: it removes.
const NOT_SUGGESTED: &str = "rm";

/// A verb that is not there, with the nearest that help shows. clap would suggest what is hidden, too.
fn explain_unknown_verb(command: &Command, error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(requested)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    let mut verb = command;
    for word in std::env::args().skip(1).take_while(|word| word != requested) {
        verb = verb.find_subcommand(word).unwrap_or(verb);
    }
    let shown = verb.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name);
    let shown: Vec<&str> = shown.filter(|name| *name != NOT_SUGGESTED).collect();
    let near = perflab_model::problem::nearest_name(requested, shown.iter().copied());
    // All verbs stand in `--help`; those below one are few.
    let hint = match near {
        Some(near) => format!("; did you mean `{near}`?"),
        None if verb.get_name() == command.get_name() => String::new(),
        None => format!("; {} has {}", verb.get_name(), shown.join(", ")),
    };
    let message = format!("there is no verb `{requested}`{hint}");
    verb.clone().error(ErrorKind::InvalidSubcommand, message)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        collect_too_wide_lines(&build_command(), &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }

    /// One line each, on a terminal of 80 columns.
    #[test]
    fn every_verb_has_one_line_in_a_group() {
        let help = build_command().render_long_help().to_string();
        for verb in VERBS {
            let lines: Vec<&str> =
                help.lines().filter(|line| line.starts_with(&format!("  {} ", verb.name))).collect();
            match (verb.group, lines.as_slice()) {
                (VerbGroup::Internal, []) => {}
                (VerbGroup::Internal, _) => panic!("{} is shown", verb.name),
                (_, [line]) => {
                    assert!(line.chars().count() <= 80 && line.len() > 12, "{line}");
                }
                (_, lines) => panic!("{} has {} lines", verb.name, lines.len()),
            }
        }
        let names: std::collections::BTreeSet<&str> = VERBS.iter().map(|verb| verb.name).collect();
        assert_eq!(names.len(), VERBS.len());
    }

    #[test]
    fn the_reference_lists_global_options_once() {
        let page = crate::help::reference::render_reference(build_command());
        for option in ["--archive <DIR>", "--workloads <DIR>", "--format <FORMAT>", "  -q, --quiet"] {
            assert_eq!(page.matches(&format!("{option}\n")).count(), 1, "{option}");
        }
        for verb in VERBS {
            let is_there = page.contains(&format!("\n## perflab {}\n", verb.name));
            assert_eq!(is_there, verb.group != VerbGroup::Internal, "{}", verb.name);
        }
    }

    /// clap looks for slips of its user in debug builds when it is asked.
    #[test]
    fn the_command_line_is_whole_and_options_that_are_not_shown_are_accepted() {
        let mut all = build_command();
        all.build();
        let typed = ["perflab", "check", "--archive", "a", "--format", "json"];
        let parsed = build_command().try_get_matches_from(typed);
        assert_eq!(parsed.unwrap().get_one::<std::path::PathBuf>("archive"), Some(&"a".into()));
        let check = all.find_subcommand("check").unwrap().clone().render_long_help().to_string();
        assert!(!check.contains("--archive") && check.contains("--format"), "{check}");
        let shell = all.find_subcommand("vm").unwrap().find_subcommand("shell").unwrap().clone();
        assert!(!shell.clone().render_long_help().to_string().contains("--format"));
    }
}
