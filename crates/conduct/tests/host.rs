//! Runs on this host with real processes: workloads that behave, fail, babble and never end; settings
//! under a root of our own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use perflab_conduct::{ConductError, LocalMachine, PlanChoices, RunPermissions, conduct_run, plan_study};
use perflab_model::StopRequest;
use perflab_model::error_class::{Classify as _, ErrorClass};
use perflab_model::event::RunPhase;
use perflab_model::resource_use::ResourceMetric;
use perflab_model::run::{ClockAnchor, Overhead};
use perflab_model::study::TomlSource;
use perflab_model::{FORMAT_VERSION, Facts, Manifest, Outcome, RunEvent, RunEventKind, RunStatus, Sample};
use perflab_observe::Root;
use perflab_workload::Catalogue;

/// A workload of the test's own: a shell script that is given as its only argument.
fn script_definition(script: &str) -> String {
    format!(
        "title = \"t\"\nmeasures = \"a test\"\nhomepage = \"https://localhost\"\nlicence = \"MIT\"\n\
         argv = [\"sh\", \"-c\", '''{script}''']\n[needs]\nscratch = true\n\
         [[metric]]\nname = \"speed\"\nunit = \"ops/s\"\ndirection = \"higher\"\nprimary = true\n\
         regex = 'speed (?<value>[0-9.]+)'\n"
    )
}

struct LocalRunFixture {
    home: tempfile::TempDir,
}

struct RunEvents {
    events: Vec<RunEvent>,
    status: Result<RunStatus, ConductError>,
}

