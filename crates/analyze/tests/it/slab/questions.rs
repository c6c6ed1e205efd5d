//! The questions asked of one run: table, timeline, histogram, growth, what-if, meminfo.

use perflab_analyze::slab::growth::SlabGrowthOptions;
use perflab_analyze::slab::what_if::LayoutChange;
use perflab_analyze::slab::{
    CacheOrder, CacheTableOptions, SlabInput, SlabRecording, cache_stack, cache_table, efficiency_histogram,
    reconcile_with_meminfo, size_class, slab_growth, usage_timeline, what_if_layout,
};
use perflab_model::series::RowRuns;
use perflab_model::{Nanos, TableCell};
use std::path::Path;

use super::log;
use super::table::{
    SlabinfoTestRow, four_kib_facts, int_columns, keyed_columns, make_cache_series, make_series,
    make_slabinfo, read_recording,
};

const GIB: i64 = 1 << 30;

#[test]
fn bytes_are_integrated_over_time_and_means_of_percentages_are_not_ours() {
    // A full cache of 1000 slabs, and a nearly empty one of 1 slab; the second tick stands for more time.
    let slabinfo = make_slabinfo(&[
        (0, "big", 64_000, 64_000, 64, 64, 1, 1000),
        (0, "small", 1, 64, 64, 64, 1, 1),
        (1, "big", 32_000, 64_000, 64, 64, 1, 1000),
        (1, "small", 1, 64, 64, 64, 1, 1),
        (10, "big", 64_000, 64_000, 64, 64, 1, 1000),
    ]);
    let scans = make_cache_series(
        4096,
        &[(0, "big", 64, 64, Some(1), "big,inode"), (0, "small", 64, 64, None, "small")],
    );
    let all = cache_table(&read_recording(&slabinfo, Some(&scans)), &CacheTableOptions::default());
    let big = &all.caches[0];
    assert_eq!(
        (big.name.as_str(), big.members.as_slice()),
        ("big", ["big".to_owned(), "inode".into()].as_slice())
    );
    // Half nanoseconds: 1, 10 and 9 seconds of 20.
    let overall = big.mean.overall().value().unwrap();
    assert!((overall - (1.0 + 0.5 * 10.0 + 9.0) / 20.0).abs() < 1e-12, "{overall}");
    assert!((big.unweighted.unwrap() - 2.5 / 3.0).abs() < 1e-12);
    let small = &all.caches[1];
    assert_eq!((small.ticks, small.end.slab_bytes, small.peak_bytes), (2, 0, 4096));
    assert!((small.mean.slab_bytes() - 4096.0 * 11.0 / 20.0).abs() < 1e-9, "0 bytes while it is gone");
    assert_eq!(all.sorted_rows(CacheOrder::Efficiency)[0].name, "small");
    assert_eq!(all.sorted_rows(CacheOrder::Name)[0].name, "big");
    assert!((all.unweighted.unwrap() - (2.5 + 2.0 / 64.0) / 5.0).abs() < 1e-12);
    assert_eq!(all.unknown.usage.slab_bytes, small.mean.usage.slab_bytes);
}

#[test]
fn names_repeat_and_hold_spaces() {
    let slabinfo = make_slabinfo(&[
        (0, "mlx5 fte", 1, 64, 64, 64, 1, 1),
        (0, "mlx5 fte", 2, 64, 64, 64, 1, 1),
        (1, "new", 3, 64, 64, 64, 1, 1),
        (1, "mlx5 fte", 4, 64, 64, 64, 1, 1),
        (1, "mlx5 fte", 5, 64, 64, 64, 1, 1),
        (2, "mlx5 fte", 6, 64, 64, 64, 1, 1),
    ]);
    let found = read_recording(&slabinfo, None);
    let labels: Vec<String> = found.caches().iter().map(|cache| cache.label()).collect();
    assert_eq!(labels, ["mlx5 fte", "mlx5 fte#2", "new"]);
    let objects = |label: &str| -> Vec<u64> {
        let number = labels.iter().position(|known| known == label).unwrap();
        found.rows().iter().filter(|row| row.cache == number).map(|row| row.objects).collect()
    };
    assert_eq!((objects("mlx5 fte"), objects("mlx5 fte#2")), (vec![1, 4, 6], vec![2, 5]));
    assert_eq!(usage_timeline(&found, Some("mlx5 fte")).unwrap().points[1].rows, 2);
    assert_eq!(usage_timeline(&found, Some("mlx5 fte#2")).unwrap().points[1].rows, 1);
    assert!(usage_timeline(&found, Some("mlx5")).is_err());
}

