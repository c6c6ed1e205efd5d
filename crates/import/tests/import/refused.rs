//! Files among others that the system does not let be read: each is named with the reason, the rest is imported, and nothing
//! waits for a pipe.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use perflab_import::ImportOptions;

use super::bench::{ImportOutcome, ImportTestArchive, find_report, record_import, warning_messages};

const STAMPS: &str = "start :: 1700000000\ntest begin :: hackbench 1700000001\ntest end :: hackbench 1700000009 0\n\
    time :: hackbench 1.0 user 2.0 system 3.0 elapsed\n";
const GOOD: &str = "# Running 'sched/messaging' benchmark:\n     Total time: 0.100 [sec]\n";
const VMSTAT: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n \
    r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n \
    1  0      0 100000  1000  50000    0    0     1     2  100  200  1  2 97  0  0\n \
    1  0      0 100000  1000  50000    0    0     1     2  100  200  1  2 97  0  0\n";

/// What stands where a log should be, and what is said of it.
type OddFile = (&'static str, fn(&Path), &'static str);

const ODD: [OddFile; 6] = [
    (
        "link to nowhere",
        |path| symlink("nowhere", path).unwrap(),
        "it is a link to nowhere: No such file or directory (os error 2)",
    ),
    (
        "link to itself",
        |path| symlink(path.file_name().unwrap(), path).unwrap(),
        "Too many levels of symbolic links (os error 40)",
    ),
    ("folder", |path| fs::create_dir(path).unwrap(), "it is a folder"),
    ("pipe", make_pipe, "it is a pipe, a socket or a device"),
    ("socket", |path| drop(UnixListener::bind(path).unwrap()), "it is a pipe, a socket or a device"),
    ("device", |path| symlink("/dev/zero", path).unwrap(), "it is a pipe, a socket or a device"),
];

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A log directory whose `iter-0` is whole but for what `odd` puts at `place`.
fn write_odd_logs(bench: &ImportTestArchive, place: &str, odd: fn(&Path)) -> PathBuf {
    let root = bench.write_file("run/iter-0/tests-timestamp", STAMPS).ancestors().nth(2).unwrap().to_owned();
    bench.write_file("run/iter-0/hackbench/logs/hackbench-1", GOOD);
    bench.write_file("run/iter-0/vmstat-hackbench", VMSTAT);
    bench.write_file("run/iter-1/hackbench/logs/hackbench-1", GOOD);
    bench.write_file("run/iter-1/tests-timestamp", STAMPS);
    let path = root.join(place);
    let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
    odd(&path);
    root
}

fn time_values(imported: &ImportOutcome) -> Vec<f64> {
    let record = imported.run.read_record().unwrap();
    record.samples.iter().filter(|sample| sample.metric == "time").map(|sample| sample.value).collect()
}

#[test]
fn a_log_of_mmtests_costs_itself_only() {
    let places = [
        ("iter-0/hackbench/logs/hackbench-1", 1),
        ("iter-0/hackbench/logs/hackbench-2", 2),
        ("iter-0/hackbench/logs/time-1", 2),
        ("iter-0/vmstat-hackbench", 2),
        ("iter-0/vmstat-hackbench.start", 2),
        ("iter-0/tests-timestamp", 2),
        ("iter-0/lscpu.txt", 2),
    ];
    for ((what, odd, why), (place, values)) in ODD.iter().flat_map(|odd| places.map(|place| (*odd, place))) {
        let bench = ImportTestArchive::new();
        let imported = bench.import(&write_odd_logs(&bench, place, odd));
        assert_eq!(time_values(&imported), vec![0.1; values], "{what} at {place}");
        let name = place.rsplit('/').next().unwrap();
        let said = why.replace("Too", &format!("it is a link to {name}: Too"));
        let wanted = format!("{place} cannot be read: {said}; nothing of it is in this run");
        assert!(
            warning_messages(&imported).contains(&wanted.as_str()),
            "{wanted}\n{:?}",
            warning_messages(&imported)
        );
        assert!(find_report(&imported, name).refused.is_some());
        let about = warning_messages(&imported).into_iter().filter(|message| message.contains(place)).count();
        assert_eq!(about, 1, "it is said once: {:?}", warning_messages(&imported));
    }
}

