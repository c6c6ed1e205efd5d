//! All monitors of a run on a thread of their own (two, where some are on fast clocks), each with its interval.
//!
//! The sampler owns when a monitor is read, what is counted as late and lost, and what becomes a gap. It emits
//! `SeriesOpened` before the first `Rows` of a monitor, and never ends because one of them fails: a failure is a
//! `Gap` from the last good tick, sent at once and still open, and the monitor is tried again at a slower pace; when
//! it comes back, the same gap (same monitor, same `from`) is sent again with its end, in place of the open one.

mod lane;
mod priority;
mod run;
mod schedule;
mod stolen;

pub use run::{Sampler, SamplerOverhead};
