//! Thermal zones (Documentation/driver-api/thermal/sysfs-api.rst).

use perflab_model::DeclaredColumn;

use crate::kernel::kernel_file::{KernelFile, KernelFileLayout};
use crate::kernel::kernel_folder::{FolderCells, FolderLayout};

/// A row a zone.
pub const THERMAL: KernelFile = KernelFile {
    name: "thermal",
    source: "/sys/class/thermal/thermal_zone*",
    about: "temperature of each thermal zone",
    needs: "",
    without: "",
    provided_by: "CONFIG_THERMAL, on machines whose firmware or sensors have zones",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/class/thermal/thermal_zone*"],
        keys: &["zone"],
        cells: &[FolderCells::Files {
            below: "",
            columns: &[DeclaredColumn::key("type"), DeclaredColumn::gauge("temp", "mC")],
        }],
    }),
};
