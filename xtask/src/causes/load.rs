//! A program with known causes of time: `xtask cause-load`. What it does more of than usual stands in `PERFLAB_DOSE`.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

/// Larger than what the allocator keeps: each such allocation is a mapping of its own, whose pages are faulted in anew.
const MAPPING: usize = 40 << 20;

const PAGE: usize = 4096;

/// What one run of the load does; the usual amounts, of which a dose changes some.
#[derive(Debug, Clone)]
struct LoadWork {
    /// steps of a walk through memory
    steps: u64,
    /// bytes that the walk goes through
    set: usize,
    /// pages touched for the first time
    faults: usize,
    /// system calls
    calls: u64,
    /// writes of a page, each followed by fsync(2)
    fsyncs: u64,
    /// sleeps of 100 us
    sleeps: u64,
    /// bytes appended to a file, in lines
    log: usize,
    /// bytes of a file read from its beginning
    read: usize,
    /// threads that share the work of each of the following
    threads: usize,
    /// steps inside a lock that threads share, of 2,000 sections
    lock: u64,
    /// whether the threads' counters lie in one cache line
    shared: bool,
    /// processes started and waited for
    children: usize,
    /// files made, written to and removed
    files: usize,
    /// messages of 64 bytes to another thread and back, over TCP
    rounds: usize,
}

impl Default for LoadWork {
    fn default() -> Self {
        LoadWork {
            steps: 3_000_000,
            set: 64 << 10,
            faults: 200,
            calls: 2_000,
            fsyncs: 0,
            sleeps: 5,
            log: 64 << 10,
            read: 1 << 20,
            threads: 1,
            lock: 0,
            shared: false,
            children: 1,
            files: 5,
            rounds: 5,
        }
    }
}

impl LoadWork {
    /// `faults=2000 threads=2`: amounts beside the usual ones, `threads` and `lock` in place of them.
    fn with_dose(mut self, dose: &str) -> Result<Self> {
        for part in dose.split_whitespace().filter(|part| *part != "none") {
            let (name, value) = part.split_once('=').with_context(|| format!("`{part}` is no dose"))?;
            let value: u64 = value.parse().with_context(|| format!("`{part}`"))?;
            let size = usize::try_from(value)?;
            match name {
                "steps" => self.steps += value,
                "set" => self.set += size,
                "faults" => self.faults += size,
                "calls" => self.calls += value,
                "fsyncs" => self.fsyncs += value,
                "sleeps" => self.sleeps += value,
                "log" => self.log += size,
                "read" => self.read += size,
                "threads" => self.threads = size,
                "lock" => self.lock = value,
                "children" => self.children += size,
                "files" => self.files += size,
                "rounds" => self.rounds += size,
                "shared" => self.shared = value == 1,
                _ => bail!("no dose is called `{name}`"),
            }
        }
        Ok(self)
    }
}

/// Runs the load, or `spin`, `timers`, `stream` or `reader` beside it until it is killed.
pub fn run_load(arguments: &[String]) -> Result<bool> {
    match arguments.first().map(String::as_str) {
        Some("spin") => loop {
            black_box(walk(&mut vec![0; 8192], 1_000_000));
        },
        Some("timers") => loop {
            thread::sleep(Duration::from_micros(1));
        },
        Some("stream") => loop {
            let mut memory = vec![0_u64; 8 << 20];
            for pass in 0..100 {
                memory.iter_mut().for_each(|cell| *cell = cell.wrapping_add(pass));
            }
            black_box(memory);
        },
        Some("reader") => loop {
            for entry in std::fs::read_dir("/proc")?.flatten() {
                black_box(std::fs::read(entry.path().join("stat")).ok());
            }
        },
        _ => {}
    }
    let dose = std::env::var("PERFLAB_DOSE").unwrap_or_default();
    let work = LoadWork::default().with_dose(&dose)?;
    let folder = arguments.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let begin = Instant::now();
    do_work(&work, &folder)?;
    println!("time: {:.6}", begin.elapsed().as_secs_f64());
    Ok(true)
}

