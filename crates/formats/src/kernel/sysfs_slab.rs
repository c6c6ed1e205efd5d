//! `/sys/kernel/slab`: the series `slab-caches` (what does not change about a cache) and `slab-exact` (its counts as they
//! are, where `/proc/slabinfo` estimates).
//!
//! There is a directory a cache, and a link a name that was merged into one. `object_size` is what the creator asked
//! for, `slab_size` the same padded (the `objsize` of `/proc/slabinfo`); `objs_per_slab` and `order` are those of the
//! preferred order. Every attribute is `Missing` where this kernel does not have it
//! (Documentation/ABI/testing/sysfs-kernel-slab).
//!
//! Of `slab-exact` there is a row a cache for all nodes (`node` is -1), and where the machine has several, a row a node.
//! A cache's counts lie in files of their own: read one after the other, they may contradict each other. `flags` are
//! those of the series `slabinfo`, without `approximate`.

use std::collections::BTreeSet;

use perflab_model::{CellRow, ColumnRef, DeclaredColumn, RowSchema, TableCell};

use crate::column::parse_cell;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::slab_counts::{CountConsistency, MOST_COUNTED, SlabCounts};

/// What root would add, and what remains without; part of the error of slabinfo and sysfs when they are refused.
pub const WITHOUT_ROOT: &str = "root would add objects, sizes and slabs of every cache (/proc/slabinfo), and \
     their alignment, order, aliases and exact counts (/sys/kernel/slab); the totals remain in meminfo (Slab, \
     SReclaimable, SUnreclaim) and vmstat (nr_slab_reclaimable, nr_slab_unreclaimable)";

/// Its attributes that do not change.
pub const SLAB_CACHES: KernelFile = KernelFile {
    name: SlabCacheRow::NAME,
    source: "/sys/kernel/slab",
    about: "size, alignment, order, flags and merged names of every slab cache; again whenever caches come or go",
    needs: "root",
    without: WITHOUT_ROOT,
    provided_by: "CONFIG_SLUB and CONFIG_SYSFS",
    columns: SlabCacheRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// Its counts.
pub const SLAB_EXACT: KernelFile = KernelFile {
    name: SlabExactRow::NAME,
    source: "/sys/kernel/slab",
    about: "objects, slabs and partial slabs of every slab cache, counted and not estimated, by node; costly",
    needs: "root",
    without: WITHOUT_ROOT,
    provided_by: "CONFIG_SLUB and CONFIG_SYSFS",
    columns: SlabExactRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

const fn flag_column(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::gauge(name, "1")
}

/// A row a cache, of what does not change about it.
#[derive(Debug, Clone, Copy)]
pub struct SlabCacheRow;

impl RowSchema for SlabCacheRow {
    const NAME: &'static str = "slab-caches";
    const COLUMNS: &'static [DeclaredColumn] = &[
        DeclaredColumn::key("cache"),
        DeclaredColumn::key("directory"),
        DeclaredColumn::key("aliases"),
        DeclaredColumn::gauge("page_size", "bytes"),
        DeclaredColumn::gauge("object_size", "bytes"),
        DeclaredColumn::gauge("slab_size", "bytes"),
        DeclaredColumn::gauge("objs_per_slab", "objects"),
        DeclaredColumn::gauge("order", "1"),
        DeclaredColumn::gauge("align", "bytes"),
        flag_column("reclaim_account"),
        flag_column("hwcache_align"),
        flag_column("destroy_by_rcu"),
        flag_column("cache_dma"),
        DeclaredColumn::key("ctor"),
        DeclaredColumn::gauge("cpu_partial", "objects"),
        DeclaredColumn::gauge("min_partial", "slabs"),
        DeclaredColumn::gauge("sheaf_capacity", "objects"),
        DeclaredColumn::key("flags"),
    ];
}

impl SlabCacheRow {
    /// The cache.
    pub const CACHE: ColumnRef<Self, str> = ColumnRef::named("cache");

    /// Its directory.
    pub const DIRECTORY: ColumnRef<Self, str> = ColumnRef::named("directory");

    /// Names that were merged into it, comma separated.
    pub const ALIASES: ColumnRef<Self, str> = ColumnRef::named("aliases");

    /// Bytes of a page.
    pub const PAGE_SIZE: ColumnRef<Self, i64> = ColumnRef::named("page_size");

    /// Bytes that its creator asked for.
    pub const OBJECT_SIZE: ColumnRef<Self, i64> = ColumnRef::named("object_size");

    /// The same, padded.
    pub const SLAB_SIZE: ColumnRef<Self, i64> = ColumnRef::named("slab_size");

    /// Objects of a slab.
    pub const OBJS_PER_SLAB: ColumnRef<Self, i64> = ColumnRef::named("objs_per_slab");

    /// Binary logarithm of the pages of a slab.
    pub const ORDER: ColumnRef<Self, i64> = ColumnRef::named("order");

    /// Bytes to which objects are aligned.
    pub const ALIGN: ColumnRef<Self, i64> = ColumnRef::named("align");

    /// Whether the kernel counts it as reclaimable.
    pub const RECLAIM_ACCOUNT: ColumnRef<Self, i64> = ColumnRef::named("reclaim_account");

    /// Objects that a CPU may keep in partial slabs.
    pub const CPU_PARTIAL: ColumnRef<Self, i64> = ColumnRef::named("cpu_partial");

    /// Objects of a sheaf.
    pub const SHEAF_CAPACITY: ColumnRef<Self, i64> = ColumnRef::named("sheaf_capacity");

    /// What is wrong with the row.
    pub const FLAGS: ColumnRef<Self, str> = ColumnRef::named("flags");
}

/// The columns of `slab-caches` that are attributes of that name.
pub fn cache_attributes() -> &'static [DeclaredColumn] {
    SlabCacheRow::COLUMNS
        .get(SlabCacheRow::OBJECT_SIZE.index()..SlabCacheRow::FLAGS.index())
        .unwrap_or_default()
}

