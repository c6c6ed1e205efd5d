//! The tables and keys of a study: run, workload, metric, disk, profile, io; its JSON Schema for editors.

use indexmap::IndexMap;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};

use super::{Factor, MonitorsSpec, StoppingRule, TargetSpec};
use crate::Scalar;
use crate::quantity::DurationText;

/// A study: workloads x factors x repetitions, under monitors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Study {
    /// Another study that this one is put on top of: a file, from this one's folder, or a shipped study. Tables are joined key by key;
    /// anything else that is said here takes the place of what is said there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extends: Option<String>,
    /// One line that names the question.
    pub title: String,
    /// Why, and what to look at; printed above the result.
    #[serde(default)]
    pub description: Option<String>,
    /// Where the question comes from: a paper, a thread, a commit.
    #[serde(default)]
    pub reference: Option<String>,
    /// How long a run takes, and where that was measured; said before it begins: `27 min under TCG on two CPUs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub takes: Option<String>,
    /// Which configurations of MMTests the study answers (`perflab study find NAME`): names, in which `*` stands for any text, or
    /// tables that also say how it is run for them and what differs.
    #[serde(default, skip_serializing)]
    pub answers: Vec<super::StudyAnswer>,
    /// What is less in the study's brief form (`perflab run STUDY --brief`): any of its keys; what stands here takes their place.
    #[serde(default, skip_serializing)]
    #[schemars(extend("additionalProperties" = true))]
    pub brief: IndexMap<String, serde_json::Value>,
    /// Named expressions, usable by all others: `half = "memory / 2"`.
    #[serde(default)]
    pub values: IndexMap<String, Scalar>,
    /// How often, in which order, for how long.
    #[serde(default)]
    pub run: RunRules,
    /// What to run, by a name of your choice.
    pub workload: IndexMap<String, super::WorkloadSpec>,
    /// What runs beside every iteration, by a name of your choice: a load that disturbs. With a factor of kind `beside`, only what
    /// its levels name.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub beside: IndexMap<String, super::BesideSpec>,
    /// Commands around the run, its cases and its iterations, on this host.
    #[serde(default, skip_serializing_if = "super::HooksSpec::is_empty")]
    pub hooks: super::HooksSpec,
    /// What to vary, by a name of your choice. Every combination of levels is run.
    #[serde(default)]
    pub factor: IndexMap<String, Factor>,
    /// Settings that all cases have: a preset and its level, `governor = "performance"`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub settings: IndexMap<String, super::FixedSetting>,
    /// Presets of the study's own, by a name of your choice, as those that `perflab setting list` shows.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub preset: IndexMap<String, crate::setting_preset::SettingPreset>,
    /// What to record meanwhile: monitor = time between readings, `vmstat = "100ms"`, or `"edges"`: only when iterations begin and
    /// end. Counters are read at these edges in any case. `preset = "memory"` has several of them.
    #[serde(default)]
    pub monitors: MonitorsSpec,
    /// Events to count: of the workload and all that it starts, and on each CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<super::CountersSpec>,
    /// Tracepoints that are counted where they happen, by a name of your choice: how often, how much, how long from one to another.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub events: IndexMap<String, super::EventSpec>,
    /// Whether the lines of the kernel's log that come during the run are kept, and troubles in them told (default: where it can be
    /// read).
    #[serde(default = "is_kernel_log_kept", rename = "kernel-log", skip_serializing_if = "Clone::clone")]
    pub kernel_log: bool,
    /// Which families of facts to collect (default: all; `perflab check --facts` lists them).
    #[serde(default)]
    pub facts: Option<Vec<String>>,
    /// Of metrics, the change that matters, and which of them decide: `[metric.triad] margin = "2%"`.
    #[serde(default)]
    pub metric: IndexMap<String, MetricChoice>,
    /// Where the cases run, by a name of your choice (default: on this host). All targets are synchronised:
    /// every iteration starts at the same instant on all of them.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub target: IndexMap<String, TargetSpec>,
    /// Call stacks to sample while iterations run (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<super::ProfileSpec>,
    /// I/O to trace while iterations run (default: none).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<super::IoTraceSpec>,
    /// Where file-system workloads write (default: a temporary directory).
    #[serde(default)]
    pub disk: Option<ScratchDisk>,
}

