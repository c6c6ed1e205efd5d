//! Which file of the kernel a path means: one of /proc or /sys has many spellings, through `..`, links, and second mounts.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use perflab_observe::io::MountTable;

/// Files of which writing one zeroes the other: where one reads 0, the other says what is in force, and 0 itself cannot be
/// written back.
const COUNTERPARTS: &[(&str, &str)] = &[
    ("vm/dirty_bytes", "vm/dirty_ratio"),
    ("vm/dirty_background_bytes", "vm/dirty_background_ratio"),
    ("vm/overcommit_kbytes", "vm/overcommit_ratio"),
];

/// Files that are one value of the kernel's under two names.
const SYNONYMS: &[(&str, &str)] = &[
    ("vm/nr_hugepages", "vm/nr_hugepages_mempolicy"),
    ("net/ipv4/ip_forward", "net/ipv4/conf/all/forwarding"),
];

/// A file, however it is spelt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileIdentity {
    /// A file of the kernel's own: its place there. These have other inodes on each mount, and new ones when memory is short.
    Kernel { kind: String, path: PathBuf },
    /// Another file that is there.
    Inode { device: u64, inode: u64 },
    /// What is not there.
    Path(PathBuf),
}

impl FileIdentity {
    pub fn of_path(path: &Path) -> Self {
        Self::of_path_among(&MountTable::read(), path)
    }

    fn of_path_among(mounts: &MountTable, path: &Path) -> Self {
        let Ok(real) = fs::canonicalize(path) else { return FileIdentity::Path(normalize_path(path)) };
        let of_kernel = mounts.find_by_path(&real).filter(|mount| matches!(&*mount.kind, "proc" | "sysfs"));
        if let Some(mount) = of_kernel
            && let Ok(below) = real.strip_prefix(&mount.mount_point)
        {
            return FileIdentity::Kernel { kind: mount.kind.clone(), path: mount.root.join(below) };
        }
        match real.metadata() {
            Ok(found) => FileIdentity::Inode { device: found.dev(), inode: found.ino() },
            Err(_) => FileIdentity::Path(real),
        }
    }

    /// Whether a path means this file, too; `own` is how it was spelt.
    pub fn is_same_file(&self, own: &Path, path: &Path) -> bool {
        own == path || *self == Self::of_path(path)
    }
}

/// The path with `.` and `..` taken as they are written.
pub(super) fn normalize_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// The other file of a pair of which writing one zeroes the other.
pub(super) fn counterpart_file(path: &Path) -> Option<PathBuf> {
    pair_partner(COUNTERPARTS, path)
}

/// The other name of the same value.
pub(super) fn synonym_file(path: &Path) -> Option<PathBuf> {
    pair_partner(SYNONYMS, path)
}

/// Files that hold other values once this one is written, whatever is written: with another I/O scheduler the queue has the
/// depth of the kernel's choice, and with the old one again its tunables are the kernel's defaults.
pub(super) fn dependent_files(path: &Path) -> Vec<PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| normalize_path(path));
    if !path.ends_with("queue/scheduler") {
        return Vec::new();
    }
    let tunables = fs::read_dir(path.with_file_name("iosched")).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = tunables.map(|entry| entry.path()).collect();
    found.sort();
    found.push(path.with_file_name("nr_requests"));
    let is_setting = |path: &PathBuf| path.metadata().is_ok_and(|file| file.mode() & 0o200 != 0);
    found.retain(is_setting);
    found
}

fn pair_partner(pairs: &[(&str, &str)], path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| normalize_path(path));
    let both_ways = pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
    let mut found = both_ways.filter(|(own, _)| path.ends_with(own)).filter_map(|(own, other)| {
        let root = path.to_str()?.strip_suffix(own)?;
        Some(PathBuf::from(format!("{root}{other}")))
    });
    found.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_file_are_one() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "60").unwrap();
        fs::hard_link(&file, home.path().join("alias")).unwrap();
        std::os::unix::fs::symlink(home.path(), home.path().join("link")).unwrap();
        let own = FileIdentity::of_path(&file);
        for spelling in ["alias", "link/file", "link/../file", "./file"] {
            // `link/..` is the parent of where the link leads, which is not what is written.
            let same = own.is_same_file(&file, &home.path().join(spelling));
            assert_eq!(same, spelling != "link/../file", "{spelling}");
        }
        let swappiness = FileIdentity::of_path(Path::new("/proc/sys/vm/swappiness"));
        assert_eq!(
            swappiness,
            FileIdentity::of_path(Path::new("/proc/self/root/proc/sys/kernel/../vm/swappiness"))
        );
        assert!(matches!(swappiness, FileIdentity::Kernel { .. }), "{swappiness:?}");
        assert_ne!(swappiness, FileIdentity::of_path(Path::new("/proc/sys/vm/overcommit_memory")));
    }

    #[test]
    fn pairs_are_known_by_every_spelling() {
        assert_eq!(counterpart_file(Path::new("/x/vm/a/../dirty_ratio")), Some("/x/vm/dirty_bytes".into()));
        assert_eq!(counterpart_file(Path::new("/x/vm/not_dirty_ratio")), None);
        assert_eq!(
            synonym_file(Path::new("/x/vm/nr_hugepages_mempolicy")),
            Some("/x/vm/nr_hugepages".into())
        );
    }
}
