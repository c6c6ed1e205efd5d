//! Monitors over trees that change: rows that come and go, counters that wrap, sources that a machine may or may not have.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::fs;
use std::os::unix::fs::FileExt as _;

use perflab_model::{CellRow, Nanos, TableCell};
use perflab_observe::{Monitor, MonitorReading, Root, all_monitors, find_monitor, open_monitor};

struct Tree {
    _keep: tempfile::TempDir,
    root: Root,
}

impl Tree {
    fn with(files: &[(&str, &str)]) -> Self {
        let keep = tempfile::tempdir().unwrap();
        let tree = Tree { root: Root(keep.path().into()), _keep: keep };
        files.iter().for_each(|(path, text)| tree.write(path, text));
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_dir_all(self.root.path(path)).unwrap();
    }

    fn open(&self, monitor: &str) -> Box<dyn Monitor> {
        open_monitor(find_monitor(monitor).unwrap(), &self.root, Nanos(1_000_000_000)).unwrap()
    }
}

/// The columns of a reading's rows, as text.
fn read_columns(monitor: &mut dyn Monitor, columns: &[&str]) -> Vec<String> {
    let mut rows = Vec::new();
    monitor.read_rows(&mut rows).unwrap();
    let names: Vec<String> = monitor.schema().columns.iter().map(|column| column.name.clone()).collect();
    rows.iter().map(|row| format_cells(&names, row, columns)).collect()
}

fn format_cells(names: &[String], row: &CellRow, columns: &[&str]) -> String {
    let cell = |column: &&str| match &row[names.iter().position(|name| name == column).unwrap()] {
        TableCell::Int(number) => number.to_string(),
        TableCell::Float(number) => format!("{number:.3}"),
        TableCell::Text(text) => text.clone(),
        TableCell::Missing => "-".into(),
    };
    columns.iter().map(cell).collect::<Vec<_>>().join(" ")
}

const TWO_CPUS: &str =
    "   CPU0  CPU1\n 24:  5  0  IO-APIC 5-edge  ttyS0\nLOC:  7  9  Local timer interrupts\nERR:  0\n";

#[test]
fn only_counts_that_grew_are_rows_of_a_change() {
    let tree = Tree::with(&[("/proc/interrupts", TWO_CPUS)]);
    let mut monitor = tree.open("interrupts");
    let MonitorReading::Whole(first) = monitor.read_changes().unwrap() else { panic!("no whole reading") };
    assert_eq!(first.len(), 5);
    assert_eq!(monitor.read_changes().unwrap(), MonitorReading::Changed(Vec::new()));
    tree.write("/proc/interrupts", &TWO_CPUS.replace("7  9", "7 12"));
    let text = |text: &str| TableCell::Text(text.into());
    let changed = vec![text("LOC"), text("Local timer interrupts"), text("cpu1"), TableCell::Int(12)];
    assert_eq!(monitor.read_changes().unwrap(), MonitorReading::Changed(vec![(3, changed)]));
}

#[test]
fn a_cpu_that_goes_offline_has_no_interrupts_any_more() {
    let tree = Tree::with(&[("/proc/interrupts", TWO_CPUS)]);
    let mut monitor = tree.open("interrupts");
    monitor.read_changes().unwrap();
    tree.write(
        "/proc/interrupts",
        "   CPU0\n 24:  5  IO-APIC 5-edge  ttyS0\nLOC:  8  Local timer interrupts\nERR:  0\n",
    );
    let MonitorReading::Whole(rows) = monitor.read_changes().unwrap() else { panic!("no whole reading") };
    assert_eq!(rows.len(), 3);
    assert_eq!(
        read_columns(&mut *monitor, &["interrupt", "cpu", "count"]),
        ["24 cpu0 5", "LOC cpu0 8", "ERR all 0"]
    );
}

#[test]
fn a_device_that_goes_has_no_row_and_one_that_comes_gets_one() {
    let tree =
        Tree::with(&[("/sys/block/zram0/disksize", "4096\n"), ("/sys/block/zram1/disksize", "8192\n")]);
    let mut monitor = tree.open("zram");
    assert_eq!(read_columns(&mut *monitor, &["zram", "disksize"]), ["0 4096", "1 8192"]);
    tree.remove("/sys/block/zram0");
    tree.write("/sys/block/zram2/disksize", "16384\n");
    // Files of this tree can be read though they were removed, unlike those of a device; folders are listed every 16 readings.
    let later = (0..17).map(|_| read_columns(&mut *monitor, &["zram", "disksize"])).last();
    assert_eq!(later.unwrap(), ["1 8192", "2 16384"]);
}

