//! What recording costs: the clock, operations with and without spans, the slab list's load with and without, and
//! whether anything is lost over very many operations. CPU time of the recording thread, least of several rounds.
//!
//! `cargo bench -p optrace --bench cost -- [ROUNDS] [OPERATIONS OF THE LAST TEST]`

use std::hint::black_box;
use std::path::Path;

use optrace::{ClockKind, Recorder, Trace, TraceFile, TraceOptions, Vocabulary};
use slablist::{ListShape, MinCapacity, ReapPolicy, ReapThresholds, SlabEvent, SlabProbe, SlabSet, SlabWork};

/// Tells a recorder what a list does, as `perflab load drv_rand_ops` does.
struct BenchRecordingProbe<'a>(&'a Recorder<'a>);

impl SlabProbe for BenchRecordingProbe<'_> {
    #[inline]
    fn begin(&mut self, work: SlabWork) {
        self.0.enter(match work {
            SlabWork::MakeSlab => 0,
            SlabWork::Spill => 1,
            SlabWork::Shift => 2,
            _ => 3,
        });
    }
    #[inline]
    fn event(&mut self, event: SlabEvent) {
        if matches!(
            event,
            SlabEvent::SlabMade { .. }
                | SlabEvent::Spilled { .. }
                | SlabEvent::Shifted { .. }
                | SlabEvent::Reaped { .. }
        ) {
            self.0.leave();
        }
    }
}

fn bench_vocabulary() -> Vocabulary {
    Vocabulary::new(&["insert"], &["allocate", "spill", "shift", "reap"], &["elements"]).unwrap_or_default()
}

/// Nanoseconds that this thread was on a CPU. Not schedstat's, which the kernel only brings up to date at its ticks.
fn thread_cpu_nanos() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds of CPU a turn, least of the rounds.
fn measure_least(rounds: usize, turns: u64, mut work: impl FnMut()) -> f64 {
    let once = |_| {
        let from = thread_cpu_nanos();
        work();
        thread_cpu_nanos().saturating_sub(from) as f64 / turns as f64
    };
    (0..rounds).map(once).fold(f64::INFINITY, f64::min)
}

fn run_with_trace<T>(path: &Path, work: impl FnOnce(&Recorder) -> T) -> T {
    let trace = Trace::create(path, &bench_vocabulary(), TraceOptions::default())
        .expect("a trace in the scratch folder");
    let recorder = trace.recorder();
    let result = work(&recorder);
    drop(recorder);
    let summary = trace.finish().expect("a trace that can be written");
    assert_eq!(summary.lost, 0);
    result
}

/// One turn of what is measured, with its number.
type MeasuredTurn = fn(&Recorder, i64);

fn print_costs(path: &Path, rounds: usize, turns: u64) {
    let kind = ClockKind::cheapest_steady();
    let clock = measure_least(rounds, turns, || (0..turns).for_each(|_| _ = black_box(read_stamp(kind))));
    println!("{:44} {clock:>8.1} ns", "the clock alone, one time stamp");
    let shapes: [(&str, MeasuredTurn); 9] = [
        ("operation (2 stamps)", |r, _| (r.begin(0), r.end()).1),
        ("operation with a number (2)", |r, n| (r.begin(0), r.number(0, n), r.end()).2),
        ("operation after operation, `next` (1)", |r, _| r.next(0)),
        ("operation with one span (4)", |r, _| (r.begin(0), r.enter(0), r.leave(), r.end()).3),
        ("operation with two spans (6)", |r, _| {
            (r.begin(0), r.enter(0), r.leave(), r.enter(1), r.leave(), r.end()).5
        }),
        ("two spans, operation after operation, `next` (5)", |r, _| {
            (r.enter(0), r.leave(), r.enter(1), r.leave(), r.next(0)).4
        }),
        ("two spans, one after the other, `switch` (4)", |r, _| {
            (r.begin(0), r.enter(0), r.switch(1), r.end()).3
        }),
        ("two such spans and `next` (3)", |r, _| (r.enter(0), r.switch(1), r.next(0)).2),
        ("two that fill it, `next_in`, `switch` (2)", |r, _| (r.next_in(0, 0), r.switch(1)).1),
    ];
    for (name, shape) in shapes {
        let ns = run_with_trace(path, |recorder| {
            measure_least(rounds, turns, || (0..turns).for_each(|n| shape(recorder, n as i64)))
        });
        println!("{name:44} {ns:>8.1} ns");
    }
}

fn read_stamp(kind: ClockKind) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if kind == ClockKind::Tsc {
        // SAFETY: every x86-64 has the instruction.
        #[expect(unsafe_code, reason = "the instruction has no safe reader")]
        return unsafe { std::arch::x86_64::_rdtsc() };
    }
    let _ = kind;
    std::time::Instant::now().elapsed().as_nanos() as u64
}

