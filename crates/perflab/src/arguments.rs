//! The command line, as clap reads it. Nothing below this module sees clap.

pub mod flame;
pub mod history;
pub mod io;
pub mod prefetch;
pub mod slab;
pub mod startup;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod vm;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};
use perflab_model::study::DiskModel;

use crate::output_path::OutputPath;

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
    History(history::HistoryArgs),
    /// Compare the newest run with its history; exit code 5 where a metric got worse, 7 where nothing could be judged
    Guard(history::GuardArgs),
    /// Say how many boots and iterations a wanted precision costs, from earlier runs
    Plan(history::SampleSizeArgs),
    /// Measure this machine's noise: the same variant under two labels
    Noise(history::NoiseArgs),
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
    Slab(slab::SlabArgs),
    /// See which functions the CPU time goes to: profiles, recorded or from other tools
    Flame(flame::FlameArgs),
    /// Boot virtual machines: run anything under another kernel
    Vm(vm::VmArgs),
    /// Get kernels to boot: fetched as packages, or built
    Kernel(vm::KernelArgs),
    /// Find what makes single operations of a program slow: every one recorded, with its causes
    Trace(trace::TraceArgs),
    /// See what a program reads when it starts: files, metadata, disk requests
    Io(io::IoArgs),
    /// Learn what a program reads when it starts, and read it ahead
    Prefetch(prefetch::PrefetchArgs),
    /// Measure how long a program takes to start: cold or warm, with and without reading ahead
    Startup(startup::StartupArgs),
    /// Check this machine for measuring: facts, and what disturbs
    Check(CheckArgs),
    /// Put back settings that a killed run left behind
    Undo(UndoArgs),
    /// Run a built-in load (what the catalogue's own workloads call)
    #[command(hide = true)]
    Load(BuiltInLoadArgs),
    /// Measure one start (what `perflab startup` calls)
    #[command(hide = true)]
    StartOnce(startup::StartOnceArgs),
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
    PrefetchGuard(prefetch::PrefetchGuardArgs),
    /// Become a program that ends with perflab
    #[command(hide = true)]
    Launch(vm::LaunchArgs),
    /// Become a program with a terminal of its own
    #[command(hide = true)]
    Terminal(vm::TerminalArgs),
}

/// `perflab run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// A study file, or the name of a shipped study (`perflab study list`)
    pub study: String,
    /// A name for the run; runs that share one are repetitions of one another
    #[arg(long)]
    pub label: Option<String>,
    /// Keep one level of a factor, or several: `--set pages=huge`, `--set cpus=1,cpus=4` (or repeated)
    #[arg(long, value_name = "FACTOR=LEVEL", value_delimiter = ',')]
    pub set: Vec<String>,
    /// Only this workload of the study
    #[arg(long, value_name = "WORKLOAD")]
    pub only: Option<String>,
    /// Seed of the random order
    #[arg(long)]
    pub seed: Option<u64>,
    /// Iterations of each case, instead of the study's number
    #[arg(long, value_name = "N")]
    pub iterations: Option<u32>,
    /// Install missing workloads first
    #[arg(long)]
    pub install: bool,
    /// Allow what destroys data: formatting the study's partition
    #[arg(long)]
    pub apply: bool,
    /// Where scratch directories and disk images are made
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Write no report
    #[arg(long)]
    pub no_report: bool,
}

/// `perflab compare`
#[derive(Debug, Args)]
#[command(after_long_help = COMPARE)]
pub struct CompareArgs {
    /// The baseline, then one or more candidates; with --by, the one run (or its repetitions)
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare the levels of this factor within the run, the first level being the baseline; with two factors
    /// (`host,guest`) their effects and how they interact
    #[arg(long, value_name = "FACTOR[,FACTOR]", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Compare what this monitor recorded instead of the metrics: means of gauges, rates of counters, by iteration
    #[arg(long, value_name = "NAME", conflicts_with_all = ["ratio", "stat"])]
    pub monitor: Option<String>,
    /// What to compare with: one of the runs, or a level of the factor (default: the first)
    #[arg(long, value_name = "RUN|LEVEL")]
    pub baseline: Option<String>,
    /// How the table looks, and which figures it shows
    #[arg(long, value_enum, default_value_t = ComparisonStyle::Perflab)]
    pub style: ComparisonStyle,
    /// All rows together: gains and their geometric mean, with its members
    #[arg(long)]
    pub ratio: bool,
    /// Statistics to show: n, min, max, mean, hmean, gmean, median, trimmed, sd, cv, mad, iqr, p99, best95, tail95
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub stat: Vec<String>,
    /// With --style mmtests: rows that say which means are marked and how far apart their bands are
    #[arg(long)]
    pub significance: bool,
    /// Exit with 5 where this is found: `worse`, `worse:2%` (worse by more than 2 %), `unclear`
    #[arg(long, value_name = "VERDICT[:CHANGE]")]
    pub fail_if: Option<String>,
    /// Only this metric (may be repeated), or those that decide or explain: all rows of them
    #[arg(long, value_name = "NAME|primary|explanatory")]
    pub metric: Vec<String>,
    /// Only this workload (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
    /// Judge cases of one name although their command, parameters or definition differ: that difference is what is meant
    #[arg(long)]
    pub across: bool,
    /// Count each imported run whose file does not say so as of a boot of its own
    #[arg(long)]
    pub boots_differ: bool,
    /// Confidence of the intervals: 95% or 0.95
    #[arg(long, default_value = CONFIDENCE, value_name = "PERCENT")]
    pub confidence: String,
    /// The relative change that matters, where a study gives none for the metric
    #[arg(long, default_value = MARGIN, value_name = "PERCENT")]
    pub margin: String,
}

