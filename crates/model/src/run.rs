//! `run.json`: manifest, targets, clock offsets, own overhead; and a run as a reader holds it: everything but the
//! series, which are read one at a time.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact_document::MachineDocument;
use crate::fact_table;
use crate::facts::Facts;
use crate::metric::Sample;
use crate::plan::RunPlan;
use crate::quantity::Nanos;
use crate::scalar::Scalar;
use crate::series::SeriesGap;
use crate::study::document::Study;
use crate::trigger::TriggerRecord;

/// Version of everything under a run's directory. A reader refuses a higher one and names both.
///
/// It goes up when an old reader would misread a new run; a new optional field does not need it.
pub const FORMAT_VERSION: u32 = 2;

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    /// still going, or its process was killed: readers distinguish the two by the lock
    Running,
    /// every slot was done and ended well
    Finished,
    /// every slot was done; some failed
    Failed,
    /// stopped by the user or by its time limit
    Stopped,
    /// its process died: what was flushed is there
    Interrupted,
    /// the disk of its archive was full: what had room is there
    #[serde(rename = "disk-full")]
    DiskFull,
}

impl RunStatus {
    /// Whether the run ended before its plan did: what it lacks may be measured by one that goes on with it.
    #[must_use]
    pub fn is_cut(self) -> bool {
        matches!(self, RunStatus::Interrupted | RunStatus::DiskFull | RunStatus::Stopped)
    }

    /// As `run.json` has it: `finished`.
    pub fn as_str(self) -> &'static str {
        match self {
            RunStatus::Running => "running",
            RunStatus::Finished => "finished",
            RunStatus::Failed => "failed",
            RunStatus::Stopped => "stopped",
            RunStatus::Interrupted => "interrupted",
            RunStatus::DiskFull => "disk-full",
        }
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What perflab itself cost during the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// CPU time of perflab's own threads, children excluded.
    pub cpu: Nanos,
    /// CPU time of the monitors' thread alone.
    pub monitors_cpu: Nanos,
    /// Wall time of the run, from just before the settings are applied until they are undone: the window of CPU time and ticks.
    pub wall: Nanos,
    /// Largest resident set of perflab, in bytes.
    pub peak_rss: u64,
    /// Bytes written to the archive.
    pub bytes_written: u64,
    /// Monitor ticks taken.
    pub ticks: u64,
    /// Ticks taken later than half an interval after their time.
    pub late_ticks: u64,
    /// Ticks that could not be taken at all, their time being over.
    pub lost_ticks: u64,
    /// How guests were stopped to be sampled from outside, all together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_stops: Option<GuestStops>,
}

impl Overhead {
    /// Whether it is known: it is recorded when a run ends, and no run takes no time.
    pub fn is_known(&self) -> bool {
        self.wall != Nanos(0)
    }

    /// What two runs, one after the other, cost.
    #[must_use]
    pub fn plus(self, other: Overhead) -> Overhead {
        let sum = |one: Nanos, other: Nanos| Nanos(one.0.saturating_add(other.0));
        let guest_stops = match (self.guest_stops, other.guest_stops) {
            (Some(one), Some(other)) => Some(one.plus(other)),
            (one, other) => one.or(other),
        };
        Overhead {
            cpu: sum(self.cpu, other.cpu),
            monitors_cpu: sum(self.monitors_cpu, other.monitors_cpu),
            wall: sum(self.wall, other.wall),
            peak_rss: self.peak_rss.max(other.peak_rss),
            bytes_written: self.bytes_written.saturating_add(other.bytes_written),
            ticks: self.ticks.saturating_add(other.ticks),
            late_ticks: self.late_ticks.saturating_add(other.late_ticks),
            lost_ticks: self.lost_ticks.saturating_add(other.lost_ticks),
            guest_stops,
        }
    }
}

/// How guests were stopped to be sampled from outside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestStops {
    /// How often.
    pub stops: u64,
    /// For how long, altogether.
    pub stopped: Nanos,
    /// The time of the iterations that were sampled, stops included.
    pub sampled: Nanos,
}

impl GuestStops {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: GuestStops) -> GuestStops {
        GuestStops {
            stops: self.stops.saturating_add(other.stops),
            stopped: Nanos(self.stopped.0.saturating_add(other.stopped.0)),
            sampled: Nanos(self.sampled.0.saturating_add(other.sampled.0)),
        }
    }

    /// The share of the time that guests were stopped.
    pub fn stopped_share(self) -> f64 {
        self.stopped.seconds() / self.sampled.seconds().max(1e-9)
    }
}

