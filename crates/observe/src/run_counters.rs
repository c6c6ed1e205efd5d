//! What a study's `[counters]` count in a run: opened once, by the thread that starts the workloads, and read by monitors.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perflab_formats::kernel::counter_event::{CounterEvent, CounterSource};
use perflab_model::study::{CounterGroups, CountersSpec};

use crate::perf_counter::{CounterReading, CounterScope, EventCode, PerfCounter, UNITS};
use crate::profiler::online_cpus;
use crate::root::Root;

/// Events that are counted at the same times.
pub(crate) type EventGroup = Vec<CounterEvent>;

/// An event that is not counted here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncountedEvent {
    /// As the study has it.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The counters of a run: of nothing until they are opened. Clones are of the same run.
#[derive(Debug, Clone, Default)]
pub struct RunCounters(Arc<Mutex<CounterState>>);

#[derive(Debug, Default)]
struct CounterState {
    workload: Option<Arc<OpenCounters>>,
    cpu_events: Arc<[EventGroup]>,
    /// By CPU, opened when one is first read: every monitor of the run reads the same, so that clock and edges are of one count.
    cpus: BTreeMap<u32, Arc<OpenCounters>>,
}

impl RunCounters {
    /// Counts from now on what this thread starts, where it `starts_workloads`, and lets monitors count on CPUs. Returns which
    /// events this machine does not count.
    pub fn open(&self, spec: &CountersSpec, root: &Root, starts_workloads: bool) -> Vec<UncountedEvent> {
        // Whoever checked the study has said what is no event.
        let parse = |name: &String| CounterEvent::parse(name).ok();
        let groups = |groups: &CounterGroups| -> Vec<EventGroup> {
            groups.0.iter().map(|group| group.iter().filter_map(parse).collect()).collect()
        };
        let (events, cpus) = (groups(&spec.events), groups(&spec.cpus));
        let mut state = self.lock_state();
        let mut lacking = Vec::new();
        if starts_workloads {
            let (opened, refused) = OpenCounters::open(&events, CounterScope::Started, root);
            state.workload = (!opened.counters.is_empty()).then(|| Arc::new(opened));
            lacking.extend(refused);
        }
        let first = online_cpus(root).first().copied().unwrap_or(0);
        lacking.extend(OpenCounters::open(&cpus, CounterScope::Cpu(first), root).1);
        state.cpu_events = cpus.into();
        state.cpus.clear();
        lacking
    }

    /// Whether anything of the workload is counted.
    pub fn counts_workload(&self) -> bool {
        self.lock_state().workload.is_some()
    }

    /// The workload's, where they are open.
    pub(crate) fn workload(&self) -> Option<Arc<OpenCounters>> {
        self.lock_state().workload.clone()
    }

    /// Whether anything is counted on each CPU.
    pub(crate) fn counts_cpus(&self) -> bool {
        !self.lock_state().cpu_events.is_empty()
    }

    /// The counters of a CPU. Those that were read until it went offline are `stale`: others are opened in their place, once.
    pub(crate) fn open_cpu(
        &self,
        cpu: u32,
        stale: Option<&Arc<OpenCounters>>,
        root: &Root,
    ) -> Arc<OpenCounters> {
        let mut state = self.lock_state();
        let events = Arc::clone(&state.cpu_events);
        let known = state.cpus.get(&cpu).filter(|known| stale.is_none_or(|stale| !Arc::ptr_eq(known, stale)));
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let opened = Arc::new(OpenCounters::open(&events, CounterScope::Cpu(cpu), root).0);
        state.cpus.insert(cpu, Arc::clone(&opened));
        opened
    }

    /// A state is as good as any, whatever happened to the thread that held it.
    fn lock_state(&self) -> MutexGuard<'_, CounterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters that are open.
#[derive(Debug)]
pub(crate) struct OpenCounters {
    pub(crate) counters: Vec<OpenCounter>,
    /// Beside those of a thread.
    _anchor: Option<PerfCounter>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct OpenCounter {
    /// With the modes in which it is counted.
    pub(crate) event: CounterEvent,
    pub(crate) code: EventCode,
    counter: PerfCounter,
}

impl OpenCounter {
    pub(crate) fn read(&self) -> Option<CounterReading> {
        self.counter.read()
    }
}

impl OpenCounters {
    /// Opens what can be opened, and says what cannot.
    pub(crate) fn open(
        groups: &[EventGroup],
        scope: CounterScope,
        root: &Root,
    ) -> (OpenCounters, Vec<UncountedEvent>) {
        // Where there is none, there is no counter either, and each says why.
        let anchor = (scope == CounterScope::Started).then(|| PerfCounter::open_anchor().ok());
        let mut opened = OpenCounters { counters: Vec::new(), _anchor: anchor.flatten() };
        let mut lacking = Vec::new();
        for group in groups {
            let mut leader = None;
            for event in group.iter().flat_map(|event| expand_event(root, event)) {
                match opened.open_event(&event, scope, root, leader) {
                    Ok(()) => leader = leader.or_else(|| opened.counters.len().checked_sub(1)),
                    Err(reason) => lacking.push(UncountedEvent { name: event.name, reason }),
                }
            }
            let leader = leader.and_then(|index| opened.counters.get(index));
            if let Some(Err(error)) =
                leader.filter(|_| scope != CounterScope::Started).map(|one| one.counter.start())
            {
                let reason = perflab_model::describe_error_chain(&error);
                lacking.extend(
                    group
                        .iter()
                        .map(|event| UncountedEvent { name: event.name.clone(), reason: reason.clone() }),
                );
            }
        }
        (opened, lacking)
    }