/// What `compare` takes where nothing else is wanted.
pub const CONFIDENCE: &str = "95%";
/// The same of the change that matters.
pub const MARGIN: &str = "3%";

const COMPARE: &str = "\
Examples:
  perflab compare before after                      verdicts, with intervals
  perflab compare v1 v2 v3 --baseline v2            more than two, against any of them
  perflab compare @latest --by pages                the levels of a factor within one run
  perflab compare before after --ratio              gains and their geometric mean
  perflab compare before after --stat mean,p99,max  other statistics beside the verdict
  perflab compare @latest --by host,guest           two factors: effects and their interaction
  perflab compare before after --monitor vmstat     what the kernel did meanwhile
  perflab compare before after --metric explanatory every metric that explains, none folded away
  perflab compare before after --style mmtests      the table that compare-mmtests.pl prints";

/// The looks of `--style`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComparisonStyle {
    /// verdicts with intervals
    Perflab,
    /// the rows and figures of MMTests' compare-mmtests.pl
    Mmtests,
    /// those of `lkp compare`
    Lkp,
    /// those of Go's benchstat
    Benchstat,
}

/// `perflab report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The baseline first
    #[arg(default_value = "@latest", value_name = "RUN")]
    pub runs: Vec<String>,
    /// The file to write (default: reports/ID.html in the archive)
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// `perflab list`
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only runs with this label
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// Only the latest N runs
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
}

/// `perflab label`
#[derive(Debug, Args)]
pub struct LabelArgs {
    /// The run
    #[arg(value_name = "RUN")]
    pub run: String,
    /// Its label from now on; runs that share one are repetitions of one another
    #[arg(value_name = "NAME", required_unless_present = "remove")]
    pub name: Option<String>,
    /// Leave it without a label
    #[arg(long, conflicts_with = "name")]
    pub remove: bool,
}

/// `perflab rm`
#[derive(Debug, Args)]
pub struct RmArgs {
    /// The runs, each by its id or the beginning of it, damaged ones too; a label only where it names one run
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
}

/// `perflab monitor`
#[derive(Debug, Args)]
pub struct MonitorArgs {
    #[command(subcommand)]
    pub verb: MonitorVerb,
}

/// What there is to ask of monitors.
#[derive(Debug, Subcommand)]
pub enum MonitorVerb {
    /// List the monitors: where each reads, what it records, what it needs
    List,
}

/// `perflab show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// What its command printed in this iteration (a number of the list of iterations)
    #[arg(long, value_name = "SLOT")]
    pub output: Option<u32>,
    /// Every iteration, in order of time
    #[arg(long)]
    pub iterations: bool,
    /// Every fact
    #[arg(long)]
    pub facts: bool,
    /// Targets in step: how evenly each case served them
    #[arg(long)]
    pub targets: bool,
}

/// `perflab diff`
#[derive(Debug, Args)]
pub struct DiffArgs {
    /// The one
    pub first: String,
    /// The other
    pub second: String,
}

/// `perflab prune`
#[derive(Debug, Args)]
pub struct PruneArgs {
    /// Keep this many of the latest runs
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Remove runs older than this: 30d, 12h
    #[arg(long, value_name = "AGE")]
    pub older_than: Option<String>,
    /// Remove labelled runs too
    #[arg(long)]
    pub labelled: bool,
    /// Do it
    #[arg(long)]
    pub apply: bool,
}

/// `perflab export`
#[derive(Debug, Args)]
#[command(
    after_help = EXPORT,
    override_usage = "perflab export [OPTIONS] <RUN> [FILE]\n       perflab export --schema"
)]
pub struct ExportArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// The file (default: ID.perflab here; standard output with --to)
    #[arg(value_name = "FILE", value_parser = OutputPath::parser())]
    pub file: Option<OutputPath>,
    /// Another tool's format: csv, json, markdown, latex, parquet, gobench, bmf, kcidb, junit or openmetrics
    #[arg(long, value_name = "FORMAT")]
    pub to: Option<String>,
    /// The same as FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "file", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
    /// Print the JSON Schema of `--to json`
    #[arg(long)]
    pub schema: bool,
}

