//! `perflab flame`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `perflab flame`
#[derive(Debug, Args)]
pub struct Flame {
    #[command(subcommand)]
    pub verb: FlameVerb,
}

/// The verbs of profiles.
#[derive(Debug, Subcommand)]
pub enum FlameVerb {
    /// Sample call stacks, kernel and user, while a command runs, for a time, or until ^C
    Record(Record),
    /// Take a profile into the archive that another tool recorded
    Import(Import),
    /// Show the share of each operation and category, by a table of rules: who is the allocator
    Shares(Shares),
    /// Show where the samples of a run are: functions, self and inclusive
    Show(Show),
}

/// `perflab flame record`
#[derive(Debug, Args)]
#[command(after_long_help = "\
The best event that the machine has is taken: cycles, and where no hardware counter is (as in most virtual
machines) the CPU clock, which is blind while interrupts are off. Which one it was is printed. Examples:
  perflab flame record -- hackbench -g 2
  perflab flame record --system --for 10s
  perflab flame record -F 999 -p 1234 --for 5s")]
pub struct Record {
    /// Samples a second on each CPU
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = 499)]
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
  perflab flame import out.folded --label before")]
pub struct Import {
    /// The file
    pub file: PathBuf,
    /// What it is (perf.data, perf-script, pprof, folded); guessed where left out
    #[arg(long, value_name = "FORMAT")]
    pub from: Option<String>,
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
pub struct Show {
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
Each share is printed with what it is a share of. Intervals come from repeated iterations, never from the
number of samples. Examples:
  perflab flame shares @latest
  perflab flame shares @latest --rules kernel
  perflab flame shares @latest --rules my-rules.toml --comm hackbench")]
pub struct Shares {
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
