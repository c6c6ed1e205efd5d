//! What others write commands nobody, and whoever goes away (a terminal, a reader of messages) leaves nothing changed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::caches::CachesLock;
use crate::interrupted::{send_signal, wait_for_condition, wait_for_long_study, write_long_study};
use crate::laboratory::{Sandbox, is_root, mask_numbers, skip_test};

const NOBODY: u32 = 65534;

/// A journal that makes `mark` when it is carried out.
fn plant_journal(laboratory: &Sandbox, folder: &std::path::Path) -> std::path::PathBuf {
    let mark = laboratory.path("commanded");
    let journal = folder.join("undo-01M85MNR345PYD356AYGQEABAA.jsonl");
    let undo = serde_json::json!({"change": {"number": 0, "undo": {"run": {"factor": "f", "argv": ["touch", mark]}}}});
    fs::write(&journal, format!("{{\"boot\":\"x\"}}\n{undo}\n")).unwrap();
    journal
}

#[test]
fn a_journal_of_another_user_is_not_carried_out_root() {
    if !is_root() {
        return skip_test(
            "a_journal_of_another_user_is_not_carried_out_root",
            "giving files away needs root",
        );
    }
    let laboratory = Sandbox::new();
    let state = laboratory.path("theirs");
    fs::create_dir(&state).unwrap();
    let journal = plant_journal(&laboratory, &state);
    let undo = || laboratory.command(&["undo"]).env("PERFLAB_STATE", &state).output().unwrap();
    chown(&journal, Some(NOBODY), None).unwrap();
    assert_eq!(undo().status.code(), Some(6), "the file is theirs");
    chown(&journal, Some(0), None).unwrap();
    fs::set_permissions(&journal, PermissionsExt::from_mode(0o666)).unwrap();
    assert_eq!(undo().status.code(), Some(6), "they may write the file");
    fs::set_permissions(&journal, PermissionsExt::from_mode(0o600)).unwrap();
    chown(&state, Some(NOBODY), None).unwrap();
    assert_eq!(undo().status.code(), Some(6), "the folder is theirs");
    assert!(!laboratory.path("commanded").exists() && journal.exists());
    chown(&state, Some(0), None).unwrap();
    assert_eq!(undo().status.code(), Some(0), "it is our own");
    assert!(laboratory.path("commanded").exists() && !journal.exists());
}

#[test]
fn root_believes_no_folder_of_somebody_else_root() {
    if !is_root() {
        return skip_test(
            "root_believes_no_folder_of_somebody_else_root",
            "only root is told of another's home",
        );
    }
    let laboratory = Sandbox::new();
    let home = laboratory.path("home");
    let places = [home.join(".local/state/perflab"), laboratory.path("temporary/perflab-state")];
    for place in &places {
        fs::create_dir_all(place).unwrap();
        plant_journal(&laboratory, place);
    }
    chown(&home, Some(NOBODY), None).unwrap();
    for home in [Some(&home), None] {
        let mut command = laboratory.command(&["list"]);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("TMPDIR", laboratory.path("temporary"))
            .env("PERFLAB_ARCHIVE", laboratory.path("archive"));
        home.map(|home| command.env("HOME", home));
        let mut undo = std::process::Command::new(command.get_program());
        undo.arg("undo")
            .env_clear()
            .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        undo.output().unwrap();
        assert!(!laboratory.path("commanded").exists(), "HOME={home:?}");
    }
}

/// A run that is ended so has its setting put back, and what was measured is kept.
fn assert_kept_after_signals(signals: &[Signal], pause: Duration, code: Option<i32>) {
    let laboratory = Sandbox::new();
    let study = write_long_study(&laboratory);
    let run = laboratory.command(&["run", &study]);
    // A job in the background of a shell is born deaf to some of them.
    let mut heard = Command::new("env");
    heard.arg("--default-signal=HUP,INT,QUIT,TERM").arg(run.get_program()).args(run.get_args());
    heard.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    heard.current_dir(run.get_current_dir().unwrap_or(laboratory.home.path()));
    let mut child = wait_for_long_study(&laboratory, &mut heard);
    for one in signals {
        send_signal(&child, *one);
        std::thread::sleep(pause);
    }
    let status = child.wait().unwrap();
    assert_eq!(status.code(), code, "{signals:?}: {status}");
    assert!(!laboratory.path("mark").exists(), "{signals:?}: the setting is undone");
    assert!(laboratory.shown_metrics("@latest").contains("speed"));
}

