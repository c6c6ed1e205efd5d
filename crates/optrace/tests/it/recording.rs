//! What is recorded is what happened.

use std::time::{Duration, Instant};

use optrace::{MOST_DEPTH, Recorder, SpanTime, Trace, TraceOptions, Vocabulary};

use super::{options_without_kernel_events, trace_and_read};

fn spin_for(microseconds: u64) {
    let since = Instant::now();
    while since.elapsed() < Duration::from_micros(microseconds) {}
}

#[test]
fn spans_are_exclusive_and_numbers_the_last() {
    let (summary, told, operations) = trace_and_read(options_without_kernel_events(), |recorder| {
        recorder.begin(1);
        recorder.number(0, 7);
        recorder.number(0, 8);
        recorder.number(1, -3);
        recorder.enter(0);
        spin_for(300);
        recorder.span(1, || spin_for(200));
        recorder.span(1, || spin_for(200));
        recorder.leave();
        spin_for(100);
        recorder.end();
    });
    assert_eq!((summary.operations, summary.lost, told.operations), (1, 0, 1));
    assert_eq!((told.cut, told.backwards, told.unbalanced), (None, 0, 0));
    let operation = &operations[0];
    assert_eq!((operation.kind, operation.numbers.as_slice()), (1, [(0, 8), (1, -3)].as_slice()));
    let [reap, allocate] = operation.spans.as_slice() else { panic!("{operation:?}") };
    assert_eq!((reap.kind, reap.count, allocate.kind, allocate.count), (0, 1, 1, 2));
    // A busy machine can only lengthen things.
    assert!(reap.ns >= 299_000 && allocate.ns >= 399_000, "{operation:?}");
    assert!(operation.wall >= reap.ns + allocate.ns + 99_000, "{operation:?}");
    assert!(operation.wall >= 799_000, "{operation:?}");
}

#[test]
fn one_stamp_can_end_and_begin() {
    let (_, _, operations) = trace_and_read(options_without_kernel_events(), |recorder| {
        recorder.begin(0);
        recorder.enter(0);
        spin_for(50);
        recorder.switch(1);
        spin_for(50);
        recorder.next(1);
        spin_for(50);
        recorder.end();
    });
    assert_eq!(operations.len(), 2);
    assert_eq!(operations[0].spans.iter().map(|span| span.kind).collect::<Vec<_>>(), [0, 1]);
    assert!(operations[0].spans.iter().all(|span| span.ns >= 49_000), "{operations:?}");
    assert!(operations[1].spans.is_empty() && operations[1].start >= operations[0].start + 99_000);
}

#[test]
fn one_stamp_can_begin_an_operation_and_its_first_span() {
    let (summary, told, operations) = trace_and_read(options_without_kernel_events(), |recorder| {
        recorder.begin_in(0, 2);
        spin_for(50);
        recorder.switch(1);
        spin_for(50);
        for n in 0..200 {
            recorder.next_in(1, 0);
            recorder.number(0, n);
        }
        recorder.end();
    });
    assert_eq!((summary.operations, told.unbalanced, operations.len()), (201, 0, 201));
    let [shift, allocate] = operations[0].spans.as_slice() else { panic!("{:?}", operations[0]) };
    assert_eq!((shift.kind.min(allocate.kind), shift.kind.max(allocate.kind)), (1, 2));
    assert!(shift.ns >= 49_000 && allocate.ns >= 49_000, "{:?}", operations[0]);
    for (n, operation) in (0..).zip(&operations[1..]) {
        assert_eq!((operation.kind, operation.numbers.as_slice()), (1, [(0, n)].as_slice()));
        assert!(matches!(operation.spans.as_slice(), [SpanTime { kind: 0, count: 1, .. }]), "{operation:?}");
    }
}

