//! The programs and libraries of the recorded machine: this machine's own, or those below a copy of its file system.
//!
//! At the same path may lie another file since: where the recording has the build id of a file, only one of that build
//! id gives names and tells how to unwind; else, on this machine, one that was not changed after the recording.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use elf::ElfStream;
use elf::abi::PT_NOTE;
use elf::endian::AnyEndian;
use elf::note::Note;
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};

use crate::watched_file::open_binary_file;

/// Where files of the recorded machine are found.
#[derive(Debug, Default)]
pub struct RecordedFiles {
    /// The root of a copy; none for the files of this machine.
    copy: Option<CopiedRoot>,
    /// Build ids of the recorded files by path, as the recording has them.
    build_ids: HashMap<String, Vec<u8>>,
    /// When the recording was complete, where that is known.
    recorded: Option<SystemTime>,
    found: RefCell<HashMap<String, Option<PathBuf>>>,
    other: RefCell<BTreeSet<String>>,
    missing: RefCell<BTreeSet<String>>,
}

#[derive(Debug)]
struct CopiedRoot {
    path: PathBuf,
    folder: OwnedFd,
}

impl RecordedFiles {
    /// This machine is the recorded one.
    pub fn of_this_machine() -> RecordedFiles {
        RecordedFiles::default()
    }

    /// The same: what has no recorded build id and was changed after `recorded` is another binary. (The files of a copy are of the day on
    /// which they were copied.)
    pub(crate) fn of_this_machine_at(recorded: Option<SystemTime>) -> RecordedFiles {
        RecordedFiles { recorded, ..RecordedFiles::default() }
    }

    /// The recorded machine's files lie below `root`, as with `perf report --symfs`.
    ///
    /// # Errors
    /// It is no folder that can be opened.
    pub fn copied_to(root: &Path) -> io::Result<RecordedFiles> {
        let folder = open(root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(RecordedFiles {
            copy: Some(CopiedRoot { path: root.to_owned(), folder }),
            ..RecordedFiles::default()
        })
    }

    /// The root of the copy, where it is one.
    pub(crate) fn copy_root(&self) -> Option<&Path> {
        self.copy.as_ref().map(|copy| copy.path.as_path())
    }

    /// The recorded file at `path` had this build id; empty or all zeros is none.
    pub(crate) fn set_build_id(&mut self, path: &str, build_id: &[u8]) {
        if build_id.iter().any(|byte| *byte != 0) {
            self.build_ids.entry(path.to_owned()).or_insert_with(|| build_id.to_owned());
        }
    }

    /// Where a file of the recorded machine is. Links of a copy lead nowhere outside of it.
    pub(crate) fn locate(&self, path: &str) -> Option<PathBuf> {
        let Some(copy) = &self.copy else { return Some(path.into()) };
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let place = openat2(&copy.folder, path, flags, Mode::empty(), resolve).ok()?;
        fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd())).ok()
    }

    /// Where the binary that was mapped from `path` is; none where it is not there, or is another one.
    pub(crate) fn locate_binary(&self, path: &str) -> Option<PathBuf> {
        if let Some(known) = self.found.borrow().get(path) {
            return known.clone();
        }
        let located = self.locate(path).filter(|located| located.is_file());
        // What compilers of run-time code map has no file.
        let is_own =
            ["/memfd:", "/dev/", "/SYSV", "/anon_hugepage", "/drm"].iter().any(|name| path.starts_with(name));
        if located.is_none() && !is_own && !path.ends_with(" (deleted)") {
            self.missing.borrow_mut().insert(path.to_owned());
        }
        let located = located.filter(|located| self.is_recorded_file(path, located));
        self.found.borrow_mut().insert(path.to_owned(), located.clone());
        located
    }

    /// Whether a file may be the recorded one. One that cannot be read has no names anyway.
    fn is_recorded_file(&self, path: &str, located: &Path) -> bool {
        let Ok(file) = open_binary_file(located) else { return true };
        let is_same = match self.build_ids.get(path) {
            Some(recorded) => elf_build_id(file).is_some_and(|here| are_one_build_id(recorded, &here)),
            None => {
                let changed = file.metadata().and_then(|about| about.modified()).ok();
                changed.zip(self.recorded).is_none_or(|(changed, recorded)| changed <= recorded)
            }
        };
        if !is_same {
            self.other.borrow_mut().insert(path.to_owned());
        }
        is_same
    }

    /// The paths that were looked up and hold other binaries than the recorded ones.
    pub(crate) fn replaced_binaries(&self) -> Vec<String> {
        self.other.borrow().iter().cloned().collect()
    }

    /// The paths that were looked up and are not there; those of which a copy has links that lead out of it are among them.
    pub(crate) fn missing_binaries(&self) -> Vec<String> {
        self.missing.borrow().iter().cloned().collect()
    }
}

