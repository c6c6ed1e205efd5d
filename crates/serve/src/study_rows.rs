//! What is found of the runs of one study: its rows on a board, and the runs that cannot be read.

use perflab_analyze::{MethodDescription, MetricHistories};
use perflab_present::board::{BoardRow, board_rows};
use schemars::JsonSchema;
use serde::Serialize;

/// A run that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct UnreadableRunDocument {
    /// The shortest beginning that names it in this archive.
    pub(crate) run: String,
    /// Why.
    pub(crate) problem: String,
}

/// What was found of a study.
#[derive(Debug, Default)]
pub(crate) struct StudyRows {
    pub(crate) rows: Vec<BoardRow>,
    pub(crate) unreadable: Vec<UnreadableRunDocument>,
}

impl StudyRows {
    pub(crate) fn new(history: &MetricHistories) -> Self {
        let unreadable = history.notes.iter().filter_map(|note| match note {
            MethodDescription::UnreadableRuns { runs } => Some(runs),
            _ => None,
        });
        let unreadable = unreadable
            .flatten()
            .map(|run| UnreadableRunDocument { run: run.run.clone(), problem: run.reason.clone() });
        StudyRows { rows: board_rows(history), unreadable: unreadable.collect() }
    }
}
