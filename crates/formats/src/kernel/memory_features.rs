//! What the memory manager's parts say of themselves in small files of /sys: KSM, khugepaged, huge pages of both kinds, zswap,
//! DAMON. A file a column.

use perflab_model::DeclaredColumn;

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::kernel_folder::{FolderCells, FolderLayout};

const fn count(name: &'static str, unit: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, unit)
}

const fn gauge(name: &'static str, unit: &'static str) -> DeclaredColumn {
    DeclaredColumn::gauge(name, unit)
}

/// Kernel samepage merging (Documentation/admin-guide/mm/ksm.rst).
pub const KSM: KernelFile = KernelFile {
    name: "ksm",
    source: "/sys/kernel/mm/ksm",
    about: "kernel samepage merging: pages shared, sharing, scanned and skipped, profit",
    needs: "",
    without: "",
    provided_by: "CONFIG_KSM",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/kernel/mm/ksm"],
        keys: &[],
        cells: &[FolderCells::Files {
            below: "",
            columns: &[
                gauge("run", "1"),
                gauge("pages_shared", "pages"),
                gauge("pages_sharing", "pages"),
                gauge("pages_unshared", "pages"),
                gauge("pages_volatile", "pages"),
                count("pages_scanned", "pages"),
                count("pages_skipped", "pages"),
                gauge("ksm_zero_pages", "pages"),
                gauge("stable_node_chains", "1"),
                gauge("stable_node_dups", "1"),
                gauge("general_profit", "bytes"),
                count("full_scans", "1"),
            ],
        }],
    }),
};

/// What khugepaged did (Documentation/admin-guide/mm/transhuge.rst).
pub const KHUGEPAGED: KernelFile = KernelFile {
    name: "khugepaged",
    source: "/sys/kernel/mm/transparent_hugepage/khugepaged",
    about: "khugepaged: huge pages made out of small ones, scans of all memory",
    needs: "",
    without: "",
    provided_by: "CONFIG_TRANSPARENT_HUGEPAGE",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/kernel/mm/transparent_hugepage/khugepaged"],
        keys: &[],
        cells: &[FolderCells::Files {
            below: "",
            columns: &[
                count("pages_collapsed", "huge pages"),
                count("full_scans", "1"),
                gauge("pages_to_scan", "pages"),
            ],
        }],
    }),
};

/// The pools of huge pages (Documentation/admin-guide/mm/hugetlbpage.rst).
pub const HUGE_PAGES: KernelFile = KernelFile {
    name: "huge-pages",
    source: "/sys/kernel/mm/hugepages/hugepages-*kB",
    about: "pools of huge pages by size: pages, free, reserved, surplus",
    needs: "",
    without: "",
    provided_by: "CONFIG_HUGETLBFS",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/kernel/mm/hugepages/hugepages-*kB"],
        keys: &["size_kib"],
        cells: &[FolderCells::Files {
            below: "",
            columns: &[
                gauge("nr_hugepages", "huge pages"),
                gauge("free_hugepages", "huge pages"),
                gauge("resv_hugepages", "huge pages"),
                gauge("surplus_hugepages", "huge pages"),
                gauge("nr_overcommit_hugepages", "huge pages"),
            ],
        }],
    }),
};

/// Transparent huge pages of each size (`stats` came with 6.10).
pub const THP_SIZES: KernelFile = KernelFile {
    name: "thp-sizes",
    source: "/sys/kernel/mm/transparent_hugepage/hugepages-*kB/stats",
    about: "transparent huge pages by size: faults served and not, splits, swapped out, in use",
    needs: "",
    without: "",
    provided_by: "CONFIG_TRANSPARENT_HUGEPAGE since 6.10",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/kernel/mm/transparent_hugepage/hugepages-*kB/stats"],
        keys: &["size_kib"],
        cells: &[FolderCells::Files {
            below: "",
            columns: &[
                gauge("nr_anon", "huge pages"),
                gauge("nr_anon_partially_mapped", "huge pages"),
                count("anon_fault_alloc", "huge pages"),
                count("anon_fault_fallback", "1"),
                count("anon_fault_fallback_charge", "1"),
                count("zswpout", "huge pages"),
                count("swpin", "huge pages"),
                count("swpin_fallback", "1"),
                count("swpout", "huge pages"),
                count("swpout_fallback", "1"),
                count("shmem_alloc", "huge pages"),
                count("shmem_fallback", "1"),
                count("split", "huge pages"),
                count("split_failed", "1"),
                count("split_deferred", "huge pages"),
            ],
        }],
    }),
};

/// What zswap counts (mm/zswap.c).
pub const ZSWAP: KernelFile = KernelFile {
    name: "zswap",
    source: "/sys/kernel/debug/zswap",
    about: "compressed swap cache: pages held, size of the pool, pages refused and written back",
    needs: "root, and debugfs mounted at /sys/kernel/debug",
    without: "vmstat has zswpin, zswpout and zswpwb, and meminfo has Zswap and Zswapped",
    provided_by: "CONFIG_ZSWAP and CONFIG_DEBUG_FS, mounted at /sys/kernel/debug",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/kernel/debug/zswap"],
        keys: &[],
        cells: &[FolderCells::Files {
            below: "",
            columns: &[
                gauge("stored_pages", "pages"),
                gauge("pool_total_size", "bytes"),
                gauge("stored_incompressible_pages", "pages"),
                count("pool_limit_hit", "1"),
                count("written_back_pages", "pages"),
                count("reject_reclaim_fail", "pages"),
                count("reject_compress_fail", "pages"),
                count("reject_compress_poor", "pages"),
                count("reject_alloc_fail", "pages"),
                count("reject_kmemcache_fail", "pages"),
                count("decompress_fail", "pages"),
            ],
        }],
    }),
};

/// Schemes of DAMON (Documentation/admin-guide/mm/damon/usage.rst); made by whoever runs DAMON.
pub const DAMON: KernelFile = KernelFile {
    name: "damon",
    source: "/sys/kernel/mm/damon/admin/kdamonds/*/contexts/*/schemes/*",
    about: "DAMON: regions that each scheme tried and applied its action to, bytes, quota exceeded",
    needs: "root",
    without: "",
    provided_by: "CONFIG_DAMON_SYSFS, once a scheme was set up",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/kernel/mm/damon/admin/kdamonds/*/contexts/*/schemes/*"],
        keys: &["kdamond", "context", "scheme"],
        cells: &[FolderCells::Files {
            below: "stats/",
            columns: &[
                count("nr_tried", "regions"),
                count("sz_tried", "bytes"),
                count("nr_applied", "regions"),
                count("sz_applied", "bytes"),
                count("sz_ops_filter_passed", "bytes"),
                count("qt_exceeds", "1"),
            ],
        }],
    }),
};
