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
//! | [`start_shell_loop`] | the same of a process that somebody else started |
//! | [`files`] | numbers of files made into names, and where files lie on disks |
//! | `scan` | sectors of a disk made into files, by walking a whole file system |
//! | `btrfs`, `own_blocks` | what file systems do not say by themselves of their own blocks |
//! | [`profile_stacks`] | disks that lie upon others |
//! | [`collect_mounts`] | file systems, and the disks below them |
//! | [`residency`] | which pages of a file are in memory |

pub(crate) mod btrfs_chunks;
pub mod device_stack;
pub mod error;
pub(crate) mod file_ioctls;
pub mod file_lookup;
pub(crate) mod metadata_blocks;
pub mod page_residency;
pub(crate) mod trace_records;
pub mod tracefs;
pub mod tracer;

pub use crate::mounts::{MountEntry, MountTable};
pub use error::IoTraceError;
pub use file_ioctls::{file_extents, file_generation, file_system_uuid};
pub use file_lookup::{
    FileScanError, describe_file, describe_file_system, match_sectors_to_files, require_disk_below,
    resolve_files,
};
pub use tracer::{IoTraceScope, IoTracer, ProcessIoRecording, ProcessIoTracer, check_io_tracing};
