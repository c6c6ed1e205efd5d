//! The sampler: on this machine for real, and on trees and clocks of the test's own.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use perflab_model::series::SeriesGap;
use perflab_model::{Nanos, RunEvent, RunEventKind};
use perflab_observe::{MonotonicClock, Root, Sampler, StopSignal, all_monitors};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

#[test]
fn on_this_machine_schemas_come_before_rows_and_every_monitor_is_heard_of() {
    let (sink, events) = channel();
    let wanted = all_monitors().iter().map(|kind| (kind.name.to_owned(), Nanos(5 * MS))).collect();
    let sampler = Sampler::start(wanted, Root::host(), sink);
    let heard = receive_until(&events, |heard| filter_rows(heard, "vmstat").len() >= 3);
    let cost = sampler.stop();
    assert!(cost.ticks >= 3 && cost.cpu.0 > 0, "{cost:?}");
    for kind in all_monitors() {
        let of_it: Vec<&RunEvent> = heard.iter().filter(|event| monitor_name(event) == kind.name).collect();
        assert!(
            matches!(of_it[0].what, RunEventKind::SeriesOpened(_) | RunEventKind::Gap(_)),
            "{}: {:?}",
            kind.name,
            of_it[0]
        );
        assert!(of_it.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }
}

#[test]
fn a_stop_does_not_wait_for_the_next_tick() {
    let (sink, events) = channel();
    let sampler = Sampler::start(vec![("vmstat".into(), Nanos(u64::MAX))], Root::host(), sink);
    receive_until(&events, |heard| !filter_rows(heard, "vmstat").is_empty());
    // The next tick is 584 years away.
    assert_eq!(sampler.stop().ticks, 1);
}

#[test]
fn an_unknown_monitor_is_a_gap_with_a_hint_and_the_others_go_on() {
    let (sink, events) = channel();
    let wanted = vec![("vmstats".into(), Nanos(MS)), ("loadavg".into(), Nanos(MS))];
    let sampler = Sampler::start(wanted, Root::host(), sink);
    let heard = receive_until(&events, |heard| !filter_rows(heard, "loadavg").is_empty());
    sampler.stop();
    // A busy machine may lose ticks of the other one, which is a gap as well.
    let of_it = list_gaps(&heard).into_iter().filter(|gap| gap.monitor == "vmstats");
    let reasons: Vec<&str> = of_it.map(|gap| gap.reason.as_str()).collect();
    assert_eq!(reasons, ["`vmstats` is no monitor; did you mean `vmstat`?"]);
}

#[test]
fn a_listener_that_is_gone_ends_the_thread() {
    let (sink, events) = channel();
    let sampler = Sampler::start(vec![("loadavg".into(), Nanos(MS))], Root::host(), sink);
    drop(events);
    sampler.stop();
}

/// A clock that jumps to where it is asked to sleep, plus what the test says of that sleep; it ends after `sleeps`.
struct SimulatedClock {
    now: AtomicU64,
    sleeps: Mutex<u64>,
    each: Box<dyn Fn(u64) -> u64 + Send + Sync>,
}

impl MonotonicClock for SimulatedClock {
    fn now(&self) -> Nanos {
        Nanos(self.now.load(Ordering::SeqCst))
    }

    fn sleep_until(&self, until: Nanos, stop: &StopSignal) -> bool {
        // The lock is let go at once: the test looks at it while we wait.
        let left = self.sleeps.lock().unwrap().checked_sub(1);
        let Some(left) = left else { return stop.wait(Nanos(u64::MAX)) };
        let woken = until.0.saturating_add((self.each)(left));
        *self.sleeps.lock().unwrap() = left;
        self.now.fetch_max(woken, Ordering::SeqCst);
        false
    }
}

/// Runs `sleeps` ticks of simulated time; `each` gets the number of sleeps left and gives the oversleep.
fn run_simulated(
    root: &Root,
    wanted: &[(&str, u64)],
    sleeps: u64,
    each: impl Fn(u64) -> u64 + Send + Sync + 'static,
) -> (Vec<RunEvent>, perflab_observe::SamplerOverhead) {
    let clock = Arc::new(SimulatedClock {
        now: AtomicU64::new(SECOND),
        sleeps: Mutex::new(sleeps),
        each: Box::new(each),
    });
    let (sink, events) = channel();
    let wanted = wanted.iter().map(|(name, interval)| ((*name).to_owned(), Nanos(*interval))).collect();
    let sampler = Sampler::start_with_clock(clock.clone(), wanted, root.clone(), sink);
    while *clock.sleeps.lock().unwrap() > 0 {
        std::thread::yield_now();
    }
    let cost = sampler.stop();
    (events.into_iter().collect(), cost)
}

fn create_tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let directory = tempfile::tempdir().unwrap();
    let root = Root(directory.path().into());
    for (path, text) in files {
        fs::create_dir_all(root.path(path).parent().unwrap()).unwrap();
        fs::write(root.path(path), text).unwrap();
    }
    (directory, root)
}

