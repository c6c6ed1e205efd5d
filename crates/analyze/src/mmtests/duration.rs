//! Owns the durations that MMTests prints of each benchmark: user, system and elapsed time. It refuses to pick the shortest of
//! several iterations, as MMTests does: the mean is shown, and a note says so.

use indexmap::IndexMap;
use perflab_stats::mean;

use crate::comparison::{Comparison, Row, Summary};

/// The workload under which imports keep durations; its parameter `of` names the benchmark.
pub(super) const WORKLOAD: &str = "duration";

/// The durations of one benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct DurationTable {
    /// The benchmark's name.
    pub benchmark: String,
    /// Names of the sides, the baseline first.
    pub sides: Vec<String>,
    /// `User`, `System`, `Elapsed`: seconds of each side, absent where not known.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// What MMTests itself would print.
    pub notes: Vec<String>,
}

/// The durations of a comparison, a table a benchmark.
#[must_use]
pub fn durations(comparison: &Comparison) -> Vec<DurationTable> {
    let mut found: IndexMap<String, DurationTable> = IndexMap::new();
    let sides: Vec<String> =
        std::iter::once(&comparison.baseline).chain(&comparison.candidates).cloned().collect();
    for row in comparison.rows.iter().filter(|row| row.workload == WORKLOAD) {
        let benchmark = row.point.values().cloned().collect::<Vec<_>>().join("-");
        let table = found.entry(benchmark.clone()).or_insert_with(|| DurationTable {
            benchmark,
            sides: sides.clone(),
            rows: Vec::new(),
            notes: Vec::new(),
        });
        table.add(row);
    }
    found.into_values().collect()
}

impl DurationTable {
    fn add(&mut self, row: &Row) {
        let known = self.rows.iter().position(|(metric, _)| *metric == row.metric);
        let at = known.unwrap_or(self.rows.len());
        if known.is_none() {
            self.rows.push((row.metric.clone(), vec![None; self.sides.len()]));
        }
        let side =
            self.sides.iter().skip(1).position(|name| *name == row.candidate_name).map_or(0, |i| i + 1);
        for (side, summary) in [(0, &row.baseline), (side, &row.candidate)] {
            let cell = self.rows.get_mut(at).and_then(|(_, cells)| cells.get_mut(side));
            if let (Some(cell), Some(summary)) = (cell, summary) {
                *cell = mean_of(summary);
            }
        }
        let most = row.baseline.iter().chain(&row.candidate).map(|side| side.n).max().unwrap_or(0);
        if most > 1 && self.notes.is_empty() {
            self.notes.push(format!("the mean of {most} iterations; MMTests would print the shortest"));
        }
    }
}

fn mean_of(summary: &Summary) -> Option<f64> {
    mean(&summary.values.iter().map(|point| point.value).collect::<Vec<_>>()).ok()
}
