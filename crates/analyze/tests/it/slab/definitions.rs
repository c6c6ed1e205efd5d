//! The definitions: published numbers, and identities on any rows.

use perflab_analyze::slab::{
    Alignment, Hidden, Input, Observed, RowFlags, ShowOptions, System, Usage, histogram, show, timeline,
};
use proptest::prelude::*;

use super::table::{Line, Scan, caches, flagged, four_kib, recording, slabinfo};

fn row(objects: u64, total: u64, slabs: u64, sizes: (Option<u64>, u64), layout: (u64, u64)) -> Usage {
    Observed {
        objects,
        total_objects: total,
        slabs,
        object_size: sizes.0,
        slab_size: sizes.1,
        objs_per_slab: layout.0,
        bytes_per_slab: layout.1,
        ..Observed::default()
    }
    .usage()
}

#[test]
fn task_struct_of_the_field_notes() {
    // 5840 bytes asked for, 5888 padded, 5 in 32768. The tool's report: Lpadd 396032 for 119 slabs,
    // Lalig 28128 for 586 objects; what it misses are the free slots' own.
    let usage = row(586, 595, 119, (Some(5840), 5888), (5, 32_768));
    let waste = usage.waste();
    assert_eq!(waste.tail, 119 * (32_768 - 5 * 5888));
    assert_eq!(waste.tail, 396_032);
    assert_eq!(waste.align, Some(595 * 48));
    assert_eq!(waste.free, 9 * 5840);
    assert_eq!(waste.total(), usage.wasted());
    assert_eq!(usage.wasted(), 119 * 32_768 - 586 * 5840);
    let product =
        usage.packing().value().unwrap() * ratio(usage.alignment()) * usage.occupancy().value().unwrap();
    assert!((product - usage.overall().value().unwrap()).abs() < 1e-12);
}

fn ratio(alignment: Alignment) -> f64 {
    match alignment {
        Alignment::Whole { ratio } | Alignment::Partly { ratio, .. } => ratio.value().unwrap(),
        Alignment::Not => f64::NAN,
    }
}

