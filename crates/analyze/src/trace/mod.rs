//! Why single operations were slow: which ones stand out, what dominates each, and what the whole of it says.
//!
//! Owns attribution: outliers against a local baseline, their dominant causes (a span of the program, a page fault,
//! another process on the CPU), what would be without a cause, where a cause sets in and what crossed a threshold
//! there. What no cause explains is counted as *unexplained*, never hidden. It refuses correlation as a proof: Pearson's
//! is decided by the most extreme class of points, so causes are weighed by the time they took.
//!
//! | module | the user's question |
//! |---|---|
//! | `times` | how long was each operation, and how long are its neighbours usually? |
//! | `causes` | what happened in it, and how much of its time was that? |
//! | `probe_cost` | are these its times, or those of the probes that told of it? |
//! | `outliers` | which ones stand out, and what dominates them? |
//! | `tally` | per cause: coverage, excess, precision, recall, lift, quantiles without it |
//! | `onset` | where does a cause set in, and what crossed a threshold there? |
//! | `pattern` | has a cause several modes, a period, a cost per unit saved? |
//! | `quantiles` | quantiles, and the interval of their difference between two traces |
//! | `words` | the answer in sentences |

mod causes;
mod compare;
mod onset;
mod outliers;
mod pattern;
mod probe_cost;
mod quantiles;
mod report;
mod tally;
mod times;
mod words;

pub use causes::{OperationCause, PAGE_FAULT, PREEMPTED, WAITING};
pub use compare::{CauseChange, OperationComparison, QuantileChange, compare_operations};
pub use onset::{CauseOnset, StateCrossing};
pub use outliers::{OutlierExplanation, OutlierOperation};
pub use pattern::{CauseMode, CausePeriod, MaintenanceCost};
pub use probe_cost::{OperationProbeCost, SpanProbeCost};
pub use report::{OperationError, OperationReport, OutlierOptions, analyze_operations, choose_clock};
pub use tally::{OperationCauseRow, OutlierShare};
pub use times::OperationClock;
pub use words::{comparison_conclusions, operation_conclusions, probe_conclusions};

#[cfg(test)]
mod tests;
