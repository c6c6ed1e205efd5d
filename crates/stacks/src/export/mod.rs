//! Profiles for other tools.
//!
//! Owns four formats: folded text, speedscope's JSON, the Firefox Profiler's JSON and pprof's protobuf. Refuses to
//! invent: folded text has no place for times and losses, so they are left out of it, and a sample without
//! a stack is written as one wherever the format can say so.

mod chosen;
mod firefox;
mod folded;
mod pprof;
mod protobuf;
mod speedscope;

pub use chosen::ProfileSelection;
pub use firefox::write_firefox;
pub use folded::write_folded;
pub use pprof::write_pprof;
pub use speedscope::write_speedscope;

#[cfg(test)]
mod tests;
