//! Settings: levels that live in the kernel or in somebody's service, applied and put back.
//!
//! Every change is written to the undo journal *before* it is made, and undone in reverse at the
//! end, on ^C, on failure, and at the next start after kill -9.

mod bench;
mod drop_caches;
mod journal;
mod knob;
mod preflight;
mod recovered;
mod remove;
mod setting_file;
mod setting_value;
mod shared;
mod undo;

pub use bench::{AppliedSettings, SettingChange};
pub use drop_caches::drop_caches;
pub use journal::UndoJournal;
pub use knob::{FactorSetting, Setting, resolve_settings};
pub use preflight::setting_problems;
pub use recovered::{RecoveredRun, recover_killed_runs};
pub(crate) use remove::remove_tree;
pub use undo::UndoEntry;

#[cfg(test)]
pub(crate) mod tests;
