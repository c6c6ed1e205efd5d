//! A run as a trace that <https://ui.perfetto.dev> opens: iterations and operations as slices, monitors as counters, what made
//! an operation slow as a flow that ends in it.
//!
//! | module | content |
//! |---|---|
//! | `packets` | the messages of Perfetto's trace format that are written |
//! | `trace_writer` | [`PerfettoWriter`]: which part of a run becomes which track |

mod packets;
mod trace_writer;

pub use trace_writer::PerfettoWriter;
