//! The columns of the slab series, as the sampler writes them too.

use perflab_model::{Column, Nanos, SeriesSchema};

fn ints(names: &[(&str, &str)]) -> impl Iterator<Item = Column> {
    names.iter().map(|(name, unit)| Column::gauge(name, unit))
}

/// One row a cache a tick.
pub(crate) fn slabinfo() -> Vec<Column> {
    let numbers = [
        ("ordinal", "1"),
        ("active_objs", "objects"),
        ("num_objs", "objects"),
        ("objsize", "bytes"),
        ("objperslab", "objects"),
        ("pagesperslab", "pages"),
        ("active_slabs", "slabs"),
        ("num_slabs", "slabs"),
    ];
    std::iter::once(Column::key("cache")).chain(ints(&numbers)).chain([Column::key("flags")]).collect()
}

/// One row a cache a tick, as the kernel's slabinfo tool prints it.
pub(crate) fn slabinfo_tool() -> Vec<Column> {
    let before = [("objects", "objects"), ("object_size", "bytes")];
    let after = [
        ("slabs", "slabs"),
        ("partial", "slabs"),
        ("cpu", "slabs"),
        ("objs_per_slab", "objects"),
        ("order", "1"),
        ("free_percent", "%"),
        ("efficiency_percent", "%"),
    ];
    std::iter::once(Column::key("cache"))
        .chain(ints(&before))
        .chain([Column::key("space")])
        .chain(ints(&after))
        .chain([Column::key("flags_tool")])
        .collect()
}

/// What does not change of a cache while it lives: one row a cache.
pub(crate) fn slab_caches() -> Vec<Column> {
    let sizes = [
        ("page_size", "bytes"),
        ("object_size", "bytes"),
        ("slab_size", "bytes"),
        ("objs_per_slab", "objects"),
        ("order", "1"),
        ("align", "bytes"),
    ];
    let switches =
        ["reclaim_account", "hwcache_align", "destroy_by_rcu", "cache_dma"].map(|name| (name, "1"));
    let tuning = [("cpu_partial", "objects"), ("min_partial", "slabs"), ("sheaf_capacity", "objects")];
    ["cache", "directory", "aliases"]
        .map(Column::key)
        .into_iter()
        .chain(ints(&sizes))
        .chain(ints(&switches))
        .chain([Column::key("ctor")])
        .chain(ints(&tuning))
        .chain([Column::key("flags")])
        .collect()
}

/// The exact counts of sysfs: one row a cache a node, node -1 for all.
pub(crate) fn slab_exact() -> Vec<Column> {
    let counts = [
        ("node", "1"),
        ("objects", "objects"),
        ("total_objects", "objects"),
        ("slabs", "slabs"),
        ("objects_partial", "objects"),
        ("partial", "slabs"),
        ("cpu_slabs", "slabs"),
    ];
    std::iter::once(Column::key("cache")).chain(ints(&counts)).chain([Column::key("flags")]).collect()
}

/// A series of these columns.
pub(crate) fn schema(monitor: &str, source: &str, columns: Vec<Column>) -> SeriesSchema {
    SeriesSchema { monitor: monitor.into(), source: source.into(), interval: Nanos(0), columns }
}
