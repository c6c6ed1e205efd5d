//! What the monitors of the slab allocator cost, beside the tools that people use for the same:
//! `slabtop -o` (package procps) and the kernel's `slabinfo` (tools/mm/slabinfo.c), each run as a process.
//!
//! `cargo bench -p perflab-observe --bench slab`, as root. `PERFLAB_SLABINFO_TOOL=PATH` names the kernel's tool, which few
//! distributions package; without it, and without one on the PATH, that comparison is left out and said so.
//! `PERFLAB_BENCH_SECONDS=600` makes the runs at 100 Hz as long as wanted (20 s otherwise, each).

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use perflab_model::{CellRow, Nanos, RunEvent, RunEventKind};
use perflab_observe::{Monitor, Root, Sampler, find_monitor, open_monitor, process_usage};

const HUNDRED_HZ: Nanos = Nanos(10_000_000);
const TEN_HZ: Nanos = Nanos(100_000_000);
const SECOND: Nanos = Nanos(1_000_000_000);

fn main() {
    let opened = match open_host_monitor("slabinfo") {
        Ok(monitor) => monitor,
        Err(error) => return println!("nothing to measure: {error}"),
    };
    let ours = measure_cpu_alone("slabinfo", opened, 2000);
    println!("   one sample of every cache under 1 ms: {}", format_check(ours < 1e-3));
    print_other_monitors();
    compare_peer_tools(ours);
    measure_kernel_floor();
    measure_at_100_hz(&[("slabinfo", HUNDRED_HZ)]);
    // What `perflab slab record --every 10ms` reads.
    measure_at_100_hz(&[
        ("slabinfo", HUNDRED_HZ),
        ("meminfo", TEN_HZ),
        ("slab-caches", SECOND),
        ("slab-exact", Nanos(10_000_000_000)),
        ("vmstat", SECOND),
    ]);
    measure_kernel_floor();
}

fn format_check(holds: bool) -> &'static str {
    if holds { "yes" } else { "NO" }
}

fn print_other_monitors() {
    for (name, samples) in [("slab-caches", 500), ("slab-exact", 100)] {
        let before = process_usage().cpu;
        let Ok(monitor) = open_host_monitor(name) else { continue };
        let opening = process_usage().cpu.since(before);
        println!("{name:12} {:8.1} us CPU to open", opening.0 as f64 / 1e3);
        measure_cpu_alone(name, monitor, samples);
    }
}

fn open_host_monitor(name: &str) -> Result<Box<dyn Monitor>, perflab_observe::ObserveError> {
    open_monitor(find_monitor(name)?, &Root::host(), HUNDRED_HZ)
}

/// CPU seconds of one of `samples` samples back to back, the first left out.
fn measure_cpu_alone(name: &str, mut monitor: Box<dyn Monitor>, samples: u32) -> f64 {
    let mut rows = Vec::new();
    let mut take = || {
        rows.clear();
        monitor.read_rows(&mut rows).expect("it was opened");
        rows.len()
    };
    let first = take();
    let (before, began) = (process_usage().cpu, Instant::now());
    let last = (0..samples).map(|_| take()).last().unwrap_or(0);
    let cpu = process_usage().cpu.since(before).seconds() / f64::from(samples);
    let wall = began.elapsed().as_secs_f64() / f64::from(samples);
    println!(
        "{name:12} {:8.1} us CPU a sample, {:.1} us wall; {first} rows first, {last} last",
        cpu * 1e6,
        wall * 1e6
    );
    cpu
}

/// The tools, one run each time, and how much more CPU they take than `ours` seconds.
fn compare_peer_tools(ours: f64) {
    let tool = std::env::var("PERFLAB_SLABINFO_TOOL").unwrap_or_else(|_| "slabinfo".into());
    for (program, arguments, wanted) in [("slabtop", &["-o"][..], 10.0), (&tool, &[][..], 100.0)] {
        let command = format!("{program} {}", arguments.join(" "));
        match run_repeatedly(program, arguments, 50) {
            Some(theirs) => {
                let ratio = theirs / ours;
                println!(
                    "{command}: {:.1} us CPU a run; {ratio:.1} times ours (wanted {wanted}: {})",
                    theirs * 1e6,
                    format_check(ratio >= wanted)
                );
            }
            None => println!("{command}: not here, not compared"),
        }
    }
}

/// CPU seconds of one of so many runs.
fn run_repeatedly(program: &str, arguments: &[&str], runs: u32) -> Option<f64> {
    let before = children_cpu_seconds()?;
    for _ in 0..runs {
        let mut command = Command::new(program);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().ok().filter(|status| status.success())?;
    }
    Some((children_cpu_seconds()? - before) / f64::from(runs))
}

/// CPU seconds of the children that were waited for: `cutime` and `cstime` of `/proc/self/stat`, in ticks of 10 ms.
fn children_cpu_seconds() -> Option<f64> {
    let stat = Root::host().read("/proc/self/stat").ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    let ticks = after_name.split_ascii_whitespace().skip(13).take(2);
    ticks.map(|word| word.parse::<f64>().ok()).sum::<Option<f64>>().map(|ticks| ticks / 100.0)
}

