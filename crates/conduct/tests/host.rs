//! Runs on this host with real processes: workloads that behave, fail, babble and never end; settings
//! under a root of our own.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

use perflab_conduct::{Choices, ConductError, Host, Permissions, Stop, Target, plan};
use perflab_model::event::Phase;
use perflab_model::manifest::{Anchor, Overhead};
use perflab_model::study::Source;
use perflab_model::{Event, FORMAT_VERSION, Facts, Manifest, Outcome, Status, What};
use perflab_observe::Root;
use perflab_workload::Catalogue;

/// A workload of the test's own: a shell script that is given as its only argument.
fn definition(script: &str) -> String {
    format!(
        "title = \"t\"\nmeasures = \"a test\"\nhomepage = \"https://localhost\"\nlicence = \"MIT\"\n\
         argv = [\"sh\", \"-c\", '''{script}''']\n[needs]\nscratch = true\n\
         [[metric]]\nname = \"speed\"\nunit = \"ops/s\"\ndirection = \"higher\"\nprimary = true\n\
         regex = 'speed (?<value>[0-9.]+)'\n"
    )
}

struct Laboratory {
    home: tempfile::TempDir,
}

struct Told {
    events: Vec<Event>,
    status: Result<Status, ConductError>,
}

impl Laboratory {
    fn new(scripts: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        for directory in ["workloads", "root/proc/sys/vm", "scratch"] {
            fs::create_dir_all(home.path().join(directory)).unwrap();
        }
        fs::write(home.path().join("root/proc/sys/vm/swappiness"), "60\n").unwrap();
        for (name, script) in scripts {
            fs::write(home.path().join(format!("workloads/{name}.toml")), definition(script)).unwrap();
        }
        Laboratory { home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn swappiness(&self) -> String {
        fs::read_to_string(self.path("root/proc/sys/vm/swappiness")).unwrap().trim().to_owned()
    }

    fn run(&self, study: &str) -> Told {
        self.run_until(study, &Stop::new(), |_| {})
    }

    fn run_until(&self, study: &str, stop: &Stop, mut each: impl FnMut(&Event)) -> Told {
        let mut catalogue = Catalogue::embedded().unwrap();
        catalogue.extend(&self.path("workloads")).unwrap();
        let source = Source::new("s.toml", format!("title = \"t\"\n{study}"));
        let study = source.read().unwrap();
        let plan = plan(&study, &catalogue, &Facts::default(), &Choices::default()).unwrap();
        let host = Host {
            root: Root(self.path("root")),
            state: self.path("state"),
            perflab: PathBuf::from("perflab"),
            catalogue,
            runs_as_typed: false,
            traces: Default::default(),
        };
        let manifest = Manifest {
            format: FORMAT_VERSION,
            writer: "test".into(),
            id: "TESTRUN".into(),
            label: None,
            study,
            study_text: source.text.clone(),
            study_file: source.file.clone(),
            plan,
            facts: Facts::default(),
            boot_id: "boot".into(),
            target: "host".into(),
            targets: Vec::new(),
            anchor: Anchor::default(),
            status: Status::Running,
            overhead: Overhead::default(),
        };
        let permissions = Permissions { scratch: Some(self.path("scratch")), ..Permissions::default() };
        let (sink, receiver) = channel();
        std::thread::scope(|scope| {
            let source = scope.spawn(|| {
                let sink = sink;
                host.run(&manifest, &permissions, &sink, stop)
            });
            let events: Vec<Event> = receiver.iter().inspect(|event| each(event)).collect();
            Told { events, status: source.join().unwrap() }
        })
    }
}

impl Told {
    fn outcomes(&self) -> Vec<&Outcome> {
        self.events.iter().filter_map(ended).collect()
    }

    fn phases(&self) -> Vec<Phase> {
        let phase = |event: &Event| match event.what {
            What::Phase(phase) => Some(phase),
            _ => None,
        };
        self.events.iter().filter_map(phase).collect()
    }

    fn values(&self) -> Vec<f64> {
        let value = |event: &Event| match &event.what {
            What::Sample(sample) => Some(sample.value),
            _ => None,
        };
        self.events.iter().filter_map(value).collect()
    }

    fn printed(&self) -> String {
        let text = |event: &Event| match &event.what {
            What::Output { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(text).collect()
    }
}

fn ended(event: &Event) -> Option<&Outcome> {
    match &event.what {
        What::IterationEnded { outcome, .. } => Some(outcome),
        _ => None,
    }
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none())
}

#[test]
fn a_run_tells_its_phases_in_order_and_leaves_nothing_behind() {
    let laboratory = Laboratory::new(&[("good", "touch file; pwd; echo speed 12.5")]);
    let told = laboratory.run("run = { iterations = 3, warmup = 1 }\n[workload.good]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [60, 10]");
    assert_eq!(told.status.as_ref().unwrap(), &Status::Finished);
    use Phase::{Apply, Check, Finish, Iterate, Prepare, Undo, Warmup};
    assert_eq!(told.phases(), [Check, Prepare, Apply, Warmup, Iterate, Undo, Finish]);
    assert_eq!(told.values(), [12.5; 6], "warm-ups are not measured");
    assert_eq!(told.outcomes().len(), 8);
    assert!(matches!(told.events.last().unwrap().what, What::Ended { status: Status::Finished, .. }));
    assert_eq!(laboratory.swappiness(), "60");
    assert!(is_empty(&laboratory.path("scratch")) && is_empty(&laboratory.path("state")));
    let folders = told.printed();
    let mut folders: Vec<&str> = folders.lines().filter(|line| line.contains("perflab-TESTRUN")).collect();
    folders.dedup();
    assert_eq!(folders.len(), 8, "each iteration has a folder of its own");
}

#[test]
fn each_iteration_runs_under_its_own_level() {
    let laboratory = Laboratory::new(&[]);
    let file = laboratory.path("root/proc/sys/vm/swappiness");
    let script = format!("echo \"speed $(cat {})\"", file.display());
    fs::write(laboratory.path("workloads/reads.toml"), definition(&script)).unwrap();
    let told = laboratory.run("run = { iterations = 4, warmup = 0 }\n[workload.reads]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [60, 10, 33]");
    for event in &told.events {
        if let What::Sample(sample) = &event.what {
            assert_eq!(sample.value, [60.0, 10.0, 33.0][sample.case as usize]);
        }
    }
    assert_eq!(told.values().len(), 12);
    assert_eq!(laboratory.swappiness(), "60");
}

#[test]
fn one_failing_iteration_is_recorded_and_the_run_goes_on() {
    let laboratory = Laboratory::new(&[(
        "sometimes",
        "echo x >> ../../../count; if [ $(wc -l < ../../../count) = 2 ]; then echo no luck >&2; exit 7; fi; echo speed 1",
    )]);
    let told = laboratory.run("run = { iterations = 4, warmup = 0 }\n[workload.sometimes]");
    assert_eq!(told.status.as_ref().unwrap(), &Status::Failed);
    assert_eq!(told.values().len(), 3);
    let Outcome::Failed { reason } = told.outcomes()[1] else { panic!("{:?}", told.outcomes()) };
    assert!(reason.contains('7') && reason.contains("no luck"), "{reason}");
    assert!(told.printed().contains("no luck"));
}

#[test]
fn rubbish_is_a_failure_that_names_the_metric() {
    let laboratory = Laboratory::new(&[("babbles", "echo lorem ipsum")]);
    let told = laboratory.run("run = { iterations = 1, warmup = 0 }\n[workload.babbles]");
    let Outcome::Failed { reason } = told.outcomes()[0] else { panic!("{:?}", told.outcomes()) };
    assert!(reason.contains("speed"), "{reason}");
    assert_eq!(told.values(), [0.0; 0]);
}

#[test]
fn a_workload_that_never_ends_is_stopped_with_its_children() {
    let laboratory = Laboratory::new(&[("hangs", "echo begun; setsid sleep 4242 & sleep 4242")]);
    let told =
        laboratory.run("run = { iterations = 1, warmup = 0, time-limit = \"300ms\" }\n[workload.hangs]");
    assert!(matches!(told.outcomes()[0], Outcome::TimedOut { .. }), "{:?}", told.outcomes());
    assert!(told.printed().contains("begun"), "what it printed before is kept");
    let sleepers = std::process::Command::new("pgrep").args(["-f", "^sleep 4242"]).output();
    assert!(sleepers.is_ok_and(|found| found.stdout.is_empty()), "no child survives");
}

#[test]
fn a_stop_keeps_the_data_and_undoes_the_settings() {
    let laboratory = Laboratory::new(&[("good", "echo speed 1; sleep 0.05")]);
    let stop = Stop::new();
    let asked = stop.clone();
    let told = laboratory.run_until(
        "run = { iterations = 50, warmup = 0 }\n[workload.good]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [10]",
        &stop,
        |event| {
            if matches!(event.what, What::Progress { done: 3, .. }) {
                asked.ask();
            }
        },
    );
    assert_eq!(told.status.as_ref().unwrap(), &Status::Stopped);
    assert!((3..6).contains(&told.values().len()), "{}", told.values().len());
    assert_eq!(laboratory.swappiness(), "60");
    assert!(is_empty(&laboratory.path("scratch")));
}

#[test]
fn settings_are_undone_when_nobody_listens_any_more() {
    let laboratory = Laboratory::new(&[("good", "echo speed 1")]);
    let mut catalogue = Catalogue::embedded().unwrap();
    catalogue.extend(&laboratory.path("workloads")).unwrap();
    let stop = Stop::new();
    let mut seen = 0;
    // The consumer breaks after a few events, as a recorder does on a full disk: it asks for a stop.
    let told = laboratory.run_until(
        "run = { iterations = 500, warmup = 0 }\n[workload.good]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.swappiness\"\nlevels = [10]",
        &stop.clone(),
        |_| {
            seen += 1;
            if seen == 10 {
                stop.ask();
            }
        },
    );
    assert_eq!(told.status.unwrap(), Status::Stopped);
    assert_eq!(laboratory.swappiness(), "60");
}

#[test]
fn a_total_time_limit_ends_the_run_with_advice() {
    let laboratory = Laboratory::new(&[("good", "sleep 0.1; echo speed 1")]);
    let told = laboratory
        .run("run = { iterations = 100, warmup = 0, total-time-limit = \"250ms\" }\n[workload.good]");
    assert_eq!(told.status.as_ref().unwrap(), &Status::Stopped);
    assert!(told.values().len() < 10);
    let warned = |event: &Event| matches!(&event.what, What::Warning { advice, .. } if advice.contains("total-time-limit"));
    assert!(told.events.iter().any(warned));
}

#[test]
fn what_the_environment_lacks_is_refused_before_anything_changes() {
    let laboratory = Laboratory::new(&[("good", "echo speed 1")]);
    let absent = definition("true").replace("[needs]", "[needs]\nprograms = [\"no-such-program\"]");
    fs::write(laboratory.path("workloads/absent.toml"), absent).unwrap();
    let told = laboratory.run("[workload.good]\n[workload.absent]\n[factor.swap]\nkind = \"sysctl\"\nkey = \"vm.no_such_knob\"\nlevels = [10]");
    let said = told.status.unwrap_err().to_string();
    assert!(said.contains("no-such-program") && said.contains("vm.no_such_knob"), "{said}");
    assert_eq!(told.events.len(), 1, "only the phase of checking: no run began");
    assert!(is_empty(&laboratory.path("state")));
}

#[test]
fn a_missing_monitor_file_is_a_gap_and_not_an_abort() {
    let laboratory = Laboratory::new(&[("good", "echo speed 1")]);
    let told = laboratory
        .run("run = { iterations = 2, warmup = 0 }\nmonitors = { schedstat = \"10ms\" }\n[workload.good]");
    assert_eq!(told.status.as_ref().unwrap(), &Status::Finished);
    let gaps: Vec<&Event> = told.events.iter().filter(|event| matches!(event.what, What::Gap(_))).collect();
    assert_eq!(gaps.len(), 1);
    assert!(format!("{gaps:?}").contains("schedstat"));
}

#[test]
fn each_iteration_gets_a_disk_of_its_level_root() {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "needs root");
        eprintln!("SKIP each_iteration_gets_a_disk_of_its_level_root: needs root");
        return;
    }
    let laboratory = Laboratory::new(&[("shows", "ls; stat -f -c %T .; echo speed 1; touch left-behind")]);
    let told = laboratory.run(
        "run = { iterations = 2, warmup = 0 }\n[workload.shows]\n[disk]\nkind = \"image\"\nsize = \"320MiB\"\n\
         [factor.filesystem]\nkind = \"disk\"\nlevels = [\"ext4\", \"xfs\", \"btrfs\"]",
    );
    assert_eq!(told.status.as_ref().unwrap(), &Status::Finished, "{}", told.printed());
    let printed = told.printed();
    for filesystem in ["ext2/ext3", "xfs", "btrfs"] {
        assert_eq!(printed.matches(filesystem).count(), 2, "{printed}");
    }
    assert!(!printed.contains("left-behind"), "a fresh disk holds nothing of the iteration before");
    assert!(is_empty(&laboratory.path("scratch")) && is_empty(&laboratory.path("state")));
}
