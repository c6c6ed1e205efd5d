//! The binary, used as people use it: real studies, real processes, real signals.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod architecture;
mod arrange;
mod attach;
mod bad_input;
mod channels;
mod compare;
mod daemon;
mod documents;
mod emulated;
mod emulated_runs;
mod filesystems;
mod fine;
mod flame;
mod guests;
mod history;
mod image;
mod interrupted;
mod io;
mod laboratory;
mod libvirt;
mod prefetch;
mod quickstart;
mod runs;
mod slab;
mod ssh;
mod startup;
mod step;
mod studies;
mod systemd;
mod taken;
mod tiny;
mod trace;
mod trace_damage;
mod tracing_refused;
mod vm;
