//! What ext4, xfs and btrfs count of each mounted file system, below `/sys/fs`.

use perflab_model::DeclaredColumn;

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::kernel_folder::{FolderCells, FolderLayout};

/// fs/ext4/sysfs.c; a row a mounted device.
pub const EXT4: KernelFile = KernelFile {
    name: "ext4",
    source: "/sys/fs/ext4/*",
    about: "ext4 by device: bytes written, blocks whose place is not chosen yet, errors and warnings",
    needs: "",
    without: "",
    provided_by: "CONFIG_EXT4_FS, with an ext4 mounted",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/fs/ext4/*"],
        keys: &["device"],
        cells: &[FolderCells::Files {
            below: "",
            columns: &[
                DeclaredColumn::counter("session_write_kbytes", "bytes").scaled(1024),
                DeclaredColumn::counter("lifetime_write_kbytes", "bytes").scaled(1024),
                DeclaredColumn::gauge("delayed_allocation_blocks", "blocks"),
                DeclaredColumn::gauge("reserved_clusters", "clusters"),
                DeclaredColumn::counter("errors_count", "1"),
                DeclaredColumn::counter("warning_count", "1"),
                DeclaredColumn::counter("msg_count", "1"),
                DeclaredColumn::counter("sra_exceeded_retry_limit", "1"),
            ],
        }],
    }),
};

/// fs/xfs/xfs_stats.c; a row a mounted device.
pub const XFS: KernelFile = KernelFile {
    name: "xfs",
    source: "/sys/fs/xfs/*/stats",
    about: "xfs by device: allocation, B-trees, log, inodes, buffers, bytes read and written",
    needs: "",
    without: "",
    provided_by: "CONFIG_XFS_FS, with an xfs mounted",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/fs/xfs/*/stats"],
        keys: &["device"],
        cells: &[FolderCells::NamedWords { file: "stats", lines: XFS_LINES }],
    }),
};

const fn count(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "1")
}

/// The lines of `stats` in their numbers' own order (fs/xfs/xfs_stats.h); of B-trees only the oldest.
const XFS_LINES: &[(&str, &[DeclaredColumn])] = &[
    (
        "extent_alloc",
        &[
            count("allocated_extents"),
            count("allocated_blocks"),
            count("freed_extents"),
            count("freed_blocks"),
        ],
    ),
    ("abt", &[count("abt_lookups"), count("abt_compares"), count("abt_insertions"), count("abt_deletions")]),
    (
        "blk_map",
        &[
            count("map_reads"),
            count("map_writes"),
            count("unmaps"),
            count("extent_list_adds"),
            count("extent_list_deletes"),
            count("extent_list_looks"),
            count("extent_list_compares"),
        ],
    ),
    ("dir", &[count("dir_lookups"), count("dir_creates"), count("dir_removes"), count("dir_getdents")]),
    ("trans", &[count("transactions_sync"), count("transactions_async"), count("transactions_empty")]),
    (
        "ig",
        &[
            count("inode_attempts"),
            count("inode_found"),
            count("inode_recycled"),
            count("inode_missed"),
            count("inode_duplicates"),
            count("inode_reclaims"),
            count("inode_attribute_changes"),
        ],
    ),
    (
        "log",
        &[
            count("log_writes"),
            count("log_blocks"),
            count("log_no_iclogs"),
            count("log_forces"),
            count("log_force_sleeps"),
        ],
    ),
    (
        "push_ail",
        &[
            count("log_space_tries"),
            count("log_space_sleeps"),
            count("ail_pushes"),
            count("ail_push_successes"),
            count("ail_pushbufs"),
            count("ail_pinned"),
            count("ail_locked"),
            count("ail_flushing"),
            count("ail_restarts"),
            count("ail_flushes"),
        ],
    ),
    ("xstrat", &[count("xstrat_quick"), count("xstrat_split")]),
    ("rw", &[count("write_calls"), count("read_calls")]),
    ("attr", &[count("attr_gets"), count("attr_sets"), count("attr_removes"), count("attr_lists")]),
    ("icluster", &[count("inode_flushes"), count("cluster_flushes"), count("cluster_flushed_inodes")]),
    (
        "vnodes",
        &[
            DeclaredColumn::gauge("vnodes_active", "1"),
            count("vnodes_allocated"),
            count("vnodes_got"),
            count("vnodes_held"),
            count("vnodes_released"),
            count("vnodes_reclaimed"),
            count("vnodes_removed"),
            count("vnodes_freed"),
        ],
    ),
    (
        "buf",
        &[
            count("buffer_gets"),
            count("buffer_creates"),
            count("buffer_gets_locked"),
            count("buffer_gets_waited"),
            count("buffer_busy_locked"),
            count("buffer_miss_locked"),
            count("buffer_page_retries"),
            count("buffer_pages_found"),
            count("buffer_gets_read"),
        ],
    ),
    (
        "xpc",
        &[
            DeclaredColumn::counter("xstrat_bytes", "bytes"),
            DeclaredColumn::counter("write_bytes", "bytes"),
            DeclaredColumn::counter("read_bytes", "bytes"),
        ],
    ),
];

/// fs/btrfs/sysfs.c; a row a file system and kind of block group.
pub const BTRFS: KernelFile = KernelFile {
    name: "btrfs",
    source: "/sys/fs/btrfs/*/allocation/*",
    about: "btrfs by file system and kind of block group: bytes allocated, used, reserved, pinned",
    needs: "",
    without: "",
    provided_by: "CONFIG_BTRFS_FS, with a btrfs mounted",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/fs/btrfs/*/allocation/*"],
        keys: &["uuid", "kind"],
        cells: &[FolderCells::Files {
            below: "",
            columns: &[
                DeclaredColumn::gauge("total_bytes", "bytes"),
                DeclaredColumn::gauge("bytes_used", "bytes"),
                DeclaredColumn::gauge("bytes_reserved", "bytes"),
                DeclaredColumn::gauge("bytes_pinned", "bytes"),
                DeclaredColumn::gauge("bytes_may_use", "bytes"),
                DeclaredColumn::gauge("bytes_readonly", "bytes"),
                DeclaredColumn::gauge("bytes_zone_unusable", "bytes"),
                DeclaredColumn::gauge("disk_total", "bytes"),
                DeclaredColumn::gauge("disk_used", "bytes"),
            ],
        }],
    }),
};
