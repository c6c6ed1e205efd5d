//! Which commit changed a metric, found by measuring as little as the noise allows.
//!
//! The candidates are the commits of a line from a good one (index 0) to a bad one (index n). One of them, the culprit k, moved the
//! metric for the worse; those before it are as good as the good end, it and those behind it as bad as the bad end, or there is no
//! change at all. What is measured is a *block*: a few commits, once each, in drawn order, so that a drift of the machine concerns all
//! of them.
//!
//! - `block_evidence`: what a block says for and against each culprit.
//! - `candidates`: the probability of each candidate, and the evidence against it; who is excluded.
//! - `noise_estimate`: the size of the step and of the noise, from the blocks so far.
//! - `step_choice`: the commits whose measurement tells most per minute.
//! - `walk`: [`Bisection`], which puts these together: the next step, or the end.
//!
//! Only the evidence decides, and it supposes little: that commits that are equally good are exchangeable within a block. The
//! probabilities and estimates choose what is measured next and what is bet on; they may be wrong, and then the walk takes longer.
//! `docs/statistics.md` has the derivation, with sources.

mod block_evidence;
mod candidates;
mod noise_estimate;
mod step_choice;
mod walk;

pub use block_evidence::{MeasuredBlock, StepEstimate};
pub use candidates::CulpritCandidates;
pub use step_choice::BisectionCosts;
pub use walk::{
    Bisection, BisectionEnd, BisectionError, BisectionOptions, BisectionPurpose, BisectionStep, BlameRange,
    StepConfirmation,
};
