//! Guests in step: real kernels, killed, frozen, cut off.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use perflab_model::FactDocument;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::laboratory::{CommandOutput, Sandbox, to_command_output};
use crate::vm::GuestSandbox;

struct SynchronisedGuests {
    guests: GuestSandbox,
    laboratory: Sandbox,
}

impl SynchronisedGuests {
    fn new(test: &str) -> Option<SynchronisedGuests> {
        GuestSandbox::new(test).map(|guests| SynchronisedGuests { guests, laboratory: Sandbox::new() })
    }

    /// Bare guests with a built-in load: about half a second an iteration under TCG.
    fn study_text(&self, count: u32, rules: &str) -> String {
        let text = format!(
            "[run]\nwarmup = 0\n{rules}\n[workload.memory-sweep]\nparameters = {{ size = \"1MiB\", passes = 20 }}\n\
             [target.guest]\nkind = \"vm\"\ncount = {count}\nkernel = \"debian-cloud\"\nroot = \"bare\"\n\
             memory = \"384MiB\"\n[monitors]\nstat = \"200ms\"\n"
        );
        self.laboratory.write_study("guests.toml", &text)
    }

    /// Runs it; once the second iteration began, does something to the second guest.
    fn run_disturbed(&self, study: &str, disturb: impl FnOnce(&SynchronisedGuests)) -> CommandOutput {
        let mut command = self.laboratory.command(&["run", study, "--no-report"]);
        command.env("XDG_RUNTIME_DIR", self.guests.home());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut child = Some(child);
        let begun = Instant::now();
        while self.run_journal().matches("\"released\"").count() < 2
            && begun.elapsed() < Duration::from_secs(300)
        {
            if child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some()) {
                break;
            }
            sleep(Duration::from_millis(20));
        }
        disturb(self);
        to_command_output(child.take().unwrap().wait_with_output().unwrap())
    }

    fn run_journal(&self) -> String {
        let runs = fs::read_dir(self.laboratory.path("archive/runs")).into_iter().flatten().flatten();
        runs.filter_map(|run| fs::read_to_string(run.path().join("journal.jsonl")).ok()).collect()
    }

    /// The private folder of the second guest.
    fn second_guest_folder(&self) -> PathBuf {
        let folders = fs::read_dir(self.guests.home().join("perflab")).unwrap().flatten();
        folders.map(|folder| folder.path()).find(|path| path.to_str().unwrap().contains("/guest2-")).unwrap()
    }

    /// Sends a signal to QEMU of the second guest.
    fn signal_second_guest(&self, signal: Signal) {
        let note: Value =
            serde_json::from_slice(&fs::read(self.second_guest_folder().join("guest.json")).unwrap())
                .unwrap();
        let pid = Pid::from_raw(note["pid"].as_i64().unwrap() as i32).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Targets that were lost, as the journal has them, each with the reason.
    fn lost_targets(&self) -> Vec<(String, String)> {
        let journal = self.run_journal();
        let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lost = events.filter(|event| event["what"]["target-lost"].is_object());
        let reason = |lost: &Value| lost["what"]["target-lost"]["reason"].as_str().unwrap().to_owned();
        lost.map(|lost| (self.laboratory.target_name(&lost), reason(&lost))).collect()
    }

    /// The second guest was lost, and no other; nothing is left of any. The reason, for a snapshot of its wording.
    fn assert_second_was_lost(&self, ended: &CommandOutput) -> String {
        assert_eq!(ended.code, Some(4), "{}", ended.err);
        let lost = self.lost_targets();
        let [(target, reason)] = &lost[..] else { panic!("{lost:?} {}", ended.err) };
        assert_eq!(target, "guest2");
        assert!(
            ended.err.lines().any(|line| line.contains("guest2") && line.contains(reason)),
            "{}",
            ended.err
        );
        self.guests.assert_nothing_is_left();
        reason.split("; its last output").next().unwrap().to_owned()
    }
}