    fn open_event(
        &mut self,
        event: &CounterEvent,
        scope: CounterScope,
        root: &Root,
        leader: Option<usize>,
    ) -> Result<(), String> {
        let code = EventCode::resolve(root, event)?;
        match scope {
            CounterScope::Started if code.cpus.is_some() => {
                return Err("it is counted for CPUs, not for programs: name it under `cpus`".into());
            }
            CounterScope::Cpu(cpu) if code.cpus.as_ref().is_some_and(|cpus| !cpus.contains(&cpu)) => {
                // Another CPU's counter has the count of both.
                return Ok(());
            }
            _ => {}
        }
        let leader = leader.and_then(|index| Some(&self.counters.get(index)?.counter));
        let open = |event: &CounterEvent| PerfCounter::open(&code, &event.modes, scope, leader);
        let (event, counter) = match open(event) {
            Ok(counter) => (event.clone(), counter),
            Err(error) => {
                let alone =
                    event.in_user_mode().filter(|_| is_refused(&error) && scope == CounterScope::Started);
                let opened = alone.and_then(|alone| open(&alone).ok().map(|counter| (alone, counter)));
                opened.ok_or_else(|| describe_refusal(&error, event, scope, root))?
            }
        };
        self.counters.push(OpenCounter { event, code, counter });
        Ok(())
    }
}

fn is_refused(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

fn describe_refusal(error: &io::Error, event: &CounterEvent, scope: CounterScope, root: &Root) -> String {
    let needed = if scope == CounterScope::Started { 1 } else { 0 };
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let now = root.read("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            format!(
                "it needs CAP_PERFMON, or kernel.perf_event_paranoid of {needed} or less{}",
                if now.is_empty() { String::new() } else { format!("; it is {now}") }
            )
        }
        Some(libc::ENOSYS) => {
            "this kernel counts nothing (CONFIG_PERF_EVENTS), or a seccomp profile refuses it".into()
        }
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP | libc::EINVAL) if event.takes_turns() => {
            "this processor, or its hypervisor, does not count it".into()
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "no file descriptor is left: count fewer events, or raise `ulimit -n`".into()
        }
        _ => perflab_model::describe_error_chain(error),
    }
}

/// The slots of Intel's processors from Ice Lake on, which count the four parts themselves, and those of earlier ones
/// (`topdown_*` in arch/x86/events/intel/core.c).
const TOPDOWN: [&[&str]; 2] = [
    &["slots", "topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"],
    &[
        "topdown-total-slots",
        "topdown-slots-issued",
        "topdown-slots-retired",
        "topdown-fetch-bubbles",
        "topdown-recovery-bubbles",
    ],
];

/// `topdown` is a group of events, by what this processor has of it; every other event is itself.
fn expand_event(root: &Root, event: &CounterEvent) -> Vec<CounterEvent> {
    if event.source != CounterSource::TopDown {
        return vec![event.clone()];
    }
    let is_there = |unit: &str, name: &str| root.path(&format!("{UNITS}/{unit}/events/{name}")).exists();
    for unit in ["cpu", "cpu_core"] {
        let found = TOPDOWN.iter().find(|names| names.iter().all(|name| is_there(unit, name)));
        if let Some(names) = found {
            let part = |name: &&str| CounterEvent {
                name: (*name).to_owned(),
                source: CounterSource::Pmu { pmu: unit.into(), terms: (*name).to_owned() },
                modes: event.modes.clone(),
            };
            return names.iter().map(part).collect();
        }
    }
    vec![event.clone()]
}

/// Why this thread cannot count an event of what it starts; nothing where it can.
pub fn find_counter_refusal(root: &Root, name: &str) -> Option<String> {
    let event = match CounterEvent::parse(name) {
        Ok(event) => event,
        Err(reason) => return Some(reason),
    };
    let (_, lacking) = OpenCounters::open(&[vec![event]], CounterScope::Started, root);
    lacking.into_iter().next().map(|lacking| lacking.reason)
}

/// The events of this machine by name: those that every perf knows, and those that its units describe; tracepoints are others.
pub fn list_counter_events(root: &Root) -> Vec<String> {
    let mut names = CounterEvent::generic_names();
    for unit in root.list(UNITS) {
        let events = root.list(&format!("{UNITS}/{unit}/events"));
        let events = events.iter().filter(|name| !name.contains('.'));
        names.extend(events.map(|event| format!("{unit}/{event}/")));
    }
    names
}

