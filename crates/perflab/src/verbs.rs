//! One module a verb, or a family of small ones: from a spec to one call, and its result printed.

pub mod aa;
pub mod agent;
pub mod compare;
pub mod disk_server;
pub mod export;
pub mod flame;
pub mod guard;
pub mod history;
pub mod import;
pub mod io;
pub mod kernel;
pub mod laboratory;
pub mod plan;
pub mod prefetch;
pub mod recording;
pub mod report;
pub mod run;
pub mod runs;
pub mod show;
pub mod slab;
pub mod startup;
pub mod study;
pub mod trace;
pub mod vm;
pub mod workload;
pub mod written;
