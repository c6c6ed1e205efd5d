//! Ground truth: causes are put into known operations of a real program (a sleep, a reap, pages that are not there), and
//! the attribution has to find them: at least 95 % precision and recall for each.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use optrace::{Recorder, Trace, Words};
use perflab_analyze::trace::{Clock, Options, PAGE_FAULT, Report, WAITING, analyze};
use perflab_model::trace::{NumberColumn, Operations, SpanColumn};

const OPERATIONS: u32 = 60_000;
/// Each cause is put into every so-manieth operation.
const EVERY: u32 = 600;
const PAGES: usize = 32;

fn injected(row: u32, cause: u32) -> bool {
    row % EVERY == 100 + cause * 200
}

/// Work of about a microsecond.
fn work(seed: u64) -> u64 {
    (0..400).fold(seed, |sum, n| black_box(sum.rotate_left(5) ^ n))
}

fn load(recorder: &Recorder) {
    let mut fresh = memmap2::MmapMut::map_anon(PAGES * 4096 * (OPERATIONS / EVERY + 1) as usize).unwrap();
    let mut pages = fresh.chunks_mut(4096);
    for row in 0..OPERATIONS {
        recorder.begin(0);
        recorder.number(0, row.into());
        black_box(work(row.into()));
        if injected(row, 0) {
            std::thread::sleep(Duration::from_micros(300));
        }
        if injected(row, 1) {
            recorder.span(0, || {
                let since = Instant::now();
                while since.elapsed() < Duration::from_micros(60) {}
            });
        }
        if injected(row, 2) {
            pages.by_ref().take(PAGES).for_each(|page| page[0] = 1);
        }
        recorder.end();
    }
}

/// What the program wrote, as the archive would give it back.
fn traced() -> Option<Operations> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let words = Words::new(&["work"], &["reap"], &["row"]).unwrap();
    let trace = Trace::create(&path, &words, optrace::Options::default()).unwrap();
    let recorder = trace.recorder();
    load(&recorder);
    drop(recorder);
    assert_eq!(trace.finish().unwrap().lost, 0);
    let mut all = Operations {
        kinds: words.operations.clone(),
        spans: vec![SpanColumn { name: "reap".into(), ..SpanColumn::default() }],
        numbers: vec![NumberColumn { name: "row".into(), ..NumberColumn::default() }],
        ..Operations::default()
    };
    let told = optrace::File::open(&path).unwrap().read(|operation| {
        let row = all.wall.len() as u32;
        all.kind.push(0);
        all.thread.push(operation.thread);
        all.start.push(operation.start as i64);
        all.wall.push(operation.wall as i64);
        let some = |column: &mut perflab_model::trace::Sparse, value: u64| {
            if value > 0 {
                column.push(row, value as i64);
            }
        };
        some(&mut all.preempted, operation.preempted);
        some(&mut all.waited, operation.waited);
        some(&mut all.faults, operation.faults.into());
        operation.spans.iter().for_each(|span| all.spans[0].time.push(row, span.ns as i64));
        operation.numbers.iter().for_each(|(_, value)| all.numbers[0].values.push(row, *value));
    });
    told.unwrap().refused.is_none().then_some(all)
}

/// Precision and recall of the operations that are laid to a cause, against those into which it was put.
fn judged(report: &Report, name: &str, cause: u32) -> (f64, f64) {
    let found: BTreeSet<u32> = report
        .outliers
        .iter()
        .filter(|outlier| report.name(outlier) == name)
        .map(|outlier| outlier.row)
        .collect();
    let truth: BTreeSet<u32> = (0..OPERATIONS).filter(|row| injected(*row, cause)).collect();
    let both = found.intersection(&truth).count() as f64;
    (both / found.len().max(1) as f64, both / truth.len() as f64)
}

#[test]
fn injected_causes_are_found() {
    let Some(operations) = traced() else {
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "the kernel refuses perf events");
        return eprintln!("SKIP injected_causes_are_found: the kernel refuses perf events");
    };
    // Sleeping is no time on the CPU; the others are looked at there, where nobody else's time is.
    for (clock, name, cause) in
        [(Clock::Wall, WAITING, 0), (Clock::OnCpu, "reap", 1), (Clock::OnCpu, PAGE_FAULT, 2)]
    {
        let report = analyze(&operations, &Options { clock, quantile: 0.99, ..Options::default() }).unwrap();
        let (precision, recall) = judged(&report, name, cause);
        eprintln!("{name}: precision {precision:.3}, recall {recall:.3}");
        assert!(precision >= 0.95 && recall >= 0.95, "{name}: precision {precision}, recall {recall}");
    }
}
