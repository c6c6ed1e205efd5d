use perflab_model::event::RunPhase;
use perflab_model::manifest::ClockAnchor;
use perflab_model::profile::{CommId, StackSample};
use perflab_model::series::{ColumnKind, ColumnType, SeriesSchema};
use perflab_model::study::TomlSource;
use perflab_model::{
    Case, ColumnSpec, Direction, FORMAT_VERSION, Facts, Metric, Outcome, ProfileSummary, RunPlan, RunStatus,
    Slot, StackBatch, Unit,
};

use super::*;

fn example_manifest() -> Manifest {
    let text = "title = \"t\"\n[workload.echo]\n[target.guest]\nkind = \"process\"\ncount = 2\n[monitors]\nvmstat = \"1s\"\n";
    let metric = Metric {
        name: "speed".into(),
        unit: Unit::new("ops/s"),
        direction: Direction::Higher,
        primary: true,
    };
    let case = Case {
        workload: "echo".into(),
        uses: "echo".into(),
        point: Default::default(),
        parameters: Default::default(),
        environment: Default::default(),
        levels: Default::default(),
    };
    let plan = RunPlan {
        cases: vec![case],
        slots: vec![example_slot()],
        metrics: [("echo".to_owned(), vec![metric])].into_iter().collect(),
        ..RunPlan::default()
    };
    Manifest {
        format: FORMAT_VERSION,
        writer: "test".into(),
        id: "RUN".into(),
        label: None,
        study: TomlSource::new("s.toml", text).parse_study().unwrap(),
        study_text: String::new(),
        study_file: String::new(),
        plan,
        facts: Facts::default(),
        boot_id: String::new(),
        target: "host".into(),
        targets: Vec::new(),
        anchor: ClockAnchor::default(),
        status: RunStatus::Running,
        overhead: Overhead::default(),
    }
}

fn example_slot() -> Slot {
    Slot { case: 0, iteration: 0, block: 0, warmup: false, boot: 0 }
}

#[derive(Debug)]
struct NoAgent;

impl crate::place::AgentHandle for NoAgent {
    fn end(&mut self) -> String {
        String::new()
    }
}

struct ValidatorFixture {
    manifest: Manifest,
    open: OpenSlot,
    mate: TargetSession,
}

impl ValidatorFixture {
    fn new() -> Self {
        let mate = TargetSession::new("guest1".into(), "process".into(), Some(Box::new(NoAgent)));
        ValidatorFixture {
            manifest: example_manifest(),
            open: OpenSlot::new(0, example_slot(), vec![0]),
            mate,
        }
    }

    /// What becomes of `what` when target `target` tells it at a time far in the future.
    fn validate(&mut self, target: usize, what: RunEventKind) -> Result<ValidatedReport, String> {
        let (begun, now) = (Nanos(100), Nanos(200));
        let ear = ReportValidator { manifest: &self.manifest, target, open: Some(&self.open), begun, now };
        ear.validate(&mut self.mate, RunEvent::new(Nanos(u64::MAX), what))
    }
}

fn example_sample(metric: &str) -> Sample {
    Sample {
        boot: 7,
        target: Some(9),
        case: 5,
        iteration: 4,
        metric: metric.into(),
        value: 1.0,
        unit: Unit::new("lies"),
        direction: Direction::Lower,
        primary: false,
        start: Nanos(0),
        end: Nanos(u64::MAX),
    }
}

fn opened_series(monitor: &str) -> RunEventKind {
    let column = ColumnSpec {
        name: "n\u{1b}[2J".into(),
        unit: Unit::new("1"),
        kind: ColumnKind::Gauge,
        stored: ColumnType::Int,
    };
    let (monitor, source) = (monitor.to_owned(), "/proc/x".to_owned());
    RunEventKind::SeriesOpened(SeriesSchema { monitor, source, interval: Nanos(1), columns: vec![column] })
}