#[test]
fn energy_that_wraps_goes_on() {
    let zone = "/sys/class/powercap/intel-rapl:0";
    let tree = Tree::with(&[
        (&format!("{zone}/name"), "package-0\n"),
        (&format!("{zone}/energy_uj"), "900\n"),
        (&format!("{zone}/max_energy_range_uj"), "1000\n"),
    ]);
    let mut monitor = tree.open("energy");
    assert_eq!(monitor.schema().source, "/sys/class/powercap/*/energy_uj");
    let mut read = |now: &str| {
        tree.write(&format!("{zone}/energy_uj"), now);
        read_columns(&mut *monitor, &["domain", "name", "energy"]).join(",")
    };
    let domain = "intel-rapl:0 package-0";
    assert_eq!(
        ["900", "990", "40", "41"].map(&mut read),
        [900, 990, 1040, 1041].map(|sum| format!("{domain} {sum}"))
    );
}

/// A machine with two CPUs, cpuidle and the registers of /dev/cpu/N/msr.
fn tree_of_cpus() -> Tree {
    let tree = Tree::with(&[("/sys/devices/system/cpu/online", "0-1\n")]);
    for cpu in 0..2 {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        for (state, name) in [(0, "POLL\n"), (1, "C1_ACPI\n")] {
            tree.write(&format!("{folder}/cpuidle/state{state}/name"), name);
            tree.write(&format!("{folder}/cpuidle/state{state}/time"), "25\n");
            tree.write(&format!("{folder}/cpuidle/state{state}/usage"), "3\n");
        }
        tree.write(&format!("{folder}/cpufreq/scaling_cur_freq"), "2400000\n");
        tree.write(&format!("/dev/cpu/{cpu}/msr"), "");
        set_registers(&tree, cpu, 1_000, 512);
    }
    tree
}

/// TSC and MPERF. A register of the device has 8 bytes at its number; in this file those of APERF, one byte further on, are those
/// of MPERF without its lowest.
fn set_registers(tree: &Tree, cpu: u32, tsc: u64, mperf: u64) {
    let file =
        fs::OpenOptions::new().write(true).open(tree.root.path(&format!("/dev/cpu/{cpu}/msr"))).unwrap();
    for (register, value) in [(0x10, tsc), (0xe8, 0), (0xe7, mperf)] {
        file.write_all_at(&value.to_le_bytes(), register).unwrap();
    }
}

#[test]
fn registers_and_idle_states_are_the_state_of_a_cpu() {
    let tree = tree_of_cpus();
    let mut monitor = tree.open("cpu-state");
    assert_eq!(
        monitor.schema().source,
        "/dev/cpu/N/msr tsc, /dev/cpu/N/msr aperf, /dev/cpu/N/msr mperf, cpuidle, cpufreq scaling_cur_freq"
    );
    let columns =
        ["cpu", "busy", "tsc", "aperf", "mperf", "idle_C1_ACPI_ns", "idle_POLL_usage", "scaling_cur_freq"];
    let first = read_columns(&mut *monitor, &columns);
    assert_eq!(first[0], "cpu0 - 1000 2 512 25000 3 2400000");
    set_registers(&tree, 0, 2_024, 768);
    assert_eq!(read_columns(&mut *monitor, &columns)[0], "cpu0 0.250 2024 3 768 25000 3 2400000");
    tree.write("/sys/devices/system/cpu/online", "1\n");
    assert_eq!(read_columns(&mut *monitor, &["cpu"]), ["cpu1"]);
    tree.write("/sys/devices/system/cpu/online", "0-1\n");
    // What it counted while it was away is nobody's growth.
    assert_eq!(read_columns(&mut *monitor, &["cpu", "busy"])[0], "cpu0 -");
}

/// A process of that number and name, with its CPU time in ticks and its beginning.
fn task(pid: u32, comm: &str, ticks: u64, started: u64, rss: u64) -> String {
    format!(
        "{pid} ({comm}) S 1 1 1 0 -1 0 10 0 2 0 {ticks} 1 0 0 20 0 1 0 {started} 0 {rss} 0 0 0 0 0 0 0 0 0 0 0 0 0 17 3 0 0 5"
    )
}

