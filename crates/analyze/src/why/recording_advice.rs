//! What would have to be recorded to know more of a change.

use crate::why::cause_table::TimePart;
use crate::why::explanation::{IntervalValue, RecordingAdvice, TimePlace};
use crate::why::recorded_study::RecordedStudy;

/// What a monitor, counter or event tells of a part of the time.
struct RecordingSource {
    /// the monitor whose series it is
    monitor: &'static str,
    parts: &'static [TimePart],
    about: &'static str,
    /// records it beside `{study}`, which is what was run
    command: &'static str,
}

use TimePart::{OffCpu, System, User};

/// All of them, what tells most of a part of the time first: three are shown.
const RECORDING_SOURCES: &[RecordingSource] = &[
    RecordingSource {
        monitor: "delays",
        parts: &[OffCpu],
        about: "waiting for a CPU; for a disk, swap and memory where sysctl kernel.task_delayacct is 1",
        command: "perflab run {study} --monitor delays",
    },
    RecordingSource {
        monitor: "events",
        parts: &[OffCpu],
        about: "what it waited for",
        command: "perflab run {study} --event run-queue-delay --event off-cpu --event block-latency",
    },
    RecordingSource {
        monitor: "counters",
        parts: &[User],
        about: "instructions and cache misses, where the processor counts them",
        command: "perflab run {study} --counters instructions,cycles,cache-misses",
    },
    RecordingSource {
        monitor: "profile",
        parts: &[User, System],
        about: "functions, which `perflab flame diff` shows",
        command: "perflab run {study} --profile 999",
    },
    RecordingSource {
        monitor: "counters",
        parts: &[System],
        about: "system calls",
        command: "perflab run {study} --counters raw_syscalls:sys_enter",
    },
    RecordingSource {
        monitor: "vmstat",
        parts: &[System, OffCpu],
        about: "memory: faults, reclaim, swapping",
        command: "perflab run {study} --monitor vmstat",
    },
    RecordingSource {
        monitor: "stat",
        parts: &[OffCpu, User],
        about: "CPU time of everything else",
        command: "perflab run {study} --monitor stat",
    },
    RecordingSource {
        monitor: "diskstats",
        parts: &[OffCpu],
        about: "disks: reads, writes, flushes",
        command: "perflab run {study} --monitor diskstats",
    },
    RecordingSource {
        monitor: "cgroup",
        parts: &[OffCpu],
        about: "throttling and limits",
        command: "perflab run {study} --monitor cgroup",
    },
    RecordingSource {
        monitor: "interrupts",
        parts: &[System, OffCpu],
        about: "interrupts",
        command: "perflab run {study} --monitor interrupts",
    },
];

/// Whether the first event that a source counts is recorded.
fn names_recorded_event(source: &RecordingSource, series: &[String]) -> bool {
    let events = source.command.split("--counters ").nth(1).unwrap_or_default();
    let first = events.split(',').next().unwrap_or_default();
    !first.is_empty() && series.iter().any(|name| name.starts_with(&format!("counters {first}")))
}

/// What is not recorded, and would tell of where the time of the change is.
pub(crate) fn advise_recording(
    places: &[TimePlace],
    change: IntervalValue,
    (monitors, series): (&[String], &[String]),
    study: &RecordedStudy,
) -> Vec<RecordingAdvice> {
    let is_recorded = |source: &RecordingSource| match source.monitor {
        "counters" => names_recorded_event(source, series),
        name => monitors.iter().any(|monitor| monitor.split('.').next() == Some(name)),
    };
    let matters = |part: &TimePart| {
        let place = places.iter().find(|place| place.part == *part);
        place.is_none_or(|place| place.change.value * change.value.signum() > 0.2 * change.value.abs())
    };
    RECORDING_SOURCES
        .iter()
        .filter(|source| !is_recorded(source) && source.parts.iter().any(matters))
        .map(|source| RecordingAdvice {
            about: source.about.to_owned(),
            command: study.complete_command(source.command),
        })
        .collect()
}