fn do_work(work: &LoadWork, folder: &std::path::Path) -> Result<()> {
    touch_pages(work.faults);
    let path = folder.join(format!("cause-load-{}", std::process::id()));
    let mut file = File::create(&path).with_context(|| path.display().to_string())?;
    for _ in 0..work.calls {
        file.seek(SeekFrom::Start(0))?;
    }
    for _ in 0..work.log / 128 {
        file.write_all(&[b'x'; 128])?;
    }
    for _ in 0..work.fsyncs {
        file.write_all(&[1; PAGE])?;
        file.sync_all()?;
    }
    for _ in 0..work.sleeps {
        thread::sleep(Duration::from_micros(100));
    }
    drop(file);
    std::fs::remove_file(&path)?;
    for _ in 0..work.children {
        std::process::Command::new("true").status()?;
    }
    for _ in 0..work.files {
        File::create(&path)?.write_all(&[1; 64])?;
        std::fs::remove_file(&path)?;
    }
    talk_over_loopback(work.rounds)?;
    let data = folder.join("cause-load.data");
    if data.exists() {
        // In pieces: a limit of memory then has pages of the file to reclaim, not the load to kill.
        let (mut file, mut piece) = (File::open(&data)?, vec![0; 64 << 10]);
        for _ in 0..work.read / piece.len() {
            file.read_exact(&mut piece)?;
            black_box(&piece);
        }
    }
    if work.threads <= 1 && work.lock == 0 && !work.shared {
        black_box(walk(&mut vec![0; work.set / 8], work.steps));
    } else {
        share_work(work);
    }
    Ok(())
}

/// Sends messages to another thread, each when the one before has come back.
fn talk_over_loopback(rounds: usize) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let echo = thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut message = [0; 64];
        for _ in 0..rounds {
            stream.read_exact(&mut message)?;
            stream.write_all(&message)?;
        }
        Ok(())
    });
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut message = [7; 64];
    for _ in 0..rounds {
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
    }
    drop(stream);
    echo.join().map_err(|_| anyhow::anyhow!("the thread that answers ended"))??;
    Ok(())
}

/// Touches pages that have never been: each is a fault.
fn touch_pages(mut pages: usize) {
    while pages > 0 {
        let mut mapping = vec![0_u8; MAPPING];
        let touched = pages.min(MAPPING / PAGE);
        mapping.iter_mut().step_by(PAGE).take(touched).for_each(|byte| *byte = 1);
        black_box(&mapping);
        pages -= touched;
    }
}

/// Steps through memory in an order that no prefetcher foresees.
fn walk(set: &mut [u64], steps: u64) -> u64 {
    let mut at = 1_u64;
    for _ in 0..steps {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let place = (at >> 33) as usize % set.len();
        if let Some(cell) = set.get_mut(place) {
            *cell = cell.wrapping_add(at);
            at ^= *cell & 1;
        }
    }
    at
}

/// Counters side by side.
#[derive(Default)]
struct NearCounters([AtomicU64; 2]);

/// Counters in cache lines of their own.
#[repr(align(256))]
#[derive(Default)]
struct FarCounter(AtomicU64);

/// Threads share the walk's steps; they meet in a lock, and count.
fn share_work(work: &LoadWork) {
    let threads = work.threads.max(1);
    let shared = Arc::new((
        Mutex::new(0_u64),
        NearCounters::default(),
        [FarCounter::default(), FarCounter::default()],
    ));
    let barrier = Arc::new(Barrier::new(threads));
    let each = work.steps / threads as u64;
    let all: Vec<_> = (0..threads)
        .map(|number| {
            let (shared, barrier, work) = (shared.clone(), barrier.clone(), work.clone());
            thread::spawn(move || {
                let mut set = vec![0; work.set / 8];
                let counter = match (work.shared, &shared.1.0, &shared.2) {
                    (true, [one, other], _) => {
                        if number % 2 == 0 {
                            one
                        } else {
                            other
                        }
                    }
                    (false, _, [one, other]) => {
                        if number % 2 == 0 {
                            &one.0
                        } else {
                            &other.0
                        }
                    }
                };
                barrier.wait();
                let sections = 2_000_u64;
                for _ in 0..sections {
                    black_box(walk(&mut set, each / sections));
                    for _ in 0..1_000 {
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                    if let Ok(mut guard) = shared.0.lock() {
                        *guard = black_box(walk(&mut set, work.lock));
                    }
                }
            })
        })
        .collect();
    all.into_iter().for_each(|thread| drop(thread.join()));
}