#[test]
fn tasks_that_used_most_and_kernel_threads_by_name() {
    let tree = Tree::with(&[
        ("/proc/10/stat", &task(10, "busy", 100, 7, 50)),
        ("/proc/10/io", "read_bytes: 4096\nwrite_bytes: 8192\n"),
        ("/proc/10/schedstat", "1 2000 3\n"),
        ("/proc/10/status", "voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n"),
        ("/proc/11/stat", &task(11, "kworker/0:1", 20, 8, 0)),
        ("/proc/12/stat", &task(12, "kworker/1:1", 30, 9, 0)),
        ("/proc/self/auxv", ""),
    ]);
    let mut monitor = tree.open("tasks");
    let columns = ["pid", "comm", "why", "user_ns", "run_delay_ns", "voluntary_switches", "read_bytes"];
    tree.write("/proc/10/stat", &task(10, "busy", 150, 7, 50));
    tree.write("/proc/11/stat", &task(11, "kworker/0:1", 25, 8, 0));
    let ticks = |ticks: u64| ticks * 10_000_000;
    assert_eq!(
        read_columns(&mut *monitor, &columns),
        [
            format!("10 busy cpu {} 2000 3 4096", ticks(150)),
            format!("11 kworker/0:1 cpu {} - - -", ticks(25)),
            format!("* kworker* name {} - - -", ticks(5)),
        ]
    );
    // One of the kernel's threads ends, another begins: the sum does not go back.
    tree.remove("/proc/12");
    tree.write("/proc/13/stat", &task(13, "kworker/1:2", 2, 99, 0));
    // And a process number is used again.
    tree.write("/proc/10/stat", &task(10, "other", 4, 1000, 50));
    let rows = read_columns(&mut *monitor, &["pid", "comm", "why", "user_ns"]);
    assert!(rows.contains(&format!("10#2 other cpu {}", ticks(4))), "{rows:?}");
    assert!(rows.contains(&format!("* kworker* name {}", ticks(7))), "{rows:?}");
}

#[test]
fn all_monitors_together_keep_few_descriptors_open() {
    let count = || fs::read_dir("/proc/self/fd").unwrap().count();
    let before = count();
    // Exact counts of the slab allocator are several files of each of hundreds of caches.
    let kinds = all_monitors().iter().filter(|kind| kind.name != "slab-exact");
    let open = |kind| {
        let mut monitor = open_monitor(kind, &Root::host(), Nanos(1_000_000_000)).ok()?;
        monitor.read_rows(&mut Vec::new()).ok()?;
        Some(monitor)
    };
    let mut monitors: Vec<_> = kinds.filter_map(open).collect();
    let opened = count();
    assert!(opened.saturating_sub(before) < 200, "{before} and {opened}");
    for _ in 0..20 {
        monitors.iter_mut().for_each(|monitor| drop(monitor.read_rows(&mut Vec::new())));
    }
    // Other tests of this process open files as well.
    assert!(count() < opened + 40, "{} after {opened}", count());
}

#[test]
fn needs_root_what_ended_between_two_readings_is_a_row_of_its_name() {
    let name = "needs_root_what_ended_between_two_readings_is_a_row_of_its_name";
    let mut monitor =
        open_monitor(find_monitor("tasks").unwrap(), &Root::host(), Nanos(1_000_000_000)).unwrap();
    if !monitor.schema().source.ends_with("taskstats") {
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{name}: {}", monitor.schema().source);
        return eprintln!("SKIP {name}: {}", monitor.schema().source);
    }
    // A name that no other test's process has.
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("ended-by-name");
    fs::copy("/bin/true", &program).unwrap();
    let mut ended = 0;
    for _ in 0..100 {
        // A fork of another thread may hold the copy open for writing.
        if let Ok(status) = std::process::Command::new(&program).status() {
            assert!(status.success());
            ended += 1;
        }
        if ended == 3 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let found = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let rows = read_columns(&mut *monitor, &["pid", "comm", "ended"]);
        rows.iter().any(|row| row == "ended ended-by-name 3")
    });
    assert!(found);
}
