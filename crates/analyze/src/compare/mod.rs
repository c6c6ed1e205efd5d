//! How two or more sides become verdicts.
//!
//! | module | step |
//! |---|---|
//! | `options` | sides, and the choices of whoever compares |
//! | [`case_condition`] | which cases are looked at, by level and parameter |
//! | [`pipeline`] | the sequence of the steps below: runs against runs, levels of a factor against its first |
//! | `alignment` | samples that belong together |
//! | `same_content` | runs made of the very same files or values, which count once |
//! | `definition_differences` | in what two definitions of one workload differ |
//! | `edited_cases`, `twin_rows` | cases edited under one name; metrics that are one number under two names |
//! | `experimental_unit` | boots, pairs or iterations |
//! | `pooled_noise` | two or three boots or runs a side, whose spread earlier runs help to know |
//! | `unequal_units` | boots or runs of unequal size, each counting by what it knows |
//! | `row_estimate`, `change` | the numbers of each row |
//! | `verdict` | test families, verdicts, the power that an unclear row lacks |
//! | `failures`, `missing_values`, `failure_verdict` | how often a case failed, what the missing values could have been, and the verdict that follows |
//! | `tails` | values far beyond the rest |
//! | `compared_part`, `part_estimate`, `part_verdict` | the mean and tail quantiles, and the verdict where they, or the tail, say otherwise than the middle |
//! | `checks`, [`diagnostic`] | what is doubtful |
//! | [`noise_card`] | what this machine shows where nothing changed |
//! | [`run_differences`], `side_values` | facts and parts of the plan that differ, over all runs of both sides |
//! | [`comparison`] | the answer |
//! | `row_order` | which rows come first |
//! | `row_shift` | how far each decile of a row moved |
//! | [`recap`], [`gate`] | all rows together; which rows fail |

pub(crate) mod alignment;
pub(crate) mod between_runs;
pub mod case_condition;
pub(crate) mod change;
pub(crate) mod checks;
pub(crate) mod compared_part;
pub mod comparison;
pub(crate) mod definition_differences;
pub mod diagnostic;
pub(crate) mod edited_cases;
pub(crate) mod exact_values;
mod exact_verdict;
mod experimental_unit;
pub(crate) mod failure_verdict;
pub(crate) mod failures;
pub mod gate;
mod layout_effect;
pub(crate) mod missing_values;
pub mod noise_card;
pub mod noise_levels;
pub(crate) mod noise_measurement;
pub(crate) mod options;
mod part_estimate;
mod part_verdict;
pub mod pipeline;
mod pooled_noise;
pub mod recap;
pub(crate) mod row_estimate;
pub(crate) mod row_order;
pub(crate) mod row_shift;
pub(crate) mod row_suspect;
pub mod run_differences;
pub(crate) mod same_content;
pub(crate) mod side_values;
pub(crate) mod tails;
pub mod target_levels;
pub(crate) mod twin_rows;
mod unequal_units;
pub(crate) mod verdict;
mod warm_up_values;
