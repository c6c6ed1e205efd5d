//! `perflab io`, on a file system of the test's own: what is read is known to the page.

use serde_json::Value;

use crate::image::Image;
use crate::laboratory::{Laboratory, is_root, skip};

fn rows(laboratory: &Laboratory, arguments: &[&str]) -> Vec<Value> {
    let said = laboratory.good(&[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&said.out).unwrap()
}

#[test]
fn every_page_that_a_command_reads_is_seen() {
    let Some(image) = Image::new("every_page_that_a_command_reads_is_seen") else { return };
    let laboratory = Laboratory::new();
    let (whole, part) = (image.write("lib/whole", 103), image.write("lib/part", 3000));
    image.cool();
    let script = format!("cat {} >/dev/null; head -c 100000 {} >/dev/null", whole.display(), part.display());
    let said = laboratory.good(&["io", "record", "--label", "cold", "--", "sh", "-c", &script]);
    assert!(said.err.contains(" 0 lost"), "{}", said.err);

    let files = rows(&laboratory, &["io", "show", "cold", "--top", "1000"]);
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

    let folders = rows(&laboratory, &["io", "show", "cold", "--by", "directory", "--top", "1000"]);
    let lib = image.place().join("lib");
    assert!(folders.iter().any(|row| row["directory"] == lib.to_str().unwrap() && row["files"] == 2));
    let ticks = rows(&laboratory, &["io", "show", "cold", "--by", "time", "--top", "5"]);
    assert_eq!(ticks.len(), 5);
    let asked: u64 = ticks.iter().map(|tick| tick["asked for"].as_u64().unwrap()).sum();
    assert!(asked >= 128 << 12, "{ticks:?}");
    let disks = rows(&laboratory, &["io", "show", "cold", "--by", "disk"]);
    assert!(disks.iter().any(|row| row["disk"].as_str().unwrap().starts_with("7:")), "{disks:?}");
    let lines = laboratory.good(&["io", "export", "cold", "--blkparse"]).out;
    assert!(lines.lines().any(|line| line.trim_start().starts_with("7,") && line.contains(" D ")), "{lines}");

    let again = laboratory.good(&["io", "record", "--label", "warm", "--", "sh", "-c", &script]);
    assert!(again.err.contains(" 0 lost"), "{}", again.err);
    let files = rows(&laboratory, &["io", "show", "warm", "--top", "1000"]);
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
    let Some(image) = Image::new("a_read_of_a_loop_device_is_counted_once") else { return };
    let laboratory = Laboratory::new();
    let (pages, bytes) = (2000, 2000 << 12);
    let file = image.write("file", pages);
    image.cool();
    std::fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    laboratory.good(&["io", "record", "--label", "cold", "--", "cat", file.to_str().unwrap()]);
    let lines = laboratory.good(&["io", "export", "cold", "--blkparse"]).out;
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
        return skip("a_read_of_a_loop_device_is_counted_once", "the image lies on no disk of its own");
    }
    let disks = rows(&laboratory, &["io", "show", "cold", "--by", "disk"]);
    let below = disks.iter().filter(|row| !row["disk"].as_str().unwrap().starts_with("7:"));
    let below: u64 = below.map(|row| row["asked for"].as_u64().unwrap()).sum();
    // What others read meanwhile, and the map of the image's own extents, is no part of the image.
    assert!(below + bytes / 2 < asked(false) * 512, "{below} of {} are left below", asked(false) * 512);
}

#[test]
fn what_is_missing_is_named() {
    let laboratory = Laboratory::new();
    let study = laboratory.study("s.toml", "run = { iterations = 1, warmup = 0 }\n[workload.echo]");
    laboratory.good(&["run", &study, "--no-report"]);
    let said = laboratory.run(&["io", "show"]);
    assert!(said.code == Some(2) && said.err.contains("perflab io record"), "{}", said.err);
    if is_root() {
        let said = laboratory.run(&["io", "record", "--", "sh", "-c", "echo no; exit 3"]);
        assert!(said.code == Some(4) && said.err.contains("--output 0"), "{}", said.err);
        let said = laboratory.run(&["io", "show", "--slot", "9"]);
        assert!(said.code == Some(2) && said.err.contains("it was in 0"), "{}", said.err);
    }
}

#[test]
fn without_root_the_setting_is_named() {
    let name = "without_root_the_setting_is_named";
    if !is_root() {
        return skip(name, "becoming nobody needs root");
    }
    let laboratory = Laboratory::new();
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
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(3) && said.contains("needs root"), "{said}");
}
