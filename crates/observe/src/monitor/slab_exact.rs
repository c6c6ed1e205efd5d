//! Series `slab-exact` (`/sys/kernel/slab`): the counts of each cache as they are, where `/proc/slabinfo`
//! estimates.
//!
//! A row a cache for all nodes (`node` is -1), and where the machine has several, a row a node.
//!
//! The kernel walks the partial lists of every node for `objects` and `objects_partial`, under their locks, so this
//! is for long intervals. A cache's counts lie in files of their own: read one after the other, they may contradict
//! each other, and are then read again a few times. `flags` are those of the series `slabinfo`, without
//! `approximate`.

use std::collections::{BTreeSet, HashMap};

use perflab_model::{CellRow, SeriesSchema, TableCell};
use rustix::process::{Resource, getrlimit};

use crate::monitor::registry::{Monitor, MonitorContext, MonitorDescriptor};
use crate::monitor::slab_counts::{CountConsistency, REREADS, SlabCounts, add_row_flag};
use crate::monitor::slab_tree::{
    NodeCounts, SlabAttribute, SlabDirectory, SysfsSlabTree, WITHOUT_ROOT, read_slab_attribute,
};
use crate::monitor::text_format::DeclaredColumn;
use crate::{ObserveError, Root};

pub(crate) const KIND: MonitorDescriptor = MonitorDescriptor {
    name: "slab-exact",
    source: "/sys/kernel/slab",
    about: "objects, slabs and partial slabs of every slab cache, counted and not estimated, by node; costly",
    needs: "root",
    without: WITHOUT_ROOT,
    columns: COLUMNS,
    open: open_slab_exact,
};

const COLUMNS: &[DeclaredColumn] = &[
    DeclaredColumn::key("cache"),
    DeclaredColumn::gauge("node", "1"),
    DeclaredColumn::gauge("objects", "objects"),
    DeclaredColumn::gauge("total_objects", "objects"),
    DeclaredColumn::gauge("slabs", "slabs"),
    DeclaredColumn::gauge("objects_partial", "objects"),
    DeclaredColumn::gauge("partial", "slabs"),
    DeclaredColumn::gauge("cpu_slabs", "slabs"),
    DeclaredColumn::key("flags"),
];

/// Those of the columns that are attributes of that name.
const ATTRIBUTES: [&str; 6] =
    ["objects", "total_objects", "slabs", "objects_partial", "partial", "cpu_slabs"];

/// One reading of [`ATTRIBUTES`]: what each held, `Err` where it was not a count.
type SlabExactReading = [Option<Result<NodeCounts, ()>>; ATTRIBUTES.len()];

struct SlabExactMonitor {
    schema: SeriesSchema,
    tree: SysfsSlabTree,
    several_nodes: bool,
    caches: Vec<SlabExactCache>,
}

/// One cache with its files.
struct SlabExactCache {
    place: (String, u64),
    name: String,
    files: [SlabAttribute; ATTRIBUTES.len()],
    per_slab: Option<u64>,
    /// Found by two readings to have slabs of a lower order.
    falls_back: bool,
}

fn open_slab_exact(opening: &MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let tree = SysfsSlabTree::open(opening.root)?;
    let several_nodes = has_several_nodes(opening.root);
    let mut exact =
        SlabExactMonitor { schema: opening.declared_schema(), tree, several_nodes, caches: Vec::new() };
    exact.reopen_caches()?;
    Ok(Box::new(exact))
}

