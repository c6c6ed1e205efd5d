//! What a study's `[events]` count in a run: attached once, by the thread that starts the workloads, and read by monitors.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use perflab_formats::kernel::counter_event::{CounterEvent, CounterSource};
use perflab_model::study::{EventOwner, EventSpec, KeptOfEvents, split_tracepoint_name};

use crate::events::event_field::{EventField, FieldMeaning};
use crate::events::event_filter::number_system_calls;
use crate::events::event_program::{EventFault, EventProgram};
use crate::events::loaded_event::{EventReading, EventTally, LoadedEvent};
use crate::perf_counter::{CounterScope, EventCode, PerfCounter};
use crate::profiler::online_cpus;
use crate::root::Root;
use crate::run_counters::UncountedEvent;

/// Who counts an event.
#[derive(Debug)]
enum EventBackEnd {
    /// BPF programs
    Bpf(Box<LoadedEvent>),
    /// perf events that count, of the workload or one a CPU, where BPF is refused; with why it is
    PerfEvents { counters: Vec<PerfCounter>, _anchor: Option<PerfCounter>, reason: String },
}

/// An event that is counted.
#[derive(Debug)]
pub(crate) struct OpenEvent {
    pub(crate) name: String,
    /// With what its recipe says.
    pub(crate) spec: EventSpec,
    back_end: EventBackEnd,
}

impl OpenEvent {
    fn open(name: &str, spec: &EventSpec, root: &Root) -> Result<Self, String> {
        let spec = spec.resolve();
        let program = EventProgram::resolve(root, &spec)?;
        let cpu = online_cpus(root).first().copied().unwrap_or(0);
        let back_end = match LoadedEvent::attach(program, cpu) {
            Ok(loaded) => EventBackEnd::Bpf(Box::new(loaded)),
            Err(reason) => open_counters(&spec, root, &reason)?,
        };
        Ok(OpenEvent { name: name.into(), spec, back_end })
    }

    /// Who counts it, as the record says it.
    pub(crate) fn describe_back_end(&self) -> &'static str {
        match self.back_end {
            EventBackEnd::Bpf(_) => "BPF",
            EventBackEnd::PerfEvents { .. } => "perf events",
        }
    }

    /// Whether its keys are told apart.
    pub(crate) fn has_keys(&self) -> bool {
        match &self.back_end {
            EventBackEnd::Bpf(loaded) => !loaded.program.keys.is_empty(),
            EventBackEnd::PerfEvents { .. } => false,
        }
    }

    /// Whether texts of its keys are cut: two share the room that one alone has.
    fn has_cut_keys(&self) -> bool {
        match &self.back_end {
            EventBackEnd::Bpf(loaded) => {
                let keys = &loaded.program.keys;
                keys.len() > 1 && keys.iter().any(EventField::is_text)
            }
            EventBackEnd::PerfEvents { .. } => false,
        }
    }

    /// Whether its events have values, or it is a pair, which has times.
    pub(crate) fn has_values(&self) -> bool {
        match &self.back_end {
            EventBackEnd::Bpf(loaded) => loaded.program.has_values,
            EventBackEnd::PerfEvents { .. } => false,
        }
    }

    /// Whether any of its keys means this.
    pub(crate) fn has_key_of(&self, meaning: FieldMeaning) -> bool {
        let is_one = |field: &EventField| field.meaning == meaning;
        matches!(&self.back_end, EventBackEnd::Bpf(loaded) if loaded.program.keys.iter().any(is_one))
    }

    fn begin_epoch(&mut self) -> Result<(), String> {
        match &mut self.back_end {
            EventBackEnd::Bpf(loaded) => loaded.begin_epoch(),
            EventBackEnd::PerfEvents { .. } => Ok(()),
        }
    }

    fn read(&self) -> Result<EventReading, String> {
        match &self.back_end {
            EventBackEnd::Bpf(loaded) => loaded.read(),
            EventBackEnd::PerfEvents { counters, .. } => {
                let counts = counters.iter().filter_map(|counter| counter.read());
                let count = counts.fold(0_u64, |sum, reading| sum.saturating_add(reading.count));
                let tally = EventTally { count, ..EventTally::default() };
                Ok(EventReading { by_key: [(String::new(), tally)].into(), ..EventReading::default() })
            }
        }
    }
}

