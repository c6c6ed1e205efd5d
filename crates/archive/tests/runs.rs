//! Finding, listing and removing runs, among them damaged ones and ones from the future.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::fs;
use std::path::{Path, PathBuf};

use perflab_archive::{Archive, ArchiveError, RetentionPolicy, RunDir};
use perflab_model::{ClockOffset, Facts, Manifest, RunEvent, RunEventKind, RunStatus, TargetRecord};

fn open_archive(directory: &Path) -> Archive {
    Archive::open(&directory.join("archive")).unwrap()
}

fn add_run(archive: &Archive, label: Option<&str>) -> RunDir {
    let manifest = Manifest { label: label.map(String::from), ..fixtures::run_events::make_manifest(2, 2) };
    let mut recorder = archive.begin_run(&manifest).unwrap();
    fixtures::run_events::run_events(&manifest).for_each(|event| recorder.record(&event).unwrap());
    recorder.finish().unwrap()
}

fn run_ids(runs: Result<Vec<RunDir>, ArchiveError>) -> Vec<String> {
    runs.unwrap().iter().map(|run| run.id().to_owned()).collect()
}

fn set_format(run: &RunDir, format: u32) -> PathBuf {
    let path = run.path().join("run.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    json["format"] = format.into();
    json["writer"] = "perflab 9.1.0".into();
    // A newer format need not have the shape that this program knows.
    json["study"] = "elsewhere".into();
    fs::write(&path, json.to_string()).unwrap();
    path
}

/// An iteration in which several targets take part is one.
#[test]
fn iterations_of_several_targets_are_counted_once() {
    let directory = tempfile::tempdir().unwrap();
    let archive = open_archive(directory.path());
    let target = |name: &str| TargetRecord {
        name: name.into(),
        kind: "process".into(),
        kernel: "6.1".into(),
        boot_id: String::new(),
        clock: ClockOffset::default(),
        facts: Facts::default(),
    };
    let manifest =
        Manifest { targets: vec![target("one"), target("two")], ..fixtures::run_events::make_manifest(2, 2) };
    let mut recorder = archive.begin_run(&manifest).unwrap();
    let is_running = |event: &RunEvent| !matches!(event.what, RunEventKind::Ended { .. });
    let (events, end): (Vec<RunEvent>, Vec<RunEvent>) =
        fixtures::run_events::run_events(&manifest).partition(is_running);
    for event in &events {
        let both = matches!(event.what, RunEventKind::IterationEnded { .. });
        for target in 0..=u32::from(both) {
            recorder.record(&RunEvent { target: Some(target), ..event.clone() }).unwrap();
        }
    }
    let count = || {
        let [run] = &archive.list_runs().unwrap()[..] else { panic!() };
        let summary = run.summary.as_ref().unwrap();
        (summary.iterations, summary.planned)
    };
    let while_it_runs = count();
    end.iter().for_each(|event| recorder.record(event).unwrap());
    recorder.finish().unwrap();
    assert_eq!([while_it_runs, count()], [(6, 6); 2]);
}

#[test]
fn runs_are_found_by_prefix_latest_label_and_path() {
    let directory = tempfile::tempdir().unwrap();
    let archive = open_archive(directory.path());
    let runs = [
        add_run(&archive, Some("base")),
        add_run(&archive, Some("patched")),
        add_run(&archive, Some("base")),
    ];
    let id = |at: usize| vec![runs[at].id().to_owned()];
    for run in &archive.list_runs().unwrap() {
        assert_eq!(run_ids(archive.find_runs(&run.short)).concat(), run.id);
        assert_eq!(run_ids(archive.find_runs(&run.short.to_lowercase())).concat(), run.id);
    }
    assert_eq!(run_ids(archive.find_runs("@latest")), id(2));
    assert_eq!(run_ids(archive.find_runs("@latest~2")), id(0));
    assert_eq!(run_ids(archive.find_runs("base")), [id(0), id(2)].concat());
    assert_eq!(run_ids(archive.find_runs(runs[1].path().to_str().unwrap())), id(1));
    let branch = add_run(&archive, Some("feature/faults"));
    assert_eq!(run_ids(archive.find_runs("feature/faults")), [branch.id()]);
}

#[test]
fn what_is_not_found_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let archive = open_archive(directory.path());
    let hint = |selector| match archive.find_runs(selector).unwrap_err() {
        ArchiveError::NotFound { selector: of, hint, .. } if of == selector => hint,
        other => panic!("{selector}: {other}"),
    };
    let without_runs = [hint("base"), hint("@latest")];
    std::fs::create_dir_all(archive.path()).unwrap();
    insta::assert_snapshot!([&without_runs[..], &[hint("base"), hint("@latest")]].concat().join("\n"), @"
    it is not there; `perflab run quickstart` creates it, --archive DIR names another
    it is not there; `perflab run quickstart` creates it, --archive DIR names another
    it is empty; `perflab run quickstart` records a first run
    it is empty; `perflab run quickstart` records a first run
    ");
    let runs = [add_run(&archive, Some("base")), add_run(&archive, None)];
    insta::assert_snapshot!(["bsae", "@latest~2", "@newest"].map(hint).join("\n"), @"
    did you mean `base`?
    it holds 2 runs
    write @latest, @latest~1, @latest~2 ...
    ");
    let error = archive.find_runs("no/such.perflab").unwrap_err();
    assert!(
        matches!(&error, ArchiveError::Io { path, .. } if path == Path::new("no/such.perflab")),
        "{error}"
    );
    let shared = &runs[0].id()[..4];
    let error = archive.find_runs(shared).unwrap_err();
    let ArchiveError::Ambiguous { selector, candidates } = error else { panic!("{error}") };
    assert_eq!((selector.as_str(), candidates.len()), (shared, 2));
}

#[test]
fn a_newer_format_is_named_with_both_versions_and_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let archive = open_archive(directory.path());
    let run = add_run(&archive, None);
    let path = set_format(&run, 7);
    let expected = format!(
        "{} is in archive format 7, written by perflab 9.1.0; this perflab {} reads formats up to 2: \
         update perflab to read it",
        path.display(),
        env!("CARGO_PKG_VERSION")
    );
    assert_eq!(run.read_record().unwrap_err().to_string(), expected);
    assert_eq!(run.read_series("vmstat").unwrap_err().to_string(), expected);
    assert_eq!(archive.list_runs().unwrap()[0].summary, Err(expected));
}

#[test]
fn damaged_runs_are_listed_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let archive = open_archive(directory.path());
    assert_eq!(archive.list_runs().unwrap(), []);
    let (good, torn, gone) =
        (add_run(&archive, Some("good")), add_run(&archive, None), add_run(&archive, None));
    fs::write(torn.path().join("run.json"), "{ \"format\": 1, ").unwrap();
    fs::remove_file(gone.path().join("run.json")).unwrap();
    fs::write(archive.path().join("runs/stray"), "x").unwrap();
    let list = archive.list_runs().unwrap();
    assert_eq!(list.len(), 4);
    let summary = list[0].summary.as_ref().unwrap();
    assert_eq!((summary.label.as_deref(), summary.title.as_str()), (Some("good"), "pages"));
    assert_eq!((summary.status, summary.iterations, summary.planned), (RunStatus::Finished, 6, 6));
    assert_eq!(summary.begun.to_string(), "2026-09-21T14:13:20Z");
    assert!(list[0].bytes > 1000 && list[0].id == good.id());
    let reason = |at: usize| list[at].summary.as_ref().unwrap_err().clone();
    let reasons = [1, 2, 3].map(reason).map(|reason| {
        let ids = [(&torn, "TORN"), (&gone, "GONE")].into_iter();
        ids.fold(reason, |reason, (run, name)| reason.replace(run.id(), name))
            .replace(archive.path().to_str().unwrap(), "ARCHIVE")
    });
    insta::assert_snapshot!(reasons.join("\n"), @"
    ARCHIVE/runs/TORN/run.json is damaged: EOF while parsing a value at line 1 column 15
    cannot read ARCHIVE/runs/GONE/run.json: No such file or directory (os error 2)
    cannot read ARCHIVE/runs/stray/run.json: Not a directory (os error 20)
    ");
    assert_eq!(run_ids(archive.find_runs("good")), [good.id()]);
}

#[test]
fn damaged_tables_are_errors_that_name_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let archive = open_archive(directory.path());
    let run = add_run(&archive, None);
    let unknown = run.read_series("vmsat").unwrap_err();
    let ArchiveError::NoSeries { monitor, hint, .. } = &unknown else { panic!("{unknown}") };
    assert_eq!(monitor, "vmsat");
    insta::assert_snapshot!(hint, @"did you mean `vmstat`?; known here: vmstat");
    for table in ["samples.parquet", "series/vmstat.parquet"] {
        let path = run.path().join(table);
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let read = || match table {
            "samples.parquet" => run.read_record().unwrap_err(),
            _ => run.read_series("vmstat").unwrap_err(),
        };
        let error = read();
        let ArchiveError::Altered { path: of, .. } = &error else { panic!("{error}") };
        assert_eq!(of, &path);
        // As in runs that were closed before there were hashes.
        fs::rename(run.path().join("SHA256SUMS"), directory.path().join("hashes")).unwrap();
        let error = read();
        let ArchiveError::Damaged { path: of, .. } = &error else { panic!("{error}") };
        assert_eq!(of, &path);
        fs::rename(directory.path().join("hashes"), run.path().join("SHA256SUMS")).unwrap();
    }
}