/// Where there is one node only, its row would say what the row of all nodes does.
fn has_several_nodes(root: &Root) -> bool {
    root.read("/sys/devices/system/node/online").is_ok_and(|list| list.contains([',', '-']))
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
            if reading.iter().any(Option::is_some) {
                append_exact_rows(&cache.name, &reading, &flags, self.several_nodes, rows);
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
            let keep = left >= ATTRIBUTES.len();
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
            ObserveError::read_failed(&format!("{}/{}/{name}", KIND.source, place.directory), source)
        };
        let mut files = [const { SlabAttribute::Absent }; ATTRIBUTES.len()];
        for (file, name) in files.iter_mut().zip(ATTRIBUTES) {
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
    fn read_consistent_counts(&mut self) -> (SlabExactReading, Vec<&'static str>) {
        let mut reading = self.read_counts();
        let mut soundness = self.consistency(&reading);
        for _ in 0..REREADS {
            if !self.is_doubtful(soundness) {
                break;
            }
            let earlier = std::mem::replace(&mut reading, self.read_counts());
            let pair = self.slab_counts(&reading).zip(self.slab_counts(&earlier));
            self.falls_back |= pair.is_some_and(|(now, earlier)| now.shows_lower_order(&earlier));
            soundness = self.consistency(&reading);
        }
        let malformed = reading.iter().any(|count| matches!(count, Some(Err(())))).then_some("malformed");
        let flags = [malformed, self.is_doubtful(soundness).then_some("torn")];
        (reading, flags.into_iter().flatten().collect())
    }

    fn is_doubtful(&self, soundness: CountConsistency) -> bool {
        soundness == CountConsistency::Torn || (soundness == CountConsistency::Short && !self.falls_back)
    }

    fn read_counts(&self) -> SlabExactReading {
        let mut reading = [const { None }; ATTRIBUTES.len()];
        for (cell, file) in reading.iter_mut().zip(&self.files) {
            *cell = file.read(|text| NodeCounts::parse(text).ok_or(()));
        }
        reading
    }

    /// Where an attribute is missing, nothing is known against the others.
    fn consistency(&self, reading: &SlabExactReading) -> CountConsistency {
        let [objects, total_objects, slabs, objects_partial, partial, _] =
            reading.each_ref().map(total_count);
        let within = |part: Option<u64>, whole: Option<u64>| part.zip(whole).is_none_or(|(p, w)| p <= w);
        let parts =
            within(objects, total_objects) && within(objects_partial, objects) && within(partial, slabs);
        let counts = self.slab_counts(reading).map_or(CountConsistency::Sound, |counts| counts.consistency());
        if parts { counts } else { CountConsistency::Torn }
    }

    fn slab_counts(&self, reading: &SlabExactReading) -> Option<SlabCounts> {
        let [objects, total_objects, slabs, ..] = reading.each_ref().map(total_count);
        Some(SlabCounts {
            in_use: objects?,
            objects: total_objects?,
            per_slab: self.per_slab?,
            slabs: slabs?,
        })
    }
}

fn valid_count(said: &Option<Result<NodeCounts, ()>>) -> Option<&NodeCounts> {
    said.as_ref()?.as_ref().ok()
}

fn total_count(said: &Option<Result<NodeCounts, ()>>) -> Option<u64> {
    valid_count(said).map(|count| count.total)
}

fn append_exact_rows(
    name: &str,
    reading: &SlabExactReading,
    flags: &[&str],
    several_nodes: bool,
    rows: &mut Vec<CellRow>,
) {
    rows.push(build_exact_row(name, -1, flags, reading.each_ref().map(total_count)));
    let counts = || reading.iter().filter_map(valid_count);
    let nodes =
        counts().filter(|_| several_nodes).flat_map(|count| count.nodes.iter().map(|(node, _)| *node));
    let nodes: BTreeSet<u32> = nodes.collect();
    rows.extend(nodes.into_iter().map(|node| {
        let share = |said| valid_count(said).and_then(|count| count.on_node(node));
        build_exact_row(name, i64::from(node), flags, reading.each_ref().map(share))
    }));
}

fn build_exact_row(
    name: &str,
    node: i64,
    flags: &[&str],
    counts: [Option<u64>; ATTRIBUTES.len()],
) -> CellRow {
    let mut row = CellRow::with_capacity(COLUMNS.len());
    row.extend([TableCell::Text(name.into()), TableCell::Int(node)]);
    let integer = |count: u64| i64::try_from(count).ok().map(TableCell::Int);
    row.extend(counts.map(|count| count.and_then(integer).unwrap_or(TableCell::Missing)));
    row.push(TableCell::Text(String::new()));
    flags.iter().for_each(|text| add_row_flag(&mut row, text));
    row
}

/// The rows of a cache whose every count is `text`: what the property tests feed.
#[cfg(test)]
pub(crate) fn parse_slab_exact_rows(text: &str, rows: &mut Vec<CellRow>) {
    let reading = ATTRIBUTES.map(|_| Some(NodeCounts::parse(text).ok_or(())));
    append_exact_rows("cache", &reading, &[], true, rows);
}
