//! What monitors cost: each alone, back to back; all that are not costly together; and the texts of `/proc` beside the shell
//! loops that today's suites use for them: `while :; do date +%s.%N; cat FILE; sleep 0.1; done`, one a file.
//!
//! `cargo bench -p perflab-observe --bench monitors` runs ours at 10 Hz in this process, turned into JSON lines as the
//! recorder's journal does, then the loops for as long, and prints the CPU time of a sample of both, their ratio, the share
//! of one core, our peak memory and the descriptors that are open. As root, or much is missing on both sides.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use perflab_formats::kernel::KernelFile;
use perflab_model::{Nanos, RunEvent, RunEventKind};
use perflab_observe::{Root, Sampler, SamplerOverhead, all_monitors, find_monitor, process_usage};

const INTERVAL: Nanos = Nanos(100_000_000);
const TIME: Duration = Duration::from_secs(10);

/// CPU time and samples of one side.
struct SamplingCost {
    cpu: f64,
    samples: u64,
    wall: f64,
}

impl SamplingCost {
    fn per_sample(&self) -> f64 {
        self.cpu / self.samples.max(1) as f64
    }

    fn print(&self, side: &str) {
        let (sample, share) = (self.per_sample() * 1e6, 100.0 * self.cpu / self.wall);
        println!(
            "{side}: {sample:8.1} us CPU a sample, {} samples in {:.1} s, {share:.3} % of one core",
            self.samples, self.wall
        );
    }
}

/// Those that look at all processes or hold a lock of the kernel for long: they are read more seldom.
const COSTLY: &[&str] = &[
    "slabinfo",
    "slab-exact",
    "slab-caches",
    "page-types",
    "tasks",
    "blocked",
    "smaps",
    "task-numa",
    "gpu",
    "kvm",
];

fn main() {
    let readable: Vec<&'static str> =
        all_monitors().iter().map(|kind| kind.name).filter(|name| can_open_monitor(name)).collect();
    println!("monitors that this machine has: {}", readable.join(", "));
    for name in &readable {
        measure_alone(name);
    }
    count_descriptors(&readable);
    let light: Vec<&str> = readable.iter().copied().filter(|name| !COSTLY.contains(name)).collect();
    println!("all but {}:", COSTLY.join(", "));
    report_sampler(&light);
    let texts: Vec<&str> = readable.iter().copied().filter(|name| is_proc_text(name)).collect();
    println!("the texts of /proc alone: {}", texts.join(", "));
    let ours = report_sampler(&texts);
    let shell = measure_shell_loops(&texts);
    shell.print("shell loops  ");
    println!("shell / perflab, CPU a sample: {:.1}", shell.per_sample() / ours.per_sample());
}

fn report_sampler(names: &[&str]) -> SamplingCost {
    let (ours, thread) = measure_sampler(names);
    let peak = process_usage().peak_rss as f64 / (1 << 20) as f64;
    ours.print("perflab      ");
    println!(
        "   of it the monitors' thread: {:.1} us a sample; {} late, {} lost ticks",
        thread.cpu.0 as f64 / 1e3 / thread.ticks.max(1) as f64,
        thread.late,
        thread.lost
    );
    println!("   peak resident memory: {peak:.1} MiB");
    ours
}

/// Descriptors that all monitors together keep open.
fn count_descriptors(names: &[&str]) {
    let count = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = count();
    let open = |name: &&str| {
        let kind = find_monitor(name).ok()?;
        let mut monitor = perflab_observe::open_monitor(kind, &Root::host(), INTERVAL).ok()?;
        monitor.read_rows(&mut Vec::new()).ok()?;
        Some(monitor)
    };
    let monitors: Vec<_> = names.iter().filter_map(open).collect();
    println!("descriptors of {} open monitors: {}", monitors.len(), count() - before);
}

/// Those that a shell reads with cat.
fn is_proc_text(name: &str) -> bool {
    let texts = ["/proc/pressure", "/proc/net/snmp"];
    find_monitor(name).is_ok_and(|kind: &KernelFile| {
        kind.source.starts_with("/proc/")
            && !COSTLY[1..].contains(&kind.name)
            && (texts.contains(&kind.source) || Path::new(kind.source).is_file())
    })
}

