//! What would have to be recorded to know more of a change.

use crate::why::cause_table::{TimePart, command_for_study};
use crate::why::explanation::{IntervalValue, RecordingAdvice, TimePlace};

/// What a monitor, counter or event tells of a part of the time.
struct RecordingSource {
    /// the monitor whose series it is
    monitor: &'static str,
    parts: &'static [TimePart],
    about: &'static str,
    command: &'static str,
}

use TimePart::{OffCpu, System, User};

/// All of them, what tells most of a part of the time first: three are shown.
const RECORDING_SOURCES: &[RecordingSource] = &[
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
        about: "functions (`[profile]` of the study: frequency = 999)",
        command: "perflab flame diff BEFORE AFTER",
    },
    RecordingSource {
        monitor: "vmstat",
        parts: &[System, OffCpu],
        about: "memory: faults, reclaim, swapping (`[monitors]` of the study: vmstat = \"edges\")",
        command: "perflab monitor show vmstat",
    },
    RecordingSource {
        monitor: "stat",
        parts: &[OffCpu, User],
        about: "CPU time of everything else (`[monitors]`: stat = \"edges\")",
        command: "perflab monitor show stat",
    },
    RecordingSource {
        monitor: "diskstats",
        parts: &[OffCpu],
        about: "disks: reads, writes, flushes (`[monitors]`: diskstats = \"edges\")",
        command: "perflab monitor show diskstats",
    },
    RecordingSource {
        monitor: "cgroup",
        parts: &[OffCpu],
        about: "throttling and limits (`[monitors]`: cgroup = \"edges\")",
        command: "perflab monitor show cgroup",
    },
    RecordingSource {
        monitor: "interrupts",
        parts: &[System, OffCpu],
        about: "interrupts (`[monitors]`: interrupts = \"edges\")",
        command: "perflab monitor show interrupts",
    },
    RecordingSource {
        monitor: "counters",
        parts: &[System],
        about: "system calls",
        command: "perflab run {study} --counters raw_syscalls:sys_enter",
    },
];

/// Whether the first event that a source counts is recorded.
fn names_recorded_event(source: &RecordingSource, series: &[String]) -> bool {
    let events = source.command.split("--counters ").nth(1).unwrap_or_default();
    let first = events.split(',').next().unwrap_or_default();
    !first.is_empty() && series.iter().any(|name| name.starts_with(&format!("counters {first}")))
}

/// What is not recorded, and would tell of where the time of the change is; nothing where a suspect can carry half of the change.
pub(crate) fn advise_recording(
    places: &[TimePlace],
    change: IntervalValue,
    (monitors, series): (&[String], &[String]),
    study: &str,
    is_carried: bool,
) -> Vec<RecordingAdvice> {
    if is_carried {
        return Vec::new();
    }
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
        .filter(|recorder| !is_recorded(recorder) && recorder.parts.iter().any(matters))
        .map(|recorder| RecordingAdvice {
            about: recorder.about.to_owned(),
            command: command_for_study(recorder.command, study),
        })
        .collect()
}
