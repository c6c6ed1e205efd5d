//! Family `mitigations`: what the kernel does about each vulnerability of the CPU.

use super::notes::Notes;

const DIRECTORY: &str = "/sys/devices/system/cpu/vulnerabilities";

pub(super) fn collect(notes: &mut Notes<'_>) {
    for name in notes.root.list(DIRECTORY) {
        notes.file(&format!("mitigations.{name}"), &format!("{DIRECTORY}/{name}"));
    }
}