const EXPORT: &str = "\
  perflab export @latest                          one portable file, for `perflab import` elsewhere
  perflab export @latest --to csv -o samples.csv  every sample, for a spreadsheet
  perflab export before --to gobench -o b.txt     then `benchstat b.txt a.txt`";

/// `perflab import`
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// A file that `perflab export` wrote, or what another tool wrote: log directories of MMTests, result folders of
    /// lkp-tests, reports of fio, perf stat, hyperfine, Google Benchmark, pyperf, Criterion, go test -bench, the Phoronix
    /// Test Suite and sar, logs of /proc/slabinfo, copies of /sys/kernel/slab
    pub path: PathBuf,
    /// A name for the run (else what the files suggest, such as the directory of an MMTests run)
    #[arg(long)]
    pub label: Option<String>,
    /// What the path is, such as mmtests, lkp or hyperfine (guessed where left out; a wrong one lists all)
    #[arg(long, value_name = "KIND")]
    pub kind: Option<String>,
    /// Page size of the machine that was recorded, such as 64KiB (else what the files say)
    #[arg(long, value_name = "SIZE")]
    pub page_size: Option<String>,
    /// Take it although a run of this label was made of the very same file
    #[arg(long)]
    pub again: bool,
}

/// `perflab study`
#[derive(Debug, Args)]
pub struct StudyArgs {
    #[command(subcommand)]
    pub verb: StudyVerb,
}

/// The verbs of studies.
#[derive(Debug, Subcommand)]
pub enum StudyVerb {
    /// Say what is wrong with a study, with line, key and hint
    Check {
        /// the file, or a shipped study's name
        study: String,
    },
    /// Print every case in its order, with every setting
    Expand {
        /// the file, or a shipped study's name
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
    /// Write a commented study to begin with
    New {
        /// the file to write (never overwritten); `-` for standard output
        #[arg(value_parser = OutputPath::parser())]
        file: OutputPath,
    },
    /// List the shipped studies
    List,
}

/// `perflab workload`
#[derive(Debug, Args)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    pub verb: WorkloadVerb,
}

/// The verbs of workloads.
#[derive(Debug, Subcommand)]
pub enum WorkloadVerb {
    /// List the catalogue
    List,
    /// Show one workload: what it measures, parameters, metrics, how it is run
    Show {
        /// its name
        name: String,
    },
    /// Install it: packages of this distribution, or a source archive
    Install {
        /// its name
        name: String,
        /// Do it (otherwise the commands are printed)
        #[arg(long)]
        apply: bool,
    },
    /// Run it once and print what it measured
    Try {
        /// its name
        name: String,
        /// Parameters: `threads=2`
        #[arg(value_name = "PARAMETER=VALUE")]
        parameters: Vec<String>,
    },
}

/// `perflab check`
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Print every fact
    #[arg(long)]
    pub facts: bool,
}

/// `perflab load`
#[derive(Debug, Args)]
#[command(after_help = "\
Loads: context-switches, drv_rand_ops, memory-bandwidth, memory-sweep, page-faults, small-files;
`perflab load NAME --help` lists the options of one.")]
pub struct BuiltInLoadArgs {
    /// The load's name and its options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub arguments: Vec<OsString>,
}

/// `perflab disk-server`
#[derive(Debug, Args)]
pub struct DiskServerArgs {
    /// The disk whose delays are emulated
    #[arg(long, value_name = "NAME")]
    pub model: DiskModel,
    /// What it holds
    #[arg(long, value_name = "FILE")]
    pub image: PathBuf,
    /// Where the served file appears: an existing folder
    #[arg(long, value_name = "DIR")]
    pub place: PathBuf,
    /// The process with which it ends
    #[arg(long, value_name = "PID")]
    pub parent: u32,
}

fn parse_executor(text: &str) -> Result<perflab_workload::ExecutionOwner, &'static str> {
    perflab_workload::ExecutionOwner::parse(text).ok_or("it is no executor")
}

/// `perflab execution-guard`
#[derive(Debug, Args)]
pub struct ExecutionGuardArgs {
    /// Whose executions, as their marks name it
    #[arg(value_parser = parse_executor)]
    pub executor: perflab_workload::ExecutionOwner,
}

/// `perflab agent`
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Speak over this character device: a virtio-serial port
    #[arg(long, value_name = "PATH")]
    pub device: Option<PathBuf>,
    /// Speak over a connection to this address: tcp:HOST:PORT, vsock:CID:PORT
    #[arg(long, value_name = "ADDRESS", conflicts_with = "device")]
    pub connect: Option<String>,
}

/// `perflab undo`
#[derive(Debug, clap::Args)]
pub struct UndoArgs {
    /// The process was another perflab until this signal ended it: its processes are ended, and then it dies of the signal
    #[arg(long, hide = true)]
    pub after_signal: Option<i32>,
}
