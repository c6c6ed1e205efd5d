//! `perflab prefetch learn --fine`: what is touched alone is remembered, and the disk's read-ahead is what it was afterwards,
//! however that ends.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perflab_observe::io::MountTable;
use perflab_observe::mounts;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::image::{MountedImage, write_executable_script};
use crate::laboratory::{CommandOutput, Sandbox, command_as_nobody, skip_test, to_command_output};

const PAGES: usize = 2048;
/// A page of each 512 KiB of a file of 8 MiB.
const TOUCH: &str = "import mmap, sys\nfile = open(sys.argv[1])\n\
                     map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)\n\
                     sum(map[at] for at in range(262144, len(map), 524288))";
const TOUCHED: u64 = 16;
/// KiB that come with a page that is touched while it is learnt finely.
const FINE: &str = "4";

struct ReadAheadBench {
    image: MountedImage,
    laboratory: Sandbox,
}

impl ReadAheadBench {
    fn new(test: &str, kind: &'static str) -> Option<Self> {
        if Command::new("python3").arg("--version").output().is_err() {
            skip_test(test, "python3 is missing");
            return None;
        }
        Some(ReadAheadBench { image: MountedImage::of_kind(test, kind)?, laboratory: Sandbox::new() })
    }

    /// KiB that are read around what is touched there.
    fn read_around_kib(&self) -> String {
        fs::read_to_string(self.read_ahead_setting()).unwrap().trim().to_owned()
    }

    fn read_ahead_setting(&self) -> PathBuf {
        let mounts = MountTable::read();
        mounts.find_by_path(&self.image.mount_point()).and_then(mounts::read_ahead_file).unwrap()
    }

    /// Learns a script; what was printed, and how many pages of `data` are remembered.
    fn learn_script(&self, program: &str, fine: &[&str]) -> (CommandOutput, u64) {
        self.image.evict_files();
        let store = self.laboratory.path(&format!("store{}", fine.len())).display().to_string();
        let learn = ["prefetch", "--store", &store, "learn"];
        let learnt = self.laboratory.run_successfully(&[&learn[..], fine, &["--", program]].concat());
        let show = ["prefetch", "--store", &store, "show", program, "--format", "json"];
        let rows: Vec<Value> = serde_json::from_str(&self.laboratory.run_successfully(&show).out).unwrap();
        let data = rows.iter().find(|row| row["file"].as_str().unwrap().ends_with("/data")).unwrap();
        (learnt, data["data"].as_u64().unwrap() / 4096)
    }

    /// A program that goes on, learnt finely, from the moment at which little is read around.
    fn start_learning(&self) -> Child {
        let program = self.image.write_script("goes-on", "exec sleep 30");
        let mut learn = self.laboratory.command(&["prefetch", "learn", "--fine", "--", &program]);
        let learn = learn.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while self.read_around_kib() != FINE {
            assert!(begun.elapsed() < Duration::from_secs(60), "it never came");
            std::thread::sleep(Duration::from_millis(5));
        }
        learn
    }
}

#[test]
fn what_is_touched_alone_is_remembered() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(bench) = ReadAheadBench::new("what_is_touched_alone_is_remembered", kind) else { return };
        let data = bench.image.write_pages("data", PAGES).display().to_string();
        let python = bench.laboratory.path("touch.py");
        fs::write(&python, TOUCH).unwrap();
        let text =
            format!("cat {}\nexec python3 {} {data}", bench.read_ahead_setting().display(), python.display());
        let program = bench.image.write_script("start", &text);
        let before = bench.read_around_kib();
        let (coarsely, around) = bench.learn_script(&program, &[]);
        let (finely, touched) = bench.learn_script(&program, &["--fine"]);
        assert_eq!((coarsely.out.trim(), finely.out.trim()), (&*before, FINE), "{kind}");
        assert_eq!(touched, TOUCHED, "{kind}: pages finely");
        assert!(around >= 4 * touched, "{kind}: {around} pages as the kernel reads, {touched} finely");
        assert_eq!(bench.read_around_kib(), before, "{kind}");
    }
}

