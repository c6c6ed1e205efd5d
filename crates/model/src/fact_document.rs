//! Texts that hold more facts of a machine than a record carries one by one: all its tunables, all options of its kernel.

use serde::{Deserialize, Serialize};

/// A text of a machine's about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactDocument {
    /// Which one: [`FactDocument::SYSCTL`].
    pub name: String,
    /// The file or folder that it was read from.
    pub source: String,
    /// The text.
    pub text: String,
}

impl FactDocument {
    /// All tunables as `sysctl -a` prints them: `vm.swappiness = 60`, a line for each line of a value. Lines that begin with
    /// `#` say what is left out.
    pub const SYSCTL: &str = "sysctl";

    /// The kernel's configuration as it is.
    pub const KERNEL_CONFIG: &str = "kernel-config";

    /// All that there are.
    pub const NAMES: [&str; 2] = [FactDocument::SYSCTL, FactDocument::KERNEL_CONFIG];

    /// Bytes of the longest text: configurations have 100 to 300 KB, tunables of a machine with many interfaces as much.
    pub const LONGEST: usize = 1 << 20;
}

/// A document, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineDocument {
    /// Index into the manifest's targets; none for the machine that recorded.
    pub target: Option<u32>,
    /// The document.
    pub document: FactDocument,
}
