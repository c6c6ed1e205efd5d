//! Why a metric changed: what goes with the change, ranked, with evidence that can be checked.
//!
//! | module | step |
//! |---|---|
//! | `iteration_quantities` | what monitors, counters and events say of each iteration |
//! | `evidence_table` | the units of the comparison, with the metric and every quantity; time that passes is no cause |
//! | `cause_table` | what is known of each kind of quantity: one table |
//! | `candidate_families` | quantities that say the same are tested once |
//! | `explain` | difference, dose and account of each family; the suspects in their order |
//! | `recording_advice` | what to record where that says nothing |
//! | `explanation` | the answer |

mod candidate_families;
pub mod cause_table;
mod evidence_table;
mod explain;
pub mod explanation;
mod iteration_quantities;
mod recording_advice;
#[cfg(test)]
mod tests;

pub use cause_table::{CAUSES, CauseSpec, TimePart};
pub use explain::explain_row;
pub use explanation::{
    AccountEvidence, AccountLimit, ComparedUnits, DifferenceEvidence, DoseEvidence, DoseWord,
    EXPLANATION_FORMAT, Explanation, IntervalValue, LeftOut, QuantityCounts, RecordingAdvice, RuledOut,
    RuledOutReason, Suspect, TimePlace,
};
pub use iteration_quantities::{QuantityGap, add_durations, add_monitor_quantities};
