//! One file below `/sys/kernel/slab/CACHE`, and the counts that stand in some of them. Every attribute is optional:
//! kernels add some and drop others, and a cache may go while it is read.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

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

    /// The share of `node`; nothing where the kernel does not tell shares.
    pub(crate) fn on_node(&self, node: u32) -> Option<u64> {
        let share = self.nodes.iter().find(|(known, _)| *known == node).map(|(_, count)| *count);
        share.or((self.total == 0 || !self.nodes.is_empty()).then_some(0))
    }

    /// The largest share of a node.
    pub(crate) fn largest_share(&self) -> u64 {
        self.nodes.iter().map(|(_, count)| *count).max().unwrap_or(self.total)
    }
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
}
