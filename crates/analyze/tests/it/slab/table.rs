//! Makes series for tests, as monitors and importers do: columns by name, one row a line.

use perflab_analyze::slab::{SlabFacts, SlabInput, SlabRecording};
use perflab_model::series::{RowRuns, Series};
use perflab_model::{CellRow, ColumnSpec, Nanos, SeriesSchema, TableCell};

pub fn make_series(monitor: &str, columns: Vec<ColumnSpec>, rows: Vec<(Nanos, CellRow)>) -> Series {
    let schema = SeriesSchema {
        stored: perflab_model::series::StoredRows::Every,
        monitor: monitor.into(),
        source: "test".into(),
        interval: Nanos(0),
        columns,
    };
    Series::from_rows(schema, &rows)
}

pub fn int_columns(names: &[&str]) -> Vec<ColumnSpec> {
    names.iter().map(|name| ColumnSpec::gauge(name, "1")).collect()
}

pub fn keyed_columns(names: &[&str]) -> Vec<ColumnSpec> {
    std::iter::once(ColumnSpec::key("cache")).chain(int_columns(names)).collect()
}

pub const SLABINFO: [&str; 7] =
    ["active_objs", "num_objs", "objsize", "objperslab", "pagesperslab", "active_slabs", "num_slabs"];

/// `(second, cache, active, total, objsize, objperslab, pagesperslab, slabs)`
pub type SlabinfoTestRow<'a> = (u64, &'a str, i64, i64, i64, i64, i64, i64);

pub fn make_slabinfo(lines: &[SlabinfoTestRow]) -> RowRuns {
    make_flagged_slabinfo(&lines.iter().map(|line| (*line, "")).collect::<Vec<_>>())
}

pub fn make_flagged_slabinfo(lines: &[(SlabinfoTestRow, &str)]) -> RowRuns {
    let mut columns = keyed_columns(&SLABINFO);
    columns.push(ColumnSpec::key("flags"));
    let row = |((second, name, active, total, size, objs, pages, slabs), flags): &(SlabinfoTestRow, &str)| {
        let numbers = [active, total, size, objs, pages, slabs, slabs].map(|number| TableCell::Int(*number));
        let mut row = vec![TableCell::Text((*name).into())];
        row.extend(numbers);
        row.push(TableCell::Text((*flags).into()));
        (Nanos(second * 1_000_000_000), row)
    };
    RowRuns::from_series(&make_series("slabinfo", columns, lines.iter().map(row).collect()))
}

/// `(second, cache, object_size, slab_size, reclaimable, members)`; 0 for an attribute that the kernel did not give.
pub type CacheScanRow<'a> = (u64, &'a str, i64, i64, Option<i64>, &'a str);

pub fn make_cache_series(page_size: i64, scans: &[CacheScanRow]) -> Series {
    let mut columns =
        keyed_columns(&["object_size", "slab_size", "page_size", "reclaim_account", "cpu_partial"]);
    columns.push(ColumnSpec::key("aliases"));
    let known = |value: i64| if value == 0 { TableCell::Missing } else { TableCell::Int(value) };
    let row = |(second, name, object, slab, reclaim, members): &CacheScanRow| {
        let reclaim = reclaim.map_or(TableCell::Missing, TableCell::Int);
        let numbers = vec![known(*object), known(*slab), known(page_size), reclaim, TableCell::Int(0)];
        let mut row = vec![TableCell::Text((*name).into())];
        row.extend(numbers);
        row.push(TableCell::Text((*members).into()));
        (Nanos(second * 1_000_000_000), row)
    };
    make_series("slab-caches", columns, scans.iter().map(row).collect())
}

pub fn four_kib_facts() -> SlabFacts {
    SlabFacts { page_size: Some(4096), cpus: Some(2), nodes: Some(1) }
}

pub fn read_recording(slabinfo: &RowRuns, caches: Option<&Series>) -> SlabRecording {
    let input =
        SlabInput { slabinfo: Some(slabinfo), caches, system: four_kib_facts(), ..SlabInput::default() };
    SlabRecording::read(&input).unwrap()
}
