//! Every question, asked of any rows: an answer or an error, never a panic, and no number that is none.

use perflab_analyze::slab::what_if::Change;
use perflab_analyze::slab::{
    GrowthOptions, Input, Mean, Recording, ShowOptions, System, growth, histogram, notebook, reconcile, show,
    stack, timeline, what_if,
};
use perflab_model::series::{Series, Spans};
use perflab_model::{Cell, Column, Nanos, Row};
use proptest::prelude::*;

use super::table::{SLABINFO, ints, keyed, series};

const NAMES: [&str; 5] = ["dentry", "kmalloc-64", "kmalloc-cg-64", ":a-0000104", "a b"];

fn cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        6 => (0..200_i64).prop_map(Cell::Int),
        2 => any::<i64>().prop_map(Cell::Int),
        1 => Just(Cell::Missing),
    ]
}

fn rows(numbers: usize, texts: usize) -> impl Strategy<Value = Vec<(Nanos, Row)>> {
    let words = ["", "torn", "259.9M", "12K", "1e400K", "a", "x,y", "M"].map(|word| Cell::Text(word.into()));
    let name = prop::sample::select(NAMES.to_vec()).prop_map(|name| Cell::Text(name.into()));
    let name = prop_oneof![9 => name, 1 => Just(Cell::Missing)];
    let text = prop_oneof![4 => prop::sample::select(words.to_vec()), 1 => Just(Cell::Missing)];
    let at = prop_oneof![8 => 0..6_u64, 1 => any::<u64>()];
    let numbers = prop::collection::vec(cell(), numbers);
    let row =
        (at, name, numbers, prop::collection::vec(text, texts)).prop_map(|(at, name, numbers, texts)| {
            (Nanos(at), [name].into_iter().chain(numbers).chain(texts).collect())
        });
    prop::collection::vec(row, 0..40)
}

fn made(monitor: &str, numbers: &[&str], texts: &[&str], rows: Vec<(Nanos, Row)>) -> Series {
    let columns = keyed(numbers).into_iter().chain(texts.iter().map(|name| Column::key(name)));
    series(monitor, columns.collect(), rows)
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
        slabinfo in rows(SLABINFO.len(), 1),
        scans in rows(SCAN.len(), 1),
        exact in rows(EXACT.len(), 1),
        tool in rows(TOOL.len(), 2),
        meminfo in rows(3, 0),
        cpus in prop::option::of(any::<u64>()),
    ) {
        let slabinfo = Spans::of(&made("slabinfo", &SLABINFO, &["flags"], slabinfo));
        let scans = made("slab-caches", &SCAN, &["aliases"], scans);
        let exact = made("slab-exact", &EXACT, &["flags"], exact);
        let tool = made("slabinfo-tool", &TOOL, &["space", "flags_tool"], tool);
        let meminfo = series(
            "meminfo",
            ints(&["Slab", "SReclaimable", "SUnreclaim"]),
            meminfo.into_iter().map(|(at, row)| (at, row.into_iter().skip(1).collect())).collect(),
        );
        let input = Input {
            slabinfo: Some(&slabinfo),
            caches: Some(&scans),
            exact: Some(&exact),
            meminfo: Some(&meminfo),
            tool: Some(&tool),
            system: System { page_size: Some(4096), cpus, nodes: cpus },
            record: None,
        };
        of_the_notebook(&input)?;
        if let Ok(found) = Recording::read(&input) {
            of_a_recording(&found, &meminfo)?;
        }
    }
}

fn finite(values: &[f64]) -> Result<(), TestCaseError> {
    prop_assert!(values.iter().all(|value| value.is_finite()), "{values:?}");
    Ok(())
}

fn of_a_recording(found: &Recording, meminfo: &Series) -> Result<(), TestCaseError> {
    for fold_kmalloc in [false, true] {
        let all = show(found, &ShowOptions { fold_kmalloc });
        for mean in all.caches.iter().map(|line| line.mean).chain([all.total]) {
            let mean = Mean::from(mean);
            finite(&[mean.slab_bytes, mean.used_bytes, mean.tail_bytes, mean.free_bytes, mean.hidden_bytes])?;
            finite(&[mean.align_bytes.unwrap_or(0.0), mean.overall.value().unwrap_or(0.0)])?;
            prop_assert!(mean.hidden_bytes <= mean.used_bytes);
        }
        let parts = [all.reclaimable, all.unreclaimable, all.unknown].map(|part| part.usage.slab_bytes);
        prop_assert_eq!(parts.iter().sum::<u128>(), all.total.usage.slab_bytes);
    }
    for point in timeline(found, None).unwrap().points {
        finite(&[point.unweighted.unwrap_or(0.0)])?;
    }
    finite(&histogram(found, 0).bins.iter().map(|bin| bin.bytes).collect::<Vec<_>>())?;
    let layers = stack(found, 2);
    prop_assert!(layers.layers.iter().all(|layer| layer.bytes.len() == layers.at.len()));
    if let Ok(grown) = growth(found, &GrowthOptions::default()) {
        finite(&[grown.total.retained, grown.total.peak_growth, grown.others_retained])?;
        let slopes = grown.contributors.iter().filter_map(|grown| grown.slope);
        finite(&slopes.map(|slope| slope.bytes_per_second).collect::<Vec<_>>())?;
    }
    if let Ok(account) = reconcile(found, Some(meminfo)) {
        finite(&[account.median])?;
    }
    for row in found.rows() {
        for order in [None, Some(0), Some(3), Some(31)] {
            for object_size in [None, Some(1), Some(u64::MAX)] {
                drop(what_if(
                    row,
                    4096,
                    &Change { order, object_size, align: Some(order.map_or(0, u64::from)) },
                ));
            }
        }
    }
    Ok(())
}

fn of_the_notebook(input: &Input) -> Result<(), TestCaseError> {
    if let Ok(table) = notebook::table(input, 30) {
        for row in table.rows {
            finite(&[row.percent_efficient, row.space_normalized_in_kb, row.slab_bytes.unwrap_or(0.0)])?;
        }
    }
    if let Ok(lines) = notebook::timeline(input) {
        for point in lines.points {
            finite(&[point.unweighted, point.weighted.unwrap_or(0.0)])?;
        }
    }
    if let Ok(found) = notebook::histogram(input) {
        finite(&found.notebook.edges)?;
    }
    if let Ok(found) = notebook::proc_histogram(input) {
        finite(&found.notebook.edges)?;
        prop_assert_eq!(found.notebook.counts.iter().sum::<usize>(), found.counted);
    }
    drop(notebook::cache(input, "dentry"));
    notebook::minutes(input).map_or(Ok(()), |minutes| finite(&[minutes]))
}
