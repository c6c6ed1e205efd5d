//! Bytes per cache between runs.

use perflab_analyze::slab::{
    ALL_CACHES, CacheChange, SlabCompareOptions, SlabComparison, SlabRecording, SlabRepetition, SlabSide,
    compare_caches,
};
use perflab_analyze::{ChangeScale, Gate, MethodDescription, Verdict};
use perflab_model::RunRecord;

use super::table::{SlabinfoTestRow, make_slabinfo, read_recording};
use fixtures::run_builder::RunBuilder;

/// A run of ten iterations, one tick in each: a cache that grows by `slabs`, one that stays, one with a little noise.
fn make_slab_run(id: &str, slabs: i64, iterations: u32) -> (RunRecord, SlabRecording) {
    let record = RunBuilder::new(id).with(|lab| lab.iterations = iterations).build_run(|_| Some(1.0));
    let mut lines: Vec<SlabinfoTestRow> = Vec::new();
    for iteration in 0..u64::from(iterations) {
        let (at, wobble) = (iteration + 1, (iteration as i64 * 7) % 5);
        lines.push((at, "dentry", 1, 1, 192, 21, 1, slabs + wobble));
        lines.push((at, "still", 1, 1, 192, 21, 1, 500));
        lines.push((at, "noisy", 1, 1, 192, 21, 1, 20 * (1 + wobble) + slabs / 1000));
        lines.push((at, "never", 0, 0, 192, 21, 1, 0));
    }
    let recording = read_recording(&make_slabinfo(&lines), None);
    (record, recording)
}

fn compare_runs(
    before: &[(RunRecord, SlabRecording)],
    after: &[(RunRecord, SlabRecording)],
    whole_runs: bool,
) -> SlabComparison {
    let before = SlabSide { name: "before".into(), runs: make_repetitions(before) };
    let after = SlabSide { name: "after".into(), runs: make_repetitions(after) };
    compare_caches(&before, &[after], &SlabCompareOptions { whole_runs, ..SlabCompareOptions::default() })
        .unwrap()
}

fn make_repetitions(runs: &[(RunRecord, SlabRecording)]) -> Vec<SlabRepetition<'_>> {
    runs.iter().map(|(record, recording)| SlabRepetition { record, recording }).collect()
}

fn find_cache<'a>(found: &'a SlabComparison, name: &str) -> &'a CacheChange {
    found.caches.iter().find(|change| change.cache == name).unwrap()
}

#[test]
fn a_cache_that_grew_is_worse_in_bytes_with_an_interval() {
    let (before, after) = ([make_slab_run("A", 1000, 10)], [make_slab_run("B", 1200, 10)]);
    let found = compare_runs(&before, &after, false);
    assert!(!found.whole_runs);
    assert_eq!(found.caches[0].cache, ALL_CACHES);
    assert!(found.caches.iter().all(|change| change.cache != "never"), "a cache without slabs is no row");
    let dentry = find_cache(&found, "dentry");
    assert_eq!(
        (dentry.verdict, dentry.within_floor, dentry.mean.change.unwrap().scale),
        (Verdict::Differs, false, ChangeScale::Ratio)
    );
    let bytes = dentry.bytes.unwrap();
    let expected = 200.0 * 4096.0;
    assert!((bytes.value - expected).abs() < 0.01 * expected, "{bytes:?}");
    assert!(bytes.low.unwrap() > 0.9 * expected && bytes.high.unwrap() < 1.1 * expected);
    assert_eq!(dentry.peak.as_ref().unwrap().verdict, Verdict::Differs);
    assert_eq!(find_cache(&found, "still").verdict, Verdict::SameHere);
    let gate = "worse".parse::<Gate>().unwrap();
    assert!(found.violations(&gate).is_empty(), "one run a side");
    let gate = gate.counting_differing();
    let hit: Vec<&str> = found.violations(&gate).iter().map(|change| change.cache.as_str()).collect();
    assert_eq!(hit, [ALL_CACHES, "dentry"]);
    assert!(found.violations(&"worse:50%".parse::<Gate>().unwrap().counting_differing()).is_empty());
    assert!(found.mean.notes.contains(&MethodDescription::SlabNoiseFloor));
    serde_json::to_value(&found.caches).unwrap();
}

