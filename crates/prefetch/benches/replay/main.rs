//! What reading ahead costs the processor: the same 10,000 extents of files, cold, as perflab replays them, and in
//! the other modes that the kernel has, which do nothing but open and read: what perflab takes beyond `readahead`
//! is its own.
//!
//! CPU time is the process's with all its threads; wall time lasts until everything has come. Modes are taken in
//! turn, caches dropped before each.
//!
//! As root: `cargo bench -p perflab-prefetch --bench replay -- [ROUNDS] [FOLDER] [TRACE]`; FOLDER lies on the disk
//! in question, TRACE is a program's, as `perflab prefetch learn` prints its path, and is raced in place of files
//! of the bench's own.

#![expect(unsafe_code, reason = "readahead and rings have no safe wrapper")]

mod ways;

use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use perflab_model::io_trace::PAGE;
use perflab_observe::io::{MountTable, file_description, file_generation, file_system_uuid};
use perflab_prefetch::{
    ReadOrder, ReplayPlan, StartupTrace, TraceSource, TracedFile, TracedFileSystem, plan_replay,
};
use rustix::process::{Resource, getrlimit, setrlimit};

use ways::{READ_METHODS, ReadMethod};

/// Stretches in all.
const STRETCHES: u64 = 10_000;
/// Pages of each, and from one to the next of a file: far enough apart not to be read as one.
const LONG: u64 = 4;
const APART: u64 = 32;

type ReplayBenchError = Box<dyn Error>;

fn main() -> Result<(), ReplayBenchError> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let rounds = words.first().and_then(|word| word.parse().ok()).unwrap_or(7_usize);
    let folder = words.get(1).map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
    raise_file_limit()?;
    if let Some(trace) = words.get(2) {
        let known = perflab_prefetch::trace_store::read_trace_file(Path::new(trace))?;
        let start = known.starts.last().ok_or("nothing was learnt")?;
        let plan = plan_replay(start, ReadOrder::Need, u64::MAX);
        let stretches: usize = plan.steps.iter().map(|step| step.pages.iter().count()).sum();
        println!("{}: {stretches} stretches, {} MiB", known.program, (plan.page_count() * PAGE) >> 20);
        return compare_methods(&plan, rounds);
    }
    for (files, what) in
        [(100, "100 files of 100 stretches"), (2_000, "2,000 of five"), (10_000, "10,000 of one")]
    {
        let made = tempfile::tempdir_in(&folder)?;
        let start = write_traced_files(made.path(), files)?;
        println!("{what}, each of {} KiB, {rounds} rounds; medians", (LONG * PAGE) >> 10);
        compare_methods(&plan_replay(&start, ReadOrder::Need, u64::MAX), rounds)?;
    }
    Ok(())
}

/// The ways that keep everything open need room for that.
fn raise_file_limit() -> Result<(), ReplayBenchError> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Writes the files, and says what a trace would say of them.
fn write_traced_files(folder: &Path, count: u64) -> Result<StartupTrace, ReplayBenchError> {
    let stretches = STRETCHES / count;
    let content = vec![7_u8; usize::try_from(((stretches - 1) * APART + LONG) * PAGE)?];
    let mut traced = Vec::new();
    for turn in 0..u32::try_from(count)? {
        let path = folder.join(turn.to_string());
        fs::write(&path, &content)?;
        traced.push(describe_file(&path, turn, stretches)?);
    }
    rustix::fs::sync();
    for file in &mut traced {
        file.place =
            perflab_observe::io::file_extents(&File::open(&file.path)?)?.first().map(|one| one.physical);
    }
    let opened = File::open(folder)?;
    let mounts = MountTable::read();
    let mount = mounts.find_by_path(folder).ok_or("no file system below")?;
    let system = TracedFileSystem {
        uuid: file_system_uuid(&opened),
        kind: mount.kind.clone(),
        device: file_description::device_of(&opened.metadata()?),
        place: mount.mount_point.display().to_string(),
        metadata: Default::default(),
    };
    Ok(StartupTrace { when: 0, source: TraceSource::Traced, systems: vec![system], files: traced })
}

fn describe_file(path: &Path, turn: u32, stretches: u64) -> Result<TracedFile, ReplayBenchError> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    Ok(TracedFile {
        system: 0,
        inode: about.ino(),
        generation: file_generation(&file),
        size: about.len(),
        changed: file_description::modified_ns(&about),
        path: path.display().to_string(),
        pages: (0..stretches).map(|at| (at * APART, LONG)).collect(),
        turn,
        place: None,
        marks: Vec::new(),
    })
}

fn compare_methods(plan: &ReplayPlan<'_>, rounds: usize) -> Result<(), ReplayBenchError> {
    let mut taken: Vec<Vec<ReadCost>> = READ_METHODS.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for turn in 0..READ_METHODS.len() {
            let at = (turn + round) % READ_METHODS.len();
            let took = measure_once(plan, READ_METHODS[at].1)?;
            if round > 0 {
                taken[at].push(took);
            }
        }
    }
    for ((name, _), all) in READ_METHODS.iter().zip(&taken) {
        let middle = |time: fn(&ReadCost) -> Duration| median_seconds(all.iter().map(time).collect()) * 1e3;
        println!("{name:>36}: CPU {:6.1} ms, wall {:7.1} ms", middle(|one| one.cpu), middle(|one| one.wall));
    }
    Ok(())
}

fn median_seconds(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64()
}

/// What one way took.
struct ReadCost {
    wall: Duration,
    cpu: Duration,
}

/// One way from a cold cache.
fn measure_once(plan: &ReplayPlan<'_>, way: ReadMethod) -> Result<ReadCost, ReplayBenchError> {
    rustix::fs::sync();
    fs::write("/proc/sys/vm/drop_caches", "3")?;
    let (cpu, begun) = (perflab_observe::process_usage().cpu, Instant::now());
    way(plan)?;
    let wall = begun.elapsed();
    Ok(ReadCost { wall, cpu: perflab_observe::process_usage().cpu.since(cpu).into() })
}