impl LocalRunFixture {
    fn new(scripts: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        for directory in ["workloads", "root/proc/sys/vm", "scratch"] {
            fs::create_dir_all(home.path().join(directory)).unwrap();
        }
        fs::write(home.path().join("root/proc/sys/vm/swappiness"), "60\n").unwrap();
        for (name, script) in scripts {
            fs::write(home.path().join(format!("workloads/{name}.toml")), script_definition(script)).unwrap();
        }
        LocalRunFixture { home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn read_swappiness(&self) -> String {
        fs::read_to_string(self.path("root/proc/sys/vm/swappiness")).unwrap().trim().to_owned()
    }

    fn run_study(&self, study: &str) -> RunEvents {
        self.run_study_with(study, &StopRequest::new(), |_| {})
    }

    fn run_study_with(&self, study: &str, stop: &StopRequest, mut each: impl FnMut(&RunEvent)) -> RunEvents {
        let mut catalogue = Catalogue::embedded();
        catalogue.extend_from_folder(&self.path("workloads")).unwrap();
        let source = TomlSource::new("s.toml", format!("title = \"t\"\n{study}"));
        let study = source.parse_study().unwrap();
        let catalogue = catalogue.with_commands_of(&study).unwrap();
        let choices = PlanChoices { scratch: Some(self.path("scratch")), ..PlanChoices::default() };
        let plan = plan_study(&study, &catalogue, &Facts::default(), &choices).unwrap();
        let host = LocalMachine {
            root: Root(self.path("root")),
            state: self.path("state"),
            perflab: PathBuf::from("perflab"),
            catalogue,
            runs_as_typed: false,
            quiet_after: None,
            traces: Default::default(),
            monitors: Default::default(),
            counters: Default::default(),
            events: Default::default(),
        };
        let manifest = Manifest {
            format: FORMAT_VERSION,
            writer: "test".into(),
            id: "TESTRUN".into(),
            label: None,
            study,
            study_text: source.text.clone(),
            study_file: source.file.clone(),
            brief: false,
            plan,
            facts: Facts::default(),
            boot_id: "boot".into(),
            target: "host".into(),
            targets: Vec::new(),
            variants: Vec::new(),
            duet: None,
            continues: None,
            first_part: None,
            anchor: ClockAnchor::default(),
            status: RunStatus::Running,
            overhead: Overhead::default(),
        };
        let permissions = RunPermissions::default();
        let (sink, receiver) = channel();
        std::thread::scope(|scope| {
            let source = scope.spawn(|| {
                let sink = sink;
                conduct_run(&host, &manifest, &permissions, &sink, stop)
            });
            let events: Vec<RunEvent> = receiver.iter().inspect(|event| each(event)).collect();
            RunEvents { events, status: source.join().unwrap() }
        })
    }
}

/// What every iteration used of the machine, beside what its output says.
fn is_resource(sample: &Sample) -> bool {
    ResourceMetric::is_name(&sample.metric)
}

impl RunEvents {
    fn outcomes(&self) -> Vec<&Outcome> {
        self.events.iter().filter_map(ended_outcome).collect()
    }

    fn phases(&self) -> Vec<RunPhase> {
        let phase = |event: &RunEvent| match event.what {
            RunEventKind::Phase(phase) => Some(phase),
            _ => None,
        };
        self.events.iter().filter_map(phase).collect()
    }

    fn values(&self) -> Vec<f64> {
        let value = |event: &RunEvent| match &event.what {
            RunEventKind::Sample(sample) if !is_resource(sample) => Some(sample.value),
            _ => None,
        };
        self.events.iter().filter_map(value).collect()
    }

    fn printed_output(&self) -> String {
        let text = |event: &RunEvent| match &event.what {
            RunEventKind::Output { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(text).collect()
    }
}

/// What an event is, in a word; with its number where it has one. What an iteration used of the machine is none.
fn event_kind(event: &RunEvent) -> Option<String> {
    if matches!(&event.what, RunEventKind::Sample(sample) if is_resource(sample)) {
        return None;
    }
    Some(match &event.what {
        RunEventKind::Phase(phase) => format!("{phase:?}"),
        RunEventKind::Began(_) => "began".into(),
        RunEventKind::Document(_) => "tunables".into(),
        RunEventKind::IterationBegan { slot } => format!("begin {slot}"),
        RunEventKind::Output { name, .. } => name.clone(),
        RunEventKind::Sample(sample) => format!("{} {}", sample.metric, sample.iteration),
        RunEventKind::IterationEnded { slot, .. } => format!("end {slot}"),
        RunEventKind::Progress { done, total, .. } => format!("{done} of {total}"),
        RunEventKind::SettingApplied { to, .. } => format!("set {to}"),
        RunEventKind::SettingUndone { .. } => "undone".into(),
        RunEventKind::Ended { status, .. } => format!("{status:?}"),
        _ => "other".into(),
    })
}

fn ended_outcome(event: &RunEvent) -> Option<&Outcome> {
    match &event.what {
        RunEventKind::IterationEnded { outcome, .. } => Some(outcome),
        _ => None,
    }
}

fn is_folder_empty(directory: &Path) -> bool {
    fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none())
}

#[test]
fn a_run_tells_its_phases_in_order_and_leaves_nothing_behind() {
    let laboratory = LocalRunFixture::new(&[("good", "touch file; pwd; echo speed 12.5")]);
    let told = laboratory.run_study("run = { iterations = 3, warmup = 1 }\n[workload.good]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [60, 10]");
    assert_eq!(told.status.as_ref().unwrap(), &RunStatus::Finished);
    use RunPhase::{Apply, Check, Finish, Iterate, Prepare, Undo, Warmup};
    assert_eq!(told.phases(), [Check, Prepare, Apply, Warmup, Iterate, Undo, Finish]);
    assert_eq!(told.values(), [12.5; 6], "warm-ups are not measured");
    assert_eq!(told.outcomes().len(), 8);
    assert!(matches!(
        told.events.last().unwrap().what,
        RunEventKind::Ended { status: RunStatus::Finished, .. }
    ));
    assert_eq!(laboratory.read_swappiness(), "60");
    assert!(is_folder_empty(&laboratory.path("scratch")) && is_folder_empty(&laboratory.path("state")));
    let folders = told.printed_output();
    let mut folders: Vec<&str> = folders.lines().filter(|line| line.contains("perflab-TESTRUN")).collect();
    folders.dedup();
    assert_eq!(folders.len(), 8, "each iteration has a folder of its own");
}

#[test]
fn events_of_a_run_on_this_host_come_in_this_order_and_bear_no_target() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    let told = laboratory.run_study("run = { iterations = 2, warmup = 0, order = \"sequential\" }\n[workload.good]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [10, 20]");
    let kinds: Vec<String> = told.events.iter().filter_map(event_kind).collect();
    // The folder that stands for the machine has no log of a kernel.
    let expected = "Check, Prepare, kernel log, began, tunables, Apply, Iterate, \
        set 10, begin 0, stdout, speed 0, end 0, 1 of 4, begin 1, stdout, speed 1, end 1, 2 of 4, \
        set 20, begin 2, stdout, speed 0, end 2, 3 of 4, begin 3, stdout, speed 1, end 3, 4 of 4, \
        Undo, undone, undone, Finish, Finished";
    assert_eq!(kinds.join(", "), expected, "undone: the setting, and the scratch directory");
    assert!(told.events.iter().all(|event| event.target.is_none()));
}

#[test]
fn a_level_that_cannot_be_set_ends_the_run_in_order_and_the_error_keeps_its_class() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    let told = laboratory.run_study("run = { iterations = 2, warmup = 0, order = \"sequential\" }\n[workload.good]\n[factor.step]\nkind = \"commands\"\nlevels = [{ name = \"fine\", apply = [\"true\"], undo = [\"true\"] }, { name = \"bad\", apply = [\"false\"], undo = [\"true\"] }]");
    let kinds: Vec<String> = told.events.iter().filter_map(event_kind).collect();
    // The folder that stands for the machine has no log of a kernel.
    let expected = "Check, Prepare, kernel log, began, tunables, Apply, Iterate, \
        set fine, begin 0, stdout, speed 0, end 0, 1 of 4, begin 1, stdout, speed 1, end 1, 2 of 4, \
        Undo, undone, undone, Finish, Failed";
    assert_eq!(kinds.join(", "), expected);
    let error = told.status.unwrap_err();
    let ConductError::Level { owner, .. } = &error else { panic!("{error}") };
    insta::assert_snapshot!(owner, @"factor `step`, level `bad`");
    assert_eq!(error.class(), ErrorClass::Environment);
    assert!(is_folder_empty(&laboratory.path("scratch")) && is_folder_empty(&laboratory.path("state")));
}

#[test]
fn a_stop_cuts_the_command_of_a_level_short() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    let stop = StopRequest::new();
    let asked = stop.clone();
    let begun = Instant::now();
    let told = laboratory.run_study_with(
        "run = { iterations = 2, warmup = 0 }\n[workload.good]\n[factor.step]\nkind = \"commands\"\nlevels = [{ name = \"slow\", apply = [\"sleep\", \"60\"], undo = [\"true\"] }]",
        &stop,
        |event| {
            if matches!(event.what, RunEventKind::Phase(RunPhase::Iterate)) {
                asked.request_stop();
            }
        },
    );
    assert_eq!(told.status.as_ref().unwrap(), &RunStatus::Stopped);
    assert!(begun.elapsed() < Duration::from_secs(30), "the command was waited for");
    let kinds: Vec<String> = told.events.iter().filter_map(event_kind).collect();
    assert!(!kinds.iter().any(|kind| kind.starts_with("begin")), "{kinds:?}");
    assert!(is_folder_empty(&laboratory.path("state")));
}