#[test]
fn a_value_is_put_where_the_plan_has_it_whatever_it_claims() {
    let mut world = ValidatorFixture::new();
    let Ok(ValidatedReport::Hold(event)) = world.validate(0, RunEventKind::Sample(example_sample("speed")))
    else {
        panic!("not held")
    };
    let RunEventKind::Sample(found) = &event.what else { panic!("{event:?}") };
    assert_eq!((found.boot, found.target, found.case, found.iteration), (0, Some(0), 0, 0));
    assert_eq!((found.unit.0.as_str(), found.direction, found.primary), ("ops/s", Direction::Higher, true));
    assert_eq!((event.at, found.start, found.end), (Nanos(200), Nanos(100), Nanos(200)));
    world.open.hold(0, event).unwrap();
    assert!(
        world
            .validate(0, RunEventKind::Sample(example_sample("speed")))
            .unwrap_err()
            .contains("once too often")
    );
    assert!(
        world
            .validate(0, RunEventKind::Sample(example_sample("../../etc")))
            .unwrap_err()
            .contains("not in the plan")
    );
    assert!(
        world.validate(1, RunEventKind::Sample(example_sample("speed"))).is_err(),
        "it has no part in the slot"
    );
}

#[test]
fn an_iteration_ends_once_and_only_the_one_that_is_open() {
    let mut world = ValidatorFixture::new();
    let end =
        |slot| RunEventKind::IterationEnded { slot, outcome: Outcome::Ok, start: Nanos(0), end: Nanos(1) };
    assert!(world.validate(0, end(1)).is_err());
    let Ok(ValidatedReport::Hold(event)) = world.validate(0, end(0)) else { panic!("not held") };
    world.open.hold(0, event).unwrap();
    assert!(world.validate(0, end(0)).is_err());
    assert!(world.validate(0, RunEventKind::Sample(example_sample("speed"))).is_err(), "too late");
}

#[test]
fn only_monitors_of_the_study_and_rows_that_fit() {
    let mut world = ValidatorFixture::new();
    assert!(world.validate(0, opened_series("../../../etc/passwd")).is_err());
    let rows = |monitor: &str, width| RunEventKind::Rows {
        monitor: monitor.into(),
        rows: vec![vec![TableCell::Int(1); width]],
    };
    assert!(world.validate(0, rows("vmstat", 1)).is_err(), "it was not opened");
    let Ok(ValidatedReport::Pass(event)) = world.validate(0, opened_series("vmstat")) else {
        panic!("not passed")
    };
    let RunEventKind::SeriesOpened(schema) = event.what else { panic!("no schema") };
    assert_eq!((schema.monitor.as_str(), schema.columns[0].name.as_str()), ("vmstat.guest1", "n\u{fffd}[2J"));
    assert!(world.validate(0, opened_series("vmstat")).is_err(), "twice");
    assert!(world.validate(0, rows("vmstat", 1)).is_ok());
    assert!(world.validate(0, rows("vmstat", 2)).is_err());
    let changed = |place| RunEventKind::Changed {
        monitor: "vmstat".into(),
        step: 1,
        rows: vec![(place, vec![TableCell::Int(1)])],
    };
    assert!(world.validate(0, changed(0)).is_ok());
    assert!(world.validate(0, changed(u32::MAX)).is_err());
}

#[test]
fn what_a_target_says_of_itself_is_inert_too() {
    let mut world = ValidatorFixture::new();
    let text = |text: &str| format!("{text}\u{1b}[2J");
    let hello = AgentHello { program: text("p"), kernel: text("6.1"), boot_id: text("id"), cpus: 1 };
    world.mate.hello = Some(clean_hello(hello));
    let mut facts = Facts::default();
    facts.add(&text("cpu.model"), text("a processor").as_str(), &text("/proc/cpuinfo"));
    facts.add(&"k".repeat(1000), 7_i64, "");
    assert!(matches!(world.validate(0, RunEventKind::Facts(facts)), Ok(ValidatedReport::Drop)));
    let record = world.mate.target_record(Nanos(0));
    let told = serde_json::to_string(&record).unwrap();
    assert!(!told.contains("\\u001b") && told.contains("a processor\u{fffd}[2J"), "{told}");
    assert!(record.facts.0.keys().all(|key| key.chars().count() <= NAME));
}

#[test]
fn texts_are_inert_and_what_only_the_host_may_tell_is_refused() {
    let mut world = ValidatorFixture::new();
    let text = "\u{1b}[31mred\u{202e}\r\nline\n".into();
    let output = RunEventKind::Output { slot: None, name: "../a\0b".into(), text };
    let Ok(ValidatedReport::Pass(event)) = world.validate(0, output) else { panic!("not passed") };
    assert_eq!(event.target, Some(0));
    let expected = RunEventKind::Output {
        slot: None,
        name: "../a\u{fffd}b".into(),
        text: "\u{fffd}[31mred\u{fffd}\nline\n".into(),
    };
    assert_eq!(event.what, expected);
    assert!(world.validate(0, RunEventKind::Phase(RunPhase::Finish)).is_err());
    assert!(world.validate(0, RunEventKind::Began(Box::new(example_manifest()))).is_err());
    assert!(world.validate(0, RunEventKind::TargetLost { reason: String::new() }).is_err());
}

