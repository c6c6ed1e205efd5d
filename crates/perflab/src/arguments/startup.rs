//! `perflab startup`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `perflab startup`
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  perflab startup --prefetch none,sync,async,staged -- python3 -c 'import json'
  perflab startup --caches 3,1,warm --iterations 7 -- git --version
  perflab startup --prefetch none,reader --reader 'vmtouch -qt /usr/lib/git-core' -- git --version
  perflab startup --ready-when listen:6379 -- redis-server
  perflab startup --ready-when window:640x480 -- soffice --nologo --writer

Each mode is started --warmup times first, which does not count: the first start learns, the second
shows what was learnt to the disk's own cache. The others are in random order, one of each mode
after the other (complete blocks), so that drift cannot pose as a gain. Dropping caches needs
root; what is in memory then of the files that a start reads is looked at, and said with the worst
of them. As root each start has a control group of its own (cgroup2), of which the kernel tells
its CPU time and by which all of it is ended; and the kernel counts waiting for disks meanwhile
(kernel.task_delayacct), and is put back afterwards.

Another maker's reading ahead is a mode, too: `reader` runs what --reader says (by sh) before the
program starts, and its time counts.

--ready-when says when the program counts as started; what still runs of it is ended then:
  exit          it has ended, well
  line[:TEXT]   it has printed a line (with TEXT)
  file:PATH     this file was made or written
  notify        it has said READY=1, as services tell systemd
  listen:PORT   something accepts connections there; listen:PATH: at a socket of this path
  window        it has a window under X11 of at least 300x200 pixels that is no splash screen;
                window:WxH of that size, window:CLASS of that class (DISPLAY names the server)")]
pub struct StartupArgs {
    /// What is in memory at the start: 3 nothing, 1 names and inodes, warm everything
    #[arg(long, value_enum, value_delimiter = ',', default_value = "3")]
    pub caches: Vec<CacheStateName>,
    /// Prefetch modes, the first of which is the baseline
    #[arg(long, value_enum, value_delimiter = ',', default_value = "none")]
    pub prefetch: Vec<PrefetchModeName>,
    /// What reads ahead where --prefetch says `reader`: a command of another maker's
    #[arg(long, value_name = "COMMAND")]
    pub reader: Option<String>,
    /// Learn finely what is read ahead, as `prefetch learn --fine` does
    #[arg(long)]
    pub fine: bool,
    /// How often each mode is measured
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub iterations: u32,
    /// How often each mode is started before without being measured
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub warmup: u32,
    /// When it counts as started
    #[arg(long, value_name = "CONDITION", default_value = "exit")]
    pub ready_when: String,
    /// How long a start may take
    #[arg(long, value_name = "TIME", default_value = "120s")]
    pub limit: String,
    /// A name for the run
    #[arg(long)]
    pub label: Option<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What is in memory at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CacheStateName {
    /// nothing
    #[value(name = "3")]
    All,
    /// names and inodes, no pages
    #[value(name = "1")]
    Pages,
    /// everything that its trace knows; where there is none, what the start before left
    Warm,
}

/// Prefetch modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PrefetchModeName {
    /// nothing is
    None,
    /// everything before the program starts
    Sync,
    /// beside the program
    Async,
    /// metadata before it starts, the rest beside it
    Staged,
    /// what --reader says is run before it starts
    Reader,
}

/// One start, measured: what `perflab startup` and the catalogue's workload call.
#[derive(Debug, Args)]
pub struct StartOnceArgs {
    /// What is in memory at the start
    #[arg(long, value_enum)]
    pub caches: CacheStateName,
    /// How it is read ahead
    #[arg(long, value_enum)]
    pub prefetch: PrefetchModeName,
    /// What reads ahead where that is `reader`
    #[arg(long, required_if_eq("prefetch", "reader"))]
    pub reader: Option<String>,
    /// When it counts as started
    #[arg(long)]
    pub ready_when: String,
    /// How long it may take
    #[arg(long)]
    pub limit: String,
    /// Where traces lie
    #[arg(long)]
    pub store: Option<PathBuf>,
    /// Trace it and remember what it read, unless that is known
    #[arg(long)]
    pub learn: bool,
    /// When it is learnt: finely, as `prefetch learn --fine` does
    #[arg(long, requires = "learn")]
    pub fine: bool,
    /// When it is learnt: bring together on the disk what it reads, and learn again
    #[arg(long, requires = "learn")]
    pub relayout: bool,
    /// Start it on this disk: in a root directory whose packages are copied there
    #[arg(long, value_name = "DIR", requires = "package")]
    pub inside: Option<PathBuf>,
    /// What is copied there: a package, with everything that it needs
    #[arg(long, value_delimiter = ',')]
    pub package: Vec<String>,
    /// The program and its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}
