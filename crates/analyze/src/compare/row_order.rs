//! The order of a comparison's rows.
//!
//! Rows of one case stay together, those that decide before those that explain: cases are in the order of their first rows.

use std::cmp::Ordering;

use indexmap::IndexMap;
use perflab_model::named::Named;

use crate::compare::comparison::{Comparison, VerdictRow};

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOrder {
    /// the largest change, whichever way it goes
    Change,
    /// the case, then the metric, by name
    Name,
    /// the smallest p-value
    P,
    /// the worst verdict
    Verdict,
}

impl Named for RowOrder {
    const NAMES: &'static [(Self, &'static str, &'static str)] = &[
        (RowOrder::Change, "change", "largest change first, relative to the baseline"),
        (RowOrder::Name, "name", "by case and metric"),
        (RowOrder::P, "p", "smallest p-value first"),
        (RowOrder::Verdict, "verdict", "worse, then changed, better, unclear, same"),
    ];
}

/// Words from what asks for a look to what does not.
const WORDS: &[&str] =
    &["worse", "withheld", "missing", "changed", "differs", "better", "unclear", "same here", "same"];

impl RowOrder {
    fn compare(self, one: &VerdictRow, other: &VerdictRow) -> Ordering {
        let size = |row: &VerdictRow| row.deciding_relative_change().map_or(-1.0, f64::abs);
        let p = |row: &VerdictRow| row.p.unwrap_or(f64::INFINITY);
        let word = |row: &VerdictRow| WORDS.iter().position(|word| *word == row.verdict_word());
        let larger_first = size(other).total_cmp(&size(one));
        match self {
            RowOrder::Change => larger_first,
            RowOrder::Name => (&one.subject, &one.metric).cmp(&(&other.subject, &other.metric)),
            RowOrder::P => p(one).total_cmp(&p(other)).then(larger_first),
            RowOrder::Verdict => word(one).cmp(&word(other)).then(larger_first),
        }
    }
}

impl Comparison {
    /// Puts the rows into an order; equal ones stay as they were.
    pub fn sort_rows(&mut self, order: RowOrder) {
        let mut cases: IndexMap<String, Vec<VerdictRow>> = IndexMap::new();
        for row in self.rows.drain(..) {
            cases.entry(row.subject.clone()).or_default().push(row);
        }
        for rows in cases.values_mut() {
            rows.sort_by(|one, other| other.primary.cmp(&one.primary).then(order.compare(one, other)));
        }
        let mut cases: Vec<Vec<VerdictRow>> = cases.into_values().collect();
        cases.sort_by(|one, other| match (one.first(), other.first()) {
            (Some(one), Some(other)) => order.compare(one, other),
            _ => Ordering::Equal,
        });
        self.rows = cases.into_iter().flatten().collect();
    }
}

#[cfg(test)]
mod tests {
    use fixtures::run_builder::{RunBuilder, explanatory_metric, primary_metric};
    use perflab_model::Direction;

    use super::*;
    use crate::compare::options::{AnalysisOptions, ComparisonSide};
    use crate::compare::pipeline::compare_levels;

    #[test]
    fn cases_are_in_the_order_of_their_first_rows() {
        let run = RunBuilder::new("r")
            .with(|lab| {
                lab.workloads = vec!["b", "a", "c"];
                lab.factors = vec![("f", vec!["old", "new"])];
                lab.metrics = vec![
                    explanatory_metric("x", "1", Direction::Neither),
                    primary_metric("time", "s", Direction::Lower),
                ];
            })
            .build_run(|at| {
                let factor = match (at.case.workload.as_str(), at.level("f")) {
                    ("a", "new") => 1.1,
                    ("c", "new") => 0.5,
                    _ => 1.0,
                };
                Some(factor * (1.0 + f64::from(at.iteration) * 1e-4))
            });
        let side = ComparisonSide { name: "r".into(), runs: vec![run] };
        let mut found = compare_levels(&side, "f", &AnalysisOptions::default()).unwrap();
        let mut order = |order| {
            found.sort_rows(order);
            let rows = found.rows.iter().map(|row| format!("{} {}", row.subject, row.metric));
            rows.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(order(RowOrder::Change), "c time, c x, a time, a x, b time, b x");
        assert_eq!(order(RowOrder::Name), "a time, a x, b time, b x, c time, c x");
        assert_eq!(order(RowOrder::Verdict), "a time, a x, c time, c x, b time, b x");
        assert_eq!(order(RowOrder::P), "c time, c x, a time, a x, b time, b x");
    }
}
