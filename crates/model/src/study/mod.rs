//! The study: a TOML file that says what to run, what to vary and what to record.
//!
//! Here is the file's shape and everything that can be checked from the text alone. Whether a workload exists and
//! takes such a parameter is checked by the planner (`perflab-conduct`).
//!
//! | module | what a reader finds |
//! |---|---|
//! | `document` | the tables and keys of a study, and its JSON Schema |
//! | `answer` | `answers`: the configurations of MMTests that a study stands for |
//! | `hooks` | `[hooks]`: commands around run, cases and iterations |
//! | `counters_spec` | `[counters]`: events that are counted |
//! | `events_spec`, `event_recipe`, `event_check` | `[events.NAME]`: tracepoints that are counted where they happen; those known by name; what is wrong with one |
//! | `monitors_spec` | `[monitors]`: a preset, single monitors, a budget |
//! | `monitor_timing` | when a monitor is read: on a clock, or at the edges of iterations |
//! | `factor` | `[factor.NAME]`: what is varied, and its levels |
//! | `factor_kind` | `kind`: all that is particular to a kind of factor, a row each |
//! | `factor_side` | `on`: which side of a study with targets is set |
//! | `fixed_setting` | `[settings]`: presets at a level that all cases have |
//! | `target` | `[target.NAME]`: where cases run |
//! | `target_key` | a key of a target that a factor varies |
//! | `study_list` | a list that is written out, or an expression that gives one |
//! | `stopping_rule` | `until`: when a run has measured enough |
//! | `workload_spec` | `[workload.NAME]`: a workload of the catalogue, or a command of the study's own; `[beside.NAME]` |
//! | `validation` | everything that the text alone can get wrong |

pub(crate) mod answer;
pub(crate) mod counters_spec;
pub(crate) mod document;
pub(crate) mod duet;
pub(crate) mod event_check;
pub(crate) mod event_recipe;
pub(crate) mod events_spec;
pub(crate) mod factor;
pub(crate) mod factor_kind;
pub(crate) mod factor_side;
pub(crate) mod fixed_setting;
pub(crate) mod hooks;
pub(crate) mod monitor_timing;
pub(crate) mod monitors_spec;
pub(crate) mod stopping_rule;
pub(crate) mod study_list;
pub(crate) mod target;
pub(crate) mod target_key;
pub(crate) mod validation;
pub(crate) mod workload_spec;

pub use crate::toml_source::TomlSource;
pub use answer::StudyAnswer;
pub use counters_spec::{CounterGroups, CountersSpec};
pub use document::{
    DiskKind, DiskModel, IoTraceSpec, KernelLayoutRule, LevelCombinations, LostTargetPolicy, MetricChoice,
    ProfileScope, ProfileSpec, RunRules, SamplingSide, ScratchDisk, SlotOrder, Study, study_json_schema,
};
pub use event_recipe::{EVENT_RECIPES, EventChoice, EventRecipe, find_event_recipe};
pub use events_spec::{
    DEFAULT_EVENT_KEYS, DEFAULT_IN_FLIGHT, EVENTS_MONITOR, EventOwner, EventSpec, FieldNames, KeptOfEvents,
    PairBegins, TracepointSpec, is_kernel_file_name, split_tracepoint_name,
};
pub use factor::{Factor, FactorLevel};
pub use factor_kind::{FactorKind, FactorKindSpec, LevelValue, WrittenFile};
pub use factor_side::FactorSide;
pub use fixed_setting::FixedSetting;
pub use hooks::HooksSpec;
pub use monitor_timing::MonitorTiming;
pub use monitors_spec::{MonitorBudget, MonitorsSpec};
pub use stopping_rule::{StoppingGoal, StoppingRule, StoppingRuleError};
pub use study_list::StudyList;
pub use target::{
    AcceleratorChoice, AgentChannel, DiskCacheMode, GuestDiskSpec, GuestNetworkChoice, NumaNodeSpec,
    PortForward, RebootMethod, TargetKind, TargetSpec, qemu_option_problem, salloc_option_problem,
    ssh_option_problem,
};
pub use target_key::{TargetKey, TargetKeyError};
pub use validation::{find_study_problems, stopping_rule_problems};
pub use workload_spec::{
    BesideSpec, CommandLine, DataCommand, DataLifetime, ServerCommand, ServerReadiness, WorkloadSpec,
};
