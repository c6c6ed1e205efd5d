//! The stored tables of a run.

pub(crate) mod io;
pub(crate) mod operations;
pub(crate) mod samples;
pub(crate) mod series;
pub(crate) mod stacks;
