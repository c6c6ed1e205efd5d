//! Notes, records and their order from recorded bytes; places of this very test, and its own threads where the kernel
//! allows it.

use std::collections::HashMap;
use std::path::Path;

use proptest::prelude::*;

use super::note::UsdtNote;
use super::order::TimeOrderBuffer;
use super::record::{OtherRingRecords, ProbeEvent, ProbeEventKind, read_probe_records};
use super::{ProbeCostMeter, ProbeError, ProbePoint, ProbeRecorder, ProbedProgram};
use crate::Root;

fn build_note_description(words: [u64; 3], texts: &[u8]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).chain(texts.iter().copied()).collect()
}

#[test]
fn a_note_is_read_and_a_short_one_is_not() {
    let bytes = build_note_description([0x1234, 0x2000, 0x3002], b"slablist\0reaped\08@%rax\0");
    let wanted = UsdtNote {
        address: 0x1234,
        base: 0x2000,
        semaphore: 0x3002,
        provider: "slablist".into(),
        name: "reaped".into(),
        arguments: "8@%rax".into(),
    };
    assert_eq!(UsdtNote::parse(&bytes), Some(wanted));
    for length in 0..25 {
        assert_eq!(UsdtNote::parse(&bytes[..length]), None, "{length}");
    }
}

/// A record as the kernel writes it.
fn build_perf_record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
    let size = 8 + words.len() as u64 * 8;
    let head = u64::from(kind) | u64::from(misc) << 32 | size << 48;
    std::iter::once(&head).chain(words).flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn records_become_what_was_seen() {
    let places = HashMap::from([
        (7, ProbeEventKind::Place(0)),
        (8, ProbeEventKind::Place(1)),
        (9, ProbeEventKind::Fault),
    ]);
    let thread = 42_u64 << 32 | 40;
    let bytes = [
        build_perf_record(9, 2, &[7, thread, 1000]),
        build_perf_record(9, 2, &[9, thread, 1100]),
        build_perf_record(14, 1 << 13 | 1 << 14, &[thread, 1200, 9]),
        build_perf_record(14, 0, &[thread, 1300, 9]),
        build_perf_record(14, 1 << 13, &[thread, 1400, 9]),
        build_perf_record(2, 0, &[7, 5, thread, 1500, 7]),
        build_perf_record(9, 2, &[8, thread, 1600]),
        build_perf_record(9, 2, &[99, thread, 1700]),
        build_perf_record(9, 2, &[8, 42 << 32 | 41, 1800]),
        // Its name was changed; then it became another program.
        build_perf_record(3, 0, &[thread, u64::from_le_bytes(*b"renamed\0"), thread, 1850, 9]),
        build_perf_record(3, 1 << 13, &[thread, u64::from_le_bytes(*b"another-"), 0, thread, 1900, 9]),
    ]
    .concat();
    let mut seen = Vec::new();
    assert_eq!(
        read_probe_records(&bytes, 40, &places, |one| seen.push((one.time, one.thread, one.kind))),
        OtherRingRecords { lost: 5, others: 1 }
    );
    let wanted = [
        (1000, 42, ProbeEventKind::Place(0)),
        (1100, 42, ProbeEventKind::Fault),
        (1200, 42, ProbeEventKind::Preempted),
        (1300, 42, ProbeEventKind::Resumed),
        (1400, 42, ProbeEventKind::Waited),
        (1600, 42, ProbeEventKind::Place(1)),
        (1900, 42, ProbeEventKind::Exec),
    ];
    assert_eq!(seen, wanted);
}

proptest! {
    #[test]
    fn no_bytes_are_too_bad(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        read_probe_records(&bytes, 0, &HashMap::from([(0, ProbeEventKind::Fault)]), |_| {});
        let _ = UsdtNote::parse(&bytes);
        let _ = ProbedProgram::parse(Path::new("x"), &bytes);
    }

    #[test]
    fn two_rings_become_one_order(mut times in proptest::collection::vec((0_u64..1000, any::<bool>()), 1..200), at in 0_usize..200) {
        times.sort_unstable();
        let (early, late) = times.split_at(at.min(times.len()));
        let mut order = TimeOrderBuffer::default();
        let mut out = Vec::new();
        for (part, now) in [(early, early.last().map_or(0, |last| last.0)), (late, 1001), (&[][..], 1002)] {
            for ring in [true, false] {
                let told = part.iter().filter(|(_, which)| *which == ring);
                told.for_each(|(time, _)| order.add(ProbeEvent { time: *time, thread: 1, stack: 0, routine: 0, kind: ProbeEventKind::Fault }));
            }
            order.release_before(now, &mut |seen| out.push(seen.time));
        }
        order.release_all(&mut |seen| out.push(seen.time));
        prop_assert_eq!(out, times.iter().map(|(time, _)| *time).collect::<Vec<_>>());
    }
}

/// Something to probe, in this test's own binary.
#[unsafe(no_mangle)]
#[inline(never)]
#[expect(unsafe_code, reason = "a symbol that the test finds by its name")]
extern "C" fn perflab_probed_by_a_test(turns: u64) -> u64 {
    (0..turns).fold(0, |sum, n| sum ^ std::hint::black_box(n))
}

