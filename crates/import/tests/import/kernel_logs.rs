//! Logs of kernel files that only a monitor read before: what is declared once is imported for nothing.

use super::bench::{ImportTestArchive, find_report, int_cells, text_cells};

const DISKSTATS: &str = "time: 1700000000\n 254       0 vda 100 1 2000 3 4 5 6000 7 0 8 9 0 0 0 0 10 11\n\
    \x20  7       0 loop0 1 0 2 0 0 0 0 0 0 0 0\ntime: 1700000001\n 254       0 vda 101 1 2008 3 4 5 6000 7 0 8 9 0 0 0 0 10 11\n\
    \x20  7       0 loop0 1 0 2 0 0 0 0 0 0 0 0\n";

#[test]
fn dumps_of_diskstats_are_a_series_like_the_monitors() {
    let bench = ImportTestArchive::new();
    let imported = bench.import(&bench.write_file("diskstats.log", DISKSTATS));
    assert_eq!(imported.kind, "dump");
    assert_eq!(imported.run.list_monitors().unwrap(), ["diskstats"]);
    assert_eq!(text_cells(&imported.run, "diskstats", "device"), ["vda", "loop0", "vda", "loop0"]);
    let bytes = int_cells(&imported.run, "diskstats", "read_bytes");
    assert_eq!(bytes, [2000, 2, 2008, 2].map(|sectors| Some(sectors * 512)));
    assert_eq!(int_cells(&imported.run, "diskstats", "flush_ios")[..2], [Some(10), None]);
    let report = find_report(&imported, "diskstats.log");
    assert_eq!((report.rows_read, report.rows_used, report.rows_unusable), (4, 4, 0));
}

/// Readings without times are told apart by their first device.
#[test]
fn dumps_without_times_end_where_the_first_device_comes_again() {
    let bench = ImportTestArchive::new();
    let text: String = DISKSTATS
        .lines()
        .filter(|line| !line.starts_with("time:"))
        .fold(String::new(), |text, line| text + line + "\n");
    let imported = bench.import(&bench.write_file("diskstats.log", text + " 254 0 vda 5 cut off\n"));
    let series = imported.run.read_series("diskstats").unwrap();
    assert_eq!(series.at.len(), 4);
    assert!(series.at[0] == series.at[1] && series.at[1] < series.at[2]);
    assert_eq!(find_report(&imported, "diskstats.log").rows_unusable, 1);
}

#[test]
fn loads_and_stalls_are_read_too() {
    let bench = ImportTestArchive::new();
    let loads = bench.write_file("loads", "0.20 0.18 0.12 1/80 11206\n0.25 0.19 0.12 2/80 11207\n");
    assert_eq!(int_cells(&bench.import(&loads).run, "loadavg", "running"), [Some(1), Some(2)]);
    let stalls =
        "some avg10=1.50 avg60=0.00 avg300=0.00 total=7\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=2\n";
    let stalls = bench.write_file("pressure-memory", stalls.repeat(2));
    let run = bench.import(&stalls).run;
    assert_eq!(text_cells(&run, "pressure", "resource"), ["memory"; 4]);
    assert_eq!(int_cells(&run, "pressure", "total_ns")[..2], [Some(7000), Some(2000)]);
}

/// They have times and words and numbers, as dumps of slabinfo without heads do.
#[test]
fn dumps_of_files_that_are_not_read_are_none_of_others() {
    let bench = ImportTestArchive::new();
    let unknown = bench.refusal_of(&bench.write_file("unknown", "this is no log\n"));
    let counts = "9 8 7 6 5 4 3 2";
    for (name, text) in [
        (
            "interrupts",
            format!(
                "           CPU0 CPU1\n 24: {counts}  IO-APIC   5-edge ACPI:Ged\nNMI: {counts} Non-maskable\n"
            ),
        ),
        ("softirqs", format!("           CPU0 CPU1\n  HI: {counts}\n")),
        ("cgroups", "#subsys_name hierarchy num_cgroups enabled\ncpuset 0 100 1\ncpu 0 100 1\n".to_owned()),
    ] {
        for times in [true, false] {
            let time = |second: u32| if times { format!("time: 170000000{second}\n") } else { String::new() };
            let log = format!("{}{text}{}{text}", time(1), time(2));
            assert_eq!(bench.refusal_of(&bench.write_file(name, log)), unknown.replacen("unknown", name, 1));
        }
    }
    let bare = "time: 1700000001\ndentry 10 42 192 21 1\ntime: 1700000002\ndentry 11 42 192 21 1\n";
    assert_eq!(bench.import(&bench.write_file("bare", bare)).run.list_monitors().unwrap(), ["slabinfo"]);
}
