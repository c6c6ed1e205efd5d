//! Every question, asked of any rows: an answer or an error, never a panic, and no number that is none.

use perflab_analyze::slab::what_if::LayoutChange;
use perflab_analyze::slab::{
    CacheTableOptions, MeanUsage, SlabFacts, SlabGrowthOptions, SlabInput, SlabRecording, cache_stack,
    cache_table, efficiency_histogram, notebook, reconcile_with_meminfo, slab_growth, usage_timeline,
    what_if_layout,
};
use perflab_model::series::{RowRuns, Series};
use perflab_model::{CellRow, ColumnSpec, Nanos, TableCell};
use proptest::prelude::*;

use super::table::{SLABINFO, int_columns, keyed_columns, make_series};

const NAMES: [&str; 5] = ["dentry", "kmalloc-64", "kmalloc-cg-64", ":a-0000104", "a b"];

fn any_cell() -> impl Strategy<Value = TableCell> {
    prop_oneof![
        6 => (0..200_i64).prop_map(TableCell::Int),
        2 => any::<i64>().prop_map(TableCell::Int),
        1 => Just(TableCell::Missing),
    ]
}

fn any_rows(numbers: usize, texts: usize) -> impl Strategy<Value = Vec<(Nanos, CellRow)>> {
    let words =
        ["", "torn", "259.9M", "12K", "1e400K", "a", "x,y", "M"].map(|word| TableCell::Text(word.into()));
    let name = prop::sample::select(NAMES.to_vec()).prop_map(|name| TableCell::Text(name.into()));
    let name = prop_oneof![9 => name, 1 => Just(TableCell::Missing)];
    let text = prop_oneof![4 => prop::sample::select(words.to_vec()), 1 => Just(TableCell::Missing)];
    let at = prop_oneof![8 => 0..6_u64, 1 => any::<u64>()];
    let numbers = prop::collection::vec(any_cell(), numbers);
    let row =
        (at, name, numbers, prop::collection::vec(text, texts)).prop_map(|(at, name, numbers, texts)| {
            (Nanos(at), [name].into_iter().chain(numbers).chain(texts).collect())
        });
    prop::collection::vec(row, 0..40)
}

fn make_named_series(monitor: &str, numbers: &[&str], texts: &[&str], rows: Vec<(Nanos, CellRow)>) -> Series {
    let columns = keyed_columns(numbers).into_iter().chain(texts.iter().map(|name| ColumnSpec::key(name)));
    make_series(monitor, columns.collect(), rows)
}

const SCAN: [&str; 7] = [
    "object_size",
    "slab_size",
    "objs_per_slab",
    "order",
    "reclaim_account",
    "cpu_partial",
    "sheaf_capacity",
];
const EXACT: [&str; 5] = ["node", "objects", "total_objects", "slabs", "cpu_slabs"];
const TOOL: [&str; 6] = ["objects", "object_size", "slabs", "cpu", "order", "efficiency_percent"];

proptest! {
    #[test]
    fn an_answer_or_an_error(
        slabinfo in any_rows(SLABINFO.len(), 1),
        scans in any_rows(SCAN.len(), 1),
        exact in any_rows(EXACT.len(), 1),
        tool in any_rows(TOOL.len(), 2),
        meminfo in any_rows(3, 0),
        cpus in prop::option::of(any::<u64>()),
    ) {
        let slabinfo = RowRuns::from_series(&make_named_series("slabinfo", &SLABINFO, &["flags"], slabinfo));
        let scans = make_named_series("slab-caches", &SCAN, &["aliases"], scans);
        let exact = make_named_series("slab-exact", &EXACT, &["flags"], exact);
        let tool = make_named_series("slabinfo-tool", &TOOL, &["space", "flags_tool"], tool);
        let meminfo = make_series(
            "meminfo",
            int_columns(&["Slab", "SReclaimable", "SUnreclaim"]),
            meminfo.into_iter().map(|(at, row)| (at, row.into_iter().skip(1).collect())).collect(),
        );
        let input = SlabInput {
            slabinfo: Some(&slabinfo),
            caches: Some(&scans),
            exact: Some(&exact),
            meminfo: Some(&meminfo),
            tool: Some(&tool),
            system: SlabFacts { page_size: Some(4096), cpus, nodes: cpus },
            record: None,
        };
        check_notebook(&input)?;
        if let Ok(found) = SlabRecording::read(&input) {
            check_recording(&found, &meminfo)?;
        }
    }
}

