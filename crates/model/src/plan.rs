//! The plan: every case and every slot of a run, fixed and stored before the first sample.
//!
//! Iterations of one case that follow one another are stored as one object with `repeat`, as hundreds of thousands
//! of them (executions of an imported benchmark) would otherwise be most of a manifest. A `repeat` that would fill
//! the memory of the reader is refused.

use std::collections::HashMap;
use std::path::PathBuf;

use indexmap::IndexMap;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::layout::PlannedLayout;
use crate::placement::Placement;
use crate::study::{FactorSide, KernelLayoutRule, RunRules, ScratchDisk, TargetSpec};
use crate::syscall_delay::SyscallDelay;
use crate::{Metric, PlannedSetting, Scalar};

/// The value of a parameter that a case of another tool does not tell, since no execution of it came to its end.
pub const UNKNOWN_PARAMETER: &str = "?";

/// One workload at one parameter point under one level of every factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The workload's name in the study.
    pub workload: String,
    /// Its name in the catalogue.
    pub uses: String,
    /// The matrix parameters that distinguish this case from the workload's others; empty without a matrix.
    pub point: IndexMap<String, Scalar>,
    /// All parameters, resolved to values of their types.
    pub parameters: IndexMap<String, Scalar>,
    /// Environment variables of the workload.
    pub environment: IndexMap<String, String>,
    /// Factor -> level name, for each factor that concerns this workload.
    pub levels: IndexMap<String, String>,
}

impl Case {
    /// Whether it has a factor or a parameter of that name.
    pub fn has_key(&self, key: &str) -> bool {
        self.levels.contains_key(key) || self.point.contains_key(key) || self.parameters.contains_key(key)
    }

    /// Workload and point, without factors: what stays the same when levels are compared.
    pub fn label_without_levels(&self) -> String {
        append_pairs(
            &self.workload,
            self.point.iter().map(|(name, value)| (name.as_str(), value.to_string())),
        )
    }

    /// The case in one line but for a factor: what stays the same when its levels are compared.
    pub fn label_without(&self, factor: &str) -> String {
        append_pairs(
            &self.label_without_levels(),
            self.levels
                .iter()
                .filter(|(name, _)| *name != factor)
                .map(|(name, level)| (name.as_str(), level.clone())),
        )
    }

    /// The case in one line: `sweep size=64 pages=huge`.
    pub fn label(&self) -> String {
        append_pairs(
            &self.label_without_levels(),
            self.levels.iter().map(|(name, level)| (name.as_str(), level.clone())),
        )
    }
}

fn append_pairs<'a>(head: &str, pairs: impl Iterator<Item = (&'a str, String)>) -> String {
    pairs.fold(head.to_owned(), |mut text, (name, value)| {
        text.extend([" ", name, "=", value.as_str()]);
        text
    })
}

/// One iteration to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Index into [`RunPlan::cases`].
    pub case: u32,
    /// Which iteration of the case, counting warm-ups and measured ones apart, from 0.
    pub iteration: u32,
    /// The complete block it belongs to; equals `iteration`.
    pub block: u32,
    /// Run, but not measured.
    pub warmup: bool,
    /// Which boot of the targets, from 0; iterations count anew in each.
    #[serde(default, skip_serializing_if = "is_first_boot")]
    pub boot: u32,
    /// Index into [`RunPlan::layouts`], the same for all cases of a block; none where layouts are not varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<u32>,
}

fn is_first_boot(boot: &u32) -> bool {
    *boot == 0
}

/// Everything that will be done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Seed of the order; 0 for a sequential order.
    pub seed: u64,
    /// "randomised", "sequential" or "duet".
    pub order: String,
    /// All cases, in the study's order.
    pub cases: Vec<Case>,
    /// Factor -> its level names, the baseline first.
    pub factors: IndexMap<String, Vec<String>>,
    /// All iterations, in the order in which they will be done. Stored with `repeat`: see `docs/format.md`.
    #[serde(serialize_with = "serialize_slots", deserialize_with = "deserialize_slots")]
    pub slots: Vec<Slot>,
    /// A digest of what each catalogue workload does, by its name there: two cases of one name are the same only where it is.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub definitions: IndexMap<String, String>,
    /// What of each workload's definition its digest is made of, by its name in the catalogue: what differs between two is seen in it.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub definition_parts: IndexMap<String, serde_json::Value>,
    /// Metrics that each catalogue workload declares, by its name there.
    pub metrics: IndexMap<String, Vec<Metric>>,
    /// Relative margin by metric name, where the study gives one (0.02 for 2 %).
    pub margins: IndexMap<String, f64>,
    /// Metrics, by name, whose values are the same each time, such as the size of a program: they are compared without statistics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exact: Vec<String>,
    /// Tables that workloads print: series of values within an iteration.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<String>,
    /// What the levels of factors set, once for each level; those that set nothing are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<PlannedSetting>,
    /// The scratch disks that cases are run on, each once: the study's own, else a directory where a workload needs one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<PlannedDisk>,
    /// The targets, in order; none where this host does everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<PlannedTarget>,
    /// The targets at each combination of levels of the factors over their keys; none where no factor varies them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub target_variants: Vec<PlannedTargetVariant>,
    /// How many targets take part in a slot, by the level of a factor over targets; without one, all do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participation: Vec<PlannedParticipation>,
    /// Where workloads run, by the level of a factor over placements; without one, anywhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placements: Vec<PlannedPlacement>,
    /// What runs beside iterations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub besides: Vec<PlannedBeside>,
    /// How long system calls of workloads are delayed, by the level of a factor over them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<PlannedDelay>,
    /// The layouts that every case runs under, those of each boot together, the program as it was built first; none where the
    /// study leaves them alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<PlannedLayout>,
}

