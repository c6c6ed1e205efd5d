//! The monitors: every kernel file that `perflab-formats` declares, how those that are more than one text are opened,
//! and finding and opening one.

use perflab_formats::kernel::{self, KERNEL_FILES, KernelFile, KernelFileLayout, find_kernel_file};
use perflab_formats::kernel::{kvm_stats::KVM_STATS, slabinfo::SLABINFO, sysfs_slab};
use perflab_model::Nanos;

use crate::error::ObserveError;
use crate::monitor::context::{Monitor, MonitorContext, MonitoredMachine};
use crate::monitor::folder::FolderMonitor;
use crate::monitor::guarded::open_guarded;
use crate::monitor::text_file::TextFileMonitor;
use crate::monitor::{
    blocked, cgroup, counters, cpu_state, delays, energy, events, filesystems, gpu, interrupts, kvm_stats,
    net_protocols, parsed_text, slab_caches, slab_exact, slabinfo, smaps, tasks, writeback,
};
use crate::root::Root;

/// How a monitor is opened.
type OpenMonitor = fn(&MonitorContext<'_>) -> Result<Box<dyn Monitor>, ObserveError>;

/// Those that do more than to read texts again; all others are a [`TextFileMonitor`] or a [`FolderMonitor`].
pub(crate) const OPENINGS: &[(&str, OpenMonitor)] = &[
    (SLABINFO.name, slabinfo::open_slabinfo),
    (sysfs_slab::SLAB_CACHES.name, slab_caches::open_slab_caches),
    (sysfs_slab::SLAB_EXACT.name, slab_exact::open_slab_exact),
    (KVM_STATS.name, kvm_stats::open_kvm_stats),
    (kernel::tasks::TASKS.name, tasks::open_tasks),
    (kernel::delays::DELAYS.name, delays::open_delays),
    (kernel::cpu_state::CPU_STATE.name, cpu_state::open_cpu_state),
    (kernel::cpu_state::ENERGY.name, energy::open_energy),
    (kernel::interrupts::INTERRUPTS.name, interrupts::open_interrupts),
    (kernel::interrupts::SOFTIRQS.name, interrupts::open_interrupts),
    (kernel::cgroup::CGROUP.name, cgroup::open_cgroup),
    (kernel::net_protocols::NET_PROTOCOLS.name, net_protocols::open_net_protocols),
    (kernel::filesystems::FILESYSTEMS.name, filesystems::open_filesystems),
    (kernel::writeback::WRITEBACK.name, writeback::open_writeback),
    (kernel::sched_domains::SCHED_DOMAINS.name, parsed_text::open_sched_domains),
    (kernel::blocked::BLOCKED.name, blocked::open_blocked),
    (kernel::smaps::SMAPS.name, smaps::open_smaps),
    (kernel::task_numa::TASK_NUMA.name, smaps::open_task_numa),
    (kernel::nfs_mounts::NFS.name, parsed_text::open_nfs),
    (kernel::gpu::GPU.name, gpu::open_gpu),
    (kernel::counters::COUNTERS.name, counters::open_counters),
    (kernel::counters::CPU_COUNTERS.name, counters::open_cpu_counters),
    (kernel::events::EVENTS.name, events::open_events),
];

/// Those whose reads may block: on a file system that does not answer, on a process that is held.
const MAY_BLOCK: &[&str] = &["tasks", "filesystems", "blocked", "smaps", "task-numa", "gpu"];

/// Whether a monitor is about whole iterations: it has something to say only where they end.
#[must_use]
pub fn is_read_at_edges(name: &str) -> bool {
    name == kernel::delays::DELAYS.name
}

/// All monitors, in the order in which they are shown.
pub fn all_monitors() -> &'static [KernelFile] {
    KERNEL_FILES
}

/// The monitor called `name`.
///
/// # Errors
/// [`ObserveError::Unknown`] with the nearest name.
pub fn find_monitor(name: &str) -> Result<&'static KernelFile, ObserveError> {
    find_kernel_file(name)
        .ok_or_else(|| ObserveError::unknown_name(name, "monitor", KERNEL_FILES.iter().map(|file| file.name)))
}

/// Opens a monitor below `root`; `interval` is only written into its schema.
///
/// # Errors
/// When its file is missing, refused (the message then says what it needs), or not understood.
pub fn open_monitor(
    file: &'static KernelFile,
    root: &Root,
    interval: Nanos,
) -> Result<Box<dyn Monitor>, ObserveError> {
    open_run_monitor(file, &MonitoredMachine::from(root), interval)
}

/// Opens a monitor of a run, which may count.
///
/// # Errors
/// As [`open_monitor`].
pub fn open_run_monitor(
    file: &'static KernelFile,
    machine: &MonitoredMachine,
    interval: Nanos,
) -> Result<Box<dyn Monitor>, ObserveError> {
    let context = MonitorContext {
        file,
        root: &machine.root,
        interval,
        counters: &machine.counters,
        events: &machine.events,
    };
    let opened = match OPENINGS.iter().find(|(name, _)| *name == file.name) {
        Some((_, open)) if MAY_BLOCK.contains(&file.name) => open_guarded(&context, *open),
        Some((_, open)) => open(&context),
        None if matches!(file.layout, KernelFileLayout::Folders(_)) => FolderMonitor::open(&context),
        None => TextFileMonitor::open(&context),
    };
    opened.map_err(|error| error.with_requirement(file.needs, file.without, file.provided_by))
}
