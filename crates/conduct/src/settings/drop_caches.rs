//! Dropping what the kernel keeps of files: no setting that could be put back.

use crate::ConductError;

/// Writes what is dirty, which cannot be dropped, and drops: 1 pages of files, 2 names and inodes, 3 both. A journal holds on to
/// the pages of a file system's own blocks that were just written until names and inodes go: after these, pages go once more.
///
/// # Errors
/// Without root.
pub fn drop_caches(root: &perflab_observe::Root, which: u8) -> Result<(), ConductError> {
    rustix::fs::sync();
    let path = root.path("/proc/sys/vm/drop_caches");
    let write = |which: &u8| std::fs::write(&path, which.to_string());
    let turns = if which == 3 { &[3, 1][..] } else { &[which] };
    turns.iter().try_for_each(write).map_err(|source| ConductError::Setting {
        action: "write",
        path: path.clone(),
        source,
    })
}