#[test]
fn a_folder_of_mmtests_costs_itself_only() {
    for place in ["iter-0/hackbench", "iter-0/hackbench/logs", "iter-0", "iter-1"] {
        for (what, odd, _) in ODD.iter().filter(|(what, ..)| *what != "folder") {
            let bench = ImportTestArchive::new();
            let imported = bench.import(&write_odd_logs(&bench, place, *odd));
            assert_eq!(time_values(&imported), [0.1], "{what} at {place}");
            let named = |message: &&str| message.starts_with(&format!("{place} cannot be read: "));
            assert!(
                warning_messages(&imported).iter().any(named),
                "{what} at {place}: {:?}",
                warning_messages(&imported)
            );
        }
    }
}

/// Nothing says of times that they decide, where the log that decides cannot be read.
#[test]
fn what_only_explains_does_not_take_the_place_of_a_log() {
    let bench = ImportTestArchive::new();
    let root = write_odd_logs(&bench, "iter-0/hackbench/logs/hackbench-1", make_pipe);
    bench.write_file("run/iter-0/hackbench/logs/time-1", "0.05user 0.12system 0:01.50elapsed 11%CPU\n");
    let record = bench.import(&root).run.read_record().unwrap();
    let metrics = &record.manifest.plan.metrics["hackbench-time"];
    assert!(metrics.iter().all(|metric| !metric.primary), "{metrics:?}");
}

#[test]
fn a_packed_copy_is_read_in_place_of_what_is_no_log() {
    let bench = ImportTestArchive::new();
    let root =
        write_odd_logs(&bench, "iter-0/hackbench/logs/hackbench-1", |path| symlink("nowhere", path).unwrap());
    fs::write(root.join("iter-0/hackbench/logs/hackbench-1.gz"), super::bench::gzip_text(GOOD.as_bytes()))
        .unwrap();
    let imported = bench.import(&root);
    assert_eq!(time_values(&imported), [0.1, 0.1]);
}

#[test]
fn logs_of_which_none_can_be_read_are_refused_by_name() {
    let bench = ImportTestArchive::new();
    let root = write_odd_logs(&bench, "iter-0/hackbench/logs/hackbench-1", make_pipe);
    fs::remove_dir_all(root.join("iter-1")).unwrap();
    bench.write_file("run/iter-0/tests-timestamp", "start :: 1700000000\n");
    fs::remove_file(root.join("iter-0/vmstat-hackbench")).unwrap();
    assert_eq!(
        bench.refusal_of(&root),
        "run/iter-0/hackbench/logs/hackbench-1: it cannot be read: it is a pipe, a socket or a device"
    );
}

#[test]
fn a_file_of_lkp_costs_itself_only() {
    let members = super::bench::MEMBERS;
    let bench = ImportTestArchive::new();
    let whole = bench
        .import(&bench.copy_members("result", &members))
        .file_reports
        .iter()
        .filter(|took| took.rows_used > 0)
        .count();
    for ((what, odd, why), member) in ODD.into_iter().cycle().zip(members) {
        let bench = ImportTestArchive::new();
        let folder = bench.copy_members("result", &members);
        let path = folder.join(member);
        fs::remove_file(&path).unwrap();
        odd(&path);
        let imported = bench.import(&folder);
        let said = why.replace("Too", &format!("it is a link to {member}: Too"));
        let wanted = format!("{member} cannot be read: {said}; nothing of it is in this run");
        assert!(
            warning_messages(&imported).contains(&wanted.as_str()),
            "{what}: {wanted}\n{:?}",
            warning_messages(&imported)
        );
        let read = imported.file_reports.iter().filter(|took| took.rows_used > 0).count();
        assert!(read >= whole - 1, "{what} at {member}: {read} of {whole} files were read");
    }
}

#[test]
fn a_run_of_a_result_root_costs_itself_only() {
    for (what, odd, _) in ODD {
        let bench = ImportTestArchive::new();
        for run in ["0", "2"] {
            bench.write_file(&format!("root/{run}/stats.json"), "{\"will-it-scale.ops\": 5}");
        }
        odd(&bench.write_file("root/x", "").with_file_name("1"));
        odd(&bench.write_file("root/2/x", "").with_file_name("slabinfo"));
        let imported = bench.import(bench.write_file("root/x", "").ancestors().nth(1).unwrap());
        assert_eq!(imported.kind, "lkp");
        assert_eq!(imported.run.read_record().unwrap().samples.len(), 2, "{what}");
        for place in ["1", "2/slabinfo"] {
            let named = |message: &&str| message.starts_with(&format!("{place} cannot be read: "));
            assert!(
                warning_messages(&imported).iter().any(named),
                "{what} at {place}: {:?}",
                warning_messages(&imported)
            );
        }
    }
}

