//! Log directories that are half-written, damaged, or none: named with file and line, and never a wrong number.

use std::fs;
use std::path::Path;

use perflab_import::list_importable;
use perflab_model::Outcome;

use super::bench::{ImportTestArchive, gzip_text, warning_messages};

const STAMPS: &str = "start :: 1700000000\ntest begin :: hackbench 1700000001\ntest end :: hackbench 1700000009 0\n\
    time :: hackbench 1.0 user 2.0 system 3.0 elapsed\n";
const GOOD: &str = "# Running 'sched/messaging' benchmark:\n     Total time: 0.100 [sec]\n";

fn write_hackbench_log(bench: &ImportTestArchive, hackbench: impl AsRef<[u8]>) -> std::path::PathBuf {
    bench.write_file("run/iter-0/tests-timestamp", STAMPS);
    bench
        .write_file("run/iter-0/hackbench/logs/hackbench-1", hackbench)
        .ancestors()
        .nth(4)
        .unwrap()
        .to_owned()
}

#[test]
fn a_number_that_was_cut_off_is_no_number() {
    let bench = ImportTestArchive::new();
    let imported = bench.import(&write_hackbench_log(
        &bench,
        format!("{GOOD}# Running 'sched/messaging' benchmark:\n     Total time: 0.1"),
    ));
    let record = imported.run.read_record().unwrap();
    let times: Vec<f64> = record.samples.iter().filter(|s| s.metric == "time").map(|s| s.value).collect();
    assert_eq!(times, [0.1]);
    let wanted = "iter-0/hackbench/logs/hackbench-1: 2 rows read, 1 used, 0 flagged, 1 unusable; the first at line 4: \
                  the line is cut off, so that `0.1` may lack digits";
    assert_eq!(warning_messages(&imported), [wanted]);
}

#[test]
fn executions_without_a_result_are_counted() {
    let bench = ImportTestArchive::new();
    let imported =
        bench.import(&write_hackbench_log(&bench, format!("{GOOD}# Running 'sched/messaging' benchmark:\n")));
    let wanted = "iter-0/hackbench/logs/hackbench-1: 1 executions began in it and have no result";
    assert_eq!(warning_messages(&imported), [wanted]);
}

#[test]
fn words_instead_of_numbers_are_unusable() {
    let bench = ImportTestArchive::new();
    for word in ["nan", "inf", "fast", "0x10", ""] {
        let imported =
            bench.import(&write_hackbench_log(&bench, format!("{GOOD}     Total time: {word} [sec]\n")));
        let count = imported.run.read_record().unwrap().samples.iter().filter(|s| s.metric == "time").count();
        assert_eq!(count, 1, "{word}");
        let unusable: Vec<_> = imported.file_reports.iter().flat_map(|report| &report.unusable).collect();
        assert_eq!(
            unusable.iter().map(|remark| remark.line).collect::<Vec<_>>(),
            [3],
            "{word}: {unusable:?}"
        );
    }
}

