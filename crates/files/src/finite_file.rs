//! Opens files that end, so that no file of somebody else is waited for, or read, for ever.
//!
//! Refused are pipes, sockets and devices, whatever link leads to them, and files of the kernel that only claim to be
//! regular.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{OFlags, fstatfs, statfs};

/// File systems of the kernel's own, and the names there of files that tell of what is yet to come, or of as much as an address
/// can name.
const ENDLESS: [(u64, &str); 3] = [(0x9fa0, "kmsg"), (0x9fa0, "pagemap"), (0x7472_6163, "trace_pipe")];

/// Why a pipe, a socket or a device is not read.
pub const ENDLESS_KIND: &str = "it is a pipe, a socket or a device";

/// Magic numbers of file systems whose files the kernel makes up as they are read (linux/magic.h): proc, sysfs, debugfs, tracefs,
/// cgroup, cgroup2, bpf, securityfs, configfs.
const LIVE: [u64; 9] = [
    0x9fa0,
    0x6265_6572,
    0x6462_6720,
    0x7472_6163,
    0x0027_e0eb,
    0x6367_7270,
    0xcafe_4a11,
    0x7363_6673,
    0x6265_6570,
];

const ENDLESS_FILE: &str = "the kernel writes it for ever: write what it gives to a file, and take that";

/// Opens a regular file for reading.
///
/// # Errors
/// What opening fails with; anything that is no file, with what it is.
pub fn open_finite_file(path: &Path) -> io::Result<File> {
    // Without waiting for who writes into a pipe; of no meaning for files.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    match kind {
        _ if kind.is_dir() => Err(io::Error::other("it is a folder")),
        _ if !kind.is_file() => Err(io::Error::other(ENDLESS_KIND)),
        _ if fstatfs(&file).is_ok_and(|system| is_endless(system.f_type as u64, path)) => {
            Err(io::Error::other(ENDLESS_FILE))
        }
        _ => Ok(file),
    }
}

/// Refuses what would be waited for, or read, for ever, unopened. A folder is fine, and what is not there or cannot be looked
/// at is told by whoever opens it.
///
/// # Errors
/// What it is.
pub fn refuse_endless(path: &Path) -> io::Result<()> {
    let Ok(about) = path.metadata() else { return Ok(()) };
    match about.file_type() {
        kind if kind.is_dir() => Ok(()),
        kind if !kind.is_file() => Err(io::Error::other(ENDLESS_KIND)),
        _ if statfs(path).is_ok_and(|system| is_endless(system.f_type as u64, path)) => {
            Err(io::Error::other(ENDLESS_FILE))
        }
        _ => Ok(()),
    }
}

/// Whether a folder, or a file, is one that the kernel makes up as it is read: in `/proc` or `/sys`, and not in a copy of them.
pub fn is_live_kernel_folder(path: &Path) -> bool {
    statfs(path).is_ok_and(|system| LIVE.contains(&(system.f_type as u64)))
}

/// Reads a whole file of at most `most` bytes.
///
/// # Errors
/// What is no regular file, or cannot be read; a longer file.
pub fn read_finite_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_finite_file(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!(
            "it is longer than the {most} bytes that are read of such a file"
        )));
    }
    Ok(bytes)
}

/// Whether a path on that file system is one of [`ENDLESS`].
fn is_endless(system: u64, path: &Path) -> bool {
    let names: Vec<&str> =
        ENDLESS.iter().filter(|(magic, _)| *magic == system).map(|(_, name)| *name).collect();
    if names.is_empty() {
        return false;
    }
    let resolved = std::fs::canonicalize(path);
    let found = resolved.as_deref().unwrap_or(path).file_name();
    found.is_some_and(|found| names.iter().any(|name| found.to_string_lossy().starts_with(name)))
}

/// What is unpacked, up to so many bytes; a trap unpacks to more, and is an error then.
#[derive(Debug)]
pub struct BoundedUnpacker<R> {
    inner: R,
    left: u64,
}

impl<R> BoundedUnpacker<R> {
    /// Lets `most` bytes through.
    pub fn new(inner: R, most: u64) -> Self {
        BoundedUnpacker { inner, left: most }
    }
}

impl<R: Read> Read for BoundedUnpacker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::other("it unpacks to far more than such a file can hold: refused as a trap")
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_what_ends_is_opened() {
        let home = tempfile::tempdir().unwrap();
        let (fifo, link) = (home.path().join("fifo"), home.path().join("link"));
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).unwrap();
        std::os::unix::fs::symlink("/proc/kmsg", &link).unwrap();
        let pages = Path::new("/proc/self/pagemap");
        for path in [fifo.as_path(), home.path(), Path::new("/dev/zero"), &link, pages] {
            assert!(open_finite_file(path).is_err(), "{}", path.display());
            assert_eq!(refuse_endless(path).is_ok(), path.is_dir(), "{}", path.display());
        }
        let file = home.path().join("file");
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_finite_file(&file, 4).unwrap(), b"four");
        assert!(read_finite_file(&file, 3).is_err());
        assert!(refuse_endless(&file).is_ok() && refuse_endless(&home.path().join("none")).is_ok());
        assert!(open_finite_file(Path::new("/proc/self/status")).is_ok());
    }

    #[test]
    fn copies_are_not_live() {
        let home = tempfile::tempdir().unwrap();
        assert!(!is_live_kernel_folder(home.path()) && !is_live_kernel_folder(Path::new("/nowhere")));
        assert!(["/proc", "/proc/meminfo", "/sys"].iter().all(|path| is_live_kernel_folder(Path::new(path))));
    }

    #[test]
    fn what_unpacks_beyond_its_bound_is_an_error() {
        let mut text = String::new();
        assert!(BoundedUnpacker::new(&b"1234"[..], 4).read_to_string(&mut text).is_ok());
        assert!(BoundedUnpacker::new(&b"12345"[..], 4).read_to_string(&mut text).is_err());
    }
}