#[test]
fn a_cache_made_anew_with_another_size_does_not_get_the_old_object_size() {
    let slabinfo = make_slabinfo(&[(0, "a", 1, 64, 64, 64, 1, 1), (5, "a", 1, 32, 128, 32, 1, 1)]);
    let scans = make_cache_series(4096, &[(0, "a", 56, 64, None, "a")]);
    let found = read_recording(&slabinfo, Some(&scans));
    assert_eq!(found.rows()[0].object_size, Some(56));
    assert_eq!(found.rows()[1].object_size, None);
    let scans = make_cache_series(4096, &[(0, "a", 56, 64, None, "a"), (5, "a", 120, 128, None, "a,b")]);
    let found = read_recording(&slabinfo, Some(&scans));
    assert_eq!(found.rows()[1].object_size, Some(120));
    assert_eq!(found.caches()[0].members(), ["a", "b"]);
    assert_eq!(usage_timeline(&found, Some("b")).unwrap().points.len(), 2, "any member finds the group");
}

#[test]
fn kmalloc_folds_into_size_classes() {
    let names = ["kmalloc-1k", "kmalloc-cg-1k", "kmalloc-rcl-1k", "kmalloc-rnd-07-1k", "dma-kmalloc-1k"];
    assert!(names.iter().all(|name| size_class(name).as_deref() == Some("kmalloc-1k")));
    for name in ["msg_msg-64", "kmalloc", "kmalloc-", "kmalloc-cg-", "dentry", "dma-64", "kmalloc-k"] {
        assert_eq!(size_class(name), None, "{name}");
    }
    let lines: Vec<SlabinfoTestRow> = names.iter().map(|name| (0, *name, 4, 4, 1024, 4, 1, 1)).collect();
    let found = read_recording(&make_slabinfo(&lines), None);
    let all = cache_table(&found, &CacheTableOptions { fold_kmalloc: true });
    assert_eq!((all.caches.len(), all.caches[0].caches.len(), all.caches[0].peak_bytes), (1, 5, 5 * 4096));
    assert_eq!(all.caches[0].slab_size, Some(1024));
    assert_eq!(cache_table(&found, &CacheTableOptions::default()).caches.len(), 5);
}

#[test]
fn a_stack_holds_all_bytes() {
    let slabinfo = make_slabinfo(&[
        (0, "a", 1, 1, 64, 1, 1, 3),
        (0, "b", 1, 1, 64, 1, 1, 5),
        (0, "c", 1, 1, 64, 1, 1, 1),
        (1, "b", 1, 1, 64, 1, 1, 1),
        (1, "a", 1, 1, 64, 1, 1, 2),
    ]);
    let found = read_recording(&slabinfo, None);
    let layers = cache_stack(&found, 1);
    assert_eq!((layers.layers[0].name.as_str(), &layers.layers[0].bytes), ("b", &vec![5 * 4096, 4096]));
    assert_eq!(layers.others, [4 * 4096, 2 * 4096]);
    assert_eq!(cache_stack(&found, 10).layers.len(), 3);
}