#[test]
fn two_guests_do_every_iteration_in_step_and_their_consoles_are_kept() {
    let Some(step) =
        SynchronisedGuests::new("two_guests_do_every_iteration_in_step_and_their_consoles_are_kept")
    else {
        return;
    };
    let study = step.study_text(2, "iterations = 3");
    let ended = step.run_disturbed(&study, |_| ());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let journal = step.run_journal();
    assert_eq!(journal.matches("\"released\"").count(), 3);
    let run = step.laboratory.only_run();
    let manifest: Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    let targets = manifest["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 2);
    for target in targets {
        assert!(target["kernel"].as_str().unwrap().contains("cloud-amd64"), "{target}");
        assert_ne!(target["boot_id"], manifest["boot_id"]);
    }
    assert_ne!(targets[0]["boot_id"], targets[1]["boot_id"]);
    let outputs = read_zstd_text(&run.join("logs/outputs.jsonl.zst"));
    assert_eq!(outputs.matches("Linux version 6").count(), 2, "both consoles");
    assert_eq!(outputs.matches("cloud-amd64, run by ").count(), 2, "and how they were run");
    step.guests.assert_nothing_is_left();
}

fn read_zstd_text(path: &Path) -> String {
    let output = std::process::Command::new("zstd").arg("-dc").arg(path).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn of_four_guests_one_is_killed_and_the_others_go_on() {
    let Some(step) = SynchronisedGuests::new("of_four_guests_one_is_killed_and_the_others_go_on") else {
        return;
    };
    let study = step.study_text(4, "iterations = 4\non-lost-target = \"continue\"");
    let ended = step.run_disturbed(&study, |step| step.signal_second_guest(Signal::KILL));
    insta::assert_snapshot!(step.assert_second_was_lost(&ended), @"its stream ended");
    let journal = step.run_journal();
    assert_eq!(journal.matches("\"released\"").count(), 4, "the three that are left went on");
    assert!(journal.matches("guest2 was lost meanwhile").count() == 3, "{}", ended.err);
    // What its console said last stands in the report, as `show` prints it.
    let said = step.laboratory.run_successfully(&["show", "--output", "1"]);
    let last = said.out.lines().rfind(|line| line.trim_start().starts_with('[')).unwrap().trim().to_owned();
    let page = step.laboratory.run_successfully(&["report", "@latest", "-o", "-"]).out;
    let end =
        page.split("<summary>Last output of the targets").nth(1).unwrap().split("</details>").next().unwrap();
    let plain = |text: &str| {
        text.split(|sign: char| !sign.is_ascii_alphanumeric()).map(String::from).collect::<String>()
    };
    assert!(plain(end).contains(&plain(&last)), "{last}: {end}");
}

#[test]
fn a_frozen_guest_is_given_up_in_time() {
    let Some(step) = SynchronisedGuests::new("a_frozen_guest_is_given_up_in_time") else { return };
    let study = step.study_text(2, "iterations = 400\nlost-after = \"5s\"");
    let ended = step.run_disturbed(&study, |step| step.signal_second_guest(Signal::STOP));
    insta::assert_snapshot!(step.assert_second_was_lost(&ended), @"it did not answer for 5 s");
}

#[test]
fn an_interrupted_run_leaves_no_guest_and_keeps_what_was_measured() {
    let Some(step) =
        SynchronisedGuests::new("an_interrupted_run_leaves_no_guest_and_keeps_what_was_measured")
    else {
        return;
    };
    let study = step.study_text(2, "iterations = 400");
    // Its own perflab is the only process that has the study in its command line.
    let ended = step.run_disturbed(&study, |_| {
        let perflab = processes_with_word(&study);
        assert_eq!(perflab.len(), 1, "{perflab:?}");
        kill_process(Pid::from_raw(perflab[0]).unwrap(), Signal::INT).unwrap();
    });
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert!(step.run_journal().matches("\"sample\"").count() >= 2, "{}", ended.err);
    assert_eq!(step.laboratory.latest_status(), "stopped");
    step.guests.assert_nothing_is_left();
}

fn processes_with_word(word: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|part| part == word.as_bytes())
    };
    pids.filter(has).collect()
}

