//! Owns the two places that counts come from: a line of /proc/slabinfo, or where that was not read, the files of a
//! directory of /sys/kernel/slab. It refuses to mix them: a run is read from one.

use perflab_model::series::Series;

use super::attributes::CacheAttributes;
use super::columns::{IntColumn, TextColumn, int_column, text_column};
use super::counts::SlabRowFlags;

/// The counts of a row, as they were recorded.
pub(super) struct RecordedCounts {
    pub(super) objects: u64,
    pub(super) total_objects: u64,
    pub(super) slabs: u64,
    pub(super) slab_size: u64,
    pub(super) objs_per_slab: u64,
    pub(super) pages_per_slab: u64,
    pub(super) flags: SlabRowFlags,
}

/// The columns of the counts, and of the layout where the series has it.
pub(super) struct SlabColumns<'a> {
    name: TextColumn<'a>,
    flags: TextColumn<'a>,
    /// Only rows of all nodes together are read.
    node: IntColumn<'a>,
    objects: IntColumn<'a>,
    total_objects: IntColumn<'a>,
    slabs: IntColumn<'a>,
    layout: Option<[IntColumn<'a>; 3]>,
}

impl<'a> SlabColumns<'a> {
    /// The columns of `slabinfo`.
    pub(super) fn from_slabinfo(series: &'a Series) -> Self {
        let layout = ["objsize", "objperslab", "pagesperslab"].map(|name| int_column(series, name));
        Self::from_columns(series, ["active_objs", "num_objs", "num_slabs"], Some(layout))
    }

    /// The columns of `slab-exact`; the layout is in the attributes.
    pub(super) fn from_exact(series: &'a Series) -> Self {
        Self::from_columns(series, ["objects", "total_objects", "slabs"], None)
    }

    fn from_columns(series: &'a Series, counts: [&str; 3], layout: Option<[IntColumn<'a>; 3]>) -> Self {
        let [objects, total_objects, slabs] = counts.map(|name| int_column(series, name));
        let (name, flags, node) =
            (text_column(series, "cache"), text_column(series, "flags"), int_column(series, "node"));
        SlabColumns { name, flags, node, objects, total_objects, slabs, layout }
    }

    /// Whether the row stands for a cache, and not for one node of it.
    pub(super) fn is_cache_row(&self, row: usize) -> bool {
        self.node.integer(row).is_none_or(|node| node < 0)
    }

    pub(super) fn cache_name(&self, row: usize) -> Option<&'a str> {
        self.name.text(row)
    }

    /// The counts of a row; nothing where one is missing.
    pub(super) fn row_counts<'s>(
        &self,
        row: usize,
        attributes: impl FnOnce() -> Option<&'s CacheAttributes>,
    ) -> Option<RecordedCounts> {
        let [slab_size, objs_per_slab, pages_per_slab] = match &self.layout {
            Some([size, objs, pages]) => [size.count(row)?, objs.count(row)?, pages.count(row)?],
            None => slab_layout(attributes()?)?,
        };
        Some(RecordedCounts {
            objects: self.objects.count(row)?,
            total_objects: self.total_objects.count(row)?,
            slabs: self.slabs.count(row)?,
            slab_size,
            objs_per_slab,
            pages_per_slab,
            flags: self.flags.text(row).map(SlabRowFlags::parse).unwrap_or_default(),
        })
    }
}

/// Padded size, slots and pages of a slab.
fn slab_layout(attributes: &CacheAttributes) -> Option<[u64; 3]> {
    let order = u32::try_from(attributes.order?).ok()?;
    Some([attributes.slab_size?, attributes.objs_per_slab?, 1_u64.checked_shl(order)?])
}
