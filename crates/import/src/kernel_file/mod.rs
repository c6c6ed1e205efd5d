//! Logs of kernel files, one file each.

pub(crate) mod meminfo;
pub(crate) mod page_size;
pub(crate) mod slab_columns;
pub(crate) mod slabinfo;
pub(crate) mod vmstat;
