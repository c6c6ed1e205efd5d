//! Folders of perflab's own, removed with all that lies in them; never what is mounted there.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use perflab_observe::io::MountTable;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, StatxFlags, openat, statat, statx, unlinkat};
use rustix::io::Errno;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Removes a file, or a folder with what lies in it. Nothing is removed where a file system is mounted there or below: that would
/// take somebody's files with it.
///
/// # Errors
/// A file system is mounted there, or something cannot be removed. What is not there is no error.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    let is_folder = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => FileType::from_raw_mode(found.st_mode) == FileType::Directory,
        Err(Errno::NOENT) => return Ok(()),
        // Of one whose server is gone: it is mounted.
        Err(Errno::NOTCONN) => return Err(mounted_error(path)),
        Err(error) => return Err(error.into()),
    };
    if let Some(place) = MountTable::read().mount_points_within(path).first() {
        return Err(mounted_error(place));
    }
    if is_folder {
        let folder = openat(CWD, path, FOLDER | OFlags::RDONLY, Mode::empty())?;
        remove_contents(&folder, mount_id(folder.as_fd())?, path)?;
    }
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(CWD, path, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes what lies in a folder; `mount` is the mount that all of it lies on.
fn remove_contents(folder: &OwnedFd, mount: u64, path: &Path) -> io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let gone = match unlinkat(folder, name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {
                let place = path.join(OsStr::from_bytes(name.to_bytes()));
                let below = openat(folder, name, FOLDER | OFlags::RDONLY, Mode::empty())?;
                if mount_id(below.as_fd())? != mount {
                    return Err(mounted_error(&place));
                }
                remove_contents(&below, mount, &place)?;
                unlinkat(folder, name, AtFlags::REMOVEDIR)
            }
            gone => gone,
        };
        match gone {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// The mount that an opened folder lies on; before Linux 5.8 its file system, which is one on each of its mounts.
fn mount_id(folder: BorrowedFd<'_>) -> io::Result<u64> {
    let wanted = StatxFlags::MNT_ID | StatxFlags::BASIC_STATS;
    let found = statx(folder, c"", AtFlags::EMPTY_PATH, wanted)?;
    let has_mount = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    let device = u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor);
    Ok(if has_mount { found.stx_mnt_id } else { device })
}

fn mounted_error(place: &Path) -> io::Error {
    io::Error::other(format!("a file system is mounted on {}: `umount` it first", place.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_folder_goes_with_all_that_lies_in_it_and_links_are_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (folder, other) = (home.path().join("sp ace"), home.path().join("other"));
        fs::create_dir_all(folder.join("a/b")).unwrap();
        fs::create_dir(&other).unwrap();
        fs::write(other.join("kept"), "").unwrap();
        fs::write(folder.join("a/b/file"), "").unwrap();
        std::os::unix::fs::symlink(&other, folder.join("a/link")).unwrap();
        remove_tree(&folder).unwrap();
        assert!(!folder.exists() && other.join("kept").exists());
        remove_tree(&folder).unwrap();
    }

    #[test]
    fn what_is_mounted_in_a_folder_stays_and_so_does_the_folder_root() {
        if !rustix::process::geteuid().is_root() {
            println!("SKIP what_is_mounted_in_a_folder_stays_and_so_does_the_folder_root: needs root");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let (folder, theirs) = (home.path().join("line\nand blank"), home.path().join("theirs"));
        let place = folder.join("mount");
        fs::create_dir_all(&place).unwrap();
        fs::create_dir(&theirs).unwrap();
        for file in [folder.join("image"), theirs.join("kept")] {
            fs::write(file, "").unwrap();
        }
        // A view of the same file system: no other device tells of it.
        assert!(Command::new("mount").arg("--bind").arg(&theirs).arg(&place).status().unwrap().success());
        let refused = remove_tree(&folder).map_err(|error| error.to_string());
        let opened = openat(CWD, &folder, FOLDER, Mode::empty()).unwrap();
        let walked = remove_contents(&opened, mount_id(opened.as_fd()).unwrap(), &folder);
        let stays = (theirs.join("kept").exists(), place.join("kept").exists());
        assert!(Command::new("umount").arg(&place).status().unwrap().success());
        assert!(refused.unwrap_err().contains("mounted on"));
        assert!(walked.is_err(), "nor does the walk go there, where no table told of it");
        assert_eq!(stays, (true, true));
        remove_tree(&folder).unwrap();
        assert!(!folder.exists() && theirs.join("kept").exists());
    }
}
