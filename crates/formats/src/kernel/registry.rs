//! The one list of the kernel's files: what can be recorded on a clock, and found in a log.

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout, KernelFileParser};
use crate::kernel::slab_counts::LoggedMachine;
use crate::kernel::slabinfo::SlabinfoParser;
use crate::kernel::{
    blocked, buddyinfo, cgroup, counters, cpu_state, delays, diskstats, events, file_system_counters,
    filesystems, gpu, interrupts, kvm_stats, loadavg, locks, mdstat, meminfo, memory_features, net_dev,
    net_protocols, net_statistics, nfs_mounts, node, pagetypeinfo, pressure, sched_domains, schedstat,
    sensors, slabinfo, smaps, softnet, stat, swaps, sysfs_slab, task_numa, tasks, vmstat, writeback,
    zoneinfo, zram,
};
use crate::reading_parser::ReadingParser;

/// All of them, in the order in which they are shown: the one line that each adds outside of its own file.
pub static KERNEL_FILES: &[KernelFile] = &[
    slabinfo::SLABINFO,
    sysfs_slab::SLAB_CACHES,
    sysfs_slab::SLAB_EXACT,
    vmstat::VMSTAT,
    meminfo::MEMINFO,
    stat::STAT,
    diskstats::DISKSTATS,
    pressure::PRESSURE,
    loadavg::LOADAVG,
    net_dev::NET_DEV,
    schedstat::SCHEDSTAT,
    kvm_stats::KVM_STATS,
    buddyinfo::BUDDY,
    zoneinfo::ZONES,
    pagetypeinfo::PAGE_TYPES,
    node::NODE,
    node::NODE_VMSTAT,
    softnet::SOFTNET,
    net_statistics::NET_STATISTICS,
    swaps::SWAPS,
    zram::ZRAM,
    memory_features::ZSWAP,
    memory_features::KSM,
    memory_features::KHUGEPAGED,
    memory_features::THP_SIZES,
    memory_features::HUGE_PAGES,
    memory_features::DAMON,
    file_system_counters::EXT4,
    file_system_counters::XFS,
    file_system_counters::BTRFS,
    sensors::THERMAL,
    sensors::SENSORS,
    tasks::TASKS,
    delays::DELAYS,
    cpu_state::CPU_STATE,
    cpu_state::ENERGY,
    interrupts::INTERRUPTS,
    interrupts::SOFTIRQS,
    cgroup::CGROUP,
    net_protocols::NET_PROTOCOLS,
    filesystems::FILESYSTEMS,
    writeback::WRITEBACK,
    sched_domains::SCHED_DOMAINS,
    blocked::BLOCKED,
    smaps::SMAPS,
    task_numa::TASK_NUMA,
    locks::LOCKS,
    mdstat::MDSTAT,
    nfs_mounts::NFS,
    gpu::GPU,
    counters::COUNTERS,
    counters::CPU_COUNTERS,
    events::EVENTS,
];

/// The file whose series has this name.
pub fn find_kernel_file(name: &str) -> Option<&'static KernelFile> {
    KERNEL_FILES.iter().find(|file| file.name == name)
}

/// The parser of a log of a file; nothing of one that is a folder. `label` is that of the file's part, where there are several.
pub fn open_log_parser(
    file: &KernelFile,
    label: &str,
    machine: &LoggedMachine,
) -> Option<Box<dyn ReadingParser>> {
    match file.layout {
        KernelFileLayout::Tree | KernelFileLayout::Folders(_) => None,
        KernelFileLayout::Judged(_) => Some(Box::new(SlabinfoParser::new(machine))),
        KernelFileLayout::Rows(_) | KernelFileLayout::NameValues(_) => {
            Some(Box::new(KernelFileParser::new(file, label)))
        }
    }
}

/// The file of which a line of a text is the first, or so made that it is of no other.
pub fn recognise_kernel_file(line: &str) -> Option<&'static KernelFile> {
    KERNEL_FILES.iter().find(|file| file.is_begun_by(line))
}