#[test]
fn places_have_names_and_what_is_missing_says_what_there_is() {
    let own = ProbedProgram::read(&std::env::current_exe().unwrap()).unwrap();
    own.function("perflab_probed_by_a_test").unwrap();
    let error = own.function("perflab_probed_by_a_tset").unwrap_err().to_string();
    assert!(
        error.contains("has no function `perflab_probed_by_a_tset`") && error.contains("perflab_probed"),
        "{error}"
    );
    let error = own.probe_point("no:such", None).unwrap_err().to_string();
    assert!(error.contains("has no USDT probe `no:such`; it"), "{error}");
    let error = ProbedProgram::parse(Path::new("/x"), b"nothing of the kind").unwrap_err().to_string();
    assert!(error.starts_with("/x: not an ELF program or library"), "{error}");
    let error = ProbedProgram::read(Path::new("/nowhere")).unwrap_err().to_string();
    assert!(error.contains("cannot read /nowhere"), "{error}");
}

#[test]
fn a_kernel_without_uprobes_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let error = ProbeRecorder::attach(&Root(folder.path().into()), 1, &[]).unwrap_err();
    assert!(
        matches!(error, ProbeError::NoUprobes) && error.to_string().contains("CONFIG_UPROBE_EVENTS"),
        "{error}"
    );
}

/// Where the kernel refuses, the test has nothing to show.
fn ok_unless_refused<T>(name: &str, result: Result<T, ProbeError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) if std::env::var_os("PERFLAB_REQUIRE_ALL").is_none() => {
            eprintln!("SKIP {name}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn every_call_of_every_thread_is_seen_with_its_return() {
    let name = "every_call_of_every_thread_is_seen_with_its_return";
    let own = ProbedProgram::read(&std::env::current_exe().unwrap()).unwrap();
    let site = own.function("perflab_probed_by_a_test").unwrap();
    let place = |sites| ProbePoint { path: own.path().into(), sites, condition: None };
    let places = [place(vec![site.begin]), place(site.ends)];
    let pid = std::process::id() as i32;
    let Some(mut attached) = ok_unless_refused(name, ProbeRecorder::attach(&Root::host(), pid, &places))
    else {
        return;
    };
    attached.start();
    let call = || {
        let mut sum = 0;
        (0..500).for_each(|turns| sum ^= perflab_probed_by_a_test(turns));
        (rustix::thread::gettid().as_raw_nonzero().get(), std::hint::black_box(sum)).0
    };
    let threads: Vec<i32> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..3).map(|_| scope.spawn(call)).collect();
        started.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = Vec::new();
    attached.drain_events(|one| seen.push(one));
    assert_eq!(attached.stop(|one| seen.push(one)).lost, 0);
    assert!(seen.is_sorted_by_key(|one| one.time));
    for thread in threads {
        let calls: Vec<usize> = seen
            .iter()
            .filter(|one| one.thread == thread)
            .filter_map(|one| match one.kind {
                ProbeEventKind::Place(number) => Some(number),
                _ => None,
            })
            .collect();
        assert_eq!(calls, [0, 1].repeat(500), "thread {thread}");
    }
}

#[test]
fn an_event_has_a_price_however_often_it_is_asked_for() {
    let name = "an_event_has_a_price_however_often_it_is_asked_for";
    let root = Root::host();
    let meters =
        [ProbeCostMeter::new, ProbeCostMeter::on_own_code].map(|new| ok_unless_refused(name, new(&root)));
    let [Some(mut copied), Some(mut own)] = meters else { return };
    for cost in [
        copied.measure(ProbeCostMeter::FULL_ROUNDS),
        copied.measure(ProbeCostMeter::QUICK_ROUNDS),
        own.measure(ProbeCostMeter::FULL_ROUNDS),
    ] {
        // Each is told, so each is between its begin and its end.
        let all = [cost.emulated, cost.stepped, cost.returned, cost.between];
        assert!(all.into_iter().all(|cost| cost > 0.0), "{cost:?}");
    }
}

/// More calls than the kernel has room for: what it did not tell of is counted, to the last.
#[test]
fn what_the_kernel_had_no_room_for_is_counted() {
    let name = "what_the_kernel_had_no_room_for_is_counted";
    let own = ProbedProgram::read(&std::env::current_exe().unwrap()).unwrap();
    let site = own.function("perflab_probed_by_a_test_too_often").unwrap();
    let places = [ProbePoint { path: own.path().into(), sites: vec![site.begin], condition: None }];
    let Some(attached) = ok_unless_refused(name, ProbeRecorder::attach_to_self(&Root::host(), &places))
    else {
        return;
    };
    attached.start();
    let calls = 20_000;
    let sum: u64 = (0..calls).map(|turns| perflab_probed_by_a_test_too_often(turns)).sum();
    std::hint::black_box(sum);
    let mut told = 0;
    let end = attached.stop(|_| told += 1);
    assert!(end.lost > 0 && told > 0, "{end:?}");
    assert_eq!(end.lost + told, calls);
}

/// The same, for one test alone.
#[unsafe(no_mangle)]
#[inline(never)]
#[expect(unsafe_code, reason = "a symbol that the test finds by its name")]
extern "C" fn perflab_probed_by_a_test_too_often(turns: u64) -> u64 {
    std::hint::black_box(turns) ^ 1
}