#[test]
fn a_guest_whose_channel_is_cut_is_lost() {
    let Some(step) = SynchronisedGuests::new("a_guest_whose_channel_is_cut_is_lost") else { return };
    let study = step.study_text(2, "iterations = 400");
    let ended = step.run_disturbed(&study, cut_agent_socket);
    insta::assert_snapshot!(step.assert_second_was_lost(&ended), @"its stream ended");
}

/// QEMU puts something else in the place of the socket to the agent.
fn cut_agent_socket(step: &SynchronisedGuests) {
    let mut monitor = BufReader::new(UnixStream::connect(step.second_guest_folder().join("qmp")).unwrap());
    let mut line = String::new();
    monitor.read_line(&mut line).unwrap();
    let backend = r#"{"execute": "chardev-change", "arguments": {"id": "agent", "backend": {"type": "null", "data": {}}}}"#;
    for order in [r#"{"execute": "qmp_capabilities"}"#, backend] {
        writeln!(monitor.get_mut(), "{order}").unwrap();
        line.clear();
        // perflab may have ended the lost guest before its answer is read.
        let answered = monitor.read_line(&mut line).is_ok_and(|bytes| bytes > 0);
        assert!(line.contains("return") || !answered && order == backend, "{line}");
    }
}

/// What a workload of a guest's does when it is the second one: with perl, as the guest's root is this host's.
const LIAR: &str = r#"
if [ "$(cat /proc/sys/kernel/hostname)" = guest2 ]; then
  perl -e 'for my $p (map { m{/proc/(\d+)/} } glob "/proc/[0-9]*/cmdline") {
    for my $f (glob "/proc/$p/fd/*") {
      next unless (readlink($f) // "") =~ m{^/dev/vport};
      my $pid = syscall(434, $p + 0, 0); next if $pid < 0;
      $f =~ m{(\d+)$}; my $fd = syscall(438, $pid, $1 + 0, 0); next if $fd < 0;
      next unless -e "/proc/$p/cmdline" and `cat /proc/$p/cmdline` =~ /agent/;
      open my $o, ">&=", $fd or die; syswrite $o, "\xff" x 64; sleep 1; exit 0;
    }
  } die "no port"'
fi
echo speed 7"#;

/// Two guests with this host's root, and a script as their workload.
fn scripted_study(step: &SynchronisedGuests, script: &str, rules: &str) -> String {
    step.laboratory.write_workload("script", "", script);
    let text = format!(
        "[run]\nwarmup = 0\n{rules}\n[workload.script]\n[target.guest]\nkind = \"vm\"\ncount = 2\n\
         kernel = \"debian-cloud\"\n"
    );
    step.laboratory.write_study("scripted.toml", &text)
}

/// Samples of metrics that decide, in a journal.
fn count_deciding_samples(journal: &str) -> usize {
    let is_one = |line: &&str| line.contains("\"sample\"") && line.contains("\"primary\":true");
    journal.lines().filter(is_one).count()
}

#[test]
fn a_guest_that_sends_garbage_is_given_up_and_nothing_of_it_is_believed() {
    let Some(step) =
        SynchronisedGuests::new("a_guest_that_sends_garbage_is_given_up_and_nothing_of_it_is_believed")
    else {
        return;
    };
    let study = scripted_study(&step, LIAR, "iterations = 2\non-lost-target = \"continue\"");
    let ended = step.run_disturbed(&study, |_| ());
    insta::assert_snapshot!(step.assert_second_was_lost(&ended), @"a frame of 4294967295 bytes was announced; at most 4194304 are allowed");
    let journal = step.run_journal();
    // The iteration of the loss counts for nobody; the next one is the first guest's alone.
    assert_eq!(count_deciding_samples(&journal), 1, "{}", ended.err);
}