#[test]
fn each_iteration_runs_under_its_own_level() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    let file = laboratory.path("root/proc/sys/vm/swappiness");
    let script = format!("echo \"speed $(cat {})\"", file.display());
    fs::write(laboratory.path("workloads/reads.toml"), script_definition(&script)).unwrap();
    let told = laboratory.run_study("run = { iterations = 4, warmup = 0 }\n[workload.reads]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [60, 10, 33]");
    for event in &told.events {
        if let RunEventKind::Sample(sample) = &event.what
            && !is_resource(sample)
        {
            assert_eq!(sample.value, [60.0, 10.0, 33.0][sample.case as usize]);
        }
    }
    assert_eq!(told.values().len(), 12);
    assert_eq!(laboratory.read_swappiness(), "60");
}

#[test]
fn one_failing_iteration_is_recorded_and_the_run_goes_on() {
    let laboratory = LocalRunFixture::new(&[(
        "sometimes",
        "echo x >> ../../../count; if [ $(wc -l < ../../../count) = 2 ]; then echo no luck >&2; exit 7; fi; echo speed 1",
    )]);
    let told = laboratory.run_study("run = { iterations = 4, warmup = 0 }\n[workload.sometimes]");
    assert_eq!(told.status.as_ref().unwrap(), &RunStatus::Failed);
    assert_eq!(told.values().len(), 3);
    let Outcome::Failed { reason } = told.outcomes()[1] else { panic!("{:?}", told.outcomes()) };
    insta::assert_snapshot!(reason, @"exited with code 7: no luck");
    assert_eq!(told.printed_output().matches("no luck\n").count(), 1);
}

