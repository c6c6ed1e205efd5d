//! Family `hypervisor`: whether this is a virtual machine, and of whom.

use perflab_model::Value;

use super::notes::{Notes, field};

const CPUINFO: &str = "/proc/cpuinfo";
const DMI: &str = "/sys/class/dmi/id";

pub(super) fn collect(notes: &mut Notes<'_>) {
    notes.file("hypervisor.type", "/sys/hypervisor/type");
    notes.file("hypervisor.product", &format!("{DMI}/product_name"));
    notes.file("hypervisor.vendor", &format!("{DMI}/sys_vendor"));
    notes.file("hypervisor.bios", &format!("{DMI}/bios_version"));
    // Only x86 has the flag, so its absence says something only where there are flags.
    let text = notes.read(CPUINFO).unwrap_or_default();
    let flag =
        field(&text, ':', "flags").map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    notes.add_known("hypervisor.present", flag.map(Value::Bool), CPUINFO);
}
