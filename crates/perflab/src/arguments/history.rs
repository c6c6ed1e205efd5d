//! The arguments of `perflab history|guard|plan|noise`.

use clap::Args;

use crate::output_path::OutputPath;

/// Which runs and metrics a history is made of.
#[derive(Debug, Args)]
pub struct HistorySelection {
    /// Only these metrics
    #[arg(value_name = "METRIC")]
    pub metric: Vec<String>,
    /// Only this workload (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub workload: Vec<String>,
    /// Only runs with this label
    #[arg(long)]
    pub label: Option<String>,
    /// Only runs of this study: its title or file name, as `perflab list` shows it
    #[arg(long, value_name = "STUDY")]
    pub study: Option<String>,
    /// Only the latest N runs
    #[arg(long, value_name = "N")]
    pub last: Option<usize>,
    /// The relative change that matters, where a study gives none for the metric
    #[arg(long, default_value = "3%", value_name = "PERCENT")]
    pub margin: String,
    /// Write one HTML file with the newest run and the history
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub report: Option<OutputPath>,
}

/// `perflab history`
#[derive(Debug, Args)]
#[command(after_long_help = HISTORY)]
pub struct HistoryArgs {
    #[command(flatten)]
    pub of: HistorySelection,
    /// Draw the first series into a file (.svg or .png)
    #[arg(long, value_name = "FILE", value_parser = OutputPath::parser())]
    pub plot: Option<OutputPath>,
}

const HISTORY: &str = "\
One value a run: the median of its boots' medians. Steps are found by E-divisive (energy distance
with permutations, 5 % false alarms a series), never between fewer than three runs on either side.
Each step has its size with an interval, the last good and the first bad run, and the facts that
differ. A case whose command, parameters or definition were edited begins a series of its own.

Examples:
  perflab history                        the steps of every metric in the archive
  perflab history time --plot time.svg   one metric, run by run, and a picture
  perflab history --label nightly --last 100 --report history.html";

/// `perflab guard`
#[derive(Debug, Args)]
#[command(after_long_help = GUARD)]
pub struct GuardArgs {
    #[command(flatten)]
    pub of: HistorySelection,
}

const GUARD: &str = "\
Compares the newest run with its history and exits with 5 where a metric got worse: it falls out
of the prediction interval of the runs since the last step (corrected for the number of metrics),
or a step for the worse lies among the last ten runs; and the change is beyond the margin. An
alarm is a reason to measure both runs again, side by side. Where no metric that decides could be
judged (a history too short, a study edited since, a run of another study) it exits with 7.

Examples:
  perflab guard
  perflab guard --study nightly.toml
  perflab guard time --label nightly --margin 2% --report guard.html";

/// `perflab plan`
#[derive(Debug, Args)]
#[command(after_long_help = PLAN)]
pub struct SampleSizeArgs {
    /// Earlier runs: their noise is taken for that of the next ones
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<String>,
    /// Half the width of the interval that is wanted
    #[arg(long, value_name = "PERCENT", conflicts_with_all = ["detect", "decide"])]
    pub precision: Option<String>,
    /// A real change of this size is to be found in 80 % of experiments
    #[arg(long, value_name = "PERCENT", conflicts_with = "decide")]
    pub detect: Option<String>,
    /// Changed or the same within this margin: a verdict either way in 80 % of experiments
    #[arg(long, value_name = "PERCENT")]
    pub decide: Option<String>,
    /// What a boot costs besides its iterations
    #[arg(long, default_value = "60s", value_name = "TIME")]
    pub boot_cost: String,
    /// Iterations in each boot, instead of the cheapest number
    #[arg(long, value_name = "N")]
    pub iterations: Option<usize>,
    /// Only this metric (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub metric: Vec<String>,
}

const PLAN: &str = "\
Runs that share a label, or are named together, are repetitions of one another; runs with
different boot ids are different boots. From one boot the noise between boots is unknown: then
only iterations are planned, for comparisons within that boot.

Examples:
  perflab plan before --precision 1%
  perflab plan before --detect 2% --boot-cost 5min";

/// `perflab noise`
#[derive(Debug, Args)]
#[command(after_long_help = NOISE)]
pub struct NoiseArgs {
    /// A study file, or the name of a shipped study: its first levels are measured
    #[arg(default_value = "quickstart")]
    pub study: String,
    /// Iterations under each label
    #[arg(long, default_value_t = 20, value_name = "N")]
    pub iterations: u32,
    /// Only this workload of the study
    #[arg(long, value_name = "WORKLOAD")]
    pub only: Option<String>,
    /// Seed of the random order
    #[arg(long)]
    pub seed: Option<u64>,
    /// Show the stored card and measure nothing
    #[arg(long)]
    pub show: bool,
}

const NOISE: &str = "\
Runs one and the same variant under two labels, interleaved. Nothing changed, so whatever differs
is this machine's noise: the card keeps how large it is, what change it could find, and how often
the rules would raise a false alarm. Later comparisons on this machine use the card, and say so
when it is old.";
