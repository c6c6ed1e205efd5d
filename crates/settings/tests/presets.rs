//! Presets on this machine's kernel, and on trees of machines that we do not have.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use perflab_model::{PresetLevel, PresetName, Setting};
use perflab_observe::{NetworkOffload, Root};
use perflab_settings::{
    AppliedSettings, OverwritingCause, PresetFileState, PresetList, RecoveredRun, SettingError, SettingSite,
    StudyDisk, UndoJournal, UndoneSettings, find_preset_refusal, read_preset, recover_killed_runs,
};

fn level(name: &str, level: &str) -> PresetLevel {
    PresetLevel::new(name, PresetList::shipped().get(name).unwrap(), level).unwrap()
}

fn preset_setting(name: &str, value: &str) -> Setting {
    Setting::Preset(Box::new(level(name, value)))
}

fn new_applied_settings(home: &Path, root: &Root) -> AppliedSettings {
    AppliedSettings::new(UndoJournal::new(&home.join("state"), "R1", "boot")).with_root(root.clone())
}

fn read_state(name: &str, root: &Root) -> Vec<PresetFileState> {
    let preset = PresetList::shipped().get(name).unwrap();
    let part = level_part(name);
    read_preset(name, preset, part.as_deref(), root).unwrap()
}

/// What stands for `{part}`: any level has it.
fn level_part(name: &str) -> Option<String> {
    let preset = PresetList::shipped().get(name).unwrap();
    let part = PresetName::new(name).part.or(preset.part.as_ref()?.default.as_deref())?;
    Some(preset.part.as_ref()?.words.get(part).map_or(part, String::as_str).to_owned())
}

fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("SKIP {test}: needs root");
    }
    root
}

/// Presets that change nothing which others on the machine would feel, with two levels each.
const TRIED: &[(&str, [&str; 2])] = &[
    ("thp", ["never", "always"]),
    ("thp-defrag", ["never", "defer"]),
    ("thp-shmem", ["advise", "within_size"]),
    ("thp-size:64KiB", ["inherit", "never"]),
    ("khugepaged:scan_sleep_millisecs", ["20000", "30000"]),
    ("hugetlb", ["3", "5"]),
    ("hugetlb-node:node0", ["2", "4"]),
    ("swappiness", ["1", "77"]),
    ("numa-balancing", ["on", "off"]),
    ("dirty", ["256MiB", "7%"]),
    ("dirty-background", ["5%", "64MiB"]),
    ("aslr", ["partly", "on"]),
    ("ksm", ["on", "unmerge"]),
    ("ksm:pages_to_scan", ["50", "60"]),
    ("zswap", ["on", "off"]),
    ("zswap:max_pool_percent", ["11", "12"]),
    ("overcommit", ["always", "guess"]),
    ("min-free", ["32MiB", "33MiB"]),
    ("watermark-scale", ["11", "12"]),
    ("watermark-boost", ["14000", "0"]),
    ("compaction-proactiveness", ["21", "22"]),
    ("autogroup", ["off", "on"]),
    ("zone-reclaim", ["on", "off"]),
    ("sched-base-slice", ["3100000", "3200000"]),
    ("sched-features", ["+NEXT_BUDDY", "-NEXT_BUDDY"]),
    ("preempt", ["full", "voluntary"]),
    ("lru-gen", ["on", "off"]),
    ("idle-state:state1", ["off", "on"]),
    ("watchdog", ["off", "on"]),
    ("tcp-congestion", ["reno", "cubic"]),
    ("default-qdisc", ["pfifo", "pfifo_fast"]),
    ("busy-poll", ["50us", "60us"]),
    ("busy-poll:read", ["40us", "70us"]),
];

