//! The file systems that every Linux has.

use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_bind};

use super::InitError;
use crate::initramfs::GUEST_HOME;

/// A file system: its type, where it belongs, its options, and whether a guest is of no use without it.
struct GuestFileSystem(&'static str, &'static str, &'static str, bool);

const KERNEL: &[GuestFileSystem] = &[
    GuestFileSystem("proc", "proc", "", true),
    GuestFileSystem("sysfs", "sys", "", true),
    GuestFileSystem("devtmpfs", "dev", "", true),
    GuestFileSystem("tmpfs", "tmp", "mode=1777", true),
    GuestFileSystem("devpts", "dev/pts", "gid=5,mode=620,ptmxmode=666", false),
    GuestFileSystem("tmpfs", "dev/shm", "mode=1777", false),
    GuestFileSystem("debugfs", "sys/kernel/debug", "", false),
    GuestFileSystem("tracefs", "sys/kernel/tracing", "", false),
    GuestFileSystem("cgroup2", "sys/fs/cgroup", "", false),
];

/// Mounts them below `root`.
pub(super) fn mount_kernel_file_systems(root: &Path) -> Result<(), InitError> {
    for GuestFileSystem(name, place, options, must) in KERNEL {
        // Programs that were packed from the host's /tmp stay where they are looked for.
        if *place == "tmp" && root == Path::new("/") && is_nonempty_folder(&root.join(place)) {
            continue;
        }
        let done = mount_at(name, name, &root.join(place), MountFlags::empty(), options);
        if *must {
            done?;
        }
    }
    Ok(())
}

fn is_nonempty_folder(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// What a root of its own needs besides: /run, with perflab in it.
pub(super) fn prepare_run_directory(root: &Path) -> Result<(), InitError> {
    mount_at("tmpfs", "tmpfs", &root.join("run"), MountFlags::empty(), "mode=755")?;
    let place = root.join(GUEST_HOME.trim_start_matches('/'));
    fs::create_dir_all(&place).map_err(InitError::system_error("create", place.display().to_string()))?;
    mount_bind(GUEST_HOME, &place).map_err(InitError::system_error("mount", GUEST_HOME))
}

/// Mounts one file system; one that is there already is fine.
pub(super) fn mount_at(
    kind: &str,
    source: &str,
    place: &Path,
    flags: MountFlags,
    options: &str,
) -> Result<(), InitError> {
    let what = || format!("{kind} at {}", place.display());
    if !place.is_dir() {
        fs::create_dir_all(place).map_err(InitError::system_error("mount", what()))?;
    }
    let options = std::ffi::CString::new(options).unwrap_or_default();
    match mount(source, place, kind, flags, options.as_c_str()) {
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(error) => Err(InitError::system_error("mount", what())(error)),
    }
}
