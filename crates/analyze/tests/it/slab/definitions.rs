//! The definitions: published numbers, and identities on any rows.

use perflab_analyze::slab::{
    AlignmentRatio, CacheTableOptions, HiddenObjectBound, SlabFacts, SlabInput, SlabRow, SlabRowFlags,
    SlabUsage, cache_table, efficiency_histogram, usage_timeline,
};
use proptest::prelude::*;

use super::table::{
    CacheScanRow, SlabinfoTestRow, four_kib_facts, make_cache_series, make_flagged_slabinfo, make_slabinfo,
    read_recording,
};

fn usage_of_row(
    objects: u64,
    total: u64,
    slabs: u64,
    sizes: (Option<u64>, u64),
    layout: (u64, u64),
) -> SlabUsage {
    SlabRow {
        objects,
        total_objects: total,
        slabs,
        object_size: sizes.0,
        slab_size: sizes.1,
        objs_per_slab: layout.0,
        bytes_per_slab: layout.1,
        ..SlabRow::default()
    }
    .usage()
}

#[test]
fn task_struct_of_the_field_notes() {
    // 5840 bytes asked for, 5888 padded, 5 in 32768. The tool's report: Lpadd 396032 for 119 slabs,
    // Lalig 28128 for 586 objects; what it misses are the free slots' own.
    let usage = usage_of_row(586, 595, 119, (Some(5840), 5888), (5, 32_768));
    let waste = usage.waste();
    assert_eq!(waste.tail, 119 * (32_768 - 5 * 5888));
    assert_eq!(waste.tail, 396_032);
    assert_eq!(waste.align, Some(595 * 48));
    assert_eq!(waste.free, 9 * 5840);
    assert_eq!(waste.total(), usage.wasted_bytes());
    assert_eq!(usage.wasted_bytes(), 119 * 32_768 - 586 * 5840);
    let product = usage.packing().value().unwrap()
        * known_alignment(usage.alignment())
        * usage.occupancy().value().unwrap();
    assert!((product - usage.overall().value().unwrap()).abs() < 1e-12);
}

fn known_alignment(alignment: AlignmentRatio) -> f64 {
    match alignment {
        AlignmentRatio::Whole { ratio } | AlignmentRatio::Partly { ratio, .. } => ratio.value().unwrap(),
        AlignmentRatio::Not => f64::NAN,
    }
}

