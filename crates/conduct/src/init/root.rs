//! The root that the work sees.

use std::fs;
use std::path::Path;

use rustix::mount::MountFlags;
use rustix::process::{chdir, chroot};

use super::{GuestRoot, InitError, mounts, ports};

const NEW: &str = "/root";
const LOWER: &str = "/lower";
const OVER: &str = "/over";

/// Mounts the root and goes there.
pub(super) fn enter_root(root: &GuestRoot) -> Result<(), InitError> {
    match root {
        GuestRoot::Bare => return Ok(()),
        GuestRoot::Shared { filesystem, tag } => mount_shared_root(filesystem, tag)?,
        GuestRoot::Disk { device } => mount_root_disk(device)?,
    }
    let new = Path::new(NEW);
    mounts::mount_kernel_file_systems(new)?;
    mounts::prepare_run_directory(new)?;
    chroot(NEW).map_err(InitError::system_error("enter", NEW))?;
    chdir("/").map_err(InitError::system_error("enter", "/"))
}

/// The host's files below, memory above: what is written stays in the guest and goes with it.
fn mount_shared_root(filesystem: &str, tag: &str) -> Result<(), InitError> {
    let options = match filesystem {
        "9p" => "trans=virtio,version=9p2000.L,msize=262144,cache=loose",
        _ => "",
    };
    mounts::mount_at(filesystem, tag, Path::new(LOWER), MountFlags::RDONLY, options)?;
    mounts::mount_at("tmpfs", "tmpfs", Path::new(OVER), MountFlags::empty(), "mode=755")?;
    for folder in ["upper", "work"] {
        let path = Path::new(OVER).join(folder);
        fs::create_dir_all(&path).map_err(InitError::system_error("create", path.display().to_string()))?;
    }
    let options = format!("lowerdir={LOWER},upperdir={OVER}/upper,workdir={OVER}/work");
    mounts::mount_at("overlay", "overlay", Path::new(NEW), MountFlags::empty(), &options)
}

/// A disk's file system is tried with every type that the kernel knows, as mount(8) does.
fn mount_root_disk(device: &Path) -> Result<(), InitError> {
    ports::wait_for_device(device)?;
    let list = fs::read_to_string("/proc/filesystems")
        .map_err(InitError::system_error("read", "/proc/filesystems"))?;
    let kinds = list.lines().filter(|line| !line.starts_with("nodev")).map(str::trim);
    let source = device.display().to_string();
    let mut last = None;
    for kind in kinds {
        match mounts::mount_at(kind, &source, Path::new(NEW), MountFlags::empty(), "") {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    let none = || InitError::system_error("mount", source.clone())(rustix::io::Errno::NODEV);
    Err(last.unwrap_or_else(none))
}
