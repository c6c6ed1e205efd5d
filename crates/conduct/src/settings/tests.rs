use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::ConductError;

fn make_file(directory: &Path, name: &str, text: &str) -> PathBuf {
    let path = directory.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn file_setting(path: &Path, value: &str) -> Setting {
    Setting::File { name: path.display().to_string(), path: path.into(), value: value.into() }
}

/// Recovers, with patience: a process that another test is just starting holds our lock until its exec.
pub(crate) fn recover_patiently(state: &Path, boot: &str) -> Vec<RecoveredRun> {
    let attempt = |_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        Some(recover_killed_runs(state, boot)).filter(|found| !found.is_empty())
    };
    (0..50).find_map(attempt).unwrap_or_default()
}

fn new_applied_settings(directory: &Path) -> AppliedSettings {
    AppliedSettings::new(UndoJournal::new(&directory.join("state"), "R1", "boot"))
}

#[test]
fn settings_come_back_in_reverse_and_the_journal_goes() {
    let home = tempfile::tempdir().unwrap();
    let swappiness = make_file(home.path(), "swappiness", "60\n");
    let thp = make_file(home.path(), "enabled", "always [madvise] never\n");
    let mut bench = new_applied_settings(home.path());
    let changes = bench.apply(&[file_setting(&swappiness, "10"), file_setting(&thp, "never")]).unwrap();
    assert_eq!((changes[0].from.as_str(), changes[1].from.as_str()), ("60", "madvise"));
    bench.apply(&[file_setting(&swappiness, "20"), file_setting(&thp, "never")]).unwrap();
    assert_eq!(fs::read_to_string(&swappiness).unwrap(), "20");
    let (undone, failed) = bench.undo_all();
    assert_eq!((undone.len(), failed.len()), (2, 0));
    assert!(undone[0].ends_with("enabled = madvise"), "{undone:?}");
    assert_eq!(fs::read_to_string(&swappiness).unwrap(), "60");
    assert_eq!(fs::read_dir(home.path().join("state")).unwrap().count(), 0);
}

#[test]
fn a_setting_that_is_already_so_is_not_touched() {
    let home = tempfile::tempdir().unwrap();
    let range = make_file(home.path(), "range", "32768\t60999\n");
    let mut bench = new_applied_settings(home.path());
    assert_eq!(bench.apply(&[file_setting(&range, "32768 60999")]).unwrap(), []);
    assert_eq!(bench.undo_all().0.len(), 0);
}

#[test]
fn a_setting_of_several_runs_is_put_back_by_the_last_of_them() {
    let home = tempfile::tempdir().unwrap();
    let swappiness = make_file(home.path(), "swappiness", "60\n");
    let now = || fs::read_to_string(&swappiness).unwrap();
    let run = |id: &str, value: &str| {
        let mut bench = AppliedSettings::new(UndoJournal::new(&home.path().join("state"), id, "boot"));
        bench.apply(&[file_setting(&swappiness, value)]).unwrap();
        bench
    };
    let (first, same, other) = (run("R1", "10"), run("R2", "10"), run("R3", "20"));
    assert_eq!((first.undo_all().1.len(), &*now()), (0, "20"), "two others hold it");
    assert_eq!((other.undo_all().1.len(), &*now()), (0, "20"), "another holds it");
    assert_eq!((same.undo_all().1.len(), &*now()), (0, "60"));
    drop(run("killed", "10"));
    let last = run("R4", "20");
    assert_eq!((last.undo_all().1.len(), &*now()), (0, "60"), "what it was before the run that was killed");
    assert_eq!(fs::read_dir(home.path().join("state")).unwrap().count(), 1);
}

#[test]
fn a_file_of_two_names_comes_back_to_what_it_was_before_both() {
    let home = tempfile::tempdir().unwrap();
    let setting = make_file(home.path(), "setting", "60\n");
    fs::create_dir(home.path().join("x")).unwrap();
    let detour = home.path().join("x/../setting");
    let mut one = new_applied_settings(home.path());
    one.apply(&[file_setting(&setting, "10"), file_setting(&detour, "20"), file_setting(&setting, "30")])
        .unwrap();
    let (_, failed) = one.undo_all();
    assert_eq!((&*fs::read_to_string(&setting).unwrap(), failed.len()), ("60", 0), "{failed:?}");

    let run = |id: &str, path: &Path, value: &str| {
        let mut bench = AppliedSettings::new(UndoJournal::new(&home.path().join("state"), id, "boot"));
        bench.apply(&[file_setting(path, value)]).unwrap();
        bench
    };
    let (first, second) = (run("R1", &setting, "10"), run("R2", &detour, "20"));
    assert_eq!(first.undo_all().1.len() + second.undo_all().1.len(), 0);
    assert_eq!(fs::read_to_string(&setting).unwrap(), "60", "of two runs, too");
}

