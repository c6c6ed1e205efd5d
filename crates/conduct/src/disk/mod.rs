//! Disks that this machine does not have: an image served with the delays of one.
//!
//! perflab serves the image as a file of a file system of its own (FUSE), a loop device lies over it, and the kernel treats
//! it as the disk that the model says: rotating or not, with its scheduler and read-ahead. Whoever shows such a disk
//! has to call it emulated. This owns models, their mechanics and the server; it refuses to know what is stored.
//!
//! | module | owns |
//! |---|---|
//! | `specification` | what is known of each disk |
//! | `mechanism` | when a request is done: no clock, no I/O |
//! | `server` | the file system of the image, and of the switch that ends its delays |
//! | `waiting` | answers that are given when their time has come |
//! | `device` | the loop device over it, and its settings |
//! | `orphans` | disks whose server is gone |

pub(crate) mod disk_model;
pub(crate) mod disk_server;
pub(crate) mod emulated_disk;
pub mod scratch_disk;

pub use disk_model::{DiskDataSheet, DiskMechanics, DiskPositioning, DiskRequest};
pub use disk_server::{END_DELAYS_FILE_NAME, IMAGE_FILE_NAME, serve_disk};
pub use emulated_disk::{
    EmulatedDiskOptions, begin_emulated_disk, delay_switch, end_delays, remove_dead_emulated_disks,
};