/// One point of time on two clocks, so that monotonic times can be dated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockAnchor {
    /// CLOCK_MONOTONIC.
    pub monotonic: Nanos,
    /// Nanoseconds since 1970 (CLOCK_REALTIME) at the same instant.
    pub realtime: Nanos,
}

/// Importers of earlier versions that knew boots: their runs do not say so.
const EARLIER_BOOTS: [&str; 2] = ["lkp", "lkp-stats"];

/// `run.json`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT_VERSION`] of the writer.
    pub format: u32,
    /// The writer: `perflab 0.1.0`.
    pub writer: String,
    /// ULID.
    pub id: String,
    /// A name of the user's choice; several runs may share one and are then repetitions of one another.
    pub label: Option<String>,
    /// The study as read.
    pub study: Study,
    /// The study's file text, as it was.
    pub study_text: String,
    /// The study's file name, or `quickstart` for a shipped one.
    pub study_file: String,
    /// Whether it is the brief form of that study.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub brief: bool,
    /// What was planned.
    pub plan: RunPlan,
    /// The target's facts.
    pub facts: Facts,
    /// The kernel's boot id, which distinguishes boots; empty where unknown.
    pub boot_id: String,
    /// Name of the machine that records: `host`.
    pub target: String,
    /// Where the cases run, when that is not the machine that records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetRecord>,
    /// The targets at each combination of levels of the factors over their keys, as they were when they were first started with them;
    /// none where no factor varies them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<TargetVariantRecord>,
    /// How the machine was found to be for two levels at once, where the order is `duet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<Box<DuetCheck>>,
    /// The id of the run that was interrupted, of whose plan this one has what that lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
    /// The id of the first of all runs that it goes on with: parts are known by it, whichever of them are not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_part: Option<String>,
    /// Clock anchor at the beginning.
    pub anchor: ClockAnchor,
    /// Its status.
    pub status: RunStatus,
    /// Own cost; zero until the end.
    pub overhead: Overhead,
}

impl Manifest {
    /// Whether this program can read it.
    pub fn is_readable(&self) -> bool {
        self.format <= FORMAT_VERSION
    }

    /// The hash of the files that an import was made of; of runs that perflab measured, and of long files, there is none.
    #[must_use]
    pub fn content_hash(&self) -> Option<String> {
        self.facts.value(&fact_table::IMPORT_SHA256).map(ToString::to_string)
    }

    /// The run that it and all its other parts are known by: the first of those that it goes on with, else itself.
    #[must_use]
    pub fn first_part_id(&self) -> &str {
        self.first_part.as_ref().unwrap_or(&self.id)
    }

    /// Which machine measured: that of the targets where these are other machines, else the one that recorded. Empty where unknown.
    #[must_use]
    pub fn machine_id(&self) -> String {
        let remote: Vec<&TargetRecord> = self.targets.iter().filter(|target| target.kind == "ssh").collect();
        if remote.is_empty() {
            return self.facts.text(&fact_table::MACHINE_ID);
        }
        let ids: Vec<String> =
            remote.iter().map(|target| target.facts.text(&fact_table::MACHINE_ID)).collect();
        if ids.iter().any(String::is_empty) { String::new() } else { ids.join(" ") }
    }

    /// Whether the run's boots are others than those of any other run that has not its boot id. Of most imports that is unknown:
    /// their files may be of one boot, or of several.
    pub fn has_known_boots(&self) -> bool {
        let is_stated = || self.facts.value(&fact_table::IMPORT_BOOTS) == Some(&Scalar::Bool(true));
        let kind = self.facts.value(&fact_table::IMPORT_KIND).map(ToString::to_string);
        !self.boot_id.is_empty()
            || is_stated()
            || kind.is_none_or(|kind| EARLIER_BOOTS.contains(&kind.as_str()))
    }

    /// A boot of the run, distinguished from those of other runs: by the kernel's boot id; a run without one is a boot of its
    /// own. Where boots are [not known](Manifest::has_known_boots), all runs are of one, unless the user says that they `differ`.
    pub fn boot_key(&self, boot: u32, differ: bool) -> (String, u32) {
        let id = match () {
            () if !self.boot_id.is_empty() => &self.boot_id,
            () if differ || self.has_known_boots() => &self.id,
            () => &self.boot_id,
        };
        (id.clone(), boot)
    }
}