const LOAD: &str = "0.12 0.32 0.23 1/105 9044\n";

#[test]
fn ticks_are_on_a_grid_of_absolute_times() {
    let (_keep, root) = create_tree(&[("/proc/loadavg", LOAD)]);
    let (heard, cost) = run_simulated(&root, &[("loadavg", 100 * MS)], 4, |_| 30 * MS);
    let at: Vec<u64> = filter_rows(&heard, "loadavg").iter().map(|event| event.at.0 / MS).collect();
    assert_eq!(at, [1030, 1130, 1230, 1330]);
    assert_eq!((cost.ticks, cost.late, cost.lost), (4, 0, 0));
}

#[test]
fn each_monitor_has_its_own_interval() {
    let (_keep, root) = create_tree(&[("/proc/loadavg", LOAD), ("/proc/vmstat", "pgfault 1\n")]);
    let wanted = [("loadavg", 100 * MS), ("vmstat", 300 * MS), ("loadavg", 7 * MS)];
    let (heard, cost) = run_simulated(&root, &wanted, 6, |_| 0);
    assert_eq!((filter_rows(&heard, "loadavg").len(), filter_rows(&heard, "vmstat").len()), (6, 2));
    assert_eq!(cost.ticks, 8);
}

#[test]
fn late_and_lost_ticks_are_counted_and_lost_ones_are_a_gap() {
    let (_keep, root) = create_tree(&[("/proc/loadavg", LOAD)]);
    let oversleep = |left| [0, 0, 250 * MS, 60 * MS, 0][left as usize];
    let (heard, cost) = run_simulated(&root, &[("loadavg", 100 * MS)], 5, oversleep);
    assert_eq!((cost.ticks, cost.late, cost.lost), (5, 1, 2));
    let expected = SeriesGap {
        monitor: "loadavg".into(),
        from: Nanos(1160 * MS),
        to: Some(Nanos(1450 * MS)),
        reason: "2 ticks lost: the machine gave the sampler no time".into(),
    };
    assert_eq!(list_gaps(&heard), [&expected]);
}

#[test]
fn a_missing_file_is_one_gap_and_the_series_opens_when_it_comes() {
    let (_keep, root) = create_tree(&[("/proc/loadavg", LOAD)]);
    let late = root.clone();
    // With a tick every 100 ms, the second try is after a second: the eleventh sleep.
    let create = move |left| {
        if left == 5 {
            fs::write(late.path("/proc/schedstat"), "version 15\ncpu0 0 0 1 2 3 4 5 6 7\n").unwrap();
        }
        0
    };
    let (heard, cost) = run_simulated(&root, &[("schedstat", 100 * MS), ("loadavg", 100 * MS)], 14, create);
    let gap = |to| {
        SeriesGap {
        monitor: "schedstat".into(),
        from: Nanos(SECOND),
        to,
        reason: "/proc/schedstat: no such file or directory; the kernel has it with CONFIG_SCHEDSTATS; its first five \
                 counts need the sysctl kernel.sched_schedstats=1"
            .into(),
    }
    };
    assert_eq!(list_gaps(&heard), [&gap(None), &gap(Some(Nanos(2 * SECOND)))]);
    assert_eq!(filter_rows(&heard, "schedstat").first().map(|event| event.at), Some(Nanos(2 * SECOND)));
    assert_eq!((cost.ticks, cost.lost), (14 + 4, 0), "a monitor that is not there loses no ticks");
}

