//! What is wrong is refused with file and line, or flagged and counted; it is never dropped in silence.

use perflab_model::fact_table;
use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use perflab_import::{ImportOptions, list_importable};

use super::bench::{
    HEAD, ImportTestArchive, ROW, find_report, gzip_text, int_cells, read_unpacked_text, record_import,
    recording_path, text_cells, warning_messages,
};

#[test]
fn a_wrong_version_is_refused() {
    let bench = ImportTestArchive::new();
    let log = bench.write_file("log", format!("time: 1\n{HEAD}{ROW}time: 2\nslabinfo - version: 1.1\n{ROW}"));
    assert_eq!(bench.refusal_of(&log), "log:6: version `1.1` of slabinfo is not known: 2.0 and 2.1 are");
    let log = bench.write_file(
        "log",
        "time: 1\nName                   Objects Objsize    Loss Slabs/Part/Cpu  O/S O %Fr %Ef Flg\n",
    );
    assert!(bench.refusal_of(&log).starts_with("log:2: the fourth column is `Loss` and not `Space`"));
}

#[test]
fn an_empty_log_is_refused() {
    let bench = ImportTestArchive::new();
    assert_eq!(bench.refusal_of(&bench.write_file("log", "")), "log: it is empty: there is no dump in it");
    assert_eq!(
        bench.refusal_of(&bench.write_file("log", gzip_text(b""))),
        "log: it is empty: there is no dump in it"
    );
    assert_eq!(
        bench.refusal_of(bench.write_file("folder/slabinfo", "").parent().unwrap()),
        "folder: its logs are empty: slabinfo"
    );
    let strange = bench.refusal_of(bench.write_file("other/readme", "x").parent().unwrap());
    assert!(strange.starts_with("other: it looks like none of mmtests ("), "{strange}");
    assert!(bench.try_import(&bench.write_file("x", "").with_file_name("nobody")).is_err());
    let first = bench.write_file("above/first/slabinfo", "").parent().unwrap().to_owned();
    let found = list_importable(first.parent().unwrap()).unwrap();
    assert_eq!(
        found.iter().map(|(importer, path)| (importer.name, path)).collect::<Vec<_>>(),
        [("lkp", &first)]
    );
}

#[test]
fn text_that_is_no_log_is_refused() {
    let bench = ImportTestArchive::new();
    let error = bench.refusal_of(&bench.write_file("notes", "Dear reader,\nthis is no log.\n"));
    insta::assert_snapshot!(error.split(" (").next().unwrap(), @"notes: it looks like none of mmtests");
    // Words and numbers are no row of slabinfo without a mark of it.
    let text = " Performance counter stats for 'true':\n\n  0.74 msec task-clock  # 0.5 CPUs\n  10 42 192 21 1 faults\n";
    assert_eq!(bench.refusal_of(&bench.write_file("text", text)), error.replacen("notes", "text", 1));
}

#[test]
fn damaged_lines_are_flagged_or_counted_and_the_rest_stands() {
    let bench = ImportTestArchive::new();
    let lines = [
        "dentry 10 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n",
        "filp 10 x42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n",
        "too few : tunables 0 0 0 : slabdata 2 2 0\n",
        "names with spaces 10 42 192 21 1 : tunables 0 0 0 : slabdata 2 2 0\n",
        "half 10 42 19\n",
        "\u{fffd}\u{0}\n",
    ];
    let imported = bench.import(&bench.write_file("log", format!("time: 5\n{HEAD}{}", lines.concat())));
    let took = find_report(&imported, "log");
    assert_eq!(took.format_counts(), "6 rows read, 4 used, 2 flagged, 2 unusable");
    let flagged: Vec<String> =
        took.flagged.iter().map(|one| format!("{}: {}", one.line, one.reason)).collect();
    assert_eq!(
        flagged,
        ["5: malformed: filp: a number is missing", "8: malformed: half: a number is missing"]
    );
    assert_eq!(took.unusable.iter().map(|one| one.line).collect::<Vec<_>>(), [6, 9]);
    assert_eq!(
        text_cells(&imported.run, "slabinfo", "cache"),
        ["dentry", "filp", "names with spaces", "half"]
    );
    assert_eq!(text_cells(&imported.run, "slabinfo", "flags"), ["", "malformed", "", "malformed"]);
    let objects = int_cells(&imported.run, "slabinfo", "num_objs");
    assert_eq!(objects, [Some(42), None, Some(42), Some(42)]);
    assert_eq!(int_cells(&imported.run, "slabinfo", "objsize")[3], None, "19 may have been 192");
    let told = warning_messages(&imported).join("\n");
    insta::assert_snapshot!(told, @"log: 6 rows read, 4 used, 2 flagged, 2 unusable; the first at line 6: it has fewer than a name and five numbers");
}

