//! Trees of /sys for tests, written by hand after the kernel's own account of them (Documentation/ABI/stable/sysfs-block,
//! testing/sysfs-block-dm, admin-guide/md.rst), as this project's machines have neither device mapper nor RAID.

use std::fs;

use crate::root::Root;

/// A tree as the kernel makes it: devices in folders of their own, partitions in their disk's, links to them.
pub(crate) fn create_sysfs_tree(
    devices: &[(&str, &[(&str, &str)])],
    links: &[(&str, &str)],
) -> (tempfile::TempDir, Root) {
    let home = tempfile::tempdir().unwrap();
    let place = |path: &str| home.path().join("sys").join(path);
    for (folder, files) in devices {
        fs::create_dir_all(place(folder)).unwrap();
        files
            .iter()
            .for_each(|(name, text)| fs::write(place(folder).join(name), format!("{text}\n")).unwrap());
    }
    for (link, to) in links {
        fs::create_dir_all(place(link).parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(place(to), place(link)).unwrap();
    }
    let root = Root(home.path().into());
    (home, root)
}