#[test]
fn a_histogram_has_exact_limits_and_keeps_what_is_outside() {
    let slabinfo = make_slabinfo(&[
        (0, "full", 64, 64, 64, 64, 1, 1),
        (0, "half", 32, 64, 64, 64, 1, 1),
        (0, "torn", 65, 64, 64, 64, 1, 1),
        (0, "none", 0, 0, 64, 64, 1, 0),
    ]);
    let found = efficiency_histogram(&read_recording(&slabinfo, None), 10);
    let rows: Vec<usize> = found.bins.iter().map(|bin| bin.rows).collect();
    assert_eq!(rows, [0, 0, 0, 0, 0, 1, 0, 0, 0, 1]);
    assert_eq!((found.above.rows, found.empty_rows), (1, 1));
    assert!((found.bins[5].bytes - 4096.0).abs() < 1e-9);
    assert_eq!((found.bins[9].low, found.bins[9].high, found.above.high), (90.0, Some(100.0), None));
}

#[test]
fn growth_tells_peak_retained_and_slope() {
    let mut lines: Vec<SlabinfoTestRow> = Vec::new();
    for second in 0..100 {
        let leak = 100 + second as i64;
        let burst = if (40..60).contains(&second) { 500 } else { 10 };
        lines.push((second, "leak", 1, 1, 4096, 1, 1, leak));
        lines.push((second, "burst", 1, 1, 4096, 1, 1, burst));
        lines.push((second, "still", 1, 1, 4096, 1, 1, 50 + (second as i64 * 7 % 3)));
    }
    let found = slab_growth(
        &read_recording(&make_slabinfo(&lines), None),
        &SlabGrowthOptions { top: 2, ..SlabGrowthOptions::default() },
    );
    let found = found.unwrap();
    assert_eq!((found.baseline.ticks, found.end.ticks), (10, 10));
    let names: Vec<&str> = found.contributors.iter().map(|grown| grown.name.as_str()).collect();
    assert_eq!(names, ["burst", "leak"]);
    let [burst, leak] = found.contributors.as_slice() else { panic!() };
    assert_eq!(
        (burst.peak_growth, burst.retained, burst.peak_at),
        (490.0 * 4096.0, 0.0, Nanos(40_000_000_000))
    );
    assert!(!burst.slope.unwrap().is_growing());
    let slope = leak.slope.unwrap();
    assert!((slope.bytes_per_second - 4096.0).abs() < 1e-9 && slope.is_growing());
    assert_eq!(leak.retained, 90.0 * 4096.0);
    assert!(found.others_retained.abs() <= 4096.0);
}

#[test]
fn windows_and_growth_follow_the_iterations() {
    // Three iterations of half a second, a second apart, from second 1; the tick at 4 is after the last.
    let record =
        fixtures::run_builder::RunBuilder::new("A").with(|lab| lab.iterations = 3).build_run(|_| Some(1.0));
    let lines: Vec<SlabinfoTestRow> = [(0, 10), (1, 20), (2, 50), (3, 40), (4, 15)]
        .map(|(at, slabs)| (at, "a", 1, 1, 64, 1, 1, slabs))
        .to_vec();
    let slabinfo = make_slabinfo(&lines);
    let input = SlabInput {
        slabinfo: Some(&slabinfo),
        record: Some(&record),
        system: four_kib_facts(),
        ..SlabInput::default()
    };
    let found = slab_growth(&SlabRecording::read(&input).unwrap(), &SlabGrowthOptions::default()).unwrap();
    assert_eq!((found.baseline.ticks, found.end.from), (1, Nanos(4_000_000_000)));
    assert_eq!(found.total.retained, 5.0 * 4096.0);
    let growth: Vec<i64> = found.during.iter().map(|during| during.growth / 4096).collect();
    assert_eq!(growth, [10, 30, -10]);
    assert_eq!((found.during[1].before, found.during[1].peak, found.phases.len()), (20 * 4096, 50 * 4096, 3));
}