#[test]
fn rubbish_is_a_failure_that_names_the_metric() {
    let laboratory = LocalRunFixture::new(&[("babbles", "echo lorem ipsum")]);
    let told = laboratory.run_study("run = { iterations = 1, warmup = 0 }\n[workload.babbles]");
    let Outcome::Failed { reason } = told.outcomes()[0] else { panic!("{:?}", told.outcomes()) };
    insta::assert_snapshot!(reason, @"metric `speed`: regex `speed (?<value>[0-9.]+)` found nothing in stdout (it begins `lorem ipsum`)");
    assert_eq!(told.values(), [0.0; 0]);
}

#[test]
fn a_workload_that_never_ends_is_stopped_with_its_children() {
    let laboratory = LocalRunFixture::new(&[("hangs", "echo begun; setsid sleep 4242 & sleep 4242")]);
    let told = laboratory
        .run_study("run = { iterations = 1, warmup = 0, time-limit = \"300ms\" }\n[workload.hangs]");
    assert!(matches!(told.outcomes()[0], Outcome::TimedOut { .. }), "{:?}", told.outcomes());
    assert_eq!(told.printed_output().lines().last(), Some("begun"), "what it printed before is kept");
    let sleepers = std::process::Command::new("pgrep").args(["-f", "^sleep 4242"]).output();
    assert!(sleepers.is_ok_and(|found| found.stdout.is_empty()), "no child survives");
}

#[test]
fn a_stop_keeps_the_data_and_undoes_the_settings() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1; sleep 0.05")]);
    let stop = StopRequest::new();
    let asked = stop.clone();
    let told = laboratory.run_study_with(
        "run = { iterations = 50, warmup = 0 }\n[workload.good]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [10]",
        &stop,
        |event| {
            if matches!(event.what, RunEventKind::Progress { done: 3, .. }) {
                asked.request_stop();
            }
        },
    );
    assert_eq!(told.status.as_ref().unwrap(), &RunStatus::Stopped);
    assert!((3..6).contains(&told.values().len()), "{}", told.values().len());
    assert_eq!(laboratory.read_swappiness(), "60");
    assert!(is_folder_empty(&laboratory.path("scratch")));
}

#[test]
fn settings_are_undone_when_nobody_listens_any_more() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    let mut catalogue = Catalogue::embedded();
    catalogue.extend_from_folder(&laboratory.path("workloads")).unwrap();
    let stop = StopRequest::new();
    let mut seen = 0;
    // The consumer breaks after a few events, as a recorder does on a full disk: it asks for a stop.
    let told = laboratory.run_study_with(
        "run = { iterations = 500, warmup = 0 }\n[workload.good]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [10]",
        &stop.clone(),
        |_| {
            seen += 1;
            if seen == 10 {
                stop.request_stop();
            }
        },
    );
    assert_eq!(told.status.unwrap(), RunStatus::Stopped);
    assert_eq!(laboratory.read_swappiness(), "60");
}

#[test]
fn a_total_time_limit_ends_the_run_with_advice() {
    let laboratory = LocalRunFixture::new(&[("good", "sleep 0.1; echo speed 1")]);
    let told = laboratory
        .run_study("run = { iterations = 100, warmup = 0, total-time-limit = \"250ms\" }\n[workload.good]");
    assert_eq!(told.status.as_ref().unwrap(), &RunStatus::Stopped);
    assert!(told.values().len() < 10);
    let warning = told.events.iter().find_map(|event| match &event.what {
        RunEventKind::Warning { message, advice } => Some(format!("{message}; {advice}")),
        _ => None,
    });
    insta::assert_snapshot!(warning.unwrap(), @"the run's total time limit of 250 ms is over; the remaining iterations were left out; raise `run.total-time-limit`, or lower `run.iterations`");
}

