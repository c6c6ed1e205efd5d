//! Options of the slab instrument's verbs whose work stands in files of their own, and the sizes of what they print.

use clap::{Args, ValueEnum};
use perflab_analyze::slab::CacheOrder;
use perflab_model::Nanos;
use perflab_present::comparison::OutputFormat;
use perflab_present::slab as present;

use crate::app::{self, App};
use crate::output_path::OutputPath;

/// What root adds; printed where it is missing.
pub(crate) const WITHOUT_ROOT: &str = "\
without root, only totals are recorded (Slab, SReclaimable and SUnreclaim of /proc/meminfo, /proc/vmstat).
As root, perflab also records: every cache's objects, slabs and bytes (/proc/slabinfo, mode 0400), and object
sizes, alignment, merged names and exact counts (/sys/kernel/slab). Efficiency, waste and growth of each cache
need them: `sudo perflab slab record …`";

/// Rows that people read; programs get all.
pub(crate) const ROWS: usize = 24;

/// Bars of a picture of caches, where no other number is requested.
pub(crate) const CACHE_BARS: usize = 15;

/// Whose numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum NotebookMethod {
    /// exact ratios of sums
    #[default]
    Exact,
    /// those of the 2019 notebook beside ours, and why they differ
    Notebook,
}

/// `perflab slab show`
#[derive(Debug, Args)]
pub struct SlabShowArgs {
    /// The run
    #[arg(default_value = "@latest")]
    pub run: String,
    /// Which caches come first (default: wasted; with --method notebook: unweighted)
    #[arg(long, value_name = "ORDER", value_parser = app::named_parser::<CacheOrder>())]
    pub by: Option<CacheOrder>,
    /// How many caches (default: 20; with --method notebook: 30; in a picture: 15)
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Which numbers
    #[arg(long, value_enum, default_value_t)]
    pub method: NotebookMethod,
    /// Show every column, however narrow the terminal
    #[arg(long)]
    pub wide: bool,
    /// Draw it into FILE.svg or FILE.png, or as SVG on standard output (-)
    #[arg(short, long, alias = "plot", value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
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
    /// Show the growth of each cache (baseline, peak, retained, slope) in place of ticks
    #[arg(long)]
    pub growth: bool,
    /// What to draw (default: bytes)
    #[arg(long, value_enum, requires = "output", conflicts_with = "growth")]
    pub picture: Option<SlabSceneKind>,
    /// With --growth: show every column, however narrow the terminal
    #[arg(long, requires = "growth")]
    pub wide: bool,
    /// Which numbers
    #[arg(long, value_enum, default_value_t)]
    pub method: NotebookMethod,
    /// Draw it into FILE.svg or FILE.png, or as SVG on standard output (-)
    #[arg(short, long, alias = "plot", value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
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
    /// How many bars (default: 20)
    #[arg(long, value_name = "N")]
    pub bins: Option<usize>,
    /// With --method notebook: which of its two histograms (default: tool)
    #[arg(long, value_enum)]
    pub of: Option<NotebookSource>,
    /// Which numbers
    #[arg(long, value_enum, default_value_t)]
    pub method: NotebookMethod,
    /// Draw it into FILE.svg or FILE.png, or as SVG on standard output (-)
    #[arg(short, long, alias = "plot", value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// `perflab slab top`
#[derive(Debug, Args)]
pub struct SlabTopArgs {
    /// Time between readings
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub every: Nanos,
    /// Which caches come first
    #[arg(long, value_name = "ORDER", value_parser = app::named_parser::<CacheOrder>(), default_value = "bytes")]
    pub by: CacheOrder,
    /// Take one snapshot and draw it into FILE.svg or FILE.png, or as SVG on standard output (-)
    #[arg(short, long, alias = "plot", value_name = "FILE", value_parser = OutputPath::parser())]
    pub output: Option<OutputPath>,
}

/// What eighty columns have room for, unless the terminal has more or all is requested; programs get everything.
pub fn grid_width(context: &App, is_all_wanted: bool) -> present::GridWidth {
    let has_room = context.width.is_some_and(|columns| columns >= 150);
    if is_all_wanted || has_room || context.format != OutputFormat::Table {
        present::GridWidth::Wide
    } else {
        present::GridWidth::Narrow
    }
}