/// The row of a cache's attributes, and its flags; `texts` has what each of [`cache_attributes`] says.
pub fn parse_cache_attributes(texts: &[Option<String>]) -> CellRow {
    let mut sound = true;
    let mut row = SlabCacheRow::missing_row();
    let cells = row.iter_mut().skip(SlabCacheRow::OBJECT_SIZE.index());
    for ((cell, column), text) in cells.zip(cache_attributes()).zip(texts) {
        let parsed = text.as_deref().map(|text| parse_cell(column, text));
        sound &= parsed != Some(None);
        *cell = parsed.flatten().unwrap_or(TableCell::Missing);
    }
    SlabCacheRow::FLAGS.set(&mut row, if sound { "" } else { "malformed" });
    row
}

/// A row of `slab-caches`: that of [`parse_cache_attributes`], with who the cache is and the size of a page.
pub fn make_cache_row(
    cache: &str,
    directory: &str,
    aliases: &[String],
    page_size: Option<u64>,
    attributes: &[TableCell],
) -> CellRow {
    let mut row = attributes.to_vec();
    SlabCacheRow::CACHE.set(&mut row, cache);
    SlabCacheRow::DIRECTORY.set(&mut row, directory);
    SlabCacheRow::ALIASES.set(&mut row, aliases.join(",").as_str());
    SlabCacheRow::PAGE_SIZE.set(&mut row, page_size.and_then(|size| i64::try_from(size).ok()));
    row
}

/// A row a cache, and one for each node of several.
#[derive(Debug, Clone, Copy)]
pub struct SlabExactRow;

impl RowSchema for SlabExactRow {
    const NAME: &'static str = "slab-exact";
    const COLUMNS: &'static [DeclaredColumn] = &[
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
}

impl SlabExactRow {
    /// The cache.
    pub const CACHE: ColumnRef<Self, str> = ColumnRef::named("cache");

    /// The node; -1 for all of them.
    pub const NODE: ColumnRef<Self, i64> = ColumnRef::named("node");

    /// Objects in use.
    pub const OBJECTS: ColumnRef<Self, i64> = ColumnRef::named("objects");

    /// Room for objects.
    pub const TOTAL_OBJECTS: ColumnRef<Self, i64> = ColumnRef::named("total_objects");

    /// Slabs.
    pub const SLABS: ColumnRef<Self, i64> = ColumnRef::named("slabs");

    /// Objects in use in partial slabs.
    pub const OBJECTS_PARTIAL: ColumnRef<Self, i64> = ColumnRef::named("objects_partial");

    /// Partial slabs.
    pub const PARTIAL: ColumnRef<Self, i64> = ColumnRef::named("partial");