/// How a target's CLOCK_MONOTONIC relates to that of the machine that records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Add it to a time of the machine that records to get the target's, in nanoseconds.
    pub offset: i64,
    /// The truth is no further from `offset` than this.
    pub bound: Nanos,
    /// How much faster the target's clock runs, in billionths; 0 until it was watched for long enough.
    pub rate_ppb: i64,
}

/// One target of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// `guest1`
    pub name: String,
    /// `process`, `ssh`, `vm`
    pub kind: String,
    /// The kernel that it runs.
    pub kernel: String,
    /// Distinguishes its boots; empty where unknown.
    pub boot_id: String,
    /// How its clock related to ours at the beginning.
    pub clock: ClockOffset,
    /// What it says about itself.
    pub facts: Facts,
}

/// A machine's halves, and one case run against itself on them before the first iteration of a run whose order is `duet`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DuetCheck {
    /// The CPUs of each half.
    pub halves: [Vec<u32>; 2],
    /// Index into the plan's cases.
    pub case: u32,
    /// The metric that was looked at.
    pub metric: String,
    /// Of each round, its values on both halves at once, in the metric's unit.
    pub together: Vec<[f64; 2]>,
    /// Of each round, two values of the first half in turn.
    pub alone: Vec<[f64; 2]>,
    /// How the values of the halves correlate.
    pub correlation: f64,
    /// Root mean square of the relative differences of two at once.
    pub together_spread: f64,
    /// Root mean square of the relative differences of two in turn.
    pub alone_spread: f64,
}

/// The targets as they were under a combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetVariantRecord {
    /// Factor -> level name, of the factors over keys of targets.
    pub levels: IndexMap<String, String>,
    /// The targets, in order.
    pub targets: Vec<TargetRecord>,
}

impl TargetVariantRecord {
    /// What tells the kernels of the targets apart: release, build, configuration and command line of each.
    pub fn kernels(&self) -> Vec<[Option<Scalar>; 4]> {
        let keys = [
            fact_table::KERNEL_RELEASE,
            fact_table::KERNEL_VERSION,
            fact_table::KERNEL_CONFIG_SHA256,
            fact_table::KERNEL_CMDLINE,
        ];
        let kernel = |target: &TargetRecord| keys.each_ref().map(|key| target.facts.value(key).cloned());
        self.targets.iter().map(kernel).collect()
    }
}

/// How an iteration ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Outcome {
    /// It ended well and its output was understood.
    Ok,
    /// It did not; the reason names exit code, signal or what its output lacks.
    Failed {
        /// one line
        reason: String,
    },
    /// It was stopped at its time limit, with all its children.
    TimedOut {
        /// the limit
        limit: Nanos,
    },
    /// The user stopped the run.
    Interrupted,
}

impl Outcome {
    /// Why it did not end well, in one line; nothing where it did.
    #[must_use]
    pub fn failure_reason(&self) -> Option<String> {
        match self {
            Outcome::Ok => None,
            Outcome::Failed { reason } => Some(reason.clone()),
            Outcome::TimedOut { limit } => Some(format!("stopped at its time limit of {limit}")),
            Outcome::Interrupted => Some("interrupted".into()),
        }
    }
}

/// One iteration that began, as it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IterationRecord {
    /// Which target: index into the manifest's targets. Missing for the machine that records.
    pub target: Option<u32>,
    /// Index into the plan's slots.
    pub slot: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// When its process was started (CLOCK_MONOTONIC of the machine that records).
    pub start: Nanos,
    /// When it ended.
    pub end: Nanos,
}

/// A warning that was given during the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunWarning {
    /// What.
    pub message: String,
    /// What to do.
    pub advice: String,
}

/// A setting that somebody else changed while a run had set it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverwrittenSettingRecord {
    /// Which target: index into the manifest's targets. Missing for the machine that records.
    pub target: Option<u32>,
    /// Index into the plan's slots: the iteration that ended so; none where it was found before one began.
    pub slot: Option<u32>,
    /// What it is called: `sysctl vm.swappiness`, `governor`.
    pub setting: String,
    /// Its file.
    pub file: String,
    /// What it held when it was set.
    pub set: String,
    /// What it was found to hold.
    pub found: String,
    /// The run of another perflab that did it, where one did.
    pub by: Option<String>,
}

