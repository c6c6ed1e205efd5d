//! Verbs that look into one thing, also on a system that is running.

pub mod flame;
pub mod io;
pub mod prefetch;
pub(crate) mod prefetch_store;
pub(crate) mod probed_binary;
pub(crate) mod profiled_levels;
pub mod slab;
pub(crate) mod slab_args;
pub(crate) mod slab_notebook;
pub(crate) mod slab_top;
pub mod startup;
pub(crate) mod startup_once;
pub(crate) mod stored_slab_run;
pub mod trace;
pub(crate) mod trace_attach;
pub(crate) mod trace_summary;
pub(crate) mod watched_process;
