//! Owns what does not change of a cache: sizes, flags, member names, by time of scan. It refuses attributes that
//! belong to another cache of the same name: their padded size tells.

use std::collections::{HashMap, HashSet};

use perflab_model::Nanos;
use perflab_model::series::Series;
use serde::Serialize;

use super::columns::{int_column, row_time, rows_in_time_order, text_column};

/// Attributes of one directory of /sys/kernel/slab; whatever the kernel did not give is absent, never 0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CacheAttributes {
    /// `object_size`: bytes asked for by the creator.
    pub object_size: Option<u64>,
    /// `slab_size`: padded bytes of one slot.
    pub slab_size: Option<u64>,
    /// `objs_per_slab` of the preferred order.
    pub objs_per_slab: Option<u64>,
    /// `order`: log2 of the pages of a slab.
    pub order: Option<u64>,
    /// `align` of the slots, bytes.
    pub align: Option<u64>,
    /// Bytes of a page when it was scanned.
    pub page_size: Option<u64>,
    /// Name of the directory: `:0000192` for a group of merged caches.
    pub directory: Option<String>,
    /// All names that lead to it, the one in /proc/slabinfo among them; empty where they were not recorded.
    pub members: Vec<String>,
    /// `reclaim_account`: whether the kernel counts its slabs as reclaimable.
    pub reclaimable: Option<bool>,
    /// `cpu_partial`: most free objects on the partial list of one CPU.
    pub cpu_partial: Option<u64>,
    /// `sheaf_capacity`: objects of a sheaf; 0 for a cache without (6.18 and later).
    pub sheaf_capacity: Option<u64>,
}

/// Every scan of every cache.
#[derive(Debug, Default)]
pub(super) struct AttributeScans {
    by_name: HashMap<String, Vec<(Nanos, CacheAttributes)>>,
}

impl AttributeScans {
    /// From `slab-caches`; what that lacks of a cache, from what the slabinfo tool printed.
    pub(super) fn read(caches: Option<&Series>, tool: Option<&Series>) -> Self {
        let mut scans = AttributeScans::default();
        caches.into_iter().for_each(|series| scans.add_series(series));
        tool.into_iter().for_each(|series| scans.fill_from_tool(series));
        scans
    }

    fn add_series(&mut self, series: &Series) {
        let (name, read) = (text_column(series, "cache"), attribute_reader(series));
        for row in rows_in_time_order(series) {
            let Some(name) = name.text(row) else { continue };
            let scan = (row_time(series, row), read(row));
            match self.by_name.get_mut(name) {
                Some(scans) => scans.push(scan),
                None => drop(self.by_name.insert(name.into(), vec![scan])),
            }
        }
    }

    /// The first row of each name says what does not change.
    fn fill_from_tool(&mut self, tool: &Series) {
        let (name, read, flags) =
            (text_column(tool, "cache"), attribute_reader(tool), text_column(tool, "flags_tool"));
        let mut seen = HashSet::new();
        for row in rows_in_time_order(tool) {
            let Some(name) = name.text(row).filter(|name| seen.insert(*name)) else { continue };
            // `a`: the tool read 1 in reclaim_account.
            let reclaimable = flags.text(row).map(|flags| flags.contains('a'));
            let found = CacheAttributes { reclaimable, ..read(row) };
            match self.by_name.get_mut(name) {
                Some(scans) => scans.iter_mut().for_each(|(_, scan)| scan.fill_missing(&found)),
                None => drop(self.by_name.insert(name.into(), vec![(row_time(tool, row), found)])),
            }
        }
    }

    /// The scans of a cache, in order of time.
    pub(super) fn of_cache(&self, name: &str) -> &[(Nanos, CacheAttributes)] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

impl CacheAttributes {
    /// Takes what it lacks from `other`.
    fn fill_missing(&mut self, other: &CacheAttributes) {
        self.object_size = self.object_size.or(other.object_size);
        self.objs_per_slab = self.objs_per_slab.or(other.objs_per_slab);
        self.order = self.order.or(other.order);
        self.reclaimable = self.reclaimable.or(other.reclaimable);
    }
}

fn attribute_reader<'a>(series: &'a Series) -> impl Fn(usize) -> CacheAttributes + 'a {
    let int = |name| int_column(series, name);
    let (object, slab, objs, order) =
        (int("object_size"), int("slab_size"), int("objs_per_slab"), int("order"));
    let (align, page, reclaim) = (int("align"), int("page_size"), int("reclaim_account"));
    let (cpu_partial, sheaf) = (int("cpu_partial"), int("sheaf_capacity"));
    let (directory, aliases) = (text_column(series, "directory"), text_column(series, "aliases"));
    move |row| CacheAttributes {
        object_size: object.count(row).filter(|size| *size > 0),
        slab_size: slab.count(row).filter(|size| *size > 0),
        objs_per_slab: objs.count(row),
        order: order.count(row),
        align: align.count(row),
        page_size: page.count(row).filter(|size| *size > 0),
        directory: directory.text(row).map(Into::into),
        members: aliases.text(row).map(parse_members).unwrap_or_default(),
        reclaimable: reclaim.count(row).map(|flag| flag > 0),
        cpu_partial: cpu_partial.count(row),
        sheaf_capacity: sheaf.count(row),
    }
}

fn parse_members(text: &str) -> Vec<String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(Into::into).collect()
}

/// The scan that holds at `at`: the last one before, else the first; and only if its slots are of the size that the row
/// says, where it says one.
pub(super) fn attributes_at(
    scans: &[(Nanos, CacheAttributes)],
    at: Nanos,
    slab_size: Option<u64>,
) -> Option<&CacheAttributes> {
    let next = scans.partition_point(|(time, _)| *time <= at);
    let (_, found) = scans.get(next.saturating_sub(1))?;
    let Some(slab_size) = slab_size else { return Some(found) };
    let fits = found.slab_size.is_none_or(|size| size == slab_size);
    let holds = found.object_size.is_none_or(|size| size <= slab_size);
    (fits && holds).then_some(found)
}
