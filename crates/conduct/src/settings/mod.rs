//! Settings: levels that live in the kernel or in somebody's service, applied and put back.
//!
//! Every change is written to the undo journal *before* it is made, and undone in reverse at the
//! end, on ^C, on failure, and at the next start after kill -9.

pub(crate) mod applied_settings;
pub(crate) mod setting;
pub(crate) mod undo_entry;
pub(crate) mod undo_journal;

pub use applied_settings::{AppliedSettings, SettingChange};
pub use setting::{FactorSetting, Setting, drop_caches, resolve_settings, setting_problems};
pub use undo_entry::UndoEntry;
pub use undo_journal::{RecoveredRun, UndoJournal, recover_killed_runs};
