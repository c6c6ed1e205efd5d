//! What would have to be recorded to know more of a change.

use crate::why::cause_table::TimePart;
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

/// All of them, the cheapest first.
const RECORDING_SOURCES: &[RecordingSource] = &[
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
        monitor: "events",
        parts: &[OffCpu],
        about: "what it waited for",
        command: "perflab run {study} --event run-queue-delay --event off-cpu --event block-latency",
    },
    RecordingSource {
        monitor: "counters",
        parts: &[System],
        about: "system calls",
        command: "perflab run {study} --counters raw_syscalls:sys_enter",
    },
    RecordingSource {
        monitor: "counters",
        parts: &[User],
        about: "instructions and cache misses, where the processor counts them",
        command: "perflab run {study} --counters instructions,cycles,cache-misses",
    },
];

/// What is not recorded, and would tell of where the time of the change is; where nothing is suspected, all of it.
pub(crate) fn advise_recording(
    places: &[TimePlace],
    change: IntervalValue,
    monitors: &[String],
    study: &str,
    has_suspects: bool,
) -> Vec<RecordingAdvice> {
    if has_suspects {
        return Vec::new();
    }
    let is_recorded = |name: &str| monitors.iter().any(|monitor| monitor.split('.').next() == Some(name));
    let matters = |part: &TimePart| {
        let place = places.iter().find(|place| place.part == *part);
        place.is_none_or(|place| place.change.value * change.value.signum() > 0.2 * change.value.abs())
    };
    RECORDING_SOURCES
        .iter()
        .filter(|recorder| !is_recorded(recorder.monitor) && recorder.parts.iter().any(matters))
        .map(|recorder| RecordingAdvice {
            about: recorder.about.to_owned(),
            command: recorder.command.replace("{study}", study),
        })
        .collect()
}
