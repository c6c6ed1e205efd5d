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
/// Together they take longer than what the window's noise may be: a hypervisor that takes a processor away tells nobody.
const PAGES: usize = 128;

fn injected(row: u32, cause: u32) -> bool {
    row % EVERY == 100 + cause * 200
}

/// Work of about a microsecond, in a build that is not optimised.
fn work(seed: u64) -> u64 {
    (0..30).fold(seed, |sum, n| black_box(sum.rotate_left(5) ^ n))
}

fn load(recorder: &Recorder) {
    for row in 0..OPERATIONS {
        // Pages that were given back a moment ago: those that the hypervisor has yet to find take ten times as long.
        let mut pages = injected(row, 2).then(|| memmap2::MmapMut::map_anon(PAGES * 4096).unwrap());
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
        if let Some(pages) = &mut pages {
            pages.chunks_mut(4096).for_each(|page| page[0] = 1);
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

/// Precision and recall of the operations that are laid to a cause, against those into which it was put; and those that
/// were missed.
fn judged(report: &Report, name: &str, cause: u32) -> (f64, f64, Vec<u32>) {
    let found: BTreeSet<u32> = report
        .outliers
        .iter()
        .filter(|outlier| report.name(outlier) == name)
        .map(|outlier| outlier.row)
        .collect();
    let truth: BTreeSet<u32> = (0..OPERATIONS).filter(|row| injected(*row, cause)).collect();
    let both = found.intersection(&truth).count() as f64;
    let missed = truth.difference(&found).copied().collect();
    (both / found.len().max(1) as f64, both / truth.len() as f64, missed)
}

/// What there is to say of operations that were missed: their times, and the limit that they did not pass.
fn missed(operations: &Operations, report: &Report, rows: &[u32]) -> String {
    let verdict = |row: u32| report.outliers.iter().find(|one| one.row == row).map(|one| report.name(one));
    let told = rows.iter().map(|row| {
        let wall = operations.wall.get(*row as usize).copied().unwrap_or(0);
        let faults = operations.faults.iter().find_map(|(at, count)| (at == *row).then_some(count));
        format!("{row}: {wall} ns, {} faults, {:?}", faults.unwrap_or(0), verdict(*row))
    });
    format!("limit {} ns; {}", report.limit, told.collect::<Vec<_>>().join("; "))
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
        let report =
            analyze(&operations, &Options { clock: Some(clock), quantile: 0.99, ..Options::default() })
                .unwrap();
        let (precision, recall, rows) = judged(&report, name, cause);
        let missed = missed(&operations, &report, &rows);
        eprintln!("{name}: precision {precision:.3}, recall {recall:.3}; missed: {missed}");
        assert!(precision >= 0.95 && recall >= 0.95, "{name}: {precision}, {recall}; missed: {missed}");
    }
}
