//! How two or more sides become verdicts: align samples, choose the experimental unit, estimate each row, decide the verdicts of each test family, say what is doubtful.

pub(crate) mod alignment;
pub(crate) mod change;
pub(crate) mod checks;
pub mod comparison;
pub mod diagnostic;
pub(crate) mod edited_cases;
pub(crate) mod experimental_unit;
pub mod gate;
pub mod noise_card;
pub(crate) mod options;
pub mod pipeline;
pub mod recap;
pub(crate) mod row_estimate;
pub mod run_differences;
pub(crate) mod twin_rows;
pub(crate) mod verdict;
