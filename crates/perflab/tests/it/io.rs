//! `perflab io`, on a file system of the test's own: what is read is known to the page.

use serde_json::Value;

use crate::image::MountedImage;
use crate::laboratory::{Sandbox, is_root, skip_test, to_command_output};
use crate::taken::repeat_until_undisturbed;

fn read_io_rows(laboratory: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    let said = laboratory.run_successfully(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&said.out).unwrap()
}

/// How many events the newest recording lost.
fn lost_events(laboratory: &Sandbox) -> u64 {
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    let recordings = archive.find_runs("@latest").unwrap().remove(0).read_io_recordings().unwrap();
    recordings.iter().map(|(_, recording)| recording.summary.lost).sum()
}

#[test]
fn every_page_that_a_command_reads_is_seen() {
    let Some(image) = MountedImage::new("every_page_that_a_command_reads_is_seen") else { return };
    let laboratory = Sandbox::new();
    let (whole, part) = (image.write_pages("lib/whole", 103), image.write_pages("lib/part", 3000));
    image.evict_files();
    let script = format!("cat {} >/dev/null; head -c 100000 {} >/dev/null", whole.display(), part.display());
    let said = laboratory.run_successfully(&["io", "record", "--label", "cold", "--", "sh", "-c", &script]);
    assert_eq!(lost_events(&laboratory), 0, "{}", said.err);

    let files = read_io_rows(&laboratory, &["io", "show", "cold", "--top", "1000"]);
    let row = |path: &std::path::Path| {
        let row = files.iter().find(|row| row["file"] == path.to_str().unwrap());
        row.unwrap_or_else(|| panic!("{} is not in {files:?}", path.display())).clone()
    };
    assert_eq!(
        (row(&whole)["read"].clone(), row(&whole)["needed"].clone()),
        ((103 << 12).into(), (103 << 12).into())
    );
    // 100,000 bytes are 25 pages; the rest of what was read lay around them.
    assert_eq!(row(&part)["needed"], 25 << 12);
    assert!(row(&part)["read"].as_u64().unwrap() > 25 << 12);
    let disk = files.iter().find(|row| row["file"].as_str().unwrap().starts_with("/dev/loop")).unwrap();
    assert!(disk["read"].as_u64().unwrap() >= 4096, "inodes and names were read: {disk}");

    let folders = read_io_rows(&laboratory, &["io", "show", "cold", "--by", "directory", "--top", "1000"]);
    let lib = image.mount_point().join("lib");
    assert!(folders.iter().any(|row| row["directory"] == lib.to_str().unwrap() && row["files"] == 2));
    let ticks = read_io_rows(&laboratory, &["io", "show", "cold", "--by", "time", "--top", "5"]);
    assert_eq!(ticks.len(), 5);
    let asked: u64 = ticks.iter().map(|tick| tick["asked for"].as_u64().unwrap()).sum();
    assert!(asked >= 128 << 12, "{ticks:?}");
    let disks = read_io_rows(&laboratory, &["io", "show", "cold", "--by", "disk"]);
    assert!(disks.iter().any(|row| row["disk"].as_str().unwrap().starts_with("7:")), "{disks:?}");
    let lines = laboratory.run_successfully(&["io", "export", "cold", "--blkparse"]).out;
    assert!(lines.lines().any(|line| line.trim_start().starts_with("7,") && line.contains(" D ")), "{lines}");

    let read = || assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
    let record = || laboratory.run_successfully(&["io", "record", "--", "sh", "-c", &script]);
    let again = repeat_until_undisturbed(&image.mount_point(), read, record);
    assert_eq!(lost_events(&laboratory), 0, "{}", again.err);
    let files = read_io_rows(&laboratory, &["io", "show", "--top", "1000"]);
    let warm = files.iter().find(|row| row["file"] == whole.to_str().unwrap()).unwrap();
    assert_eq!(
        (&warm["read"], &warm["needed"]),
        (&0.into(), &(103 << 12).into()),
        "used, but not read again"
    );
}

/// A file on a loop device whose own file is on a disk is read twice by the kernel, and once by the program.
#[test]
fn a_read_of_a_loop_device_is_counted_once() {
    let Some(image) = MountedImage::new("a_read_of_a_loop_device_is_counted_once") else { return };
    let laboratory = Sandbox::new();
    let (pages, bytes) = (2000, 2000 << 12);
    let file = image.write_pages("file", pages);
    image.evict_files();
    std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    laboratory.run_successfully(&["io", "record", "--label", "cold", "--", "cat", file.to_str().unwrap()]);
    let lines = laboratory.run_successfully(&["io", "export", "cold", "--blkparse"]).out;
    let asked = |is_loop: bool| -> u64 {
        let words = lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let reads = words.filter(|words| words[5] == "D" && words[6].starts_with('R'));
        reads
            .filter(|words| words[0].starts_with("7,") == is_loop)
            .map(|words| words[9].parse::<u64>().unwrap())
            .sum()
    };
    assert!(asked(true) * 512 >= bytes, "{lines}");
    if asked(false) * 512 < bytes {
        return skip_test("a_read_of_a_loop_device_is_counted_once", "the image lies on no disk of its own");
    }
    let disks = read_io_rows(&laboratory, &["io", "show", "cold", "--by", "disk"]);
    let below = disks.iter().filter(|row| !row["disk"].as_str().unwrap().starts_with("7:"));
    let below: u64 = below.map(|row| row["asked for"].as_u64().unwrap()).sum();
    // What others read meanwhile, and the map of the image's own extents, is no part of the image.
    assert!(below + bytes / 2 < asked(false) * 512, "{below} of {} are left below", asked(false) * 512);
}

