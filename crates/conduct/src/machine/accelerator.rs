//! Which accelerator a guest gets.

use std::fmt;
use std::sync::OnceLock;

use perflab_observe::{KvmSpeed, probe_kvm_speed};
use serde::{Deserialize, Serialize};

use super::GuestError;

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
pub enum AcceleratorRequest {
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
pub struct ChosenAccelerator {
    /// The accelerator.
    pub accelerator: Accelerator,
    /// Why, for people and for the run.
    pub because: String,
}

impl AcceleratorRequest {
    /// Chooses. The first call may time a loop in a guest of one page, which takes less than a second.
    ///
    /// # Errors
    /// KVM is demanded, and is not what it should be.
    pub fn choose(self) -> Result<ChosenAccelerator, GuestError> {
        static SPEED: OnceLock<KvmSpeed> = OnceLock::new();
        match self {
            AcceleratorRequest::Tcg => {
                Ok(ChosenAccelerator { accelerator: Accelerator::Tcg, because: "it was asked for".into() })
            }
            wish => wish.choose_by_speed(SPEED.get_or_init(probe_kvm_speed)),
        }
    }

    pub(super) fn choose_by_speed(self, speed: &KvmSpeed) -> Result<ChosenAccelerator, GuestError> {
        let because = speed.to_string();
        match (speed.is_fast(), self) {
            (true, _) => Ok(ChosenAccelerator { accelerator: Accelerator::Kvm, because }),
            (false, AcceleratorRequest::Kvm) => Err(GuestError::NoKvm { reason: because }),
            (false, _) => Ok(ChosenAccelerator { accelerator: Accelerator::Tcg, because }),
        }
    }
}