#[test]
fn a_guest_whose_disk_is_full_fails_its_iterations_and_the_run_ends_well() {
    let Some(step) =
        SynchronisedGuests::new("a_guest_whose_disk_is_full_fails_its_iterations_and_the_run_ends_well")
    else {
        return;
    };
    let script = "if [ \"$(cat /proc/sys/kernel/hostname)\" = guest2 ]; then \
                  dd if=/dev/zero of=/tmp/fill bs=1M; echo more >/tmp/more || exit 9; fi; echo speed 7";
    let study = scripted_study(&step, script, "iterations = 2");
    let ended = step.run_disturbed(&study, |_| ());
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    assert_eq!(ended.err.matches("on guest2)").count(), 2, "{}", ended.err);
    assert_eq!(step.lost_targets(), Vec::new(), "a full disk is no reason to be given up: {}", ended.err);
    // What went well on the other one is there.
    assert_eq!(count_deciding_samples(&step.run_journal()), 2, "{}", ended.err);
    let outputs = read_zstd_text(&step.laboratory.only_run().join("logs/outputs.jsonl.zst"));
    assert!(outputs.contains("No space left on device"), "{outputs}");
    step.guests.assert_nothing_is_left();
}

#[test]
fn each_case_has_guests_of_its_own_that_start_under_its_setting_of_the_host() {
    let Some(step) =
        SynchronisedGuests::new("each_case_has_guests_of_its_own_that_start_under_its_setting_of_the_host")
    else {
        return;
    };
    let knob = Path::new("/proc/sys/vm/stat_interval");
    let before = fs::read_to_string(knob).unwrap();
    let study = step.study_text(1, "iterations = 2\nboots = 2\nboot-each-case = true");
    let factor = format!(
        "[factor.knob]\nkind = \"file\"\nkey = \"{}\"\non = \"host\"\nlevels = [\"7\", \"9\"]\n\
         [factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\non = \"guest\"\nlevels = [10]\n",
        knob.display()
    );
    let text = fs::read_to_string(&study).unwrap();
    fs::write(&study, format!("{text}{factor}")).unwrap();
    let ended = step.run_disturbed(&study, |_| ());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let journal = step.run_journal();
    assert_eq!(journal.matches("\"released\"").count(), 8);
    let outputs = read_zstd_text(&step.laboratory.only_run().join("logs/outputs.jsonl.zst"));
    assert_eq!(outputs.matches("Linux version 6").count(), 4, "two boots of each of two cases");
    let boots: Vec<u64> = journal
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|event| event["what"]["sample"]["boot"].as_u64())
        .collect();
    assert_eq!((boots.first(), boots.last()), (Some(&0), Some(&3)), "each start is a boot: {boots:?}");
    // Whatever was told in a guest's own start, the host's setting was there before.
    let settings: Vec<&str> = journal
        .lines()
        .filter(|line| line.contains("setting-applied") && line.contains("stat_interval"))
        .collect();
    assert!((2..=4).contains(&settings.len()), "{settings:?}");
    assert_eq!(fs::read_to_string(knob).unwrap(), before);
    step.guests.assert_nothing_is_left();
}

