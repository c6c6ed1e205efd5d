//! Owns the two places that counts come from: a line of /proc/slabinfo, or where that was not read, the files of a
//! directory of /sys/kernel/slab. It refuses to mix them: a run is read from one.

use perflab_model::series::Series;

use super::attributes::Attributes;
use super::columns::{Ints, Texts, ints, texts};
use super::counts::RowFlags;

/// The counts of a row, as they were recorded.
pub(super) struct Counted {
    pub(super) objects: u64,
    pub(super) total_objects: u64,
    pub(super) slabs: u64,
    pub(super) slab_size: u64,
    pub(super) objs_per_slab: u64,
    pub(super) pages_per_slab: u64,
    pub(super) flags: RowFlags,
}

/// The columns of the counts, and of the layout where the series has it.
pub(super) struct Source<'a> {
    name: Texts<'a>,
    flags: Texts<'a>,
    /// Only rows of all nodes together are read.
    node: Ints<'a>,
    objects: Ints<'a>,
    total_objects: Ints<'a>,
    slabs: Ints<'a>,
    layout: Option<[Ints<'a>; 3]>,
}

impl<'a> Source<'a> {
    /// The columns of `slabinfo`.
    pub(super) fn proc(series: &'a Series) -> Self {
        let layout = ["objsize", "objperslab", "pagesperslab"].map(|name| ints(series, name));
        Self::of(series, ["active_objs", "num_objs", "num_slabs"], Some(layout))
    }

    /// The columns of `slab-exact`; the layout is in the attributes.
    pub(super) fn exact(series: &'a Series) -> Self {
        Self::of(series, ["objects", "total_objects", "slabs"], None)
    }

    fn of(series: &'a Series, counts: [&str; 3], layout: Option<[Ints<'a>; 3]>) -> Self {
        let [objects, total_objects, slabs] = counts.map(|name| ints(series, name));
        let (name, flags, node) = (texts(series, "cache"), texts(series, "flags"), ints(series, "node"));
        Source { name, flags, node, objects, total_objects, slabs, layout }
    }

    /// Whether the row stands for a cache, and not for one node of it.
    pub(super) fn is_row(&self, row: usize) -> bool {
        self.node.signed(row).is_none_or(|node| node < 0)
    }

    pub(super) fn name(&self, row: usize) -> Option<&'a str> {
        self.name.text(row)
    }

    /// The counts of a row; nothing where one is missing.
    pub(super) fn counted<'s>(
        &self,
        row: usize,
        attributes: impl FnOnce() -> Option<&'s Attributes>,
    ) -> Option<Counted> {
        let [slab_size, objs_per_slab, pages_per_slab] = match &self.layout {
            Some([size, objs, pages]) => [size.count(row)?, objs.count(row)?, pages.count(row)?],
            None => layout(attributes()?)?,
        };
        Some(Counted {
            objects: self.objects.count(row)?,
            total_objects: self.total_objects.count(row)?,
            slabs: self.slabs.count(row)?,
            slab_size,
            objs_per_slab,
            pages_per_slab,
            flags: self.flags.text(row).map(RowFlags::parse).unwrap_or_default(),
        })
    }
}

/// Padded size, slots and pages of a slab.
fn layout(attributes: &Attributes) -> Option<[u64; 3]> {
    let order = u32::try_from(attributes.order?).ok()?;
    Some([attributes.slab_size?, attributes.objs_per_slab?, 1_u64.checked_shl(order)?])
}