/// Settings that somebody else changed, each with in how many iterations and what from and to: one text a setting.
pub fn describe_overwritten_settings(found: &[OverwrittenSettingRecord]) -> Vec<String> {
    let mut settings: Vec<&str> = Vec::new();
    for one in found {
        if !settings.contains(&one.setting.as_str()) {
            settings.push(&one.setting);
        }
    }
    let describe = |setting: &str| {
        let own: Vec<&OverwrittenSettingRecord> = found.iter().filter(|one| one.setting == setting).collect();
        let mut slots: Vec<Option<u32>> = own.iter().map(|one| one.slot).filter(Option::is_some).collect();
        slots.sort_unstable();
        slots.dedup();
        let describe_first = |one: &&OverwrittenSettingRecord| {
            let by = one.by.as_ref().map_or_else(String::new, |run| format!(" by run {run}"));
            format!("`{}` -> `{}`{by}", one.set, one.found)
        };
        let first = own.first().map_or_else(String::new, describe_first);
        match slots.len() {
            0 => format!("{setting}: between iterations, {first}"),
            1 => format!("{setting}: in 1 iteration, {first}"),
            count => format!("{setting}: in {count} iterations, at first {first}"),
        }
    };
    settings.into_iter().map(describe).collect()
}

impl RunRecord {
    /// What a flight recorder was triggered by, a line for each condition, with how long after the beginning it was first met.
    #[must_use]
    pub fn describe_triggers(&self) -> Vec<String> {
        let begin = self.iterations.iter().map(|one| one.start).min();
        let begin = begin.unwrap_or(self.manifest.anchor.monotonic);
        let same =
            |one: &TriggerRecord, other: &TriggerRecord| one.trigger.condition == other.trigger.condition;
        let is_first = |(index, one): &(usize, &TriggerRecord)| {
            self.triggers.iter().position(|other| same(one, other)) == Some(*index)
        };
        let describe = |(_, first): (usize, &TriggerRecord)| {
            let text = first.describe_since(begin);
            match self.triggers.iter().filter(|one| same(first, one)).count() {
                1 => text,
                times => format!("{text}; met {times} times"),
            }
        };
        self.triggers.iter().enumerate().filter(is_first).map(describe).collect()
    }
}

/// One run, read.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    /// Its manifest; the status is `Interrupted` where its process died, and `DiskFull` where its archive had no room.
    pub manifest: Manifest,
    /// All samples, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// All iterations that ended, warm-ups included, in order of time.
    pub iterations: Vec<IterationRecord>,
    /// Gaps: times without rows.
    pub gaps: Vec<SeriesGap>,
    /// Warnings given.
    pub warnings: Vec<RunWarning>,
    /// With targets: to what bound each one's clock was known, at each release.
    pub clock_bounds: Vec<Nanos>,
    /// Settings that somebody else changed meanwhile.
    pub overwritten: Vec<OverwrittenSettingRecord>,
    /// What a flight recorder was triggered by, in order; none of other runs.
    pub triggers: Vec<TriggerRecord>,
    /// What its machines said about themselves in documents, in order; empty unless whoever read the run asked for them.
    pub documents: Vec<MachineDocument>,
    /// The runs that this one was joined from, the oldest first; none of a run as it was recorded.
    pub parts: Vec<JoinedPart>,
}

impl RunRecord {
    /// A run of which nothing is known but its manifest.
    pub fn new(manifest: Manifest) -> RunRecord {
        RunRecord {
            manifest,
            samples: Vec::new(),
            iterations: Vec::new(),
            gaps: Vec::new(),
            warnings: Vec::new(),
            clock_bounds: Vec::new(),
            overwritten: Vec::new(),
            triggers: Vec::new(),
            documents: Vec::new(),
            parts: Vec::new(),
        }
    }

    /// The id of the run that each sample is of, in the order of the samples.
    pub fn sample_run_ids(&self) -> impl Iterator<Item = &str> {
        let of_parts = self.parts.iter().flat_map(|part| std::iter::repeat_n(part.id.as_str(), part.samples));
        of_parts.chain(std::iter::repeat(self.manifest.id.as_str())).take(self.samples.len())
    }

    /// The ids of the runs that it holds: its own, or those of its parts.
    pub fn recorded_ids(&self) -> impl Iterator<Item = &str> {
        let own = self.parts.is_empty().then_some(self.manifest.id.as_str());
        own.into_iter().chain(self.parts.iter().map(|part| part.id.as_str()))
    }
}

/// A run that is part of a measurement that was gone on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinedPart {
    /// Its id.
    pub id: String,
    /// Where each slot of its plan stands in the plan of the whole.
    pub slots: Vec<u32>,
    /// How many samples of the whole are of it: they stand together, in the order of the parts.
    pub samples: usize,
    /// Whether its own cost is known, and so in that of the whole.
    pub has_known_cost: bool,
}
