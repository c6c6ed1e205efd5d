//! What an event costs the program that causes it, counted in the kernel.
//!
//! One thread makes system calls in a loop, whose tracepoints are counted: all of them, values of one as a histogram, pairs of both
//! by their number. A call alone, and one under each way to count, are timed in turn, in another order each round; the difference
//! is the cost. The peers see the same tracepoints: `perf stat`, and bpftrace where it is installed.
//!
//! As root: `cargo bench -p perflab-observe --bench events -- [ROUNDS]`.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use perflab_model::study::EventSpec;
use perflab_observe::{Root, RunTracepoints};

const CALLS: u32 = 1_000_000;

/// What counts: its name, how many events a system call has then, the most that an event (of pairs: a pair) may cost.
struct CountingWay {
    name: &'static str,
    events: u32,
    limit: Option<f64>,
    counted: Counted,
}

#[derive(Clone, Copy)]
enum Counted {
    Nothing,
    Here(&'static str),
    By(&'static [&'static str]),
}

const WAYS: &[CountingWay] = &[
    CountingWay { name: "alone", events: 1, limit: None, counted: Counted::Nothing },
    CountingWay {
        name: "count",
        events: 1,
        limit: Some(250.0),
        counted: Counted::Here(r#"{"event":"raw_syscalls:sys_enter"}"#),
    },
    CountingWay {
        name: "count, filtered",
        events: 1,
        limit: Some(250.0),
        counted: Counted::Here(r#"{"event":"raw_syscalls:sys_enter","filter":"id == 110 || id == 1"}"#),
    },
    CountingWay {
        name: "histogram of a field",
        events: 1,
        limit: Some(250.0),
        counted: Counted::Here(r#"{"event":"raw_syscalls:sys_exit","value":"ret"}"#),
    },
    CountingWay {
        name: "pair",
        events: 2,
        limit: Some(600.0),
        counted: Counted::Here(r#"{"begin":"raw_syscalls:sys_enter","end":"raw_syscalls:sys_exit"}"#),
    },
    CountingWay {
        name: "pair by key",
        events: 2,
        limit: Some(600.0),
        counted: Counted::Here(
            r#"{"begin":"raw_syscalls:sys_enter","end":"raw_syscalls:sys_exit","key":"id","keys":512}"#,
        ),
    },
    CountingWay {
        name: "perf stat -a",
        events: 1,
        limit: None,
        counted: Counted::By(&["perf", "stat", "-a", "-e", "raw_syscalls:sys_enter", "--", "sleep", "60"]),
    },
    CountingWay {
        name: "bpftrace count",
        events: 1,
        limit: None,
        counted: Counted::By(&["bpftrace", "-e", "tracepoint:raw_syscalls:sys_enter { @ = count(); }"]),
    },
    CountingWay {
        name: "bpftrace hist pair by key",
        events: 2,
        limit: None,
        counted: Counted::By(&[
            "bpftrace",
            "-e",
            "tracepoint:raw_syscalls:sys_enter { @b[tid] = nsecs; } \
             tracepoint:raw_syscalls:sys_exit /@b[tid]/ { @[args->id] = hist(nsecs - @b[tid]); delete(@b[tid]); }",
        ]),
    },
];

type BenchError = Box<dyn std::error::Error>;

fn main() -> Result<(), BenchError> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let rounds = words.first().and_then(|word| word.parse().ok()).unwrap_or(9_usize);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); WAYS.len()];
    for round in 0..=rounds {
        for turn in 0..WAYS.len() {
            let at = (turn + round) % WAYS.len();
            if let Some(time) = time_calls(&WAYS[at])?
                // The first round fills what only a first one fills.
                && round > 0
            {
                times[at].push(time);
            }
        }
    }
    let alone = median(&mut times[0]).ok_or("nothing was timed")?;
    println!("{CALLS} calls of getppid(2), {rounds} rounds, medians; alone {alone:.1} ns a call");
    for (way, times) in WAYS.iter().zip(&mut times).skip(1) {
        let Some(time) = median(times) else {
            println!("{:>26}: not here", way.name);
            continue;
        };
        let cost = time - alone;
        let limit = way.limit.map_or_else(String::new, |limit| {
            let said = if cost <= limit { "within" } else { "ABOVE" };
            format!(", {said} the limit of {limit} ns")
        });
        let each = cost / f64::from(way.events);
        println!("{:>26}: {cost:6.1} ns a call, {each:6.1} ns an event{limit}", way.name);
    }
    count_without_loss()
}

/// A million calls as fast as they come are a million, on each CPU.
fn count_without_loss() -> Result<(), BenchError> {
    let events = open_events(r#"{"event":"raw_syscalls:sys_enter","filter":"id == 110","of":"machine"}"#)?;
    let began = Instant::now();
    let threads = std::thread::available_parallelism()?.get();
    let before = read_count(&events)?;
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(call_getppid);
        }
    });
    let took = began.elapsed();
    let counted = read_count(&events)? - before;
    let made = i64::from(CALLS) * threads as i64;
    println!(
        "{made} calls on {threads} threads, {:.2} million a second: counted {counted}, lost {}",
        made as f64 / took.as_secs_f64() / 1e6,
        made - counted
    );
    Ok(())
}

fn read_count(events: &RunTracepoints) -> Result<i64, BenchError> {
    let machine = perflab_observe::MonitoredMachine { events: events.clone(), ..(&Root::host()).into() };
    let file = perflab_observe::find_monitor("events")?;
    let mut monitor = perflab_observe::monitor::open_run_monitor(file, &machine, Default::default())?;
    let mut rows = Vec::new();
    monitor.read_rows(&mut rows)?;
    match rows.first().and_then(|row| row.first()) {
        Some(perflab_model::TableCell::Int(count)) => Ok(*count),
        other => Err(format!("no count: {other:?}").into()),
    }
}

fn open_events(text: &str) -> Result<RunTracepoints, BenchError> {
    let spec: EventSpec = serde_json::from_str(text)?;
    let events = RunTracepoints::default();
    let lacking = events.open(&IndexMap::from([("e".to_owned(), spec)]), &Root::host(), true);
    match lacking.uncounted.first().or(lacking.counted_otherwise.first()) {
        Some(lacking) => Err(lacking.reason.clone().into()),
        None => Ok(events),
    }
}

fn call_getppid() {
    for _ in 0..CALLS {
        std::hint::black_box(rustix::process::getppid());
    }
}

/// Nanoseconds of a call; none where the peer is not installed.
fn time_calls(way: &CountingWay) -> Result<Option<f64>, BenchError> {
    let mut peer = None;
    let mut events = None;
    match way.counted {
        Counted::Nothing => {}
        Counted::Here(text) => events = Some(open_events(text)?),
        Counted::By(command) => {
            let Some(child) = start_peer(command) else { return Ok(None) };
            peer = Some(child);
        }
    }
    let began = Instant::now();
    call_getppid();
    let took = began.elapsed();
    drop(events);
    if let Some(mut peer) = peer {
        peer.kill()?;
        peer.wait()?;
    }
    Ok(Some(took.as_secs_f64() * 1e9 / f64::from(CALLS)))
}

fn start_peer(command: &[&str]) -> Option<Child> {
    let (program, arguments) = command.split_first()?;
    let child =
        Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
    // Until it is attached.
    std::thread::sleep(Duration::from_millis(1_500));
    Some(child)
}

fn median(times: &mut [f64]) -> Option<f64> {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}