#[test]
fn warnings_and_prints_without_end_are_counted_and_not_passed_on() {
    let mut world = ValidatorFixture::new();
    let warning = || RunEventKind::Warning { message: "w".repeat(1 << 20), advice: String::new() };
    let mut passed = 0;
    for _ in 0..150 {
        if let ValidatedReport::Pass(RunEvent { what: RunEventKind::Warning { message, .. }, .. }) =
            world.validate(0, warning()).unwrap()
        {
            assert!(message.len() < 3000, "{}", message.len());
            passed += 1;
        }
    }
    assert_eq!(passed, 100);
    let text = "o".repeat(1 << 20);
    let output = || RunEventKind::Output { slot: None, name: "stdout".into(), text: text.clone() };
    let passed =
        (0..10).filter(|_| matches!(world.validate(0, output()), Ok(ValidatedReport::Pass(_)))).count();
    assert_eq!(passed, 4);
    let gap = || {
        RunEventKind::Gap(SeriesGap {
            monitor: "vmstat".into(),
            from: Nanos(0),
            to: None,
            reason: "r".into(),
        })
    };
    let passed =
        (0..1500).filter(|_| matches!(world.validate(0, gap()), Ok(ValidatedReport::Pass(_)))).count();
    assert_eq!(passed, 1000);
    let change = || RunEventKind::SettingUndone { setting: "sysctl s".into(), to: "1".into() };
    let passed =
        (0..100_001).filter(|_| matches!(world.validate(0, change()), Ok(ValidatedReport::Pass(_)))).count();
    assert_eq!(passed, 100_000);
    insta::assert_snapshot!(world.mate.dropped_summary().unwrap(), @"guest1: 50 further warnings, 500 further gaps, 1 further changes of settings, some of what it printed outside of iterations were dropped, for there were too many");
}

#[test]
fn what_an_open_iteration_holds_of_a_target_has_an_end() {
    let batches = |comms: usize| {
        let batch = perflab_model::StackBatch { comms: vec![String::new(); comms], ..Default::default() };
        RunEvent::new(Nanos(0), RunEventKind::Stacks(Box::new(batch)))
    };
    let outputs = |length: usize| {
        let text = "o".repeat(length);
        RunEvent::new(Nanos(0), RunEventKind::Output { slot: Some(0), name: "stdout".into(), text })
    };
    for event in [batches(100_000), outputs(3 << 20)] {
        let mut open = OpenSlot::new(0, example_slot(), vec![0, 1]);
        let times = (0..1000).take_while(|_| open.hold(0, event.clone()).is_ok()).count();
        assert!((50..150).contains(&times), "{times}");
        open.hold(1, event.clone()).unwrap();
    }
}

#[test]
fn a_profile_that_no_run_of_that_length_can_have_is_not_believed() {
    let sample = |count, weight| {
        let (at, cpu, pid, tid, comm, leaf) = (Some(Nanos(u64::MAX)), None, None, None, CommId(0), None);
        StackSample { at, cpu, pid, tid, comm, leaf, count, weight }
    };
    let batch = |count, weight| {
        RunEventKind::Stacks(Box::new(StackBatch {
            samples: vec![sample(count, weight)],
            ..StackBatch::default()
        }))
    };
    let about = |lost, unreadable, cost| {
        RunEventKind::Profiled(Box::new(ProfileSummary {
            lost,
            unreadable,
            cost: Nanos(cost),
            ..ProfileSummary::default()
        }))
    };
    let mut world = ValidatorFixture::new();
    for honest in [batch(1, 0), batch(1, 10_000_000), about(1000, 1000, 50_000_000)] {
        assert!(matches!(world.validate(0, honest), Ok(ValidatedReport::Hold(_))));
    }
    let most = u64::MAX;
    let lies =
        [batch(2, 1), batch(0, 1), batch(1, most), about(most, 0, 0), about(0, most, 0), about(0, 0, most)];
    for lie in lies {
        assert!(world.validate(0, lie.clone()).is_err(), "{lie:?}");
    }
}