#[test]
fn who_stops_it_finds_the_disk_as_it_was() {
    let Some(bench) = ReadAheadBench::new("who_stops_it_finds_the_disk_as_it_was", "ext4") else { return };
    let before = bench.read_around_kib();
    let learn = bench.start_learning();
    kill_process(Pid::from_child(&learn), Signal::TERM).unwrap();
    let ended = to_command_output(learn.wait_with_output().unwrap());
    assert_eq!((ended.code, bench.read_around_kib()), (Some(128 + 15), before.clone()), "{}", ended.err);
    insta::assert_snapshot!("who_stops_it_finds_the_disk_as_it_was_1", ended.stable_err());

    let mut learn = bench.start_learning();
    learn.kill().unwrap();
    learn.wait().unwrap();
    assert_eq!(bench.read_around_kib(), FINE, "nobody could put it back");
    let undone = bench.laboratory.run_successfully(&["undo"]);
    let wording = undone.err_wording_of("read_ahead_kb");
    insta::assert_snapshot!(wording.split_once(": ").unwrap().1, @"put back /sys/dev/block/N:N/queue/read_ahead_kb = N");
    assert_eq!(bench.read_around_kib(), before, "{}", undone.err);
}

#[test]
fn who_may_not_set_it_is_told_what_that_needs() {
    let test = "who_may_not_set_it_is_told_what_that_needs";
    let Some(bench) = ReadAheadBench::new(test, "ext4") else { return };
    let program = bench.image.write_script("start", "echo started");
    let (folder, mut command) = command_as_nobody();
    let said =
        to_command_output(command.args(["prefetch", "learn", "--fine", "--", &program]).output().unwrap());
    assert_eq!((said.code, &*said.out), (Some(3), ""), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    insta::assert_snapshot!(said.err_wording_of("--fine"), @"error: --fine turns read-ahead down, which needs root: /sys/dev/block/N:N/queue/read_ahead_kb refuses `N`: Permission denied (os error N)");
    assert_eq!(fs::read_dir(folder.path().join("state")).unwrap().count(), 0, "nothing is left to be undone");
}

/// A workload has a HOME of its own, on a disk that goes with the run: what a perflab there has changed is put back nevertheless.
#[test]
fn what_a_workload_left_changed_is_put_back_at_the_end_of_its_run() {
    let test = "what_a_workload_left_changed_is_put_back_at_the_end_of_its_run";
    let Some(bench) = ReadAheadBench::new(test, "ext4") else { return };
    let before = bench.read_around_kib();
    let program = bench.image.write_script("goes-on", "exec sleep 20");
    let script = format!(
        "{{{{ perflab }}}} prefetch learn --fine -- {program} & for i in $(seq 600); do sleep 0.1; \
         test $(cat {}) = {FINE} && break; done; kill -9 $!; echo speed 1",
        bench.read_ahead_setting().display()
    );
    bench.laboratory.write_workload(
        "cut-off",
        "environment = { HOME = \"{{ scratch }}\" }\nneeds = { scratch = true }",
        &script,
    );
    let study =
        bench.laboratory.write_study("cut.toml", "run = { iterations = 1, warmup = 0 }\n[workload.cut-off]");
    let mut run = bench.laboratory.command(&["run", &study, "--no-report"]);
    let ran = to_command_output(run.env("PERFLAB_STATE", "state-of-the-run").output().unwrap());
    // What was put back is named.
    let wording = ran.err_wording_of("read_ahead_kb");
    insta::assert_snapshot!(wording.split_once(" was killed").unwrap().1, @"; put back N of its settings: /sys/dev/block/N:N/queue/read_ahead_kb = N");
    assert_eq!((ran.code, bench.read_around_kib()), (Some(0), before), "{}", ran.err);
}

#[test]
fn a_program_in_memory_lies_on_no_disk() {
    let (laboratory, memory) = (Sandbox::new(), tempfile::tempdir_in("/dev/shm").unwrap());
    let program = write_executable_script(&memory.path().join("start"), "echo started");
    let said = laboratory.run(&["prefetch", "learn", "--fine", "--", &program]);
    assert_eq!((said.code, &*said.out), (Some(2), ""), "{}", said.err);
    insta::assert_snapshot!("a_program_in_memory_lies_on_no_disk_1", said.stable_err());
}
