//! What runs mean: comparisons with verdicts, histories, and the analyses behind each instrument.
//!
//! This crate takes runs as values of `perflab-model`, aligns what can be compared, asks `perflab-stats` for the
//! numbers and turns them into verdicts, flags and diagnostics with advice. It opens no file and prints nothing: runs
//! are read by `perflab-archive`, results are shown by `perflab-present`, and every formula of statistics is in
//! `perflab-stats`.
//!
//! | module | what is asked |
//! |---|---|
//! | [`compare`] | what changed between runs, or between the levels of a factor? |
//! | `factorial_effect` | one effect of two factors, and what it is estimated from |
//! | [`interaction`] | what do two factors do together? |
//! | [`price`] | what does a unit of a dose cost? |
//! | [`why`] | what goes with a change, and how much of it can that carry? |
//! | [`bisection`] | which commit changed a metric, and what is measured next? |
//! | [`benchstat`], [`lkp`], [`mmtests`] | what would those tools print for the same data? |
//! | [`mod@monitor_lines`], `value_grid` | how did a monitor's column move, by run, row and level? values over two things |
//! | [`monitor_metric`], `iteration_readings` | how does a monitor's series compare, like a metric? what was read of an iteration |
//! | `derived_series` | a series with the columns that are worked out of its counters |
//! | [`mod@scaling_curves`] | how does a metric follow from a parameter, and which law fits? |
//! | [`statistic`] | one number about one sample, by name |
//! | `sample_histogram` | the lines of a picture over the same bins |
//! | [`sample_lines`] | which samples belong to which line of a picture? |
//! | [`sample_size`] | how many boots and iterations does a precision cost? |
//! | [`stopping_rule`] | are the samples so far precise enough? |
//! | [`history`] | how did a metric move over the runs of an archive, and where did it step? |
//! | `guard` | does the newest run fall out of its history? ([`check_newest_run`]) |
//! | `standing_step` | which step for the worse does the newest run still have, though it does not alarm? |
//! | `told_step` | which runs are worse for a known reason, and no measure for those after them? |
//! | `guard_failures` | do more of its iterations fail than before? ([`judge_newest_failures`]) |
//! | [`fairness`] | how evenly were targets served, and how far apart did they start? |
//! | [`flame`] | which functions took the time, and which changed? |
//! | [`operations`] | which operations of a program were slow, and why? |
//! | [`slab`] | where does the memory of kernel objects go? |
//! | `machine_activity` | what did the machine do while a command ran? |
//! | `command_times` | how long did the commands of a run take, and what did they use? |
//! | [`trigger`] | what does a flight recorder wait for, and has it happened? |
//! | `io_use` | what was read, and what of it was needed? ([`reads_by_file`]) |
//! | `io_coverage`, `io_published`, `io_stacked`, `block_owner` | which block reads does a startup trace explain? ([`trace_coverage`]) |
//! | [`startup`], `startup_2007` | how fast does an application start in each prefetch mode, and do the claims of 2007 hold? |
//!
//! How a verdict comes about, in this order:
//!
//! 1. **same**: the interval at twice the error (90 % for a confidence of 95 %) lies inside ± the margin.
//! 2. **better**, **worse**: the interval at the confidence excludes "no change", and the Benjamini-Hochberg q
//!    of the test family is below the error (5 %). Primary metrics are one family, explanatory metrics another.
//! 3. **unclear**: neither; the row says about how many repetitions a side would decide.
//!
//! Sides of one run each that were not interleaved never get more than *differs* or *same here*: the luck of a run looks like a
//! change. The mean, the tail and failures qualify what the middle says.
//!
//! ```no_run
//! # fn show(baseline: perflab_model::RunRecord, candidate: perflab_model::RunRecord) -> Result<(), Box<dyn std::error::Error>> {
//! use perflab_analyze::{AnalysisOptions, ComparisonSide, Gate, compare_sides};
//!
//! let before = ComparisonSide { name: "before".into(), runs: vec![baseline] };
//! let after = ComparisonSide { name: "after".into(), runs: vec![candidate] };
//! let comparison = compare_sides(&before, &[after], &AnalysisOptions::default())?;
//! let gate: Gate = "worse:2%".parse()?;
//! for row in comparison.violations(&gate) {
//!     println!("{}: {} is {}", row.subject, row.metric, row.verdict_word());
//! }
//! # Ok(())
//! # }
//! ```

