//! Settings: levels that live in the kernel or in a service, applied and put back.
//!
//! Every change is written to the undo journal *before* it is made, and undone in reverse at the end, on ^C, on
//! failure, and at the next start after kill -9.
//!
//! | module | what a reader finds |
//! |---|---|
//! | `study_settings` | the settings of a study: what each level sets, and what of it this machine cannot have |
//! | `sysctl_ranges` | which numbers a sysctl takes, where that is known |
//! | `setting` | one file's value: read, written, compared; dropping caches |
//! | `setting_place` | where a setting stands in a study, and which files it writes |
//! | `setting_file` | which files a pattern means, what one is to hold and holds |
//! | `preset_list` | presets by name: those of `settings/`, of a study, of a file |
//! | `preset_files` | a preset's files on this machine: which, what they get, hold and offer, and why there are none |
//! | `study_disk` | the disk that a study's scratch directory lies on |
//! | `cpus_online`, `interrupts`, `queue_discipline`, `offload_level`, `group_limit`, `scheduler_features`, `wakeup_latency`, `swap_level` | presets that are more than one value for some files |
//! | `kernel_device` | which device a setting's file belongs to, though another one may get its name |
//! | `container_settings` | what a study may set where its targets are containers |
//! | `control_group` | control groups of perflab's own, removed |
//! | `swap_areas` | what the kernel swaps to, turned on and off |
//! | `applied_settings` | what is in force for a slot, and the way from one case's settings to the next one's |
//! | `undo_entry` | how one thing is put back |
//! | `undo_journal` | undo entries on disk, the lock between runs, recovery after a kill |
//! | `temporary_folder` | folders that exist for a while, and go though perflab is killed |
//! | `child_command` | commands that perflab runs for itself |
//! | `error` | why a setting is not in force, or was not put back |

mod applied_settings;
mod child_command;
mod container_settings;
mod control_group;
mod cpus_online;
mod error;
mod group_limit;
mod interrupts;
mod kernel_device;
mod namespaced_sysctls;
mod offload_level;
mod preset_files;
mod preset_list;
mod queue_discipline;
mod scheduler_features;
mod setting;
mod setting_file;
mod setting_place;
mod study_disk;
mod study_settings;
mod swap_areas;
mod swap_level;
mod sysctl_ranges;
mod temporary_folder;
mod undo_entry;
mod undo_journal;
mod wakeup_latency;

pub use applied_settings::{
    AppliedSettings, OverwritingCause, OverwrittenSetting, SettingChange, UndoneSettings,
};
pub use child_command::{CommandFailure, run_command, run_stoppable_command, run_user_command};
pub use error::SettingError;
pub use kernel_device::KernelDevice;
pub use preset_files::{SettingSite, find_preset_refusal, read_preset, run_trigger};
pub use preset_list::{PresetList, read_preset_text};
pub use setting::{drop_caches, locate_setting};
pub use setting_file::PresetFileState;
pub use study_disk::StudyDisk;
pub use study_settings::{resolve_settings, setting_problems};
pub use temporary_folder::{LazyTemporaryFolder, TemporaryFolder, temporary_folder};
pub use undo_entry::{CONTAINER_STATE, UndoEntry, end_delays, remove_tree};
pub use undo_journal::{RecoveredRun, UndoJournal, list_killed_runs, recover_killed_runs};
