//! Tests of the whole way from runs to verdicts, on made-up runs.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

mod compare;
mod continued;
mod decided;
mod edited;
mod failures;
mod false_alarms;
mod flags;
mod gate;
mod interaction;
mod layouts;
mod machines;
mod plan_power;
mod pooled_noise;
mod run_level;
mod shift;
mod slab;
mod tails;
mod unequal_boots;
mod why_injected;
mod why_placebo;
mod word_and_interval;
