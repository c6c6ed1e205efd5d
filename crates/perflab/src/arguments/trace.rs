//! `perflab trace`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::output_path::OutputPath;

/// `perflab trace`
#[derive(Debug, Args)]
pub struct TraceArgs {
    #[command(subcommand)]
    pub verb: TraceVerb,
}

/// The verbs of the tracing instrument.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Run a program that is linked with optrace, and keep every operation
    Run(TraceRecordArgs),
    /// Watch any program, at its functions or USDT probes, without its help
    Attach(AttachArgs),
    /// Take a trace file into the archive that a program wrote (OPTRACE_FILE names it)
    Import(TraceImportArgs),
    /// Show the slowest operations, each with what happened in it
    Show(TraceShowArgs),
    /// Say what makes the slow ones slow: causes, onsets, thresholds, prices
    Causes(CausesArgs),
    /// Draw every operation as a dot, with the times of spans, or each outlier in the colour of its cause
    Plot(OperationPlotArgs),
    /// Compare two traces, or the levels of a factor within a run
    Compare(TraceCompareArgs),
}

/// `perflab trace run`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab trace run -- perflab load drv_rand_ops 1416100 intsrt --reap old
  perflab trace run --label before -- ./my-program

The program is told where to write by the variable OPTRACE_FILE. Linked with optrace (Rust, or C
with optrace.h) it begins a trace with Trace::from_environment, or optrace_open(NULL, …).")]
pub struct TraceRecordArgs {
    /// A name for the run; runs that share one are repetitions of one another
    #[arg(long)]
    pub label: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `perflab trace attach`
#[derive(Debug, Args)]
#[command(after_long_help = "\
A place is a FUNCTION (as in the symbol table, as in the source, or its last name where only one has
it), an address 0x1234 as it was linked, or a USDT probe PROVIDER:PROBE, of the program or of a
library that it links or has mapped; FILE:PLACE names the file (a path, or libc.so.6). A function
ends where it returns unless an end is given; a USDT probe `x_begin` (`x_entry`, `x_start`) ends at
`x_end` (`x_return`, `x_done`) or at `x`, and may be filtered: PROVIDER:PROBE[arg2==\"f\" && arg3>5].
Spans nest: a span inside an operation is a cause, its time its own, without spans inside it.
Operations do not nest: give the inner one as a span.
Examples:
  perflab trace attach --list --program ./server
  perflab trace attach --operation insert --span malloc --span reap=reap_begin,reap_end -- ./tree
  perflab trace attach --operation slablist:add_begin --span slablist:reap_begin --pid 1234

Each event costs some microseconds, which is measured here and printed before: a program that can be
changed is better linked with optrace (`perflab trace run`), at some tens of nanoseconds. Every
process that runs the file pays meanwhile; only the one that was asked for is recorded. It needs
root or CAP_PERFMON.")]
pub struct AttachArgs {
    /// What an operation is (may be repeated): where it begins, and where it ends
    #[arg(long, value_name = "[NAME=]BEGIN[,END]")]
    pub operation: Vec<String>,
    /// What happens inside an operation (may be repeated): its time is a cause
    #[arg(long, value_name = "[NAME=]BEGIN[,END]")]
    pub span: Vec<String>,
    /// The file with the places, if it is not the program itself: a library of it
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Print the functions and USDT probes that there are, and do nothing else
    #[arg(long)]
    pub list: bool,
    /// Watch this process, until it ends, ^C, or for the time of --for
    #[arg(short = 'p', long, value_name = "PID", conflicts_with = "command")]
    pub pid: Option<i32>,
    /// How much slower the program may become; one that becomes slower is watched for shares of the time
    #[arg(long, value_name = "PERCENT", default_value = "50%")]
    pub max_slowdown: String,
    /// Watch for this long
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<String>,
    /// A name for the run; runs that share one are repetitions of one another
    #[arg(long)]
    pub label: Option<String>,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `perflab trace import`
#[derive(Debug, Args)]
pub struct TraceImportArgs {
    /// The file
    pub file: PathBuf,
    /// A name for the run
    #[arg(long)]
    pub label: Option<String>,
}

/// Which time of an operation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OperationClockName {
    /// time on the CPU
    Cpu,
    /// time as the caller feels it, waiting and other processes included
    Wall,
}

/// Which operations of a run.
#[derive(Debug, Args)]
pub struct OperationSelection {
    /// Which iteration, by its number in `perflab show RUN --iterations`; the first that was traced where left out
    #[arg(long, value_name = "SLOT")]
    pub slot: Option<u32>,
    /// Which kind of operation; the most frequent where left out
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,
    /// Which time counts; where left out, the wall's if threads waited for longer than they ran, else the CPU's
    #[arg(long, value_enum)]
    pub clock: Option<OperationClockName>,
    /// Outliers are above this quantile, and above ten times the spread around them
    #[arg(long, value_name = "SHARE", default_value_t = OperationSelection::ABOVE)]
    pub above: f64,
}

impl OperationSelection {
    /// The quantile above which operations are outliers where none is named.
    pub const ABOVE: f64 = 0.999;
}

/// `perflab trace show`
#[derive(Debug, Args)]
pub struct TraceShowArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    #[command(flatten)]
    pub which: OperationSelection,
    /// How many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
}

/// `perflab trace causes`
#[derive(Debug, Args)]
pub struct CausesArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    #[command(flatten)]
    pub which: OperationSelection,
}

/// How times are spread over the axis.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TimeScaleName {
    /// by their logarithm: what is small is seen too
    #[default]
    Log,
    /// as they are
    Linear,
}

/// `perflab trace plot`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples (the four pictures of the slab-list study):
  perflab trace plot old --axis linear -o 1.png
  perflab trace plot old --axis linear --with reap,reap-index -o 2.png
  perflab trace plot old --axis linear --with reap,reap-index --with allocate -o 3.png
  perflab trace plot new --axis linear --with reap,reap-index --with allocate --like old -o 4.png")]
pub struct OperationPlotArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    #[command(flatten)]
    pub which: OperationSelection,
    /// FILE.png (2160 x 1920) or FILE.svg
    #[arg(short, long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: OutputPath,
    /// How times are spread over the axis
    #[arg(long, value_enum, default_value_t)]
    pub axis: TimeScaleName,
    /// Draw the times of these spans too, in a colour of their own (may be repeated); without it, each outlier has
    /// the colour of its cause
    #[arg(long, value_name = "SPAN,…")]
    pub with: Vec<String>,
    /// The number that is the horizontal axis; left out, `elements` where operations have that, else their order
    #[arg(long, value_name = "NUMBER")]
    pub over: Option<String>,
    /// Take the vertical axis from this run
    #[arg(long, value_name = "RUN")]
    pub like: Option<String>,
}

/// `perflab trace compare`
#[derive(Debug, Args)]
pub struct TraceCompareArgs {
    /// The baseline, then the candidate; with --by, one run
    #[arg(required = true, num_args = 1..=2, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare the levels of this factor within the run, the first level being the baseline
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    #[command(flatten)]
    pub which: OperationSelection,
    /// Exit with 5 where this quantile clearly rose by more than a change: `p99.9:5%`
    #[arg(long, value_name = "QUANTILE:CHANGE")]
    pub fail_if: Option<String>,
}