#[test]
fn a_closed_terminal_and_each_other_wish_to_stop_put_settings_back() {
    for one in [Signal::HUP, Signal::QUIT, Signal::TERM, Signal::INT] {
        assert_kept_after_signals(&[one], Duration::ZERO, Some(4));
    }
}

#[test]
fn two_signals_at_once_are_one() {
    assert_kept_after_signals(&[Signal::INT, Signal::INT], Duration::from_millis(5), Some(4));
    assert_kept_after_signals(&[Signal::TERM, Signal::TERM], Duration::ZERO, Some(4));
}

#[test]
fn a_second_signal_ends_at_once_and_still_puts_settings_back() {
    let laboratory = Sandbox::new();
    laboratory.write_workload("deaf", "", "trap '' TERM INT HUP; echo speed 1; sleep 600");
    let mark = laboratory.path("mark");
    // Its undo takes longer than anybody waits: the second signal comes while it goes on.
    let study = laboratory.write_study(
        "deaf.toml",
        &format!(
            "run = {{ iterations = 2, warmup = 0 }}\n[workload.deaf]\n[factor.mark]\nkind = \"commands\"\n\
             levels = [{{ name = \"on\", apply = [\"touch\", \"{0}\"], undo = [\"sh\", \"-c\", \"sleep 2; rm -f {0}\"] }}]",
            mark.display()
        ),
    );
    let mut child =
        laboratory.command(&["run", &study]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| mark.exists());
    send_signal(&child, Signal::TERM);
    std::thread::sleep(Duration::from_millis(600));
    send_signal(&child, Signal::TERM);
    // As a terminal that closes sends several: one that came before the undo listens would end it.
    for one in [Signal::HUP, Signal::INT, Signal::TERM].into_iter().cycle().take(60) {
        send_signal(&child, one);
        std::thread::sleep(Duration::from_millis(1));
    }
    let status = child.wait().unwrap();
    assert!(status.signal().is_some(), "{status}");
    assert!(!mark.exists(), "the setting is undone");
}

#[test]
fn messages_that_nobody_can_take_end_nothing() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("two.toml", "run = { iterations = 2, warmup = 0 }\n[workload.echo]");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let run = laboratory.command(&["run", &study]).stderr(full()).stdout(Stdio::null()).status().unwrap();
    assert_eq!(run.code(), Some(0));
    for (words, code) in [(&["show", "nothere"][..], 2), (&["undo"], 0), (&["list"], 0), (&["--nothing"], 2)]
    {
        let ended = laboratory.command(words).stderr(full()).stdout(Stdio::null()).status().unwrap();
        assert_eq!(ended.code(), Some(code), "{words:?}");
    }
    // A reader that has gone.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let run = laboratory.command(&["run", &study]).stderr(writer).stdout(Stdio::null()).status().unwrap();
    assert_eq!(run.code(), Some(0));
    for words in [&["--help"][..], &["list"]] {
        let ended = laboratory.command(words).stdout(full()).status().unwrap();
        assert_eq!(ended.code(), Some(1), "{words:?}");
    }
}

#[test]
fn names_command_no_terminal() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("one.toml", "run = { iterations = 1, warmup = 0 }\n[workload.echo]");
    let label = "\u{1b}]0;own\u{7}\u{202e}x\nline";
    let refused = laboratory.run(&["run", "--label", label, &study]);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    let run = laboratory.run(&["run", "--label", "plain", &study]);
    let mut said = refused.err + &run.out + &run.err;
    // As earlier versions took it.
    let manifest = laboratory.only_run().join("run.json");
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(text.contains("\"plain\""), "{text}");
    fs::write(&manifest, text.replace("\"plain\"", &serde_json::to_string(label).unwrap())).unwrap();
    for words in [
        &["list"][..],
        &["show"],
        &["list", "--format", "csv"],
        &["list", "--format", "markdown"],
        &["compare", "@latest", "@latest"],
    ] {
        let told = laboratory.run(words);
        said += &(told.out + &told.err);
    }
    assert!(said.contains("\\x1b]0;own\\x07\\u{202e}x"), "{said:?}");
    assert!(!said.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{said:?}");
}