#[test]
fn stacks_and_io_of_two_guests_stand_beside_one_another() {
    let Some(step) = SynchronisedGuests::new("stacks_and_io_of_two_guests_stand_beside_one_another") else {
        return;
    };
    let study = step.study_text(2, "iterations = 2");
    let text = fs::read_to_string(&study).unwrap();
    let recorded = "[profile]\nfrequency = 199\nscope = \"system\"\n[io]\nscope = \"workload\"\n";
    fs::write(&study, format!("{text}{recorded}")).unwrap();
    let ended = step.run_disturbed(&study, |_| ());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let folded = step.laboratory.run_successfully(&["flame", "export", "@latest", "--to", "folded"]).out;
    for guest in ["guest1", "guest2"] {
        let lines = folded.lines().filter(|line| line.split(';').nth(1) == Some(guest)).count();
        assert!(lines > 3, "{guest}: {folded}");
    }
    let archive = perflab_archive::Archive::open(&step.laboratory.path("archive")).unwrap();
    let recordings = archive.find_runs("@latest").unwrap().remove(0).read_io_recordings().unwrap();
    let seen = |target| {
        let mine = recordings.iter().filter(|(iteration, _)| iteration.target == Some(target));
        mine.filter(|(_, recording)| !recording.events.is_empty()).count()
    };
    assert_eq!((seen(0), seen(1)), (2, 2), "each iteration of each guest starts a program");
    // Of both guests, whose clocks began when they were started: everything on one axis.
    let test = "stacks_and_io_of_two_guests_stand_beside_one_another";
    if let Some(trace) = crate::perfetto::read_trace(test, &step.laboratory, "@latest") {
        let ends = |key: &str| [0, 1].map(|end| trace[key][end].as_i64().unwrap());
        let ([began, ended], [first, last]) = (ends("worked"), ends("counted"));
        let minute = 60_000_000_000;
        assert!(first > began - minute && last < ended + minute, "{trace}");
    }
    step.guests.assert_nothing_is_left();
}

#[test]
fn a_guest_over_vsock_works_or_is_refused_with_what_is_missing() {
    let Some(step) = SynchronisedGuests::new("a_guest_over_vsock_works_or_is_refused_with_what_is_missing")
    else {
        return;
    };
    let study = step.study_text(1, "iterations = 1");
    let text = fs::read_to_string(&study).unwrap();
    fs::write(&study, text.replace("root = ", "channel = \"vsock\"\nroot = ")).unwrap();
    let ended = step.run_disturbed(&study, |_| ());
    if Path::new("/dev/vhost-vsock").exists() {
        assert_eq!(ended.code, Some(0), "{}", ended.err);
    } else {
        assert_ne!(ended.code, Some(0));
        insta::assert_snapshot!(ended.err_wording_of("/dev/vhost-vsock"), @"error: target guest: guest guest cannot have vsock: /dev/vhost-vsock is not there (`modprobe vhost_vsock`); leave `channel` out for virtio-serial");
    }
    step.guests.assert_nothing_is_left();
}

/// Its log can no longer be read, but its console was: the panic is on the side of the level that asked for it.
#[test]
fn a_guest_that_panics_at_one_level_is_told_by_the_kernels_log_of_a_comparison() {
    let Some(guests) = SynchronisedGuests::new("a_guest_that_panics_at_one_level") else { return };
    let text = "[run]\nwarmup = 0\niterations = 1\norder = \"sequential\"\ntime-limit = \"100s\"\n[workload.w]\n\
                command = \"[ $END = no ] || echo c > /proc/sysrq-trigger\"\n[target.guest]\nkind = \"vm\"\n\
                kernel = \"debian-cloud\"\nroot = \"bare\"\nmemory = \"384MiB\"\nprograms = [\"/bin/sh\"]\n\
                [factor.end]\nkind = \"environment\"\nkey = \"END\"\nlevels = [\"no\", \"yes\"]\n";
    let study = guests.laboratory.write_study("s.toml", text);
    let mut command = guests.laboratory.command(&["run", &study, "--no-report", "--quiet"]);
    let ended = to_command_output(command.env("XDG_RUNTIME_DIR", guests.guests.home()).output().unwrap());
    assert_eq!(ended.code, Some(4), "{}", ended.err);
    let compare = ["compare", "@latest", "--by", "end", "--fail-if", "kernel-log:panic", "--format", "json"];
    let said = guests.laboratory.run(&compare);
    assert_eq!(said.code, Some(5), "{}", said.err);
    let found: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let troubles = found["kernel_log"]["troubles"].as_array().unwrap();
    let panic = troubles.iter().find(|row| row["trouble"] == "panic").unwrap();
    assert_eq!(panic["line"], "Kernel panic - not syncing: sysrq triggered crash");
    let counts = [0, 1].map(|side: usize| panic["sides"][side]["iterations"].as_u64().unwrap());
    assert_eq!(counts, [0, 1], "{panic}");
    guests.guests.assert_nothing_is_left();
}

