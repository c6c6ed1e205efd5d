//! The portable file: there and back, and everything that must not come out of one.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use perflab_archive::{Archive, ArchiveError, RunDir, import_portable_run, write_portable_file};
use tar::{EntryType, Header};

fn open_archive(directory: &Path, name: &str) -> Archive {
    Archive::open(&directory.join(name)).unwrap()
}

fn add_run(archive: &Archive) -> RunDir {
    let manifest = fixtures::run_events::make_manifest(4, 3);
    let mut recorder = archive.begin_run(&manifest).unwrap();
    fixtures::run_events::run_events(&manifest).for_each(|event| recorder.record(&event).unwrap());
    recorder.finish().unwrap()
}

#[test]
fn a_run_travels_in_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (open_archive(directory.path(), "from"), open_archive(directory.path(), "to"));
    let run = add_run(&from);
    let file = directory.path().join("run.perflab");
    assert!(write_portable_file(&run, &file).unwrap() > 1000);
    assert!(matches!(write_portable_file(&run, &file), Err(ArchiveError::Exists { .. })));
    let read = to.find_runs(file.to_str().unwrap()).unwrap().pop().unwrap();
    assert_eq!(read.read_record().unwrap(), run.read_record().unwrap());
    let imported = import_portable_run(&to, &file).unwrap();
    assert_eq!(imported.read_record().unwrap(), run.read_record().unwrap());
    assert_eq!(imported.read_series("vmstat").unwrap(), run.read_series("vmstat").unwrap());
    assert_eq!(to.list_runs().unwrap().len(), 1);
    assert!(matches!(import_portable_run(&to, &file), Err(ArchiveError::Exists { .. })));
    assert_eq!(fs::read_dir(to.path().join("runs")).unwrap().count(), 1, "nothing stays of a failed import");
}

#[test]
fn a_living_run_is_not_exported_and_a_dead_one_is() {
    let directory = tempfile::tempdir().unwrap();
    let (from, to) = (open_archive(directory.path(), "from"), open_archive(directory.path(), "to"));
    let manifest = fixtures::run_events::make_manifest(1, 1);
    let mut recorder = from.begin_run(&manifest).unwrap();
    fixtures::run_events::run_events(&manifest).for_each(|event| recorder.record(&event).unwrap());
    let run = from.find_runs("@latest").unwrap().pop().unwrap();
    let file = directory.path().join("run.perflab");
    assert!(matches!(write_portable_file(&run, &file), Err(ArchiveError::Live { .. })));
    drop(recorder);
    write_portable_file(&run, &file).unwrap();
    assert_eq!(import_portable_run(&to, &file).unwrap().read_record().unwrap(), run.read_record().unwrap());
}

/// Of a run that ended and of one that was killed, which has no hashes of its own. A few bits mean nothing: to whoever unpacks the file,
/// what it holds is the same.
#[test]
fn a_portable_file_with_a_flipped_bit_is_refused_or_holds_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let from = open_archive(directory.path(), "from");
    let ended = add_run(&from);
    let manifest = fixtures::run_events::make_manifest(1, 1);
    let mut recorder = from.begin_run(&manifest).unwrap();
    fixtures::run_events::run_events(&manifest).for_each(|event| recorder.record(&event).unwrap());
    drop(recorder);
    for run in [ended, from.find_runs(&manifest.id).unwrap().pop().unwrap()] {
        let file = directory.path().join(format!("{}.perflab", run.id()));
        write_portable_file(&run, &file).unwrap();
        let whole = fs::read(&file).unwrap();
        let mut taken = 0;
        for at in (0..whole.len()).step_by(whole.len() / 50) {
            let mut content = whole.clone();
            content[at] ^= 1 << (at % 8);
            fs::write(&file, content).unwrap();
            let to = open_archive(directory.path(), &format!("to-{}-{at}", run.id()));
            let place = format!("byte {at} of {}", whole.len());
            match import_portable_run(&to, &file) {
                Ok(same) => {
                    assert_eq!(same.list_files().unwrap(), run.list_files().unwrap(), "{place}");
                    for name in run.list_files().unwrap() {
                        let [here, there] =
                            [&run, &same].map(|run| fs::read(run.path().join(&name)).unwrap());
                        assert!(here == there, "{place}: {name}");
                    }
                    taken += 1;
                }
                Err(_) => assert_eq!(to.list_runs().unwrap().len(), 0, "{place}"),
            }
        }
        assert!(taken <= 5, "{taken} flipped bits were not noticed");
    }
}

