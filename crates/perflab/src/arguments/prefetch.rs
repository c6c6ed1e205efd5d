//! `perflab prefetch`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `perflab prefetch`
#[derive(Debug, Args)]
pub struct Prefetch {
    /// Where traces lie ($PERFLAB_PREFETCH; else /var/lib/perflab/prefetch for root, below $XDG_STATE_HOME for others)
    #[arg(long, global = true, value_name = "DIR")]
    pub store: Option<PathBuf>,
    #[command(subcommand)]
    pub verb: PrefetchVerb,
}

/// The verbs of reading ahead.
#[derive(Debug, Subcommand)]
pub enum PrefetchVerb {
    /// Run a program, and remember what it reads
    Learn(Learn),
    /// Read ahead what a program will read, and run it
    Replay(Replay),
    /// Show what is remembered: all programs, or the files of one
    Show(Show),
    /// Forget programs
    Forget(Forget),
}

/// `perflab prefetch learn`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab prefetch learn --cold -- python3 -c 'import json'
  perflab prefetch replay -- python3 -c 'import json'

As root every page is traced as it comes, with the file systems' own blocks. Without, what is in memory of
your own files afterwards is taken for what was read: pages that others brought count too.
The latest three starts are remembered; `replay --policy` says how they become one.")]
pub struct Learn {
    /// Drop the page cache, names and inodes first (as root): only what is read can be learnt
    #[arg(long)]
    pub cold: bool,
    /// How long a start is traced; the program runs on
    #[arg(long = "for", value_name = "TIME", default_value = "15s")]
    pub duration: String,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// When files are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// everything before the program starts
    Sync,
    /// beside the program
    Async,
    /// metadata and what is needed first before it starts, the rest beside it
    #[default]
    Staged,
}

/// The order of reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum OrderName {
    /// as files lie on the disk
    #[default]
    Block,
    /// by their numbers
    Inode,
    /// as the program asked for them
    Access,
}

/// How several starts become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// the latest alone
    #[default]
    Last,
    /// what all of them read
    Intersection,
    /// what any of them read
    Union,
}

/// `perflab prefetch replay`
#[derive(Debug, Args)]
pub struct Replay {
    /// When files are read
    #[arg(long, value_enum, default_value_t)]
    pub mode: Mode,
    /// In which order
    #[arg(long, value_enum, default_value_t)]
    pub order: OrderName,
    /// Which of the remembered starts
    #[arg(long, value_enum, default_value_t)]
    pub policy: PolicyName,
    /// Read at most this much (default: half of the memory that is available)
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Read at most this much a second
    #[arg(long, value_name = "SIZE")]
    pub io: Option<String>,
    /// Read ahead, and start nothing
    #[arg(long)]
    pub no_start: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `perflab prefetch show`
#[derive(Debug, Args)]
pub struct Show {
    /// The program; all where left out
    pub program: Option<OsString>,
    /// Which of the remembered starts
    #[arg(long, value_enum, default_value_t)]
    pub policy: PolicyName,
}

/// `perflab prefetch forget`
#[derive(Debug, Args)]
pub struct Forget {
    /// The programs
    #[arg(required = true, value_name = "PROGRAM")]
    pub programs: Vec<OsString>,
}