#[test]
fn what_cannot_be_set_needs_no_undoing() {
    let home = tempfile::tempdir().unwrap();
    let swappiness = make_file(home.path(), "swappiness", "60");
    let mut bench = new_applied_settings(home.path());
    let refused =
        bench.apply(&[file_setting(&swappiness, "10"), file_setting(Path::new("/proc/version"), "7")]);
    assert!(refused.unwrap_err().to_string().contains("/proc/version"));
    let (undone, failed) = bench.undo_all();
    assert_eq!((undone.len(), failed.len()), (1, 0), "{failed:?}");
    assert_eq!(fs::read_dir(home.path().join("state")).unwrap().count(), 0);
}

#[test]
fn commands_undo_the_old_level_before_the_new_one() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("log");
    let say = |word: &str| vec!["sh".into(), "-c".into(), format!("echo {word} >> {}", log.display())];
    let level = |name: &str| Setting::Commands {
        factor: "daemon".into(),
        level: name.into(),
        apply: say(&format!("+{name}")),
        undo: say(&format!("-{name}")),
    };
    let off = Setting::Commands { factor: "daemon".into(), level: "off".into(), apply: vec![], undo: vec![] };
    let mut bench = new_applied_settings(home.path());
    for knob in [off.clone(), level("a"), level("a"), level("b"), off, level("b")] {
        bench.apply(&[knob]).unwrap();
    }
    bench.undo_all();
    assert_eq!(
        fs::read_to_string(&log).unwrap().split_whitespace().collect::<Vec<_>>(),
        ["+a", "-a", "+b", "-b", "+b", "-b"]
    );
}

#[test]
fn a_killed_run_is_undone_at_the_next_start_and_a_living_one_is_not() {
    let home = tempfile::tempdir().unwrap();
    let state = home.path().join("state");
    let setting = make_file(home.path(), "swappiness", "60\n");
    let mut bench = new_applied_settings(home.path());
    bench.apply(&[file_setting(&setting, "10")]).unwrap();
    assert!(recover_killed_runs(&state, "boot").is_empty(), "its run lives: the journal is locked");
    // Killed: the lock goes with the process, the journal stays.
    drop(bench);
    let found = recover_patiently(&state, "boot");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].run, "R1");
    assert_eq!(fs::read_to_string(&setting).unwrap(), "60");
    assert!(recover_killed_runs(&state, "boot").is_empty());
}

#[test]
fn a_reboot_has_undone_files_already() {
    let home = tempfile::tempdir().unwrap();
    let setting = make_file(home.path(), "swappiness", "60\n");
    let mut bench = new_applied_settings(home.path());
    bench.apply(&[file_setting(&setting, "10")]).unwrap();
    drop(bench);
    fs::write(&setting, "the new boot's own").unwrap();
    assert!(recover_killed_runs(&home.path().join("state"), "another boot").is_empty());
    assert_eq!(fs::read_to_string(&setting).unwrap(), "the new boot's own");
}

#[test]
fn what_cannot_be_undone_is_said_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let mut bench = new_applied_settings(home.path());
    let level = Setting::Commands {
        factor: "daemon".into(),
        level: "on".into(),
        apply: vec!["true".into()],
        undo: vec!["false".into()],
    };
    bench.apply(&[level]).unwrap();
    let (undone, failed) = bench.undo_all();
    assert_eq!((undone.len(), failed.len()), (0, 1));
    let again = recover_patiently(&home.path().join("state"), "boot");
    assert_eq!(again[0].failed.len(), 1);
}

#[test]
fn a_failing_apply_is_undone_too() {
    let home = tempfile::tempdir().unwrap();
    let trace = home.path().join("undone");
    let mut bench = new_applied_settings(home.path());
    let level = Setting::Commands {
        factor: "daemon".into(),
        level: "on".into(),
        apply: vec!["sh".into(), "-c".into(), "echo no such daemon >&2; exit 3".into()],
        undo: vec!["touch".into(), trace.display().to_string()],
    };
    let said = bench.apply(&[level]).unwrap_err().to_string();
    assert!(said.contains("no such daemon"), "{said}");
    bench.undo_all();
    assert!(trace.exists());
}

/// Files that refuse and round need a kernel: this machine's own, where it may be changed.
fn kernel_setting_file(name: &str) -> Option<(PathBuf, String)> {
    let path = Path::new("/proc/sys").join(name);
    let text = fs::read_to_string(&path).unwrap();
    if rustix::process::geteuid().is_root() {
        return Some((path, text));
    }
    println!("SKIP {name}: needs root");
    None
}

