//! What the estimators promise: published numbers, tables of other programs, rates by simulation, bad input.

#![expect(clippy::unwrap_used, reason = "an answer that is missing fails the test")]

mod bad_input;
mod hunter;
mod invariance;
mod noise;
mod oracle;
mod other_tools;
mod published;
mod simulation;
mod simulation_dose;
mod simulation_history;
