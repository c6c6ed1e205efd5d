//! The index of runs: whatever happens to it or behind its back, a list says what the runs say.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use perflab_archive::index::index_check::IndexCheck;
use perflab_archive::{Archive, ArchiveEntry, RunDir};
use perflab_model::{Manifest, Nanos, RunNote, RunRecord};
use rusqlite::Connection;

const VICTIM: &str = "PERFLAB_TEST_INDEX_VICTIM";

struct TestArchive {
    _home: tempfile::TempDir,
    archive: Archive,
}

impl TestArchive {
    fn with_runs(labels: &[Option<&str>]) -> (TestArchive, Vec<RunDir>) {
        let home = tempfile::tempdir().unwrap();
        let archive = Archive::open(&home.path().join("archive")).unwrap();
        let runs = labels.iter().map(|label| add_run(&archive, *label)).collect();
        (TestArchive { _home: home, archive }, runs)
    }

    fn index(&self) -> PathBuf {
        self.archive.path().join("index.sqlite")
    }

    fn sql(&self, statement: &str) {
        Connection::open(self.index()).unwrap().execute_batch(statement).unwrap();
    }

    /// Lets all rows have been read long after their files were written: such rows are trusted.
    fn age_rows(&self) {
        self.sql("UPDATE run SET read_at = read_at + 100000000000");
        self.sql("UPDATE record SET read_at = read_at + 100000000000");
    }

    /// What a history reads of each run must be what the run holds; gives the ids of those that cannot be read.
    fn check_records(&self) -> Vec<String> {
        let entries = self.archive.list_runs().unwrap();
        let mut unreadable = Vec::new();
        for (entry, read) in entries.iter().zip(self.archive.read_condensed_records(&entries)) {
            match self.archive.open_run(entry).read_record() {
                Ok(record) => assert_eq!(read.unwrap(), condense(record)),
                Err(error) => {
                    assert_eq!(read.unwrap_err().to_string(), error.to_string());
                    unreadable.push(entry.id.clone());
                }
            }
        }
        unreadable
    }

    /// What a list says must be what it says without any index.
    fn check_list(&self) -> Vec<ArchiveEntry> {
        let copy = tempfile::tempdir().unwrap();
        symlink(self.archive.path().join("runs"), copy.path().join("runs")).unwrap();
        let truth = Archive::open(copy.path()).unwrap().list_runs().unwrap();
        let listed = self.archive.list_runs().unwrap();
        // A reason names the path that was taken to the run.
        let comparable = |entry: &ArchiveEntry| {
            let summary = entry.summary.clone().map_err(drop);
            (entry.id.clone(), entry.short.clone(), entry.bytes, summary)
        };
        assert_eq!(
            listed.iter().map(comparable).collect::<Vec<_>>(),
            truth.iter().map(comparable).collect::<Vec<_>>()
        );
        listed
    }
}

fn add_run(archive: &Archive, label: Option<&str>) -> RunDir {
    let manifest = Manifest { label: label.map(String::from), ..fixtures::run_events::make_manifest(2, 2) };
    let mut recorder = archive.begin_run(&manifest).unwrap();
    fixtures::run_events::run_events(&manifest).for_each(|event| recorder.record(&event).unwrap());
    recorder.finish().unwrap()
}

/// What a history needs of a record.
fn condense(mut record: RunRecord) -> RunRecord {
    record.manifest.plan.slots.clear();
    for sample in &mut record.samples {
        (sample.start, sample.end) = Default::default();
    }
    RunRecord { samples: record.samples, ..RunRecord::new(record.manifest) }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let place = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &place);
        } else {
            fs::copy(entry.path(), place).unwrap();
        }
    }
}

