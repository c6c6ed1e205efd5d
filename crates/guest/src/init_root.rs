//! What surrounds the work inside a guest: the file systems that every Linux has, its root, its virtio-serial
//! ports.
//!
//! Ports are found by name; devices may take their time to appear.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_bind};
use rustix::process::{chdir, chroot};

use crate::init_protocol::{GuestRoot, InitError};
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
pub(crate) fn mount_kernel_file_systems(root: &Path) -> Result<(), InitError> {
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
fn prepare_run_directory(root: &Path) -> Result<(), InitError> {
    mount_at("tmpfs", "tmpfs", &root.join("run"), MountFlags::empty(), "mode=755")?;
    let place = root.join(GUEST_HOME.trim_start_matches('/'));
    fs::create_dir_all(&place).map_err(InitError::system_error("create", place.display().to_string()))?;
    mount_bind(GUEST_HOME, &place).map_err(InitError::system_error("mount", GUEST_HOME))
}

/// Mounts one file system; one that is there already is fine.
fn mount_at(
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

const NEW: &str = "/root";

const LOWER: &str = "/lower";

const OVER: &str = "/over";

/// Mounts the root and goes there.
pub(crate) fn enter_root(root: &GuestRoot) -> Result<(), InitError> {
    match root {
        GuestRoot::Bare => return Ok(()),
        GuestRoot::Shared { filesystem, tag } => mount_shared_root(filesystem, tag)?,
        GuestRoot::Disk { device } => mount_root_disk(device)?,
    }
    let new = Path::new(NEW);
    mount_kernel_file_systems(new)?;
    prepare_run_directory(new)?;
    chroot(NEW).map_err(InitError::system_error("enter", NEW))?;
    chdir("/").map_err(InitError::system_error("enter", "/"))
}

/// The host's files below, memory above: what is written stays in the guest and goes with it.
fn mount_shared_root(filesystem: &str, tag: &str) -> Result<(), InitError> {
    let options = match filesystem {
        "9p" => "trans=virtio,version=9p2000.L,msize=262144,cache=loose",
        _ => "",
    };
    mount_at(filesystem, tag, Path::new(LOWER), MountFlags::RDONLY, options)?;
    mount_at("tmpfs", "tmpfs", Path::new(OVER), MountFlags::empty(), "mode=755")?;
    for folder in ["upper", "work"] {
        let path = Path::new(OVER).join(folder);
        fs::create_dir_all(&path).map_err(InitError::system_error("create", path.display().to_string()))?;
    }
    let options = format!("lowerdir={LOWER},upperdir={OVER}/upper,workdir={OVER}/work");
    mount_at("overlay", "overlay", Path::new(NEW), MountFlags::empty(), &options)
}

/// A disk's file system is tried with every type that the kernel knows, as mount(8) does.
fn mount_root_disk(device: &Path) -> Result<(), InitError> {
    wait_for_device(device)?;
    let list = fs::read_to_string("/proc/filesystems")
        .map_err(InitError::system_error("read", "/proc/filesystems"))?;
    let kinds = list.lines().filter(|line| !line.starts_with("nodev")).map(str::trim);
    let source = device.display().to_string();
    let mut last = None;
    for kind in kinds {
        match mount_at(kind, &source, Path::new(NEW), MountFlags::empty(), "") {
            Ok(()) => return Ok(()),
            Err(error) => last = Some(error),
        }
    }
    let none = || InitError::system_error("mount", source.clone())(rustix::io::Errno::NODEV);
    Err(last.unwrap_or_else(none))
}

/// A driver finds its devices within milliseconds; a starved virtual processor takes its time.
const PATIENCE: Duration = Duration::from_secs(30);

const LOOK: Duration = Duration::from_millis(2);

/// Opens the port of that name.
pub(crate) fn open_port(name: &str) -> Result<File, InitError> {
    let path = wait_for_port(name)?;
    let opened = OpenOptions::new().read(true).write(true).open(&path);
    opened.map_err(InitError::system_error("open", path.display().to_string()))
}

/// The device of the port of that name.
pub(crate) fn wait_for_port(name: &str) -> Result<PathBuf, InitError> {
    wait_for(|| find_port(name), || format!("the port {name}"))
}

/// Waits for a device.
pub(crate) fn wait_for_device(device: &Path) -> Result<(), InitError> {
    wait_for(|| device.exists().then_some(()), || device.display().to_string())
}

fn find_port(name: &str) -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?;
    let port = ports
        .flatten()
        .find(|port| fs::read_to_string(port.path().join("name")).is_ok_and(|text| text.trim() == name))?;
    Some(Path::new("/dev").join(port.file_name())).filter(|path| path.exists())
}

/// Looks until it is there.
pub(crate) fn wait_for<T>(
    mut look: impl FnMut() -> Option<T>,
    what: impl Fn() -> String,
) -> Result<T, InitError> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if begun.elapsed() > PATIENCE {
            return Err(InitError::Missing { what: what(), seconds: PATIENCE.as_secs() });
        }
        std::thread::sleep(LOOK);
    }
}
