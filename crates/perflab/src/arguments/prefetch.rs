//! `perflab prefetch`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `perflab prefetch`
#[derive(Debug, Args)]
pub struct PrefetchArgs {
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
    Learn(LearnArgs),
    /// Read ahead what a program will read, and run it
    Replay(ReplayArgs),
    /// Show what is remembered: all programs, or the files of one
    Show(PrefetchShowArgs),
    /// Bring together on the disk what a program reads (ext4)
    Relayout(RelayoutArgs),
    /// Forget programs
    Forget(ForgetArgs),
    /// Do all of this for every program, by itself (as root)
    Daemon(Box<DaemonArgs>),
    /// Ask the daemon what it does, and what each program gains
    Status(PrefetchStatusArgs),
}

/// `perflab prefetch learn`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab prefetch learn --cold -- python3 -c 'import json'
  perflab prefetch replay -- python3 -c 'import json'
  perflab prefetch learn --cold -- python3 report.py
  perflab prefetch learn --cold --name shell-report -- sh -c './fetch && ./report'

Two scripts of one interpreter are remembered as two: under the script's name, where it is the
first word behind the interpreter that is no option. What `-c` or `-m` names has no file: --name
tells such commands apart, here and for `replay`.

--fine pays where each byte costs: on slow flash, and on a disk that turns once `perflab prefetch
relayout` has brought together what is read.

As root every page is traced as it comes, with the file systems' own blocks. Without, what is in
memory of your own files afterwards is taken for what was read: pages that others brought count
too. The latest three starts are remembered; `replay --policy` says how they become one.")]
pub struct LearnArgs {
    /// Drop the page cache, names and inodes first (as root): only what is read can be learnt
    #[arg(long)]
    pub cold: bool,
    /// Have the kernel bring each page that is touched on the program's disk alone meanwhile, in place of 128 KiB or more
    /// around it (as root): what is only read along is not remembered. The start takes longer, once
    #[arg(long)]
    pub fine: bool,
    /// How long a start is traced; the program runs on
    #[arg(long = "for", value_name = "TIME", default_value = "15s")]
    pub duration: String,
    /// Under which name it is remembered (default: the script's where the program is an interpreter that is given one, else
    /// the program's)
    #[arg(long, value_name = "NAME")]
    pub name: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// When files are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum ReplayModeName {
    /// everything before the program starts
    Sync,
    /// beside the program
    Async,
    /// metadata before it starts, the rest beside it
    #[default]
    Staged,
}

/// The order of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReadOrderName {
    /// as the program needs them, in stretches of the disk
    Need,
    /// as files lie on the disk
    Block,
    /// by their numbers
    Inode,
    /// as the program asked for them
    Access,
}

/// How several starts become one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum TracePolicyName {
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
pub struct ReplayArgs {
    /// When files are read
    #[arg(long, value_enum, default_value_t)]
    pub mode: ReplayModeName,
    /// In which order (default: block where the program waits for all of it, else need)
    #[arg(long, value_enum)]
    pub order: Option<ReadOrderName>,
    /// Which of the remembered starts
    #[arg(long, value_enum, default_value_t)]
    pub policy: TracePolicyName,
    /// Read at most this much (default: half of the memory that is available)
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Read at most this much a second
    #[arg(long, value_name = "SIZE")]
    pub io: Option<String>,
    /// Read ahead, and start nothing
    #[arg(long)]
    pub no_start: bool,
    /// Under which name it is remembered (default: the script's where the program is an interpreter that is given one, else
    /// the program's)
    #[arg(long, value_name = "NAME")]
    pub name: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `perflab prefetch show`
#[derive(Debug, Args)]
pub struct PrefetchShowArgs {
    /// The program, the script, or the name that it is remembered under; all where left out
    pub program: Option<OsString>,
    /// Which of the remembered starts
    #[arg(long, value_enum, default_value_t)]
    pub policy: TracePolicyName,
}

/// `perflab prefetch relayout`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab prefetch learn --cold --fine -- python3 -c 'import json'
  perflab prefetch relayout python3
  perflab prefetch relayout python3 --apply

For disks that turn: what a start reads is put into free room in the order in which it is needed,
so that the arm goes over it in one sweep. Without --apply nothing is moved, and it is shown in
how many stretches it lies now. No file's bytes or times change: the file system exchanges blocks,
journaled, as e4defrag has it do (EXT4_IOC_MOVE_EXT); if it is interrupted, what was moved is
moved and the rest stays. It works on ext4, for files that you may write, and leaves programs that
run alone. Learn again afterwards: the file system's own blocks are others then. What is updated
or installed later lies where it falls.")]
pub struct RelayoutArgs {
    /// The program
    pub program: OsString,
    /// Which of the remembered starts
    #[arg(long, value_enum, default_value_t)]
    pub policy: TracePolicyName,
    /// Only what lies on the file system of this mount point
    #[arg(long, value_name = "MOUNT")]
    pub on: Option<PathBuf>,
    /// Do it
    #[arg(long)]
    pub apply: bool,
}

/// `perflab prefetch forget`
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// The programs
    #[arg(required = true, value_name = "PROGRAM")]
    pub programs: Vec<OsString>,
}