#[test]
fn presets_of_this_kernel_are_set_read_back_and_put_back_root() {
    if !is_root("presets_of_this_kernel_are_set_read_back_and_put_back_root") {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    let mut set = 0;
    for (name, levels) in TRIED {
        let site = SettingSite { root: &root, disk: None };
        if let Some(refusal) = levels.iter().find_map(|one| find_preset_refusal(&level(name, one), site)) {
            println!("SKIP {name}: {refusal}");
            continue;
        }
        let before = read_state(name, &root);
        let mut applied = new_applied_settings(home.path(), &root);
        for value in levels {
            applied
                .apply(&[preset_setting(name, value)])
                .unwrap_or_else(|error| panic!("{name}={value}: {error:?}"));
            assert!(applied.find_overwritten().is_empty(), "{name}={value} is what was set");
        }
        let held = read_state(name, &root);
        let is_words = name.starts_with("sched-features");
        assert!(
            is_words
                || held.iter().any(|file| file.level.as_deref() == Some(levels[1]))
                || name.starts_with("dirty"),
            "{name}: {held:?}"
        );
        let failed = applied.undo_all().failed;
        assert_eq!((read_state(name, &root), failed.len()), (before, 0), "{name}: {failed:?}");
        set += 1;
    }
    println!("{set} of {} presets are here", TRIED.len());
    assert!(set >= 10);
}

#[test]
fn fewer_huge_pages_than_were_asked_for_are_recorded_as_what_they_are_root() {
    if !is_root("fewer_huge_pages_than_were_asked_for_are_recorded_as_what_they_are_root") {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    let site = SettingSite { root: &root, disk: None };
    if find_preset_refusal(&level("hugetlb:1GiB", "1"), site).is_some() {
        println!("SKIP: no pages of 1 GiB");
        return;
    }
    let before = read_state("hugetlb:1GiB", &root);
    let mut applied = new_applied_settings(home.path(), &root);
    // More than any machine of ours has.
    let asked = applied.apply(&[preset_setting("hugetlb:1GiB", "100000")]);
    let got: u64 = read_state("hugetlb:1GiB", &root)[0].value.as_ref().unwrap().parse().unwrap();
    match asked {
        Ok(changes) => {
            assert_eq!(changes[0].asked.as_deref(), Some("100000"));
            assert_eq!(changes[0].to, got.to_string());
        }
        Err(error) => assert!(got == 0 && matches!(error, SettingError::ValueIgnored { .. }), "{error}"),
    }
    let failed = applied.undo_all().failed;
    assert_eq!((read_state("hugetlb:1GiB", &root), failed.len()), (before, 0), "{failed:?}");
}

/// A loop device over a file, detached when dropped.
struct LoopDisk(String);

impl LoopDisk {
    fn attach(folder: &Path) -> Option<Self> {
        let image = folder.join("image");
        fs::File::create(&image).unwrap().set_len(32 << 20).unwrap();
        let output = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().ok()?;
        let device = String::from_utf8(output.stdout).ok()?;
        device.trim().strip_prefix("/dev/").map(|name| LoopDisk(name.to_owned()))
    }

    fn value(&self, file: &str) -> String {
        fs::read_to_string(format!("/sys/block/{}/queue/{file}", self.0)).unwrap().trim().to_owned()
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.0)]).status();
    }
}

#[test]
fn the_studys_own_disk_gets_its_scheduler_depth_and_read_ahead_root() {
    if !is_root("the_studys_own_disk_gets_its_scheduler_depth_and_read_ahead_root") {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    let Some(disk) = LoopDisk::attach(home.path()) else {
        println!("SKIP: no loop device");
        return;
    };
    let all = || ["scheduler", "nr_requests", "read_ahead_kb", "wbt_lat_usec"].map(|file| disk.value(file));
    let before = all();
    let mut applied = new_applied_settings(home.path(), &root);
    let unknown = applied.apply(&[preset_setting("io-scheduler", "none")]).unwrap_err();
    assert!(matches!(unknown, SettingError::Refused(_)), "no disk is the study's yet: {unknown}");
    let own = StudyDisk { name: disk.0.clone(), under: None, read_ahead: None };
    applied.set_study_disk(Some(own));
    let other = if before[0].contains("[none]") { "mq-deadline" } else { "none" };
    applied.apply(&[preset_setting("io-scheduler", other)]).unwrap();
    applied.apply(&[preset_setting("nr-requests", "64"), preset_setting("read-ahead", "64KiB")]).unwrap();
    assert!(disk.value("scheduler").contains(&format!("[{other}]")));
    assert_eq!((disk.value("nr_requests").as_str(), disk.value("read_ahead_kb").as_str()), ("64", "64"));
    assert!(applied.apply(&[preset_setting("io-scheduler", "cfq")]).is_err());
    let failed = applied.undo_all().failed;
    assert_eq!((all(), failed.len()), (before, 0), "{failed:?}");
}

/// A pair of network devices, gone when dropped.
struct VethPair(String);

impl VethPair {
    fn add(letter: char) -> Self {
        let name = format!("pf{}{letter}", std::process::id());
        let peer = format!("{name}2");
        run_ip(&["link", "add", &name, "type", "veth", "peer", "name", &peer]);
        [&name, &peer].iter().for_each(|name| run_ip(&["link", "set", name, "up"]));
        VethPair(name)
    }
}

impl Drop for VethPair {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "del", &self.0]).status();
    }
}

fn run_ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).status().unwrap().success(), "ip {arguments:?}");
}

fn run_tc(arguments: &[&str]) {
    assert!(Command::new("tc").args(arguments).status().unwrap().success(), "tc {arguments:?}");
}