/// Counting perf events in place of BPF, where a number is all that is wanted.
fn open_counters(spec: &EventSpec, root: &Root, reason: &str) -> Result<EventBackEnd, String> {
    let event = spec.event.as_deref().filter(|_| spec.key.is_none() && spec.kept() == KeptOfEvents::Count);
    let event = event.filter(|_| spec.value.is_none()).and_then(split_tracepoint_name);
    let Some((group, name)) = event else {
        return Err(format!(
            "{reason}; without BPF, one tracepoint with keep = \"count\" and no `key` is counted"
        ));
    };
    let source = CounterSource::Tracepoint { group: group.into(), name: name.into() };
    let event = CounterEvent { name: format!("{group}:{name}"), source, modes: Vec::new() };
    let code = EventCode::resolve(root, &event)?;
    let is_workloads = spec.of == Some(EventOwner::Workload);
    let refused = |error: std::io::Error| format!("{reason}; perf_event_open(2): {error}");
    let anchor = is_workloads.then(PerfCounter::open_anchor).transpose().map_err(refused)?;
    let scopes = match is_workloads {
        true => vec![CounterScope::Started],
        false => online_cpus(root).into_iter().map(CounterScope::Cpu).collect(),
    };
    let mut counters = Vec::new();
    for scope in scopes {
        let counter = PerfCounter::open(&code, &[], scope, None).map_err(refused)?;
        if let Some(filter) = &spec.filter {
            let spelled = if group == "raw_syscalls" { number_system_calls(filter) } else { filter.clone() };
            counter
                .filter(&spelled)
                .map_err(|error| format!("the kernel does not take the filter `{filter}`: {error}"))?;
        }
        if scope != CounterScope::Started {
            counter.start().map_err(refused)?;
        }
        counters.push(counter);
    }
    Ok(EventBackEnd::PerfEvents { counters, _anchor: anchor, reason: reason.into() })
}

/// The events of a run: none until they are opened. Clones are of the same run.
#[derive(Debug, Clone, Default)]
pub struct RunTracepoints(Arc<Mutex<Vec<OpenEvent>>>);

/// Events that this machine does not count, and those that it counts otherwise than by BPF.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventShortfalls {
    /// Not counted at all.
    pub uncounted: Vec<UncountedEvent>,
    /// Counted by perf events, with why BPF is refused.
    pub counted_otherwise: Vec<UncountedEvent>,
    /// Two keys of which one at least is a text: only its first letters are told apart.
    pub cut_keys: Vec<String>,
}

impl RunTracepoints {
    /// Counts from now on; of a workload's events, those of what this thread starts, where it `starts_workloads`.
    pub fn open(
        &self,
        specs: &IndexMap<String, EventSpec>,
        root: &Root,
        starts_workloads: bool,
    ) -> EventShortfalls {
        let mut found = EventShortfalls::default();
        let mut opened = Vec::new();
        let here = |spec: &EventSpec| starts_workloads || spec.resolve().of != Some(EventOwner::Workload);
        for (name, spec) in specs.iter().filter(|(_, spec)| here(spec)) {
            match OpenEvent::open(name, spec, root) {
                Ok(event) => {
                    if let EventBackEnd::PerfEvents { reason, .. } = &event.back_end {
                        let other = UncountedEvent { name: name.clone(), reason: reason.clone() };
                        found.counted_otherwise.push(other);
                    }
                    if event.has_cut_keys() {
                        found.cut_keys.push(name.clone());
                    }
                    opened.push(event);
                }
                Err(reason) => found.uncounted.push(UncountedEvent { name: name.clone(), reason }),
            }
        }
        *self.lock() = opened;
        found
    }

    /// Whether anything is counted.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Detaches all.
    pub fn close(&self) {
        // The kernel takes its time for it: whoever reads meanwhile does not wait.
        let opened = std::mem::take(&mut *self.lock());
        drop(opened);
    }

    /// What was lost so far: a sentence an event, with the CPUs.
    pub fn describe_losses(&self) -> Vec<String> {
        let describe = |event: &OpenEvent| {
            let EventReading { lost, missed, .. } = event.read().ok()?;
            let cpus = lost.iter().enumerate().filter(|(_, lost)| lost.events > 0);
            let mut parts: Vec<String> =
                cpus.map(|(cpu, lost)| format!("{} on CPU {cpu}", lost.events)).collect();
            if !parts.is_empty() && event.spec.is_pair() {
                parts.push("more pairs were under way than `in-flight` allows".into());
            }
            parts.extend((missed > 0).then(|| format!("{missed} while another BPF program ran")));
            (!parts.is_empty()).then(|| format!("`{}` lost events: {}", event.name, parts.join(", ")))
        };
        self.lock().iter().filter_map(describe).collect()
    }

    /// What was not told apart that a study asked for, so far: keys that came when there was no room for more, and texts that are
    /// longer than what of them is looked at.
    pub fn describe_merged_keys(&self) -> Vec<String> {
        let describe = |event: &OpenEvent| {
            let EventBackEnd::Bpf(loaded) = &event.back_end else { return None };
            let late = event.read().ok()?.late_keys;
            let most = loaded.program.most_keys;
            (late > 0).then(|| {
                format!(
                    "{late} events of `{}` came with keys beyond the first {most}: they are `other`",
                    event.name
                )
            })
        };
        self.lock().iter().filter_map(describe).collect()
    }

