//! What tracing costs the startup that is traced.
//!
//! The same command cold, with and without a recorder of `perflab io record` around it, with that of the daemon,
//! which sees only what comes into memory, and under the peers that see the same events (`perf record` of the same
//! tracepoints, `strace -f` of file calls). Wall time is from the moment in which a process that waits may become
//! the command to its end; CPU its own and, with a recorder, that of the recorder's thread. Variants are taken in
//! turn, in another order each round.
//!
//! As root: `cargo bench -p perflab-observe --bench io -- [ROUNDS] [-- COMMAND...]`; without a command, a Python
//! that imports what it has.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflab_model::Nanos;
use perflab_observe::io::{IoTraceScope, IoTracer, ProcessIoTracer};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

const EVENTS: &str = "filemap:mm_filemap_add_to_page_cache,filemap:mm_filemap_fault,filemap:mm_filemap_get_pages,\
                      filemap:mm_filemap_map_pages,block:block_rq_issue,block:block_rq_complete,\
                      sched:sched_process_exec,sched:sched_process_exit";
const IMPORTS: &str = "import json, http.client, email, decimal, asyncio, xml.dom.minidom, unittest, sqlite3";

#[derive(Clone, Copy, PartialEq)]
enum TracingVariant {
    Alone,
    Traced,
    Followed,
    Perf,
    Strace,
}

const TRACING_VARIANTS: [(TracingVariant, &str); 5] = [
    (TracingVariant::Alone, "alone"),
    (TracingVariant::Traced, "perflab io record"),
    (TracingVariant::Followed, "prefetch daemon"),
    (TracingVariant::Perf, "perf record"),
    (TracingVariant::Strace, "strace -f"),
];

type BenchError = Box<dyn std::error::Error>;

/// What one start took.
#[derive(Clone, Copy)]
struct StartCost {
    wall: Duration,
    cpu: Duration,
    events: usize,
    lost: u64,
}

fn main() -> Result<(), BenchError> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let rounds = words.first().and_then(|word| word.parse().ok()).unwrap_or(11_usize);
    let given = words.iter().skip_while(|word| *word != "--").skip(1).cloned().collect::<Vec<_>>();
    let usual = || ["python3", "-c", IMPORTS].map(String::from).to_vec();
    let command = if given.is_empty() { usual() } else { given };
    let mut taken: Vec<Vec<StartCost>> = vec![Vec::new(); TRACING_VARIANTS.len()];
    for round in 0..=rounds {
        for turn in 0..TRACING_VARIANTS.len() {
            let at = (turn + round) % TRACING_VARIANTS.len();
            let took = run_cold_start(TRACING_VARIANTS[at].0, &command)?;
            // The first round fills what only a first one fills.
            if round > 0 {
                taken[at].extend(took);
            }
        }
    }
    println!("{}: {rounds} cold starts a way; median of wall times, mean of CPU times", command.join(" "));
    let alone = summarize_starts(&taken[0]);
    for ((_, name), all) in TRACING_VARIANTS.iter().zip(&taken).filter(|(_, all)| !all.is_empty()) {
        let (wall, cpu) = summarize_starts(all);
        let events = all.iter().map(|took| took.events).max().unwrap_or(0);
        let lost: u64 = all.iter().map(|took| took.lost).sum();
        println!(
            "{name:>18}: wall {wall:7.3} s ({:+5.1} %), CPU {cpu:6.3} s ({:+5.1} %), {events} events, {lost} lost",
            (wall / alone.0 - 1.0) * 100.0,
            (cpu / alone.1 - 1.0) * 100.0
        );
    }
    Ok(())
}

/// The median of wall times, and the mean of CPU times: the kernel tells those of children in hundredths of a second, cut off
/// from an exact sum, so that only a mean has more places.
fn summarize_starts(all: &[StartCost]) -> (f64, f64) {
    let mut walls: Vec<f64> = all.iter().map(|took| took.wall.as_secs_f64()).collect();
    walls.sort_by(f64::total_cmp);
    let cpu: f64 = all.iter().map(|took| took.cpu.as_secs_f64()).sum();
    (walls[walls.len() / 2], cpu / all.len() as f64)
}

/// One cold start; none where the peer is not installed.
fn run_cold_start(way: TracingVariant, command: &[String]) -> Result<Option<StartCost>, BenchError> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3")?;
    std::thread::sleep(Duration::from_millis(300));
    let tracer =
        (way == TracingVariant::Traced).then(|| IoTracer::start(IoTraceScope::Children)).transpose()?;
    let follower = (way == TracingVariant::Followed).then(ProcessIoTracer::new).transpose()?;
    let words: Vec<String> =
        way.peer_command().iter().map(|word| (*word).into()).chain(command.iter().cloned()).collect();
    let before = children_cpu_time()?;
    let mut child = spawn_stopped(&words)?;
    let following = follower.map(|follower| follower.start(child.id())).transpose()?;
    let begun = Instant::now();
    kill_process(Pid::from_child(&child), Signal::CONT)?;
    let status = child.wait()?;
    let wall = begun.elapsed();
    if status.code() == Some(127) {
        return Ok(None);
    }
    assert!(status.success(), "{words:?}: {status}");
    let cpu = children_cpu_time()? - before;
    let followed = following.map(|following| following.stop()).transpose()?;
    let recording = tracer.map(|tracer| tracer.stop()).transpose()?.or(followed).unwrap_or_default();
    let own = Duration::from(Nanos(recording.summary.cost.0));
    Ok(Some(StartCost { wall, cpu: cpu + own, events: recording.events.len(), lost: recording.summary.lost }))
}

impl TracingVariant {
    /// What is written before the command.
    fn peer_command(self) -> &'static [&'static str] {
        match self {
            TracingVariant::Alone | TracingVariant::Traced | TracingVariant::Followed => &[],
            TracingVariant::Perf => &["perf", "record", "-q", "-o", "/dev/null", "-e", EVENTS, "--"],
            TracingVariant::Strace => &["strace", "-f", "-o", "/dev/null", "-e", "trace=file,read,mmap"],
        }
    }
}

/// A process that becomes the command when it may go on.
fn spawn_stopped(words: &[String]) -> Result<Child, BenchError> {
    let mut start = Command::new("sh");
    start.args(["-c", "kill -STOP $$; exec \"$@\"", "sh"]).args(words);
    let child = start.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    waitpid(Some(Pid::from_child(&child)), WaitOptions::UNTRACED)?;
    Ok(child)
}

/// CPU time of all children that have ended.
fn children_cpu_time() -> Result<Duration, BenchError> {
    let usage = std::fs::read_to_string("/proc/self/stat")?;
    let (_, numbers) = usage.rsplit_once(')').ok_or("no name in /proc/self/stat")?;
    let numbers: Vec<u64> = numbers.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // cutime and cstime, columns 16 and 17; the state, column 3, is no number.
    Ok(Duration::from_millis((numbers[12] + numbers[13]) * 10))
}