impl Study {
    /// How many targets the study has; none means that the cases run on this host.
    pub fn target_count(&self) -> u32 {
        self.target.values().fold(0, |sum, target| sum.saturating_add(target.count))
    }

    /// Whether targets are hosts of an inventory, which says how many.
    pub fn has_hosts(&self) -> bool {
        self.target.values().any(|target| target.host.is_some()) || self.host_factors().next().is_some()
    }

    /// The factors whose levels are hosts of an inventory.
    pub fn host_factors(&self) -> impl Iterator<Item = (&String, &Factor)> {
        self.factor.iter().filter(|(_, factor)| factor.varies_hosts())
    }
}

/// A run keeps the kernel's log unless its study says otherwise.
fn is_kernel_log_kept() -> bool {
    true
}

/// `[run]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct RunRules {
    /// How often each case is measured.
    pub iterations: u32,
    /// Instead of a number of iterations: `"precision 1%, at most 60"` ends the run after the complete block in which the
    /// interval of every deciding median is that narrow; `"decided, at most 60"` after the one with which every deciding row
    /// of the comparison of its levels is better, worse or the same, by intervals that hold at every look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<StoppingRule>,
    /// How often each case is run before, without being measured.
    pub warmup: u32,
    /// The order of the iterations.
    pub order: SlotOrder,
    /// Which combinations of the factors' levels are run.
    #[serde(skip_serializing_if = "LevelCombinations::is_default")]
    pub combinations: LevelCombinations,
    /// Seed of the random order (default: drawn and stored).
    pub seed: Option<u64>,
    /// The longest that one iteration may take before it is stopped with all its children.
    pub time_limit: DurationText,
    /// The longest that the whole run may take; no further iteration begins after that.
    pub total_time_limit: Option<DurationText>,
    /// How long the monitors watch the system at rest, before the first iteration and again after the last
    /// setting is undone: a baseline, and what stays behind (default: nothing).
    pub quiet: DurationText,
    /// With targets: how often they are started anew. Each start holds all iterations, and is the unit of comparison.
    #[serde(skip_serializing_if = "is_single_boot")]
    pub boots: u32,
    /// Under how many layouts each case runs, in turn: the environment padded by another length, addresses not
    /// randomised, and for programs that the workload builds itself another order of linking. Layouts are taken for random,
    /// and are what is compared, so that a change that only moves code is no change (default: the one that there is).
    #[serde(skip_serializing_if = "is_single_layout")]
    pub layout: u32,
    /// With guests whose kernels are built from recipes: which layout of its kernel each boot has. A layout is the same object files
    /// linked with other padding between them, so that a change which only moves code is no change.
    #[serde(skip_serializing_if = "KernelLayoutRule::is_default")]
    pub kernel_layout: KernelLayoutRule,
    /// With targets: start them anew for each case, after the host's settings of that case are in force. What a setting of
    /// the host does to a guest that is there already is not what it does to one that starts: its memory is there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub boot_each_case: bool,
    /// With targets: what happens when one dies, hangs or cannot be understood.
    #[serde(skip_serializing_if = "LostTargetPolicy::is_default")]
    pub on_lost_target: LostTargetPolicy,
    /// With targets: how long one may be silent before it is given up. It is asked for the time every second.
    #[serde(skip_serializing_if = "is_default_lost_after")]
    pub lost_after: DurationText,
}

impl RunRules {
    /// How often each case is measured at most.
    pub fn max_iterations(&self) -> u32 {
        self.until.map_or(self.iterations, |until| until.at_most)
    }
}

/// Which layouts the kernels of guests have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KernelLayoutRule {
    /// the one that their build gives
    #[default]
    AsBuilt,
    /// another one in each boot, the same for all levels, as built in the first
    EachBoot,
}

