//! The registers of a thread that its stack is unwound from, by the numbers that perf gives them on this architecture.

use framehop::UnwindRegsNative;
use linux_perf_event_reader::Regs;

#[cfg(target_arch = "x86_64")]
mod numbers {
    pub(super) const FRAME: u64 = 6;
    pub(super) const STACK: u64 = 7;
    pub(super) const INSTRUCTION: u64 = 8;
    /// There is none: it stands for the frame pointer, and is not used.
    pub(super) const LINK: u64 = FRAME;
}

#[cfg(target_arch = "aarch64")]
mod numbers {
    pub(super) const FRAME: u64 = 29;
    pub(super) const LINK: u64 = 30;
    pub(super) const STACK: u64 = 31;
    pub(super) const INSTRUCTION: u64 = 32;
}

/// What a sample holds of a thread's registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SampledRegisters {
    pub(crate) instruction: u64,
    pub(crate) stack: u64,
    frame: u64,
    /// The address to return to, where the architecture has it in a register.
    link: u64,
}

impl SampledRegisters {
    /// Those of a sample; `None` where one that is needed was not asked for.
    pub(crate) fn from_sample(sampled: &Regs<'_>) -> Option<SampledRegisters> {
        Some(SampledRegisters {
            instruction: sampled.get(numbers::INSTRUCTION)?,
            stack: sampled.get(numbers::STACK)?,
            frame: sampled.get(numbers::FRAME)?,
            link: sampled.get(numbers::LINK)?,
        })
    }

    #[cfg(target_arch = "x86_64")]
    pub(crate) fn to_native(&self) -> UnwindRegsNative {
        UnwindRegsNative::new(self.instruction, self.stack, self.frame)
    }

    #[cfg(target_arch = "aarch64")]
    pub(crate) fn to_native(&self) -> UnwindRegsNative {
        UnwindRegsNative::new(self.link, self.stack, self.frame)
    }
}
