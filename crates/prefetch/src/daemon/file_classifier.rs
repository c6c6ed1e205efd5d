//! What a file is before it is run: a program, a script with its interpreter, or a loader, which comes with every
//! program.
//!
//! Looked up once for each file; this may wait for a disk, so it is never done by the thread that answers execs.

use std::fs::{self, File};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// A file with these contents: another one after every change of either.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExecutableId {
    /// its number
    pub inode: u64,
    /// bytes
    pub size: u64,
    /// when it was changed last, ns since 1970
    pub changed: i64,
}

/// The same, among all file systems that are mounted now.
pub type FileId = (u64, ExecutableId);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileKind {
    /// a program
    Program(PathBuf),
    /// a script, whose interpreter is asked about next in the same exec
    Script(PathBuf, Option<FileId>),
    /// a loader
    Loader,
    /// none that has a name here: in a container, removed, replaced in the meantime
    Nameless,
}

/// Of an open file: asks no disk.
pub fn file_id(file: BorrowedFd<'_>) -> Option<FileId> {
    rustix::fs::fstat(file).ok().map(stat_id)
}

fn path_id(path: &Path) -> Option<FileId> {
    rustix::fs::stat(path).ok().map(stat_id)
}

fn stat_id(about: Stat) -> FileId {
    let changed = about.st_mtime.saturating_mul(1_000_000_000).saturating_add(about.st_mtime_nsec as i64);
    (about.st_dev, ExecutableId { inode: about.st_ino, size: about.st_size.unsigned_abs(), changed })
}

/// Looks.
pub fn classify_file(file: &File) -> FileKind {
    let Some((path, own)) = file_name_and_id(file) else { return FileKind::Nameless };
    if path_id(&path) != Some(own) {
        return FileKind::Nameless;
    }
    if is_loader(&path) {
        return FileKind::Loader;
    }
    match script_interpreter(file) {
        Some(interpreter) => FileKind::Script(path, path_id(&interpreter)),
        None => FileKind::Program(path),
    }
}

fn file_name_and_id(file: &File) -> Option<(PathBuf, FileId)> {
    use std::os::fd::AsFd as _;
    let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    Some((path, file_id(file.as_fd())?))
}

/// `ld-linux-x86-64.so.2`, `ld-musl-x86_64.so.1`, `ld64.so.2`
fn is_loader(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("ld") && name.contains(".so")
}

/// The word behind `#!`.
fn script_interpreter(file: &File) -> Option<PathBuf> {
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
        assert_eq!(classify_file(&file), FileKind::Script(path.clone(), path_id(Path::new("/bin/sh"))));
        assert_eq!(file_id(file.as_fd()), path_id(&path));
        fs::write(folder.path().join("ld-linux.so.2"), "x").unwrap();
        assert_eq!(
            classify_file(&File::open(folder.path().join("ld-linux.so.2")).unwrap()),
            FileKind::Loader
        );
        fs::remove_file(&path).unwrap();
        assert_eq!(classify_file(&file), FileKind::Nameless);
    }

    #[test]
    fn what_begins_with_anything_else_is_a_program() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for bytes in [&b""[..], b"\x7fELF", b"#", b"#!", b"#!\xff\xfe\n"] {
            fs::write(file.path(), bytes).unwrap();
            assert_eq!(
                classify_file(&File::open(file.path()).unwrap()),
                FileKind::Program(file.path().into()),
                "{bytes:?}"
            );
        }
    }
}
