//! Dropping what the kernel keeps of files: no setting that could be put back.

use crate::ConductError;

/// Writes what is dirty, which cannot be dropped, and drops: 1 pages of files, 2 names and inodes, 3 both.
///
/// # Errors
/// Without root.
pub fn drop_caches(root: &perflab_observe::Root, which: u8) -> Result<(), ConductError> {
    rustix::fs::sync();
    let path = root.path("/proc/sys/vm/drop_caches");
    std::fs::write(&path, which.to_string()).map_err(|source| ConductError::Setting {
        action: "write",
        path,
        source,
    })
}