#[test]
fn a_change_within_one_slab_is_the_same() {
    // 1 slab against 2, every time: clear for the statistics, and nothing for memory.
    let runs = |id: &str, slabs| {
        let record = RunBuilder::new(id).build_run(|_| Some(1.0));
        let lines: Vec<SlabinfoTestRow> = (1..=10).map(|at| (at, "tiny", 1, 1, 192, 21, 1, slabs)).collect();
        [(record, read_recording(&make_slabinfo(&lines), None))]
    };
    let found = compare_runs(&runs("A", 1), &runs("B", 2), false);
    let tiny = find_cache(&found, "tiny");
    assert_eq!(
        (tiny.mean.verdict, tiny.verdict, tiny.within_floor),
        (Verdict::Differs, Verdict::SameHere, true)
    );
    assert_eq!(tiny.floor, 4096.0);
    let hit = found.violations(&"worse".parse::<Gate>().unwrap().counting_differing());
    assert!(hit.iter().all(|change| change.cache == ALL_CACHES));
}

#[test]
fn whole_runs_are_repetitions_where_there_are_no_iterations() {
    let bare = |id: &str, slabs| {
        let (mut record, recording) = make_slab_run(id, slabs, 3);
        record.iterations.clear();
        (record, recording)
    };
    let side = |name: &str, slabs: i64| {
        (0..6_i64).map(|n| bare(&format!("{name}{n}"), slabs + n)).collect::<Vec<_>>()
    };
    let found = compare_runs(&side("A", 1000), &side("B", 1300), false);
    assert!(found.whole_runs);
    let dentry = find_cache(&found, "dentry");
    assert_eq!((dentry.subject.as_str(), dentry.verdict), ("whole run", Verdict::Worse));
    assert_eq!(dentry.mean.baseline.as_ref().unwrap().n, 6);
    let once = compare_runs(&[bare("A", 1000)], &[bare("B", 1300)], false);
    assert_eq!(find_cache(&once, "dentry").verdict, Verdict::Unclear, "one run a side decides nothing");
}

#[test]
fn a_cache_that_only_one_side_has_holds_0_bytes_on_the_other() {
    let with = |id: &str, extra: bool| {
        let record = RunBuilder::new(id).build_run(|_| Some(1.0));
        let mut lines: Vec<SlabinfoTestRow> = Vec::new();
        for at in 1..=10 {
            lines.push((at, "dentry", 1, 1, 192, 21, 1, 100));
            if extra {
                lines.push((at, "btrfs_inode", 1, 1, 1144, 28, 8, 40));
            }
        }
        [(record, read_recording(&make_slabinfo(&lines), None))]
    };
    let found = compare_runs(&with("A", false), &with("B", true), false);
    let inode = find_cache(&found, "btrfs_inode");
    assert_eq!(inode.mean.change.unwrap().scale, ChangeScale::Absolute);
    assert_eq!(inode.bytes.unwrap().value, 40.0 * 32_768.0);
    assert_eq!(inode.verdict, Verdict::Differs);
    assert_eq!(find_cache(&found, "dentry").verdict, Verdict::SameHere);
}

#[test]
fn a_side_without_runs_is_refused() {
    let runs = [make_slab_run("A", 10, 3)];
    let nothing = SlabSide { name: "before".into(), runs: Vec::new() };
    let after = SlabSide { name: "after".into(), runs: make_repetitions(&runs) };
    let error =
        compare_caches(&nothing, std::slice::from_ref(&after), &SlabCompareOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "`before` holds no run");
    let error = compare_caches(&after, &[], &SlabCompareOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("nothing to compare `after` with"));
}
