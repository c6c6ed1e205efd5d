//! `/sys/kernel/slab`: the counts of each cache as they are, where `/proc/slabinfo` estimates: a row a cache for all nodes
//! (`node` is -1), and where the machine has several, a row a node.
//!
//! The kernel walks the partial lists of every node for `objects` and `objects_partial`, under their locks, so this is
//! for slow clocks. A cache's counts lie in files of their own: read one after the other, they may contradict each
//! other, and are then read again a few times. `flags` are those of the series `slabinfo`, without `approximate`.

use std::collections::{BTreeSet, HashMap};

use perflab_model::{Cell, Row, SeriesSchema};
use rustix::process::{Resource, getrlimit};

use super::column::Declared;
use super::kind::{Monitor, MonitorKind, Opening};
use super::slab::{Attribute, Count, Counts, Place, REREADS, Soundness, Tree, WITHOUT_ROOT, flag, said};
use crate::{ObserveError, Root};

pub(super) const KIND: MonitorKind = MonitorKind {
    name: "slab-exact",
    source: "/sys/kernel/slab",
    about: "objects, slabs and partial slabs of every slab cache, counted and not estimated, by node; costly",
    needs: "root",
    without: WITHOUT_ROOT,
    columns: COLUMNS,
    open,
};

const COLUMNS: &[Declared] = &[
    Declared::key("cache"),
    Declared::gauge("node", "1"),
    Declared::gauge("objects", "objects"),
    Declared::gauge("total_objects", "objects"),
    Declared::gauge("slabs", "slabs"),
    Declared::gauge("objects_partial", "objects"),
    Declared::gauge("partial", "slabs"),
    Declared::gauge("cpu_slabs", "slabs"),
    Declared::key("flags"),
];

/// Those of the columns that are attributes of that name.
const ATTRIBUTES: [&str; 6] =
    ["objects", "total_objects", "slabs", "objects_partial", "partial", "cpu_slabs"];

/// One reading of [`ATTRIBUTES`]: what each said, `Err` where it was no count.
type Reading = [Option<Result<Count, ()>>; ATTRIBUTES.len()];

struct SlabExact {
    schema: SeriesSchema,
    tree: Tree,
    several_nodes: bool,
    caches: Vec<Cache>,
}

/// One cache with its files.
struct Cache {
    place: (String, u64),
    name: String,
    files: [Attribute; ATTRIBUTES.len()],
    per_slab: Option<u64>,
    /// Found by two readings to have slabs of a lower order.
    falls_back: bool,
}

fn open(opening: &Opening<'_>) -> Result<Box<dyn Monitor>, ObserveError> {
    let tree = Tree::open(opening.root)?;
    let several_nodes = several_nodes(opening.root);
    let mut exact = SlabExact { schema: opening.declared(), tree, several_nodes, caches: Vec::new() };
    exact.reopen()?;
    Ok(Box::new(exact))
}

/// Where there is one node only, its row would say what the row of all nodes does.
fn several_nodes(root: &Root) -> bool {
    root.read("/sys/devices/system/node/online").is_ok_and(|list| list.contains([',', '-']))
}

impl Monitor for SlabExact {
    fn schema(&self) -> &SeriesSchema {
        &self.schema
    }

    fn sample(&mut self, rows: &mut Vec<Row>) -> Result<(), ObserveError> {
        if self.tree.refresh()? {
            self.reopen()?;
        }
        for cache in &mut self.caches {
            let (reading, flags) = cache.read();
            // A cache that went just now has no counts left.
            if reading.iter().any(Option::is_some) {
                rows_of(&cache.name, &reading, &flags, self.several_nodes, rows);
            }
        }
        Ok(())
    }
}

impl SlabExact {
    /// Opens the files of caches that are new, and closes those of caches that are gone.
    fn reopen(&mut self) -> Result<(), ObserveError> {
        let known = self.caches.drain(..).map(|cache| (cache.place.clone(), cache));
        let mut known: HashMap<(String, u64), Cache> = known.collect();
        let mut left = spare_descriptors();
        for place in self.tree.places() {
            let keep = left >= ATTRIBUTES.len();
            let cache = match known.remove(&(place.directory.clone(), place.inode)) {
                Some(cache) => Cache { name: place.cache.clone(), ..cache },
                None => Cache::open(place, keep)?,
            };
            left = left.saturating_sub(cache.descriptors());
            self.caches.push(cache);
        }
        Ok(())
    }
}

/// Half of what this process may open; the rest is for others.
fn spare_descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit / 2).unwrap_or(usize::MAX))
}