/// `perflab prefetch-guard`
#[derive(Debug, Args)]
pub struct PrefetchGuardArgs {
    /// The daemon's process
    pub daemon: u32,
}

/// `perflab prefetch daemon`
#[derive(Debug, Args)]
#[command(after_long_help = "\
A program's first start is only watched: what it and its children waited for disks, where the
kernel accounts for that (sysctl kernel.task_delayacct=1), else what they read and how often they
faulted. Where that was worth it, the second start is traced; from the third on its trace is read
ahead while its exec waits, but never longer than --bound. Whatever goes wrong, the program is
started. `perflab prefetch status` says where each program stands, and why.

Examples:
  perflab prefetch daemon --on / --never /usr/bin/make
  perflab prefetch daemon --print-unit > /etc/systemd/system/perflab-prefetch.service
  perflab prefetch status

It needs CAP_SYS_ADMIN (to be asked before an exec, and to trace), CAP_DAC_READ_SEARCH (names of
what was traced), CAP_NET_ADMIN (what processes waited for), CAP_SETUID and CAP_SETGID (to open
files as who starts the program, and never one that they could not open). A list (--list) has a
line for each program or folder, `only PATH` or `never PATH`.")]
pub struct DaemonArgs {
    /// Watch the file system of this mount point (default: those of all disks); may be given again
    #[arg(long, value_name = "MOUNT")]
    pub on: Vec<PathBuf>,
    /// Only this program, or those below this folder; may be given again
    #[arg(long, value_name = "PATH")]
    pub only: Vec<PathBuf>,
    /// Never this program, or those below this folder; may be given again
    #[arg(long, value_name = "PATH")]
    pub never: Vec<PathBuf>,
    /// A file with more of both, read again when it changes
    #[arg(long, value_name = "FILE")]
    pub list: Option<PathBuf>,
    /// A start that waits so long for disks is worth learning
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub worth_wait: String,
    /// Where waiting is not accounted for: one that reads so much
    #[arg(long, value_name = "SIZE", default_value = "4MiB")]
    pub worth_read: String,
    /// Or one with so many major page faults
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    pub worth_faults: u64,
    /// How long a start is watched or traced
    #[arg(long = "for", value_name = "TIME", default_value = "15s")]
    pub duration: String,
    /// An exec waits no longer than this for its tracing to begin, or its files to be read ahead
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub bound: String,
    /// And no longer than this for a new program to be looked at
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    pub decide: String,
    /// When files are read
    #[arg(long, value_enum, default_value_t)]
    pub mode: ReplayModeName,
    /// In which order (default: block where the program waits for all of it, else need)
    #[arg(long, value_enum)]
    pub order: Option<ReadOrderName>,
    /// Which of the remembered starts
    #[arg(long, value_enum, default_value_t = TracePolicyName::Union)]
    pub policy: TracePolicyName,
    /// Read at most this much for one start (default: half of the memory that is available)
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Read at most this much a second for one start
    #[arg(long, value_name = "SIZE")]
    pub io: Option<String>,
    /// Where it can be asked
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,
    /// Print a unit for systemd, and do nothing else
    #[arg(long)]
    pub print_unit: bool,
}

/// Where the daemon can be asked.
const SOCKET: &str = "/run/perflab/prefetch.socket";

/// `perflab prefetch status`
#[derive(Debug, Args)]
pub struct PrefetchStatusArgs {
    /// All programs, not only the twenty with the most read ahead, and the most starts (JSON always has all)
    #[arg(long)]
    pub all: bool,
    /// Where the daemon can be asked
    #[arg(long, value_name = "PATH", default_value = SOCKET)]
    pub socket: PathBuf,
}
