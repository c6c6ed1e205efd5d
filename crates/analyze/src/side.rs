//! Owns what is put on one side of a comparison. It refuses to read it: the caller brings runs in memory.

use perflab_model::RunRecord;

/// One side of a comparison: runs that are repetitions of one another.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonSide {
    /// What people call it: a label, a short run id, a level.
    pub name: String,
    /// Its runs, at least one.
    pub runs: Vec<RunRecord>,
}
