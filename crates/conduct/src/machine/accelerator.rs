//! Which accelerator a guest gets.

use std::fmt;
use std::sync::OnceLock;

use perflab_observe::{KvmSpeed, kvm_speed};
use serde::{Deserialize, Serialize};

use super::MachineError;

/// How a guest's code is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accelerator {
    /// By the processor.
    Kvm,
    /// By QEMU's translator: everything takes several times as long, and only compares with itself.
    Tcg,
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Accelerator::Kvm => "kvm",
            Accelerator::Tcg => "tcg",
        })
    }
}

/// What the user wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wish {
    /// KVM where it runs code at speed, else TCG.
    #[default]
    Best,
    /// KVM or nothing.
    Kvm,
    /// TCG, for a comparison that must run everywhere.
    Tcg,
}

/// What it became.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The accelerator.
    pub accelerator: Accelerator,
    /// Why, for people and for the run.
    pub because: String,
}

impl Wish {
    /// Chooses. The first call may time a loop in a guest of one page, which takes less than a second.
    ///
    /// # Errors
    /// KVM is demanded, and is not what it should be.
    pub fn choose(self) -> Result<Chosen, MachineError> {
        static SPEED: OnceLock<KvmSpeed> = OnceLock::new();
        match self {
            Wish::Tcg => Ok(Chosen { accelerator: Accelerator::Tcg, because: "it was asked for".into() }),
            wish => wish.given(SPEED.get_or_init(kvm_speed)),
        }
    }

    pub(super) fn given(self, speed: &KvmSpeed) -> Result<Chosen, MachineError> {
        let because = speed.to_string();
        match (speed.is_fast(), self) {
            (true, _) => Ok(Chosen { accelerator: Accelerator::Kvm, because }),
            (false, Wish::Kvm) => Err(MachineError::NoKvm { reason: because }),
            (false, _) => Ok(Chosen { accelerator: Accelerator::Tcg, because }),
        }
    }
}