#[test]
fn nothing_is_lost_when_the_writer_is_behind() {
    let tiny = TraceOptions { chunk_bytes: 4096, chunks: 2, ..options_without_kernel_events() };
    let wanted = if cfg!(miri) { 600 } else { 300_000 };
    let (summary, told, operations) = trace_and_read(tiny, |recorder| {
        for n in 0..wanted {
            recorder.begin((n % 2) as u8);
            recorder.number(0, n);
            if n % 3 == 0 {
                recorder.span(2, || ());
            }
            recorder.end();
        }
    });
    assert_eq!((summary.operations, summary.lost), (wanted as u64, 0));
    assert_eq!((told.operations, told.lost, told.waits), (wanted as u64, 0, summary.waits));
    assert!(cfg!(miri) || summary.waits > 0, "two chunks of 4 KiB were never full");
    for (n, operation) in (0..).zip(&operations) {
        assert_eq!((operation.numbers[0].1, operation.kind), (n, (n % 2) as u8));
        assert_eq!(operation.spans.len(), usize::from(n % 3 == 0));
    }
    assert!(operations.windows(2).all(|two| two[0].start <= two[1].start));
}

#[test]
fn an_operation_may_be_longer_than_a_chunk() {
    let spans = if cfg!(miri) { 400 } else { 20_000 };
    let tiny = TraceOptions { chunk_bytes: 4096, chunks: 2, ..options_without_kernel_events() };
    let (summary, told, operations) = trace_and_read(tiny, |recorder| {
        recorder.begin(0);
        for n in 0..spans {
            recorder.span(0, || recorder.number(1, n));
        }
        recorder.switch(1);
        recorder.end();
        recorder.operation(1, || ());
    });
    assert_eq!((summary.operations, summary.lost, told.unbalanced, told.backwards), (2, 0, 1, 0));
    let [inner, others] = operations[0].spans.as_slice() else { panic!("{:?}", operations[0]) };
    // The format holds 16 bits of how often.
    assert_eq!((inner.count, others.count, operations[1].kind), (spans as u32, 1, 1));
    assert!(operations[1].start >= operations[0].start, "{operations:?}");
}

#[test]
fn every_thread_has_its_lane() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let each = if cfg!(miri) { 30 } else { 1000 };
    let words = Vocabulary::new(&["work"], &[], &["thread"]).unwrap();
    let trace = Trace::create(&path, &words, options_without_kernel_events()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let trace = &trace;
            scope.spawn(move || {
                let recorder = trace.recorder();
                for _ in 0..each * (thread + 1) {
                    recorder.operation(0, || recorder.number(0, thread));
                }
            });
        }
    });
    assert_eq!(trace.finish().unwrap().operations, 6 * each as u64);
    let mut seen = [0; 3];
    let mut lanes = std::collections::BTreeMap::new();
    let told = optrace::TraceFile::open(&path).unwrap().read_operations(|operation| {
        seen[operation.numbers[0].1 as usize] += 1;
        assert_eq!(*lanes.entry(operation.lane).or_insert(operation.thread), operation.thread);
    });
    assert_eq!((seen, told.unwrap().threads, lanes.len()), ([each, 2 * each, 3 * each], 3, 3));
}

#[test]
fn limits_are_said_and_harm_nothing() {
    let (_, told, operations) = trace_and_read(options_without_kernel_events(), |recorder| {
        recorder.begin(0);
        for _ in 0..MOST_DEPTH + 5 {
            recorder.enter(1);
        }
        for _ in 0..MOST_DEPTH + 5 {
            recorder.leave();
        }
        for n in 0..40 {
            recorder.number(0, n);
        }
        recorder.enter(200);
        recorder.end();
        recorder.begin(0);
        recorder.leave();
        recorder.begin(1);
        recorder.enter(2);
        recorder.end();
        recorder.end();
    });
    assert_eq!((told.operations, told.beyond, told.unbalanced), (2, 1, 1));
    assert_eq!(operations[0].spans[0].count as usize, MOST_DEPTH);
    assert!(matches!(operations[1].spans.as_slice(), [SpanTime { kind: 2, count: 1, .. }]));
}

#[test]
fn off_is_off() {
    let recorder = Recorder::off();
    recorder.begin(0);
    recorder.number(0, 1);
    recorder.span(0, || ());
    recorder.next(0);
    recorder.end();
    assert!(!recorder.is_on());
}
