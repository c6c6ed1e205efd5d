//! Family `kernel`: release, version, command line, taint, configuration.

use super::config;
use super::notes::FactCollector;

pub(super) fn collect_kernel_facts(notes: &mut FactCollector<'_>) {
    notes.add_file("kernel.release", "/proc/sys/kernel/osrelease");
    notes.add_file("kernel.version", "/proc/sys/kernel/version");
    notes.add_file("kernel.arch", "/proc/sys/kernel/arch");
    notes.add_file("kernel.build", "/proc/version");
    notes.add_file("kernel.cmdline", "/proc/cmdline");
    notes.add_file("kernel.tainted", "/proc/sys/kernel/tainted");
    config::collect_config_facts(notes);
}
