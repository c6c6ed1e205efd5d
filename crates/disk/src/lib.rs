//! The scratch directory of file-system workloads, and disks that this machine does not have.
//!
//! An emulated disk is an image that perflab serves as a file of a file system of its own (FUSE), with the delays
//! of a disk; a loop device lies over it, and the kernel treats it as the disk that the model says: rotational or
//! not, with its scheduler and read-ahead. Whatever shows such a disk has to call it emulated.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`scratch_disk`] | the scratch directory: folder, loop-mounted image, partition |
//! | `disk_model` | data sheets, and when a request is done: no clock, no I/O |
//! | `disk_server` | the file system of the image, and replies given when due |
//! | `emulated_disk` | the loop device over it, its settings, and removal when its server is gone |
//! | `error` | why there is no disk |

mod disk_model;
mod disk_server;
mod emulated_disk;
mod error;
pub mod scratch_disk;

pub use disk_model::{DiskDataSheet, DiskMechanics, DiskPositioning, DiskRequest};
pub use disk_server::{END_DELAYS_FILE_NAME, IMAGE_FILE_NAME, serve_disk};
pub use emulated_disk::{EmulatedDiskOptions, begin_emulated_disk, delay_switch, remove_dead_emulated_disks};
pub use error::DiskError;
