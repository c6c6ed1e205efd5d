//! Whether a guest's memory is enough for it to begin: told before the boot where that is certain, and afterwards where
//! the console says so.

use std::fs;
use std::path::Path;

use perflab_model::Bytes;

use super::console::read_log_end;
use super::{GuestError, GuestMachine};
use crate::inert::remove_control_characters;

/// What a kernel prints when its first file system, or its first process, finds no room.
const MARKS: &[&str] = &["Initramfs unpacking failed", "Out of memory", "deadlocked on memory"];
/// What a console holds of a boot, in bytes of its end.
const BOOT_LOG: usize = 1 << 20;
const MIB: u64 = 1 << 20;

/// What a guest needs to begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryNeed {
    kernel: u64,
    initramfs: u64,
}

impl MemoryNeed {
    /// Of this machine with this initramfs.
    pub(super) fn of_machine(machine: &GuestMachine, initramfs: &Path) -> Result<Self, GuestError> {
        let size = fs::metadata(initramfs).map_err(GuestError::file_error(initramfs))?.len();
        Ok(MemoryNeed { kernel: machine.kernel.boot_memory()?.0, initramfs: size })
    }

    /// The kernel, and the initramfs as it is handed over and as it is unpacked: nobody begins with less.
    pub(super) fn minimum(self) -> Bytes {
        Bytes(self.kernel + 2 * self.initramfs)
    }

    /// The file system that it is unpacked to takes half of the memory that is left; and something must be left to
    /// work with.
    fn recommended(self) -> Bytes {
        Bytes((self.kernel + 4 * self.initramfs).next_multiple_of(64 * MIB))
    }

    /// Refuses a machine that cannot begin.
    pub(super) fn check_machine(self, machine: &GuestMachine) -> Result<(), GuestError> {
        if machine.memory.0 >= self.minimum().0 {
            return Ok(());
        }
        let why = format!(
            "its kernel takes {} and its first file system {}, twice while it is unpacked",
            round_to_mebibytes(self.kernel),
            round_to_mebibytes(self.initramfs)
        );
        Err(self.too_small_error(machine, why))
    }

    /// The error of a machine whose console says that its memory did not suffice; none where it does not say so.
    pub(super) fn out_of_memory_error(self, machine: &GuestMachine, console: &Path) -> Option<GuestError> {
        let text = read_log_end(console, BOOT_LOG);
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find(|line| MARKS.iter().any(|mark| line.contains(mark)))?;
        let line: String = remove_control_characters(line).chars().take(200).collect();
        Some(self.too_small_error(machine, format!("its kernel says `{}`", line.trim())))
    }

    fn too_small_error(self, machine: &GuestMachine, why: String) -> GuestError {
        let (name, memory) = (machine.name.clone(), machine.memory);
        GuestError::TooSmall { name, memory, why, good: self.recommended() }
    }
}

/// In whole mebibytes.
fn round_to_mebibytes(bytes: u64) -> Bytes {
    Bytes(bytes.next_multiple_of(MIB))
}
