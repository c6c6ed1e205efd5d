//! The derived columns of all monitors.

use crate::kernel::derived_column::DerivedColumn;
use crate::kernel::{
    cgroup, counters, cpu_state, diskstats, net_dev, net_protocols, node, schedstat, stat, tasks, vmstat,
};

/// Those of all monitors: the one line that each adds outside of its own file.
static DERIVED_COLUMNS: &[(&str, &[DerivedColumn])] = &[
    (vmstat::VMSTAT.name, vmstat::DERIVED),
    (diskstats::DISKSTATS.name, diskstats::DERIVED),
    (stat::STAT.name, stat::DERIVED),
    (tasks::TASKS.name, tasks::DERIVED),
    (cpu_state::ENERGY.name, cpu_state::DERIVED),
    (net_dev::NET_DEV.name, net_dev::DERIVED),
    (schedstat::SCHEDSTAT.name, schedstat::DERIVED),
    (node::NODE.name, node::DERIVED),
    (net_protocols::NET_PROTOCOLS.name, net_protocols::DERIVED),
    (cgroup::CGROUP.name, cgroup::DERIVED),
    (counters::COUNTERS.name, counters::DERIVED),
    (counters::CPU_COUNTERS.name, counters::DERIVED),
];

/// What is worked out of a monitor's columns; a target's `vmstat.guest1` is a `vmstat`.
pub fn derived_columns(monitor: &str) -> &'static [DerivedColumn] {
    let kind = monitor.split('.').next().unwrap_or(monitor);
    DERIVED_COLUMNS.iter().find(|(name, _)| *name == kind).map_or(&[], |(_, columns)| columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::derived_column::*;
    use crate::kernel::{KERNEL_FILES, find_kernel_file};

    /// Values of a monitor's derived columns, given growths in that many seconds.
    fn values(monitor: &str, seconds: f64, growth: &[(&str, f64)]) -> Vec<(&'static str, f64)> {
        let growth = |name: &str| growth.iter().find(|(known, _)| *known == name).map(|(_, grown)| *grown);
        let value = |column: &DerivedColumn| Some((column.name, column.value(growth, seconds, None)?));
        derived_columns(monitor).iter().filter_map(value).collect()
    }

    #[test]
    fn each_is_of_a_monitor_has_a_name_of_its_own_and_counters_that_there_are() {
        for (monitor, columns) in DERIVED_COLUMNS {
            let file = find_kernel_file(monitor).unwrap();
            for (index, column) in columns.iter().enumerate() {
                let own = |name: &str| file.columns.iter().any(|known| known.name == name);
                assert!(!own(column.name), "{monitor}: {}", column.name);
                assert!(
                    columns[..index].iter().all(|earlier| earlier.name != column.name),
                    "{}",
                    column.name
                );
                let is_declared = file.columns.is_empty() || column.counters().all(own);
                assert!(is_declared, "{monitor}: {}", column.formula());
            }
        }
        assert!(KERNEL_FILES.iter().any(|file| !derived_columns(file.name).is_empty()));
        assert_eq!(derived_columns("vmstat.guest1"), derived_columns("vmstat"));
    }

    #[test]
    fn nothing_over_nothing_is_no_value_and_neither_is_what_is_not_known() {
        assert_eq!(
            values("vmstat", 1.0, &[("pgscan_kswapd", 0.0), ("pgsteal_kswapd", 0.0)]),
            [("kswapd_velocity", 0.0)]
        );
        assert!(values("vmstat", 0.0, &[("pgscan_kswapd", 5.0)]).is_empty());
    }

    /// MMTests' mmtests-vmstat: efficiency is steal * 100 / scan, velocity scan / elapsed, percentage of direct scans
    /// direct * 100 / (direct + kswapd), local percent numa_hint_faults_local * 100 / numa_hint_faults.
    #[test]
    fn reclaim_as_mmtests_reckons_it() {
        let growth = [
            ("pgscan_kswapd", 3_000.0),
            ("pgsteal_kswapd", 2_400.0),
            ("pgscan_direct", 1_000.0),
            ("pgsteal_direct", 500.0),
            ("compact_success", 3.0),
            ("compact_fail", 1.0),
            ("numa_hint_faults", 200.0),
            ("numa_hint_faults_local", 150.0),
        ];
        assert_eq!(
            values("vmstat", 10.0, &growth),
            [
                ("kswapd_efficiency", 80.0),
                ("kswapd_velocity", 300.0),
                ("direct_efficiency", 50.0),
                ("direct_velocity", 100.0),
                ("direct_scan_share", 25.0),
                ("compaction_success", 75.0),
                ("numa_local_share", 75.0),
            ]
        );
    }

    /// Of RFC 1213's tcpOutSegs, which leaves out what is sent again: 5 of 1,000 segments were.
    #[test]
    fn shares_and_means_of_other_monitors() {
        assert_eq!(
            values("net-protocols", 1.0, &[("Tcp_OutSegs", 995.0), ("Tcp_RetransSegs", 5.0)]),
            [("tcp_retransmitted_share", 0.5)]
        );
        assert_eq!(values("energy", 2.0, &[("energy", 30e6)]), [("power", 15.0)]);
        assert_eq!(
            values("tasks", 2.0, &[("user_ns", 2e9), ("system_ns", 1e9), ("run_delay_ns", 1e8)]),
            [("cpu_share", 150.0), ("wait_share", 5.0)]
        );
        assert_eq!(
            values(
                "cgroup",
                2.0,
                &[("cpu_usage_usec", 3e6), ("cpu_nr_throttled", 5.0), ("cpu_nr_periods", 20.0)]
            ),
            [("cpus_used", 1.5), ("throttled_share", 25.0)]
        );
    }

    #[test]
    fn operations_are_the_workloads() {
        let faults =
            derived_columns("vmstat").iter().find(|column| column.name == "faults_per_operation").unwrap();
        assert_eq!(faults.value(|_| Some(1_000.0), 2.0, Some(500.0)), Some(2.0));
        assert_eq!(faults.value(|_| Some(1_000.0), 2.0, None), None);
    }

    #[test]
    fn a_formula_is_shown_as_it_is_reckoned() {
        let formulas: Vec<String> =
            derived_columns("vmstat").iter().take(2).map(DerivedColumn::formula).collect();
        assert_eq!(formulas, ["100 * pgsteal_kswapd / pgscan_kswapd", "pgscan_kswapd / s"]);
    }
}
