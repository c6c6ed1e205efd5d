//! `perflab slab`

use std::ffi::OsString;

use clap::{Args, Subcommand, ValueEnum};

use super::ImportArgs;
use crate::output_path::OutputPath;

/// `perflab slab`
#[derive(Debug, Args)]
pub struct SlabArgs {
    #[command(subcommand)]
    pub verb: SlabVerb,
}

/// The verbs of the slab instrument.
#[derive(Debug, Subcommand)]
pub enum SlabVerb {
    /// Record the slab caches while a command runs, for a time, or until ^C
    Record(SlabRecordArgs),
    /// Show where slab memory goes: totals, and the worst caches
    Show(SlabShowArgs),
    /// Show bytes and efficiency over time, phases and growth
    Timeline(SlabTimelineArgs),
    /// Show how many caches, and how many bytes, have which efficiency
    Histogram(SlabHistogramArgs),
    /// Compare the slab memory of runs, cache by cache
    Compare(SlabCompareArgs),
    /// Watch the slab caches live, full-screen (one snapshot where stdout is no terminal)
    Top(SlabTopArgs),
    /// Take other tools' slab logs into the archive: lkp-tests, /proc/slabinfo dumps, sysfs trees
    Import(ImportArgs),
    /// Say how many bytes a cache would take at another order or object size
    WhatIf(WhatIfArgs),
}

/// `perflab slab record`
#[derive(Debug, Args)]
pub struct SlabRecordArgs {
    /// Time between readings of /proc/slabinfo
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub every: String,
    /// Record for this long; with a command, stop it after this long
    #[arg(long = "for", value_name = "TIME")]
    pub duration: Option<String>,
    /// Watch the system at rest for this long before and after the command
    #[arg(long, value_name = "TIME", default_value = "1s", requires = "command")]
    pub quiet_time: String,
    /// A name for the run; runs that share one are repetitions of one another
    #[arg(long)]
    pub label: Option<String>,
    /// Draw the bytes of the largest caches over time into FILE.svg or FILE.png
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub plot: Option<OutputPath>,
    /// Every column, however narrow the terminal
    #[arg(long)]
    pub wide: bool,
    /// What to run meanwhile; without it, record until ^C or for the time of --for
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// Whose numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum NotebookMethod {
    /// exact ratios of sums
    #[default]
    Exact,
    /// those of the 2019 notebook, beside ours, and why they differ
    Notebook,
}

/// How worst caches are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum CacheOrderName {
    /// most bytes wasted first
    #[default]
    Wasted,
    /// lowest efficiency first, integrated over time
    Efficiency,
    /// lowest mean of the ticks' efficiencies first, each tick alike
    Unweighted,
    /// most slab bytes first
    Bytes,
    /// by name
    Name,
}

/// `perflab slab show`
#[derive(Debug, Args)]
pub struct SlabShowArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// Which caches come first: `wasted`, or with --method notebook its own order, which is `unweighted`
    #[arg(long, value_enum)]
    pub by: Option<CacheOrderName>,
    /// How many caches; left out, 20, with --method notebook 30, and 15 in a picture
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Whose numbers
    #[arg(long, value_enum, default_value_t)]
    pub method: NotebookMethod,
    /// Every column, however narrow the terminal
    #[arg(long)]
    pub wide: bool,
    /// Draw it into FILE.svg or FILE.png
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub plot: Option<OutputPath>,
}

/// `perflab slab timeline`
#[derive(Debug, Args)]
pub struct SlabTimelineArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// Only this cache (any of its names)
    #[arg(long, value_name = "NAME")]
    pub cache: Option<String>,
    /// Growth by cache (baseline, peak, retained, slope) instead of ticks
    #[arg(long)]
    pub growth: bool,
    /// What to draw; slab bytes where left out
    #[arg(long, value_enum, requires = "plot", conflicts_with = "growth")]
    pub picture: Option<SlabSceneKind>,
    /// With --growth: every column, however narrow the terminal
    #[arg(long, requires = "growth")]
    pub wide: bool,
    /// Whose numbers
    #[arg(long, value_enum, default_value_t)]
    pub method: NotebookMethod,
    /// Draw it into FILE.svg or FILE.png
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub plot: Option<OutputPath>,
}

/// The pictures of a timeline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum SlabSceneKind {
    /// slab bytes, stacked by cache
    #[default]
    Bytes,
    /// waste, stacked by kind
    Waste,
    /// overall efficiency, packing, alignment and occupancy
    Efficiency,
}

/// What the notebook's histograms are made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum NotebookSource {
    /// what the kernel's slabinfo tool printed (its first picture)
    #[default]
    Tool,
    /// /proc/slabinfo (its last picture)
    Proc,
}

/// `perflab slab histogram`
#[derive(Debug, Args)]
pub struct SlabHistogramArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// How many bars
    #[arg(long, value_name = "N")]
    pub bins: Option<usize>,
    /// With --method notebook: which of its two histograms; the tool's where left out
    #[arg(long, value_enum)]
    pub of: Option<NotebookSource>,
    /// Whose numbers
    #[arg(long, value_enum, default_value_t)]
    pub method: NotebookMethod,
    /// Draw it into FILE.svg or FILE.png
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub plot: Option<OutputPath>,
}

/// `perflab slab compare`
#[derive(Debug, Args)]
pub struct SlabCompareArgs {
    /// The baseline, then the candidate (a run, or a label whose runs are repetitions); with --by, one run
    #[arg(required = true, num_args = 1..=2, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Compare the levels of this factor within the run, the first level being the baseline
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    /// Exit with 5 where this is found: `worse`, `worse:2%` (more bytes by more than 2 %), `unclear`
    #[arg(long, value_name = "VERDICT[:CHANGE]")]
    pub fail_if: Option<String>,
    /// Every cache, those without a change too
    #[arg(long)]
    pub all: bool,
    /// Draw it into FILE.svg or FILE.png
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub plot: Option<OutputPath>,
}

/// `perflab slab top`
#[derive(Debug, Args)]
pub struct SlabTopArgs {
    /// Time between readings
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub every: String,
    /// Which caches come first
    #[arg(long, value_enum, default_value_t = CacheOrderName::Bytes)]
    pub by: CacheOrderName,
    /// Take one snapshot and draw it into FILE.svg or FILE.png
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub plot: Option<OutputPath>,
}

/// `perflab slab what-if`
#[derive(Debug, Args)]
pub struct WhatIfArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// Only this cache (any of its names)
    #[arg(long, value_name = "NAME")]
    pub cache: Option<String>,
    /// At this order (log2 of the pages of a slab)
    #[arg(long, value_name = "N")]
    pub order: Option<u32>,
    /// At this object size in bytes, as it is asked for, without padding; needs --cache
    #[arg(long, value_name = "BYTES", requires = "cache")]
    pub object_size: Option<u64>,
    /// How many layouts of all caches, those that save most first
    #[arg(long, default_value_t = 20, value_name = "N", conflicts_with = "cache")]
    pub top: usize,
}
