//! Family `hypervisor`: whether this is a virtual machine, and of whom.

use perflab_model::Scalar;

use super::notes::{FactCollector, find_field};

const CPUINFO: &str = "/proc/cpuinfo";
const DMI: &str = "/sys/class/dmi/id";

pub(super) fn collect_hypervisor_facts(notes: &mut FactCollector<'_>) {
    notes.add_file("hypervisor.type", "/sys/hypervisor/type");
    notes.add_file("hypervisor.product", &format!("{DMI}/product_name"));
    notes.add_file("hypervisor.vendor", &format!("{DMI}/sys_vendor"));
    notes.add_file("hypervisor.bios", &format!("{DMI}/bios_version"));
    // Only x86 has the flag, so its absence says something only where there are flags.
    let text = notes.read(CPUINFO).unwrap_or_default();
    let flag = find_field(&text, ':', "flags")
        .map(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    notes.add_optional("hypervisor.present", flag.map(Scalar::Bool), CPUINFO);
}