/// Growth of a counter that may have had to take turns with others: what it would have counted all the time, as
/// perf_event_open(2) reckons it, of each interval by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ScaledCount {
    last: CounterReading,
    total: f64,
}

impl ScaledCount {
    /// Whether a counter that was read before has not been enabled for a moment since.
    pub(crate) fn has_stopped_at(&self, now: CounterReading) -> bool {
        self.last.enabled > 0 && now.enabled == self.last.enabled
    }

    /// Takes a reading; returns the sum of all growth, and the part of the time in which it was counted. No sum where it was
    /// not counted at all meanwhile.
    pub(crate) fn advance(&mut self, now: CounterReading) -> (Option<f64>, Option<f64>) {
        let last = std::mem::replace(&mut self.last, now);
        // A counter that was opened anew, as its CPU came back, begins at 0.
        let is_new = now.enabled < last.enabled || now.count < last.count;
        let last = if is_new { CounterReading::default() } else { last };
        let grown = (now.count - last.count) as f64;
        let (enabled, running) = (now.enabled - last.enabled, now.running.saturating_sub(last.running));
        if enabled == 0 {
            self.total += grown;
            return (Some(self.total), None);
        }
        if running == 0 {
            return (None, Some(0.0));
        }
        let part = (running as f64 / enabled as f64).min(1.0);
        self.total += grown / part;
        (Some(self.total), Some(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(count: u64, enabled: u64, running: u64) -> CounterReading {
        CounterReading { count, enabled, running }
    }

    /// perf_event_open(2): `count * enabled / running`.
    #[test]
    fn what_took_turns_is_scaled_by_the_time_it_had() {
        let mut count = ScaledCount::default();
        assert_eq!(count.advance(reading(100, 1_000, 1_000)), (Some(100.0), Some(1.0)));
        assert_eq!(count.advance(reading(150, 2_000, 1_250)), (Some(300.0), Some(0.25)));
        assert_eq!(count.advance(reading(150, 3_000, 1_250)), (None, Some(0.0)), "it had no turn");
        assert_eq!(count.advance(reading(150, 3_000, 1_250)), (Some(300.0), None), "nothing ran");
        // The CPU went, and came back.
        assert_eq!(count.advance(reading(7, 10, 10)), (Some(307.0), Some(1.0)));
    }

    /// `dd` reads and writes as often as it is told: two system calls a block, whoever forks it. On one CPU, where thread and workload
    /// switch from one to the other, and again and again, as a run does.
    #[test]
    fn what_a_thread_starts_is_counted_from_its_exec_on_and_the_thread_is_not() {
        let name = "what_a_thread_starts_is_counted_from_its_exec_on_and_the_thread_is_not";
        let spec: CountersSpec =
            serde_json::from_str(r#"{"events":["raw_syscalls:sys_enter","task-clock"]}"#).unwrap();
        let run = RunCounters::default();
        if let Some(lacking) = run.open(&spec, &Root::host(), true).first() {
            return eprintln!("SKIP {name}: {}: {}", lacking.name, lacking.reason);
        }
        let mut one = rustix::thread::CpuSet::new();
        one.set(rustix::thread::sched_getcpu());
        rustix::thread::sched_setaffinity(None, &one).unwrap();
        let opened = run.workload().unwrap();
        let count = || opened.counters.iter().map(|one| one.read().unwrap().count).collect::<Vec<_>>();
        (0..100).for_each(|_| drop(std::fs::metadata("/")));
        assert_eq!(count(), [0, 0], "nothing was started yet");
        let copy = |blocks: u64| {
            let before = count();
            let script = format!("dd if=/dev/zero of=/dev/null bs=512 count={blocks} 2>/dev/null; true");
            assert!(std::process::Command::new("sh").args(["-c", &script]).status().unwrap().success());
            (0..100).for_each(|_| drop(std::fs::metadata("/")));
            let after = count();
            assert!(after[1] > before[1]);
            after[0] - before[0]
        };
        let counts: Vec<u64> = (0..5).map(|round| copy(1_000 + round * 10_000)).collect();
        let grown: Vec<u64> = counts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(grown, [20_000; 4], "{counts:?}");
    }

    #[test]
    fn top_down_is_what_the_processor_has_of_it() {
        let names = |files: &[&str]| -> Vec<String> {
            let home = tempfile::tempdir().unwrap();
            let folder = home.path().join("sys/bus/event_source/devices/cpu/events");
            std::fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|name| std::fs::write(folder.join(name), "event=0x00").unwrap());
            let event = CounterEvent::parse("topdown").unwrap();
            expand_event(&Root(home.path().into()), &event).into_iter().map(|event| event.name).collect()
        };
        assert_eq!(names(TOPDOWN[0]), TOPDOWN[0]);
        assert_eq!(names(TOPDOWN[1]), TOPDOWN[1]);
        assert_eq!(names(&TOPDOWN[1][1..]), ["topdown"], "which then has its reason");
    }
}
