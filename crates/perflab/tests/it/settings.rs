//! Presets of settings in real runs: set, read back, found changed by others, put back after a kill.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value as Json;

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{Sandbox, is_root, skip_test};

const CACHE_PRESSURE: &str = "/proc/sys/vm/vfs_cache_pressure";
const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

const PAGE_CLUSTER: &str = "/proc/sys/vm/page-cluster";
const LEASE_BREAK: &str = "/proc/sys/fs/lease-break-time";
const FRAGMENTATION: &str = "/proc/sys/vm/extfrag_threshold";

/// A preset of a study's own, over a file that no other test changes.
fn own_preset(name: &str, path: &str, takes: &str) -> String {
    format!(
        "[preset.{name}]\ntitle = \"{name}\"\n[[preset.{name}.file]]\npaths = [\"{path}\"]\ntakes = \"{takes}\"\n"
    )
}

fn read_value(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

/// What the workload printed in the first slots of the newest run.
fn printed(laboratory: &Sandbox, slots: usize) -> String {
    let of_slot =
        |slot: usize| laboratory.run_successfully(&["show", "@latest", "--output", &slot.to_string()]).out;
    (0..slots).map(of_slot).collect()
}

#[test]
fn presets_and_fixed_settings_are_in_force_while_a_study_runs_root() {
    if !is_root() {
        return skip_test(
            "presets_and_fixed_settings_are_in_force_while_a_study_runs_root",
            "settings need root",
        );
    }
    let laboratory = Sandbox::new();
    let before = [CACHE_PRESSURE, THP].map(read_value);
    laboratory.write_workload("looks", "", &format!("cat {CACHE_PRESSURE} {THP}; echo speed 1"));
    let study = laboratory.write_study(
        "presets.toml",
        &format!(
            "run = {{ iterations = 2, warmup = 0 }}\n{}[workload.looks]\n[settings]\npressure = \"87%\"\n\
             [factor.pages]\nkind = \"setting\"\nkey = \"thp\"\nlevels = [\"never\", \"always\"]\n",
            own_preset("pressure", CACHE_PRESSURE, "percent")
        ),
    );
    let ran = laboratory.run(&["run", &study]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let seen = printed(&laboratory, 4);
    let pressures = seen.lines().filter(|line| *line == "87").count();
    let words = ["[never]", "[always]"].map(|word| seen.lines().filter(|line| line.contains(word)).count());
    assert_eq!((pressures, words), (4, [2, 2]), "{seen}");
    assert_eq!([CACHE_PRESSURE, THP].map(read_value), before);
}

#[test]
fn a_preset_that_is_not_there_or_takes_no_such_level_is_refused_with_its_place() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("echo", "", "echo speed 1");
    let check = |text: &str| {
        let study = laboratory.write_study("bad.toml", &format!("[workload.echo]\n{text}"));
        let told = laboratory.run(&["study", "check", &study]);
        assert_eq!(told.code, Some(2), "{text}: {}", told.err);
        told.stable_err()
    };
    let both = "[settings]\nthp = \"never\"\n[factor.f]\nkind = \"file\"\n\
                key = \"/sys/kernel/mm/transparent_hugepage/enabled\"\nlevels = [\"never\", \"always\"]\n";
    let wrong = [
        "[settings]\ngovenor = \"performance\"\n",
        "[settings]\nswappiness = \"many\"\n",
        "[factor.f]\nkind = \"setting\"\nkey = \"thp\"\nlevels = [\"nevr\", \"always\"]\n",
        both,
        "[settings]\nhugetlb = 1\nhugetlb-node = 2\n",
    ];
    insta::assert_snapshot!(wrong.map(check).concat(), @"
    error: /tmp/.TMP/bad.toml:4:1: `settings.govenor`: there is no preset `govenor`; did you mean `governor`?
    error: /tmp/.TMP/bad.toml:4:1: `settings.swappiness`: `swappiness` does not take `many`; it takes a whole number from 0 to 200
    error: /tmp/.TMP/bad.toml:6:11: `factor.f.levels[0]`: factor `f`: thp: /sys/kernel/mm/transparent_hugepage/enabled does not offer `nevr`; did you mean `never`?
    error: /tmp/.TMP/bad.toml:7:1: `factor.f.key`: `settings.thp` and factor `f` write to one file, /sys/kernel/mm/transparent_hugepage/enabled; make one factor of them, or leave one out
    error: /tmp/.TMP/bad.toml:5:1: `settings.hugetlb-node`: `hugetlb-node` needs a part; write `hugetlb-node:PART`, where the part is a node of /sys/devices/system/node, such as node0
    ");
}

#[test]
fn what_somebody_else_changes_during_an_iteration_is_told_on_it_and_set_again_root() {
    if !is_root() {
        return skip_test(
            "what_somebody_else_changes_during_an_iteration_is_told_on_it_and_set_again_root",
            "settings need root",
        );
    }
    let laboratory = Sandbox::new();
    let before = read_value(PAGE_CLUSTER);
    // The second iteration meets somebody who changes it: another process, which the workload only starts.
    let mark = laboratory.path("mark");
    laboratory.write_workload(
        "meets",
        "",
        &format!(
            "cat {PAGE_CLUSTER}; echo >> {0}; if [ $(wc -l < {0}) = 2 ]; then sh -c 'echo 2 > {PAGE_CLUSTER}'; fi; echo speed 1",
            mark.display()
        ),
    );
    let study = laboratory.write_study(
        "somebody.toml",
        "run = { iterations = 4, warmup = 0 }\n[workload.meets]\n[factor.p]\nkind = \"sysctl\"\n\
         key = \"vm.page-cluster\"\nlevels = [4]\n",
    );
    let ran = laboratory.run(&["run", &study]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let seen = printed(&laboratory, 4);
    assert_eq!(
        seen.lines().filter(|line| *line == "4").count(),
        4,
        "each began under what was asked for: {seen}"
    );
    let journal = fs::read_to_string(laboratory.only_run().join("journal.jsonl")).unwrap();
    let found: Vec<Json> = journal
        .lines()
        .filter_map(|line| {
            serde_json::from_str::<Json>(line).ok()?["what"].get("setting-overwritten").cloned()
        })
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (&found[0]["slot"], &found[0]["set"], &found[0]["found"]),
        (&1.into(), &"4".into(), &"2".into())
    );
    let compared = laboratory.run_json(&["compare", "@latest", "@latest"]);
    let warnings = compared["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["kind"] == "overwritten-settings"), "{compared}");
    assert_eq!(read_value(PAGE_CLUSTER), before);
}

#[test]
fn a_preset_is_put_back_after_kill_9_root() {
    if !is_root() {
        return skip_test("a_preset_is_put_back_after_kill_9_root", "settings need root");
    }
    let laboratory = Sandbox::new();
    let (before, begun) = (read_value(LEASE_BREAK), laboratory.path("begun"));
    laboratory.write_workload("long", "", &format!("touch {}; exec sleep 600", begun.display()));
    let study = laboratory.write_study(
        "long.toml",
        &format!(
            "run = {{ iterations = 1, warmup = 0 }}\n{}[workload.long]\n[settings]\nlease = 41\n",
            own_preset("lease", LEASE_BREAK, "number")
        ),
    );
    let mut run = laboratory.command(&["run", &study]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| begun.exists());
    assert_eq!(read_value(LEASE_BREAK), "41");
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    let undone = laboratory.run(&["undo"]);
    assert_eq!((undone.code, read_value(LEASE_BREAK)), (Some(0), before), "{}", undone.err);
}

#[test]
fn the_schedulers_of_the_studys_own_disks_are_levels_root() {
    let test = "the_schedulers_of_the_studys_own_disks_are_levels_root";
    if !is_root() || !Path::new("/dev/loop-control").exists() {
        return skip_test(test, "images need root and loop devices");
    }
    let laboratory = Sandbox::new();
    laboratory.write_workload(
        "looks",
        "[needs]\nscratch = true\n",
        "d=$(basename $(findmnt -n -o SOURCE -T .)); cat /sys/block/$d/queue/scheduler; echo speed 1",
    );
    let factor = "[factor.scheduler]\nkind = \"setting\"\nkey = \"io-scheduler\"\nlevels = [\"none\", \"mq-deadline\"]\n";
    let disk = "[disk]\nkind = \"image\"\nsize = \"64MiB\"\nfilesystem = \"ext4\"\n";
    let varied = "[factor.fs]\nkind = \"disk\"\nkey = \"filesystem\"\nlevels = [\"ext4\"]\n";
    for (more, iterations) in [("", 2), (varied, 1)] {
        let study = laboratory.write_study(
            "disk.toml",
            &format!(
                "run = {{ iterations = {iterations}, warmup = 0 }}\n[workload.looks]\n{disk}{factor}{more}"
            ),
        );
        let ran = laboratory.run(&["run", &study]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
        let seen = printed(&laboratory, 2 * iterations);
        let count = |word: &str| seen.lines().filter(|line| line.contains(word)).count();
        assert_eq!([count("[none]"), count("[mq-deadline]")], [iterations; 2], "{seen}");
    }
}

#[test]
fn presets_are_listed_with_what_is_in_force_here() {
    let laboratory = Sandbox::new();
    let listed = laboratory.run(&["setting", "list", "--format", "json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.err);
    let rows: Json = serde_json::from_str(&listed.out).unwrap();
    let rows = rows.as_array().unwrap();
    let swappiness = rows.iter().find(|row| row["setting"] == "swappiness").unwrap();
    assert_eq!(
        swappiness["here"].as_str().unwrap().split(';').next().unwrap(),
        read_value("/proc/sys/vm/swappiness")
    );
    for name in ["thp", "governor", "io-scheduler", "hugetlb:1GiB", "cpus-online"] {
        let shown = laboratory.run(&["setting", "show", name, "--format", "json"]);
        assert_eq!(shown.code, Some(0), "{name}: {}", shown.err);
        assert!(serde_json::from_str::<Json>(&shown.out).unwrap()["facts"].is_object());
    }
    assert_eq!(laboratory.run(&["setting", "show", "govenor"]).code, Some(2));
}

#[test]
fn a_tuned_machine_stays_so_until_it_is_put_back_and_runs_put_back_what_was_tuned_root() {
    let test = "a_tuned_machine_stays_so_until_it_is_put_back_and_runs_put_back_what_was_tuned_root";
    if !is_root() {
        return skip_test(test, "settings need root");
    }
    let laboratory = Sandbox::new();
    let before = read_value(FRAGMENTATION);
    let preset = laboratory.path("fragmentation.toml");
    fs::write(
        &preset,
        format!("title = \"t\"\n[[file]]\npaths = [\"{FRAGMENTATION}\"]\ntakes = \"number\"\n"),
    )
    .unwrap();
    let word = |level: u32| format!("{}={level}", preset.display());
    let shown = laboratory.run_successfully(&["tune", &word(311)]);
    assert_eq!(read_value(FRAGMENTATION), before, "{}", shown.err);
    laboratory.run_successfully(&["tune", "--apply", &word(311)]);
    assert_eq!(read_value(FRAGMENTATION), "311");
    laboratory.run_successfully(&["tune", "--apply", &word(312)]);
    laboratory.run_successfully(&["undo"]);
    assert_eq!(read_value(FRAGMENTATION), "312", "a start of perflab leaves it alone");
    laboratory.write_workload("looks", "", &format!("cat {FRAGMENTATION}; echo speed 1"));
    let study = laboratory.write_study(
        "tuned.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.looks]\n[factor.f]\nkind = \"sysctl\"\n\
         key = \"vm.extfrag_threshold\"\nlevels = [313]\n",
    );
    laboratory.run_successfully(&["run", &study]);
    assert_eq!(printed(&laboratory, 1).lines().next(), Some("313"));
    assert_eq!(read_value(FRAGMENTATION), "312");
    // One that is refused takes none with it.
    let refused = laboratory.run(&["tune", "--apply", &word(314), "swappiness=100000"]);
    assert!(refused.code.is_some_and(|code| code != 0), "{}", refused.err);
    laboratory.run_successfully(&["tune", "--undo"]);
    assert_eq!(read_value(FRAGMENTATION), before);
    assert_eq!(laboratory.run(&["tune", "--apply", "compact-memory=yes"]).code, Some(2));
    assert_eq!(laboratory.run(&["tune", "thp"]).code, Some(2), "it has no quiet level");
}

#[test]
fn what_a_run_has_set_is_not_tuned_meanwhile_root() {
    if !is_root() {
        return skip_test("what_a_run_has_set_is_not_tuned_meanwhile_root", "settings need root");
    }
    let laboratory = Sandbox::new();
    let path = "/proc/sys/kernel/printk_ratelimit";
    let (before, begun, preset) =
        (read_value(path), laboratory.path("begun"), laboratory.path("ratelimit.toml"));
    fs::write(&preset, format!("title = \"t\"\n[[file]]\npaths = [\"{path}\"]\ntakes = \"number\"\n"))
        .unwrap();
    laboratory.write_workload("long", "", &format!("touch {}; exec sleep 600", begun.display()));
    let study = laboratory.write_study(
        "long.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.long]\n[factor.f]\nkind = \"sysctl\"\n\
         key = \"kernel.printk_ratelimit\"\nlevels = [7]\n",
    );
    let mut run = laboratory.command(&["run", &study]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| begun.exists());
    let refused = laboratory.run(&["tune", "--apply", &format!("{}=8", preset.display())]);
    let held = read_value(path);
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    laboratory.run(&["undo"]);
    assert_eq!((refused.code, held.as_str(), read_value(path)), (Some(2), "7", before), "{}", refused.err);
}

/// A pair of network devices, gone when dropped.
struct VethPair(String);

impl VethPair {
    fn add(letter: char) -> Self {
        let name = format!("pl{}{letter}", std::process::id() % 1_000_000);
        run_program("ip", &["link", "add", &name, "type", "veth", "peer", "name", &format!("{name}2")]);
        VethPair(name)
    }

    fn mtu(&self) -> String {
        read_value(&format!("/sys/class/net/{}/mtu", self.0))
    }
}

impl Drop for VethPair {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "del", &self.0]).status();
    }
}

fn run_program(name: &str, arguments: &[&str]) {
    assert!(Command::new(name).args(arguments).status().unwrap().success(), "{name} {arguments:?}");
}

#[test]
fn what_somebody_set_after_a_kill_is_left_and_is_said_to_be_root() {
    let test = "what_somebody_set_after_a_kill_is_left_and_is_said_to_be_root";
    if !is_root() {
        return skip_test(test, "settings need root");
    }
    let (laboratory, device) = (Sandbox::new(), VethPair::add('k'));
    let begun = laboratory.path("begun");
    laboratory.write_workload("long", "", &format!("touch {}; exec sleep 600", begun.display()));
    let study = laboratory.write_study(
        "long.toml",
        &format!(
            "run = {{ iterations = 1, warmup = 0 }}\n[workload.long]\n[settings]\n\"mtu:{0}\" = 1400\n\
             \"tx-queue-length:{0}\" = 77\n",
            device.0
        ),
    );
    let mut run = laboratory.command(&["run", &study]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| begun.exists());
    assert_eq!(device.mtu(), "1400");
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    run_program("ip", &["link", "set", &device.0, "mtu", "1300"]);
    let undone = laboratory.run_json(&["undo"]);
    let count = |what: &str| undone["runs"][0][what].as_array().unwrap().len();
    assert_eq!([count("undone"), count("left"), count("failed")], [1, 1, 0], "{undone}");
    assert_eq!(device.mtu(), "1300");
}

#[test]
fn a_queue_discipline_of_somebody_else_is_not_taken_for_the_default_root() {
    let test = "a_queue_discipline_of_somebody_else_is_not_taken_for_the_default_root";
    if !is_root() {
        return skip_test(test, "settings need root");
    }
    let (laboratory, device) = (Sandbox::new(), VethPair::add('d'));
    let word = format!("queue-discipline:{}=default", device.0);
    let tune = || laboratory.run(&["tune", "--apply", &word]).code;
    assert_eq!(tune(), Some(0));
    run_program("tc", &["qdisc", "replace", "dev", &device.0, "root", "handle", "1:", "pfifo", "limit", "9"]);
    assert_eq!(tune(), Some(3));
}

/// What the workload's own group of a controller holds, in version 1 or 2.
const OWN_GROUP: &str = r#"
g() { d=$(sed -n "s/^[0-9]*:$1://p" /proc/self/cgroup); if [ -n "$d" ]; then cat "/sys/fs/cgroup/$1$d/$2";
      else cat "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/$3"; fi; }
"#;

/// Folders of control groups that perflab made.
fn own_groups() -> Vec<std::path::PathBuf> {
    let is_own =
        |path: &Path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("perflab-01"));
    let mut found = Vec::new();
    let mut left = vec![Path::new("/sys/fs/cgroup").to_owned()];
    while let Some(folder) = left.pop() {
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(folders.map(|entry| entry.path()));
        found.extend(Some(folder).filter(|folder| is_own(folder)));
    }
    found
}

#[test]
fn the_workload_and_not_perflab_is_limited_by_a_control_group_also_after_kill_9_root() {
    let test = "the_workload_and_not_perflab_is_limited_by_a_control_group_also_after_kill_9_root";
    let laboratory = Sandbox::new();
    let shown = laboratory.run_json(&["setting", "show", "cpu-max"]);
    if !is_root() || shown["facts"]["in force"].is_null() && !Path::new("/sys/fs/cgroup/cpu").exists() {
        return skip_test(test, "needs root and the controllers");
    }
    laboratory.write_workload(
        "looks",
        "",
        &format!(
            "{OWN_GROUP} g cpu cpu.cfs_quota_us cpu.max; g pids pids.max pids.max; g memory memory.limit_in_bytes memory.max\n\
             i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; g cpu cpu.stat cpu.stat; echo speed 1"
        ),
    );
    let study = laboratory.write_study(
        "groups.toml",
        "run = { iterations = 2, warmup = 0, order = \"sequential\" }\n[workload.looks]\n[settings]\npids-max = 77\n\
         memory-max = \"64MiB\"\n[factor.cpus]\nkind = \"setting\"\nkey = \"cpu-max\"\nlevels = [\"10%\", \"none\"]\n",
    );
    let ran = laboratory.run(&["run", &study]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let seen = printed(&laboratory, 4);
    let count = |line: &str| {
        seen.lines().filter(|found| *found == line || found.starts_with(&format!("{line} "))).count()
    };
    assert_eq!((count("77"), count("67108864"), count("10000")), (4, 4, 2), "{seen}");
    let throttled = |line: &&str| line.strip_prefix("nr_throttled ").is_some_and(|count| count != "0");
    assert!(seen.lines().filter(throttled).count() >= 2, "{seen}");

    let begun = laboratory.path("begun");
    laboratory.write_workload("long", "", &format!("touch {}; exec sleep 600", begun.display()));
    let study = laboratory.write_study(
        "long.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.long]\n[settings]\ncpu-max = \"50%\"\n",
    );
    let mut run = laboratory.command(&["run", &study]);
    let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| begun.exists());
    let held = own_groups();
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    let undone = laboratory.run(&["undo"]);
    let gone = held.iter().filter(|group| !group.exists()).count();
    assert!(undone.code == Some(0) && gone > 0, "{held:?} {}", undone.err);
    assert_eq!(laboratory.run(&["tune", "--apply", "cpu-max=50%"]).code, Some(2), "it is of a run");
}