/// The command line of each guest says which level it was started with.
#[test]
fn a_key_of_the_guests_is_a_factor_and_they_are_started_anew_for_it() {
    let Some(guests) =
        SynchronisedGuests::new("a_key_of_the_guests_is_a_factor_and_they_are_started_anew_for_it")
    else {
        return;
    };
    let text = "[run]\nwarmup = 0\niterations = 2\nseed = 3\n[workload.memory-sweep]\n\
                parameters = { size = \"1MiB\", passes = 2 }\n[target.guest]\nkind = \"vm\"\n\
                kernel = \"debian-cloud\"\nroot = \"bare\"\nmemory = \"384MiB\"\n\
                [factor.words]\nkind = \"target\"\nkey = \"append\"\nlevels = [\"\", \"perflab.level=other\"]\n";
    let study = guests.laboratory.write_study("s.toml", text);
    let mut command = guests.laboratory.command(&["run", &study, "--no-report", "--quiet"]);
    let ended = to_command_output(command.env("XDG_RUNTIME_DIR", guests.guests.home()).output().unwrap());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let archive = perflab_archive::Archive::open(&guests.laboratory.path("archive")).unwrap();
    let run = archive.find_runs("@latest").unwrap().remove(0);
    let manifest = run.manifest().unwrap();
    // The guest has no file of its kernel's configuration: the host knows it. Booting once more brings the same once more.
    let documents = run.read_documents().unwrap();
    let texts = |name: &str| -> Vec<&str> {
        let fits = documents.iter().filter(|one| one.target == Some(0) && one.document.name == name);
        fits.map(|one| one.document.text.as_str()).collect()
    };
    let (tunables, options) = (texts(FactDocument::SYSCTL), texts(FactDocument::KERNEL_CONFIG));
    assert!(
        !tunables.is_empty() && tunables.iter().all(|text| text.contains("\nvm.swappiness = ")),
        "{tunables:?}"
    );
    assert!(options.len() == 1 && options[0].contains("\nCONFIG_HZ=250\n"), "{options:?}");
    let told: Vec<(String, bool)> = manifest
        .variants
        .iter()
        .map(|variant| {
            let words = variant.targets[0].facts.value(&perflab_model::fact_table::KERNEL_CMDLINE);
            let words = words.map(ToString::to_string).unwrap_or_default();
            (variant.levels["words"].clone(), words.contains("perflab.level=other"))
        })
        .collect();
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|(level, is_other)| *is_other != level.is_empty()), "{told:?}");
    let boots: std::collections::BTreeSet<&String> =
        manifest.variants.iter().map(|variant| &variant.targets[0].boot_id).collect();
    assert_eq!(boots.len(), 2);
    // One boot a level: no word of a level stands on it.
    let compared = guests.laboratory.run_json(&["compare", "--by", "words"]);
    let verdicts: Vec<&str> =
        compared["rows"].as_array().into_iter().flatten().filter_map(|row| row["verdict"].as_str()).collect();
    assert!(verdicts.iter().all(|verdict| !["better", "worse", "same"].contains(verdict)), "{compared}");
    guests.guests.assert_nothing_is_left();
}