#[test]
fn logs_of_two_page_sizes_are_refused() {
    let bench = ImportTestArchive::new();
    let of = |page: u64| -> String {
        let row = |size: u64| {
            let each = page / size;
            format!("c{size} {each} {each} {size} {each} 1 : tunables 0 0 0 : slabdata 1 1 0\n")
        };
        [104, 192, 256, 1000, 64].map(row).concat()
    };
    let log = bench.write_file("log", format!("time: 1\n{HEAD}{}time: 2\n{HEAD}{}", of(4096), of(65_536)));
    let error = bench.refusal_of(&log);
    insta::assert_snapshot!(error, @"log:9: the slabs of this dump fit pages of 65536 bytes and not 4096 (the dumps before it): import logs of different machines one by one, each with its --page-size");
    let large = bench.import(&bench.write_file("large", format!("time: 1\n{HEAD}{}", of(65_536))));
    let facts = large.run.read_record().unwrap().manifest.facts;
    assert_eq!(facts.integer(&fact_table::MEMORY_PAGE_SIZE), Some(65_536));
}

#[test]
fn a_packed_log_that_breaks_off_keeps_its_beginning() {
    let bench = ImportTestArchive::new();
    let whole = fs::read(recording_path().join("slabinfo.gz")).unwrap();
    let all = bench.import(&recording_path().join("slabinfo.gz")).file_reports[0].rows_read;
    let mut notes = Vec::new();
    for part in [whole.len() / 3, whole.len() / 2, whole.len() - 4] {
        let imported = bench.import(&bench.write_file("half.gz", &whole[..part]));
        let took = &imported.file_reports[0];
        assert!(took.rows_read > 0 && took.rows_read <= all);
        notes.extend_from_slice(&took.notes);
    }
    insta::assert_snapshot!(notes.join("\n"), @"
    it breaks off after line 132: incomplete deflate stream
    it breaks off after line 196: incomplete deflate stream
    it breaks off after line 1673: unexpected end of file
    ");
    let mut bits = whole;
    let middle = bits.len() / 2;
    bits[middle..middle + 40].fill(0x5a);
    let imported = bench.try_import(&bench.write_file("bits.gz", bits));
    assert!(imported.is_err() || !warning_messages(&imported.unwrap()).is_empty());
}

/// 70 MB of nothing in 70 kB: one line, and comments.
#[test]
fn a_packed_trap_is_refused_in_bounded_memory() {
    let bench = ImportTestArchive::new();
    let mut errors = Vec::new();
    for fill in [vec![0; 1 << 20], format!("#{}\n", "x".repeat((1 << 16) - 2)).repeat(16).into_bytes()] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        (0..68).for_each(|_| encoder.write_all(&fill).unwrap());
        errors.push(bench.refusal_of(&bench.write_file("trap.gz", encoder.finish().unwrap())));
    }
    insta::assert_snapshot!(errors.join("\n"), @"
    trap.gz:1: it unpacks to more than 400 times its size: refused as a trap
    trap.gz:1025: it unpacks to more than 400 times its size: refused as a trap
    ");
}

#[test]
fn a_dump_that_never_ends_is_refused() {
    let bench = ImportTestArchive::new();
    let error = bench.refusal_of(&bench.write_file("log", format!("time: 1\n{HEAD}{}", ROW.repeat(200_010))));
    assert!(error.ends_with(": no dump ends within 200000 lines"), "{error}");
}

#[test]
fn a_line_without_end_is_one_unusable_row() {
    let bench = ImportTestArchive::new();
    let long = "x".repeat(300_000);
    let imported = bench.import(&bench.write_file("log", format!("time: 1\n{HEAD}{ROW}{long} {ROW}{ROW}")));
    assert_eq!(find_report(&imported, "log").format_counts(), "3 rows read, 2 used, 0 flagged, 1 unusable");
    let remark = &find_report(&imported, "log").unusable[0];
    assert_eq!((remark.line, remark.reason.as_str()), (5, "it is longer than 2048 bytes"));
}

/// The recording with a byte changed here and there: an import is an error or a run whose counts add up.
#[test]
fn changed_bytes_never_lose_a_row_in_silence() {
    let bench = ImportTestArchive::new();
    let log = read_unpacked_text(&recording_path().join("slabinfo.gz"));
    let lines =
        log.lines().filter(|line| line.contains(": slabdata") && !line.starts_with('#')).count() as u64;
    let options = ImportOptions::default();
    for step in [3_001, 7_919, 20_011] {
        for byte in [b' ', b'x', b'9', b'\n', b':', 0xff] {
            let mut bytes = log.clone().into_bytes();
            (step..bytes.len()).step_by(step).for_each(|at| bytes[at] = byte);
            let path = bench.write_file("changed", bytes);
            let Ok(imported) = record_import(&bench.archive(), &path, &options) else { continue };
            let took = &imported.file_reports[0];
            let ticks = imported.run.read_series("slabinfo").unwrap().at.len() as u64;
            assert_eq!(took.rows_used, ticks);
            assert_eq!(took.rows_read, took.rows_used + took.rows_unusable);
            assert!(took.rows_read + 60 > lines, "{} of {lines} after {step} {byte}", took.rows_read);
        }
    }
}
