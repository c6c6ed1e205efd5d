//! What runs mean: comparisons, verdicts and warnings.
//!
//! This crate takes runs as values of `perflab-model`, lines up what can be compared, asks `perflab-stats` for
//! the numbers and turns them into verdicts, flags and warnings with advice. It refuses files, terminals and
//! formulas: runs are read by the archive, shown by `present`, and every statistic is computed by `stats`.
//!
//! | module | the user's noun |
//! |---|---|
//! | [`mod@compare`] | one run against others, or one level of a factor against the others |
//! | [`comparison`] | the answer: rows, and everything needed to print or store it |
//! | [`warning`] | what to be careful about, and what to do |
//! | [`gate`] | `--fail-if worse:2%` |
//! | [`interaction`] | two factors at once: effects and their interaction |
//! | [`benchstat`], [`lkp`] | the tables that those tools print |
//! | [`mmtests`] | the tables that MMTests prints for the same data |
//! | [`monitor`] | a monitor's series by iteration, to be compared like a metric |
//! | [`noise_card`] | what this machine shows where nothing changed |
//! | [`recap`] | all rows together: gains and their geometric mean |
//! | [`statistic`] | numbers about one side, by name |
//! | [`mod@ahead`] | how many boots and iterations a wanted precision costs |
//! | [`mod@history`] | a metric over the runs of an archive: steps, and the newest run |
//! | [`enough`] | whether a sample is as precise as a study wants it |
//! | [`environment`] | facts that are not the same on both sides |
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

pub mod ahead;
mod at_once;
pub mod benchstat;
mod blocks;
#[cfg(test)]
#[path = "../tests/it/build.rs"]
#[expect(dead_code, reason = "not every test varies factors")]
mod build;
pub mod compare;
pub mod comparison;
mod diagnose;
pub mod enough;
pub mod environment;
mod error;
mod estimate;
mod families;
mod flag;
pub mod flame;
pub mod gate;
pub mod history;
pub mod interaction;
pub mod io;
mod judge;
pub mod lkp;
pub mod mmtests;
pub mod monitor;
mod needed;
pub mod noise_card;
mod options;
mod planned;
pub mod recap;
mod rows;
mod seen;
mod side;
pub mod slab;
pub mod startup;
pub mod statistic;
pub mod together;
pub mod trace;
pub mod warning;

pub use ahead::plan_sample_sizes;
pub use compare::{compare_levels, compare_sides};
pub use comparison::{
    ChangeInterval, ChangeScale, ComparedRun, Comparison, EstimationMethod, MetricChange, RepetitionLevel,
    SamplePoint, SampleValues, SideSummary, Verdict, VerdictRow,
};
pub use environment::FactDifference;
pub use error::AnalyzeError;
pub use flag::RowFlag;
pub use gate::Gate;
pub use history::{GuardReport, MetricHistories, check_newest_run, metric_histories};
pub use interaction::{InteractionTable, estimate_interactions};
pub use noise_card::NoiseCard;
pub use options::AnalysisOptions;
pub use planned::{PlanDifference, run_differences};
pub use recap::{ComparisonRecap, recap_comparison};
pub use side::ComparisonSide;
pub use statistic::SampleStatistic;
pub use warning::ComparisonDiagnostic;
