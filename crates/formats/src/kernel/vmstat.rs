//! `/proc/vmstat`: one row of the memory manager's counters. Its names vary by kernel version and configuration, so
//! units and kinds come from a table of rules over names (include/linux/mmzone.h, vm_event_item.h, mm/vmstat.c).

use perflab_model::ColumnSpec;
use perflab_model::column::ColumnKind::{self, Counter, Gauge};

use crate::column::DiscoveredColumn;
use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, NameValueLayout};

/// The file.
pub const VMSTAT: KernelFile = KernelFile {
    name: "vmstat",
    source: "/proc/vmstat",
    about: "the memory manager: faults, allocation, reclaim, compaction, huge pages, swap",
    needs: "",
    without: "",
    provided_by: "",
    columns: &[],
    layout: KernelFileLayout::NameValues(NameValueLayout {
        first: "nr_free_pages ",
        separator: ' ',
        discover: discover_vmstat_column,
    }),
};

/// What is worked out of it: MMTests' mmtests-vmstat has these under other names. Of a kernel before 4.8, which counts reclaim by
/// zone, there is none.
pub const DERIVED: &[DerivedColumn] = &[
    DerivedColumn::share(
        "kswapd_efficiency",
        "pages that kswapd reclaimed, of those that it scanned",
        &["pgsteal_kswapd"],
        &["pgscan_kswapd"],
    ),
    DerivedColumn::per_second(
        "kswapd_velocity",
        "pages/s",
        "pages that kswapd scanned",
        &["pgscan_kswapd"],
        1.0,
    ),
    DerivedColumn::share(
        "direct_efficiency",
        "pages that direct reclaim got, of those that it scanned",
        &["pgsteal_direct"],
        &["pgscan_direct"],
    ),
    DerivedColumn::per_second(
        "direct_velocity",
        "pages/s",
        "pages that direct reclaim scanned",
        &["pgscan_direct"],
        1.0,
    ),
    DerivedColumn::share(
        "direct_scan_share",
        "scans by direct reclaim, of those by it and kswapd",
        &["pgscan_direct"],
        &["pgscan_direct", "pgscan_kswapd"],
    ),
    DerivedColumn::share(
        "compaction_success",
        "compactions that gave a page, of those that ended",
        &["compact_success"],
        &["compact_success", "compact_fail"],
    ),
    DerivedColumn::share(
        "numa_local_share",
        "NUMA hint faults on the node of the task",
        &["numa_hint_faults_local"],
        &["numa_hint_faults"],
    ),
    DerivedColumn::per_operation(
        "faults_per_operation",
        "1",
        "page faults for each operation of the workload, whose deciding metric is operations a second",
        &["pgfault"],
    ),
];

/// What names that begin so (`…*`) or are so count, and the scale into that unit.
type VmstatRule = (&'static str, ColumnKind, &'static str, u64);

/// The first that fits holds.
const RULES: &[VmstatRule] = &[
    // Among the gauges nr_*, those that only grow.
    ("nr_dirtied", Counter, "pages", 1),
    ("nr_written", Counter, "pages", 1),
    ("nr_throttled_written", Counter, "pages", 1),
    ("nr_vmscan_*", Counter, "pages", 1),
    ("nr_foll_pin_*", Counter, "pages", 1),
    ("nr_tlb_*", Counter, "1", 1),
    // Kept in kB by the kernel (NR_KERNEL_STACK_KB, NR_KERNEL_SCS_KB).
    ("nr_kernel_stack", Gauge, "bytes", 1024),
    ("nr_shadow_call_stack", Gauge, "bytes", 1024),
    ("nr_overhead", Gauge, "pages", 1),
    // Printed in huge pages (vmstat_item_print_in_thp).
    ("nr_anon_transparent_hugepages", Gauge, "huge pages", 1),
    ("nr_shmem_hugepages", Gauge, "huge pages", 1),
    ("nr_file_hugepages", Gauge, "huge pages", 1),
    ("nr_shmem_pmdmapped", Gauge, "huge pages", 1),
    ("nr_file_pmdmapped", Gauge, "huge pages", 1),
    ("nr_*", Gauge, "pages", 1),
    ("workingset_nodes", Gauge, "1", 1),
    ("workingset_nodereclaim", Counter, "1", 1),
    ("workingset_*", Counter, "pages", 1),
    // Counted in sectors, printed in KiB.
    ("pgpgin", Counter, "bytes", 1024),
    ("pgpgout", Counter, "bytes", 1024),
    // Faults and the like: events, whatever the size of what they bring.
    ("pgfault", Counter, "1", 1),
    ("pgmajfault", Counter, "1", 1),
    ("pgreuse", Counter, "1", 1),
    ("pgscan_direct_throttle", Counter, "1", 1),
    ("pageoutrun", Counter, "1", 1),
    ("pg*", Counter, "pages", 1),
    ("pswp*", Counter, "pages", 1),
    ("pginodesteal", Counter, "pages", 1),
    ("kswapd_inodesteal", Counter, "pages", 1),
    ("numa_hit", Counter, "pages", 1),
    ("numa_miss", Counter, "pages", 1),
    ("numa_foreign", Counter, "pages", 1),
    ("numa_interleave", Counter, "pages", 1),
    ("numa_local", Counter, "pages", 1),
    ("numa_other", Counter, "pages", 1),
    ("numa_pages_migrated", Counter, "pages", 1),
    ("slabs_scanned", Counter, "objects", 1),
    ("compact_migrate_scanned", Counter, "pages", 1),
    ("compact_free_scanned", Counter, "pages", 1),
    ("compact_daemon_migrate_scanned", Counter, "pages", 1),
    ("compact_daemon_free_scanned", Counter, "pages", 1),
    ("compact_isolated", Counter, "pages", 1),
    ("unevictable_pgs_*", Counter, "pages", 1),
    ("balloon_*", Counter, "pages", 1),
    ("swap_ra*", Counter, "pages", 1),
    ("swpin_zero", Counter, "pages", 1),
    ("swpout_zero", Counter, "pages", 1),
    ("zswp*", Counter, "pages", 1),
    ("ksm_swpin_copy", Counter, "pages", 1),
    ("cow_ksm", Counter, "pages", 1),
];