#[test]
fn pruning_keeps_what_it_was_told_to_keep() {
    let directory = tempfile::tempdir().unwrap();
    let archive = open_archive(directory.path());
    let runs = [
        add_run(&archive, None),
        add_run(&archive, Some("base")),
        add_run(&archive, None),
        add_run(&archive, None),
    ];
    let alive = archive.begin_run(&fixtures::run_events::make_manifest(1, 1)).unwrap();
    let half = archive.path().join("runs/.half-x");
    fs::create_dir(&half).unwrap();
    // Its maker had come as far as that, and is gone.
    fs::write(half.join("lock"), "").unwrap();
    let policy = RetentionPolicy { keep: Some(2), keep_labelled: true, ..RetentionPolicy::default() };
    let would = archive.prune(&RetentionPolicy { dry_run: true, ..policy.clone() }).unwrap();
    assert_eq!(archive.list_runs().unwrap().len(), 5);
    let pruned = archive.prune(&policy).unwrap();
    assert_eq!((&would, pruned.runs.len()), (&pruned, 2));
    assert!(pruned.bytes > 1000);
    let left: Vec<String> = archive.list_runs().unwrap().into_iter().map(|entry| entry.id).collect();
    let alive = alive.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(left, [runs[1].id(), runs[3].id(), alive]);
    assert!(!half.exists());
    assert!(matches!(archive.remove_run("nothing"), Err(ArchiveError::NotFound { .. })));
}
