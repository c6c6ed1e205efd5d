//! Call stacks come back as they were recorded, from tables and from the journal of a run that died.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use perflab_archive::{Archive, ArchiveError, RunDir};
use perflab_model::profile::{Profile, ProfileSummary, StackTreeBuilder, SymbolAnchor};
use perflab_model::{FrameKind, StackFrame, StackSample};
use perflab_model::{Manifest, Nanos, RunEvent, RunEventKind, StackBatch, Unit};

const CASES: u32 = 2;
const ITERATIONS: u32 = 3;

fn make_batches(manifest: &Manifest) -> Vec<(StackBatch, ProfileSummary)> {
    let mut weaver = StackTreeBuilder::default();
    (0..)
        .zip(&manifest.plan.slots)
        .map(|(slot, _)| (make_batch(&mut weaver, slot), make_profiled(slot)))
        .collect()
}

fn make_batch(weaver: &mut StackTreeBuilder, slot: u32) -> StackBatch {
    let module = Some("[kernel.kallsyms]".to_owned());
    let kernel =
        StackFrame { module, start: Some(-16), ..StackFrame::new("kfree.part.0", FrameKind::Kernel) };
    let outer = weaver.intern_frame(StackFrame::new(&format!("main{}", slot % 2), FrameKind::User));
    let inner = weaver.intern_frame(StackFrame { inlined: slot == 1, ..kernel });
    let outer = weaver.intern_node(None, outer);
    let inner = weaver.intern_node(Some(outer), inner);
    let comm = weaver.intern_comm(&format!("task {}", slot % 3));
    let sample = |at: u64, leaf| StackSample {
        at: (slot != 2).then_some(Nanos(at)),
        cpu: Some(slot),
        pid: Some(if at == 3 { -1 } else { 40 }),
        tid: None,
        comm,
        leaf,
        count: 1 + at,
        weight: 2_004_008,
    };
    let samples = vec![sample(1, Some(inner)), sample(2, Some(outer)), sample(3, None)];
    weaver.take_batch(slot, samples)
}

fn make_profiled(slot: u32) -> ProfileSummary {
    let anchors = vec![SymbolAnchor { name: "kfree".into(), start: -16 }];
    let (source, event, unit) = ("perf_event_open".into(), "cpu-clock".into(), Unit::new("ns"));
    ProfileSummary {
        slot,
        source,
        event,
        unit,
        frequency: Some(499),
        lost: u64::from(slot),
        anchors,
        ..ProfileSummary::default()
    }
}

fn record_run(archive: &Archive, finish: bool) -> (Manifest, RunDir) {
    let manifest = fixtures::run_events::make_manifest(CASES, ITERATIONS);
    let mut recorder = archive.begin_run(&manifest).unwrap();
    let mut tell = |at: Nanos, what: RunEventKind| recorder.record(&RunEvent::new(at, what)).unwrap();
    fixtures::run_events::head_events(&manifest).into_iter().for_each(|event| tell(event.at, event.what));
    for (batch, about) in make_batches(&manifest) {
        tell(Nanos(5), RunEventKind::Stacks(Box::new(batch)));
        tell(Nanos(6), RunEventKind::Profiled(Box::new(about)));
    }
    if finish {
        return (manifest, recorder.finish().unwrap());
    }
    let path = recorder.path().to_owned();
    drop(recorder);
    (manifest, RunDir::open(&path).unwrap())
}

/// A case's profile by names, as numbers of command names differ from case to case.
fn describe_profile(profile: &Profile) -> Vec<String> {
    let samples = profile
        .iterations
        .iter()
        .flat_map(|piece| piece.samples.iter().map(move |one| (piece.summary.clone(), one)));
    let line = |(about, one): (ProfileSummary, &StackSample)| {
        let chain = std::iter::successors(one.leaf, |leaf| profile.node(*leaf).unwrap().parent);
        let frames: Vec<_> =
            chain.map(|leaf| profile.frame(profile.node(leaf).unwrap().frame).unwrap()).collect();
        format!(
            "{about:?} {:?} {:?} {:?} {} {} {} {frames:?}",
            one.at,
            one.cpu,
            one.pid,
            profile.comm(one.comm),
            one.count,
            one.weight
        )
    };
    samples.map(line).collect()
}

fn expected_profile(manifest: &Manifest, case: u32) -> Profile {
    let mut profile = Profile::default();
    for (batch, about) in make_batches(manifest) {
        if manifest.plan.slots[batch.slot as usize].case == case {
            profile.add_batch(batch);
            profile.add_summary(about);
        } else {
            profile.add_names(batch);
        }
    }
    profile
}

#[test]
fn stacks_come_back_from_tables_and_from_a_journal() {
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::open(directory.path()).unwrap();
    for finish in [true, false] {
        let (manifest, run) = record_run(&archive, finish);
        assert_eq!(run.profiled_cases().unwrap(), [0, 1]);
        assert_eq!(run.path().join("stacks/1.parquet").exists(), finish);
        for case in 0..CASES {
            let read = run.read_profile(case).unwrap();
            assert_eq!(
                describe_profile(&read),
                describe_profile(&expected_profile(&manifest, case)),
                "case {case}"
            );
            assert!(read.sample_counts().dead > 0);
        }
        assert!(matches!(run.read_profile(CASES), Err(ArchiveError::NoStacks { case: CASES, .. })));
    }
}

#[test]
fn a_tree_that_points_out_of_itself_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::open(directory.path()).unwrap();
    let (_, run) = record_run(&archive, true);
    // As in runs that were closed before there were hashes.
    std::fs::remove_file(run.path().join("SHA256SUMS")).unwrap();
    // The tree's columns are those of another table: the reader must say so and not panic.
    std::fs::copy(run.path().join("stacks/frames.parquet"), run.path().join("stacks/tree.parquet")).unwrap();
    let error = run.read_profile(0).unwrap_err();
    let ArchiveError::Damaged { path, reason } = error else { panic!("{error}") };
    assert_eq!(path, run.path().join("stacks/tree.parquet"));
    insta::assert_snapshot!(reason, @"column `parent` is not there");
}

#[test]
fn a_flipped_bit_in_a_table_of_stacks_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::open(directory.path()).unwrap();
    let (_, run) = record_run(&archive, true);
    for table in ["stacks/tree.parquet", "stacks/frames.parquet", "stacks/0.parquet"] {
        let path = run.path().join(table);
        let good = std::fs::read(&path).unwrap();
        for step in 0..100 {
            let mut bytes = good.clone();
            bytes[step * good.len() / 100] ^= 1 << (step % 8);
            std::fs::write(&path, bytes).unwrap();
            assert!(matches!(run.read_profile(0), Err(ArchiveError::Altered { .. })), "{table}, {step}");
        }
        std::fs::write(&path, good).unwrap();
    }
}
