//! Series `slab-exact` on a clock: the counts of each cache as they are, where `/proc/slabinfo` estimates.
//!
//! The kernel walks the partial lists of every node for `objects` and `objects_partial`, under their locks, so this
//! is for long intervals. A cache's counts lie in files of their own: read one after the other, they may contradict
//! each other, and are then read again a few times.

use std::collections::HashMap;

use perflab_formats::kernel::slab_counts::CountConsistency;
use perflab_formats::kernel::sysfs_slab::{COUNT_ATTRIBUTES, ExactCounts, NodeCounts, SLAB_EXACT};
use perflab_model::{CellRow, SeriesSchema};
use rustix::process::{Resource, getrlimit};

use crate::monitor::context::{Monitor, MonitorContext};
use crate::monitor::slab_tree::{REREADS, SlabAttribute, SlabDirectory, SysfsSlabTree, read_slab_attribute};
use crate::{ObserveError, Root};

struct SlabExactMonitor {
    schema: SeriesSchema,
    tree: SysfsSlabTree,
    /// Whether the machine has several; nothing where it does not say.
    several_nodes: Option<bool>,
    caches: Vec<SlabExactCache>,
}

/// One cache with its files.
struct SlabExactCache {
    place: (String, u64),
    name: String,
    files: [SlabAttribute; COUNT_ATTRIBUTES.len()],
    per_slab: Option<u64>,
    /// Found by two readings to have slabs of a lower order.
    falls_back: bool,
}

pub(crate) fn open_slab_exact(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let tree = SysfsSlabTree::open(opening.root)?;
    let several_nodes = has_several_nodes(opening.root);
    let mut exact =
        SlabExactMonitor { schema: opening.declared_schema(), tree, several_nodes, caches: Vec::new() };
    exact.reopen_caches()?;
    Ok(Box::new(exact))
}

/// Where there is one node only, its row would say what the row of all nodes does.
fn has_several_nodes(root: &Root) -> Option<bool> {
    Some(root.read("/sys/devices/system/node/online").ok()?.contains([',', '-']))
}

impl Monitor for SlabExactMonitor {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn read_rows(&mut self, rows: &mut Vec<CellRow>) -> Result<(), ObserveError> {
        if self.tree.refresh()? {
            self.reopen_caches()?;
        }
        for cache in &mut self.caches {
            let (reading, flags) = cache.read_consistent_counts();
            // A cache that went just now has no counts left.
            if !reading.is_empty() {
                let by_node = self.several_nodes.unwrap_or_else(|| reading.names_several_nodes());
                reading.append_rows(&cache.name, &flags, by_node, rows);
            }
        }
        Ok(())
    }
}

impl SlabExactMonitor {
    /// Opens the files of caches that are new, and closes those of caches that are gone.
    fn reopen_caches(&mut self) -> Result<(), ObserveError> {
        let known = self.caches.drain(..).map(|cache| (cache.place.clone(), cache));
        let mut known: HashMap<(String, u64), SlabExactCache> = known.collect();
        let mut left = count_spare_descriptors();
        for place in self.tree.directories() {
            let keep = left >= COUNT_ATTRIBUTES.len();
            let cache = match known.remove(&(place.directory.clone(), place.inode)) {
                Some(cache) => SlabExactCache { name: place.cache.clone(), ..cache },
                None => SlabExactCache::open(place, keep)?,
            };
            left = left.saturating_sub(cache.descriptor_count());
            self.caches.push(cache);
        }
        Ok(())
    }
}

/// Half of what this process may open; the rest is for others.
fn count_spare_descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit / 2).unwrap_or(usize::MAX))
}

impl SlabExactCache {
    fn open(place: &SlabDirectory, keep: bool) -> Result<Self, ObserveError> {
        let refused = |name: &str, source| {
            ObserveError::read_failed(&format!("{}/{}/{name}", SLAB_EXACT.source, place.directory), source)
        };
        let mut files = [const { SlabAttribute::Absent }; COUNT_ATTRIBUTES.len()];
        for (file, name) in files.iter_mut().zip(COUNT_ATTRIBUTES) {
            *file =
                SlabAttribute::new(place.path.join(name), keep).map_err(|source| refused(name, source))?;
        }
        // The kernel keeps a page for each open file from its first reading on: it has them before anything is recorded, so
        // that they are not taken for growth.
        for file in files.iter().filter(|file| matches!(file, SlabAttribute::Open(_))) {
            file.read(|_| ());
        }
        let name = "objs_per_slab";
        let per_slab = read_slab_attribute(place.path.join(name)).map_err(|source| refused(name, source))?;
        let per_slab = per_slab.and_then(|text| text.parse().ok());
        let key = (place.directory.clone(), place.inode);
        Ok(SlabExactCache { place: key, name: place.cache.clone(), files, per_slab, falls_back: false })
    }

    fn descriptor_count(&self) -> usize {
        self.files.iter().filter(|file| matches!(file, SlabAttribute::Open(_))).count()
    }

    /// Its counts, read again while they contradict themselves, and their flags.
    fn read_consistent_counts(&mut self) -> (ExactCounts, Vec<&'static str>) {
        let mut reading = self.read_counts();
        for _ in 0..REREADS {
            if !self.is_doubtful(&reading) {
                break;
            }
            let earlier = std::mem::replace(&mut reading, self.read_counts());
            self.falls_back |= reading.shows_lower_order(&earlier);
        }
        let malformed = reading.is_malformed().then_some("malformed");
        let flags = [malformed, self.is_doubtful(&reading).then_some("torn")];
        (reading, flags.into_iter().flatten().collect())
    }

    fn is_doubtful(&self, reading: &ExactCounts) -> bool {
        match reading.consistency() {
            CountConsistency::Sound => false,
            CountConsistency::Short => !self.falls_back,
            CountConsistency::Torn(_) => true,
        }
    }

    fn read_counts(&self) -> ExactCounts {
        ExactCounts::new(self.per_slab, self.files.each_ref().map(|file| file.read(NodeCounts::parse)))
    }
}
