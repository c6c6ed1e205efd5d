//! Where the kernel estimates the objects in use: since 6.10, `/proc/slabinfo` looks at no more than 10,000 slabs of a
//! node's partial list, half from each end, and scales up (mm/slub.c, `count_partial_free_approx`). Only sysfs tells how
//! long that list is, so it is asked, but only of caches that can have so long a one.

use std::collections::HashMap;

use super::attribute::{NodeCounts, SlabAttribute};
use crate::Root;

/// Partial slabs of a node that the kernel still counts one by one (MAX_PARTIAL_TO_SCAN).
const COUNTED: u64 = 10_000;

/// The kernel that began it.
const SINCE: (u32, u32) = (6, 10);

/// Tells which caches' counts are estimates.
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
    fn versions() {
        assert_eq!(parse_kernel_version("6.18.44-fc-v445"), Some((6, 18)));
        assert_eq!(parse_kernel_version("5.0.0-31-generic"), Some((5, 0)));
        assert_eq!(parse_kernel_version("6"), None);
        assert_eq!(parse_kernel_version(""), None);
    }
}