/// What loads cost that do not wait for one another, and what with a time stamp after each, for which it is told that the
/// counter waits until all of them are there: operations that are timed do not overlap, whoever times them.
fn print_overlap(rounds: usize, turns: u64) {
    let memory: Vec<u64> = (0..1 << 23).map(hash_number).collect();
    let place = |n: u64| hash_number(n) as usize % memory.len();
    let kind = ClockKind::cheapest_steady();
    let alone =
        measure_least(rounds, turns, || _ = black_box((0..turns).fold(0, |sum, n| sum ^ memory[place(n)])));
    let timed = measure_least(rounds, turns, || {
        _ = black_box(
            (0..turns).fold((0, 0), |(sum, time), n| (sum ^ memory[place(n)], time ^ read_stamp(kind))),
        );
    });
    println!(
        "{:44} {alone:>8.1} ns, with a time stamp after each {timed:.1} ns",
        "a load of 64 MiB at random"
    );
}

/// splitmix64.
fn hash_number(n: u64) -> u64 {
    let z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn time_recorded_load<R: ReapPolicy, P: SlabProbe>(
    keys: &[u64],
    mut set: SlabSet<u64, R, P>,
    recorder: &Recorder,
) -> f64 {
    let from = thread_cpu_nanos();
    for key in keys {
        recorder.next(0);
        recorder.number(0, set.len() as i64);
        set.insert(*key);
    }
    recorder.end();
    thread_cpu_nanos().saturating_sub(from) as f64 / keys.len() as f64
}

/// The load without a recorder: alone, or with a time stamp after each insertion, which is the least that any recorder takes
/// and keeps insertions from overlapping, as the counter waits for what was loaded before it.
fn time_bare_load<R: ReapPolicy>(keys: &[u64], mut set: SlabSet<u64, R>, stamped: Option<ClockKind>) -> f64 {
    let from = thread_cpu_nanos();
    for key in keys {
        set.insert(*key);
        if let Some(kind) = stamped {
            black_box(read_stamp(kind));
        }
    }
    thread_cpu_nanos().saturating_sub(from) as f64 / keys.len() as f64
}

fn compare_slab_list<R: ReapPolicy + Copy>(
    path: &Path,
    name: &str,
    shape: ListShape,
    policy: R,
    rounds: usize,
    n: u64,
) {
    let keys: Vec<u64> = (0..n).map(hash_number).collect();
    let new = || SlabSet::with_shape(shape, policy, slablist::NoProbe);
    let (mut plain, mut stamped, mut traced) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        plain = plain.min(time_bare_load(&keys, new(), None));
        stamped = stamped.min(time_bare_load(&keys, new(), Some(ClockKind::cheapest_steady())));
        traced = traced.min(run_with_trace(path, |recorder| {
            time_recorded_load(
                &keys,
                SlabSet::with_shape(shape, policy, BenchRecordingProbe(recorder)),
                recorder,
            )
        }));
    }
    let more = |than: f64| (traced / than - 1.0) * 100.0;
    println!(
        "{name:44} {plain:>8.1} ns, recorded {traced:.1} ns: {:+.1} %; with a time stamp alone {stamped:.1} ns: {:+.1} %",
        more(plain),
        more(stamped)
    );
}

fn assert_nothing_is_lost(path: &Path, operations: u64) {
    let from = thread_cpu_nanos();
    run_with_trace(path, |recorder| {
        for n in 0..operations {
            recorder.begin(0);
            recorder.number(0, n as i64);
            recorder.end();
        }
    });
    let spent = (thread_cpu_nanos() - from) as f64 / operations as f64;
    let (mut next, mut wrong) = (0, 0_u64);
    let told = TraceFile::open(path).and_then(|file| {
        file.read_operations(|operation| {
            wrong += u64::from(operation.numbers.first() != Some(&(0, next)));
            next += 1;
        })
    });
    let told = told.expect("the trace that was just written");
    assert_eq!((told.operations, wrong, told.cut.is_none()), (operations, 0, true));
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    println!(
        "{operations} operations: {} read back, {} lost, {wrong} wrong; {spent:.1} ns each; {bytes} bytes; waited {} times, {:.1} ms",
        told.operations,
        told.lost,
        told.waits,
        told.waited as f64 / 1e6
    );
}

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    // `cargo test --benches` only wants to see it run.
    let quick = std::env::args().any(|arg| arg == "--test") || cfg!(debug_assertions);
    let rounds = args.first().map_or(if quick { 1 } else { 7 }, |rounds| *rounds as usize);
    let (turns, n) = if quick { (1000, 1000) } else { (1_000_000, 1_416_100) };
    let folder = tempfile::tempdir().expect("a scratch folder");
    let path = folder.path().join("trace");
    print_costs(&path, rounds, turns);
    print_overlap(rounds, turns);
    let (old, new) = (MinCapacity::default(), ReapThresholds::default());
    compare_slab_list(&path, "slab list as of 2012, new policy", ListShape::ORIGINAL_2012, new, rounds, n);
    compare_slab_list(&path, "slab list as of 2012, old policy", ListShape::ORIGINAL_2012, old, rounds, n);
    compare_slab_list(
        &path,
        "slab list, default",
        ListShape::DEFAULT,
        slablist::BoundedReap::default(),
        rounds,
        n,
    );
    assert_nothing_is_lost(&path, args.get(1).copied().unwrap_or(turns));
}