impl Cache {
    fn open(place: &Place, keep: bool) -> Result<Self, ObserveError> {
        let refused = |name: &str, source| {
            ObserveError::read(&format!("{}/{}/{name}", KIND.source, place.directory), source)
        };
        let mut files = [const { Attribute::Absent }; ATTRIBUTES.len()];
        for (file, name) in files.iter_mut().zip(ATTRIBUTES) {
            *file = Attribute::new(place.path.join(name), keep).map_err(|source| refused(name, source))?;
        }
        // The kernel keeps a page for each open file from its first reading on: it has them before anything is recorded, so
        // that they are not taken for growth.
        for file in files.iter().filter(|file| matches!(file, Attribute::Open(_))) {
            file.read(|_| ());
        }
        let name = "objs_per_slab";
        let per_slab = said(place.path.join(name)).map_err(|source| refused(name, source))?;
        let per_slab = per_slab.and_then(|text| text.parse().ok());
        let key = (place.directory.clone(), place.inode);
        Ok(Cache { place: key, name: place.cache.clone(), files, per_slab, falls_back: false })
    }

    fn descriptors(&self) -> usize {
        self.files.iter().filter(|file| matches!(file, Attribute::Open(_))).count()
    }

    /// Its counts, read again while they contradict themselves, and their flags.
    fn read(&mut self) -> (Reading, Vec<&'static str>) {
        let mut reading = self.once();
        let mut soundness = self.soundness(&reading);
        for _ in 0..REREADS {
            if !self.doubts(soundness) {
                break;
            }
            let earlier = std::mem::replace(&mut reading, self.once());
            let pair = self.counts(&reading).zip(self.counts(&earlier));
            self.falls_back |= pair.is_some_and(|(now, earlier)| now.falls_back(&earlier));
            soundness = self.soundness(&reading);
        }
        let malformed = reading.iter().any(|count| matches!(count, Some(Err(())))).then_some("malformed");
        let flags = [malformed, self.doubts(soundness).then_some("torn")];
        (reading, flags.into_iter().flatten().collect())
    }

    fn doubts(&self, soundness: Soundness) -> bool {
        soundness == Soundness::Torn || (soundness == Soundness::Short && !self.falls_back)
    }

    fn once(&self) -> Reading {
        let mut reading = [const { None }; ATTRIBUTES.len()];
        for (cell, file) in reading.iter_mut().zip(&self.files) {
            *cell = file.read(|text| Count::parse(text).ok_or(()));
        }
        reading
    }

    /// Where an attribute is missing, nothing is known against the others.
    fn soundness(&self, reading: &Reading) -> Soundness {
        let [objects, total_objects, slabs, objects_partial, partial, _] = reading.each_ref().map(total);
        let within = |part: Option<u64>, whole: Option<u64>| part.zip(whole).is_none_or(|(p, w)| p <= w);
        let parts =
            within(objects, total_objects) && within(objects_partial, objects) && within(partial, slabs);
        let counts = self.counts(reading).map_or(Soundness::Sound, |counts| counts.soundness());
        if parts { counts } else { Soundness::Torn }
    }

    fn counts(&self, reading: &Reading) -> Option<Counts> {
        let [objects, total_objects, slabs, ..] = reading.each_ref().map(total);
        Some(Counts { in_use: objects?, objects: total_objects?, per_slab: self.per_slab?, slabs: slabs? })
    }
}

fn count(said: &Option<Result<Count, ()>>) -> Option<&Count> {
    said.as_ref()?.as_ref().ok()
}

fn total(said: &Option<Result<Count, ()>>) -> Option<u64> {
    count(said).map(|count| count.total)
}

fn rows_of(name: &str, reading: &Reading, flags: &[&str], several_nodes: bool, rows: &mut Vec<Row>) {
    rows.push(row(name, -1, flags, reading.each_ref().map(total)));
    let counts = || reading.iter().filter_map(count);
    let nodes =
        counts().filter(|_| several_nodes).flat_map(|count| count.nodes.iter().map(|(node, _)| *node));
    let nodes: BTreeSet<u32> = nodes.collect();
    rows.extend(nodes.into_iter().map(|node| {
        let share = |said| count(said).and_then(|count| count.on(node));
        row(name, i64::from(node), flags, reading.each_ref().map(share))
    }));
}

fn row(name: &str, node: i64, flags: &[&str], counts: [Option<u64>; ATTRIBUTES.len()]) -> Row {
    let mut row = Row::with_capacity(COLUMNS.len());
    row.extend([Cell::Text(name.into()), Cell::Int(node)]);
    let integer = |count: u64| i64::try_from(count).ok().map(Cell::Int);
    row.extend(counts.map(|count| count.and_then(integer).unwrap_or(Cell::Missing)));
    row.push(Cell::Text(String::new()));
    flags.iter().for_each(|text| flag(&mut row, text));
    row
}

/// The rows of a cache whose every count says `text`: what the property tests feed.
#[cfg(test)]
pub(super) fn parse(text: &str, rows: &mut Vec<Row>) {
    let reading = ATTRIBUTES.map(|_| Some(Count::parse(text).ok_or(())));
    rows_of("cache", &reading, &[], true, rows);
}