/// One target of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTarget {
    /// What it is called: `guest2`, where several are alike.
    pub name: String,
    /// How it is started, and what machine it is, as the study says; one, not several alike.
    pub spec: TargetSpec,
}

/// The targets of the cases that have these levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedTargetVariant {
    /// Factor -> level name, of the factors over keys of targets.
    pub levels: IndexMap<String, String>,
    /// The targets, in order, as many and called as in [`RunPlan::targets`].
    pub targets: Vec<PlannedTarget>,
}

impl PlannedTarget {
    /// The same with a layout of its kernel, as [`RunPlan::slot_kernel_layout`] numbers them.
    #[must_use]
    pub fn with_kernel_layout(&self, layout: u32) -> Self {
        let mut target = self.clone();
        if let Some(kernel) = target.spec.kernel.as_mut().filter(|_| layout > 0) {
            kernel.push_str(&format!("#{layout}"));
        }
        target
    }
}

impl PlannedTargetVariant {
    /// Which of `variants` a case runs on: of those whose levels it has, the one with the most. A factor that does not concern a case
    /// gives it no level.
    pub fn find(variants: &[PlannedTargetVariant], case: &Case) -> Option<usize> {
        let is_own = |(factor, level): (&String, &String)| case.levels.get(factor) == Some(level);
        let own = variants.iter().enumerate().filter(|(_, variant)| variant.levels.iter().all(is_own));
        own.max_by_key(|(_, variant)| variant.levels.len()).map(|(index, _)| index)
    }
}

/// A scratch disk, and the cases that are run on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedDisk {
    /// Factor -> level name, of those factors that say what disk it is; empty where all cases have the same.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub levels: IndexMap<String, String>,
    /// The disk. The size of an image is in bytes; on a target, it is the study's expression, as for settings.
    pub disk: ScratchDisk,
    /// The folder in which the scratch directory is made, or the image; none where a target works that out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
}

/// How many of the targets take part where a factor over targets has one of its levels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedParticipation {
    /// The factor.
    pub factor: String,
    /// Its level.
    pub level: String,
    /// So many targets, the first ones.
    pub targets: u32,
}

/// What runs beside the iterations of cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedBeside {
    /// Its name in the study.
    pub name: String,
    /// The factor and its level at which it runs; none where it runs beside all.
    pub at: Option<(String, String)>,
}

/// Where the workload of a case runs that has this level of a factor over placements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedPlacement {
    /// The factor.
    pub factor: String,
    /// Its level.
    pub level: String,
    /// Some of the machine's CPUs and nodes.
    pub placement: Placement,
}

/// A delay in a system call of the workload of a case that has this level of a factor over system calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedDelay {
    /// The factor.
    pub factor: String,
    /// Its level.
    pub level: String,
    /// The system call, and how long it is delayed.
    pub delay: SyscallDelay,
}

/// Whether an order, by its stored name, is one of complete blocks.
pub fn is_blocked_order(order: &str) -> bool {
    matches!(order, "randomised" | RunPlan::DUET)
}

impl RunPlan {
    /// [`RunPlan::order`] where two levels run at once: slot 2k on the first half of the CPUs, and slot 2k + 1 on the second.
    pub const DUET: &str = "duet";

    /// Whether two levels run at once.
    pub fn is_duet(&self) -> bool {
        self.order == RunPlan::DUET
    }

    /// Whether iterations come in complete blocks, each of every case once, in random order.
    pub fn has_complete_blocks(&self) -> bool {
        is_blocked_order(&self.order)
    }

    /// The case of a slot or a sample.
    pub fn case(&self, index: u32) -> Option<&Case> {
        self.cases.get(index as usize)
    }

