//! Family `kernel`: release, version, command line, taint, configuration.

use super::config;
use super::notes::Notes;

pub(super) fn collect(notes: &mut Notes<'_>) {
    notes.file("kernel.release", "/proc/sys/kernel/osrelease");
    notes.file("kernel.version", "/proc/sys/kernel/version");
    notes.file("kernel.arch", "/proc/sys/kernel/arch");
    notes.file("kernel.build", "/proc/version");
    notes.file("kernel.cmdline", "/proc/cmdline");
    notes.file("kernel.tainted", "/proc/sys/kernel/tainted");
    config::collect(notes);
}
