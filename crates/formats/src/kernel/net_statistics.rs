//! `/sys/class/net/*/statistics`: what `/proc/net/dev` adds up, apart (Documentation/ABI/testing/sysfs-class-net-statistics).

use perflab_model::DeclaredColumn;

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::kernel_folder::{FolderCells, FolderLayout};

const fn errors(name: &'static str) -> DeclaredColumn {
    DeclaredColumn::counter(name, "1")
}

/// A row an interface.
pub const NET_STATISTICS: KernelFile = KernelFile {
    name: "net-statistics",
    source: "/sys/class/net/*",
    about: "errors of network interfaces by kind, changes of the carrier; more than net-dev says",
    needs: "",
    without: "",
    provided_by: "CONFIG_NET and CONFIG_SYSFS",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/class/net/*"],
        keys: &["interface"],
        cells: &[
            FolderCells::Files {
                below: "",
                columns: &[
                    errors("carrier_changes"),
                    DeclaredColumn::gauge("mtu", "bytes"),
                    DeclaredColumn::gauge("tx_queue_len", "packets"),
                ],
            },
            FolderCells::Files {
                below: "statistics/",
                columns: &[
                    errors("rx_crc_errors"),
                    errors("rx_fifo_errors"),
                    errors("rx_frame_errors"),
                    errors("rx_length_errors"),
                    errors("rx_missed_errors"),
                    errors("rx_nohandler"),
                    errors("rx_over_errors"),
                    errors("tx_aborted_errors"),
                    errors("tx_carrier_errors"),
                    errors("tx_fifo_errors"),
                    errors("tx_heartbeat_errors"),
                    errors("tx_window_errors"),
                ],
            },
        ],
    }),
};