fn can_open_monitor(name: &str) -> bool {
    find_monitor(name).and_then(|kind| perflab_observe::open_monitor(kind, &Root::host(), INTERVAL)).is_ok()
}

/// The cost of one monitor's sample, back to back.
fn measure_alone(name: &str) {
    let Ok(mut monitor) =
        find_monitor(name).and_then(|kind| perflab_observe::open_monitor(kind, &Root::host(), INTERVAL))
    else {
        return;
    };
    let mut rows = Vec::new();
    monitor.read_rows(&mut rows).ok();
    let before = process_usage().cpu;
    let samples = 500;
    for _ in 0..samples {
        monitor.read_changes().ok();
    }
    let each = process_usage().cpu.since(before).0 / samples;
    println!("   {name:15} {:6.1} us a sample, {} rows", each as f64 / 1e3, rows.len());
}

/// All monitors for [`TIME`], each event written as a line of JSON.
fn measure_sampler(names: &[&str]) -> (SamplingCost, SamplerOverhead) {
    let (before, began) = (process_usage().cpu, Instant::now());
    let (sink, events) = channel();
    let wanted = names.iter().map(|name| ((*name).to_owned(), INTERVAL)).collect();
    let sampler = Sampler::start(wanted, Root::host(), sink);
    let writer = std::thread::spawn(move || write_events(&events));
    sleep(TIME);
    let thread = sampler.stop();
    let samples = writer.join().unwrap_or(0);
    let cpu = process_usage().cpu.since(before).seconds();
    (SamplingCost { cpu, samples, wall: began.elapsed().as_secs_f64() }, thread)
}

fn write_events(events: &Receiver<RunEvent>) -> u64 {
    let mut line = Vec::new();
    let mut samples = 0;
    let mut null = File::create("/dev/null").expect("every Linux has /dev/null");
    for event in events {
        line.clear();
        serde_json::to_writer(&mut line, &event).expect("events are plain data");
        line.push(b'\n');
        null.write_all(&line).expect("/dev/null takes everything");
        samples += u64::from(matches!(event.what, RunEventKind::Rows { .. }));
    }
    samples
}

/// One loop a file for [`TIME`]; their CPU time is what the kernel accounts to the waited-for children of a shell
/// that starts and ends them.
fn measure_shell_loops(names: &[&str]) -> SamplingCost {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let began = Instant::now();
    let loops: Vec<Child> = names.iter().map(|name| start_shell_loop(directory.path(), name)).collect();
    sleep(TIME);
    let wall = began.elapsed().as_secs_f64();
    let finished: Vec<(f64, u64)> = loops.into_iter().map(stop_shell_loop).collect();
    let (cpu, samples) = finished.iter().fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    SamplingCost { cpu, samples, wall }
}

fn start_shell_loop(directory: &Path, name: &str) -> Child {
    let source = find_monitor(name).map(|kind| kind.source).unwrap_or_default();
    let files = if Path::new(source).is_dir() { format!("{source}/*") } else { source.to_owned() };
    let log = directory.join(name);
    // The number of samples and the shell's own account of its CPU time, children included, at the end.
    let script = format!(
        "n=0; trap 'echo $n; times; exit' TERM; while :; do date +%s.%N >>{log}; cat {files} >>{log}; n=$((n+1)); sleep 0.1; done",
        log = log.display()
    );
    let mut command = Command::new("bash");
    command.args(["-c", &script]).stdout(Stdio::piped()).process_group(0);
    command.spawn().expect("bash")
}

/// Ends a loop that we started and reads its account: samples, then `0m0.010s 0m0.020s` of itself and its children.
fn stop_shell_loop(child: Child) -> (f64, u64) {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
    let output = child.wait_with_output().map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    let mut words = text.split_ascii_whitespace();
    let samples = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    (words.filter_map(parse_seconds).sum(), samples)
}

/// `0m0.010s`
fn parse_seconds(word: &str) -> Option<f64> {
    let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
    Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
}