pub mod benchstat;
pub mod bisection;
mod block_owner;
mod command_times;
pub mod compare;
pub mod counter_tracks;
mod derived_series;
pub mod design;
mod error;
mod factorial_effect;
pub mod fairness;
pub mod flame;
mod guard;
mod guard_failures;
pub mod history;
pub mod interaction;
mod interaction_failures;
mod io_coverage;
mod io_published;
mod io_stacked;
mod io_use;
mod iteration_readings;
mod kernel_log;
mod kernel_log_rows;
mod keyed_rows;
pub mod lkp;
mod machine_activity;
pub mod method_description;
pub mod mmtests;
mod mmtests_benchmarks;
pub mod mmtests_notes;
pub mod monitor_lines;
pub mod monitor_metric;
pub mod operations;
pub mod price;
mod sample_histogram;
pub mod sample_lines;
pub mod sample_size;
pub mod scaling_curves;
pub mod slab;
mod standing_step;
pub mod startup;
mod startup_2007;
pub mod statistic;
pub mod stopping_rule;
mod told_step;
pub mod trigger;
mod value_grid;
mod warm_up;
pub mod why;

pub use command_times::{CommandTimes, command_times};
pub use compare::case_condition::{CaseCondition, CaseConditionError};
pub use compare::change::{
    BetweenRuns, ChangeInterval, ChangeScale, EstimationMethod, IntervalMeaning, LayoutEffect, MetricChange,
    PooledNoise, RepetitionLevel, ShiftEstimator,
};
pub use compare::compared_part::{ComparedPart, PartComparison};
pub use compare::comparison::{
    ComparedRun, Comparison, SamplePoint, SampleValues, SideSummary, SmallChange, TailComparison, TailCount,
    Verdict, VerdictRow,
};
pub use compare::diagnostic::{ComparisonDiagnostic, RowFlag};
pub use compare::failures::{FailureComparison, FailureCount, VerdictBasis};
pub use compare::gate::Gate;
pub use compare::noise_card::NoiseCard;
pub use compare::options::{AnalysisOptions, ComparisonSide};
pub use compare::pipeline::{compare_levels, compare_sides};
pub use compare::recap::{ComparisonRecap, recap_comparison};
pub use compare::row_order::RowOrder;
pub use compare::row_shift::RowShift;
pub use compare::row_suspect::RowSuspect;
pub use compare::run_differences::{
    EnvironmentDifference, FactDifference, PlanDifference, environment_differences, run_differences,
};
pub use compare::target_levels::{TARGET_FACTOR, has_target_levels};
pub use counter_tracks::{CounterTrack, counter_tracks};
pub use derived_series::{derive_columns, derive_row_runs};
pub use error::AnalyzeError;
pub use fairness::{
    TargetFairness, average_over_targets, case_fairness, clock_bounds, median, start_skew, target_fairness,
};
pub use guard::{FEWEST_HISTORY_RUNS, GuardConfirmation, GuardReport, GuardRow, GuardStep, check_newest_run};
pub use guard_failures::{FailureRecords, GuardFailures, judge_newest_failures};
pub use history::{MetricHistories, metric_histories};
pub use interaction::{EffectRow, InteractionTable, estimate_interactions};
pub use io_coverage::{
    BLOCK_STATUSES, BlockRead, BlockStatus, DiskReadBytes, TraceContents, TraceCoverage, trace_coverage,
};
pub use io_published::{PublishedCoverage, PublishedCoverageError, PublishedDifference, published_coverage};
pub use io_stacked::remove_stacked_requests;
pub use io_use::{
    DirectoryUse, DiskRegion, FileIoUse, IoInterval, reads_by_directory, reads_by_file, reads_over_disk,
    reads_over_time,
};
pub use kernel_log::{
    KernelLogPart, KernelLogsOfRuns, compare_kernel_logs, compare_kernel_logs_of_levels, kernel_troubles,
};
pub use kernel_log_rows::{KernelLogComparison, KernelLogCount, KernelLogRow};
pub use machine_activity::{FEWEST_TICKS, MachineActivity, machine_activity};
pub use method_description::{MethodDescription, UnreadableRun};
pub use monitor_lines::{
    MarkedIteration, MonitorLine, MonitorLineOptions, MonitorLines, MonitorPoint, MonitoredRun, monitor_lines,
};
pub use perflab_stats::{BinRule, ScalingLaw};
pub use sample_histogram::{SampleHistogram, sample_histogram};
pub use sample_lines::{MetricLines, SampleLine, metric_lines};
pub use sample_size::plan_sample_sizes;
pub use scaling_curves::{ScalingCurve, ScalingCurves, ScalingPoint, scaling_curves};
pub use slab::notebook::{
    notebook_cache, notebook_proc_histogram, notebook_timeline, notebook_tool_histogram,
};
pub use standing_step::StandingStep;
pub use startup_2007::{
    ClaimFigures, ClaimOf2007, ClaimStatus, HistoricalClaim, PublishedStartup, STARTUPS_OF_2007,
    StartupRatio, claims_of_2007,
};
pub use statistic::SampleStatistic;
pub use stopping_rule::DecidingRows;
pub use told_step::ToldStep;
pub use value_grid::{ValueGrid, metric_grid, monitor_grid};
pub use warm_up::{RunWarmUp, find_warm_ups};
