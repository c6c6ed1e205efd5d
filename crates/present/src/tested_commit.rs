//! Commits that a watch of a tree has tested: what became of each, in a table.

use crate::grid::{Grid, GridCell, GridColumn};

/// A commit that was tested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestedCommitLine {
    /// Its name.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// What became of it, in words.
    pub outcome: String,
    /// Why, and what got worse or was repaired.
    pub reason: String,
    /// The commits that a bisection found to blame.
    pub culprits: String,
}

/// The commits, in their order.
pub(crate) fn tested_commits_grid(commits: &[TestedCommitLine]) -> Grid {
    let columns = ["commit", "subject", "outcome", "because", "culprit"].map(GridColumn::left);
    let mut grid = Grid::new(columns);
    for one in commits {
        let texts = [&one.commit, &one.subject, &one.outcome, &one.reason, &one.culprits];
        grid.add_row(texts.map(|text| GridCell::from(text.as_str())));
    }
    grid
}