    /// What `each` says of the events.
    pub(crate) fn with_events<T>(&self, each: impl FnOnce(&[OpenEvent]) -> T) -> T {
        each(&self.lock())
    }

    /// All readings, in the order of the events; from an edge on, largest values are those since then.
    pub(crate) fn read(&self, begins: bool) -> Result<Vec<EventReading>, String> {
        let mut events = self.lock();
        let mut readings = Vec::with_capacity(events.len());
        for event in events.iter_mut() {
            if begins {
                event.begin_epoch()?;
            }
            readings.push(event.read().map_err(|reason| format!("{}: {reason}", event.name))?);
        }
        Ok(readings)
    }

    /// A state is as good as any, whatever happened to the thread that held it.
    fn lock(&self) -> MutexGuard<'_, Vec<OpenEvent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is wrong with an event on this machine, as far as its tracepoints say; nothing is loaded.
pub fn find_event_fault(root: &Root, spec: &EventSpec) -> Option<EventFault> {
    EventProgram::resolve(root, &spec.resolve()).err()
}

/// Why this machine does not count an event; nothing where it does, by BPF.
pub fn find_event_refusal(root: &Root, spec: &EventSpec) -> Option<String> {
    match OpenEvent::open("", spec, root) {
        Ok(OpenEvent { back_end: EventBackEnd::PerfEvents { reason, .. }, .. }) => {
            Some(format!("by perf events only: {reason}"))
        }
        Ok(_) => None,
        Err(reason) => Some(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Result<RunTracepoints, String> {
        let spec: EventSpec = serde_json::from_str(text).unwrap();
        let events = RunTracepoints::default();
        let found = events.open(&IndexMap::from([("e".to_owned(), spec)]), &Root::host(), true);
        let lacking = found.uncounted.into_iter().chain(found.counted_otherwise).next();
        lacking.map_or(Ok(events), |lacking| Err(lacking.reason))
    }

    fn count(events: &RunTracepoints) -> u64 {
        events.read(false).unwrap()[0].by_key.values().map(|tally| tally.count).sum()
    }

    fn call(times: u32) {
        for _ in 0..times {
            let _ = rustix::process::getpriority_user(rustix::process::Uid::from_raw(0));
        }
    }

    /// A call that hardly anybody makes; others that do are told apart by what they hand over, which a filter cannot see: at least
    /// ours are all there, and each of two who look sees as many.
    #[test]
    fn who_else_uses_a_tracepoint_loses_nothing() {
        let name = "who_else_uses_a_tracepoint_loses_nothing";
        let text = r#"{"event":"raw_syscalls:sys_enter","filter":"id == getpriority"}"#;
        let one = match open(text) {
            Ok(one) => one,
            Err(reason) => return eprintln!("SKIP {name}: {reason}"),
        };
        let other = open(text).unwrap();
        let root = Root::host();
        let reading = open_counters(&serde_json::from_str(text).unwrap(), &root, "");
        let EventBackEnd::PerfEvents { counters, .. } = reading.unwrap() else { panic!("no counters") };
        let counted =
            || counters.iter().filter_map(|counter| counter.read()).map(|read| read.count).sum::<u64>();
        let before = (count(&one), count(&other), counted());
        call(1_000);
        let after = (count(&one), count(&other), counted());
        let grown = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
        assert_eq!(grown, (1_000, 1_000, 1_000));
        drop(one);
        let before = (count(&other), counted());
        call(10);
        assert_eq!(
            (count(&other) - before.0, counted() - before.1),
            (10, 10),
            "one that ended took others with it"
        );
    }

    /// What this thread does is not the workload's; what it starts is, from its `exec` on.
    #[test]
    fn a_workloads_events_are_those_of_what_the_thread_starts() {
        let name = "a_workloads_events_are_those_of_what_the_thread_starts";
        let text =
            r#"{"event":"raw_syscalls:sys_exit","filter":"id == write","value":"ret","of":"workload"}"#;
        let events = match open(text) {
            Ok(events) => events,
            Err(reason) => return eprintln!("SKIP {name}: {reason}"),
        };
        std::fs::write("/dev/null", "x").unwrap();
        assert_eq!(count(&events), 0);
        let script = "dd if=/dev/zero of=/dev/null bs=64 count=777 status=none & wait";
        assert!(std::process::Command::new("sh").args(["-c", script]).status().unwrap().success());
        std::fs::write("/dev/null", "x").unwrap();
        let reading = events.read(false).unwrap().remove(0);
        let tally = &reading.by_key[""];
        assert_eq!((tally.count, tally.sum, tally.max), (777, 777 * 64, 64));
    }
}