    /// Slabs that CPUs hold.
    pub const CPU_SLABS: ColumnRef<Self, i64> = ColumnRef::named("cpu_slabs");

    /// What is wrong with the row.
    pub const FLAGS: ColumnRef<Self, str> = ColumnRef::named("flags");
}

/// Those of the columns of `slab-exact` that are attributes of that name.
pub const COUNT_ATTRIBUTES: [&str; COUNTS.len()] = [
    SlabExactRow::OBJECTS.name(),
    SlabExactRow::TOTAL_OBJECTS.name(),
    SlabExactRow::SLABS.name(),
    SlabExactRow::OBJECTS_PARTIAL.name(),
    SlabExactRow::PARTIAL.name(),
    SlabExactRow::CPU_SLABS.name(),
];

/// The columns of those.
const COUNTS: [ColumnRef<SlabExactRow, i64>; 6] = [
    SlabExactRow::OBJECTS,
    SlabExactRow::TOTAL_OBJECTS,
    SlabExactRow::SLABS,
    SlabExactRow::OBJECTS_PARTIAL,
    SlabExactRow::PARTIAL,
    SlabExactRow::CPU_SLABS,
];

/// A count, and its share on each node: `5 N0=2 N1=3`. The kernel leaves out nodes that have none (mm/slub.c,
/// `show_slab_objects`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeCounts {
    /// On all nodes.
    pub total: u64,
    /// Node and count; empty where the kernel has no nodes.
    pub nodes: Vec<(u32, u64)>,
}

impl NodeCounts {
    /// Reads such a text.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str) -> Result<NodeCounts, MalformedCount> {
        let mut words = text.split_ascii_whitespace();
        let total = words.next().and_then(|word| word.parse().ok()).ok_or(MalformedCount)?;
        let node = |word: &str| {
            let (node, count) = word.strip_prefix('N')?.split_once('=')?;
            Some((node.parse().ok()?, count.parse().ok()?))
        };
        Ok(NodeCounts { total, nodes: words.map(node).collect::<Option<_>>().ok_or(MalformedCount)? })
    }

    /// The share of `node`; nothing where the kernel does not report shares.
    pub fn on_node(&self, node: u32) -> Option<u64> {
        let share = self.nodes.iter().find(|(known, _)| *known == node).map(|(_, count)| *count);
        share.or((self.total == 0 || !self.nodes.is_empty()).then_some(0))
    }

    /// Whether some node has more than the kernel counts one by one.
    pub fn exceeds_counted(&self) -> bool {
        self.nodes.iter().map(|(_, count)| *count).max().unwrap_or(self.total) > MOST_COUNTED
    }
}

/// One reading of a cache's counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactCounts {
    counts: [Option<Result<NodeCounts, MalformedCount>>; COUNT_ATTRIBUTES.len()],
    /// Objects of a slab of the preferred order.
    per_slab: Option<u64>,
}

/// An attribute that holds something else than a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedCount;

impl ExactCounts {
    /// Of a cache with so many objects a slab: what each of [`COUNT_ATTRIBUTES`] holds, nothing where there is none.
    pub fn new(
        per_slab: Option<u64>,
        counts: [Option<Result<NodeCounts, MalformedCount>>; COUNT_ATTRIBUTES.len()],
    ) -> Self {
        ExactCounts { counts, per_slab }
    }