fn list_discipline(device: &str) -> String {
    let output = Command::new("tc").args(["qdisc", "show", "dev", device, "root"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn network_devices_are_set_and_put_back_root() {
    if !is_root("network_devices_are_set_and_put_back_root") {
        return;
    }
    let (home, root, device) = (tempfile::tempdir().unwrap(), Root::host(), VethPair::add('n'));
    let named = |preset: &str| format!("{preset}:{}", device.0);
    for (preset, levels) in [
        ("mtu", ["1400", "9000"]),
        ("tx-queue-length", ["500", "2000"]),
        ("napi-defer", ["2", "3"]),
        ("gro-flush-timeout", ["20us", "50000ns"]),
    ] {
        let name = named(preset);
        let before = read_state(&name, &root);
        let mut applied = new_applied_settings(home.path(), &root);
        for value in levels {
            applied.apply(&[preset_setting(&name, value)]).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(applied.find_overwritten().is_empty(), "{name}={value}");
        }
        let held = read_state(&name, &root)[0].level.clone().unwrap();
        assert_eq!(held, levels[1], "{name}");
        let failed = applied.undo_all().failed;
        assert_eq!((read_state(&name, &root), failed.len()), (before, 0), "{name}: {failed:?}");
    }
}

#[test]
fn a_queue_discipline_is_made_read_back_and_removed_and_nobody_elses_is_touched_root() {
    if !is_root("a_queue_discipline_is_made_read_back_and_removed_and_nobody_elses_is_touched_root") {
        return;
    }
    let (home, root, device) = (tempfile::tempdir().unwrap(), Root::host(), VethPair::add('q'));
    let name = format!("queue-discipline:{}", device.0);
    let before = list_discipline(&device.0);
    let mut applied = new_applied_settings(home.path(), &root);
    assert!(applied.apply(&[preset_setting(&name, "default")]).unwrap().is_empty());
    let tbf = "tbf rate 100mbit burst 32kbit latency 400ms";
    let changes = applied.apply(&[preset_setting(&name, tbf)]).unwrap();
    assert!(changes[0].to.starts_with("tbf rate 100Mbit"), "{changes:?}");
    assert!(applied.apply(&[preset_setting(&name, tbf)]).unwrap().is_empty(), "it is in force");
    let mut second = new_applied_settings(&home.path().join("second"), &root);
    let refused = second.apply(&[preset_setting(&name, "pfifo")]).unwrap_err();
    assert!(matches!(refused, SettingError::Refused(_)), "another run has it: {refused}");
    applied.apply(&[preset_setting(&name, "pfifo limit 7")]).unwrap();
    assert!(list_discipline(&device.0).contains("limit 7p") && applied.find_overwritten().is_empty());

    // One that this kernel has not leaves none of ours, and the next level is set.
    assert!(applied.apply(&[preset_setting(&name, "nothingofthekind")]).is_err());
    assert_eq!(list_discipline(&device.0), before);
    applied.apply(&[preset_setting(&name, "pfifo limit 8")]).unwrap();

    // Somebody else's is told, and left.
    run_tc(&["qdisc", "replace", "dev", &device.0, "root", "handle", "1:", "pfifo", "limit", "9"]);
    assert_eq!(applied.find_overwritten().len(), 1);
    assert!(matches!(
        applied.apply(&[preset_setting(&name, "pfifo limit 8")]),
        Err(SettingError::Refused(_))
    ));
    assert_eq!(applied.undo_all().failed.len(), 0);
    assert!(list_discipline(&device.0).contains("limit 9p"));
    run_tc(&["qdisc", "del", "dev", &device.0, "root"]);

    // What a killed run left goes, and so may its device.
    let mut killed = new_applied_settings(&home.path().join("killed"), &root);
    killed.apply(&[preset_setting(&name, "pfifo limit 5")]).unwrap();
    let UndoneSettings { undone, failed, .. } = killed.undo_all();
    assert_eq!((undone.len(), failed.len()), (1, 0), "{undone:?} {failed:?}");
    assert_eq!(list_discipline(&device.0), before);
    let mut gone = new_applied_settings(&home.path().join("gone"), &root);
    gone.apply(&[preset_setting(&name, "pfifo limit 5")]).unwrap();
    drop(device);
    assert_eq!(gone.undo_all().failed.len(), 0);
}

#[test]
fn a_wakeup_latency_is_held_and_goes_with_the_run_root() {
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    if !is_root("a_wakeup_latency_is_held_and_goes_with_the_run_root")
        || !Path::new("/dev/cpu_dma_latency").exists()
    {
        return;
    }
    let before = read_state("idle", &root);
    let mut applied = new_applied_settings(home.path(), &root);
    let changes = applied.apply(&[preset_setting("idle", "7us")]).unwrap();
    assert_eq!((changes[0].from.as_str(), changes[0].to.as_str()), ("any", "7us"));
    assert_eq!(read_state("idle", &root)[0].level.as_deref(), Some("7us"));
    applied.apply(&[preset_setting("idle", "9us")]).unwrap();
    assert_eq!(read_state("idle", &root)[0].level.as_deref(), Some("9us"));
    assert!(applied.find_overwritten().is_empty());
    let mut second = new_applied_settings(&home.path().join("second"), &root);
    second.apply(&[preset_setting("idle", "3us")]).unwrap();
    assert_eq!(applied.find_overwritten().len(), 1, "somebody asks for less");
    assert_eq!(second.undo_all().failed.len(), 0);
    assert_eq!(applied.undo_all().failed.len(), 0);
    // A request outlasts its drop in a child that another test is just starting.
    let until = Instant::now() + Duration::from_secs(10);
    while read_state("idle", &root) != before && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(read_state("idle", &root), before);
}

/// A tree as the kernel has it, in a folder.
fn make_tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let home = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }
    let root = Root(home.path().join("root"));
    (home, root)
}

/// The files of a machine that presets are about: see `fixtures/PROVENANCE`.
fn written_tree(name: &str) -> (tempfile::TempDir, Root) {
    let text =
        fs::read_to_string(format!("{}/tests/fixtures/{name}.txt", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let files: Vec<(String, String)> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(path, value)| (format!("root{path}"), value.trim().to_owned()))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    make_tree(&files)
}

fn held(root: &Root, path: &str) -> String {
    fs::read_to_string(root.path(path)).unwrap().trim().to_owned()
}

fn all_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(all_files(&path))
        } else {
            let text = fs::read_to_string(&path).unwrap().trim().to_owned();
            found.push((path, text));
        }
    }
    found.sort();
    found
}

