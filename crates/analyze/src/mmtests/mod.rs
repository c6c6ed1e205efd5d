//! Owns the figures that people know from MMTests' `compare-mmtests.pl`: the same rows for the same data. It refuses its
//! faults: the direction is each metric's own, what is missing is missing, no iteration is thrown away, and a star comes
//! from a test. Where its own table would say something else, a note tells what.
//!
//! Formulas: `bin/lib/MMTests/Stat.pm` and `Summarise.pm` at 638401e (June 2026), restated in `perflab-stats`.

mod band;
mod note;
mod operation;
mod plain;
mod ratio;
mod report;
mod table;
#[cfg(test)]
mod tests;

pub use plain::{MmtestsPlainRow, MmtestsPlainTable, mmtests_duration_tables, mmtests_monitor_tables};
pub use ratio::{MmtestsRatioCell, MmtestsRatioRow, MmtestsRatioTable, mmtests_ratio_tables};
pub use table::{MmtestsCell, MmtestsRow, MmtestsTable, mmtests_tables};
