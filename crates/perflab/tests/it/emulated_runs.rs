//! Runs on emulated disks. Needs root.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::emulated::may_emulate;
use crate::interrupted::{signal, wait_for};
use crate::laboratory::{Laboratory, said};

const STUDY: &str = r#"
[run]
iterations = 2
warmup = 0

[disk]
kind = "image"
size = "64MiB"

[workload.fs_mark]
parameters = { files = 20, size = 4096, threads = 1 }

[factor.model]
kind = "disk"
levels = ["hdd-7200", "nvme"]
"#;

#[test]
fn a_study_varies_the_disk_and_says_that_it_is_emulated_root() {
    if !may_emulate("a_study_varies_the_disk_and_says_that_it_is_emulated_root") {
        return;
    }
    let laboratory = Laboratory::new();
    let study = laboratory.study("disks.toml", STUDY);
    let ran = laboratory.good(&["run", &study]).err;
    assert!(
        ran.contains("the disk hdd-7200 is emulated") && ran.contains("the disk nvme is emulated"),
        "{ran}"
    );
    let shown = laboratory.good(&["compare", "@latest", "--by", "model"]).out;
    assert!(shown.contains("hdd-7200"), "{shown}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let home = ours(&laboratory).unwrap();
    let left = mounts.lines().find(|line| line.contains(home.to_str().unwrap()));
    assert_eq!(left, None, "disks are unmounted");
}

/// More than a disk of 7,200 turns takes in within the patience that a run has with a workload that does not end; on a disk that
/// has room for much more, else ext4 has the writer wait.
const SYNCS: &str = "head -c 1100M /dev/zero > {{ scratch }}/big; touch {{ kept }}/written; sync -f {{ scratch }}; echo speed 1";

#[test]
fn an_interrupted_runs_disk_goes_while_much_waits_to_be_written_root() {
    if !may_emulate("an_interrupted_runs_disk_goes_while_much_waits_to_be_written_root") {
        return;
    }
    let laboratory = Laboratory::new();
    laboratory.workload("syncs", "needs = { root = true, scratch = true, disk = \"1GiB\" }", SYNCS);
    let disk = "kind = \"image\"\nsize = \"8GiB\"\nmodel = \"hdd-7200\"";
    let study = laboratory.study("syncs.toml", &format!("[workload.syncs]\n[disk]\n{disk}"));
    let mut command = laboratory.command(&["run", &study]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(|| ours(&laboratory).is_some_and(|home| home.join("mount/kept/written").exists()));
    let home = ours(&laboratory).unwrap();
    signal(&child, rustix::process::Signal::INT);
    let ended = said(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(home.to_str().unwrap()), "{mounts}");
    assert!(!home.exists(), "the image is gone");
    assert!(laboratory.good(&["undo"]).err.contains("no run left a setting behind"));
}

/// Where the disk of the only run lies, once there is one.
fn ours(laboratory: &Laboratory) -> Option<PathBuf> {
    let run = std::fs::read_dir(laboratory.path("archive/runs")).ok()?.flatten().next()?.file_name();
    Some(Path::new("/dev/shm").join(format!("perflab-{}", run.to_str()?)))
}