#[test]
fn writers_keep_a_row_of_each_run() {
    let (test, runs) = TestArchive::with_runs(&[Some("a"), None, Some("b")]);
    let check = test.archive.check_index().unwrap();
    assert_eq!((check.runs, check.right, check.unusable.as_deref()), (3, 3, None));
    test.archive.set_label(runs[1].id(), Some("c")).unwrap();
    test.archive.remove_run(runs[0].id()).unwrap();
    test.age_rows();
    let (text, by) = ("y".repeat(10_000), "somebody".into());
    let note = RunNote { at: Nanos(0), by, text, case: None, metric: None };
    test.archive.add_note(&runs[2], note).unwrap();
    let check = test.archive.check_index().unwrap();
    assert_eq!((check.runs, check.right), (2, 2), "{check:?}");
    assert!(check.stale.is_empty() && check.gone.is_empty() && check.wrong.is_empty(), "{check:?}");
    let labels: Vec<_> =
        test.check_list().into_iter().map(|entry| entry.summary.unwrap().label.unwrap()).collect();
    assert_eq!(labels, ["c", "b"]);
}

#[test]
fn a_list_is_read_from_rows_that_are_current() {
    let (test, runs) = TestArchive::with_runs(&[Some("a"), Some("b")]);
    test.age_rows();
    test.sql(&format!("UPDATE run SET title = 'from the index' WHERE id = '{}'", runs[0].id()));
    let titles: Vec<_> =
        test.archive.list_runs().unwrap().into_iter().map(|entry| entry.summary.unwrap().title).collect();
    assert_eq!(titles, ["from the index", "pages"]);
    let check = test.archive.check_index().unwrap();
    assert!(check.wrong.contains(runs[0].id()) && !check.is_right());
    assert_eq!(test.archive.rebuild_index().unwrap(), 2);
    assert_eq!(test.archive.check_index().unwrap().right, 2);
    test.check_list();
}

#[test]
fn what_happens_to_runs_behind_the_back_of_the_index_is_seen() {
    let (test, runs) = TestArchive::with_runs(&[Some("aaa"), Some("bbb"), Some("ccc")]);
    let (other, foreign) = TestArchive::with_runs(&[Some("elsewhere")]);
    let place = |run: &RunDir| test.archive.path().join("runs").join(run.id());
    let edit_in_place = |run: &RunDir, from: &str, to: &str| {
        let file = place(run).join("run.json");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(file, text.replace(from, to)).unwrap();
    };
    let changes: [&dyn Fn(); 5] = [
        // As an older perflab labels: another file of the same length.
        &|| {
            let file = place(&runs[0]).join("run.json");
            let text = fs::read_to_string(&file).unwrap().replace("aaa", "xyz");
            fs::write(file.with_extension("new"), text).unwrap();
            fs::rename(file.with_extension("new"), file).unwrap();
        },
        &|| edit_in_place(&runs[1], "bbb", "uvw"),
        &|| copy_folder(foreign[0].path(), &place(&foreign[0])),
        &|| fs::remove_dir_all(place(&runs[2])).unwrap(),
        &|| fs::write(place(&runs[0]).join("run.json"), "{").unwrap(),
    ];
    for change in changes {
        test.age_rows();
        std::thread::sleep(Duration::from_millis(20));
        change();
        assert!(test.archive.check_index().unwrap().is_right());
        test.check_list();
        test.check_records();
    }
    other.check_list();
    // A table that is gone is seen by whoever reads it, and the size that it had by whoever asks for that.
    test.age_rows();
    fs::remove_file(place(&runs[1]).join("iterations.parquet")).unwrap();
    test.check_records();
    let check = test.archive.check_index().unwrap();
    assert_eq!(check.wrong.iter().collect::<Vec<_>>(), [runs[1].id()]);
    test.archive.rebuild_index().unwrap();
    assert!(test.archive.check_index().unwrap().is_right());
    test.check_list();
}

