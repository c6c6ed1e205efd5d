//! A file whose bytes were changed is an error or reads otherwise; it never takes the program down.

#![expect(clippy::unwrap_used, reason = "a test may die of a surprise")]

mod fixture;

use std::fs;
use std::path::Path;

use perflab_archive::{Archive, Recorder, RunDir};

fn recorded(directory: &Path) -> Recorder {
    let manifest = fixture::manifest(4, 5);
    let mut recorder = Archive::open(directory).unwrap().begin(&manifest).unwrap();
    fixture::events(&manifest).for_each(|event| recorder.record(&event).unwrap());
    recorder
}

/// Changes one byte after the other, by a fixed pattern, and reads everything each time.
fn damage(run: &RunDir, file: &str, steps: usize) -> usize {
    let path = run.path().join(file);
    let whole = fs::read(&path).unwrap();
    let mut refused = 0;
    for step in 0..steps {
        let mut bytes = whole.clone();
        let at = step * bytes.len() / steps;
        bytes[at] ^= [0x01, 0x80, 0xff][step % 3];
        fs::write(&path, &bytes).unwrap();
        refused += usize::from(run.record().is_err() || run.series("vmstat").is_err());
        let _ = (run.output(Some(1), "stdout"), run.monitors(), run.damage(), run.status());
    }
    fs::write(&path, &whole).unwrap();
    refused
}

#[test]
fn changed_bytes_never_take_the_reader_down() {
    let directory = tempfile::tempdir().unwrap();
    let run = recorded(directory.path()).finish().unwrap();
    for file in ["samples.parquet", "iterations.parquet", "series/vmstat.parquet"] {
        assert!(damage(&run, file, 120) > 0, "{file}");
    }
    damage(&run, "logs/outputs.jsonl.zst", 40);
    damage(&run, "journal.jsonl", 60);
    assert!(damage(&run, "run.json", 60) > 0);
    run.record().unwrap();
}

#[test]
fn a_journal_cut_anywhere_reads_up_to_its_last_whole_line() {
    let directory = tempfile::tempdir().unwrap();
    drop(recorded(directory.path()));
    let run = Archive::open(directory.path()).unwrap().find("@latest").unwrap().pop().unwrap();
    let path = run.path().join("journal.jsonl");
    let whole = fs::read(&path).unwrap();
    let mut before = 0;
    for step in 0..=300 {
        let cut = whole.len() * step / 300;
        fs::write(&path, &whole[..cut]).unwrap();
        let samples = run.record().unwrap().samples.len();
        assert!(samples >= before);
        assert_eq!(run.damage().unwrap(), u64::from(cut > 0 && whole[cut - 1] != b'\n'));
        before = samples;
    }
    assert_eq!(before, 2 * 4 * 5);
}
