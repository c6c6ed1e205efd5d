//! Where the sides are the same, no cause is named: real iterations, their blocks paired again at random.

use std::path::Path;

use fixtures::run_builder::SplitMixNoise;
use perflab_analyze::why::{Explanation, add_durations, add_monitor_quantities, explain_row};
use perflab_analyze::{AnalysisOptions, ComparisonSide, compare_levels};
use perflab_archive::{Archive, import_portable_run};
use perflab_model::RunRecord;

/// Placebos that are made.
const PLACEBOS: usize = 200;

/// Blocks of each, of the 40 that were recorded.
const BLOCKS: usize = 12;

/// The recorded run with all quantities of its iterations.
pub(crate) fn read_recorded_run() -> RunRecord {
    let folder = tempfile::tempdir().unwrap();
    let archive = Archive::open(folder.path()).unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/why/placebo.perflab");
    import_portable_run(&archive, &file).unwrap();
    let run = archive.find_runs("placebo").unwrap().remove(0);
    let mut record = run.read_record().unwrap();
    add_durations(&mut record);
    for monitor in run.list_monitors().unwrap() {
        let (series, edges) = (run.read_series(&monitor).unwrap(), run.read_edges(&monitor).unwrap());
        add_monitor_quantities(&mut record, &monitor, &series, edges.as_ref());
    }
    record
}

/// Some of its blocks, the levels of each exchanged or not.
fn pair_again(record: &RunRecord, chance: &mut SplitMixNoise) -> RunRecord {
    let mut blocks: Vec<u32> = (0..40).collect();
    for at in (1..blocks.len()).rev() {
        blocks.swap(at, (chance.uniform() * (at + 1) as f64) as usize);
    }
    let chosen: Vec<(u32, bool)> =
        blocks[..BLOCKS].iter().map(|block| (*block, chance.uniform() < 0.5)).collect();
    let mut placebo = record.clone();
    placebo.samples.retain_mut(|sample| {
        let Some((_, is_exchanged)) = chosen.iter().find(|(block, _)| *block == sample.iteration) else {
            return false;
        };
        sample.case = if *is_exchanged { 1 - sample.case } else { sample.case };
        true
    });
    placebo
}

fn explain_placebo(record: RunRecord) -> (Explanation, bool) {
    let side = [ComparisonSide { name: "placebo".into(), runs: vec![record] }];
    let options = AnalysisOptions { metrics: vec!["primary".into()], ..AnalysisOptions::default() };
    let comparison = compare_levels(&side[0], "placebo", &options).unwrap();
    let row = comparison.deciding_rows()[0];
    let is_changed = matches!(row.verdict_word(), "better" | "worse");
    (explain_row(&comparison, row, &side, &options, &[]).unwrap(), is_changed)
}

/// None of 200 here, whatever `compare` says of the row; the bound is that of the issue.
#[test]
fn of_two_hundred_placebos_at_most_five_in_a_hundred_have_a_suspect() {
    let record = read_recorded_run();
    let threads = 2;
    let explain = |thread: usize| {
        let mut chance = SplitMixNoise(1_000 + thread as u64);
        let placebos = (0..PLACEBOS / threads).map(|_| explain_placebo(pair_again(&record, &mut chance)));
        placebos.collect::<Vec<_>>()
    };
    let all: Vec<(Explanation, bool)> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|thread| scope.spawn(move || explain(thread))).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    });
    let tested: Vec<usize> = all.iter().map(|(found, _)| found.looked_at.families).collect();
    assert!(tested.iter().all(|families| *families > 20), "{tested:?}");
    let named = all.iter().filter(|(found, _)| found.has_suspects()).count();
    let changed = all.iter().filter(|(_, is_changed)| *is_changed).count();
    println!("suspects in {named}, changed {changed} of {PLACEBOS}; {} families", tested[0]);
    assert!(
        named * 20 <= PLACEBOS,
        "suspects in {named} of {PLACEBOS}, {changed} of which are called changed"
    );
}
