//! What a push costs beside `rclone copy` of the same runs to the same server, in turns: many small files, and one large one.
//!
//! `RCLONE=PROGRAM AWS_ENDPOINT_URL=... AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... cargo bench -p perflab-remote --bench upload -- BUCKET`

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use perflab_archive::{Archive, RunDir};
use perflab_model::Bytes;
use perflab_remote::{PushScope, RemoteArchive, RemoteUrl};

const RUNS: usize = 60;
/// Bytes of the large file of the one large run.
const LARGE: usize = 512 << 20;
const ROUNDS: usize = 5;

type UploadBenchError = Box<dyn std::error::Error>;

fn main() -> Result<(), UploadBenchError> {
    let bucket = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let (Some(bucket), Some(rclone)) = (bucket, std::env::var_os("RCLONE")) else {
        println!("skipped: name a bucket, and rclone by $RCLONE");
        return Ok(());
    };
    let home = tempfile::tempdir()?;
    let small = Archive::open(&home.path().join("small"))?;
    (0..RUNS).try_for_each(|_| write_run(&small).map(drop))?;
    let large = Archive::open(&home.path().join("large"))?;
    let run = write_run(&large)?;
    // Noise, so that nothing on the way can compress it.
    let mut noise = fixtures::run_builder::SplitMixNoise(2026);
    let words = (0..LARGE / 8).flat_map(|_| noise.uniform().to_bits().to_le_bytes());
    std::fs::create_dir_all(run.path().join("events"))?;
    std::fs::write(run.path().join("events/large.parquet"), words.collect::<Vec<u8>>())?;
    for (name, archive) in [("many small files", &small), ("one large file", &large)] {
        compare_uploads(name, archive, &bucket, Path::new(&rclone))?;
    }
    Ok(())
}

fn write_run(archive: &Archive) -> Result<RunDir, UploadBenchError> {
    let mut manifest = fixtures::run_events::make_manifest(3, 10);
    manifest.id = perflab_archive::new_run_id();
    let mut recorder = archive.begin_run(&manifest)?;
    fixtures::run_events::run_events(&manifest).try_for_each(|event| recorder.record(&event))?;
    Ok(recorder.finish()?)
}

fn compare_uploads(
    name: &str,
    archive: &Archive,
    bucket: &str,
    rclone: &Path,
) -> Result<(), UploadBenchError> {
    let runs: Vec<RunDir> = archive.list_runs()?.iter().map(|entry| archive.open_run(entry)).collect();
    let mut files = 0;
    let mut bytes = 0;
    for run in &runs {
        for file in run.list_files()? {
            files += 1;
            bytes += run.path().join(file).metadata()?.len();
        }
    }
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let place = format!("bench-{}-{round}", perflab_archive::new_run_id());
        let begun = Instant::now();
        let url = RemoteUrl::parse(&format!("s3://{bucket}/{place}/perflab"))?;
        RemoteArchive::open_or_create(&url)?.push_runs(&runs, PushScope::New, &|_| (), |_, _| ())?;
        ours.push(begun.elapsed());
        let begun = Instant::now();
        let mut copy = Command::new(rclone);
        let to = format!(":s3,provider=Other,env_auth=true:{bucket}/{place}/rclone");
        copy.args(["copy", "--config", "/dev/null", "--transfers", "16"])
            .arg(archive.path().join("runs"))
            .arg(to);
        if let Ok(endpoint) = std::env::var("AWS_ENDPOINT_URL") {
            copy.args(["--s3-endpoint", &endpoint]);
        }
        let copied = copy.stdin(Stdio::null()).status()?;
        if !copied.success() {
            return Err(format!("{copy:?} ended with {copied}").into());
        }
        theirs.push(begun.elapsed());
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times.get(ROUNDS / 2).copied().unwrap_or_default()
    };
    let (ours, theirs) = (median(&mut ours), median(&mut theirs));
    println!(
        "{name}: {files} files, {}: perflab {ours:?}, rclone {theirs:?}: {:.2} of its speed",
        Bytes(bytes),
        theirs.as_secs_f64() / ours.as_secs_f64()
    );
    Ok(())
}
