//! Family `firmware`: who made it, which version, when.

use perflab_model::fact_table;

use crate::facts::collector::FactCollector;

/// Of SMBIOS, as the kernel read it at the boot. The numbers of the machine and its parts, which are beside these, are private.
pub(crate) const DMI: &str = "/sys/class/dmi/id";

pub(crate) fn collect_firmware_facts(notes: &mut FactCollector<'_>) {
    let files = [
        (fact_table::FIRMWARE_VENDOR, "bios_vendor"),
        (fact_table::FIRMWARE_VERSION, "bios_version"),
        (fact_table::FIRMWARE_RELEASE, "bios_release"),
        (fact_table::FIRMWARE_DATE, "bios_date"),
    ];
    for (key, file) in files {
        notes.add_text(key, &format!("{DMI}/{file}"));
    }
}
