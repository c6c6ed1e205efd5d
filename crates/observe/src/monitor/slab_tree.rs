//! The folders and links of /sys/kernel/slab, one attribute file kept open, and which caches have estimated counts.
//!
//! `/sys/kernel/slab` has a directory a cache, and a link a name that was merged into one. Caches come and go: a
//! directory's inode tells a new cache from an old one of the same name. Every attribute is optional: kernels add
//! some and drop others, and a cache may go while it is read.
//!
//! Since 6.10, `/proc/slabinfo` looks at no more than 10,000 slabs of a node's partial list, half from each end,
//! and scales up (mm/slub.c, `count_partial_free_approx`). Only sysfs says how long that list is, so it is asked,
//! but only of caches that can have so long a one.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, DirEntry, File};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{DirEntryExt, FileExt};
use std::path::PathBuf;

use crate::error::ObserveError;
use crate::monitor::slabinfo;
use crate::monitor::text_file::ProcFile;
use crate::root::Root;

/// What root would add, and what remains without; part of the error of all three when they are refused.
pub(crate) const WITHOUT_ROOT: &str = "root would add objects, sizes and slabs of every cache (/proc/slabinfo), and \
     their alignment, order, aliases and exact counts (/sys/kernel/slab); the totals remain in meminfo (Slab, \
     SReclaimable, SUnreclaim) and vmstat (nr_slab_reclaimable, nr_slab_unreclaimable)";

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
        match File::open(&path) {
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
            SlabAttribute::Closed(path) => parse_file_text(&File::open(path).ok()?, parse),
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

/// A count, and its share on each node: `5 N0=2 N1=3`. The kernel leaves out nodes that have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeCounts {
    /// On all nodes.
    pub total: u64,
    /// Node and count; empty where the kernel has no nodes.
    pub nodes: Vec<(u32, u64)>,
}

impl NodeCounts {
    /// Reads such a text; nothing where it is not one.
    pub(crate) fn parse(text: &str) -> Option<NodeCounts> {
        let mut words = text.split_ascii_whitespace();
        let total = words.next()?.parse().ok()?;
        let node = |word: &str| {
            let (node, count) = word.strip_prefix('N')?.split_once('=')?;
            Some((node.parse().ok()?, count.parse().ok()?))
        };
        Some(NodeCounts { total, nodes: words.map(node).collect::<Option<_>>()? })
    }

    /// The share of `node`; nothing where the kernel does not report shares.
    pub(crate) fn on_node(&self, node: u32) -> Option<u64> {
        let share = self.nodes.iter().find(|(known, _)| *known == node).map(|(_, count)| *count);
        share.or((self.total == 0 || !self.nodes.is_empty()).then_some(0))
    }

    /// The largest share of a node.
    fn largest_share(&self) -> u64 {
        self.nodes.iter().map(|(_, count)| *count).max().unwrap_or(self.total)
    }
}

/// Partial slabs of a node that the kernel still counts one by one (MAX_PARTIAL_TO_SCAN).
const COUNTED: u64 = 10_000;

/// The kernel that began it.
const SINCE: (u32, u32) = (6, 10);

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
        let applies = parse_kernel_version(&release).is_none_or(|version| version >= SINCE);
        CountEstimates { root: root.clone(), applies, partial: HashMap::new() }
    }

    /// Whether a cache, of whose objects `free` are not in use and which has `slabs`, can have so many partial slabs.
    pub(crate) fn can_be_estimated(&self, free: u64, slabs: u64) -> bool {
        // Every partial slab has a free object at least.
        self.applies && slabs > COUNTED && free > COUNTED
    }

    /// Whether the number of objects in use of such a cache is an estimate. Where sysfs does not say how many slabs are
    /// partial, it may be.
    pub(crate) fn is_estimated(&mut self, cache: &str) -> bool {
        let count = self.partial_attribute(cache).read(NodeCounts::parse).flatten();
        if count.is_none() {
            self.partial.remove(cache);
        }
        count.is_none_or(|count| count.largest_share() > COUNTED)
    }

    fn partial_attribute(&mut self, cache: &str) -> &SlabAttribute {
        let path = self.root.path("/sys/kernel/slab").join(cache).join("partial");
        let open = || SlabAttribute::new(path, true).unwrap_or(SlabAttribute::Absent);
        self.partial.entry(cache.to_owned()).or_insert_with(open)
    }
}

/// `6.18.44-fc-v445`
fn parse_kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_their_nodes() {
        let count = NodeCounts::parse("5 N0=2 N3=3\n").unwrap();
        assert_eq!(
            (count.total, count.on_node(0), count.on_node(1), count.on_node(3)),
            (5, Some(2), Some(0), Some(3))
        );
        assert_eq!(count.largest_share(), 3);
        let without_nodes = NodeCounts::parse("5\n").unwrap();
        assert_eq!((without_nodes.on_node(0), without_nodes.largest_share()), (None, 5));
        assert_eq!(NodeCounts::parse("0\n").unwrap().on_node(7), Some(0));
        for strange in ["", "x", "5 N0", "5 N0=x", "5 0=5", "-1", "5 C0=5"] {
            assert_eq!(NodeCounts::parse(strange), None, "{strange}");
        }
    }

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

    #[test]
    fn versions() {
        assert_eq!(parse_kernel_version("6.18.44-fc-v445"), Some((6, 18)));
        assert_eq!(parse_kernel_version("5.0.0-31-generic"), Some((5, 0)));
        assert_eq!(parse_kernel_version("6"), None);
        assert_eq!(parse_kernel_version(""), None);
    }
}