#[test]
fn a_monitor_that_fails_half_way_is_a_gap_from_the_last_good_tick_until_it_is_back() {
    let (_keep, root) = create_tree(&[("/proc/loadavg", LOAD)]);
    let broken = root.clone();
    let breaking = move |left| {
        match left {
            20 => fs::write(broken.path("/proc/loadavg"), "rubbish").unwrap(),
            17 => fs::write(broken.path("/proc/loadavg"), LOAD).unwrap(),
            _ => {}
        }
        0
    };
    // A second monitor makes every sleep 100 ms long.
    fs::write(root.path("/proc/vmstat"), "pgfault 1\n").unwrap();
    let (heard, _) = run_simulated(&root, &[("loadavg", 100 * MS), ("vmstat", 100 * MS)], 24, breaking);
    let found = list_gaps(&heard);
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].from, found[0].to), (Nanos(1200 * MS), None));
    assert!(found[0].reason.starts_with("/proc/loadavg, line 1:"), "{}", found[0].reason);
    assert_eq!((found[1].from, found[1].to), (Nanos(1200 * MS), Some(Nanos(2300 * MS))));
    assert!(found[1].is_end_of(found[0]) && !found[0].is_end_of(found[1]));
    let opened = heard.iter().filter(|event| matches!(event.what, RunEventKind::SeriesOpened(_))).count();
    assert_eq!(opened, 2, "a series opens once, whatever happens to it");
}

#[test]
fn a_series_whose_columns_changed_stays_a_gap() {
    let (_keep, root) = create_tree(&[("/proc/vmstat", "pgfault 1\n"), ("/proc/loadavg", LOAD)]);
    let changed = root.clone();
    let change = move |left| {
        match left {
            20 => fs::write(changed.path("/proc/vmstat"), "pgfault oops\n").unwrap(),
            19 => fs::write(changed.path("/proc/vmstat"), "pgfault 1\npgfree 2\n").unwrap(),
            _ => {}
        }
        0
    };
    let (heard, _) = run_simulated(&root, &[("vmstat", 100 * MS), ("loadavg", 100 * MS)], 24, change);
    assert!(list_gaps(&heard).iter().all(|gap| gap.to.is_none()));
    assert_eq!(filter_rows(&heard, "vmstat").len(), 3);
}

/// Receives until `enough`.
fn receive_until(events: &Receiver<RunEvent>, enough: impl Fn(&[RunEvent]) -> bool) -> Vec<RunEvent> {
    let mut heard = Vec::new();
    while !enough(&heard) {
        heard.push(events.recv().unwrap());
    }
    heard
}

fn filter_rows<'a>(heard: &'a [RunEvent], name: &str) -> Vec<&'a RunEvent> {
    let is_row =
        |event: &&RunEvent| matches!(&event.what, RunEventKind::Rows { monitor, .. } if monitor == name);
    heard.iter().filter(is_row).collect()
}

fn list_gaps(heard: &[RunEvent]) -> Vec<&SeriesGap> {
    heard
        .iter()
        .filter_map(|event| if let RunEventKind::Gap(gap) = &event.what { Some(gap) } else { None })
        .collect()
}

fn monitor_name(event: &RunEvent) -> &str {
    match &event.what {
        RunEventKind::Rows { monitor, .. } => monitor,
        RunEventKind::SeriesOpened(schema) => &schema.monitor,
        RunEventKind::Gap(gap) => &gap.monitor,
        _ => "",
    }
}