/// Everything else is an event that was counted: `allocstall_*`, `thp_*`, `oom_kill`, `compact_stall`.
const DEFAULT_RULE: VmstatRule = ("*", Counter, "1", 1);

/// The column of a name of `/proc/vmstat`, and of a node's.
pub fn discover_vmstat_column(name: &str, _rest: &str) -> DiscoveredColumn {
    let (_, kind, unit, scale) =
        RULES.iter().find(|rule| matches_pattern(rule.0, name)).copied().unwrap_or(DEFAULT_RULE);
    let column = if kind == Gauge { ColumnSpec::gauge(name, unit) } else { ColumnSpec::counter(name, unit) };
    DiscoveredColumn { column, scale, suffix: "" }
}

fn matches_pattern(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule_of(name: &str) -> (ColumnKind, String, u64) {
        let found = discover_vmstat_column(name, "");
        (found.column.kind, found.column.unit.0.to_string(), found.scale)
    }

    /// Linux 6.12: `NR_KERNEL_STACK_KB` in include/linux/mmzone.h, accounted in kernel/fork.c by
    /// `account * (PAGE_SIZE / 1024)`; `NR_KERNEL_SCS_KB` in kernel/scs.c.
    #[test]
    fn stacks_are_counted_in_kib() {
        assert_eq!(rule_of("nr_kernel_stack"), (Gauge, "bytes".into(), 1024));
        assert_eq!(rule_of("nr_shadow_call_stack"), (Gauge, "bytes".into(), 1024));
    }

    /// block/blk-core.c, `submit_bio`, counts `bio_sectors`; mm/vmstat.c, `vmstat_start`, halves them before they are printed:
    /// sectors of 512 bytes become KiB.
    #[test]
    fn paging_is_printed_in_kib() {
        assert_eq!(rule_of("pgpgin"), (Counter, "bytes".into(), 1024));
        assert_eq!(rule_of("pgpgout"), (Counter, "bytes".into(), 1024));
    }

    /// mm/workingset.c, `workingset_update_node`, adds and subtracts.
    #[test]
    fn shadow_nodes_go_up_and_down() {
        assert_eq!(rule_of("workingset_nodes"), (Gauge, "1".into(), 1));
        assert_eq!(rule_of("workingset_refault_file"), (Counter, "pages".into(), 1));
    }

    /// mm/vmscan.c, `__acct_reclaim_writeback`, only adds to NR_THROTTLED_WRITTEN.
    #[test]
    fn pages_written_while_throttled_only_grow() {
        assert_eq!(rule_of("nr_throttled_written"), (Counter, "pages".into(), 1));
    }

    #[test]
    fn names_have_their_kind_and_unit() {
        assert_eq!(rule_of("nr_free_pages"), (Gauge, "pages".into(), 1));
        assert_eq!(rule_of("nr_dirtied"), (Counter, "pages".into(), 1));
        assert_eq!(rule_of("pgmajfault"), (Counter, "1".into(), 1));
        assert_eq!(rule_of("thp_fault_alloc"), (Counter, "1".into(), 1));
    }
}