#[test]
fn what_the_environment_lacks_is_refused_before_anything_changes() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    let absent = script_definition("true").replace("[needs]", "[needs]\nprograms = [\"no-such-program\"]");
    fs::write(laboratory.path("workloads/absent.toml"), absent).unwrap();
    let told = laboratory.run_study("[workload.good]\n[workload.absent]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.no_such_knob\"\nlevels = [10]");
    let refusal = told.status.unwrap_err().to_string();
    insta::assert_snapshot!(refusal.replace(laboratory.home.path().to_str().unwrap(), "HOME"), @"
    workload `absent`: no-such-program not installed; its definition says nothing about installing it
    sysctl vm.no_such_knob: HOME/root/proc/sys/vm/no_such_knob is not there; this kernel lacks it: check the name, or leave the factor out
    ");
    assert_eq!(told.events.len(), 1, "only the phase of checking: no run began");
    assert!(is_folder_empty(&laboratory.path("state")));
}

#[test]
fn a_missing_monitor_file_is_a_gap_and_not_an_abort() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    let told = laboratory.run_study(
        "run = { iterations = 2, warmup = 0 }\nmonitors = { schedstat = \"10ms\" }\n[workload.good]",
    );
    assert_eq!(told.status.as_ref().unwrap(), &RunStatus::Finished);
    let gaps = told.events.iter().filter_map(|event| match &event.what {
        RunEventKind::Gap(gap) => Some(gap.monitor.as_str()),
        _ => None,
    });
    assert_eq!(gaps.collect::<Vec<_>>(), ["schedstat"]);
}

#[test]
fn each_iteration_gets_a_disk_of_its_level_root() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "needs root");
        eprintln!("SKIP each_iteration_gets_a_disk_of_its_level_root: needs root");
        return;
    }
    let laboratory =
        LocalRunFixture::new(&[("shows", "ls; stat -f -c %T .; echo speed 1; touch left-behind")]);
    let told = laboratory.run_study(
        "run = { iterations = 2, warmup = 0 }\n[workload.shows]\n[disk]\nkind = \"image\"\nsize = \"320MiB\"\n\
         [factor.filesystem]\nkind = \"disk\"\nlevels = [\"ext4\", \"xfs\", \"btrfs\"]",
    );
    assert_eq!(told.status.as_ref().unwrap(), &RunStatus::Finished, "{}", told.printed_output());
    let printed = told.printed_output();
    for filesystem in ["ext2/ext3", "xfs", "btrfs"] {
        assert_eq!(printed.matches(filesystem).count(), 2, "{printed}");
    }
    // A fresh disk holds nothing of the iteration before: no file is listed.
    let lines: BTreeSet<&str> = printed.lines().filter(|line| !line.starts_with("[perflab: ")).collect();
    assert_eq!(lines, BTreeSet::from(["btrfs", "ext2/ext3", "speed 1", "xfs"]));
    assert!(is_folder_empty(&laboratory.path("scratch")) && is_folder_empty(&laboratory.path("state")));
}

#[test]
fn what_a_command_does_around_its_iterations_is_done_in_order() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    let log = laboratory.path("log");
    let say = |word: &str| format!("echo {word} >> {}", log.display());
    let study = |command: &str| {
        format!(
            "run = {{ iterations = 2, warmup = 0 }}\n[workload.w]\ncommand = \"{command}\"\nsetup = \"{}\"\n\
             prepare = \"{}\"\nconclude = \"{}\"\ncleanup = \"{}\"\n",
            say("setup"),
            say("prepare"),
            say("conclude"),
            say("cleanup")
        )
    };
    let told = laboratory.run_study(&study(&format!("echo run >> {}", log.display())));
    assert_eq!(told.status.as_ref().unwrap(), &RunStatus::Finished);
    let order = "setup prepare run conclude prepare run conclude cleanup";
    assert_eq!(fs::read_to_string(&log).unwrap().split_whitespace().collect::<Vec<_>>().join(" "), order);

    fs::remove_file(&log).unwrap();
    let failing = laboratory.run_study(&study("exit 3"));
    assert_eq!(failing.status.as_ref().unwrap(), &RunStatus::Failed);
    let order = "setup prepare conclude prepare conclude cleanup";
    assert_eq!(fs::read_to_string(&log).unwrap().split_whitespace().collect::<Vec<_>>().join(" "), order);
}