#[test]
fn histories_are_read_from_rows_that_are_current() {
    let (test, runs) = TestArchive::with_runs(&[Some("a"), Some("b"), Some("b")]);
    let mut dying = test.archive.begin_run(&fixtures::run_events::make_manifest(2, 2)).unwrap();
    let manifest = RunDir::open(dying.path()).unwrap().manifest().unwrap();
    fixtures::run_events::run_events(&manifest).take(20).for_each(|event| dying.record(&event).unwrap());
    drop(dying);
    assert_eq!(test.check_records(), [""; 0]);
    test.age_rows();
    assert_eq!(test.check_records(), [""; 0]);
    let of = |run: &RunDir| format!("WHERE run = '{}'", run.id());
    test.sql(&format!("UPDATE record SET own = replace(own, '\"seed\":7', '\"seed\":8') {}", of(&runs[0])));
    let entries = test.archive.list_runs().unwrap();
    let seeds = || -> Vec<u64> {
        let read = test.archive.read_condensed_records(&entries);
        read.into_iter().map(|record| record.unwrap().manifest.plan.seed).collect()
    };
    assert_eq!(seeds(), [8, 7, 7, 7]);
    let check = test.archive.check_index().unwrap();
    assert_eq!(check.wrong.iter().collect::<Vec<_>>(), [runs[0].id()]);
    assert_eq!(check.right, 2, "of three closed runs one is wrong, though its head is right");
    // Rows that make no sense are no rows.
    test.sql(&format!("UPDATE record SET samples = x'01ff' {}", of(&runs[0])));
    test.sql(&format!("UPDATE record SET plan = 99 {}", of(&runs[1])));
    test.sql(&format!("UPDATE record SET own = '[' {}", of(&runs[2])));
    assert_eq!(test.check_records(), [""; 0]);
    test.age_rows();
    fs::write(runs[1].path().join("samples.parquet"), "no table").unwrap();
    assert_eq!(test.check_records(), [runs[1].id()]);
    test.archive.rebuild_index().unwrap();
    test.age_rows();
    assert_eq!(test.check_records(), [runs[1].id()]);
    fs::remove_file(test.index()).unwrap();
    assert_eq!(test.check_records(), [runs[1].id()]);
}

#[test]
fn an_index_that_is_of_no_use_is_replaced() {
    let (test, _) = TestArchive::with_runs(&[Some("a"), None]);
    let whole = fs::read(test.index()).unwrap();
    let foreign = test.archive.path().join("foreign");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE run (id TEXT)").unwrap();
    let half_foreign = test.archive.path().join("half");
    fs::write(&half_foreign, &whole).unwrap();
    Connection::open(&half_foreign).unwrap().execute_batch("DROP TABLE run").unwrap();
    let newer = test.archive.path().join("newer");
    fs::write(&newer, &whole).unwrap();
    Connection::open(&newer).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let mut torn = whole.clone();
    torn[4096..].fill(0xa5);
    for content in [
        b"".to_vec(),
        b"no database".to_vec(),
        whole[..5000].to_vec(),
        whole[..whole.len() / 2].to_vec(),
        torn,
        fs::read(&foreign).unwrap(),
        fs::read(&half_foreign).unwrap(),
        fs::read(&newer).unwrap(),
    ] {
        fs::write(test.index(), &content).unwrap();
        test.check_list();
        let check = test.archive.check_index().unwrap();
        assert_eq!((check.right, check.unusable), (2, None), "{} bytes", content.len());
    }
    let victim = test.archive.path().join("theirs");
    fs::write(&victim, "theirs").unwrap();
    let replace: [&dyn Fn(&Path); 3] = [&|_| {}, &|index| symlink(&victim, index).unwrap(), &|index| {
        assert!(Command::new("mkfifo").arg(index).status().unwrap().success())
    }];
    for make in replace {
        fs::remove_file(test.index()).unwrap();
        make(&test.index());
        test.check_list();
        assert_eq!(test.archive.check_index().unwrap().right, 2);
        assert!(fs::symlink_metadata(test.index()).unwrap().is_file());
    }
    assert_eq!(fs::read(&victim).unwrap(), b"theirs");
    // A folder of that name is somebody's: it stays, and the runs are read.
    fs::remove_file(test.index()).unwrap();
    fs::create_dir(test.index()).unwrap();
    test.check_list();
    assert!(test.archive.rebuild_index().is_err());
}