    /// What is set for a case: what all cases have, then its levels, in its order of factors; with a `side`, only what is set there.
    pub fn case_settings<'a>(
        &'a self,
        case: &'a Case,
        side: Option<FactorSide>,
    ) -> impl Iterator<Item = &'a PlannedSetting> {
        let find = |(factor, level): (&String, &String)| {
            self.settings.iter().find(|one| !one.fixed && one.factor == *factor && one.level == *level)
        };
        let fixed = self.settings.iter().filter(|one| one.fixed);
        fixed.chain(case.levels.iter().filter_map(find)).filter(move |one| one.is_set_on(side))
    }

    /// The disk that a case is run on, if it needs one.
    pub fn case_disk(&self, case: &Case) -> Option<&PlannedDisk> {
        let is_own = |(factor, level): (&String, &String)| case.levels.get(factor) == Some(level);
        self.disks.iter().find(|planned| planned.levels.iter().all(is_own))
    }

    /// Which of [`RunPlan::target_variants`] a case runs on; none where nothing of the targets varies.
    pub fn case_target_variant(&self, case: &Case) -> Option<usize> {
        PlannedTargetVariant::find(&self.target_variants, case)
    }

    /// What runs beside the iterations of a case.
    pub fn case_besides<'a>(&'a self, case: &'a Case) -> impl Iterator<Item = &'a str> {
        let is_there = |beside: &&PlannedBeside| match &beside.at {
            None => true,
            Some((factor, level)) => case.levels.get(factor) == Some(level),
        };
        self.besides.iter().filter(is_there).map(|beside| beside.name.as_str())
    }

    /// The system calls that are delayed in a case; those by nothing are watched as well, so that each level bears what that costs.
    pub fn case_delays<'a>(&'a self, case: &'a Case) -> impl Iterator<Item = &'a SyscallDelay> {
        let is_own = |one: &&PlannedDelay| case.levels.get(&one.factor) == Some(&one.level);
        self.delays.iter().filter(is_own).map(|one| &one.delay)
    }

    /// Where the workload of a case runs, if its level of the factor over placements says so.
    pub fn case_placement(&self, case: &Case) -> Option<&PlannedPlacement> {
        self.placements.iter().find(|one| case.levels.get(&one.factor) == Some(&one.level))
    }

    /// How many targets take part in a case's slots, if a factor says so.
    pub fn case_participation(&self, case: &Case) -> Option<&PlannedParticipation> {
        self.participation.iter().find(|one| case.levels.get(&one.factor) == Some(&one.level))
    }

    /// Whether the disk differs from case to case: every iteration then gets a fresh one.
    pub fn has_varying_disk(&self) -> bool {
        self.disks.iter().any(|planned| !planned.levels.is_empty())
    }

    /// The layout that a slot runs under, if layouts are varied.
    pub fn slot_layout(&self, slot: &Slot) -> Option<PlannedLayout> {
        self.layouts.get(slot.layout? as usize).copied()
    }

    /// The layout of the kernels that a slot's guests run: 0 as built. All levels of one repetition have the same.
    pub fn slot_kernel_layout(&self, slot: &Slot, rules: &RunRules) -> u32 {
        let starts = self.slots.last().map_or(1, |last| (last.boot + 1) / rules.boots.max(1));
        match rules.kernel_layout {
            KernelLayoutRule::AsBuilt => 0,
            KernelLayoutRule::EachBoot => slot.boot / starts.max(1),
        }
    }

    /// The level of a factor in a slot, if its case has one.
    pub fn slot_level(&self, slot: u32, factor: &str) -> Option<&str> {
        let case = self.case(self.slots.get(slot as usize)?.case)?;
        case.levels.get(factor).map(String::as_str)
    }
}

/// The layout of each measured iteration: all cases of a block share it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockLayouts(HashMap<(u32, u32), u32>);

impl BlockLayouts {
    /// Those of a plan; none where layouts are not varied.
    pub fn from_plan(plan: &RunPlan) -> Self {
        let measured = plan.slots.iter().filter(|slot| !slot.warmup && !plan.layouts.is_empty());
        BlockLayouts(measured.filter_map(|slot| Some(((slot.boot, slot.iteration), slot.layout?))).collect())
    }

    /// An index into [`RunPlan::layouts`].
    pub fn of_iteration(&self, boot: u32, iteration: u32) -> Option<u32> {
        self.0.get(&(boot, iteration)).copied()
    }
}

/// Slots of a plan at most: 10 of them a second for more than two weeks.
const MOST: usize = 1 << 24;

/// A slot and those of its case that follow it at once.
#[derive(Serialize, Deserialize)]
struct RepeatedSlot {
    case: u32,
    iteration: u32,
    block: u32,
    warmup: bool,
    #[serde(default, skip_serializing_if = "is_first_boot")]
    boot: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layout: Option<u32>,
    /// How many slots; in each `iteration` and `block` are one more than in the one before.
    #[serde(default = "default_repeat", skip_serializing_if = "is_unrepeated")]
    repeat: u32,
}

