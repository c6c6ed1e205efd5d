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
    /// where its monitor is added in the study; nothing where the command adds it
    added: &'static str,
    command: &'static str,
}

use TimePart::{OffCpu, System, User};

/// All of them, what tells most of a part of the time first: three are shown.
const RECORDING_SOURCES: &[RecordingSource] = &[
    RecordingSource {
        monitor: "delays",
        parts: &[OffCpu],
        about: "waiting for a CPU; for a disk, swap and memory where sysctl kernel.task_delayacct is 1",
        added: "`[monitors]` of the study: delays = \"edges\"",
        command: "perflab monitor show delays",
    },
    RecordingSource {
        monitor: "events",
        parts: &[OffCpu],
        about: "what it waited for",
        added: "",
        command: "perflab run {study} --event run-queue-delay --event off-cpu --event block-latency",
    },
    RecordingSource {
        monitor: "counters",
        parts: &[User],
        about: "instructions and cache misses, where the processor counts them",
        added: "",
        command: "perflab run {study} --counters instructions,cycles,cache-misses",
    },
    RecordingSource {
        monitor: "profile",
        parts: &[User, System],
        about: "functions",
        added: "`[profile]` of the study: frequency = 999",
        command: "perflab flame diff BEFORE AFTER",
    },
    RecordingSource {
        monitor: "vmstat",
        parts: &[System, OffCpu],
        about: "memory: faults, reclaim, swapping",
        added: "`[monitors]` of the study: vmstat = \"edges\"",
        command: "perflab monitor show vmstat",
    },
    RecordingSource {
        monitor: "stat",
        parts: &[OffCpu, User],
        about: "CPU time of everything else",
        added: "`[monitors]`: stat = \"edges\"",
        command: "perflab monitor show stat",
    },
    RecordingSource {
        monitor: "diskstats",
        parts: &[OffCpu],
        about: "disks: reads, writes, flushes",
        added: "`[monitors]`: diskstats = \"edges\"",
        command: "perflab monitor show diskstats",
    },
    RecordingSource {
        monitor: "cgroup",
        parts: &[OffCpu],
        about: "throttling and limits",
        added: "`[monitors]`: cgroup = \"edges\"",
        command: "perflab monitor show cgroup",
    },
    RecordingSource {
        monitor: "interrupts",
        parts: &[System, OffCpu],
        about: "interrupts",
        added: "`[monitors]`: interrupts = \"edges\"",
        command: "perflab monitor show interrupts",
    },
    RecordingSource {
        monitor: "counters",
        parts: &[System],
        about: "system calls",
        added: "",
        command: "perflab run {study} --counters raw_syscalls:sys_enter",
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
        .map(|source| advise_source(source, study))
        .collect()
}

fn advise_source(source: &RecordingSource, study: &RecordedStudy) -> RecordingAdvice {
    let command = match source.monitor {
        _ if source.added.is_empty() || study.is_file() => study.complete_written(source.command),
        "profile" => study.recorded_command("perflab flame record"),
        monitor => study.bench_command(monitor),
    };
    let about = match source.added {
        added if !added.is_empty() && study.is_file() => format!("{} ({added})", source.about),
        _ => source.about.to_owned(),
    };
    RecordingAdvice { about, command: command.unwrap_or_else(|| source.command.to_owned()) }
}
