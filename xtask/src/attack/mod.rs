//! `cargo xtask long attack`: tries to do harm through perflab, repeated with counts.
//!
//! An attack is a file of this folder and its line in `registry.rs`. It uses the perflab that cargo builds, works in a folder
//! of its own, ends all that it starts, and counts what it tried, what held, and describes the first failures. The
//! counts become rows of `docs/reliability.md`.

mod archive;
mod attach;
mod attempts;
mod execs;
mod fake_guest;
mod full_disk;
mod guests;
mod imports;
mod processes;
mod profiles;
mod registry;
mod settings;
mod signals;
mod studies;
mod trial;

pub use fake_guest::run_fake_guest;
pub use registry::run_attacks;