/// What the kernel of most machines lacks, or has switched off, this one has: two nodes, PSI, the scheduler's statistics.
#[test]
fn monitors_of_a_guest_read_what_its_kernel_has_and_name_what_it_lacks() {
    let Some(step) =
        SynchronisedGuests::new("monitors_of_a_guest_read_what_its_kernel_has_and_name_what_it_lacks")
    else {
        return;
    };
    let there = [
        "node",
        "node-vmstat",
        "zones",
        "buddy",
        "page-types",
        "pressure",
        "schedstat",
        "sched-domains",
        "interrupts",
        "softirqs",
        "softnet",
        "tasks",
        "writeback",
        "net-protocols",
    ];
    let absent = [
        ("zram", "CONFIG_ZRAM"),
        ("energy", "CONFIG_POWERCAP"),
        ("nfs", "CONFIG_NFS_FS"),
        ("thermal", "CONFIG_THERMAL"),
    ];
    let monitors = there.iter().copied().chain(absent.iter().map(|(name, _)| *name));
    let monitors: String = monitors.map(|name| format!("{name} = \"200ms\"\n")).collect();
    let text = format!(
        "[run]\nwarmup = 0\niterations = 2\n[workload.memory-sweep]\nparameters = {{ size = \"1MiB\", passes = 20 }}\n\
         [target.guest]\nkind = \"vm\"\nkernel = \"debian-cloud\"\nroot = \"bare\"\n\
         nodes = [{{ cpus = 1, memory = \"256MiB\" }}, {{ cpus = 1, memory = \"256MiB\" }}]\n\
         append = [\"psi=1\", \"schedstats=enable\"]\n[monitors]\n{monitors}"
    );
    let study = step.laboratory.write_study("monitors.toml", &text);
    let ended = step.run_disturbed(&study, |_| ());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let tables: Vec<String> = fs::read_dir(step.laboratory.only_run().join("series"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in there {
        assert!(tables.iter().any(|table| table.starts_with(&format!("{name}."))), "{name}: {tables:?}");
    }
    let journal = step.run_journal();
    let events: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (name, option) in absent {
        let gaps: Vec<&str> = events
            .iter()
            .filter(|event| {
                // The same name alone is this host's own.
                event["what"]["gap"]["monitor"] == format!("{name}.guest")
            })
            .map(|event| event["what"]["gap"]["reason"].as_str().unwrap())
            // A busy machine gives the sampler of a guest no time.
            .filter(|reason| !reason.contains(" lost: "))
            .collect();
        let [reason] = &gaps[..] else { panic!("{name}: {gaps:?}") };
        assert!(reason.contains(option), "{reason}");
    }
}

/// Debian's kernel has version 2 of control groups alone.
#[test]
fn control_groups_of_version_2_limit_the_workload_of_a_guest() {
    let Some(step) = SynchronisedGuests::new("control_groups_of_version_2_limit_the_workload_of_a_guest")
    else {
        return;
    };
    let script = "d=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup); cat $d/cpu.max $d/memory.max $d/memory.high $d/pids.max $d/cpuset.cpus.partition; \
                  grep Cpus_allowed_list /proc/self/status /proc/1/status; \
                  i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; cat $d/cpu.stat; echo speed 7";
    let study = scripted_study(&step, script, "iterations = 1");
    let limits = [
        ("cpu-max", "20%"),
        ("memory-max", "64MiB"),
        ("memory-high", "32MiB"),
        ("pids-max", "55"),
        ("isolated-cpus", "1"),
    ];
    let limits = limits.map(|(name, level)| format!("{name} = {{ level = \"{level}\", on = \"guest\" }}\n"));
    let text = fs::read_to_string(&study).unwrap().replace("count = 2", "count = 1\ncpus = 2");
    fs::write(&study, format!("{text}[settings]\n{}", limits.concat())).unwrap();
    let ended = step.run_disturbed(&study, |_| ());
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let outputs = read_zstd_text(&step.laboratory.only_run().join("logs/outputs.jsonl.zst"));
    assert!(outputs.contains("20000 100000\\n67108864\\n33554432\\n55\\nisolated\\n"), "{outputs}");
    let allowed = |process: &str, cpus: &str| {
        outputs.contains(&format!("/proc/{process}/status:Cpus_allowed_list:\\t{cpus}\\n"))
    };
    assert!(allowed("self", "1") && allowed("1", "0"), "{outputs}");
    step.guests.assert_nothing_is_left();
}