fn default_repeat() -> u32 {
    1
}

fn is_unrepeated(repeat: &u32) -> bool {
    *repeat == 1
}

impl RepeatedSlot {
    fn from_slot(slot: Slot) -> Self {
        let Slot { case, iteration, block, warmup, boot, layout } = slot;
        RepeatedSlot { case, iteration, block, warmup, boot, layout, repeat: 1 }
    }

    /// The slot this many after the first.
    fn nth_slot(&self, further: u32) -> Slot {
        let RepeatedSlot { case, iteration, block, warmup, boot, layout, .. } = *self;
        let (iteration, block) = (iteration.saturating_add(further), block.saturating_add(further));
        Slot { case, iteration, block, warmup, boot, layout }
    }
}

fn serialize_slots<S: Serializer>(slots: &[Slot], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(group_repeated_slots(slots))
}

fn group_repeated_slots(slots: &[Slot]) -> Vec<RepeatedSlot> {
    let mut found: Vec<RepeatedSlot> = Vec::new();
    for slot in slots {
        match found.last_mut() {
            Some(last) if last.nth_slot(last.repeat) == *slot => last.repeat += 1,
            _ => found.push(RepeatedSlot::from_slot(*slot)),
        }
    }
    found
}

fn deserialize_slots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Slot>, D::Error> {
    let groups = Vec::<RepeatedSlot>::deserialize(deserializer)?;
    let mut slots = Vec::with_capacity(total_slots(&groups).ok_or_else(|| D::Error::custom(TOO_MANY))?);
    for group in &groups {
        slots.extend((0..group.repeat).map(|further| group.nth_slot(further)));
    }
    Ok(slots)
}

/// As `deserialize_slots`, but only their number.
pub fn count_slots<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let groups = Vec::<RepeatedSlot>::deserialize(deserializer)?;
    total_slots(&groups).ok_or_else(|| D::Error::custom(TOO_MANY))
}

const TOO_MANY: &str = "its plan has more than 16777216 slots";

fn total_slots(groups: &[RepeatedSlot]) -> Option<usize> {
    let sum: u64 = groups.iter().map(|group| u64::from(group.repeat)).sum();
    usize::try_from(sum).ok().filter(|sum| *sum <= MOST)
}

#[cfg(test)]
mod tests {
    use super::RunPlan;
    use super::*;

    #[test]
    fn a_label_names_point_and_levels() {
        let case = Case {
            workload: "sweep".into(),
            uses: "page-faults".into(),
            point: IndexMap::from([("threads".into(), Scalar::Int(2))]),
            parameters: IndexMap::new(),
            environment: IndexMap::new(),
            levels: IndexMap::from([("pages".into(), "huge".into())]),
        };
        assert_eq!(case.label_without_levels(), "sweep threads=2");
        assert_eq!(case.label(), "sweep threads=2 pages=huge");
    }

    fn make_slot(case: u32, iteration: u32, boot: u32) -> Slot {
        Slot { case, iteration, block: iteration, warmup: false, boot, layout: None }
    }

    #[test]
    fn what_follows_at_once_is_stored_once_and_comes_back_whole() {
        let slots: Vec<Slot> =
            (0..5000).map(|n| make_slot(0, n, 0)).chain([make_slot(1, 0, 0), make_slot(1, 1, 1)]).collect();
        let plan = RunPlan { slots, ..RunPlan::default() };
        let text = serde_json::to_string(&plan).unwrap();
        let stored = r#"{"case":0,"iteration":0,"block":0,"warmup":false,"repeat":5000},{"case":1"#;
        assert!(text.contains(stored) && text.len() < 400, "{text}");
        assert_eq!(serde_json::from_str::<RunPlan>(&text).unwrap(), plan);
    }

    #[test]
    fn a_plan_of_the_first_format_is_read() {
        let text = r#"[{"case":0,"iteration":0,"block":0,"warmup":true},{"case":2,"iteration":7,"block":7,"warmup":false,"boot":3}]"#;
        let slots = deserialize_slots(&mut serde_json::Deserializer::from_str(text)).unwrap();
        assert_eq!(slots, [Slot { warmup: true, ..make_slot(0, 0, 0) }, make_slot(2, 7, 3)]);
    }

    #[test]
    fn a_number_that_would_fill_the_memory_is_refused() {
        let text = r#"[{"case":0,"iteration":0,"block":0,"warmup":false,"repeat":4294967295}]"#;
        let read = deserialize_slots(&mut serde_json::Deserializer::from_str(text));
        assert_eq!(read.unwrap_err().to_string(), TOO_MANY);
    }
}