#[test]
fn a_level_refused_after_one_that_took_leaves_nothing_changed() {
    let Some((burst, before)) = kernel_setting_file("kernel/printk_ratelimit_burst") else { return };
    let home = tempfile::tempdir().unwrap();
    let mut bench = new_applied_settings(home.path());
    assert_eq!(bench.apply(&[file_setting(&burst, "17")]).unwrap().len(), 1);
    let refused = bench.apply(&[file_setting(&burst, "99999999999")]).unwrap_err();
    assert!(matches!(refused, ConductError::SettingRefused { .. }), "{refused:?}");
    let (undone, failed) = bench.undo_all();
    assert_eq!((undone.len(), failed.len()), (1, 0), "{failed:?}");
    assert_eq!(fs::read_to_string(&burst).unwrap(), before);
}

#[test]
fn a_value_that_the_kernel_rounds_is_recorded_as_it_is() {
    let Some((largest, before)) = kernel_setting_file("fs/pipe-max-size") else { return };
    let home = tempfile::tempdir().unwrap();
    let mut bench = new_applied_settings(home.path());
    let changes = bench.apply(&[file_setting(&largest, "262143")]).unwrap();
    let SettingChange { from, to, asked, .. } = &changes[0];
    assert_eq!((from.as_str(), to.as_str(), asked.as_deref()), (before.trim(), "262144", Some("262143")));
    assert_eq!(bench.apply(&[file_setting(&largest, "262143")]).unwrap(), [], "it is in force");
    let kept = bench.apply(&[file_setting(&largest, "262142")]).unwrap_err();
    assert!(matches!(kept, ConductError::SettingIgnored { .. }), "{kept:?}");
    assert_eq!(bench.undo_all().1.len(), 0);
    assert_eq!(fs::read_to_string(&largest).unwrap(), before);
}

#[test]
fn a_pair_of_which_one_zeroes_the_other_comes_back_whole() {
    let (Some((bytes, _)), Some((ratio, _))) =
        (kernel_setting_file("vm/dirty_bytes"), kernel_setting_file("vm/dirty_ratio"))
    else {
        return;
    };
    let now = || (fs::read_to_string(&bytes).unwrap(), fs::read_to_string(&ratio).unwrap());
    let before = now();
    let home = tempfile::tempdir().unwrap();
    let mut bench = new_applied_settings(home.path());
    bench.apply(&[file_setting(&bytes, "268435456")]).unwrap();
    assert_eq!(now(), ("268435456\n".into(), "0\n".into()));
    let (_, failed) = bench.undo_all();
    assert_eq!((now(), failed.len()), (before, 0), "{failed:?}");
}

#[test]
fn each_of_a_pair_comes_back_whichever_was_in_force_and_with_both_changed() {
    let pair =
        [kernel_setting_file("vm/dirty_background_bytes"), kernel_setting_file("vm/dirty_background_ratio")];
    let [Some((bytes, _)), Some((ratio, before))] = pair else { return };
    let now = || (fs::read_to_string(&bytes).unwrap(), fs::read_to_string(&ratio).unwrap());
    let home = tempfile::tempdir().unwrap();
    let neither = ("0\n".to_owned(), "0\n".to_owned());
    for original in [&ratio, &bytes] {
        fs::write(original, if *original == ratio { "10" } else { "100000000" }).unwrap();
        let was = now();
        for knobs in [
            vec![file_setting(&bytes, "200000000"), file_setting(&ratio, "9")],
            vec![file_setting(&ratio, "9"), file_setting(&bytes, "200000000")],
            vec![file_setting(&ratio, "9")],
            vec![file_setting(&bytes, "200000000")],
        ] {
            let mut bench = new_applied_settings(home.path());
            bench.apply(&knobs).unwrap();
            let (_, failed) = bench.undo_all();
            assert_eq!((now(), failed.len()), (was.clone(), 0), "{knobs:?}: {failed:?}");
        }
    }
    fs::write(&ratio, "0").unwrap();
    assert_eq!(now(), neither);
    let mut bench = new_applied_settings(home.path());
    bench.apply(&[file_setting(&bytes, "200000000")]).unwrap();
    let (_, failed) = bench.undo_all();
    let came_back = now();
    fs::write(&ratio, before.trim()).unwrap();
    assert_eq!((came_back, failed.len()), (neither, 0), "the kernel takes no 0 for bytes: {failed:?}");
}

#[test]
fn what_does_not_come_back_is_said_with_what_it_holds_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let setting = make_file(home.path(), "setting", "60\n");
    let mut bench = new_applied_settings(home.path());
    bench.apply(&[file_setting(&setting, "10")]).unwrap();
    fs::remove_file(&setting).unwrap();
    std::os::unix::fs::symlink("/proc/version", &setting).unwrap();
    let (undone, failed) = bench.undo_all();
    assert_eq!((undone.len(), failed.len()), (0, 1));
    let ConductError::NotPutBack { before, now, .. } = &failed[0] else { panic!("{failed:?}") };
    assert!(before == "60" && now.starts_with("Linux"), "{failed:?}");
    assert_eq!(recover_patiently(&home.path().join("state"), "boot")[0].failed.len(), 1, "the journal stays");
}
