//! `perflab flame`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::output_path::OutputPath;

/// `perflab flame`
#[derive(Debug, Args)]
pub struct FlameArgs {
    #[command(subcommand)]
    pub verb: FlameVerb,
}

/// The verbs of profiles.
#[derive(Debug, Subcommand)]
pub enum FlameVerb {
    /// Sample call stacks, kernel and user, while a command runs, for a time, or until ^C
    Record(FlameRecordArgs),
    /// Take a profile into the archive that another tool recorded
    Import(FlameImportArgs),
    /// Show the share of each operation and category, by a table of rules: who is the allocator
    Shares(FlameSharesArgs),
    /// Show where the samples of a run are: functions, self and inclusive
    Show(FlameShowArgs),
    /// Write the viewer: one HTML file with the flame graph of a run, or the difference of two
    Html(FlameHtmlArgs),
    /// Draw the flame graph of a run as one static SVG
    Svg(FlameSvgArgs),
    /// Write the profile of a run for another viewer: folded, speedscope, firefox, pprof
    Export(FlameExportArgs),
}

/// `perflab flame record`
#[derive(Debug, Args)]
#[command(after_long_help = "\
The best event that the machine has is taken: cycles, and where no hardware counter is (as in most
virtual machines) the CPU clock, which is blind while interrupts are off. Which one it was is
printed.
Examples:
  perflab flame record -- hackbench -g 2
  perflab flame record --system --for 10s
  perflab flame record -F 999 -p 1234 --for 5s")]
pub struct FlameRecordArgs {
    /// Samples a second on each CPU
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 499,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(perflab_model::study::ProfileSpec::HIGHEST_FREQUENCY)))]
    pub frequency: u32,
    /// Everybody's stacks, on every CPU (as without a command)
    #[arg(short = 'a', long, conflicts_with = "pid")]
    pub system: bool,
    /// The stacks of this process and of what it starts
    #[arg(short = 'p', long, value_name = "PID")]
    pub pid: Option<i32>,
    /// Record for this long; with a command, stop it after this long
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<String>,
    /// A name for the run; runs that share one are repetitions of one another
    #[arg(long)]
    pub label: Option<String>,
    /// What to run meanwhile; without it, record until ^C or for the time of --for
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `perflab flame import`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perf record -F 499 -a -g -- sleep 10 && perflab flame import perf.data
  perf record -e '{cpu-clock,page-faults}' -g -- make
  perflab flame import perf.data --event page-faults
  perflab flame import out.folded --label before")]
pub struct FlameImportArgs {
    /// The file
    pub file: PathBuf,
    /// What it is (perf.data, perf-script, pprof, folded); guessed where left out
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<String>,
    /// Which event of a perf.data with several; all together where left out
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,
    /// A copy of the recorded machine's /proc/kallsyms, where that was not this one
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
    /// The recorded kernel's vmlinux with debug information: inlined functions become visible
    #[arg(long, value_name = "FILE")]
    pub vmlinux: Option<PathBuf>,
    /// A name for the run; runs that share one are repetitions of one another
    #[arg(long)]
    pub label: Option<String>,
}

/// `perflab flame show`
#[derive(Debug, Args)]
pub struct FlameShowArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// Which case of the run, by its number; the first that was profiled where left out
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// How many functions
    #[arg(long, value_name = "N", default_value_t = 25)]
    pub top: usize,
}

/// `perflab flame shares`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Each share is printed with what it is a share of. Intervals come from repeated iterations, never
from the number of samples.
Examples:
  perflab flame shares @latest
  perflab flame shares @latest --rules kernel
  perflab flame shares @latest --rules my-rules.toml --comm hackbench")]
pub struct FlameSharesArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// The table: slab, kernel, or a file
    #[arg(long, value_name = "TABLE", default_value = "slab")]
    pub rules: String,
    /// Which case of the run, by its number; all where left out
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// Only samples of this command
    #[arg(long, value_name = "COMMAND")]
    pub comm: Option<String>,
}

/// `perflab flame html`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Several runs are laid over one tree: the viewer shows any of them, or the difference of two. Runs
that share a label are repetitions of one another, and so are the iterations of one run;
differences inside their noise are grey.

Examples:
  perflab flame html @latest -o flame.html
  perflab flame html before after -o difference.html")]
pub struct FlameHtmlArgs {
    /// The runs; the baseline first
    #[arg(default_value = "@latest")]
    pub runs: Vec<String>,
    /// Only this case of each run, by its number; all that were profiled where left out
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// Keep commands apart that are not on every side; else they share a box, as two versions of one program should
    #[arg(long)]
    pub by_command: bool,
    /// What colours mean: the table slab or kernel, a file of rules, or none (kernel and user)
    #[arg(long, value_name = "TABLE", default_value = "slab")]
    pub rules: String,
    /// Where to write the page; beside the archive's reports where left out
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// `perflab flame svg`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab flame svg @latest -o flame.svg
  perflab flame svg @latest --icicle --width 1600 > flame.svg")]
pub struct FlameSvgArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// Which case of the run, by its number; the first that was profiled where left out
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// What colours mean: the table slab or kernel, a file of rules, or none (kernel and user)
    #[arg(long, value_name = "TABLE", default_value = "slab")]
    pub rules: String,
    /// Callers on top, callees below
    #[arg(long)]
    pub icicle: bool,
    /// Pixels from left to right
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, value_parser = clap::value_parser!(u32).range(300..=10_000))]
    pub width: u32,
    /// Where to write the picture; stdout where left out
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// `perflab flame export`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Formats:
  folded      `command;outer;inner 42` a line, for flamegraph.pl, inferno; _[k] is the kernel
  speedscope  JSON for https://www.speedscope.app, in order of time where samples have one
  firefox     JSON for https://profiler.firefox.com, with threads and times
  pprof       gzip-compressed protobuf, for `go tool pprof`

Examples:
  perflab flame export @latest --to folded > out.folded
  perflab flame export @latest --to pprof -o out.pb.gz && go tool pprof -top out.pb.gz")]
pub struct FlameExportArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// Which case of the run, by its number; the first that was profiled where left out
    #[arg(long, value_name = "CASE")]
    pub case: Option<u32>,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: FlameExportFormat,
    /// Where to write it; stdout where left out
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// What `perflab flame export` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum FlameExportFormat {
    /// folded text
    Folded,
    /// speedscope's JSON
    Speedscope,
    /// the Firefox Profiler's JSON
    Firefox,
    /// pprof's protobuf
    Pprof,
}