#[test]
fn alignment_is_unknown_without_an_object_size_and_not_one() {
    let unknown = usage_of_row(10, 21, 1, (None, 192), (21, 4096));
    assert_eq!(unknown.alignment(), AlignmentRatio::Not);
    assert_eq!(unknown.waste().align, None);
    assert_eq!(unknown.waste().total(), unknown.wasted_bytes());
    let mut both = usage_of_row(10, 21, 1, (Some(184), 192), (21, 4096));
    both.add(&unknown);
    let AlignmentRatio::Partly { ratio, known } = both.alignment() else { panic!("{both:?}") };
    assert_eq!((ratio.part, ratio.whole), (21 * 184, 21 * 192));
    assert_eq!((known.part, known.whole), (21 * 192, 42 * 192));
    let text = serde_json::to_string(&unknown).unwrap();
    assert!(text.contains(r#""alignment":{"is":"not"}"#), "{text}");
}

#[test]
fn a_cache_without_slabs_has_no_efficiency() {
    let nothing = usage_of_row(0, 0, 0, (Some(64), 64), (64, 4096));
    assert_eq!(nothing.overall().value(), None);
    let text = serde_json::to_string(&nothing).unwrap();
    assert!(text.contains(r#""overall":{"part":0,"whole":0,"value":null}"#), "{text}");
}

#[test]
fn the_bound_on_hidden_objects() {
    let system = SlabFacts { page_size: None, cpus: Some(4), nodes: Some(2) };
    let counted = HiddenObjectBound { cpu_slabs: Some(3), ..HiddenObjectBound::default() };
    assert_eq!(counted.most_hidden_objects(100, 16, &system), Some(48));
    assert_eq!(counted.most_hidden_objects(2, 16, &system), Some(32), "no more than there are slots");
    // 2 * 30 / 16, rounded up, is 4 slabs on the list, and 1 in hand.
    let assumed = HiddenObjectBound { cpu_partial: Some(30), ..HiddenObjectBound::default() };
    assert_eq!(assumed.most_hidden_objects(100, 16, &system), Some(4 * 5 * 16));
    let sheaves =
        HiddenObjectBound { cpu_slabs: Some(0), sheaf_capacity: Some(32), ..HiddenObjectBound::default() };
    assert_eq!(sheaves.most_hidden_objects(1000, 16, &system), Some((3 * 4 + 10 * 2) * 32));
    assert_eq!(HiddenObjectBound::default().most_hidden_objects(100, 16, &system), None);
    assert_eq!(sheaves.most_hidden_objects(1000, 16, &SlabFacts::default()), None);
    assert_eq!(HiddenObjectBound::default().most_hidden_objects(0, 16, &SlabFacts::default()), Some(0));
}

#[test]
fn overall_is_an_interval_where_cpus_hold_slabs() {
    let slabinfo = make_slabinfo(&[(0, "a", 60, 64, 64, 64, 1, 1), (0, "b", 64, 64, 64, 64, 1, 1)]);
    let caches = make_cache_series(4096, &[(0, "a", 60, 64, Some(1), "a"), (0, "b", 64, 64, Some(0), "b")]);
    let found = read_recording(&slabinfo, Some(&caches));
    let all = cache_table(&found, &CacheTableOptions::default());
    // Each of two CPUs may hold the only slab of each cache.
    assert_eq!(all.end.overall_at_least().unwrap().value(), Some(0.0));
    assert_eq!(all.end.used_bytes, 60 * 60 + 64 * 64);
    assert_eq!(all.reclaimable.usage.used_bytes, 60 * 60);
}

#[test]
fn pages_of_64_kib() {
    let slabinfo = make_slabinfo(&[(0, "dentry", 300, 341, 192, 341, 1, 1)]);
    let scans = make_cache_series(65_536, &[(0, "dentry", 192, 192, Some(1), "dentry")]);
    let found = read_recording(&slabinfo, Some(&scans));
    assert_eq!(found.page_size(), 65_536, "the scan comes before the fact");
    assert_eq!(found.rows()[0].usage().slab_bytes, 65_536);
    assert!(!found.rows()[0].flags.is_doubtful());
}

fn any_line() -> impl Strategy<Value = (i64, i64, i64, i64, i64, i64)> {
    let number = prop_oneof![0..100_i64, 0..1_000_000_i64, any::<i64>()];
    (number.clone(), number.clone(), number.clone(), number.clone(), number.clone(), number)
}

proptest! {
    #[test]
    fn identities_hold_on_any_rows(
        lines in prop::collection::vec((0..5_u64, 0..4_usize, any_line()), 1..40),
        sizes in prop::collection::vec((any::<u16>(), any::<u16>()), 4),
    ) {
        const NAMES: [&str; 4] = ["a", "b", ":0000064", "with space"];
        let lines: Vec<SlabinfoTestRow> = lines
            .into_iter()
            .map(|(at, name, (active, total, size, objs, pages, slabs))| {
                (at, NAMES[name], active, total, size, objs, pages, slabs)
            })
            .collect();
        let scans: Vec<CacheScanRow> = NAMES
            .iter()
            .zip(&sizes)
            .map(|(name, (object, slab))| (0, *name, i64::from(*object), i64::from(*slab), None, ""))
            .collect();
        let (slabinfo, scans) = (make_slabinfo(&lines), make_cache_series(4096, &scans));
        let found = read_recording(&slabinfo, Some(&scans));
        let counts = found.counts();
        prop_assert_eq!(counts.read, lines.len());
        prop_assert_eq!(counts.used + counts.unusable, counts.read);
        prop_assert_eq!(found.rows().len(), counts.used);
        for row in found.rows() {
            check_usage(&row.usage())?;
        }
        let all = cache_table(&found, &CacheTableOptions::default());
        check_usage(&all.end)?;
        check_usage(&all.total.usage)?;
        let of_lines: u128 = all.caches.iter().map(|line| line.mean.usage.slab_bytes).sum();
        prop_assert_eq!(of_lines, all.total.usage.slab_bytes);
        let points = usage_timeline(&found, None).unwrap().points;
        prop_assert_eq!(points.iter().map(|point| point.rows).sum::<usize>(), counts.used);
        prop_assert_eq!(points.last().map(|point| point.usage), (!points.is_empty()).then_some(all.end));
        let bins = efficiency_histogram(&found, 60);
        let rows: usize = bins.bins.iter().chain([&bins.above]).map(|bin| bin.rows).sum();
        prop_assert_eq!(rows + bins.empty_rows, counts.used);
        let text = serde_json::to_string(&(&all, &points, &bins)).unwrap();
        prop_assert!(!text.contains("NaN") && !text.contains("inf"));
        serde_json::to_value(&all).unwrap();
    }

    #[test]
    fn factors_multiply_to_the_whole_over_any_sum(
        rows in prop::collection::vec((1..1000_u64, 1..64_u64, 1..4096_u64, 0..100_u64), 1..50)
    ) {
        let mut sum = SlabUsage::default();
        for (slabs, objs, size, free) in rows {
            let total = slabs * objs;
            let object = size - size / 10;
            sum.add(&usage_of_row(total - free.min(total), total, slabs, (Some(object), size), (objs, objs * size + 7)));
        }
        check_usage(&sum)?;
        let product = sum.packing().value().unwrap() * known_alignment(sum.alignment()) * sum.occupancy().value().unwrap();
        prop_assert!((product - sum.overall().value().unwrap()).abs() < 1e-12);
        prop_assert!(sum.overall().value().unwrap() <= 1.0);
    }
}

fn check_usage(usage: &SlabUsage) -> Result<(), TestCaseError> {
    prop_assert_eq!(usage.waste().total(), usage.wasted_bytes());
    let both = i128::try_from(usage.used_bytes).unwrap() + usage.wasted_bytes();
    prop_assert_eq!(both, i128::try_from(usage.slab_bytes).unwrap());
    for ratio in [usage.packing(), usage.occupancy(), usage.overall()] {
        prop_assert!(ratio.value().is_none_or(|value| value.is_finite() && value >= 0.0));
    }
    Ok(())
}

#[test]
fn torn_approximate_and_broken_rows_are_counted_and_kept() {
    let lines = [
        ((0, "torn", 70, 64, 64, 64, 1, 1), ""),
        ((0, "told", 60, 64, 64, 64, 1, 1), "torn,approximate"),
        ((0, "small", 30, 32, 64, 64, 1, 1), ""),
        ((0, "broken", -1, 64, 64, 64, 1, 1), "malformed"),
        ((0, "huge", 1, 1, 64, 64, i64::MAX / 4096, i64::MAX), ""),
        ((0, "empty", 0, 0, 64, 64, 1, 0), ""),
        ((0, "odd", 64, 64, 64, 64, 1, 1), "surprise"),
    ];
    let slabinfo = make_flagged_slabinfo(&lines);
    let found = read_recording(&slabinfo, None);
    let counts = found.counts();
    assert_eq!((counts.read, counts.used, counts.unusable), (7, 5, 2));
    assert_eq!((counts.flagged, counts.torn, counts.approximate, counts.malformed), (3, 2, 1, 1));
    assert_eq!((counts.smaller_slabs, counts.empty), (1, 1));
    let torn = found.rows()[0];
    assert_eq!(torn.flags, SlabRowFlags { torn: true, ..SlabRowFlags::default() });
    assert!(torn.usage().waste().free < 0, "a torn row is negative somewhere, and adds up all the same");
    let all = cache_table(&found, &CacheTableOptions::default());
    assert_eq!(all.rows, counts);
    assert_eq!(all.caches.iter().map(|line| line.flagged).sum::<usize>(), 3);
}

#[test]
fn what_is_missing_is_an_error_that_helps() {
    let slabinfo = make_slabinfo(&[(0, "a", 1, 1, 64, 64, 1, 1)]);
    let read = |input: &SlabInput| perflab_analyze::slab::SlabRecording::read(input).unwrap_err().to_string();
    assert!(read(&SlabInput::default()).starts_with("no rows of `slabinfo` in this run"));
    let without = SlabInput { slabinfo: Some(&slabinfo), ..SlabInput::default() };
    assert!(read(&without).starts_with("page size unknown"));
    let scans =
        [(4096, 0), (16_384, 1)].map(|(size, at)| make_cache_series(size, &[(at, "a", 64, 64, None, "")]));
    let rows: Vec<(perflab_model::Nanos, perflab_model::CellRow)> = scans
        .iter()
        .map(|scan| {
            (scan.at[0], (0..scan.schema.columns.len()).map(|column| scan.table.cell(0, column)).collect())
        })
        .collect();
    let mixed = perflab_model::series::Series::from_rows(scans[0].schema.clone(), &rows);
    let mixed = SlabInput {
        slabinfo: Some(&slabinfo),
        caches: Some(&mixed),
        system: four_kib_facts(),
        ..SlabInput::default()
    };
    assert_eq!(read(&mixed), "mixed page sizes in one run: 4096, 16384");
}
