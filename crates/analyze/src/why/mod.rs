//! Why a metric changed: what goes with the change, ranked, with evidence that can be checked.
//!
//! | module | step |
//! |---|---|
//! | `iteration_quantities` | what monitors, counters and events say of each iteration |
//! | `evidence_table` | the units of the comparison, with the metric and every quantity; time that passes is no cause |
//! | `cause_table` | what is known of each kind of quantity: one table |
//! | `candidate_families` | quantities that say the same are tested once |
//! | `explain` | difference, dose and account of each family; the suspects in their order |
//! | `log_evidence` | lines of the kernel's log, weighed by iterations and failures |
//! | `varied_setting` | what the study set differently on the sides |
//! | `recorded_study` | what was run, as a command that can be pasted |
//! | `recording_advice` | what to record where that says nothing |
//! | `suspect_test` | the experiment that switches a suspect: what is left of the change |
//! | `first_suspect` | the answer in one line, for a table |
//! | `series_figures` | the table behind the figures of a suspect |
//! | `explanation` | the answer |

mod candidate_families;
pub mod cause_table;
mod evidence_table;
mod explain;
pub mod explanation;
mod first_suspect;
mod iteration_quantities;
mod log_evidence;
mod recorded_study;
mod recording_advice;
mod series_figures;
mod suspect_test;
#[cfg(test)]
mod tests;
mod varied_setting;

pub use cause_table::{CAUSES, CauseSpec, TimePart};
pub use explain::explain_row;
pub use explanation::{
    AccountEvidence, AccountLimit, ComparedUnits, DifferenceEvidence, DoseEvidence, DoseWord,
    EXPLANATION_FORMAT, Explanation, FailureEvidence, IntervalValue, LeftOut, QuantityCounts,
    RecordingAdvice, RuledOut, RuledOutReason, Suspect, SuspectTest, SuspectTestWord, TestedLevel, TimePlace,
};
pub use first_suspect::find_first_suspect;
pub use iteration_quantities::{QuantityGap, add_durations, add_monitor_quantities};
pub use log_evidence::LogEvidence;
pub use series_figures::{FigureRow, SeriesFigures, figures_of_series};
pub use varied_setting::VariedSetting;
