//! Thermal zones (Documentation/driver-api/thermal/sysfs-api.rst) and what hardware monitors say
//! (Documentation/hwmon/sysfs-interface.rst).

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

/// A row a chip.
pub const SENSORS: KernelFile = KernelFile {
    name: "sensors",
    source: "/sys/class/hwmon/hwmon*",
    about: "sensors of each chip: temperatures, fans, power",
    needs: "",
    without: "",
    provided_by: "CONFIG_HWMON, on machines whose chips have a driver",
    columns: &[],
    layout: KernelFileLayout::Folders(FolderLayout {
        folders: &["/sys/class/hwmon/hwmon*"],
        keys: &["hwmon"],
        cells: &[FolderCells::Files {
            below: "",
            columns: &[
                DeclaredColumn::key("name"),
                DeclaredColumn::gauge("temp1_input", "mC"),
                DeclaredColumn::gauge("temp2_input", "mC"),
                DeclaredColumn::gauge("temp3_input", "mC"),
                DeclaredColumn::gauge("temp4_input", "mC"),
                DeclaredColumn::gauge("fan1_input", "1/min"),
                DeclaredColumn::gauge("fan2_input", "1/min"),
                DeclaredColumn::gauge("power1_average", "uW"),
                DeclaredColumn::gauge("power1_input", "uW"),
            ],
        }],
    }),
};
