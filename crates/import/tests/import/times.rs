//! Dumps with times, without, and with strange ones.

use perflab_model::Nanos;

use super::bench::{HEAD, ImportTestArchive, ROW, find_report, int_cells, warning_messages};

const SECOND: u64 = 1_000_000_000;

fn import_times(bench: &ImportTestArchive, log: &str) -> (Vec<u64>, Vec<String>) {
    let imported = bench.import(&bench.write_file("log", log));
    let at = imported.run.read_series("slabinfo").unwrap().at.into_iter().map(|at| at.0).collect();
    (at, warning_messages(&imported).into_iter().map(String::from).collect())
}

#[test]
fn times_count_from_the_first_dump() {
    let log = format!("time: 1000\n{HEAD}{ROW}time: 1001.5\n{HEAD}{ROW}time: 1005\n{HEAD}{ROW}");
    let bench = ImportTestArchive::new();
    assert_eq!(import_times(&bench, &log).0, [0, SECOND * 3 / 2, 5 * SECOND]);
    let run = bench.archive().find_runs("@latest").unwrap().remove(0);
    assert_eq!(run.read_record().unwrap().manifest.anchor.realtime, Nanos(1000 * SECOND));
    assert_eq!(run.read_series("slabinfo").unwrap().schema.interval, Nanos(SECOND * 3 / 2));
}

#[test]
fn dumps_without_times_are_numbered_and_that_is_said() {
    let (at, messages) =
        import_times(&ImportTestArchive::new(), &format!("{HEAD}{ROW}{HEAD}{ROW}{ROW}{HEAD}{ROW}"));
    assert_eq!(at, [0, SECOND, SECOND, 2 * SECOND]);
    insta::assert_snapshot!(messages.join("\n"), @r#"
log: its dumps carry no `time:`: they stand at 0, 1, 2 ... s, which is their number
the page size is not known: 4096 bytes are assumed, and all bytes of slabs depend on it
the files give no time: the run is dated by the file's last change
"#);
}

#[test]
fn one_dump_is_a_run_of_one_tick() {
    let bench = ImportTestArchive::new();
    let imported = bench.import(&bench.write_file("slabinfo", format!("{HEAD}{ROW}{ROW}")));
    assert_eq!(imported.run.read_series("slabinfo").unwrap().at, [Nanos(0); 2]);
    assert_eq!(int_cells(&imported.run, "slabinfo", "ordinal"), [Some(0), Some(1)], "names repeat");
    insta::assert_snapshot!(warning_messages(&imported).join("\n"), @r#"
slabinfo: its dump carries no `time:`
the page size is not known: 4096 bytes are assumed, and all bytes of slabs depend on it
the files give no time: the run is dated by the file's last change
"#);
}

#[test]
fn a_clock_that_stands_or_goes_back_keeps_the_order() {
    let log =
        format!("time: 100\n{HEAD}{ROW}time: 100\n{HEAD}{ROW}time: 90\n{HEAD}{ROW}time: 103\n{HEAD}{ROW}");
    let (at, messages) = import_times(&ImportTestArchive::new(), &log);
    assert_eq!(at, [0, 1_000_000, 2_000_000, 3 * SECOND]);
    insta::assert_snapshot!(messages.join("\n"), @r#"
log: dumps without a time of their own, or with one that is not after the dump before: 2; they stand 1 ms after it (1 s before the next at the beginning)
the page size is not known: 4096 bytes are assumed, and all bytes of slabs depend on it
"#);
}

#[test]
fn a_log_whose_beginning_is_lost_keeps_what_is_there() {
    let (at, messages) =
        import_times(&ImportTestArchive::new(), &format!("{ROW}{ROW}time: 100\n{HEAD}{ROW}"));
    assert_eq!(at, [0, 0, SECOND]);
    insta::assert_snapshot!(messages.join("\n"), @r#"
log: some dumps lack the lines that name version and columns: taken as the usual ones
log: dumps without a time of their own, or with one that is not after the dump before: 1; they stand 1 ms after it (1 s before the next at the beginning)
the page size is not known: 4096 bytes are assumed, and all bytes of slabs depend on it
"#);
}

#[test]
fn a_time_that_is_none_costs_its_dump_and_is_counted() {
    let bench = ImportTestArchive::new();
    let log = format!("time: 100\n{HEAD}{ROW}time: soon\n{HEAD}{ROW}{ROW}time: 102\n{HEAD}{ROW}");
    let imported = bench.import(&bench.write_file("log", log));
    assert_eq!(find_report(&imported, "log").format_counts(), "4 rows read, 2 used, 0 flagged, 2 unusable");
    assert_eq!(find_report(&imported, "log").unusable[0].line, 8);
    insta::assert_snapshot!(find_report(&imported, "log").unusable[0].reason, @"`time: soon` is no time in seconds since 1970");
}

#[test]
fn a_long_silence_is_a_gap() {
    let bench = ImportTestArchive::new();
    let dump = |at: u64| format!("time: {at}\n{HEAD}{ROW}");
    let log: String = [100, 101, 103, 140, 141].map(dump).concat();
    let record = bench.import(&bench.write_file("log", log)).run.read_record().unwrap();
    assert_eq!(record.gaps.len(), 1);
    let gap = &record.gaps[0];
    assert_eq!((gap.from, gap.to), (Nanos(3 * SECOND), Some(Nanos(40 * SECOND))));
    assert_eq!(gap.reason, "the log has no dump for 37 s");
}