fn check_finite(values: &[f64]) -> Result<(), TestCaseError> {
    prop_assert!(values.iter().all(|value| value.is_finite()), "{values:?}");
    Ok(())
}

fn check_recording(found: &SlabRecording, meminfo: &Series) -> Result<(), TestCaseError> {
    for fold_kmalloc in [false, true] {
        let all = cache_table(found, &CacheTableOptions { fold_kmalloc });
        for mean in all.caches.iter().map(|line| line.mean).chain([all.total]) {
            let mean = MeanUsage::from(mean);
            check_finite(&[
                mean.slab_bytes,
                mean.used_bytes,
                mean.tail_bytes,
                mean.free_bytes,
                mean.hidden_bytes,
            ])?;
            check_finite(&[mean.align_bytes.unwrap_or(0.0), mean.overall.value().unwrap_or(0.0)])?;
            prop_assert!(mean.hidden_bytes <= mean.used_bytes);
        }
        let parts = [all.reclaimable, all.unreclaimable, all.unknown].map(|part| part.usage.slab_bytes);
        prop_assert_eq!(parts.iter().sum::<u128>(), all.total.usage.slab_bytes);
    }
    for point in usage_timeline(found, None).unwrap().points {
        check_finite(&[point.unweighted.unwrap_or(0.0)])?;
    }
    check_finite(&efficiency_histogram(found, 0).bins.iter().map(|bin| bin.bytes).collect::<Vec<_>>())?;
    let layers = cache_stack(found, 2);
    prop_assert!(layers.layers.iter().all(|layer| layer.bytes.len() == layers.at.len()));
    if let Ok(grown) = slab_growth(found, &SlabGrowthOptions::default()) {
        check_finite(&[grown.total.retained, grown.total.peak_growth, grown.others_retained])?;
        let slopes = grown.contributors.iter().filter_map(|grown| grown.slope);
        check_finite(&slopes.map(|slope| slope.bytes_per_second).collect::<Vec<_>>())?;
    }
    if let Ok(account) = reconcile_with_meminfo(found, Some(meminfo)) {
        check_finite(&[account.median])?;
    }
    for row in found.rows() {
        for order in [None, Some(0), Some(3), Some(31)] {
            for object_size in [None, Some(1), Some(u64::MAX)] {
                drop(what_if_layout(
                    row,
                    4096,
                    &LayoutChange { order, object_size, align: Some(order.map_or(0, u64::from)) },
                ));
            }
        }
    }
    Ok(())
}

fn check_notebook(input: &SlabInput) -> Result<(), TestCaseError> {
    if let Ok(table) = notebook::notebook_table(input, 30) {
        for row in table.rows {
            check_finite(&[
                row.percent_efficient,
                row.space_normalized_in_kb,
                row.slab_bytes.unwrap_or(0.0),
            ])?;
        }
    }
    if let Ok(lines) = notebook::notebook_timeline(input) {
        for point in lines.points {
            check_finite(&[point.unweighted, point.weighted.unwrap_or(0.0)])?;
        }
    }
    if let Ok(found) = notebook::notebook_tool_histogram(input) {
        check_finite(&found.notebook.edges)?;
    }
    if let Ok(found) = notebook::notebook_proc_histogram(input) {
        check_finite(&found.notebook.edges)?;
        prop_assert_eq!(found.notebook.counts.iter().sum::<usize>(), found.counted);
    }
    drop(notebook::notebook_cache(input, "dentry"));
    notebook::notebook_minutes(input).map_or(Ok(()), |minutes| check_finite(&[minutes]))
}