#[test]
fn one_tick_is_enough_for_every_question() {
    let found = read_recording(&make_slabinfo(&[(7, "a", 1, 64, 64, 64, 1, 1)]), None);
    let grown = slab_growth(&found, &SlabGrowthOptions::default()).unwrap();
    assert_eq!((grown.total.slope, grown.total.retained), (None, 0.0));
    assert!((cache_table(&found, &CacheTableOptions::default()).total.slab_bytes() - 4096.0).abs() < 1e-9);
}

#[test]
fn what_if_counts_whole_slabs() {
    // task_struct: 5 of 5888 bytes in 32 KiB; in 64 KiB there would be 11.
    let found = read_recording(&make_slabinfo(&[(0, "task_struct", 586, 595, 5888, 5, 8, 119)]), None);
    let row = found.rows()[0];
    let order =
        |order| what_if_layout(&row, 4096, &LayoutChange { order: Some(order), ..LayoutChange::default() });
    let larger = order(4).unwrap();
    assert_eq!((larger.then.objs_per_slab, larger.bytes_then), (11, 55 * 65_536));
    assert_eq!((larger.bytes_now, larger.packed_now), (119 * 32_768, 118 * 32_768));
    let same = order(3).unwrap();
    assert_eq!((same.bytes_now, same.now), (same.bytes_then, same.then));
    insta::assert_snapshot!(order(0).unwrap_err(), @"5888 bytes a slot do not fit into 4096 bytes of order 0");
    assert!(order(16).is_err() && order(u32::MAX).is_err());
    let object = |size| {
        what_if_layout(&row, 4096, &LayoutChange { object_size: Some(size), ..LayoutChange::default() })
    };
    assert_eq!(object(4096).unwrap().then.objs_per_slab, 8);
    assert!(object(0).is_err() && object(u64::MAX).is_err());
}

#[test]
fn another_object_size_keeps_what_the_allocator_adds() {
    // 176 asked for, 192 a slot: with an alignment of 64 that is rounding alone, with 8 it is 16 bytes of its own.
    let scans = make_cache_series(4096, &[(0, "a", 176, 192, None, "a")]);
    let found = read_recording(&make_slabinfo(&[(0, "a", 21, 21, 192, 21, 1, 1)]), Some(&scans));
    let then = |align| {
        let change = LayoutChange { object_size: Some(120), align: Some(align), ..LayoutChange::default() };
        what_if_layout(&found.rows()[0], 4096, &change).unwrap().then.slab_size
    };
    assert_eq!((then(64), then(8)), (128, 136));
}

#[test]
fn meminfo_is_reconciled_with_the_nearest_reading() {
    let slabinfo = make_slabinfo(&[
        (1, "a", 1, 1, 64, 1, 1, 3),
        (1, "b", 1, 1, 64, 1, 1, 5),
        (9, "a", 1, 1, 64, 1, 1, 1),
    ]);
    let scans = make_cache_series(4096, &[(0, "a", 64, 64, Some(1), "a"), (0, "b", 64, 64, Some(0), "b")]);
    let found = read_recording(&slabinfo, Some(&scans));
    let meminfo = |slab, reclaimable, rest| vec![TableCell::Int(slab), TableCell::Int(reclaimable), rest];
    let columns = int_columns(&["Slab", "SReclaimable", "SUnreclaim"]);
    let rows = vec![
        (Nanos(900_000_000), meminfo(40_000, 15_000, TableCell::Int(25_000))),
        (Nanos(5_000_000_000), meminfo(1, 1, TableCell::Missing)),
        (Nanos(9_500_000_000), meminfo(4096, 4000, TableCell::Missing)),
    ];
    let account = reconcile_with_meminfo(&found, Some(&make_series("meminfo", columns, rows))).unwrap();
    let [first, last] = account.points.as_slice() else { panic!() };
    assert_eq!((first.skew, last.skew), (-100_000_000, 500_000_000));
    assert_eq!((first.slab.residual, last.slab.residual), (40_000 - 8 * 4096, 0));
    assert_eq!(first.reclaimable.unwrap().residual, 15_000 - 3 * 4096);
    assert_eq!(first.unreclaimable.unwrap().residual, 25_000 - 5 * 4096);
    assert_eq!((last.reclaimable.unwrap().residual, last.unreclaimable), (-96, None));
    assert!(reconcile_with_meminfo(&found, None).is_err());
}