/// A tar that our own writer would never make: the path goes in as raw bytes.
fn write_evil_tar(directory: &Path, path: &str, kind: EntryType, content: &str) -> PathBuf {
    let file = directory.join("evil.perflab");
    let mut tar = tar::Builder::new(zstd::Encoder::new(File::create(&file).unwrap(), 1).unwrap());
    let mut header = Header::new_gnu();
    header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    if kind.is_symlink() {
        header.set_link_name("/etc").unwrap();
    }
    header.set_size(content.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    tar.append(&header, content.as_bytes()).unwrap();
    tar.into_inner().unwrap().finish().unwrap();
    file
}

#[test]
fn nothing_leaves_the_directory_it_is_unpacked_to() {
    let directory = tempfile::tempdir().unwrap();
    let archive = open_archive(directory.path(), "archive");
    let id = perflab_archive::new_run_id();
    let cases = [
        (format!("{id}/../../escaped"), EntryType::Regular),
        ("/tmp/escaped".into(), EntryType::Regular),
        ("../escaped".into(), EntryType::Regular),
        (format!("{id}/link"), EntryType::Symlink),
        (format!("{id}/device"), EntryType::Block),
        ("elsewhere/run.json".into(), EntryType::Regular),
        (format!("{id}/run.json"), EntryType::Regular),
    ];
    let mut reasons = Vec::new();
    for (path, kind) in cases {
        let file = write_evil_tar(directory.path(), &path, kind, "");
        let error = import_portable_run(&archive, &file).unwrap_err();
        let ArchiveError::Refused { path: refused, reason } = error else { panic!("{path}: {error}") };
        assert_eq!(refused, file);
        let reason = reason.replace(&id, "ID").replace(directory.path().to_str().unwrap(), "DIR");
        // What is wrong with it is said of a file that is gone.
        reasons.push(reason.split(": ").next().unwrap().to_owned());
        assert_eq!(fs::read_dir(archive.path().join("runs")).unwrap().count(), 0, "{path}");
    }
    insta::assert_snapshot!(reasons.join("\n"), @"
    `ID/../../escaped` leads out of the run's directory
    `/tmp/escaped` leads out of the run's directory
    `../escaped` leads out of the run's directory
    `ID/link` in DIR/evil.perflab is neither a file nor a directory
    `ID/device` in DIR/evil.perflab is neither a file nor a directory
    `elsewhere/run.json` does not lie under the id of one run
    its run.json cannot be read
    ");
    assert!(!directory.path().join("escaped").exists());
}

#[test]
fn a_newer_or_foreign_or_cut_file_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let archive = open_archive(directory.path(), "archive");
    let id = perflab_archive::new_run_id();
    let newer = r#"{"format": 7, "writer": "perflab 9.1.0"}"#;
    let file = write_evil_tar(directory.path(), &format!("{id}/run.json"), EntryType::Regular, newer);
    let error = import_portable_run(&archive, &file).unwrap_err();
    let ArchiveError::Newer { path, found, writer, .. } = &error else { panic!("{error}") };
    assert_eq!((path, *found, writer.as_str()), (&file, 7, "perflab 9.1.0"));
    let whole = directory.path().join("whole.perflab");
    write_portable_file(&add_run(&archive), &whole).unwrap();
    let bytes = fs::read(&whole).unwrap();
    let cut = directory.path().join("cut.perflab");
    for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&cut, &bytes[..length]).unwrap();
        let other = self::open_archive(directory.path(), "other");
        assert!(import_portable_run(&other, &cut).is_err(), "{length} bytes");
        assert!(other.list_runs().unwrap().is_empty());
    }
    fs::write(&cut, "hello").unwrap();
    let error = import_portable_run(&archive, &cut).unwrap_err();
    let ArchiveError::Damaged { reason, .. } = error else { panic!("{error}") };
    insta::assert_snapshot!(reason, @"it is no portable file of perflab, or cut short (Unknown frame descriptor)");
}

#[test]
fn a_file_of_more_members_than_a_run_can_have_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("many.perflab");
    let mut tar = tar::Builder::new(zstd::Encoder::new(File::create(&file).unwrap(), 1).unwrap());
    let id = perflab_archive::new_run_id();
    for number in 0..10_001 {
        let mut header = Header::new_gnu();
        header.set_size(0);
        tar.append_data(&mut header, format!("{id}/logs/{number}"), &[][..]).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap();
    let archive = open_archive(directory.path(), "archive");
    let error = import_portable_run(&archive, &file).unwrap_err();
    let ArchiveError::Refused { reason, .. } = error else { panic!("{error}") };
    insta::assert_snapshot!(reason, @"it has more than the 10000 files that a run can have");
    assert_eq!(fs::read_dir(archive.path().join("runs")).unwrap().count(), 0);
}
