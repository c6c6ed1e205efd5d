//! What the study's `[counters]` count: of the workload, and on each CPU.

use perflab_model::study::CountersSpec;

use crate::kernel::delays::is_delays;
use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// Counters of the workload and all that it starts, from its `exec` on.
pub const COUNTERS: KernelFile = KernelFile {
    name: CountersSpec::WORKLOAD_MONITOR,
    source: "perf_event_open",
    about: "events that the workload and all that it starts caused: those that [counters] names",
    needs: "CAP_PERFMON, or kernel.perf_event_paranoid of 1 or less, for what happens in the kernel",
    without: "",
    provided_by: "CONFIG_PERF_EVENTS",
    columns: &[],
    layout: KernelFileLayout::Tree,
};

/// Whether a monitor counts the workload alone, so that its growth over an iteration is the iteration's: not a rate, as what the
/// machine does goes on before and after. A target's `counters.guest1` does, and `delays`.
pub fn counts_of_workload(monitor: &str) -> bool {
    monitor.split('.').next() == Some(COUNTERS.name) || is_delays(monitor)
}

/// Counters of each CPU, whoever runs there.
pub const CPU_COUNTERS: KernelFile = KernelFile {
    name: CountersSpec::CPU_MONITOR,
    source: "perf_event_open",
    about: "events on each CPU, whoever ran there: those that [counters] names under cpus",
    needs: "CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less",
    without: "",
    provided_by: "CONFIG_PERF_EVENTS",
    columns: &[],
    layout: KernelFileLayout::Tree,
};

const TOPDOWN: &[&str] = &["topdown-retiring", "topdown-bad-spec", "topdown-fe-bound", "topdown-be-bound"];

const SLOTS: &[&str] = &["topdown-total-slots"];

/// What is worked out of counters that were asked for. Top-down shares are those of Yasin, A Top-Down Method for Performance
/// Analysis and Counters Architecture (ISPASS 2014), level 1: of the slots in which an instruction could have been issued.
pub(crate) const DERIVED: &[DerivedColumn] = &[
    DerivedColumn::each("ipc", "1", "instructions a cycle", &["instructions"], &["cycles"]),
    DerivedColumn::each(
        "ipc_user",
        "1",
        "instructions a cycle, of programs alone",
        &["instructions:u"],
        &["cycles:u"],
    ),
    DerivedColumn::share(
        "cache_miss_share",
        "cache references that missed",
        &["cache-misses"],
        &["cache-references"],
    ),
    DerivedColumn::share(
        "branch_miss_share",
        "branches predicted wrongly",
        &["branch-misses"],
        &["branches"],
    ),
    DerivedColumn::share(
        "l1_dcache_miss_share",
        "loads that missed the first data cache",
        &["L1-dcache-load-misses"],
        &["L1-dcache-loads"],
    ),
    DerivedColumn::share(
        "llc_miss_share",
        "loads that missed the last cache",
        &["LLC-load-misses"],
        &["LLC-loads"],
    ),
    DerivedColumn::share(
        "dtlb_miss_share",
        "loads that missed the data TLB",
        &["dTLB-load-misses"],
        &["dTLB-loads"],
    ),
    DerivedColumn::per_second("cpus_used", "1", "CPUs that ran it", &["task-clock"], 1e-9),
    DerivedColumn::per_operation(
        "instructions_per_operation",
        "1",
        "instructions an operation of the workload",
        &["instructions"],
    ),
    DerivedColumn::per_operation(
        "cpu_time_per_operation",
        "ns",
        "time on CPUs an operation of the workload",
        &["task-clock"],
    ),
    DerivedColumn::per_operation(
        "switches_per_operation",
        "1",
        "context switches an operation of the workload",
        &["context-switches"],
    ),
    DerivedColumn::share("retiring", "slots of instructions that retired", &["topdown-retiring"], TOPDOWN),
    DerivedColumn::share(
        "bad_speculation",
        "slots of instructions that were thrown away",
        &["topdown-bad-spec"],
        TOPDOWN,
    ),
    DerivedColumn::share(
        "frontend_bound",
        "slots that waited for instructions",
        &["topdown-fe-bound"],
        TOPDOWN,
    ),
    DerivedColumn::share(
        "backend_bound",
        "slots that waited for data or units",
        &["topdown-be-bound"],
        TOPDOWN,
    ),
    DerivedColumn::share(
        "retired_slots",
        "slots of instructions that retired",
        &["topdown-slots-retired"],
        SLOTS,
    ),
    DerivedColumn::share(
        "empty_slots",
        "slots that waited for instructions",
        &["topdown-fetch-bubbles"],
        SLOTS,
    ),
];
