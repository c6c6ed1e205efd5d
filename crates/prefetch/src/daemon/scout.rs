//! What a file is that is to be run: a program, a script with its interpreter, or a loader, which comes with every program.
//! Looked up once for each file; this may wait for a disk, so it is never done by the thread that is asked.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// A file with these contents: another one after every change of either.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// its number
    pub inode: u64,
    /// bytes
    pub size: u64,
    /// when it was changed last, ns since 1970
    pub changed: i64,
}

/// The same, among all file systems that are mounted now.
pub type Place = (u64, Identity);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// a program
    Program(PathBuf),
    /// a script, whose interpreter is asked about next in the same exec
    Script(PathBuf, Option<Place>),
    /// a loader
    Loader,
    /// none that has a name here: in a container, removed, replaced meanwhile
    Nameless,
}

/// Of an open file: asks no disk.
pub fn place(file: BorrowedFd<'_>) -> Option<Place> {
    rustix::fs::fstat(file).ok().map(known)
}

fn place_of(path: &Path) -> Option<Place> {
    rustix::fs::stat(path).ok().map(known)
}

fn known(about: Stat) -> Place {
    let changed = about.st_mtime.saturating_mul(1_000_000_000).saturating_add(about.st_mtime_nsec as i64);
    (about.st_dev, Identity { inode: about.st_ino, size: about.st_size.unsigned_abs(), changed })
}

/// Looks.
pub fn look(file: &File) -> Sight {
    let Some((path, own)) = name(file) else { return Sight::Nameless };
    if place_of(&path) != Some(own) {
        return Sight::Nameless;
    }
    if is_loader(&path) {
        return Sight::Loader;
    }
    match interpreter(file) {
        Some(interpreter) => Sight::Script(path, place_of(&interpreter)),
        None => Sight::Program(path),
    }
}

fn name(file: &File) -> Option<(PathBuf, Place)> {
    use std::os::fd::AsFd as _;
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    Some((path, place(file.as_fd())?))
}

/// `ld-linux-x86-64.so.2`, `ld-musl-x86_64.so.1`, `ld64.so.2`
fn is_loader(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ld") && name.contains(".so")
}

/// The word behind `#!`.
fn interpreter(file: &File) -> Option<PathBuf> {
    let mut head = [0; 256];
    let length = file.read_at(&mut head, 0).ok()?;
    let line = head.get(..length)?.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let text = std::str::from_utf8(line).ok()?;
    text.split_whitespace().next().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_script_names_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("script");
        fs::write(&path, "#! /bin/sh -e\nexit 0\n").unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(look(&file), Sight::Script(path.clone(), place_of(Path::new("/bin/sh"))));
        assert_eq!(place(file.as_fd()), place_of(&path));
        fs::write(folder.path().join("ld-linux.so.2"), "x").unwrap();
        assert_eq!(look(&File::open(folder.path().join("ld-linux.so.2")).unwrap()), Sight::Loader);
        fs::remove_file(&path).unwrap();
        assert_eq!(look(&file), Sight::Nameless);
    }

    #[test]
    fn what_begins_with_anything_else_is_a_program() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for bytes in [&b""[..], b"\x7fELF", b"#", b"#!", b"#!\xff\xfe\n"] {
            fs::write(file.path(), bytes).unwrap();
            assert_eq!(
                look(&File::open(file.path()).unwrap()),
                Sight::Program(file.path().into()),
                "{bytes:?}"
            );
        }
    }
}