impl KernelLayoutRule {
    fn is_default(&self) -> bool {
        *self == KernelLayoutRule::default()
    }
}

/// What happens when a target is lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LostTargetPolicy {
    /// the run ends there: settings are undone, what was measured is kept
    #[default]
    Stop,
    /// the iteration is marked as failed, and those that are left go on
    Continue,
}

impl LostTargetPolicy {
    fn is_default(&self) -> bool {
        *self == LostTargetPolicy::default()
    }
}

/// Two boots of a loaded host's guests have been seen to take a quarter of a minute without a word.
const PATIENCE: DurationText = DurationText(crate::Nanos(30_000_000_000));

fn is_single_boot(boots: &u32) -> bool {
    *boots == 1
}

fn is_single_layout(layouts: &u32) -> bool {
    *layouts == 1
}

fn is_default_lost_after(span: &DurationText) -> bool {
    *span == PATIENCE
}

impl Default for RunRules {
    fn default() -> Self {
        RunRules {
            iterations: 10,
            until: None,
            warmup: 1,
            order: SlotOrder::Randomised,
            combinations: LevelCombinations::default(),
            seed: None,
            time_limit: DurationText(crate::Nanos(600_000_000_000)),
            total_time_limit: None,
            quiet: DurationText(crate::Nanos(0)),
            boots: 1,
            layout: 1,
            kernel_layout: KernelLayoutRule::default(),
            boot_each_case: false,
            on_lost_target: LostTargetPolicy::default(),
            lost_after: PATIENCE,
        }
    }
}

/// Which combinations of the levels of several factors are run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LevelCombinations {
    /// every one
    #[default]
    All,
    /// the first level of every factor, and each other level with the first of all other factors: how factors act together is not seen
    OneAtATime,
}

impl LevelCombinations {
    fn is_default(&self) -> bool {
        *self == LevelCombinations::default()
    }
}

/// The order of iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SlotOrder {
    /// Randomised complete blocks: each block holds every case once, shuffled. Drift cannot pose as a change.
    Randomised,
    /// All iterations of a case, then the next case, as written. Drift and change look alike.
    Sequential,
    /// Both levels of the study's factor at the same time, each on half of the CPUs, in randomised complete blocks: what disturbs
    /// one disturbs the other. Measured first, by one level against itself, and refused where iterations in turn tell more.
    Duet,
}

/// `[metric.NAME]`
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricChoice {
    /// The relative change that would matter, such as `"2%"`; smaller ones count as the same.
    #[serde(default)]
    pub margin: Option<String>,
    /// Whether the metric decides (default: as its workload says). Where a study says `true` of any, all others of that workload
    /// explain.
    #[serde(default)]
    pub primary: Option<bool>,
}

/// `[disk]`: where file-system workloads write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScratchDisk {
    /// What stands behind the scratch directory.
    pub kind: DiskKind,
    /// directory: its path. partition: the block device (its content is destroyed: needs `--apply`).
    #[serde(default)]
    pub path: Option<String>,
    /// image: its size, `"1GiB"` or an expression in bytes.
    #[serde(default)]
    pub size: Option<Scalar>,
    /// image, partition: ext4, xfs or btrfs.
    #[serde(default)]
    pub filesystem: Option<String>,
    /// image, partition: further arguments of mkfs.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// image, partition: mount options, as after `mount -o`.
    #[serde(default)]
    pub mount: Option<String>,
    /// image: the disk whose delays are emulated (default: this machine's own).
    #[serde(default)]
    pub model: Option<DiskModel>,
}

impl ScratchDisk {
    /// A directory in the machine's own file system.
    #[must_use]
    pub fn directory() -> Self {
        let (path, size, filesystem, mkfs, mount, model) = (None, None, None, Vec::new(), None, None);
        ScratchDisk { kind: DiskKind::Directory, path, size, filesystem, mkfs, mount, model }
    }
}