/// What the kernel alone takes to write its text on that clock, read into a buffer and not looked at. It walks the lists
/// of partly used slabs, cold by then, so it depends on how many there are and on what else runs.
fn measure_kernel_floor() {
    let Ok(file) = File::open("/proc/slabinfo") else { return };
    let mut buffer = vec![0; 1 << 20];
    let (before, began) = (process_usage().cpu, Instant::now());
    for tick in 1..=300 {
        let due = began + Duration::from(HUNDRED_HZ) * tick;
        sleep(due.saturating_duration_since(Instant::now()));
        let mut length = 0;
        while let Ok(read @ 1..) = file.read_at(&mut buffer[length..], length as u64) {
            length += read;
        }
    }
    let cpu = process_usage().cpu.since(before).seconds();
    let (each, share) = (1e6 * cpu / 300.0, 100.0 * cpu / began.elapsed().as_secs_f64());
    println!(
        "100 Hz, the kernel's text read and not parsed: {each:.1} us CPU a sample, {share:.2} % of a core; {} partial \
         slabs",
        count_partial_slabs()
    );
}

/// Of all caches, as sysfs counts them.
fn count_partial_slabs() -> u64 {
    let root = Root::host();
    let caches = root.list("/sys/kernel/slab").into_iter();
    let own =
        caches.map(|cache| format!("/sys/kernel/slab/{cache}")).filter(|path| !root.path(path).is_symlink());
    let count = |path: String| -> Option<u64> {
        root.read(&format!("{path}/partial")).ok()?.split_ascii_whitespace().next()?.parse().ok()
    };
    own.filter_map(count).sum()
}

/// Seconds that all CPUs were ready and not given to this guest by its host: ticks lost meanwhile are not ours.
fn read_steal_seconds() -> f64 {
    let stat = Root::host().read("/proc/stat").unwrap_or_default();
    let steal = stat.split_ascii_whitespace().nth(8).and_then(|word| word.parse::<f64>().ok());
    steal.unwrap_or(0.0) / 100.0
}

/// These monitors for a time, each event turned into a line of JSON as the recorder's journal does.
fn measure_at_100_hz(monitors: &[(&str, Nanos)]) {
    let names: Vec<&str> = monitors.iter().map(|(name, _)| *name).collect();
    let seconds = std::env::var("PERFLAB_BENCH_SECONDS").ok().and_then(|text| text.parse().ok());
    let time = Duration::from_secs(seconds.unwrap_or(20));
    let (before, began, stolen_before) = (process_usage().cpu, Instant::now(), read_steal_seconds());
    let (sink, events) = channel();
    let wanted = monitors.iter().map(|(name, interval)| ((*name).to_owned(), *interval)).collect();
    let sampler = Sampler::start(wanted, Root::host(), sink);
    let writer = std::thread::spawn(move || write_events(&events));
    sleep(time);
    let cost = sampler.stop();
    let written = writer.join().expect("the writer only writes");
    let wall = began.elapsed().as_secs_f64();
    let share = |cpu: Nanos| 100.0 * cpu.seconds() / wall;
    let all = share(process_usage().cpu.since(before));
    println!(
        "100 Hz, {} for {wall:.0} s: {} ticks, {} late, {} lost; {:.2} % of a core to read, {all:.2} % with journal \
         (under 5 %: {}); {} rows told, {} of them flagged, {:.1} MiB of journal; \
         {:.2} s stolen by the host",
        names.join(" + "),
        cost.ticks,
        cost.late,
        cost.lost,
        share(cost.cpu),
        format_check(all < 5.0 && cost.lost == 0),
        written.rows,
        written.flagged,
        written.bytes as f64 / f64::from(1 << 20),
        read_steal_seconds() - stolen_before
    );
}

#[derive(Default)]
struct WrittenEvents {
    rows: usize,
    flagged: usize,
    bytes: usize,
}

fn write_events(events: &Receiver<RunEvent>) -> WrittenEvents {
    let mut written = WrittenEvents::default();
    let mut line = Vec::new();
    let mut null = File::create("/dev/null").expect("every Linux has /dev/null");
    for event in events {
        line.clear();
        serde_json::to_writer(&mut line, &event).expect("events are plain data");
        line.push(b'\n');
        null.write_all(&line).expect("/dev/null takes everything");
        written.bytes += line.len();
        let none = perflab_model::TableCell::Text(String::new());
        let is_flagged = |row: &&CellRow| row.last() != Some(&none);
        match &event.what {
            RunEventKind::Rows { rows, .. } => {
                written.rows += rows.len();
                written.flagged += rows.iter().filter(is_flagged).count();
            }
            RunEventKind::Changed { rows, .. } => {
                written.rows += rows.len();
                written.flagged += rows.iter().map(|(_, row)| row).filter(is_flagged).count();
            }
            _ => {}
        }
    }
    written
}