/// What is asked for by name is an error, and so is a folder that is none; a pipe in it is not waited for.
#[test]
fn what_is_named_and_cannot_be_opened_is_an_error() {
    let bench = ImportTestArchive::new();
    let room = bench.write_file("room/notes", "no log\n");
    make_pipe(&room.with_file_name("pipe"));
    symlink("nowhere", room.with_file_name("link")).unwrap();
    assert!(bench.refusal_of(room.parent().unwrap()).starts_with("room: it looks like none of mmtests ("));
    assert_eq!(
        bench.refusal_of(&room.with_file_name("pipe")),
        "room/pipe: it is a pipe, a socket or a device: write what it gives to a file, and import that"
    );
    assert_eq!(
        bench.refusal_of(&room.with_file_name("link")),
        "cannot read room/link: No such file or directory (os error 2)"
    );
}

const AS_NOBODY: &str = "PERFLAB_TEST_AS_NOBODY";

/// Root may read everything, so that this one begins itself again as nobody.
#[test]
fn without_permission_a_log_costs_itself_only() {
    if let Ok(place) = std::env::var(AS_NOBODY) {
        return check_import_as_nobody(Path::new(&place));
    }
    let bench = ImportTestArchive::new();
    let root =
        write_odd_logs(&bench, "iter-0/hackbench/logs/hackbench-2", |path| fs::write(path, GOOD).unwrap());
    bench.write_file("run/iter-2/hackbench/logs/hackbench-1", GOOD);
    let closed = [
        "iter-0/hackbench/logs/hackbench-1",
        "iter-0/vmstat-hackbench",
        "iter-0/tests-timestamp",
        "iter-1/hackbench/logs",
        "iter-2",
    ];
    closed
        .iter()
        .for_each(|place| fs::set_permissions(root.join(place), Permissions::from_mode(0o0)).unwrap());
    let room = root.parent().unwrap();
    fs::set_permissions(room, Permissions::from_mode(0o777)).unwrap();
    let test = std::env::current_exe().unwrap();
    let copy = room.join("test");
    fs::copy(&test, &copy).unwrap();
    let me = fs::metadata(&root).unwrap();
    let is_root = std::os::unix::fs::MetadataExt::uid(&me) == 0;
    let mut command = Command::new(if is_root { "setpriv" } else { "env" });
    if is_root {
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    }
    command.arg(&copy).args([
        "--exact",
        "refused::without_permission_a_log_costs_itself_only",
        "--nocapture",
    ]);
    let said = command.env(AS_NOBODY, &root).output().unwrap();
    closed
        .iter()
        .for_each(|place| fs::set_permissions(root.join(place), Permissions::from_mode(0o755)).unwrap());
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(String::from_utf8_lossy(&said.stdout).contains("1 passed"));
}

fn check_import_as_nobody(root: &Path) {
    let archive = perflab_archive::Archive::open(&root.with_file_name("of-nobody")).unwrap();
    let imported = record_import(&archive, root, &ImportOptions::default()).unwrap();
    assert_eq!(time_values(&imported), [0.1], "of hackbench-2 in iter-0");
    let denied = "cannot be read: Permission denied (os error 13); nothing of it is in this run";
    let wanted = [
        "iter-0/vmstat-hackbench",
        "iter-0/tests-timestamp",
        "iter-0/hackbench/logs/hackbench-1",
        "iter-1/hackbench/logs",
        "iter-2",
    ];
    for place in wanted {
        let message = format!("{place} {denied}");
        assert!(
            warning_messages(&imported).contains(&message.as_str()),
            "{message}\n{:?}",
            warning_messages(&imported)
        );
    }
    let file = root.join("iter-0/vmstat-hackbench");
    let error = record_import(&archive, &file, &ImportOptions::default()).unwrap_err().to_string();
    assert_eq!(error, format!("cannot read {}: Permission denied (os error 13)", file.display()));
}