#[test]
fn every_policy_of_a_laptop_gets_the_governor_and_its_own_back() {
    let (home, root) = written_tree("written-intel-pstate");
    let before = all_files(&root.0);
    let mut applied = new_applied_settings(home.path(), &root);
    let changes = applied
        .apply(&[
            preset_setting("governor", "performance"),
            preset_setting("boost", "off"),
            preset_setting("energy-preference:policy1", "power"),
        ])
        .unwrap();
    assert_eq!(changes.len(), 3);
    assert_eq!((changes[0].setting.as_str(), changes[0].from.as_str()), ("governor", "powersave"));
    let policy = |number: u32, file: &str| {
        held(&root, &format!("/sys/devices/system/cpu/cpufreq/policy{number}/{file}"))
    };
    assert_eq!([0, 1, 2, 3].map(|number| policy(number, "scaling_governor")), ["performance"; 4]);
    assert_eq!(held(&root, "/sys/devices/system/cpu/intel_pstate/no_turbo"), "1");
    assert_ne!(policy(0, "energy_performance_preference"), "power");
    // A daemon changes one of them back.
    fs::write(root.path("/sys/devices/system/cpu/cpufreq/policy2/scaling_governor"), "powersave\n").unwrap();
    let found = applied.find_overwritten();
    assert_eq!((found.len(), found[0].found.as_str()), (1, "powersave"));
    assert!(applied.find_overwritten().is_empty(), "it is told once");
    assert_eq!(
        applied.apply(&[preset_setting("governor", "performance")]).unwrap().len(),
        1,
        "and set again"
    );
    assert_eq!(policy(2, "scaling_governor"), "performance");
    let refused = applied.apply(&[preset_setting("governor", "ondemand")]).unwrap_err();
    assert!(matches!(refused, SettingError::Refused(_)), "{refused}");
    let UndoneSettings { undone, failed, .. } = applied.undo_all();
    assert_eq!((undone.len(), failed.len()), (6, 0), "{undone:?} {failed:?}");
    assert_eq!(all_files(&root.0), before);
}

