//! `/sys/kernel/slab`: a directory a cache, and a link a name that was merged into one. Which of the names
//! `/proc/slabinfo` shows is asked there. Caches come and go: a directory's inode tells a new cache from an old one of
//! the same name.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::io::Error;
use std::os::unix::fs::DirEntryExt;
use std::path::PathBuf;

use crate::monitor::proc_file::ProcFile;
use crate::monitor::slabinfo;
use crate::{ObserveError, Root};

/// As the kernel names it.
pub(crate) const PATH: &str = "/sys/kernel/slab";

/// One cache in sysfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlabDirectory {
    /// Its name in `/proc/slabinfo`; where that is not known, its first member's, or its directory's.
    pub cache: String,
    /// The directory's name: `:0000192`, `dentry`.
    pub directory: String,
    /// Tells it from a later cache of the same name.
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
    let names = |text: &str| slabinfo::slabinfo_names(text).map(str::to_owned).collect();
    let file = ProcFile::open(root, slabinfo::KIND.source);
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
