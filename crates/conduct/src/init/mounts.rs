//! The file systems that every Linux has.

use std::fs;
use std::path::Path;

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_bind};

use super::InitError;
use crate::initramfs::HOME;

/// A file system: its type, where it belongs, its options, and whether a guest is of no use without it.
struct Kind(&'static str, &'static str, &'static str, bool);

const KERNEL: &[Kind] = &[
    Kind("proc", "proc", "", true),
    Kind("sysfs", "sys", "", true),
    Kind("devtmpfs", "dev", "", true),
    Kind("tmpfs", "tmp", "mode=1777", true),
    Kind("devpts", "dev/pts", "gid=5,mode=620,ptmxmode=666", false),
    Kind("tmpfs", "dev/shm", "mode=1777", false),
    Kind("debugfs", "sys/kernel/debug", "", false),
    Kind("tracefs", "sys/kernel/tracing", "", false),
    Kind("cgroup2", "sys/fs/cgroup", "", false),
];

/// Mounts them below `root`.
pub(super) fn kernel_file_systems(root: &Path) -> Result<(), InitError> {
    for Kind(name, place, options, must) in KERNEL {
        // Programs that were packed from the host's /tmp stay where they are looked for.
        if *place == "tmp" && root == Path::new("/") && has_something(&root.join(place)) {
            continue;
        }
        let done = at(name, name, &root.join(place), MountFlags::empty(), options);
        if *must {
            done?;
        }
    }
    Ok(())
}

fn has_something(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// What a root of its own needs besides: /run, with perflab in it.
pub(super) fn run_directory(root: &Path) -> Result<(), InitError> {
    at("tmpfs", "tmpfs", &root.join("run"), MountFlags::empty(), "mode=755")?;
    let place = root.join(HOME.trim_start_matches('/'));
    fs::create_dir_all(&place).map_err(InitError::refused("create", place.display().to_string()))?;
    mount_bind(HOME, &place).map_err(InitError::refused("mount", HOME))
}

/// Mounts one file system; one that is there already is fine.
pub(super) fn at(
    kind: &str,
    source: &str,
    place: &Path,
    flags: MountFlags,
    options: &str,
) -> Result<(), InitError> {
    let what = || format!("{kind} at {}", place.display());
    if !place.is_dir() {
        fs::create_dir_all(place).map_err(InitError::refused("mount", what()))?;
    }
    let options = std::ffi::CString::new(options).unwrap_or_default();
    match mount(source, place, kind, flags, options.as_c_str()) {
        Ok(()) | Err(Errno::BUSY) => Ok(()),
        Err(error) => Err(InitError::refused("mount", what())(error)),
    }
}