#[test]
fn presets_of_other_machines_are_set_and_put_back_on_their_trees() {
    let (home, root) = written_tree("written-others");
    let before = all_files(&root.0);
    let mut applied = new_applied_settings(home.path(), &root);
    for (name, value, file, text) in [
        ("smt", "off", "/sys/devices/system/cpu/smt/control", "off"),
        ("lru-gen", "off", "/sys/kernel/mm/lru_gen/enabled", "0x0000"),
        ("damon-reclaim", "on", "/sys/module/damon_reclaim/parameters/enabled", "Y"),
        ("damon-reclaim:min_age", "5", "/sys/module/damon_reclaim/parameters/min_age", "5"),
        ("preempt", "voluntary", "/sys/kernel/debug/sched/preempt", "voluntary"),
        ("sched-base-slice", "4000000", "/sys/kernel/debug/sched/base_slice_ns", "4000000"),
    ] {
        applied.apply(&[preset_setting(name, value)]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(held(&root, file), text, "{name}");
    }
    assert_eq!(read_state("lru-gen", &root)[0].level.as_deref(), Some("off"));
    assert_eq!(applied.undo_all().failed.len(), 0);
    let word = |text: &str| text.replace("none voluntary (full) lazy", "full");
    let before: Vec<_> = before.into_iter().map(|(path, text)| (path, word(&text))).collect();
    assert_eq!(all_files(&root.0), before);
}

#[test]
fn a_frequency_is_both_limits() {
    let (home, root) = written_tree("written-intel-pstate");
    let before = all_files(&root.0);
    let mut applied = new_applied_settings(home.path(), &root);
    applied.apply(&[preset_setting("frequency:policy0", "1.2GHz")]).unwrap();
    let policy = "/sys/devices/system/cpu/cpufreq/policy0";
    let limits =
        ["scaling_min_freq", "scaling_max_freq"].map(|file| held(&root, &format!("{policy}/{file}")));
    assert_eq!(limits, ["1200000", "1200000"]);
    assert_eq!(applied.undo_all().failed.len(), 0);
    assert_eq!(all_files(&root.0), before);
}

#[test]
fn threads_that_poll_are_a_word() {
    let (home, root) = make_tree(&[("root/sys/class/net/eth0/threaded", "0")]);
    let mut applied = new_applied_settings(home.path(), &root);
    applied.apply(&[preset_setting("napi-threaded:eth0", "on")]).unwrap();
    assert_eq!(held(&root, "/sys/class/net/eth0/threaded"), "1");
    assert_eq!(applied.undo_all().failed.len(), 0);
    assert_eq!(held(&root, "/sys/class/net/eth0/threaded"), "0");
}

#[test]
fn what_a_machine_lacks_is_told_with_its_reason() {
    let (_home, root) = make_tree(&[("root/proc/sys/vm/swappiness", "60")]);
    let site = SettingSite { root: &root, disk: None };
    let told =
        |name: &str, value: &str| find_preset_refusal(&level(name, value), site).map(|told| told.to_string());
    insta::assert_snapshot!(
        [told("governor", "performance"), told("lru-gen", "on"), told("cpus-online", "3"), told("preempt", "full"), told("swappiness", "1")]
            .map(|text| text.unwrap_or_else(|| "fine".into()))
            .join("\n")
            .replace(&root.0.display().to_string(), ""),
        @r#"
governor: this machine lacks a driver of CPU frequencies, which most virtual machines lack, or its kernel CONFIG_CPU_FREQ; leave it out on this machine
lru-gen: this kernel seems to be built without CONFIG_LRU_GEN; leave it out on this machine
cpus-online: 3 CPUs are asked for, and there are 0; give fewer
preempt: debugfs is not mounted; mount -t debugfs debugfs /sys/kernel/debug
fine
"#
    );
}

fn run_program(argv: &[&str]) -> bool {
    Command::new(argv[0]).args(&argv[1..]).output().is_ok_and(|output| output.status.success())
}

fn swap_lines() -> Vec<String> {
    let text = fs::read_to_string("/proc/swaps").unwrap();
    // All but what is in use.
    let words = |line: &str| {
        line.split_whitespace()
            .enumerate()
            .filter(|(place, _)| *place != 3)
            .map(|(_, word)| word.to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    text.lines().skip(1).map(words).collect()
}

#[test]
fn swap_is_nothing_a_file_or_compressed_memory_and_the_machines_own_comes_back_root() {
    let test = "swap_is_nothing_a_file_or_compressed_memory_and_the_machines_own_comes_back_root";
    if !is_root(test) {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    // The machine's own area, with a priority.
    let own = home.path().join("own area");
    fs::write(&own, vec![0; 8 << 20]).unwrap();
    fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let own = own.to_str().unwrap();
    if !run_program(&["mkswap", own]) || !run_program(&["swapon", "--priority=7", own]) {
        println!("SKIP {test}: no area can be made");
        return;
    }
    let before = swap_lines();
    let mut applied = new_applied_settings(home.path(), &root);
    let set = |applied: &mut AppliedSettings, value: &str| {
        applied.apply(&[preset_setting("swap", value)]).map(|_| swap_lines().len())
    };
    let (none, file) = (set(&mut applied, "none"), set(&mut applied, "file:8MiB"));
    let quiet = applied.find_overwritten().is_empty();
    let zram = set(&mut applied, "zram:8MiB");
    let is_zram = swap_lines().iter().all(|line| line.starts_with("/dev/zram"));
    // Somebody turns it off.
    let device =
        swap_lines().first().and_then(|line| line.split(' ').next().map(str::to_owned)).unwrap_or_default();
    run_program(&["swapoff", &device]);
    let found = applied.find_overwritten().len();
    let again = set(&mut applied, "zram:8MiB");
    let unchanged = set(&mut applied, "unchanged").map(|_| swap_lines());
    let file_again = set(&mut applied, "file:8MiB");
    // Killed: the next start puts it back.
    drop(applied);
    let recovered = recover_killed_runs(&home.path().join("state"), "boot");
    let after = swap_lines();
    run_program(&["swapoff", own]);
    assert_eq!((none.unwrap(), file.unwrap(), quiet), (0, 1, true));
    match zram {
        Ok(count) => {
            assert_eq!((count, is_zram, found, again.unwrap()), (1, true, 1, 1));
            let size =
                fs::read_to_string(format!("/sys/block/{}/disksize", device.trim_start_matches("/dev/")));
            assert!(size.is_ok_and(|size| size.trim() == "0"), "its memory is given back");
        }
        Err(error) => println!("SKIP zram: {error}"),
    }
    assert_eq!((unchanged.unwrap(), file_again.unwrap()), (before.clone(), 1));
    assert_eq!(
        (after, recovered.iter().map(|run| run.failed.len()).sum::<usize>()),
        (before, 0),
        "{recovered:?}"
    );
    assert_eq!(fs::read_dir(home.path().join("state")).unwrap().count(), 0);
}

#[test]
fn interrupts_move_where_the_kernel_allows_it_and_come_back_root() {
    if !is_root("interrupts_move_where_the_kernel_allows_it_and_come_back_root") {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    let site = SettingSite { root: &root, disk: None };
    if let Some(refusal) = find_preset_refusal(&level("irqs", "0"), site) {
        println!("SKIP: {refusal}");
        return;
    }
    let before = read_state("irqs", &root);
    let mut applied = new_applied_settings(home.path(), &root);
    let asked = applied.apply(&[preset_setting("irqs", "0")]);
    println!("interrupts: {asked:?}");
    let failed = applied.undo_all().failed;
    assert_eq!((read_state("irqs", &root), failed.len()), (before, 0), "{failed:?}");
    assert!(asked.is_ok(), "{asked:?}");
}

fn read_mtu(device: &str) -> String {
    fs::read_to_string(format!("/sys/class/net/{device}/mtu")).unwrap().trim().to_owned()
}

/// What the next start makes of a run that was killed; with patience, as a process that another test is just starting holds our lock
/// until its exec.
fn recover(home: &Path) -> Vec<RecoveredRun> {
    let attempt = |_| {
        std::thread::sleep(Duration::from_millis(20));
        let found = recover_killed_runs(&home.join("state"), "boot");
        let is_left = fs::read_dir(home.join("state")).unwrap().count() > 0;
        (!found.is_empty() || !is_left).then_some(found)
    };
    (0..50).find_map(attempt).unwrap()
}

#[test]
fn a_new_device_of_the_same_name_gets_nothing_of_the_old_one_and_a_renamed_one_does_root() {
    if !is_root("a_new_device_of_the_same_name_gets_nothing_of_the_old_one_and_a_renamed_one_does_root") {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    let VethPair(device) = &VethPair::add('i');
    let (mtu, discipline) = (format!("mtu:{device}"), format!("queue-discipline:{device}"));
    let levels = [preset_setting(&mtu, "1400"), preset_setting(&discipline, "pfifo limit 7")];
    let replace = || {
        run_ip(&["link", "del", device]);
        run_ip(&[
            "link",
            "add",
            device,
            "mtu",
            "1400",
            "type",
            "veth",
            "peer",
            "name",
            &format!("{device}2"),
        ]);
        run_ip(&["link", "set", device, "up"]);
    };
    let mut killed = new_applied_settings(home.path(), &root);
    killed.apply(&levels).unwrap();
    drop(killed);
    replace();
    run_tc(&["qdisc", "replace", "dev", device, "root", "handle", "7e1f:", "pfifo", "limit", "7"]);
    let found = recover(home.path());
    assert!(found.iter().all(|run| run.undone.is_empty() && run.failed.is_empty()), "{found:?}");
    assert_eq!(read_mtu(device), "1400", "it is the new device's own");
    assert!(list_discipline(device).contains("limit 7p"));
    run_tc(&["qdisc", "del", "dev", device, "root"]);

    // One that is replaced while a run goes on: what it held is put back, and not what the old one held.
    let mut applied = new_applied_settings(home.path(), &root);
    applied.apply(&[preset_setting(&mtu, "1300")]).unwrap();
    replace();
    let told = applied.find_overwritten();
    assert_eq!(told.iter().map(|one| &one.cause).collect::<Vec<_>>(), [&OverwritingCause::Gone]);
    run_ip(&["link", "set", device, "mtu", "1450"]);
    applied.apply(&[preset_setting(&mtu, "1300")]).unwrap();
    assert_eq!(read_mtu(device), "1300");
    let undone = applied.undo_all();
    assert_eq!((read_mtu(device).as_str(), undone.left.len(), undone.failed.len()), ("1450", 0, 0));

    // It has another name by now.
    let mut renamed = new_applied_settings(home.path(), &root);
    renamed.apply(&levels).unwrap();
    drop(renamed);
    let other = VethPair(format!("{device}x"));
    run_ip(&["link", "set", device, "down"]);
    run_ip(&["link", "set", device, "name", &other.0]);
    run_ip(&["link", "set", &other.0, "up"]);
    let found = recover(home.path());
    assert_eq!((found[0].undone.len(), found[0].failed.len()), (2, 0), "{found:?}");
    assert_eq!(read_mtu(&other.0), "1450");
    assert!(!list_discipline(&other.0).contains("7e1f"));
}

#[test]
fn what_somebody_set_since_is_left_and_told_root() {
    if !is_root("what_somebody_set_since_is_left_and_told_root") {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    let VethPair(device) = &VethPair::add('l');
    let (mtu, length) = (format!("mtu:{device}"), format!("tx-queue-length:{device}"));
    let before = read_state(&length, &root);
    let levels = [preset_setting(&mtu, "1400"), preset_setting(&length, "77")];
    let mut killed = new_applied_settings(home.path(), &root);
    killed.apply(&levels).unwrap();
    drop(killed);
    run_ip(&["link", "set", device, "mtu", "1300"]);
    let found = recover(home.path());
    assert_eq!((found[0].undone.len(), found[0].left.len(), found[0].failed.len()), (1, 1, 0), "{found:?}");
    assert_eq!((read_mtu(device).as_str(), read_state(&length, &root)), ("1300", before));

    // The same rule at the end of a run, and for a queue discipline.
    let mut applied = new_applied_settings(home.path(), &root);
    applied.apply(&[preset_setting(&mtu, "1400")]).unwrap();
    applied.apply(&[preset_setting(&format!("queue-discipline:{device}"), "pfifo limit 7")]).unwrap();
    run_ip(&["link", "set", device, "mtu", "1200"]);
    run_tc(&["qdisc", "replace", "dev", device, "root", "handle", "1:", "pfifo", "limit", "9"]);
    let undone = applied.undo_all();
    assert_eq!((undone.undone.len(), undone.left.len(), undone.failed.len()), (0, 2, 0), "{undone:?}");
    assert_eq!(read_mtu(device), "1200");
    assert_eq!(fs::read_dir(home.path().join("state")).unwrap().count(), 0, "nothing is left to undo");

    // A discipline of somebody else's is not the kernel's own choice.
    let mut asked = new_applied_settings(home.path(), &root);
    let refused = asked.apply(&[preset_setting(&format!("queue-discipline:{device}"), "default")]);
    assert!(matches!(refused, Err(SettingError::Refused(_))), "{refused:?}");
}

#[test]
fn who_else_holds_a_setting_is_named_and_gets_its_own_again_root() {
    if !is_root("who_else_holds_a_setting_is_named_and_gets_its_own_again_root") {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    let VethPair(device) = &VethPair::add('w');
    let (mtu, before) = (format!("mtu:{device}"), read_mtu(device));
    let run = |id: &str, value: &str| {
        let journal = UndoJournal::new(&home.path().join("state"), id, "boot");
        let mut applied = AppliedSettings::new(journal).with_root(root.clone());
        applied.apply(&[preset_setting(&mtu, value)]).unwrap();
        applied
    };
    let mut first = run("R1", "1400");
    let second = run("R2", "1300");
    let told = first.find_overwritten();
    assert_eq!(told[0].cause, OverwritingCause::Run("R2".into()), "{told:?}");
    assert_eq!((second.undo_all().failed.len(), read_mtu(device).as_str()), (0, "1400"));
    run_ip(&["link", "set", device, "mtu", "1200"]);
    assert_eq!(first.find_overwritten()[0].cause, OverwritingCause::Somebody);
    run_ip(&["link", "set", device, "mtu", "1400"]);
    assert_eq!((first.undo_all().failed.len(), read_mtu(device)), (0, before));
}

#[test]
fn switches_of_a_network_device_are_set_told_and_put_back_root() {
    if !is_root("switches_of_a_network_device_are_set_told_and_put_back_root") {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    let VethPair(device) = &VethPair::add('s');
    for preset in ["tso", "gso", "gro", "tx-checksum", "rx-checksum"] {
        let name = format!("{preset}:{device}");
        let now = || read_state(&name, &root)[0].level.clone().unwrap();
        let (before, other) = match now().as_str() {
            "on" => ("on", "off"),
            _ => ("off", "on"),
        };
        let mut applied = new_applied_settings(home.path(), &root);
        assert!(applied.apply(&[preset_setting(&name, before)]).unwrap().is_empty(), "{name} is so");
        let changes = applied.apply(&[preset_setting(&name, other)]).unwrap();
        assert_eq!(
            (changes[0].from.as_str(), changes[0].to.as_str(), now().as_str()),
            (before, other, other)
        );
        assert!(applied.find_overwritten().is_empty());
        let offload = NetworkOffload::ALL.into_iter().find(|offload| offload.name() == preset).unwrap();
        offload.set(device, before == "on").unwrap();
        assert_eq!(applied.find_overwritten().len(), 1, "{name}: somebody switched it back");
        applied.apply(&[preset_setting(&name, other)]).unwrap();
        assert_eq!(now(), other);
        let second = UndoJournal::new(&home.path().join("state"), "R2", "boot");
        let refused = AppliedSettings::new(second).apply(&[preset_setting(&name, before)]);
        assert!(matches!(refused, Err(SettingError::Refused(_))), "another run has it: {refused:?}");
        // Killed: the next start puts it back.
        drop(applied);
        let found = recover(home.path());
        assert_eq!(
            (found[0].undone.len(), found[0].failed.len(), now().as_str()),
            (1, 0, before),
            "{found:?}"
        );
    }
    let mut applied = new_applied_settings(home.path(), &root);
    // What the device makes no sums of, it does not cut: that comes back with the sums.
    let tso = || read_state(&format!("tso:{device}"), &root)[0].level.clone();
    let before = tso();
    applied.apply(&[preset_setting(&format!("tx-checksum:{device}"), "off")]).unwrap();
    assert_eq!(tso().as_deref(), Some("off"));
    assert_eq!((applied.undo_all().failed.len(), tso()), (0, before));
    let refused =
        new_applied_settings(home.path(), &root).apply(&[preset_setting("tso:nothing-there", "on")]);
    assert!(matches!(refused, Err(SettingError::Refused(_))));
    let mut lacking = new_applied_settings(home.path(), &root);
    assert!(lacking.apply(&[preset_setting(&format!("lro:{device}"), "on")]).is_err(), "it has none");
    assert_eq!(lacking.undo_all().failed.len(), 0);
}

/// Below perflab's own group of version 1, or beside it in version 2.
#[test]
fn a_control_group_is_limited_and_goes_with_who_is_left_in_it_root() {
    let test = "a_control_group_is_limited_and_goes_with_who_is_left_in_it_root";
    if !is_root(test) {
        return;
    }
    let (home, root) = (tempfile::tempdir().unwrap(), Root::host());
    let site = SettingSite { root: &root, disk: None };
    let (mut set, run) = (0, format!("group{}", std::process::id()));
    for (name, levels) in [
        ("cpu-max", ["20%", "150%"]),
        ("memory-max", ["64MiB", "128MiB"]),
        ("memory-high", ["64MiB", "128MiB"]),
        ("pids-max", ["50", "60"]),
    ] {
        if let Some(refusal) = find_preset_refusal(&level(name, levels[0]), site) {
            println!("SKIP {name}: {refusal}");
            continue;
        }
        let journal = UndoJournal::new(&home.path().join("state"), &run, "boot");
        let mut applied = AppliedSettings::new(journal).with_root(root.clone());
        for value in levels {
            let changes = applied
                .apply(&[preset_setting(name, value)])
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(changes[0].to, value);
            assert!(applied.apply(&[preset_setting(name, value)]).unwrap().is_empty(), "it is in force");
            assert!(applied.find_overwritten().is_empty(), "{name}={value}");
        }
        assert_eq!(applied.apply(&[preset_setting(name, "none")]).unwrap()[0].from, levels[1]);
        let groups = applied.workload_groups();
        let group = groups[0].parent().unwrap().to_owned();
        assert_eq!(groups.len(), 1);
        // Somebody who stays is moved, and not ended.
        let mut left = Command::new("sleep").arg("600").spawn().unwrap();
        fs::write(&groups[0], left.id().to_string()).unwrap();
        drop(applied);
        let found = recover(home.path());
        let lives = left.try_wait().unwrap().is_none();
        left.kill().unwrap();
        left.wait().unwrap();
        assert!(found[0].failed.is_empty() && lives && !group.exists(), "{found:?}");
        set += 1;
    }
    println!("{set} limits are here");
    assert!(set > 0);
    let disks =
        fs::read_dir("/sys/block").unwrap().flatten().map(|disk| disk.file_name().into_string().unwrap());
    let Some(disk) = disks.into_iter().find(|disk| !disk.starts_with("loop")) else { return };
    let name = format!("io-max:{disk}");
    if let Some(refusal) = find_preset_refusal(&level(&name, "rbps=10MiB"), site) {
        return println!("SKIP {name}: {refusal}");
    }
    let mut applied = new_applied_settings(home.path(), &root);
    let apply =
        |applied: &mut AppliedSettings, value: &str| applied.apply(&[preset_setting(&name, value)]).unwrap();
    for value in ["rbps=10MiB wiops=100", "wbps=1MiB", "none"] {
        assert_eq!(apply(&mut applied, value)[0].to, value);
    }
    assert_eq!(applied.undo_all().failed.len(), 0);
}
