//! Settings: levels that live in the kernel or in a service, applied and put back.
//!
//! Every change is written to the undo journal *before* it is made, and undone in reverse at the end, on ^C, on
//! failure, and at the next start after kill -9.
//!
//! | module | what a reader finds |
//! |---|---|
//! | `setting` | one setting: whether it can be set here, read back, compared; dropping caches |
//! | `applied_settings` | what is in force for a slot, and the way from one case's settings to the next one's |
//! | `undo_entry` | how one thing is put back |
//! | `undo_journal` | undo entries on disk, the lock between runs, recovery after a kill |
//! | `temporary_folder` | folders that exist for a while, and go though perflab is killed |
//! | `child_command` | commands that perflab runs for itself |
//! | `error` | why a setting is not in force, or was not put back |

mod applied_settings;
mod child_command;
mod error;
mod setting;
mod temporary_folder;
mod undo_entry;
mod undo_journal;

pub use applied_settings::{AppliedSettings, SettingChange};
pub use child_command::{CommandFailure, run_command, run_stoppable_command, run_user_command};
pub use error::SettingError;
pub use setting::{drop_caches, locate_setting, resolve_settings, setting_problems};
pub use temporary_folder::{LazyTemporaryFolder, TemporaryFolder, temporary_folder};
pub use undo_entry::{UndoEntry, end_delays, remove_tree};
pub use undo_journal::{RecoveredRun, UndoJournal, recover_killed_runs};
