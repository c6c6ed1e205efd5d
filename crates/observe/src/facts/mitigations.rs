//! Family `mitigations`: what the kernel does about each vulnerability of the CPU.

use super::notes::FactCollector;

const DIRECTORY: &str = "/sys/devices/system/cpu/vulnerabilities";

pub(super) fn collect_mitigation_facts(notes: &mut FactCollector<'_>) {
    for name in notes.root.list(DIRECTORY) {
        notes.add_file(&format!("mitigations.{name}"), &format!("{DIRECTORY}/{name}"));
    }
}
