//! The folders and links of /sys/kernel/slab, one attribute file kept open, and which caches have estimated counts.
//!
//! `/sys/kernel/slab` has a directory a cache, and a link a name that was merged into one. Caches come and go: a
//! directory's inode tells a new cache from an old one of the same name. Every attribute is optional: kernels add
//! some and drop others, and a cache may go while it is read.
//!
//! Only sysfs says how long a partial list is, beyond which `/proc/slabinfo` estimates: it is asked, but only of caches
//! that can have so long a one.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, DirEntry, File};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirEntryExt, FileExt};
use std::path::PathBuf;

use perflab_formats::kernel::slab_counts::{SlabCounts, kernel_estimates};
use perflab_formats::kernel::slabinfo::{SLABINFO, slabinfo_names};
use perflab_formats::kernel::sysfs_slab::NodeCounts;

use crate::error::ObserveError;
use crate::monitor::text_file::ProcFile;
use crate::root::{Root, open_unblocked};

/// How often counts that contradict themselves are read again within a tick.
pub(crate) const REREADS: usize = 2;

/// As the kernel names it.
pub(crate) const PATH: &str = "/sys/kernel/slab";

/// One cache in sysfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlabDirectory {
    /// Its name in `/proc/slabinfo`; where that is not known, its first member's, or its directory's.
    pub cache: String,
    /// The directory's name: `:0000192`, `dentry`.
    pub directory: String,
    /// Distinguishes it from a later cache of the same name.
    pub inode: u64,
    /// The names that are links to it, sorted.
    pub members: Vec<String>,
    /// Where it lies.
    pub path: PathBuf,
}

/// One entry: its name, its inode, whether it is a link.
type SlabTreeEntry = (OsString, u64, bool);

/// All caches, as of the last look.
#[derive(Debug)]
pub(crate) struct SysfsSlabTree {
    root: Root,
    last_entries: Vec<SlabTreeEntry>,
    directories: Vec<SlabDirectory>,
}

impl SysfsSlabTree {
    /// Lists the caches below `root`.
    ///
    /// # Errors
    /// When the directory is missing or refused.
    pub(crate) fn open(root: &Root) -> Result<Self, ObserveError> {
        let mut tree =
            SysfsSlabTree { root: root.clone(), last_entries: Vec::new(), directories: Vec::new() };
        tree.refresh()?;
        Ok(tree)
    }

    /// The caches, by directory.
    pub(crate) fn directories(&self) -> &[SlabDirectory] {
        &self.directories
    }

    /// Looks again; says whether any cache or any name came or went.
    ///
    /// # Errors
    /// When the directory is missing or refused.
    pub(crate) fn refresh(&mut self) -> Result<bool, ObserveError> {
        let seen = self.list_entries().map_err(|source| ObserveError::read_failed(PATH, source))?;
        let changed = seen != self.last_entries;
        if changed {
            self.last_entries = seen;
            self.directories = self.find_directories();
        }
        Ok(changed)
    }

    fn list_entries(&self) -> Result<Vec<SlabTreeEntry>, Error> {
        let entry = |entry: Result<DirEntry, Error>| {
            let entry = entry?;
            Ok((entry.file_name(), entry.ino(), entry.file_type()?.is_symlink()))
        };
        fs::read_dir(self.root.path(PATH))?.map(entry).collect()
    }

    fn find_directories(&self) -> Vec<SlabDirectory> {
        let mut members = self.names_by_directory();
        let shown = names_in_slabinfo(&self.root);
        let mut places: Vec<SlabDirectory> = Vec::new();
        for (name, inode, _) in self.last_entries.iter().filter(|(_, _, link)| !link) {
            let directory = name.to_string_lossy().into_owned();
            let mut members = members.remove(name).unwrap_or_default();
            members.sort();
            let cache = choose_cache_name(&directory, &members, &shown);
            let path = self.root.path(PATH).join(name);
            places.push(SlabDirectory { cache, directory, inode: *inode, members, path });
        }
        places.sort_by(|a, b| a.directory.cmp(&b.directory));
        places
    }

    /// The names of the links, by the directory that they point to.
    fn names_by_directory(&self) -> HashMap<OsString, Vec<String>> {
        let mut members: HashMap<OsString, Vec<String>> = HashMap::new();
        for (name, _, _) in self.last_entries.iter().filter(|(_, _, link)| *link) {
            let target = fs::read_link(self.root.path(PATH).join(name)).ok();
            // A link that went since the listing: the next look sees it gone.
            let Some(directory) = target.as_deref().and_then(|target| target.file_name()) else { continue };
            members.entry(directory.to_owned()).or_default().push(name.to_string_lossy().into_owned());
        }
        members
    }
}

/// The names that `/proc/slabinfo` shows; none where it cannot be read.
fn names_in_slabinfo(root: &Root) -> HashSet<String> {
    let names = |text: &str| slabinfo_names(text).map(str::to_owned).collect();
    let file = ProcFile::open(root, SLABINFO.source);
    file.and_then(|mut file| file.read().map(names)).unwrap_or_default()
}

