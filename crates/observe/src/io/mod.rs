//! What I/O a process tree does: pages that come into the page cache, pages that are used, disk requests.
//!
//! Recording uses a trace instance of its own, under a name that no other tool has, so that neither disturbs the
//! other; it is removed at the end, and one that a killed perflab left is removed at the next start. Nothing is
//! interpreted here: what was needed and what was merely readahead is worked out in `perflab-analyze`, what is
//! worth reading ahead in `perflab-prefetch`.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`tracer`] | a recording from start to stop: of our children, of everybody, or of a process that runs already |
//! | [`tracefs`], `trace_records` | where the kernel's tracing is, and an instance of it; events and buffers in the kernel's binary form |
//! | [`file_lookup`] | inode numbers and disk sectors made into files |
//! | [`file_description`], `file_ioctls` | what a file and its file system say of themselves |
//! | `metadata_blocks`, `btrfs_chunks` | which blocks file systems keep for themselves |
//! | [`device_stack`] | disks that lie on others |
//! | [`page_residency`] | which pages of a file are in memory |
//! | [`error`] | why I/O cannot be traced, with the setting to change |

pub(crate) mod btrfs_chunks;
pub mod device_stack;
pub mod error;
pub mod file_description;
pub(crate) mod file_ioctls;
pub mod file_lookup;
pub(crate) mod metadata_blocks;
pub mod page_residency;
pub(crate) mod trace_records;
pub mod tracefs;
pub mod tracer;

pub use crate::mounts::{MountEntry, MountTable};
pub use error::IoTraceError;
pub use file_description::{describe_file, describe_file_system};
pub use file_ioctls::{file_extents, file_generation, file_system_uuid};
pub use file_lookup::{FileScanError, match_sectors_to_files, require_disk_below, resolve_files};
pub use tracer::{IoTraceScope, IoTracer, ProcessIoRecording, ProcessIoTracer, check_io_tracing};
