//! What was printed by kernels, on every side of a comparison.

use perflab_formats::kernel::kernel_log::KernelTrouble;
use schemars::JsonSchema;
use serde::Serialize;

/// How often something was printed on a side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KernelLogCount {
    /// measured iterations in which it was
    pub iterations: usize,
    /// measured iterations
    pub of: usize,
    /// lines of it in warm-ups and between iterations
    pub elsewhere: usize,
    /// of the iterations with it, those that failed
    pub failed_with: usize,
    /// measured iterations that failed, with it or without
    pub failed: usize,
}

impl KernelLogCount {
    /// Whether it was there at all.
    pub fn is_there(&self) -> bool {
        self.iterations > 0 || self.elsewhere > 0
    }
}

/// A line, or a kind of trouble, on every side.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KernelLogRow {
    /// what is wrong, where the line says so
    #[schemars(with = "Option<String>")]
    pub trouble: Option<KernelTrouble>,
    /// the lowest level at which it was printed: 0 (the system is unusable) to 7 (debug); none for consoles
    pub level: Option<u8>,
    /// the line without numbers and addresses; of a kind of trouble, the first such line
    pub line: String,
    /// whether it is one of many of a dump: of stacks, registers, memory
    pub is_dump: bool,
    /// by side, the baseline first
    pub sides: Vec<KernelLogCount>,
    /// by candidate: Fisher's p-value of as many iterations with it as in the baseline
    pub p: Vec<Option<f64>>,
}

impl KernelLogRow {
    /// Whether the baseline has it and no candidate, or the other way round for any candidate.
    pub fn is_one_sided(&self) -> bool {
        let Some((baseline, candidates)) = self.sides.split_first() else { return false };
        candidates.iter().any(|candidate| candidate.is_there() != baseline.is_there())
    }

    /// Whether a candidate has it, and the baseline does not.
    pub fn is_new(&self) -> bool {
        let Some((baseline, candidates)) = self.sides.split_first() else { return false };
        !baseline.is_there() && candidates.iter().any(KernelLogCount::is_there)
    }
}

/// The kernel's log of all sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct KernelLogComparison {
    /// the baseline first
    pub sides: Vec<String>,
    /// sides with a run that did not keep the log, or could not read it
    pub unread: Vec<String>,
    /// kinds of trouble that any side has
    pub troubles: Vec<KernelLogRow>,
    /// lines that are on one side only: trouble first, dumps last, by level and in the order in which they came
    pub lines: Vec<KernelLogRow>,
}

impl KernelLogComparison {
    /// Whether there is something to say.
    pub fn is_empty(&self) -> bool {
        self.troubles.is_empty() && self.lines.is_empty()
    }
}