#[cfg(test)]
mod tests {
    use perflab_model::TableCell;
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::slabinfo::parse_slabinfo;

    #[test]
    fn names_are_unique_and_columns_too() {
        for (index, file) in KERNEL_FILES.iter().enumerate() {
            assert!(KERNEL_FILES[..index].iter().all(|earlier| earlier.name != file.name), "{}", file.name);
            for (index, column) in file.columns.iter().enumerate() {
                let mut earlier = file.columns[..index].iter();
                assert!(earlier.all(|earlier| earlier.name != column.name), "{}: {}", file.name, column.name);
            }
        }
    }

    /// Texts that look like the kernel's: its words, numbers of all sizes, its separators, in any order.
    fn any_kernel_like_text() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            Just("slabinfo - version: 2.1\n".to_owned()),
            Just("version 15\n".to_owned()),
            Just("Inter-|\n face |\n".to_owned()),
            Just("cpu".to_owned()),
            Just("MemTotal: 12 kB\n".to_owned()),
            Just("nr_free_pages 12\n".to_owned()),
            Just("some avg10=".to_owned()),
            Just(" 254 0 vda 1 2 3 4 5 6 7 8 9 10 11\n".to_owned()),
            Just(" : tunables 0 0 0 : slabdata".to_owned()),
            "[ \n:/=.#-]{1,3}",
            "[a-z0-9_()]{1,12}",
            Just(" N0=".to_owned()),
            any::<u64>().prop_map(|number| format!(" {number}")),
            "\\PC{0,8}",
        ];
        proptest::collection::vec(word, 0..60).prop_map(|words| words.concat())
    }

    /// Reads two texts one after the other as each file; rows fit their columns.
    fn read_as_every_file(texts: [&str; 2]) {
        for file in KERNEL_FILES {
            let mut parser = KernelFileParser::new(file, "label");
            for text in texts {
                let mut rows = Vec::new();
                let parsed = match file.layout {
                    KernelFileLayout::Judged(_) => parse_slabinfo(text, Some(4096), &mut rows),
                    _ => parser.parse_text(text, &mut rows),
                };
                let columns = parser.columns().len();
                assert!(
                    parsed.is_err() || rows.iter().all(|row| row.len() == columns),
                    "{}: {rows:?}",
                    file.name
                );
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic_and_rows_fit_their_columns(
            first in any_kernel_like_text(),
            second in any_kernel_like_text(),
        ) {
            read_as_every_file([&first, &second]);
        }

        #[test]
        fn arbitrary_text_is_never_a_panic(text in any::<String>()) {
            read_as_every_file([&text, &text]);
        }
    }

    #[test]
    fn a_wide_file_may_change_its_order_and_its_names() {
        let vmstat = find_kernel_file("vmstat").unwrap();
        let mut parser = KernelFileParser::new(vmstat, "");
        let mut parse = |text: &str| {
            let mut rows = Vec::new();
            let parsed = parser.parse_text(text, &mut rows);
            parsed
                .map(|()| rows.concat())
                .map_err(|error| format!("line {}: {}", error.line, error.description))
        };
        assert_eq!(parse("a 1\nb 2\n"), Ok(vec![TableCell::Int(1), TableCell::Int(2)]));
        assert_eq!(parse("b 3\nnew 4\na 5\n"), Ok(vec![TableCell::Int(5), TableCell::Int(3)]));
        assert_eq!(parse("b 3\n"), Ok(vec![TableCell::Missing, TableCell::Int(3)]));
        assert_eq!(parse(""), Err("line 1: a known name was expected for any line, found ``".into()));
        assert_eq!(parse("a x\n"), Err("line 1: a number was expected for a, found `x`".into()));
        assert_eq!(parse("a 12"), Err("line 1: the line is cut off".into()));
    }
}
