//! The stored tables of a run.
//!
//! | module | files |
//! |---|---|
//! | `samples` | `samples.parquet`, `iterations.parquet`, and the columns that name a case |
//! | `series` | `series/MONITOR.parquet` |
//! | `edges` | `edges/MONITOR.parquet` |
//! | `stacks` | `stacks/`: frames, stack tree, stack samples |
//! | `operations` | `events/TRACER.parquet` |
//! | `io` | `events/io.parquet` |

pub(crate) mod edges;
pub(crate) mod io;
pub(crate) mod operations;
pub(crate) mod samples;
pub(crate) mod series;
pub(crate) mod stacks;