#[test]
fn a_packed_log_that_breaks_off_keeps_what_is_whole() {
    let bench = ImportTestArchive::new();
    let many = GOOD.repeat(2_000);
    let whole = gzip_text(many.as_bytes());
    let root = write_hackbench_log(&bench, "");
    fs::remove_file(root.join("iter-0/hackbench/logs/hackbench-1")).unwrap();
    fs::write(root.join("iter-0/hackbench/logs/hackbench-1.gz"), &whole[..whole.len() / 2]).unwrap();
    let imported = bench.import(&root);
    let record = imported.run.read_record().unwrap();
    assert!(record.samples.iter().filter(|s| s.metric == "time").all(|s| s.value == 0.1));
    insta::assert_snapshot!(warning_messages(&imported).join("\n"), @"
    iter-0/hackbench/logs/hackbench-1.gz: it breaks off after line 1640: incomplete deflate stream
    iter-0/hackbench/logs/hackbench-1.gz: 1 executions began in it and have no result
    ");
}

#[test]
fn what_is_missing_is_named() {
    let bench = ImportTestArchive::new();
    let root = write_hackbench_log(&bench, GOOD);
    bench.write_file(
        "run/iter-0/tests-timestamp",
        format!("{STAMPS}test begin :: stream 1700000010\ntest end :: stream 1700000011 1\n"),
    );
    bench.write_file("run/iter-0/specjbb/logs/out.txt", "x");
    bench.write_file("run/iter-2/hackbench/logs/hackbench-1", GOOD);
    let imported = bench.import(&root);
    insta::assert_snapshot!(warning_messages(&imported).join("\n"), @"
    stream ran in iter-0 and has no logs there
    perflab does not read the logs of specjbb (iter-0: out.txt)
    iter-2 has no tests-timestamp: when its benchmarks ran is not known
    ");
    let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { reason } if reason == "stream ended with status 1");
    let record = imported.run.read_record().unwrap();
    assert_eq!(record.iterations.iter().filter(|iteration| failed(&iteration.outcome)).count(), 1);
    let boots: Vec<u32> = record.samples.iter().filter(|s| s.metric == "time").map(|s| s.boot).collect();
    assert_eq!(boots, [0, 1]);
}

#[test]
fn an_empty_log_directory_is_refused() {
    let bench = ImportTestArchive::new();
    let root = bench.write_file("run/iter-0/tests-timestamp", "start :: 1700000000\n");
    let refused = bench.refusal_of(root.ancestors().nth(2).unwrap());
    assert_eq!(
        refused,
        "run: there is no result of a benchmark that perflab reads in it, and no monitor's log"
    );
}

#[test]
fn a_folder_of_runs_gives_each_of_them() {
    let bench = ImportTestArchive::new();
    for run in ["base-10", "base-9"] {
        bench.write_file(&format!("log/{run}/iter-0/hackbench/logs/hackbench-1"), GOOD);
    }
    let root = bench.write_file("log/base-9/mmtests-activity", "").ancestors().nth(2).unwrap().to_owned();
    let results = list_importable(&root).unwrap();
    let names: Vec<String> =
        results.iter().map(|(_, path)| path.file_name().unwrap().to_string_lossy().into()).collect();
    assert_eq!(names, ["base-9", "base-10"]);
    assert!(results.iter().all(|(importer, _)| importer.name == "mmtests"));
}

/// A tree that is nobody's stands beside the runs: what it holds is not looked at to its end, and takes nothing from them.
#[test]
fn thousands_of_runs_beside_a_large_tree_are_all_found() {
    let bench = ImportTestArchive::new();
    let log = bench.write_file("log/a/mark", "").ancestors().nth(2).unwrap().to_owned();
    for run in 0..3000 {
        fs::create_dir_all(log.join(format!("run-{run}/iter-0"))).unwrap();
    }
    for folder in 0..120 {
        let folder = log.join(format!("a/{folder}"));
        (0..100).for_each(|inner| fs::create_dir_all(folder.join(inner.to_string())).unwrap());
    }
    let results = list_importable(&log).unwrap();
    assert_eq!(results.len(), 3000);
    assert!(results.iter().all(|(importer, _)| importer.name == "mmtests"));
}

/// So much that nobody recognises is not looked at: results among it would be missed in silence.
#[test]
fn more_than_is_looked_at_is_an_error() {
    let bench = ImportTestArchive::new();
    let log = bench.write_file("log/z/iter-0/mark", "").ancestors().nth(3).unwrap().to_owned();
    for folder in 0..12 {
        let folder = log.join(folder.to_string());
        fs::create_dir(&folder).unwrap();
        (0..6000).for_each(|file| fs::write(folder.join(file.to_string()), "").unwrap());
    }
    assert!(list_importable(&log).is_err());
    assert_eq!(list_importable(&log.join("z")).unwrap().len(), 1);
}

/// Neither the machine that we run on nor its files of the kernel are anybody's result.
#[test]
fn the_root_of_the_machine_is_refused() {
    for path in ["/", "/proc", "/proc/self", "/sys", "/sys/kernel"].map(Path::new) {
        assert!(list_importable(path).is_err(), "{}", path.display());
    }
}

/// Whatever is wrong with one packed log, the others are read.
#[test]
fn a_damaged_packed_log_costs_itself_only() {
    let packed =
        fs::read(super::mmtests::recorded_mmtests("current").join("iter-0/dbench4/logs/benchlog-op-1.xz"))
            .unwrap();
    for place in (6..packed.len()).step_by(11) {
        for cut in [true, false] {
            let bench = ImportTestArchive::new();
            let root = write_hackbench_log(&bench, GOOD);
            let mut bytes = packed.clone();
            bytes[place] ^= 0x55;
            bytes.truncate(if cut { place } else { bytes.len() });
            bench.write_file("run/iter-0/dbench4/logs/benchlog-op-1.xz", bytes);
            let record = bench.import(&root).run.read_record().unwrap();
            let times: Vec<f64> =
                record.samples.iter().filter(|s| s.metric == "time").map(|s| s.value).collect();
            assert_eq!(times, [0.1], "byte {place}, cut {cut}");
        }
    }
}
