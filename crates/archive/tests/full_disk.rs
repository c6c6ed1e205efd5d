//! A full disk: the error names the file and what is kept, and what was kept reads. Needs root, to mount
//! a tmpfs of a few pages.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::path::Path;
use std::process::Command;

use perflab_archive::{Archive, ArchiveError, RunRecorder};
use perflab_model::{RunRecord, RunStatus};

/// A small file system, unmounted at the end.
struct SmallTmpfs(tempfile::TempDir);

impl SmallTmpfs {
    fn mount(size: &str) -> Option<SmallTmpfs> {
        let disk = SmallTmpfs(tempfile::tempdir().unwrap());
        mount_tmpfs(&format!("size={size}"), disk.path()).then_some(disk)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallTmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).output();
    }
}

fn mount_tmpfs(options: &str, on: &Path) -> bool {
    let mut command = Command::new("mount");
    command.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(on);
    command.output().is_ok_and(|output| output.status.success())
}

fn fill_disk(recorder: &mut RunRecorder, archive: &Archive) -> ArchiveError {
    let run = archive.find_runs("@latest").unwrap().pop().unwrap();
    let manifest = run.manifest().unwrap();
    let mut results = fixtures::run_events::run_events(&manifest).map(|event| recorder.record(&event));
    results.find_map(Result::err).expect("the disk is smaller than the run")
}

fn read_latest_run(archive: &Archive, status: RunStatus) -> RunRecord {
    let record = archive.find_runs("@latest").unwrap().pop().unwrap().read_record().unwrap();
    assert_eq!(record.manifest.status, status);
    record
}

#[test]
fn a_full_disk_keeps_what_was_written_and_can_be_closed_later() {
    let Some(disk) = SmallTmpfs::mount("200k") else {
        return fixtures::skip_test("full_disk", "cannot mount a tmpfs (needs root)");
    };
    let archive = Archive::open(&disk.path().join("archive")).unwrap();
    let mut recorder = archive.begin_run(&fixtures::run_events::make_manifest(4, 200)).unwrap();
    let error = fill_disk(&mut recorder, &archive);
    let ArchiveError::JournalWrite { path, kept, source } = &error else { panic!("{error}") };
    assert!(path.ends_with("journal.jsonl") && *kept > 0 && *kept == recorder.bytes_written());
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
    let journal = path.clone();

    let running = read_latest_run(&archive, RunStatus::Running);
    assert!(!running.samples.is_empty());
    let before = std::fs::read(&journal).unwrap();
    assert!(matches!(recorder.finish(), Err(ArchiveError::JournalWrite { .. })));
    assert_eq!(read_latest_run(&archive, RunStatus::DiskFull).samples, running.samples);

    let run = archive.find_runs("@latest").unwrap().pop().unwrap();
    let closing = RunRecorder::recover(run.path()).unwrap_err();
    assert!(matches!(closing, ArchiveError::Close { .. }), "{closing}");
    assert!(std::fs::read(&journal).unwrap() == before, "the journal is untouched");
    assert!(!run.path().join("finishing").exists() && !run.path().join("samples.parquet").exists());
    assert_eq!(read_latest_run(&archive, RunStatus::DiskFull).samples, running.samples);

    assert!(mount_tmpfs("remount,size=20m", disk.path()));
    RunRecorder::recover(run.path()).unwrap();
    assert_eq!(read_latest_run(&archive, RunStatus::DiskFull).samples, running.samples);
    assert!(!run.path().join("disk-full").exists() && !run.path().join("lock").exists());
}

#[test]
fn a_disk_that_gets_room_again_loses_no_event() {
    let Some(disk) = SmallTmpfs::mount("200k") else {
        return fixtures::skip_test("full_disk", "cannot mount a tmpfs (needs root)");
    };
    let archive = Archive::open(&disk.path().join("archive")).unwrap();
    let manifest = fixtures::run_events::make_manifest(4, 200);
    let mut recorder = archive.begin_run(&manifest).unwrap();
    let mut failures = 0;
    for event in fixtures::run_events::run_events(&manifest) {
        if recorder.record(&event).is_err() {
            failures += 1;
            assert!(failures > 1 || mount_tmpfs("remount,size=20m", disk.path()));
        }
    }
    let record = recorder.finish().unwrap().read_record().unwrap();
    assert_eq!((failures, record.samples.len()), (1, 2 * 4 * 200));
}

#[test]
fn a_run_whose_tables_have_no_room_is_whole_once_it_is_closed() {
    let Some(disk) = SmallTmpfs::mount("20m") else {
        return fixtures::skip_test("full_disk", "cannot mount a tmpfs (needs root)");
    };
    let archive = Archive::open(&disk.path().join("archive")).unwrap();
    let manifest = fixtures::run_events::make_manifest(4, 200);
    let mut recorder = archive.begin_run(&manifest).unwrap();
    fixtures::run_events::run_events(&manifest).for_each(|event| recorder.record(&event).unwrap());
    let filler = disk.path().join("filler");
    std::fs::write(&filler, vec![1; 20 << 20]).unwrap_err();
    let error = recorder.finish().unwrap_err();
    assert!(matches!(error, ArchiveError::Close { .. }) && error.is_disk_full(), "{error}");
    let kept = read_latest_run(&archive, RunStatus::DiskFull);
    assert_eq!(kept.iterations.len(), manifest.plan.slots.len());

    std::fs::remove_file(filler).unwrap();
    drop(archive.hold_run(&manifest.id).unwrap());
    let whole = read_latest_run(&archive, RunStatus::Finished);
    assert_eq!(whole.samples, kept.samples);
}