#[test]
fn an_iteration_that_cannot_be_prepared_fails_and_one_that_may_fail_counts() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    let told = laboratory.run_study(
        "run = { iterations = 2, warmup = 0 }\n[workload.w]\ncommand = \"true\"\nprepare = \"exit 7\"\n",
    );
    assert_eq!((told.values().len(), told.outcomes().len()), (0, 2));
    assert!(told.outcomes().iter().all(|outcome| matches!(outcome, Outcome::Failed { .. })));
    let allowed = |codes: &str| {
        let study = format!(
            "run = {{ iterations = 2, warmup = 0 }}\n[workload.w]\ncommand = \"exit 7\"\nallow-exit = {codes}\n"
        );
        laboratory.run_study(&study).values().len()
    };
    assert_eq!((allowed("[7]"), allowed("[-1]"), allowed("[1]")), (2, 2, 0));
}

#[test]
fn every_iteration_says_what_it_used_of_the_machine() {
    let laboratory = LocalRunFixture::new(&[("good", "echo speed 1")]);
    // 32 MiB are written to the disk, not only to the page cache.
    let told = laboratory.run_study(
        "run = { iterations = 1, warmup = 0 }\n[workload.w]\n\
         command = \"dd if=/dev/zero of={{ scratch }}/f bs=1M count=32 conv=fsync status=none\"\n",
    );
    let samples = told.events.iter().filter_map(|event| match &event.what {
        RunEventKind::Sample(sample) => Some(sample),
        _ => None,
    });
    let value = |name: &str| samples.clone().find(|sample| sample.metric == *name).map(|sample| sample.value);
    assert!(samples.clone().all(|sample| sample.primary == (sample.metric == *"time")));
    assert!(value("user").unwrap() + value("system").unwrap() > 0.0);
    assert!(value("minor-faults").unwrap() > 50.0);
    assert!(value("voluntary-switches").is_some() && value("bytes-read").is_some());
}

/// The log is that of a root of our own: the workload prints into it as the kernel would.
#[test]
fn what_the_kernel_logs_during_an_iteration_is_kept_with_it_and_trouble_is_told() {
    let fixture = LocalRunFixture::new(&[("unused", "true")]);
    fs::create_dir(fixture.path("root/dev")).unwrap();
    let log = fixture.path("root/dev/kmsg");
    fs::write(&log, "6,1,1000,-;before the run\n").unwrap();
    let print = |text: &str| format!("echo '{text}' >> {}", log.display());
    let command = print("4,2,2000,-;WARNING: CPU: 0 PID: 1 at mm/slub.c:1");
    let study = |rule: &str| {
        format!(
            "{rule}run = {{ iterations = 1, warmup = 0 }}\n[workload.w]\ncommand = {}\n",
            serde_json::json!(command)
        )
    };
    let found = fixture.run_study(&study(""));
    let logged: Vec<(Option<u32>, &str)> = found
        .events
        .iter()
        .filter_map(|event| match &event.what {
            RunEventKind::Output { slot, name, text } if name == RunEventKind::KERNEL_LOG => {
                Some((*slot, text.as_str()))
            }
            _ => None,
        })
        .collect();
    assert_eq!(logged, [(Some(0), "<4>[    0.002000] WARNING: CPU: 0 PID: 1 at mm/slub.c:1\n")]);
    let is_warning = |event: &&RunEvent| matches!(event.what, RunEventKind::Warning { .. });
    assert_eq!(found.events.iter().filter(is_warning).count(), 1);
    // A target that says something of an iteration once that has ended is not believed.
    let place =
        |is_it: &dyn Fn(&RunEventKind) -> bool| found.events.iter().position(|event| is_it(&event.what));
    let logged =
        place(&|what| matches!(what, RunEventKind::Output { name, .. } if name == RunEventKind::KERNEL_LOG));
    assert!(logged < place(&|what| matches!(what, RunEventKind::IterationEnded { .. })));
    let found = fixture.run_study(&study("kernel-log = false\n"));
    assert_eq!(found.events.iter().filter(is_warning).count(), 0);
}
