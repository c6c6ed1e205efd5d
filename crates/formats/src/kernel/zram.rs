//! `/sys/block/zramN`: compressed memory disks (Documentation/admin-guide/blockdev/zram.rst).

use perflab_model::DeclaredColumn;

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::kernel_folder::{FolderCells, FolderLayout};

/// A row a device.
pub const ZRAM: KernelFile = KernelFile {
    name: "zram",
    source: "/sys/block/zram*",
    about: "compressed memory disks: data held, compressed size, memory used, huge and same pages, failed I/O",
    needs: "",
    without: "",
    provided_by: "CONFIG_ZRAM",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/block/zram*"],
        keys: &["zram"],
        cells: &[
            FolderCells::Files { below: "", columns: &[DeclaredColumn::gauge("disksize", "bytes")] },
            FolderCells::Words {
                file: "mm_stat",
                columns: &[
                    DeclaredColumn::gauge("orig_data_size", "bytes"),
                    DeclaredColumn::gauge("compr_data_size", "bytes"),
                    DeclaredColumn::gauge("mem_used_total", "bytes"),
                    DeclaredColumn::gauge("mem_limit", "bytes"),
                    DeclaredColumn::gauge("mem_used_max", "bytes"),
                    DeclaredColumn::gauge("same_pages", "pages"),
                    DeclaredColumn::counter("pages_compacted", "pages"),
                    DeclaredColumn::gauge("huge_pages", "pages"),
                    DeclaredColumn::counter("huge_pages_since", "pages"),
                ],
            },
            FolderCells::Words {
                file: "io_stat",
                columns: &[
                    DeclaredColumn::counter("failed_reads", "1"),
                    DeclaredColumn::counter("failed_writes", "1"),
                    DeclaredColumn::counter("invalid_io", "1"),
                    DeclaredColumn::counter("notify_free", "pages"),
                ],
            },
        ],
    }),
};
