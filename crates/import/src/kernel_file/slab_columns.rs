//! Columns of slab series, as the monitors write them.

use perflab_model::{ColumnSpec, Nanos, SeriesSchema};

fn int_columns(names: &[(&str, &str)]) -> impl Iterator<Item = ColumnSpec> {
    names.iter().map(|(name, unit)| ColumnSpec::gauge(name, unit))
}

/// One row a cache a tick.
pub(crate) fn slabinfo_columns() -> Vec<ColumnSpec> {
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
    std::iter::once(ColumnSpec::key("cache"))
        .chain(int_columns(&numbers))
        .chain([ColumnSpec::key("flags")])
        .collect()
}

/// One row a cache a tick, as the kernel's slabinfo tool prints it.
pub(crate) fn slabinfo_tool_columns() -> Vec<ColumnSpec> {
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
    std::iter::once(ColumnSpec::key("cache"))
        .chain(int_columns(&before))
        .chain([ColumnSpec::key("space")])
        .chain(int_columns(&after))
        .chain([ColumnSpec::key("flags_tool")])
        .collect()
}

/// What does not change of a cache while it lives: one row a cache.
pub(crate) fn slab_cache_columns() -> Vec<ColumnSpec> {
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
        .map(ColumnSpec::key)
        .into_iter()
        .chain(int_columns(&sizes))
        .chain(int_columns(&switches))
        .chain([ColumnSpec::key("ctor")])
        .chain(int_columns(&tuning))
        .chain([ColumnSpec::key("flags")])
        .collect()
}

/// The exact counts of sysfs: one row a cache a node, node -1 for all.
pub(crate) fn slab_exact_columns() -> Vec<ColumnSpec> {
    let counts = [
        ("node", "1"),
        ("objects", "objects"),
        ("total_objects", "objects"),
        ("slabs", "slabs"),
        ("objects_partial", "objects"),
        ("partial", "slabs"),
        ("cpu_slabs", "slabs"),
    ];
    std::iter::once(ColumnSpec::key("cache"))
        .chain(int_columns(&counts))
        .chain([ColumnSpec::key("flags")])
        .collect()
}

/// A series of these columns.
pub(crate) fn imported_schema(monitor: &str, source: &str, columns: Vec<ColumnSpec>) -> SeriesSchema {
    SeriesSchema { monitor: monitor.into(), source: source.into(), interval: Nanos(0), columns }
}