/// A disk that can be emulated: an image served with its delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DiskModel {
    /// 7,200 turns a minute, 164 GB, 60 MB/s: the disk of the 2007 prefetching study
    #[serde(rename = "hdd-7200")]
    Hdd7200,
    /// a solid-state drive behind SATA: 95 us to read, 540 MB/s
    #[serde(rename = "ssd-sata")]
    SsdSata,
    /// a solid-state drive behind PCIe: 80 us to read, 2.5 GB/s
    #[serde(rename = "nvme")]
    Nvme,
    /// the flash of small boards: 300 us to read, 250 MB/s
    #[serde(rename = "emmc")]
    Emmc,
}

impl DiskModel {
    /// All models.
    pub const ALL: [DiskModel; 4] =
        [DiskModel::Hdd7200, DiskModel::SsdSata, DiskModel::Nvme, DiskModel::Emmc];

    /// Its name in a study.
    pub fn name(self) -> &'static str {
        match self {
            DiskModel::Hdd7200 => "hdd-7200",
            DiskModel::SsdSata => "ssd-sata",
            DiskModel::Nvme => "nvme",
            DiskModel::Emmc => "emmc",
        }
    }
}

impl std::str::FromStr for DiskModel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || DiskModel::ALL.map(DiskModel::name).join(", ");
        let found = DiskModel::ALL.into_iter().find(|model| model.name() == text);
        found.ok_or_else(|| format!("`{text}` is no disk that can be emulated: {}", names()))
    }
}

/// What stands behind the scratch directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DiskKind {
    /// a directory that exists; perflab makes and removes a fresh one inside
    Directory,
    /// an image file with a file system of its own, loop-mounted; needs root
    Image,
    /// a partition that is formatted; needs root and `--apply`
    Partition,
}

/// `[profile]`: sample call stacks, kernel and user, while each iteration runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileSpec {
    /// Samples a second on each CPU: 499 where none are given, 50 from outside. A sample costs some microseconds (999 is a good
    /// choice, 4999 is felt); one from outside stops the guest for some tenths of a millisecond.
    pub frequency: Option<u32>,
    /// From where samples are taken.
    pub from: SamplingSide,
    /// Whose stacks.
    pub scope: ProfileScope,
    /// A process that runs already, instead of a scope.
    pub pid: Option<i32>,
    /// Kernel symbols to look up besides those that samples hit; perflab fills in what its rule tables ask for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub symbols: Vec<String>,
}

impl ProfileSpec {
    /// The highest `frequency`, in samples a second.
    pub const HIGHEST_FREQUENCY: u32 = 50_000;

    /// The same from outside: beyond it a guest is stopped for most of its time.
    pub const HIGHEST_FREQUENCY_OUTSIDE: u32 = 1_000;

    /// Samples a second.
    pub fn sampling_frequency(&self) -> u32 {
        let usual = if self.from == SamplingSide::Outside { 50 } else { 499 };
        self.frequency.unwrap_or(usual)
    }

    /// The highest `frequency` from where samples are taken.
    pub fn highest_frequency(&self) -> u32 {
        match self.from {
            SamplingSide::Inside => Self::HIGHEST_FREQUENCY,
            SamplingSide::Outside => Self::HIGHEST_FREQUENCY_OUTSIDE,
        }
    }
}

/// From where stacks are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SamplingSide {
    /// by the kernel that the workload runs on: with the processor's counters where it has them, else by a clock that is blind
    /// while interrupts are off
    #[default]
    Inside,
    /// by this host, which stops the guest that the workload runs in: what runs with interrupts off is seen; functions of
    /// processes have no names
    Outside,
}

/// Whose stacks are sampled, or whose pages are traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProfileScope {
    /// everybody's, on every CPU
    #[default]
    System,
    /// the workload's processes alone, and their children
    Workload,
}

/// `[io]`: trace pages that come into the page cache, pages that are used and disk requests, while each iteration runs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IoTraceSpec {
    /// Whose pages; disk requests are always everybody's.
    pub scope: ProfileScope,
}

/// The schema as a JSON document (draft 2020-12).
pub fn study_json_schema() -> serde_json::Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Study>();
    schema.insert("title".into(), "perflab study".into());
    schema.to_value()
}