#[test]
fn what_never_ends_is_not_waited_for() {
    let laboratory = Sandbox::new();
    let fifo = laboratory.path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let fifo = fifo.to_str().unwrap();
    for path in [fifo, "/dev/zero", "/proc/kmsg"] {
        for words in [&["import", path][..], &["import", "--kind", "fio", path], &["flame", "import", path]] {
            let told = laboratory.run(words);
            assert_eq!(told.code, Some(2), "{words:?}: {}", told.err);
        }
    }
    // What a verb is given beside a run, and what lies in an archive that somebody else made.
    fs::write(laboratory.path("p.folded"), "sh;main 5\n").unwrap();
    laboratory.run_successfully(&["flame", "import", "p.folded", "--label", "folded"]);
    let blocks = crate::io::evidence_path("partition.blktrace.0");
    laboratory.run_successfully(&["io", "import", &blocks, "--label", "blocks"]);
    for path in [fifo, "/dev/zero"] {
        for words in [
            &["flame", "shares", "folded", "--rules", path][..],
            &["io", "coverage", "blocks", "--trace", path],
            &["show", path],
        ] {
            assert!(laboratory.run(words).code.is_some_and(|code| code != 0), "{words:?}");
        }
    }
    laboratory.run_echo("a", 100);
    laboratory.run_echo("b", 100);
    let id = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let card = laboratory.path("archive/noise").join(match id.trim() {
        "" => "machine.json".to_owned(),
        id => format!("{id}.json"),
    });
    fs::create_dir_all(card.parent().unwrap()).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &card, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let compared = laboratory.run(&["compare", "a", "b"]);
    assert!(compared.err.contains(card.to_str().unwrap()), "{}", compared.err);
}

#[test]
fn a_fifo_as_the_lock_of_a_run_is_not_waited_for() {
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("one.toml", "run = { iterations = 1, warmup = 0 }\n[workload.echo]");
    laboratory.run_successfully(&["run", &study]);
    let run = fs::read_dir(laboratory.path("archive/runs")).unwrap().flatten().next().unwrap().path();
    let lock = run.join("lock");
    let _ = fs::remove_file(&lock);
    rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    for words in [&["list"][..], &["show"], &["prune", "--keep", "0", "--apply"]] {
        assert!(laboratory.run(words).code.is_some(), "{words:?}");
    }
}