fn choose_cache_name(directory: &str, members: &[String], shown: &HashSet<String>) -> String {
    let own = directory.to_owned();
    if shown.contains(&own) {
        return own;
    }
    let member = members.iter().find(|member| shown.contains(*member));
    member.or(members.first().filter(|_| directory.starts_with(':'))).cloned().unwrap_or(own)
}

/// A page: the kernel never says more in one attribute.
const LONGEST: usize = 4096;

/// A file that is read again and again.
#[derive(Debug)]
pub(crate) enum SlabAttribute {
    /// kept open: a sample is one system call
    Open(File),
    /// opened for each sample, as descriptors are scarce
    Closed(PathBuf),
    /// this kernel does not have it
    Absent,
}

impl SlabAttribute {
    /// The attribute at `path`, kept open where `keep` says so.
    ///
    /// # Errors
    /// When it is there and may not be read.
    pub(crate) fn new(path: PathBuf, keep: bool) -> Result<Self, Error> {
        match open_unblocked(&path) {
            Ok(file) if keep => Ok(SlabAttribute::Open(file)),
            Ok(_) => Ok(SlabAttribute::Closed(path)),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Err(error),
            Err(_) => Ok(SlabAttribute::Absent),
        }
    }

    /// Hands its text as it is now to `parse`; nothing where there is none (any more).
    pub(crate) fn read<T>(&self, parse: impl FnOnce(&str) -> T) -> Option<T> {
        match self {
            SlabAttribute::Open(file) => parse_file_text(file, parse),
            SlabAttribute::Closed(path) => parse_file_text(&open_unblocked(path).ok()?, parse),
            SlabAttribute::Absent => None,
        }
    }
}

/// The text of the attribute at `path`; `None` where this kernel does not have it, or the cache is gone.
///
/// # Errors
/// When it is there and may not be read.
pub(crate) fn read_slab_attribute(path: PathBuf) -> Result<Option<String>, Error> {
    SlabAttribute::new(path, true).map(|attribute| attribute.read(|text| text.trim_end().to_owned()))
}

fn parse_file_text<T>(file: &File, parse: impl FnOnce(&str) -> T) -> Option<T> {
    let mut buffer = [0; LONGEST];
    let length = loop {
        match file.read_at(&mut buffer, 0) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read.ok()?,
        }
    };
    Some(parse(&String::from_utf8_lossy(buffer.get(..length)?)))
}

/// Finds which caches' counts are estimates.
#[derive(Debug)]
pub(crate) struct CountEstimates {
    root: Root,
    applies: bool,
    partial: HashMap<String, SlabAttribute>,
}

impl CountEstimates {
    /// For the kernel below `root`; one that does not say its version is taken for a new one.
    pub(crate) fn new(root: &Root) -> Self {
        let release = root.read("/proc/sys/kernel/osrelease").unwrap_or_default();
        CountEstimates {
            root: root.clone(),
            applies: kernel_estimates(Some(&release)),
            partial: HashMap::new(),
        }
    }

    /// Whether a cache can have so many partial slabs.
    pub(crate) fn can_be_estimated(&self, counts: &SlabCounts) -> bool {
        self.applies && counts.can_be_estimated()
    }

    /// Whether the number of objects in use of such a cache is an estimate. Where sysfs does not say how many slabs are
    /// partial, it may be.
    pub(crate) fn is_estimated(&mut self, cache: &str) -> bool {
        let count = self.partial_attribute(cache).read(NodeCounts::parse).and_then(Result::ok);
        if count.is_none() {
            self.partial.remove(cache);
        }
        count.is_none_or(|count| count.exceeds_counted())
    }

    fn partial_attribute(&mut self, cache: &str) -> &SlabAttribute {
        let path = self.root.path("/sys/kernel/slab").join(cache).join("partial");
        let open = || SlabAttribute::new(path, true).unwrap_or(SlabAttribute::Absent);
        self.partial.entry(cache.to_owned()).or_insert_with(open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_say_the_same_kept_open_or_not_and_nothing_where_there_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("objects");
        std::fs::write(&path, "5 N0=5\n").unwrap();
        let read = |attribute: &SlabAttribute| attribute.read(|text| NodeCounts::parse(text).unwrap().total);
        let (open, closed) =
            (SlabAttribute::new(path.clone(), true), SlabAttribute::new(path.clone(), false));
        let (open, closed) = (open.unwrap(), closed.unwrap());
        assert_eq!((read(&open), read(&closed)), (Some(5), Some(5)));
        std::fs::write(&path, "6 N0=6\n").unwrap();
        assert_eq!((read(&open), read(&closed)), (Some(6), Some(6)));
        let absent = SlabAttribute::new(directory.path().join("partial"), true).unwrap();
        assert_eq!(read(&absent), None);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&closed), None);
    }
}
