//! A layout: where a program's stack and code happen to lie, as far as perflab varies it.
//!
//! A program's speed moves by several per cent with it, and every change of the program draws another one (Mytkowicz,
//! Diwan, Hauswirth and Sweeney, "Producing wrong data without doing anything obviously wrong!", ASPLOS 2009; Curtsinger and
//! Berger, "Stabilizer", ASPLOS 2013). A study with `layout = N` runs every case under N of them.

use serde::{Deserialize, Serialize};

/// One layout of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PlannedLayout {
    /// By how many bytes the environment is longer, which moves the stack: the length of [`PlannedLayout::PADDING`].
    pub padding: u32,
    /// What a workload that builds its own program draws the order of its object files and the alignment of its functions
    /// from, out of [`PlannedLayout::SEED`]; 0 leaves both as they are.
    pub seed: u32,
}

impl PlannedLayout {
    /// Nothing moved: the program as it was built. Each run's first.
    pub const AS_BUILT: PlannedLayout = PlannedLayout { padding: 0, seed: 0 };

    /// The variable whose length is the padding.
    pub const PADDING: &'static str = "PERFLAB_LAYOUT_PADDING";

    /// The variable that holds the seed, eight hexadecimal digits, so that it moves nothing by itself.
    pub const SEED: &'static str = "PERFLAB_LAYOUT";

    /// A page: what moves by more lies as it did.
    pub const LARGEST_PADDING: u32 = 4096;

    /// Stacks begin at multiples of this many bytes.
    pub const PADDING_STEP: u32 = 16;

    /// Whether nothing is moved.
    #[must_use]
    pub fn is_as_built(self) -> bool {
        self == PlannedLayout::AS_BUILT
    }

    /// The variables that a process under this layout gets.
    #[must_use]
    pub fn environment(self) -> [(String, String); 2] {
        let padding = "x".repeat(self.padding as usize);
        [(PlannedLayout::PADDING.into(), padding), (PlannedLayout::SEED.into(), format!("{:08x}", self.seed))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_padding_is_all_that_differs_in_length() {
        let lengths = |layout: PlannedLayout| layout.environment().map(|(_, value)| value.len());
        assert_eq!(lengths(PlannedLayout::AS_BUILT), [0, 8]);
        assert_eq!(lengths(PlannedLayout { padding: 48, seed: u32::MAX }), [48, 8]);
    }
}