#[test]
fn undo_ends_the_workload_of_a_killed_run() {
    let laboratory = Sandbox::new();
    let mark = laboratory.path("begun");
    laboratory.write_workload("long", "", &format!("echo $$ > {}; exec sleep 600", mark.display()));
    let study = laboratory.write_study("long.toml", "run = { iterations = 1, warmup = 0 }\n[workload.long]");
    let mut child =
        laboratory.command(&["run", &study]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_condition(|| fs::read_to_string(&mark).is_ok_and(|pid| pid.ends_with('\n')));
    let workload = fs::read_to_string(&mark).unwrap();
    let runs_on = || {
        let command = fs::read_to_string(format!("/proc/{}/cmdline", workload.trim()));
        command.is_ok_and(|command| command.contains("600"))
    };
    // Nobody else is left to end it.
    children_with_word(&child, "execution-guard").into_iter().for_each(|guard| {
        rustix::process::kill_process(guard, Signal::KILL).unwrap();
    });
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    assert!(runs_on(), "the workload goes on");
    let told = laboratory.run(&["undo"]);
    insta::assert_snapshot!(told.err_wording_of("processes"), @"ended N processes of killed runs, which were still running");
    wait_for_condition(|| !runs_on());
}

#[test]
fn a_mark_that_was_copied_or_invented_ends_nobody() {
    let laboratory = Sandbox::new();
    let mark = laboratory.path("mark");
    laboratory.write_workload(
        "one",
        "",
        &format!("echo $PERFLAB_EXECUTION > {}; echo speed 1", mark.display()),
    );
    let study = laboratory.write_study("one.toml", "run = { iterations = 1, warmup = 0 }\n[workload.one]");
    laboratory.run_successfully(&["run", &study]);
    // Of a perflab that has ended, and whose runs have; and of none.
    let copied = fs::read_to_string(mark).unwrap();
    let sleep = |mark: &str| {
        let mut command = std::process::Command::new("sleep");
        command.arg("600").env("PERFLAB_EXECUTION", mark.trim()).spawn().unwrap()
    };
    let mut sleepers = ["1-1-1-1", &copied].map(sleep);
    let told = laboratory.run_successfully(&["undo"]).err;
    let living = sleepers.iter_mut().all(|one| one.try_wait().unwrap().is_none());
    sleepers.iter_mut().for_each(|one| {
        one.kill().unwrap();
        one.wait().unwrap();
    });
    assert!(living, "{told}");
    let named = |sleeper: &std::process::Child| told.contains(&sleeper.id().to_string());
    assert!(named(&sleepers[1]), "what is left alone is named: {told}");
}

#[test]
fn what_runs_in_another_pid_namespace_is_left_alone_root() {
    if !is_root() {
        return skip_test(
            "what_runs_in_another_pid_namespace_is_left_alone_root",
            "a PID namespace needs root",
        );
    }
    let laboratory = Sandbox::new();
    let [begun, goes_on] = ["begun", "goes-on"].map(|name| laboratory.path(name));
    rustix::fs::mknodat(rustix::fs::CWD, &goes_on, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let script = format!("touch {}; read x < {}; echo speed 1", begun.display(), goes_on.display());
    laboratory.write_workload("long", "", &script);
    let study = laboratory.write_study("long.toml", "run = { iterations = 1, warmup = 0 }\n[workload.long]");
    let run = laboratory.command(&["run", &study]);
    let mut inside = std::process::Command::new("unshare");
    inside.args(["--pid", "--fork", "--mount-proc", "--kill-child"]).arg(run.get_program());
    inside.args(run.get_args()).current_dir(laboratory.home.path()).stdin(Stdio::null());
    inside.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let inside = inside.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_condition(|| begun.exists());
    laboratory.run_successfully(&["undo"]);
    fs::write(&goes_on, "on\n").unwrap();
    let ended = crate::laboratory::to_command_output(inside.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

#[test]
fn temporary_files_go_into_no_folder_of_another_user_root() {
    if !is_root() {
        return skip_test(
            "temporary_files_go_into_no_folder_of_another_user_root",
            "giving files away needs root",
        );
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("one.toml", "run = { iterations = 1, warmup = 0 }\n[workload.echo]");
    let theirs = laboratory.path("theirs");
    fs::create_dir_all(theirs.join("ours")).unwrap();
    let code = |words: &[&str], folder: &std::path::Path| {
        laboratory.command(words).env("TMPDIR", folder).output().unwrap().status.code()
    };
    assert_eq!(code(&["run", &study], &theirs), Some(0));
    chown(&theirs, Some(NOBODY), None).unwrap();
    for words in [&["run", &study][..], &["slab", "record", "--", "true"], &["import", "x"]] {
        assert_eq!(code(words, &theirs), Some(3), "{words:?}");
        assert_eq!(code(words, &theirs.join("ours")), Some(3), "{words:?}: they may replace it");
    }
    assert_eq!(code(&["undo"], &theirs), Some(0));
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
}

#[test]
fn root_writes_into_no_archive_that_another_user_may_change_root() {
    if !is_root() {
        return skip_test(
            "root_writes_into_no_archive_that_another_user_may_change_root",
            "giving files away needs root",
        );
    }
    let laboratory = Sandbox::new();
    let study = laboratory.write_study("one.toml", "run = { iterations = 1, warmup = 0 }\n[workload.echo]");
    let runs = laboratory.path("archive/runs");
    fs::create_dir_all(&runs).unwrap();
    chown(&runs, Some(NOBODY), None).unwrap();
    let run = |caller: &str| laboratory.command(&["run", &study]).env("SUDO_UID", caller).output().unwrap();
    assert_eq!(run("0").status.code(), Some(3));
    assert_eq!(fs::read_dir(&runs).unwrap().count(), 0);
    assert_eq!(run(&NOBODY.to_string()).status.code(), Some(0), "who called sudo may");
    assert_eq!(
        laboratory.run_successfully(&["list", "--format", "csv"]).out.lines().count(),
        2,
        "and it is read"
    );
}

/// Processes that this one started, with this word in their command line.
fn children_with_word(parent: &std::process::Child, word: &str) -> Vec<rustix::process::Pid> {
    let numbers = fs::read_to_string(format!("/proc/{0}/task/{0}/children", parent.id()));
    let threads = fs::read_dir(format!("/proc/{}/task", parent.id())).unwrap().flatten();
    let all = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let all: String = all.chain(numbers).collect::<Vec<_>>().join(" ");
    let mut found: Vec<i32> = all.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    found.sort_unstable();
    found.dedup();
    let has_word =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains(word));
    found.into_iter().filter(has_word).filter_map(rustix::process::Pid::from_raw).collect()
}

#[test]
fn what_runs_ends_with_a_perflab_that_is_killed() {
    let laboratory = Sandbox::new();
    let pids = laboratory.path("pids");
    // One in a session of its own, one whose parent is gone, and the workload itself.
    let script = format!(
        "setsid sh -c 'echo $$ >> {0}; exec sleep 600' & (sh -c 'echo $$ >> {0}; exec sleep 600' &); \
         echo $$ >> {0}; exec sleep 600",
        pids.display()
    );
    laboratory.write_workload("long", "", &script);
    let study = laboratory.write_study("long.toml", "run = { iterations = 1, warmup = 0 }\n[workload.long]");
    let mut child =
        laboratory.command(&["run", &study]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = || fs::read_to_string(&pids).unwrap_or_default();
    wait_for_condition(|| begun().lines().count() == 3);
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    let lives = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
    };
    wait_for_condition(|| begun().lines().all(|pid| !lives(pid)));
}

#[test]
fn a_stopped_perflab_gives_no_wrong_time() {
    let laboratory = Sandbox::new();
    let mark = laboratory.path("begun");
    laboratory.write_workload("short", "", &format!("touch {}; sleep 0.3; echo speed 1", mark.display()));
    let study = laboratory.write_study(
        "short.toml",
        "run = { iterations = 1, warmup = 0 }\nmonitors = { loadavg = \"50ms\" }\n[workload.short]",
    );
    let mut command = laboratory.command(&["run", &study]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_condition(|| mark.exists());
    send_signal(&child, Signal::STOP);
    std::thread::sleep(Duration::from_millis(2500));
    send_signal(&child, Signal::CONT);
    let ended = crate::laboratory::to_command_output(child.wait_with_output().unwrap());
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let shown = laboratory.run_json(&["show", "--iterations"]);
    let outcome = mask_numbers(shown[0]["outcome"].as_str().unwrap());
    insta::assert_snapshot!(outcome, @"failed: perflab was stopped (by SIGSTOP, a debugger or a pause of the machine) for N s, so the time it took is unknown");
    let archive = perflab_archive::Archive::open(&laboratory.path("archive")).unwrap();
    let record = archive.find_runs("@latest").unwrap().remove(0).read_record().unwrap();
    assert_eq!(record.samples, []);
}

#[test]
fn what_a_killed_import_left_is_removed_and_named() {
    let laboratory = Sandbox::new();
    let runs = laboratory.path("archive/runs");
    let (dead, living) = (runs.join(".half-perflab-dead"), runs.join(".half-perflab-living"));
    for half in [&dead, &living] {
        fs::create_dir_all(half).unwrap();
        fs::write(half.join("lock"), "").unwrap();
    }
    let lock = File::open(living.join("lock")).unwrap();
    lock.lock().unwrap();
    insta::assert_snapshot!(laboratory.run_successfully(&["undo"]).stable_err(), @"
    removed /tmp/.TMP/archive/runs/.half-perflab-dead, left half-made
    no run left a setting behind; looked for undo journals in /tmp/.TMP/state
    ");
    assert!(!dead.exists() && living.exists());
}

#[test]
fn what_a_process_made_half_goes_once_it_is_killed_or_gets_a_second_signal() {
    let laboratory = Sandbox::new();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap().display().to_string();
    let namespace: String = namespace.chars().filter(char::is_ascii_digit).collect();
    let space = format!("{}.{namespace}", &boot[..8]);
    let living = format!("archive/runs/.half-perflab-{}-{space}-living", std::process::id());
    // Just made, and not locked yet: who is killed then leaves it.
    let script = format!("mkdir -p archive/runs/.half-perflab-$$-{space}-own {living}; exec \"$@\"");
    let mut child = Command::new("sh");
    child.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_perflab"), "undo", "--after-signal", "15"]);
    child.current_dir(laboratory.path("")).env("PERFLAB_ARCHIVE", laboratory.path("archive"));
    child.env("PERFLAB_STATE", laboratory.path("state"));
    let ended = child.output().unwrap();
    assert_eq!(ended.status.signal(), Some(15), "{}", String::from_utf8_lossy(&ended.stderr));
    let left: Vec<_> = fs::read_dir(laboratory.path("archive/runs")).unwrap().flatten().collect();
    let left: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert_eq!(left, [living.rsplit('/').next().unwrap()]);
    let mut killed = Command::new("true").spawn().unwrap();
    killed.wait().unwrap();
    let half = laboratory.path(&format!("archive/runs/.half-perflab-{}-{space}-probe", killed.id()));
    fs::create_dir(&half).unwrap();
    let told = laboratory.run_successfully(&["undo"]).err;
    assert!(told.contains(half.to_str().unwrap()) && !half.exists(), "{told}");
    assert!(laboratory.path(&living).exists());
}

#[test]
fn a_program_that_is_not_there_is_one_error() {
    let laboratory = Sandbox::new();
    for words in [
        &["flame", "record"][..],
        &["slab", "record"],
        &["io", "record"],
        &["trace", "run"],
        &["trace", "attach", "--operation", "x"],
        &["startup", "--caches", "warm"],
        &["prefetch", "learn"],
        &["vm", "boot", "--kernel", "debian-cloud"],
    ] {
        let told = laboratory.run(&[words, &["--", "perflab-nosuch"]].concat());
        assert_eq!(told.code, Some(2), "{words:?}: {}", told.err);
        // What it is taken for is a matter of this machine's PATH.
        let wording = told.err.split("; did you mean `").next().unwrap();
        insta::allow_duplicates!(
            insta::assert_snapshot!(wording, @"error: there is no program `perflab-nosuch`, neither here nor in PATH: give its full path, or install it")
        );
    }
    insta::assert_snapshot!(laboratory.run(&["flame", "record", "--", "slep", "1"]).stable_err(), @"error: there is no program `slep`, neither here nor in PATH: give its full path, or install it; did you mean `sleep`?");
    assert!(!laboratory.path("archive").exists());
}

#[test]
fn a_kernel_that_was_not_fetched_is_said_to_be_so() {
    let laboratory = Sandbox::new();
    let mut command = laboratory.command(&["vm", "boot", "--kernel", "debian-cloud", "--", "true"]);
    let told = crate::laboratory::to_command_output(
        command.env("PERFLAB_CACHE", laboratory.path("cache")).output().unwrap(),
    );
    assert_eq!(told.code, Some(3), "{}", told.err);
    insta::assert_snapshot!("a_kernel_that_was_not_fetched_is_said_to_be_so_1", told.stable_err());
}

#[test]
fn settings_under_a_read_only_sys_are_refused_before_anything_is_done_root() {
    let name = "settings_under_a_read_only_sys_are_refused_before_anything_is_done_root";
    if !is_root() {
        return skip_test(name, "mounting needs root");
    }
    let laboratory = Sandbox::new();
    let begun = laboratory.path("begun");
    laboratory.write_workload("marks", "", &format!("touch {}; echo speed 1", begun.display()));
    let study = laboratory.write_study(
        "s.toml",
        "run = { iterations = 1, warmup = 0 }\n[workload.marks]\n[factor.pages]\nkind = \"file\"\n\
         key = \"/sys/kernel/mm/transparent_hugepage/defrag\"\nlevels = [\"never\", \"always\"]",
    );
    // Its namespaces would keep another test's image mounted.
    let _caches = CachesLock::acquire();
    let mounted = "mount --bind /sys /sys && mount -o remount,bind,ro /sys && exec \"$@\"";
    for words in [&["study", "check", &study][..], &["run", &study]] {
        let command = laboratory.command(words);
        let mut shut = std::process::Command::new("unshare");
        shut.args(["--mount", "--propagation", "private", "sh", "-c", mounted, "sh"]);
        shut.arg(command.get_program()).args(command.get_args());
        shut.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let told =
            crate::laboratory::to_command_output(shut.current_dir(laboratory.home.path()).output().unwrap());
        assert_eq!(told.code, Some(2), "{words:?}: {}", told.err);
        let wording = told.err_wording_of("defrag");
        insta::allow_duplicates!(
            insta::assert_snapshot!(wording, @"error: /tmp/.TMP/s.toml:N:N: `factor.pages.key`: factor `pages`: /sys/kernel/mm/transparent_hugepage/defrag is read-only; it cannot be set on this machine: leave the factor out")
        );
    }
    assert!(!begun.exists());
    insta::assert_snapshot!(laboratory.run_successfully(&["undo"]).stable_err(), @"no run left a setting behind; looked for undo journals in /tmp/.TMP/state");
}

#[test]
fn undo_removes_and_names_the_folder_of_a_killed_recording() {
    let laboratory = Sandbox::new();
    let temporary = laboratory.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut command = laboratory.command(&["slab", "record", "--", "sleep", "600"]);
    let mut child =
        command.env("TMPDIR", &temporary).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let samples = || fs::read_dir(laboratory.path("archive/runs")).is_ok_and(|runs| runs.count() > 0);
    wait_for_condition(|| samples() && fs::read_dir(&temporary).is_ok_and(|all| all.count() > 0));
    std::thread::sleep(Duration::from_millis(500));
    send_signal(&child, Signal::KILL);
    child.wait().unwrap();
    let left = fs::read_dir(&temporary).unwrap().flatten().next().unwrap().path();
    let told = laboratory.run(&["undo"]);
    assert!(told.err.contains(left.to_str().unwrap()), "{}", told.err);
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn an_archive_that_cannot_be_written_is_refused_before_anything_is_done() {
    let laboratory = Sandbox::new();
    let begun = laboratory.path("begun");
    laboratory.write_workload("marks", "", &format!("touch {}; echo speed 1", begun.display()));
    let study = laboratory.write_study("s.toml", "run = { iterations = 1, warmup = 0 }\n[workload.marks]");
    let (file, link) = (laboratory.path("file"), laboratory.path("loop"));
    fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink(&link, &link).unwrap();
    let mut errors = BTreeSet::new();
    let mut refused = |archive: &str, code: i32| {
        for words in [
            &["run", &study][..],
            &["slab", "record", "--", "touch", begun.to_str().unwrap()],
            &["flame", "record", "--", "touch", begun.to_str().unwrap()],
        ] {
            let told = laboratory.run(&[&["--archive", archive], words].concat());
            assert_eq!(told.code, Some(code), "{archive} {words:?}: {}", told.err);
            errors.insert(told.stable_err());
            assert!(!begun.exists(), "{archive} {words:?}");
        }
    };
    refused("/proc/perflab", 3);
    refused(link.to_str().unwrap(), 3);
    refused(file.to_str().unwrap(), 2);
    // One error each, whatever is to be done.
    insta::assert_snapshot!(Vec::from_iter(errors).concat(), @"
    error: cannot write to the archive /proc/perflab: No such file or directory (os error 2); give --archive DIR, or set PERFLAB_ARCHIVE
    error: cannot write to the archive /tmp/.TMP/loop: Too many levels of symbolic links (os error 40); give --archive DIR, or set PERFLAB_ARCHIVE
    error: the archive /tmp/.TMP/file is not a directory; give --archive DIR
    ");
    let told = laboratory.run(&["--archive", file.to_str().unwrap(), "list"]);
    assert_eq!(told.code, Some(2), "{}", told.err);
    insta::assert_snapshot!(told.stable_err(), @"error: the archive /tmp/.TMP/file is not a directory; give --archive DIR");
    let told = laboratory.run_successfully(&["--archive", "/nonexist", "list"]);
    insta::assert_snapshot!(
        "an_archive_that_cannot_be_written_is_refused_before_anything_is_done_1",
        told.stable_err()
    );
    assert_eq!(laboratory.run(&["--archive", link.to_str().unwrap(), "list"]).code, Some(3));
}

/// What an archive on a file system that is mounted for reading shows, and what is refused there before anything is done.
#[test]
fn an_archive_that_is_mounted_read_only_is_read_and_not_written_root() {
    let name = "an_archive_that_is_mounted_read_only_is_read_and_not_written_root";
    if !is_root() {
        return skip_test(name, "mounting needs root");
    }
    let laboratory = Sandbox::new();
    laboratory.run_echo("a", 100);
    laboratory.run_echo("b", 100);
    fs::write(laboratory.path("go.txt"), "goos: linux\nBenchmarkX-2 \t 100\t 12 ns/op\n").unwrap();
    let begun = laboratory.path("begun");
    laboratory.write_workload("marks", "", &format!("touch {}; echo speed 1", begun.display()));
    let study = laboratory.write_study("s.toml", "run = { iterations = 1, warmup = 0 }\n[workload.marks]");
    let mounted = "mount --bind archive archive && mount -o remount,bind,ro archive && exec \"$@\"";
    let told = |words: &[&str]| {
        let command = laboratory.command(words);
        let mut shut = std::process::Command::new("unshare");
        shut.args(["--mount", "--propagation", "private", "sh", "-c", mounted, "sh"]);
        shut.arg(command.get_program()).args(command.get_args());
        shut.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        crate::laboratory::to_command_output(shut.current_dir(laboratory.home.path()).output().unwrap())
    };
    for words in [
        &["list"][..],
        &["show", "a"],
        &["compare", "a", "b"],
        &["history"],
        &["report", "a", "-o", "-"],
        &["diff", "a", "b"],
    ] {
        let told = told(words);
        assert_eq!(told.code, Some(0), "{words:?}: {}", told.err);
    }
    let mut errors = Vec::new();
    for (words, code) in [
        (&["run", &study][..], 3),
        (&["import", "go.txt"], 3),
        (&["slab", "record", "--", "touch", "begun"], 3),
        (&["prune", "--keep", "0", "--labelled", "--apply"], 3),
        (&["report", "a"], 3),
    ] {
        let told = told(words);
        assert_eq!(told.code, Some(code), "{words:?}: {}", told.err);
        errors.push(told.stable_err().trim_end().to_owned());
    }
    insta::assert_snapshot!(errors.join("\n"), @"
    error: cannot write to the archive /tmp/.TMP/archive: Read-only file system (os error 30); give --archive DIR, or set PERFLAB_ARCHIVE
    error: cannot write to the archive /tmp/.TMP/archive: Read-only file system (os error 30); give --archive DIR, or set PERFLAB_ARCHIVE
    error: cannot write to the archive /tmp/.TMP/archive: Read-only file system (os error 30); give --archive DIR, or set PERFLAB_ARCHIVE
    error: cannot open /tmp/.TMP/archive/runs/RUN/lock: Read-only file system (os error 30)
    error: cannot write /tmp/.TMP/archive/reports/RUN.html: Read-only file system (os error 30)
    ");
    assert!(!begun.exists());
    assert_eq!(laboratory.run_successfully(&["list", "--format", "csv"]).out.lines().count(), 3);
}
