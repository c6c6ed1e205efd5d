//! Many targets in step: every iteration begins at the same instant in all of them.
//!
//! Owns the run: starts the targets, keeps their clocks and lives in view, does what the [`crate::barrier`] says, puts
//! what they tell on this host's time axis, and ends them whatever happens. It believes no target: what one tells is
//! checked against the plan first ([`accept`]). How an agent is started is [`crate::place`]'s.

mod accept;
mod boot;
mod course;
mod crew;
mod mate;
mod open;
mod weft;

pub use course::SynchronisedRun;
