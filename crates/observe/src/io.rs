//! What I/O a process tree makes: pages that come into the page cache, pages that are used, disk requests.
//!
//! Owns a trace instance of the kernel's own, under a name that no other tool has, so that neither disturbs the other; it
//! is removed at the end, and one that a killed perflab left is removed at the next start. Refuses to interpret: what was
//! needed and what was merely read around it is for `analyze` to say, what is worth reading ahead for `prefetch`.
//!
//! | module | the user's noun |
//! |---|---|
//! | [`tracefs`] | where the kernel's tracing is, and an instance of it |
//! | `format`, `ring` | events and buffers in the kernel's binary form |
//! | [`recorder`] | a recording, from start to stop |
//! | [`follow`] | the same of a process that somebody else started |
//! | [`files`] | numbers of files made into names, and where files lie on disks |
//! | `scan` | sectors of a disk made into files, by walking a whole file system |
//! | `btrfs`, `own_blocks` | what file systems do not say by themselves of their own blocks |
//! | [`stacks`] | disks that lie upon others |
//! | [`mounts`] | file systems, and the disks below them |
//! | [`residency`] | which pages of a file are in memory |

mod btrfs;
pub mod error;
mod fiemap;
pub mod files;
pub mod follow;
mod format;
mod fsmap;
mod handle;
pub mod mounts;
mod own_blocks;
pub mod recorder;
pub mod residency;
mod ring;
mod scan;
pub mod stacks;
pub mod tracefs;

pub use error::IoTraceError;
pub use fiemap::{file_extents, file_generation, file_system_uuid};
pub use files::{describe_file, describe_file_system, resolve_files};
pub use follow::{ProcessIoRecording, ProcessIoTracer};
pub use mounts::{MountEntry, MountTable};
pub use recorder::{IoTraceScope, IoTracer, check_io_tracing};
pub use scan::{FileScanError, match_sectors_to_files, require_disk_below};
