//! What the processes of an iteration waited for, as the kernel accounts for it when they end (taskstats,
//! `Documentation/accounting/delay-accounting.rst`).

use perflab_model::{ColumnRef, DeclaredColumn, RowSchema};

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};

/// The waits of a workload.
pub const DELAYS: KernelFile = KernelFile {
    name: DelayRow::NAME,
    source: "taskstats",
    about: "what the workload's threads waited for: a CPU; and a disk, swap-in, reclaim, compaction, where delays are accounted for",
    needs: "CAP_NET_ADMIN, outside of containers",
    without: "",
    provided_by: "CONFIG_TASKSTATS",
    columns: DelayRow::COLUMNS,
    layout: KernelFileLayout::Tree,
};

/// Its only row: sums over all threads that began and ended in iterations, and of processes that were left behind.
#[derive(Debug, Clone, Copy)]
pub struct DelayRow;

const fn nanos(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "ns")
}

impl RowSchema for DelayRow {
    const NAME: &'static str = "delays";
    const COLUMNS: &'static [DeclaredColumn] = &[
        nanos("run_delay_ns"),
        nanos("disk_delay_ns"),
        nanos("swap_delay_ns"),
        nanos("reclaim_delay_ns"),
        nanos("thrashing_delay_ns"),
        nanos("compaction_delay_ns"),
        nanos("copy_delay_ns"),
        nanos("irq_delay_ns"),
        DeclaredColumn::counter("threads", "1"),
    ];
}

impl DelayRow {
    /// They could run, and did not.
    pub const RUN: ColumnRef<Self, i64> = ColumnRef::named("run_delay_ns");

    /// They waited for disks.
    pub const DISK: ColumnRef<Self, i64> = ColumnRef::named("disk_delay_ns");

    /// They waited for pages to come back from swap.
    pub const SWAP: ColumnRef<Self, i64> = ColumnRef::named("swap_delay_ns");

    /// They freed memory for what they allocated.
    pub const RECLAIM: ColumnRef<Self, i64> = ColumnRef::named("reclaim_delay_ns");

    /// They waited for pages of files that were there shortly before.
    pub const THRASHING: ColumnRef<Self, i64> = ColumnRef::named("thrashing_delay_ns");

    /// They compacted memory for what they allocated.
    pub const COMPACTION: ColumnRef<Self, i64> = ColumnRef::named("compaction_delay_ns");

    /// They copied pages that they shared (copy on write).
    pub const COPY: ColumnRef<Self, i64> = ColumnRef::named("copy_delay_ns");

    /// Interrupts took their time on a CPU.
    pub const IRQ: ColumnRef<Self, i64> = ColumnRef::named("irq_delay_ns");

    /// Threads that ended, or were left behind.
    pub const THREADS: ColumnRef<Self, i64> = ColumnRef::named("threads");
}

/// Whether a monitor tells of the workload's waits; a target's `delays.guest1` does.
pub fn is_delays(monitor: &str) -> bool {
    monitor.split('.').next() == Some(DELAYS.name)
}
