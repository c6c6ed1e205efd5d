//! Files of watched programs: binaries, and what run-time compilers say of their code.
//!
//! Somebody else may change such a file while it is read, so only regular files are opened, without waiting, up to a
//! size; one that another user can write is copied, since truncating it would end us. Pipes, devices and what has no
//! size (the kernel's own files) are refused. A file of a living process may be deleted, or of another mount namespace,
//! and is found there.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

use crate::address_space::AddressMapping;

/// The largest binary that is looked at: a browser with debug information is half of it.
const LARGEST: u64 = 4 << 30;

/// The same of one that others can write; it is copied into memory.
const LARGEST_COPY: u64 = 256 << 20;

/// All copies together.
const LARGEST_COPIES: u64 = 1 << 30;

/// The largest `/tmp/perf-PID.map`.
const LARGEST_MAP: u64 = 64 << 20;

/// Binaries that are held open because their place cannot be trusted, or is none any more.
const MOST_HELD: usize = 256;

/// Others may write.
const OTHERS_WRITE: u32 = 0o022;

/// In such a folder only a file's owner replaces it.
const STICKY: u32 = 0o1000;

/// Opens a regular file that has a size, for reading. What a path leads to is looked at before it is opened, so that no
/// pipe is waited for, and no device woken.
fn open_regular(path: &Path, flags: OFlags) -> io::Result<(File, Metadata)> {
    let place = open(path, flags | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let about = File::from(place.try_clone()?).metadata()?;
    if !about.is_file() || about.len() == 0 {
        return Err(io::Error::other("it is no file, or has no size"));
    }
    let again = format!("/proc/self/fd/{}", place.as_raw_fd());
    let file = File::from(open(again, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?);
    Ok((file, about))
}

/// Opens a binary, for the little of it that is read once.
pub(crate) fn open_binary_file(path: &Path) -> io::Result<File> {
    open_regular(path, OFlags::empty()).map(|(file, _)| file)
}

/// Reads a binary, for what is done with it whole.
pub(crate) fn read_binary_file(path: &Path) -> io::Result<Vec<u8>> {
    let (file, about) = open_regular(path, OFlags::empty())?;
    let most = if is_trusted(&about) { LARGEST } else { LARGEST_COPY };
    read_bounded(file, about.len(), most)
}

/// Reads what a run-time compiler says of the code of a process of that user; nobody else is believed but root, nor
/// who reads it.
pub(crate) fn read_jit_map_file(path: &Path, user: Option<u32>) -> io::Result<Vec<u8>> {
    let (file, about) = open_regular(path, OFlags::NOFOLLOW)?;
    let own = rustix::process::geteuid().as_raw();
    if ![Some(0), Some(own), user].contains(&Some(about.uid())) {
        return Err(io::Error::other("it is neither root's nor of the process's user"));
    }
    read_bounded(file, about.len(), LARGEST_MAP)
}

fn read_bounded(file: File, length: u64, most: u64) -> io::Result<Vec<u8>> {
    if length > most {
        return Err(io::Error::other(format!("it is larger than {} MiB", most >> 20)));
    }
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether nobody but root and who looks can write it.
fn is_trusted(about: &Metadata) -> bool {
    is_owned(about) && about.mode() & OTHERS_WRITE == 0
}

fn is_owned(about: &Metadata) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&about.uid())
}

/// Binaries, each under a path by which it can be opened again and again.
#[derive(Debug, Default)]
pub(crate) struct BinaryFiles {
    known: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
    /// Those that are held, by device and inode.
    held: RefCell<HashMap<(u64, u64), OwnedFd>>,
    copied: RefCell<u64>,
}

impl BinaryFiles {
    /// A path to open the binary at `path` by: its own where nobody else can put another file there.
    pub(crate) fn reopenable_path(&self, path: &Path) -> Option<PathBuf> {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let found = self.try_reopenable_path(path).ok();
        self.known.borrow_mut().insert(path.into(), found.clone());
        found
    }

    fn try_reopenable_path(&self, path: &Path) -> io::Result<PathBuf> {
        let (file, about) = open_regular(path, OFlags::empty())?;
        let is_trusted = is_trusted(&about);
        let folder = path.parent().and_then(|folder| folder.metadata().ok());
        let is_in_place = !path.starts_with("/proc")
            && folder.is_some_and(|folder| {
                is_owned(&folder) && (folder.mode() & OTHERS_WRITE == 0 || folder.mode() & STICKY != 0)
            });
        if about.len() > if is_trusted { LARGEST } else { LARGEST_COPY } {
            return Err(io::Error::other("it is too large"));
        }
        if is_trusted && is_in_place {
            return Ok(path.into());
        }
        let mut held = self.held.borrow_mut();
        let key = (about.dev(), about.ino());
        if held.len() >= MOST_HELD && !held.contains_key(&key) {
            return Err(io::Error::other("too many are held"));
        }
        let fd = match held.get(&key) {
            Some(fd) => fd.as_raw_fd(),
            None => {
                let fd = if is_trusted { file.into() } else { self.copy_to_memory(file, about.len())? };
                held.entry(key).or_insert(fd).as_raw_fd()
            }
        };
        Ok(format!("/proc/self/fd/{fd}").into())
    }

    fn copy_to_memory(&self, file: File, length: u64) -> io::Result<OwnedFd> {
        let mut copied = self.copied.borrow_mut();
        if *copied + length > LARGEST_COPIES {
            return Err(io::Error::other("all copies together are too large"));
        }
        let mut copy = File::from(memfd_create("perflab-binary", MemfdFlags::CLOEXEC)?);
        *copied += io::copy(&mut file.take(length), &mut copy)?;
        Ok(copy.into())
    }
}

/// Where the files of living processes are.
#[derive(Debug, Default)]
pub(crate) struct LivingFiles {
    places: RefCell<HashMap<(i32, std::rc::Rc<str>), PathBuf>>,
}

impl LivingFiles {
    /// A path to what is mapped there in that process: its own path, unless the file is deleted or the process sees other
    /// files under it than we do.
    pub(crate) fn path_of_mapping(&self, pid: i32, mapping: &AddressMapping) -> PathBuf {
        let key = (pid, std::rc::Rc::clone(&mapping.path));
        self.places.borrow_mut().entry(key).or_insert_with(|| locate_mapped_file(pid, mapping)).clone()
    }

    /// Forgets all: processes end, and numbers are given again.
    pub(crate) fn forget(&self) {
        self.places.borrow_mut().clear();
    }
}

fn locate_mapped_file(pid: i32, mapping: &AddressMapping) -> PathBuf {
    let plain = PathBuf::from(&*mapping.path);
    let sees = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let Some(theirs) = sees(&pid.to_string()) else { return plain };
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let Some((range, path)) = maps.lines().find_map(|line| parse_maps_line_at(line, mapping.start)) else {
        return plain;
    };
    if sees("self").is_some_and(|ours| ours == theirs) && !path.ends_with(" (deleted)") {
        return plain;
    }
    let mapped = PathBuf::from(format!("/proc/{pid}/map_files/{range}"));
    // Following it takes CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE.
    match mapped.metadata() {
        Ok(_) => mapped,
        Err(_) if path.ends_with(" (deleted)") => plain,
        Err(_) => PathBuf::from(format!("/proc/{pid}/root{path}")),
    }
}

/// The range and path of a line of /proc/PID/maps, where it covers an address.
fn parse_maps_line_at(line: &str, address: u64) -> Option<(&str, &str)> {
    let mut parts = line.splitn(6, ' ');
    let range = parts.next()?;
    let (begin, end) = range.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let is_there = (hex(begin)?..hex(end)?).contains(&address);
    is_there.then_some((range, parts.nth(4).unwrap_or_default().trim_start()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn only_regular_files_with_a_size_are_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "text").unwrap();
        symlink(path("file"), path("link")).unwrap();
        let fifo = rustix::fs::mknodat(
            rustix::fs::CWD,
            path("fifo"),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        );
        fifo.unwrap();
        let opens = |path: &Path, flags| open_regular(path, flags).is_ok();
        assert!(opens(&path("file"), OFlags::NOFOLLOW));
        assert!(opens(&path("link"), OFlags::empty()));
        assert!(!opens(&path("link"), OFlags::NOFOLLOW));
        for path in [&path("fifo"), folder.path(), Path::new("/dev/zero"), Path::new("/proc/kmsg")] {
            assert!(!opens(path, OFlags::empty()), "{}", path.display());
        }
    }

    #[test]
    fn what_others_can_write_is_copied_and_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared");
        fs::write(&path, "as it was").unwrap();
        let binaries = BinaryFiles::default();
        assert_eq!(
            BinaryFiles::default().reopenable_path(&path),
            Some(path.clone()),
            "one's own stays where it is"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        let copy = binaries.reopenable_path(&path).unwrap();
        File::create(&path).unwrap();
        assert_eq!(fs::read_to_string(copy).unwrap(), "as it was");
    }

    #[test]
    fn a_map_is_neither_a_link_nor_larger_than_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        File::create(path("sparse")).unwrap().set_len(LARGEST_MAP + 1).unwrap();
        fs::write(path("map"), "1000 20 f\n").unwrap();
        symlink(path("map"), path("link")).unwrap();
        assert!(read_jit_map_file(&path("sparse"), None).is_err());
        assert!(read_jit_map_file(&path("link"), None).is_err());
        assert_eq!(read_jit_map_file(&path("map"), None).unwrap(), b"1000 20 f\n");
    }

    #[test]
    fn a_map_of_another_user_is_not_believed_root() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("map");
        fs::write(&path, "1000 20 f\n").unwrap();
        std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
        assert!(read_jit_map_file(&path, None).is_err());
        assert!(read_jit_map_file(&path, Some(1000)).is_err());
        assert!(read_jit_map_file(&path, Some(65_534)).is_ok());
    }

    #[test]
    fn a_deleted_file_is_found_by_its_mapping_root() {
        let line = "55d0c000-55d0d000 r-xp 00001000 fe:00 123      /usr/bin/my tool (deleted)";
        assert_eq!(
            parse_maps_line_at(line, 0x55d0_c010),
            Some(("55d0c000-55d0d000", "/usr/bin/my tool (deleted)"))
        );
        assert_eq!(parse_maps_line_at(line, 0x55d0_d000), None);
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("sleeper");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let pid = child.id() as i32;
        let code = || {
            let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
            let line =
                maps.lines().find(|line| line.contains("r-xp") && line.contains("sleeper"))?.to_owned();
            u64::from_str_radix(line.split('-').next()?, 16).ok()
        };
        let start = std::iter::repeat_with(code).find_map(|start| start).unwrap();
        let mapping =
            AddressMapping { start, end: start + 1, offset: 0, path: program.display().to_string().into() };
        let before = LivingFiles::default().path_of_mapping(pid, &mapping);
        fs::remove_file(&program).unwrap();
        let after = LivingFiles::default().path_of_mapping(pid, &mapping);
        let binaries = BinaryFiles::default();
        let same = binaries
            .reopenable_path(&after)
            .map(|path| fs::read(path).unwrap() == fs::read("/bin/sleep").unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(before, program);
        assert_eq!(same, Some(true), "{}", after.display());
        assert_eq!(
            locate_mapped_file(pid, &mapping),
            program,
            "of a process that ended only the path is known"
        );
    }
}
