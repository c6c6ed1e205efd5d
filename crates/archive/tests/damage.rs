//! A file whose bytes were changed is an error or reads otherwise; it never takes the program down.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

use std::fs;
use std::path::Path;

use perflab_archive::{Archive, ArchiveError, RunDir, RunRecorder};

fn record_run(directory: &Path) -> RunRecorder {
    let manifest = fixtures::run_events::make_manifest(4, 5);
    let mut recorder = Archive::open(directory).unwrap().begin_run(&manifest).unwrap();
    fixtures::run_events::run_events(&manifest).for_each(|event| recorder.record(&event).unwrap());
    recorder
}

/// Changes one byte after the other, by a fixed pattern, and reads everything each time.
fn damage_file(run: &RunDir, file: &str, steps: usize) -> usize {
    let path = run.path().join(file);
    let whole = fs::read(&path).unwrap();
    let mut refused = 0;
    for step in 0..steps {
        let mut bytes = whole.clone();
        let at = step * bytes.len() / steps;
        bytes[at] ^= [0x01, 0x80, 0xff][step % 3];
        fs::write(&path, &bytes).unwrap();
        refused += usize::from(run.read_record().is_err() || run.read_series("vmstat").is_err());
        let _ = (
            run.read_output(Some(1), "stdout"),
            run.list_monitors(),
            run.count_damaged_lines(),
            run.status(),
        );
    }
    fs::write(&path, &whole).unwrap();
    refused
}

#[test]
fn changed_bytes_never_take_the_reader_down() {
    let directory = tempfile::tempdir().unwrap();
    let run = record_run(directory.path()).finish().unwrap();
    for file in ["samples.parquet", "iterations.parquet", "series/vmstat.parquet"] {
        assert!(damage_file(&run, file, 120) > 0, "{file}");
    }
    damage_file(&run, "logs/outputs.jsonl.zst", 40);
    damage_file(&run, "journal.jsonl", 60);
    assert!(damage_file(&run, "run.json", 60) > 0);
    run.read_record().unwrap();
}

/// Every table of a closed run, and each of so many single bits of it.
#[test]
fn a_flipped_bit_in_a_table_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let run = record_run(directory.path()).finish().unwrap();
    let (whole, rows) = (run.read_record().unwrap(), run.read_series("vmstat").unwrap());
    for file in ["samples.parquet", "iterations.parquet", "series/vmstat.parquet", "SHA256SUMS"] {
        let path = run.path().join(file);
        let good = fs::read(&path).unwrap();
        for step in 0..300 {
            let mut bytes = good.clone();
            bytes[step * good.len() / 300] ^= 1 << (step % 8);
            fs::write(&path, &bytes).unwrap();
            let found = run.read_record().and_then(|record| Ok((record, run.read_series("vmstat")?)));
            if let Ok(found) = found {
                assert_eq!(file, "SHA256SUMS", "only what no table's line is may be unseen");
                assert_eq!(found, (whole.clone(), rows.clone()));
            }
        }
        fs::write(&path, &good).unwrap();
    }
    // A run of before there were hashes.
    fs::remove_file(run.path().join("SHA256SUMS")).unwrap();
    assert_eq!(run.read_record().unwrap(), whole);
}

#[test]
fn an_altered_table_is_named_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let run = record_run(directory.path()).finish().unwrap();
    let path = run.path().join("samples.parquet");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let error = run.read_record().unwrap_err();
    assert!(matches!(&error, ArchiveError::Altered { path: of, .. } if *of == path), "{error}");
    assert!(run.samples_path().is_err());
}

#[test]
fn a_journal_cut_anywhere_reads_up_to_its_last_whole_line() {
    let directory = tempfile::tempdir().unwrap();
    drop(record_run(directory.path()));
    let run = Archive::open(directory.path()).unwrap().find_runs("@latest").unwrap().pop().unwrap();
    let path = run.path().join("journal.jsonl");
    let whole = fs::read(&path).unwrap();
    let mut before = 0;
    for step in 0..=300 {
        let cut = whole.len() * step / 300;
        fs::write(&path, &whole[..cut]).unwrap();
        let samples = run.read_record().unwrap().samples.len();
        assert!(samples >= before);
        assert_eq!(run.count_damaged_lines().unwrap(), u64::from(cut > 0 && whole[cut - 1] != b'\n'));
        before = samples;
    }
    assert_eq!(before, 2 * 4 * 5);
}