/// A linear volume of device mapper over a loop device, in a guest whose kernel has both whatever this host's has: every byte that
/// is read of a file on it is found on the device below, once.
#[test]
fn a_read_of_a_volume_of_device_mapper_is_found_on_the_disk_below_root() {
    let name = "a_read_of_a_volume_of_device_mapper_is_found_on_the_disk_below_root";
    let Some(guests) = crate::vm::GuestSandbox::new(name) else { return };
    if !["dmsetup", "losetup", "mkfs.ext4"].into_iter().all(crate::ssh::is_program_there) {
        return skip_test(name, "needs dmsetup and e2fsprogs");
    }
    let script = "set -e; mount -t tracefs none /sys/kernel/tracing 2>/dev/null || :; mount -t tmpfs none /mnt; cd /mnt
        PATH=$PATH:/sbin:/usr/sbin; truncate -s 32M image; loop=$(losetup -f --show image)
        dmsetup create lin --table \"0 $(($(blockdev --getsz $loop) - 2048)) linear $loop 2048\"
        mkfs.ext4 -q -O ^has_journal /dev/dm-0; mkdir m; mount /dev/dm-0 m; head -c 4096000 /dev/urandom >m/file
        cool() { sync; umount m; mount /dev/dm-0 m; echo 3 >/proc/sys/vm/drop_caches; }
        cool; $0 prefetch --store store learn -q -- cat m/file >/dev/null
        cool; $0 io record --label dm -q -- cat m/file >/dev/null
        $0 io coverage dm --trace $(ls store/*.prefetch) --format json";
    let mut boot = guests.command(&["vm", "boot", "--memory", "768MiB"]);
    boot.args(["--load", "dm_mod", "--load", "loop", "--load", "ext4", "--", "sh", "-c", script]);
    // Its own, as this host's may lie in /tmp, which is another one there.
    let told = crate::laboratory::to_command_output(boot.arg("/run/perflab/perflab").output().unwrap());
    assert_eq!(told.code, Some(0), "{}", told.err);
    // What the host's perflab has changed is not the guest's to put back.
    assert!(!told.err.lines().any(|line| line.starts_with("perflab: ")), "{}", told.err);
    let rows: Vec<Value> = serde_json::from_str(&told.out).unwrap();
    let of =
        |status: &str| rows.iter().find(|row| row["status"] == status).unwrap()["bytes"].as_u64().unwrap();
    assert_eq!(of("found"), 4_096_000, "{}", told.out);
    assert!(of("unknown") == 0 && of("delivered by disks") < 4_500_000, "{}", told.out);
}

/// Where a recording of our own in the forms of 2007 lies; its PROVENANCE says how it was made, and its figures are counted there
/// without perflab.
pub fn evidence_path(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../import/tests/recorded/blktrace-2007");
    format!("{folder}/{name}")
}

#[test]
fn coverage_of_2007_is_right_by_block_and_published_by_request() {
    let laboratory = Sandbox::new();
    let (trace, map) = (evidence_path("partition.blktrace.0"), evidence_path("partition.map"));
    let said = laboratory.run_successfully(&["io", "import", &trace, "--map", &map, "--label", "old"]);
    insta::assert_snapshot!(
        "coverage_of_2007_is_right_by_block_and_published_by_request_1",
        said.stable_err()
    );
    let figures = |rows: &[Value], column: &str| -> Vec<u64> {
        let row =
            |name| rows.iter().find(|row| row["status"] == name).map_or(&Value::Null, |row| &row[column]);
        ["found", "not in trace", "metadata", "unknown", "sum"].map(|name| row(name).as_u64().unwrap()).into()
    };
    // A dump names the partition 259:0, which the requests of the trace call 7:0.
    for dump in ["prefetch-trace.txt", "prefetch-trace.32", "prefetch-trace.64"] {
        let found = read_io_rows(&laboratory, &["io", "coverage", "old", "--trace", &evidence_path(dump)]);
        assert_eq!(figures(&found, "bytes"), [1_056_768, 94_208, 16_384, 12_288, 1_179_648], "{dump}");
    }
    let dump = evidence_path("prefetch-trace.txt");
    let published = ["io", "coverage", "old", "--trace", &dump, "--method", "published"];
    let found = read_io_rows(&laboratory, &published);
    assert_eq!(figures(&found, "2007: requests"), [13, 5, 3, 4, 25]);
    assert_eq!(figures(&found, "blocks"), [258, 23, 4, 3, 288]);
    let said = laboratory.run_successfully(&published);
    insta::assert_snapshot!(
        "coverage_of_2007_is_right_by_block_and_published_by_request_2",
        said.stable_err()
    );

    // What cannot be counted that way is refused, with what to do.
    laboratory.run_successfully(&["io", "import", &trace, "--label", "without"]);
    let refused = |arguments: &[&str]| {
        let said = laboratory.run(arguments);
        assert_eq!(said.code, Some(2), "{}", said.err);
        let wording = said.stable_err();
        wording.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    std::fs::write(laboratory.path("packed"), "BZh91AY").unwrap();
    let errors = [
        refused(&["io", "coverage", "without", "--trace", &dump, "--method", "published"]),
        refused(&[&published[..], &["--blocks"]].concat()),
        refused(&[&published[..], &["-o", "x.svg"]].concat()),
        refused(&["io", "import", &trace, "--partition-start", "63"]),
        refused(&["io", "import", &trace, "--map", &map, "--block-size", "1000B"]),
        refused(&["io", "import", &trace, "--map", "/dev/zero"]),
        refused(&["io", "import", "packed"]),
    ];
    insta::assert_snapshot!(errors.join("\n"), @"
    CRATE/../import/tests/recorded/blktrace-2007/prefetch-trace.txt is a dump of the 2007 prefetch module: 4 records of 258 pages in all, and 4 empty ones
    error: the comparison of 2007 needs a map from blocks to files, and this run has none; import the trace with its map: `perflab io import TRACE --map MAP`
    error: the figures of 2007 are sums: there are neither blocks nor a picture of them; leave --method published out
    error: the figures of 2007 are sums: there are neither blocks nor a picture of them; leave --method published out
    error: the following required arguments were not provided:
      --map <FILE>
    error: invalid value '1000B' for '--block-size <SIZE>': `1000B` is not a power of two from 512B to 64KiB
    error: /dev/zero: it is a pipe, a socket or a device; write what it gives to a file, and import that
    error: packed is packed by bzip2; unpack it with bunzip2 first
    ");
    // What was asked for of the queue goes out as blkparse's text, and comes back the same.
    std::fs::write(
        laboratory.path("text"),
        laboratory.run_successfully(&["io", "export", "old", "--blkparse"]).out,
    )
    .unwrap();
    laboratory.run_successfully(&["io", "import", "text", "--map", &map, "--label", "text"]);
    let again = ["io", "coverage", "text", "--trace", &dump, "--method", "published"];
    assert_eq!(figures(&read_io_rows(&laboratory, &again), "2007: requests"), [13, 5, 3, 4, 25]);
}

#[test]
fn what_is_missing_is_named() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("s.toml", "run = { iterations = 1, warmup = 0 }\n[workload.echo]");
    laboratory.run_successfully(&["run", &study, "--no-report"]);
    let said = laboratory.run(&["io", "show"]);
    assert_eq!(said.code, Some(2), "{}", said.err);
    insta::assert_snapshot!("what_is_missing_is_named_1", said.stable_err());
    if is_root() {
        let said = laboratory.run(&["io", "record", "--", "sh", "-c", "echo no; exit 3"]);
        assert_eq!(said.code, Some(4), "{}", said.err);
        insta::assert_snapshot!(said.err_wording_of("--output"), @"the command failed or was stopped; `perflab show RUN --output N` prints its output");
        let said = laboratory.run(&["io", "show", "--slot", "9"]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        insta::assert_snapshot!(said.stable_err(), @"error: I/O was not traced in this slot; traced slots: 0");
    }
}

#[test]
fn without_root_the_setting_is_named() {
    let name = "without_root_the_setting_is_named";
    if !is_root() {
        return skip_test(name, "becoming nobody needs root");
    }
    let laboratory = Sandbox::new();
    let open = |path: &std::path::Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path, mode).unwrap();
    };
    open(laboratory.home.path());
    let copy = laboratory.path("perflab");
    std::fs::copy(env!("CARGO_BIN_EXE_perflab"), &copy).unwrap();
    open(&copy);
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
    command.args(["io", "record", "--", "true"]).current_dir(laboratory.home.path());
    let said = to_command_output(command.output().unwrap());
    assert_eq!(said.code, Some(3), "{}", said.err);
    insta::assert_snapshot!(said.stable_err(), @"error: [io]: the kernel's tracing cannot be used: /sys/kernel/tracing: Operation not permitted (os error 1); it needs root; without, `perflab prefetch learn` still works for your own files, by what is in memory before and after");
}