#[test]
fn an_archive_that_may_not_be_written_is_read() {
    let (test, runs) = TestArchive::with_runs(&[Some("a"), Some("b")]);
    let file = runs[0].path().join("run.json");
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("\"a\"", "\"z\"")).unwrap();
    let path = test.archive.path();
    let read_only = |on: bool| match (rustix::process::geteuid().is_root(), on) {
        (true, true) => mount(&["--bind"], &[path, path]) && mount(&["-o", "remount,ro,bind"], &[path]),
        (true, false) => Command::new("umount").arg(path).status().is_ok_and(|status| status.success()),
        (false, on) => Command::new("chmod")
            .args(["-R", if on { "a-w" } else { "u+w" }])
            .arg(path)
            .status()
            .is_ok_and(|status| status.success()),
    };
    if !read_only(true) {
        return fixtures::skip_test("read-only archive", "cannot mount");
    }
    let listed = test.archive.list_runs();
    let rebuilt = test.archive.rebuild_index();
    fs::write(path.join("probe"), "").unwrap_err();
    assert!(read_only(false));
    let labels: Vec<_> = listed.unwrap().into_iter().map(|entry| entry.summary.unwrap().label).collect();
    assert_eq!(labels, [Some("z".to_owned()), Some("b".to_owned())]);
    assert!(rebuilt.is_err());
}

#[test]
fn root_leaves_the_index_of_an_archive_that_others_may_change_alone_root() {
    if !rustix::process::geteuid().is_root() {
        return fixtures::skip_test("others' archive", "chown needs root");
    }
    let (test, runs) = TestArchive::with_runs(&[Some("a")]);
    test.age_rows();
    test.sql("UPDATE run SET title = 'from the index'");
    let before = fs::read(test.index()).unwrap();
    std::os::unix::fs::chown(test.archive.path(), Some(65534), None).unwrap();
    let listed = test.archive.list_runs().unwrap();
    assert_eq!(
        (listed[0].id.as_str(), listed[0].summary.as_ref().unwrap().title.as_str()),
        (runs[0].id(), "pages")
    );
    assert!(test.archive.rebuild_index().is_err());
    assert_eq!(fs::read(test.index()).unwrap(), before);
}

fn mount(options: &[&str], paths: &[&Path]) -> bool {
    Command::new("mount").args(options).args(paths).status().is_ok_and(|status| status.success())
}

#[test]
fn writers_and_readers_at_once_leave_a_right_index() {
    let (test, _) = TestArchive::with_runs(&[]);
    let archive = &test.archive;
    std::thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || {
                for _ in 0..6 {
                    let run = add_run(archive, None);
                    archive.set_label(run.id(), Some(&format!("by {writer}"))).unwrap();
                    if writer == 0 {
                        archive.remove_run(run.id()).unwrap();
                    }
                }
            });
        }
        scope.spawn(move || (0..20).for_each(|_| drop(archive.list_runs().unwrap())));
        scope.spawn(move || archive.rebuild_index().unwrap());
    });
    assert_eq!(test.check_list().len(), 18);
    let check = archive.check_index().unwrap();
    assert!(check.is_right() && check.unusable.is_none(), "{check:?}");
}

/// Not a test unless it is started by one: changes the archive and its index for ever.
#[test]
fn index_victim() {
    let Some(directory) = std::env::var_os(VICTIM) else { return };
    let archive = Archive::open(Path::new(&directory)).unwrap();
    let kept = add_run(&archive, Some("kept"));
    println!("began");
    for round in 0_u32.. {
        archive.set_label(kept.id(), Some(&format!("round {round}"))).unwrap();
        let run = add_run(&archive, None);
        archive.list_runs().unwrap();
        if round.is_multiple_of(3) {
            archive.remove_run(run.id()).unwrap();
        }
        if round.is_multiple_of(5) {
            archive.rebuild_index().unwrap();
        }
    }
}

#[test]
fn killed_at_any_moment_leaves_an_index_that_misleads_nobody() {
    let (test, _) = TestArchive::with_runs(&[Some("before")]);
    for kill in 0..15_u64 {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "index_victim", "--nocapture"]).env(VICTIM, test.archive.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("began")));
        std::thread::sleep(Duration::from_micros(kill * 7_919 % 60_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let check: IndexCheck = test.archive.check_index().unwrap();
        assert!(check.is_right(), "{check:?}");
        test.check_list();
        test.check_records();
        let check = test.archive.check_index().unwrap();
        assert!(check.unusable.is_none() && check.stale.is_empty() && check.gone.is_empty(), "{check:?}");
    }
}
