//! What a run changed is found again and put back, whatever its paths and variables are.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::interrupted::{send_signal, wait_for_condition};
use crate::laboratory::{CommandOutput, Sandbox, is_root, skip_test, to_command_output};

const NOBODY: u32 = 65534;

#[test]
fn two_factors_on_one_setting_are_refused_before_anything_is_done() {
    let laboratory = Sandbox::new();
    let begun = laboratory.path("begun");
    laboratory.write_workload("marks", "", &format!("touch {}; echo speed 1", begun.display()));
    let factor = |name: &str, kind: &str, key: &str, level: u32| {
        format!("[factor.{name}]\nkind = \"{kind}\"\nkey = \"{key}\"\nlevels = [{level}]\n")
    };
    let mut errors = BTreeSet::new();
    for (one, two) in [
        (("sysctl", "vm.vfs_cache_pressure", 131), ("file", "/proc/sys/vm/vfs_cache_pressure", 133)),
        (("sysctl", "fs.lease-break-time", 31), ("file", "/proc/sys/kernel/../fs/lease-break-time", 33)),
        (("sysctl", "vm.dirty_background_bytes", 100_000_000), ("sysctl", "vm.dirty_background_ratio", 9)),
    ] {
        let factors = factor("one", one.0, one.1, one.2) + &factor("two", two.0, two.1, two.2);
        let text = format!("run = {{ iterations = 1, warmup = 0 }}\n[workload.marks]\n{factors}");
        let study = laboratory.write_study("two.toml", &text);
        for words in [&["study", "check", &study][..], &["run", &study]] {
            let told = laboratory.run(words);
            assert_eq!(told.code, Some(2), "{words:?}: {}", told.err);
            errors.insert(told.err_wording_of("error: "));
        }
    }
    // The same of both verbs.
    insta::assert_snapshot!(Vec::from_iter(errors).join("\n"), @"
    error: /tmp/.TMP/two.toml:N:N: `factor.two.key`: factors `one` and `two` undo each other: writing /proc/sys/vm/dirty_background_ratio zeroes /proc/sys/vm/dirty_background_bytes, and the other way round; make one factor of them, or leave one out
    error: /tmp/.TMP/two.toml:N:N: `factor.two.key`: factors `one` and `two` write to one file, /proc/sys/vm/vfs_cache_pressure; make one factor of them, or leave one out
    error: /tmp/.TMP/two.toml:N:N: `factor.two.key`: factors `one` and `two` write to one file: /proc/sys/fs/lease-break-time is /proc/sys/kernel/../fs/lease-break-time; make one factor of them, or leave one out
    ");
    assert!(!begun.exists());
}

/// The command with nothing of ours that says where state lies, but these variables.
fn with_only_variables(command: &Command, variables: &[(&str, &Path)]) -> Command {
    let mut plain = Command::new(command.get_program());
    plain.args(command.get_args()).env_clear().stdin(Stdio::null());
    plain.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    plain.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env_remove("PERFLAB_STATE");
    plain.envs(variables.iter().copied());
    plain
}

fn run_undo(laboratory: &Sandbox, variables: &[(&str, &Path)]) -> CommandOutput {
    to_command_output(with_only_variables(&laboratory.command(&["undo"]), variables).output().unwrap())
}

#[test]
fn what_root_changed_is_found_whatever_its_home_root() {
    let test = "what_root_changed_is_found_whatever_its_home_root";
    if !is_root() {
        return skip_test(test, "others have no state of the machine");
    }
    let laboratory = Sandbox::new();
    let (home, mark, begun) = (laboratory.path("home"), laboratory.path("mark"), laboratory.path("begun"));
    fs::create_dir(&home).unwrap();
    laboratory.write_workload("long", "", &format!("touch {}; exec sleep 600", begun.display()));
    let study = laboratory.write_study(
        "long.toml",
        &format!(
            "run = {{ iterations = 1, warmup = 0 }}\n[workload.long]\n[factor.mark]\nkind = \"commands\"\n\
             levels = [{{ name = \"on\", apply = [\"touch\", \"{0}\"], undo = [\"rm\", \"-f\", \"{0}\"] }}]",
            mark.display()
        ),
    );
    for (of_run, of_undo) in [(&[("HOME", home.as_path())][..], &[][..]), (&[], &[("HOME", home.as_path())])]
    {
        let _ = fs::remove_file(&begun);
        let mut run = with_only_variables(&laboratory.command(&["run", &study]), of_run);
        let mut child = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for_condition(|| begun.exists());
        send_signal(&child, Signal::KILL);
        child.wait().unwrap();
        let told = run_undo(&laboratory, of_undo);
        assert_eq!(told.code, Some(0), "{}", told.err);
        // The guard of the run ends what that was running; where the machine is busy, the undo is there first.
        let (said, ended) =
            (told.stable_err(), "ended 1 processes of killed runs, which were still running\n");
        let said = said.strip_prefix(ended).unwrap_or(&said);
        insta::allow_duplicates!(insta::assert_snapshot!(said, @"
        looked for undo journals in /var/lib/perflab
        RUN: put back mark: rm -f /tmp/.TMP/mark
        "));
        assert!(!mark.exists(), "{of_run:?}: {}", told.err);
    }
    // What an older perflab wrote lies in its home.
    let state = home.join(".local/state/perflab");
    perflab_observe::own_directories::create_own_directory(&state).unwrap();
    let undo = serde_json::json!({"change": {"number": 0, "undo": {"run": {"factor": "f", "argv": ["touch", mark]}}}});
    let journal = state.join("undo-01M85MNR345PYD356AYGQEABAA.jsonl");
    fs::write(&journal, format!("{{\"boot\":\"x\"}}\n{undo}\n")).unwrap();
    fs::set_permissions(&journal, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    run_undo(&laboratory, &[("HOME", home.as_path())]);
    assert!(mark.exists() && !journal.exists());
}

#[test]
fn a_folder_of_roots_in_one_of_anothers_is_not_looked_at_root() {
    if !is_root() {
        return skip_test(
            "a_folder_of_roots_in_one_of_anothers_is_not_looked_at_root",
            "giving files away needs root",
        );
    }
    let laboratory = Sandbox::new();
    let (theirs, roots) = (laboratory.path("theirs"), laboratory.path("theirs/state"));
    fs::create_dir_all(roots.join("perflab")).unwrap();
    chown(&theirs, Some(NOBODY), None).unwrap();
    for owner in [0, NOBODY] {
        chown(&roots, Some(owner), None).unwrap();
        for variable in ["XDG_STATE_HOME", "HOME"] {
            let told = run_undo(&laboratory, &[(variable, &roots)]);
            assert_eq!(told.code, Some(0), "{variable} of {owner}: {}", told.err);
            insta::allow_duplicates!(
                insta::assert_snapshot!(told.stable_err(), @"no run left a setting behind; looked for undo journals in /var/lib/perflab")
            );
        }
    }
}

#[test]
fn a_level_that_never_comes_into_force_is_given_up_when_the_run_is_stopped() {
    let laboratory = Sandbox::new();
    let (begun, mark) = (laboratory.path("begun"), laboratory.path("mark"));
    let study = laboratory.write_study(
        "hangs.toml",
        &format!(
            "run = {{ iterations = 1, warmup = 0 }}\n[workload.echo]\n[factor.daemon]\nkind = \"commands\"\n\
             levels = [{{ name = \"on\", apply = [\"sh\", \"-c\", \"touch {1}; touch {0}; sleep 600 & wait\"], undo = [\"rm\", \"{1}\"] }}]",
            begun.display(),
            mark.display()
        ),
    );
    let mut run = laboratory.command(&["run", &study]);
    let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_condition(|| begun.exists());
    send_signal(&child, Signal::INT);
    let ended = to_command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert!(!mark.exists(), "{}", ended.err);
    assert_eq!(laboratory.latest_status(), "stopped");
}

#[test]
fn a_daemon_that_a_level_starts_holds_up_no_run() {
    let laboratory = Sandbox::new();
    let pid = laboratory.path("pid");
    let study = laboratory.write_study(
        "daemon.toml",
        &format!(
            "run = {{ iterations = 1, warmup = 0 }}\n[workload.echo]\n[factor.daemon]\nkind = \"commands\"\n\
             levels = [{{ name = \"on\", apply = [\"sh\", \"-c\", \"sleep 600 & echo $! > {0}\"], undo = [\"sh\", \"-c\", \"kill $(cat {0})\"] }}]",
            pid.display()
        ),
    );
    // Its undo ends the daemon, which has to be there until then.
    laboratory.run_successfully(&["run", &study]);
}