    /// Whether nothing was there: the cache is gone.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(Option::is_none)
    }

    /// Whether an attribute held something else than a count.
    pub fn is_malformed(&self) -> bool {
        self.counts.iter().any(|count| matches!(count, Some(Err(MalformedCount))))
    }

    /// What the counts say about each other. Where an attribute is missing, nothing is known against the others.
    pub fn consistency(&self) -> CountConsistency {
        let [objects, total_objects, slabs, objects_partial, partial, _] = self.totals();
        let exceeds = |part: Option<u64>, whole: Option<u64>| part.zip(whole).is_some_and(|(p, w)| p > w);
        match self.slab_counts().map(|counts| counts.consistency()) {
            _ if exceeds(objects, total_objects) => {
                CountConsistency::Torn("more active objects than objects")
            }
            _ if exceeds(objects_partial, objects) => {
                CountConsistency::Torn("more objects in partial slabs than in all")
            }
            _ if exceeds(partial, slabs) => CountConsistency::Torn("more partial slabs than slabs"),
            counts => counts.unwrap_or(CountConsistency::Sound),
        }
    }

    /// Whether these and an earlier reading show slabs of a lower order.
    pub fn shows_lower_order(&self, earlier: &ExactCounts) -> bool {
        let pair = self.slab_counts().zip(earlier.slab_counts());
        pair.is_some_and(|(now, earlier)| now.shows_lower_order(&earlier))
    }

    fn slab_counts(&self) -> Option<SlabCounts> {
        let [objects, total_objects, slabs, ..] = self.totals();
        Some(SlabCounts {
            in_use: objects?,
            objects: total_objects?,
            per_slab: self.per_slab?,
            active_slabs: None,
            slabs: slabs?,
        })
    }

    fn totals(&self) -> [Option<u64>; COUNT_ATTRIBUTES.len()] {
        self.counts.each_ref().map(|count| valid_count(count).map(|count| count.total))
    }

    /// Whether the counts are of more than one node.
    pub fn names_several_nodes(&self) -> bool {
        self.counts.iter().filter_map(valid_count).any(|count| count.nodes.len() > 1)
    }

    /// Appends the row of all nodes, and those of each node where there are several.
    pub fn append_rows(&self, cache: &str, flags: &[&str], several_nodes: bool, rows: &mut Vec<CellRow>) {
        rows.push(make_exact_row(cache, -1, flags, self.totals()));
        if !several_nodes {
            return;
        }
        let nodes = self.counts.iter().filter_map(valid_count).flat_map(|count| &count.nodes);
        let nodes: BTreeSet<u32> = nodes.map(|(node, _)| *node).collect();
        rows.extend(nodes.into_iter().map(|node| {
            let shares =
                self.counts.each_ref().map(|count| valid_count(count).and_then(|count| count.on_node(node)));
            make_exact_row(cache, i64::from(node), flags, shares)
        }));
    }
}

fn valid_count(count: &Option<Result<NodeCounts, MalformedCount>>) -> Option<&NodeCounts> {
    count.as_ref()?.as_ref().ok()
}

fn make_exact_row(
    cache: &str,
    node: i64,
    flags: &[&str],
    counts: [Option<u64>; COUNT_ATTRIBUTES.len()],
) -> CellRow {
    let mut row = SlabExactRow::missing_row();
    SlabExactRow::CACHE.set(&mut row, cache);
    SlabExactRow::NODE.set(&mut row, node);
    for (column, count) in COUNTS.into_iter().zip(counts) {
        column.set(&mut row, count.and_then(|count| i64::try_from(count).ok()));
    }
    SlabExactRow::FLAGS.set(&mut row, flags.join(",").as_str());
    row
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_and_their_nodes() {
        let count = NodeCounts::parse("5 N0=2 N3=3\n").unwrap();
        assert_eq!(
            (count.total, count.on_node(0), count.on_node(1), count.on_node(3)),
            (5, Some(2), Some(0), Some(3))
        );
        let without_nodes = NodeCounts::parse("5\n").unwrap();
        assert_eq!(without_nodes.on_node(0), None);
        assert_eq!(NodeCounts::parse("0\n").unwrap().on_node(7), Some(0));
        for strange in ["", "x", "5 N0", "5 N0=x", "5 0=5", "-1", "5 C0=5"] {
            assert_eq!(NodeCounts::parse(strange), Err(MalformedCount), "{strange}");
        }
        assert!(NodeCounts::parse("10001 N0=10001").unwrap().exceeds_counted());
        assert!(!NodeCounts::parse("16000 N0=8000 N1=8000").unwrap().exceeds_counted());
    }

    proptest! {
        #[test]
        fn any_text_makes_rows_that_fit_their_columns(text in "[ N0-9=a-z\n]{0,40}|.{0,20}") {
            let counts = ExactCounts::new(Some(3), COUNT_ATTRIBUTES.map(|_| Some(NodeCounts::parse(&text))));
            let mut rows = Vec::new();
            counts.append_rows("cache", &["torn"], true, &mut rows);
            prop_assert!(rows.iter().all(|row| row.len() == SlabExactRow::COLUMNS.len()));
            let cells = parse_cache_attributes(&vec![Some(text.clone()); cache_attributes().len()]);
            let row = make_cache_row("cache", ":0", &[], Some(4096), &cells);
            prop_assert_eq!(row.len(), SlabCacheRow::COLUMNS.len());
        }
    }
}
