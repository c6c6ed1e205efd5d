//! Whether a guest's memory is enough for it to begin: told before the boot where that is certain, and afterwards where
//! the console says so.

use std::fs;
use std::path::Path;

use perflab_model::Bytes;

use super::console::read_end;
use super::{Machine, MachineError};
use crate::inert::inert;

/// What a kernel prints when its first file system, or its first process, finds no room.
const MARKS: &[&str] = &["Initramfs unpacking failed", "Out of memory", "deadlocked on memory"];
/// What a console holds of a boot, in bytes of its end.
const BOOT_LOG: usize = 1 << 20;
const MIB: u64 = 1 << 20;

/// What a guest needs to begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need {
    kernel: u64,
    initramfs: u64,
}

impl Need {
    /// Of this machine with this initramfs.
    pub(super) fn of(machine: &Machine, initramfs: &Path) -> Result<Self, MachineError> {
        let size = fs::metadata(initramfs).map_err(MachineError::file(initramfs))?.len();
        Ok(Need { kernel: machine.kernel.needs()?.0, initramfs: size })
    }

    /// The kernel, and the initramfs as it is handed over and as it is unpacked: nobody begins with less.
    pub(super) fn least(self) -> Bytes {
        Bytes(self.kernel + 2 * self.initramfs)
    }

    /// The file system that it is unpacked to takes half of the memory that is left; and something must be left to
    /// work with.
    fn good(self) -> Bytes {
        Bytes((self.kernel + 4 * self.initramfs).next_multiple_of(64 * MIB))
    }

    /// Refuses a machine that cannot begin.
    pub(super) fn met(self, machine: &Machine) -> Result<(), MachineError> {
        if machine.memory.0 >= self.least().0 {
            return Ok(());
        }
        let why = format!(
            "its kernel takes {} and its first file system {}, twice while it is unpacked",
            whole(self.kernel),
            whole(self.initramfs)
        );
        Err(self.refusal(machine, why))
    }

    /// The error of a machine whose console says that its memory did not suffice; none where it does not say so.
    pub(super) fn told(self, machine: &Machine, console: &Path) -> Option<MachineError> {
        let text = read_end(console, BOOT_LOG);
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find(|line| MARKS.iter().any(|mark| line.contains(mark)))?;
        let line: String = inert(line).chars().take(200).collect();
        Some(self.refusal(machine, format!("its kernel says `{}`", line.trim())))
    }

    fn refusal(self, machine: &Machine, why: String) -> MachineError {
        let (name, memory) = (machine.name.clone(), machine.memory);
        MachineError::TooSmall { name, memory, why, good: self.good() }
    }
}

/// In whole mebibytes.
fn whole(bytes: u64) -> Bytes {
    Bytes(bytes.next_multiple_of(MIB))
}