#[test]
fn sysfs_alone_is_a_recording_too() {
    let columns = keyed_columns(&["node", "objects", "total_objects", "slabs", "cpu_slabs"]);
    let row = |name: &str, node, counts: [i64; 4]| {
        let mut row = vec![TableCell::Text(name.into()), TableCell::Int(node)];
        row.extend(counts.map(TableCell::Int));
        (Nanos(0), row)
    };
    let rows =
        vec![row("a", -1, [50, 64, 2, 1]), row("a", 0, [50, 64, 2, 1]), row("stranger", -1, [1, 1, 1, 0])];
    let exact = make_series("slab-exact", columns, rows);
    let mut columns = keyed_columns(&["object_size", "slab_size", "objs_per_slab", "order", "page_size"]);
    columns.push(perflab_model::ColumnSpec::key("aliases"));
    let mut cells = vec![TableCell::Text("a".into())];
    cells.extend([100, 128, 32, 0, 4096].map(TableCell::Int));
    cells.push(TableCell::Text("a".into()));
    let scans = make_series("slab-caches", columns, vec![(Nanos(0), cells)]);
    let input = SlabInput {
        exact: Some(&exact),
        caches: Some(&scans),
        system: four_kib_facts(),
        ..SlabInput::default()
    };
    let found = SlabRecording::read(&input).unwrap();
    assert_eq!((found.counts().read, found.counts().used, found.counts().unusable), (2, 1, 1));
    let usage = found.rows()[0].usage();
    assert_eq!((usage.slab_bytes, usage.used_bytes, usage.hidden_bytes), (8192, 5000, 3200));
}

#[test]
fn an_archive_without_the_newer_columns_reads_on() {
    let columns = keyed_columns(&super::table::SLABINFO);
    let mut row = vec![TableCell::Text("a".into())];
    row.extend([1, 64, 64, 64, 1, 1, 1].map(TableCell::Int));
    let old = make_series("slabinfo", columns, vec![(Nanos(0), row.clone()), (Nanos(0), row)]);
    let found = read_recording(&RowRuns::from_series(&old), None);
    assert_eq!((found.counts().used, found.caches()[1].label()), (2, "a#2".into()));
}

#[test]
fn the_recorded_run_adds_up() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/slab-fsmark");
    let slabinfo = log::read_slabinfo_log(&folder.join("slabinfo.gz"));
    let tool = log::read_tool_log(&folder.join("slabinfo_tool.gz"));
    let meminfo = log::read_meminfo_log(&folder.join("meminfo.gz"));
    let input = SlabInput {
        slabinfo: Some(&slabinfo),
        tool: Some(&tool),
        system: four_kib_facts(),
        ..SlabInput::default()
    };
    let found = SlabRecording::read(&input).unwrap();
    assert_eq!((found.counts().read, found.counts().used, found.ticks().len()), (3304, 3304, 14));
    let all = cache_table(&found, &CacheTableOptions::default());
    let overall = all.total.overall().value().unwrap();
    assert!((0.9..1.0).contains(&overall), "{overall}");
    assert!(all.reclaimable.slab_bytes() > all.unreclaimable.slab_bytes());
    let account = reconcile_with_meminfo(&found, Some(&meminfo)).unwrap();
    // Large kmallocs and skew: 6 to 7 MiB on this machine when the field notes were written.
    assert!((1e6..20e6).contains(&account.median), "{}", account.median);
    let inodes = usage_timeline(&found, Some("ext4_inode_cache")).unwrap();
    assert_eq!(inodes.points.len(), 14);
    let grown = slab_growth(&found, &SlabGrowthOptions::default()).unwrap();
    assert!(grown.total.peak_growth > 10e6 && (grown.total.peak_bytes as i64) < GIB);
}
