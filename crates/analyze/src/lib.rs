//! What is asked here and which module answers; how a verdict comes about.
//!
//! What runs mean: comparisons, verdicts and warnings.
//!
//! This crate takes runs as values of `perflab-model`, lines up what can be compared, asks `perflab-stats` for
//! the numbers and turns them into verdicts, flags and warnings with advice. It refuses files, terminals and
//! formulas: runs are read by the archive, shown by `present`, and every statistic is computed by `stats`.
//!
//! | module | the user's noun |
//! |---|---|
//! | [`mod@compare`] | one run against others, or one level of a factor against the others |
//! | [`gated_comparison`] | the answer: rows, and everything needed to print or store it |
//! | [`warning`] | what to be careful about, and what to do |
//! | [`gate`] | `--fail-if worse:2%` |
//! | [`interaction`] | two factors at once: effects and their interaction |
//! | [`benchstat`], [`lkp`] | the tables that those tools print |
//! | [`mmtests`] | the tables that MMTests prints for the same data |
//! | [`monitor`] | a monitor's series by iteration, to be compared like a metric |
//! | [`noise_card`] | what this machine shows where nothing changed |
//! | [`recap_comparison`] | all rows together: gains and their geometric mean |
//! | [`statistic`] | numbers about one side, by name |
//! | [`mod@ahead`] | how many boots and iterations a wanted precision costs |
//! | [`mod@history`] | a metric over the runs of an archive: steps, and the newest run |
//! | [`request_end`] | whether a sample is as precise as a study wants it |
//! | [`environment_diagnostic`] | facts that are not the same on both sides |
//! | [`flame`] | call trees of profiles, and the functions in them |
//! | [`together`] | targets in step: one value an iteration, how even, how far apart they began |
//! | [`io`] | what a program read and needed, and what a prefetch trace has of it |
//! | [`slab`] | where the memory of kernel objects goes |
//! | [`trace`] | which operations of a program were slow, and why |
//!
//! How a verdict comes about, in this order:
//!
//! 1. **same**: the interval at twice the error (90 % for a confidence of 95 %) lies inside ± the margin.
//! 2. **better**, **worse**: the interval at the confidence excludes "no change", and the Benjamini-Hochberg q
//!    of the family is below the error (5 %). Primary metrics are one family, explanatory metrics another.
//! 3. **unclear**: neither; the row says about how many repetitions a side would decide.
//!
//! Sides of one boot each, where the boots differ, never get more than *unclear*: the luck of a boot looks like
//! a change. The only exception are values that are exactly equal on both sides.
//!
//! ```no_run
//! # fn show(baseline: perflab_model::RunRecord, candidate: perflab_model::RunRecord) -> Result<(), Box<dyn std::error::Error>> {
//! use perflab_analyze::{Gate, Options, Side, compare};
//!
//! let before = Side { name: "before".into(), runs: vec![baseline] };
//! let after = Side { name: "after".into(), runs: vec![candidate] };
//! let comparison = compare(&before, &[after], &Options::default())?;
//! let gate: Gate = "worse:2%".parse()?;
//! for row in comparison.violations(&gate) {
//!     println!("{}: {} is {}", row.subject, row.metric, row.word());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! What a program read, which of it it needed, and where that lies: by file, by directory, over time, over the disk; and how
//! much of it a prefetch trace would have brought. Refuses to look at the system: a recording says it all.

pub mod benchstat;
mod block_owner;
#[cfg(test)]
#[path = "../tests/it/build.rs"]
#[expect(dead_code, reason = "not every test varies factors")]
mod build;
pub mod compare;
mod error;
pub mod fairness;
pub mod flame;
mod guard;
pub mod history;
pub mod interaction;
mod io_coverage;
mod io_published;
mod io_stacked;
mod io_use;
pub mod lkp;
pub mod mmtests;
mod mmtests_benchmarks;
pub mod monitor_metric;
pub mod operations;
pub mod sample_size;
pub mod slab;
pub mod startup;
mod startup_2007;
pub mod statistic;
pub mod stopping_rule;

pub use compare::comparison::{
    ChangeInterval, ChangeScale, ComparedRun, Comparison, EstimationMethod, MetricChange, RepetitionLevel,
    SamplePoint, SampleValues, SideSummary, Verdict, VerdictRow,
};
pub use compare::diagnostic::{ComparisonDiagnostic, RowFlag};
pub use compare::gate::Gate;
pub use compare::noise_card::NoiseCard;
pub use compare::options::{AnalysisOptions, ComparisonSide};
pub use compare::pipeline::{compare_levels, compare_sides};
pub use compare::recap::{ComparisonRecap, recap_comparison};
pub use compare::run_differences::{FactDifference, PlanDifference, run_differences};
pub use error::AnalyzeError;
pub use fairness::{
    TargetFairness, average_over_targets, case_fairness, clock_bounds, median, start_skew, target_fairness,
};
pub use guard::{AlarmReason, FEWEST_HISTORY_RUNS, GuardReport, GuardRow, check_newest_run};
pub use history::{MetricHistories, metric_histories};
pub use interaction::{InteractionTable, estimate_interactions};
pub use io_coverage::{
    BLOCK_STATUSES, BlockRead, BlockStatus, DiskReadBytes, TraceContents, TraceCoverage, trace_coverage,
};
pub use io_published::{PublishedCoverage, PublishedCoverageError, PublishedDifference, published_coverage};
pub use io_stacked::remove_stacked_requests;
pub use io_use::{
    DirectoryUse, DiskRegion, FileIoUse, IoInterval, reads_by_directory, reads_by_file, reads_over_disk,
    reads_over_time,
};
pub use sample_size::plan_sample_sizes;
pub use slab::notebook::{
    notebook_cache, notebook_proc_histogram, notebook_timeline, notebook_tool_histogram,
};
pub use startup_2007::{HistoricalClaim, PublishedStartup, STARTUPS_OF_2007};
pub use statistic::SampleStatistic;
