//! What an import costs: a generated lkp folder of the size of the 2019 logs (189 dumps of 155 caches, 176 outputs of the
//! slabinfo tool with 103 rows, 331 orders, 189 dumps of meminfo), from packed files to the closed run; and pandas
//! reading the same two slab logs into a Parquet file each.
//!
//! `cargo bench -p perflab-import --bench import [-- FOLDER]`; `$PERFLAB_PANDAS` is a Python with pandas and pyarrow
//! (`python3 -m venv V && V/bin/pip install pandas pyarrow`). With FOLDER, that one is imported and not a generated one.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use perflab_archive::{Archive, new_run_id};
use perflab_import::{FileReport, ImportOptions, ImportSource as _, open_import};
use perflab_model::RunEventKind;

const TICKS: u64 = 189;
const CACHES: u64 = 155;
const OUTPUTS: u64 = 176;
const LISTED: u64 = 103;
const BEGAN: u64 = 1_570_815_211;
const REPEATS: usize = 15;

type ImportBenchError = Box<dyn std::error::Error>;

fn main() -> Result<(), ImportBenchError> {
    let temporary = tempfile::tempdir()?;
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let folder = given.map_or_else(|| generate_logs(temporary.path()), |given| Ok(PathBuf::from(given)))?;
    let ours = bench_import(&folder, temporary.path())?;
    let Some(python) = std::env::var_os("PERFLAB_PANDAS") else {
        println!("SKIP pandas: PERFLAB_PANDAS does not name a Python that has it");
        return Ok(());
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/import_pandas.py");
    let output = Command::new(python).args([script.as_ref(), folder.as_os_str()]).output()?;
    print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(median) =
        text.lines().find_map(|line| line.strip_prefix("median_cpu_s ")?.parse::<f64>().ok())
    {
        println!("pandas / perflab (CPU): {:.1}", median / ours.as_secs_f64());
    }
    Ok(())
}

fn bench_import(folder: &Path, temporary: &Path) -> Result<Duration, ImportBenchError> {
    let archive = Archive::open(&temporary.join("archive"))?;
    bench_read(folder)?;
    let once = |_| {
        let begin = BenchClock::now()?;
        let reports = record_import(&archive, folder)?;
        Ok::<_, ImportBenchError>((begin.elapsed()?, reports))
    };
    let times: Vec<_> = (0..REPEATS).map(once).collect::<Result<_, _>>()?;
    for took in &times[0].1 {
        println!("{}: {}", took.file_name(), took.format_counts());
    }
    let sorted = |of: fn(&BenchTimes) -> Duration| {
        let mut times: Vec<Duration> = times.iter().map(|(spent, _)| of(spent)).collect();
        times.sort();
        times
    };
    let (wall, cpu) = (sorted(|spent| spent.wall), sorted(|spent| spent.cpu));
    println!("import_foreign: wall fastest {:?}, median {:?}", wall[0], wall[REPEATS / 2]);
    println!("import_foreign: CPU fastest {:?}, median {:?}", cpu[0], cpu[REPEATS / 2]);
    Ok(cpu[REPEATS / 2])
}

/// A closed run, and what was taken of each file.
fn record_import(archive: &Archive, folder: &Path) -> Result<Vec<FileReport>, ImportBenchError> {
    let options = ImportOptions { id: new_run_id(), ..ImportOptions::default() };
    let (_, mut source) = open_import(folder, &options)?;
    let first = source.next().ok_or("no events")??;
    let RunEventKind::Began(manifest) = &first.what else { return Err("no manifest".into()) };
    let mut recorder = archive.begin_bulk_run(manifest)?;
    recorder.record(&first)?;
    for event in source.by_ref() {
        recorder.record(&event?)?;
    }
    recorder.finish()?;
    Ok(source.file_reports())
}

/// Reading alone, without a run.
fn bench_read(folder: &Path) -> Result<(), ImportBenchError> {
    let once = |_| {
        let begin = BenchClock::now()?;
        let (_, mut source) = open_import(folder, &ImportOptions::default())?;
        let events = source.try_fold(0, |count, event| event.map(|_| count + 1))?;
        Ok::<_, ImportBenchError>((begin.elapsed()?, events))
    };
    let mut times: Vec<_> = (0..REPEATS).map(once).collect::<Result<_, _>>()?;
    times.sort_by_key(|(spent, _)| spent.cpu);
    let median = &times[REPEATS / 2].0;
    println!("reading alone: median {:?} of CPU, {} events", median.cpu, times[0].1);
    Ok(())
}

/// Wall and CPU time: on a busy machine only the second says what the work costs.
struct BenchClock {
    wall: Instant,
    cpu: Duration,
}

#[derive(Clone, Copy)]
struct BenchTimes {
    wall: Duration,
    cpu: Duration,
}

impl BenchClock {
    fn now() -> Result<Self, ImportBenchError> {
        Ok(BenchClock { wall: Instant::now(), cpu: thread_cpu_time()? })
    }

    fn elapsed(&self) -> Result<BenchTimes, ImportBenchError> {
        Ok(BenchTimes { wall: self.wall.elapsed(), cpu: thread_cpu_time()? - self.cpu })
    }
}

/// CPU time of this thread, from the kernel's account of it in nanoseconds.
fn thread_cpu_time() -> Result<Duration, ImportBenchError> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let spent = text.split_ascii_whitespace().next().unwrap_or_default();
    Ok(Duration::from_nanos(spent.parse()?))
}