#[test]
fn alignment_is_unknown_without_an_object_size_and_not_one() {
    let unknown = row(10, 21, 1, (None, 192), (21, 4096));
    assert_eq!(unknown.alignment(), Alignment::Not);
    assert_eq!(unknown.waste().align, None);
    assert_eq!(unknown.waste().total(), unknown.wasted());
    let mut both = row(10, 21, 1, (Some(184), 192), (21, 4096));
    both.add(&unknown);
    let Alignment::Partly { ratio, known } = both.alignment() else { panic!("{both:?}") };
    assert_eq!((ratio.part, ratio.whole), (21 * 184, 21 * 192));
    assert_eq!((known.part, known.whole), (21 * 192, 42 * 192));
    let text = serde_json::to_string(&unknown).unwrap();
    assert!(text.contains(r#""alignment":{"is":"not"}"#), "{text}");
}

#[test]
fn a_cache_without_slabs_has_no_efficiency() {
    let nothing = row(0, 0, 0, (Some(64), 64), (64, 4096));
    assert_eq!(nothing.overall().value(), None);
    let text = serde_json::to_string(&nothing).unwrap();
    assert!(text.contains(r#""overall":{"part":0,"whole":0,"value":null}"#), "{text}");
}

#[test]
fn the_bound_on_hidden_objects() {
    let system = System { page_size: None, cpus: Some(4), nodes: Some(2) };
    let counted = Hidden { cpu_slabs: Some(3), ..Hidden::default() };
    assert_eq!(counted.objects(100, 16, &system), Some(48));
    assert_eq!(counted.objects(2, 16, &system), Some(32), "no more than there are slots");
    // 2 * 30 / 16, rounded up, is 4 slabs on the list, and 1 in hand.
    let assumed = Hidden { cpu_partial: Some(30), ..Hidden::default() };
    assert_eq!(assumed.objects(100, 16, &system), Some(4 * 5 * 16));
    let sheaves = Hidden { cpu_slabs: Some(0), sheaf_capacity: Some(32), ..Hidden::default() };
    assert_eq!(sheaves.objects(1000, 16, &system), Some((3 * 4 + 10 * 2) * 32));
    assert_eq!(Hidden::default().objects(100, 16, &system), None);
    assert_eq!(sheaves.objects(1000, 16, &System::default()), None);
    assert_eq!(Hidden::default().objects(0, 16, &System::default()), Some(0));
}

#[test]
fn overall_is_an_interval_where_cpus_hold_slabs() {
    let slabinfo = slabinfo(&[(0, "a", 60, 64, 64, 64, 1, 1), (0, "b", 64, 64, 64, 64, 1, 1)]);
    let caches = caches(4096, &[(0, "a", 60, 64, Some(1), "a"), (0, "b", 64, 64, Some(0), "b")]);
    let found = recording(&slabinfo, Some(&caches));
    let all = show(&found, &ShowOptions::default());
    // Each of two CPUs may hold the only slab of each cache.
    assert_eq!(all.end.overall_at_least().unwrap().value(), Some(0.0));
    assert_eq!(all.end.used_bytes, 60 * 60 + 64 * 64);
    assert_eq!(all.reclaimable.usage.used_bytes, 60 * 60);
}

#[test]
fn pages_of_64_kib() {
    let slabinfo = slabinfo(&[(0, "dentry", 300, 341, 192, 341, 1, 1)]);
    let scans = caches(65_536, &[(0, "dentry", 192, 192, Some(1), "dentry")]);
    let found = recording(&slabinfo, Some(&scans));
    assert_eq!(found.page_size(), 65_536, "the scan comes before the fact");
    assert_eq!(found.rows()[0].usage().slab_bytes, 65_536);
    assert!(!found.rows()[0].flags.any());
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
        let lines: Vec<Line> = lines
            .into_iter()
            .map(|(at, name, (active, total, size, objs, pages, slabs))| {
                (at, NAMES[name], active, total, size, objs, pages, slabs)
            })
            .collect();
        let scans: Vec<Scan> = NAMES
            .iter()
            .zip(&sizes)
            .map(|(name, (object, slab))| (0, *name, i64::from(*object), i64::from(*slab), None, ""))
            .collect();
        let (slabinfo, scans) = (slabinfo(&lines), caches(4096, &scans));
        let found = recording(&slabinfo, Some(&scans));
        let counts = found.counts();
        prop_assert_eq!(counts.read, lines.len());
        prop_assert_eq!(counts.used + counts.unusable, counts.read);
        prop_assert_eq!(found.rows().len(), counts.used);
        for row in found.rows() {
            check(&row.usage())?;
        }
        let all = show(&found, &ShowOptions::default());
        check(&all.end)?;
        check(&all.total.usage)?;
        let of_lines: u128 = all.caches.iter().map(|line| line.mean.usage.slab_bytes).sum();
        prop_assert_eq!(of_lines, all.total.usage.slab_bytes);
        let points = timeline(&found, None).unwrap().points;
        prop_assert_eq!(points.iter().map(|point| point.rows).sum::<usize>(), counts.used);
        prop_assert_eq!(points.last().map(|point| point.usage), (!points.is_empty()).then_some(all.end));
        let bins = histogram(&found, 60);
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
        let mut sum = Usage::default();
        for (slabs, objs, size, free) in rows {
            let total = slabs * objs;
            let object = size - size / 10;
            sum.add(&row(total - free.min(total), total, slabs, (Some(object), size), (objs, objs * size + 7)));
        }
        check(&sum)?;
        let product = sum.packing().value().unwrap() * ratio(sum.alignment()) * sum.occupancy().value().unwrap();
        prop_assert!((product - sum.overall().value().unwrap()).abs() < 1e-12);
        prop_assert!(sum.overall().value().unwrap() <= 1.0);
    }
}

fn check(usage: &Usage) -> Result<(), TestCaseError> {
    prop_assert_eq!(usage.waste().total(), usage.wasted());
    let both = i128::try_from(usage.used_bytes).unwrap() + usage.wasted();
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
    let slabinfo = flagged(&lines);
    let found = recording(&slabinfo, None);
    let counts = found.counts();
    assert_eq!((counts.read, counts.used, counts.unusable), (7, 5, 2));
    assert_eq!((counts.flagged, counts.torn, counts.approximate, counts.malformed), (3, 2, 1, 1));
    assert_eq!((counts.smaller_slabs, counts.empty), (1, 1));
    let torn = found.rows()[0];
    assert_eq!(torn.flags, RowFlags { torn: true, ..RowFlags::default() });
    assert!(torn.usage().waste().free < 0, "a torn row is negative somewhere, and adds up all the same");
    let all = show(&found, &ShowOptions::default());
    assert_eq!(all.rows, counts);
    assert_eq!(all.caches.iter().map(|line| line.flagged).sum::<usize>(), 3);
}

#[test]
fn what_is_missing_is_an_error_that_helps() {
    let slabinfo = slabinfo(&[(0, "a", 1, 1, 64, 64, 1, 1)]);
    let read = |input: &Input| perflab_analyze::slab::Recording::read(input).unwrap_err().to_string();
    assert!(read(&Input::default()).starts_with("no rows of `slabinfo` in this run"));
    let without = Input { slabinfo: Some(&slabinfo), ..Input::default() };
    assert!(read(&without).starts_with("page size unknown"));
    let mut mixed = caches(4096, &[(0, "a", 64, 64, None, "")]);
    let other = caches(16_384, &[(1, "a", 64, 64, None, "")]);
    mixed.at.extend(&other.at);
    for (ours, theirs) in mixed.columns.iter_mut().zip(other.columns) {
        match (ours, theirs) {
            (perflab_model::series::ColumnData::Int(a), perflab_model::series::ColumnData::Int(b)) => {
                a.extend(b)
            }
            (perflab_model::series::ColumnData::Text(a), perflab_model::series::ColumnData::Text(b)) => {
                a.extend(b)
            }
            _ => unreachable!(),
        }
    }
    let mixed =
        Input { slabinfo: Some(&slabinfo), caches: Some(&mixed), system: four_kib(), ..Input::default() };
    assert_eq!(read(&mixed), "mixed page sizes in one run: 4096, 16384");
}