/// Whether two build ids are one; perf pads them with zeros to 20 bytes.
pub(crate) fn are_one_build_id(one: &[u8], other: &[u8]) -> bool {
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    !short.is_empty()
        && long.starts_with(short)
        && long.get(short.len()..).is_some_and(|rest| rest.iter().all(|byte| *byte == 0))
}

/// The GNU build id of an ELF file.
fn elf_build_id(file: File) -> Option<Vec<u8>> {
    let mut file = ElfStream::<AnyEndian, _>::open_stream(file).ok()?;
    let notes: Vec<_> = file.segments().iter().filter(|one| one.p_type == PT_NOTE).copied().collect();
    notes.iter().find_map(|segment| {
        let mut notes = file.segment_data_as_notes(segment).ok()?;
        notes.find_map(|note| match note {
            Note::GnuBuildId(id) => Some(id.0.to_vec()),
            _ => None,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_of_a_copy_stay_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("copy/usr/lib")).unwrap();
        fs::write(root.join("copy/usr/lib/libc.so.6"), "its").unwrap();
        fs::write(root.join("libc.so.6"), "ours").unwrap();
        symlink("/usr/lib", root.join("copy/lib")).unwrap();
        symlink("../../libc.so.6", root.join("copy/out")).unwrap();
        let files = RecordedFiles::copied_to(&root.join("copy")).unwrap();
        let its = Some(root.join("copy/usr/lib/libc.so.6"));
        assert_eq!(files.locate("/lib/libc.so.6"), its);
        assert_eq!(files.locate("/../lib/libc.so.6"), its);
        assert_eq!(files.locate("/out"), None);
        assert_eq!(files.locate("/usr/bin/env"), None);
        assert!(RecordedFiles::copied_to(&root.join("libc.so.6")).is_err());
        assert_eq!(RecordedFiles::of_this_machine().locate("/usr/bin/env"), Some("/usr/bin/env".into()));
    }

    #[test]
    fn build_ids_are_one_but_for_padding() {
        assert!(are_one_build_id(&[1, 2, 3], &[1, 2, 3, 0, 0]));
        assert!(!are_one_build_id(&[1, 2, 3], &[1, 2, 3, 4]));
        assert!(!are_one_build_id(&[], &[0, 0]));
    }

    #[test]
    fn without_build_ids_a_binary_that_is_newer_than_the_recording_is_not_the_recorded_one() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        fs::write(&program, "program").unwrap();
        let written = program.metadata().unwrap().modified().unwrap();
        let path = program.to_str().unwrap();
        let second = std::time::Duration::from_secs(1);
        for (recorded, is_it) in [(written, true), (written - second, false)] {
            let files = RecordedFiles::of_this_machine_at(Some(recorded));
            assert_eq!(files.locate_binary(path).is_some(), is_it);
            assert_eq!(files.replaced_binaries().len(), usize::from(!is_it));
            assert_eq!(files.locate_binary("/nowhere/at/all"), None);
            assert_eq!(files.locate_binary("/memfd:jit (deleted)"), None);
            assert_eq!(files.missing_binaries(), ["/nowhere/at/all"]);
        }
    }

    #[test]
    fn a_binary_of_another_build_id_is_not_the_recorded_one() {
        let own = std::env::current_exe().unwrap();
        let path = own.to_str().unwrap();
        let Some(id) = elf_build_id(File::open(&own).unwrap()) else {
            let mut files = RecordedFiles::of_this_machine();
            files.set_build_id(path, &[7; 20]);
            return assert_eq!(files.locate_binary(path), None, "it has no build id, the recorded one had");
        };
        let located = |id: &[u8]| {
            let mut files = RecordedFiles::of_this_machine();
            files.set_build_id(path, id);
            (files.locate_binary(path), files.replaced_binaries())
        };
        assert_eq!(located(&id), (Some(own.clone()), vec![]));
        assert_eq!(located(&[0; 20]), (Some(own.clone()), vec![]));
        assert_eq!(located(&[7; 20]), (None, vec![path.to_owned()]));
    }
}