fn generate_logs(temporary: &Path) -> Result<PathBuf, ImportBenchError> {
    let folder = temporary.join("result");
    fs::create_dir(&folder)?;
    write_gzip(&folder.join("slabinfo.gz"), &(0..TICKS).map(slabinfo_dump).collect::<String>())?;
    write_gzip(
        &folder.join("slabinfo_tool.gz"),
        &(0..OUTPUTS).map(slabinfo_tool_output).collect::<String>(),
    )?;
    write_gzip(&folder.join("meminfo.gz"), &(0..TICKS).map(meminfo_dump).collect::<String>())?;
    let orders: String = (0..331).map(|cache| format!("cache_{cache} {}\n", cache % 4)).collect();
    fs::write(folder.join("orders"), orders)?;
    Ok(folder)
}

fn write_gzip(path: &Path, text: &str) -> std::io::Result<()> {
    let mut encoder = GzEncoder::new(File::create(path)?, Compression::best());
    encoder.write_all(text.as_bytes())?;
    encoder.finish().map(drop)
}

/// Size, objects a slab, order and slabs of a cache at a tick.
fn cache_counts(tick: u64, cache: u64) -> (u64, u64, u64, u64) {
    let size = 24 + 8 * (cache * 37 % 250);
    let order = cache % 4;
    (
        size,
        (4096 << order) / size,
        order,
        if cache.is_multiple_of(3) { 0 } else { cache * 17 + tick * (cache % 7) },
    )
}

fn slabinfo_dump(tick: u64) -> String {
    let line = |number| {
        let (size, each, order, slabs) = cache_counts(tick, number);
        let (all, free) = (slabs * each, (tick * 7 + number) % 50);
        format!(
            "cache_{number:<18} {:6} {all:6} {size:6} {each:4} {:4} : tunables    0    0    0 : slabdata {slabs:6} {slabs:6}      0\n",
            all.saturating_sub(free),
            1 << order,
        )
    };
    let head = "slabinfo - version: 2.1\n# name            <active_objs> <num_objs>";
    format!("time: {}\n{head}\n{}", BEGAN + tick, (0..CACHES).map(line).collect::<String>())
}

fn slabinfo_tool_output(tick: u64) -> String {
    let head = "Name                   Objects Objsize           Space Slabs/Part/Cpu  O/S O %Fr %Ef Flg";
    let line = |number: u64| {
        let (size, each, order, slabs) = cache_counts(tick, number);
        let (objects, flags) = (slabs * each, if number.is_multiple_of(3) { "*" } else { "" });
        let slabs = format!("{slabs}/{}/4", number % 5);
        format!(
            "cache_{number:<15} {objects:8} {size:7} {:>15} {slabs:>14} {each:4} {order} {:3} {:3} {flags}\n",
            "212.9K",
            tick % 10,
            90 + number % 10
        )
    };
    format!("time: {}\n{head}\n{}", BEGAN + tick, (0..LISTED).map(line).collect::<String>())
}

fn meminfo_dump(tick: u64) -> String {
    let line = |number: u64| format!("Field{number}:     {} kB\n", 100_000 + tick * number);
    format!("time: {}\nMemTotal:       16422936 kB\n{}", BEGAN + tick, (0..49).map(line).collect::<String>())
}
