//! What the kernel writes that is not read line by line: tables of CPUs, counters of protocols, control groups, accounts of
//! single processes.

use perflab_formats::kernel::{
    blocked, cgroup, gpu, interrupts, net_protocols, nfs_mounts, sched_domains, smaps, task_numa, tasks,
};
use perflab_model::{CellRow, RowSchema};

use crate::decoder::choose;

/// Takes a text, and gives its rows, which have as many cells as stated.
type DecodeText = fn(&str) -> (Vec<CellRow>, usize);

/// The parsers, of which the first byte chooses one.
const PARSERS: &[DecodeText] = &[
    |text| {
        let cpus = interrupts::parse_interrupt_cpus(text).map_or(0, |cpus| cpus.len());
        let (mut counts, mut found) = (Vec::new(), 0);
        if cpus > 0
            && interrupts::parse_interrupt_lines(text, cpus, &mut counts, |_, of_line| found += of_line)
                .is_ok()
        {
            assert_eq!(counts.len(), found, "a count belongs to no line");
        }
        (Vec::new(), 0)
    },
    |text| {
        let mut rows = Vec::new();
        let _ = sched_domains::parse_sched_domains(text, &mut rows);
        (rows, sched_domains::SchedDomainRow::COLUMNS.len())
    },
    |text| {
        let mut rows = Vec::new();
        let _ = nfs_mounts::parse_nfs_mountstats(text, &mut rows);
        (rows, nfs_mounts::NfsRow::COLUMNS.len())
    },
    |text| {
        let _ = net_protocols::parse_protocol_counters(text, |_, _, _| ());
        for kind in [
            cgroup::CgroupText::Number(""),
            cgroup::CgroupText::Lines(""),
            cgroup::CgroupText::DeviceFields(""),
            cgroup::CgroupText::DeviceWords(""),
            cgroup::CgroupText::Pressure(""),
        ] {
            cgroup::parse_cgroup_text(kind, text, |name, _| drop(cgroup::discover_cgroup_column(name)));
        }
        let _ = (cgroup::find_cgroup_path(text, ""), cgroup::find_cgroup_path(text, "cpu"));
        (Vec::new(), 0)
    },
    |text| {
        let _ = (tasks::TaskStat::parse(text), tasks::parse_task_io(text), tasks::parse_run_delay(text));
        let _ = (tasks::parse_task_switches(text), blocked::fold_kernel_stack(text));
        (smaps::parse_smaps_rollup(1, "a", text).into_iter().collect(), smaps::SmapsRow::COLUMNS.len())
    },
    |text| {
        let mut rows = Vec::new();
        task_numa::push_numa_rows(1, "a", text, &mut rows);
        (rows, task_numa::TaskNumaRow::COLUMNS.len())
    },
    |text| {
        let mut rows = Vec::new();
        if let Some(client) = gpu::parse_drm_client(text) {
            gpu::push_drm_rows(1, "a", &client, text, &mut rows);
        }
        (rows, gpu::GpuRow::COLUMNS.len())
    },
];

/// One of them on any text: rows are as wide as their table.
pub(crate) fn decode_kernel_cells(bytes: &[u8]) {
    let Some((parser, text)) = choose(PARSERS, bytes) else { return };
    let text = String::from_utf8_lossy(text);
    let (rows, width) = parser(&text);
    assert!(rows.iter().all(|row| row.len() == width), "{rows:?}");
}
