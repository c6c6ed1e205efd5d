//! The figures of `lkp compare`, and where its rule differs.
//!
//! Means with their relative deviation, and the change of the mean. Its rule for what changed is not used: ranges that
//! do not overlap see less with more samples, and twice as much as they should with few. perflab's test decides, and a
//! note says where lkp would differ.
//!
//! Rule: lkp-tests, `lib/changed_stat.rb` and `lib/stats.rb`; figures: `lib/compare.rb`.

use perflab_stats::{mean, sd};

use crate::compare::comparison::{Comparison, SideSummary, VerdictRow};

/// The table of one candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct LkpTable {
    /// Name of the baseline.
    pub baseline: String,
    /// Name of the candidate.
    pub candidate: String,
    /// Rows that changed, and the primary ones.
    pub rows: Vec<LkpRow>,
    /// Rows that did not change, or cannot be compared.
    pub left_out: usize,
    /// Where lkp would say something else.
    pub notes: Vec<LkpNote>,
}

/// What to know of a table, and where lkp would say something else.
#[derive(Debug, Clone, PartialEq)]
pub enum LkpNote {
    /// Which rows are listed.
    ListedRows {
        /// q is below this.
        limit: f64,
    },
    /// lkp would not list these rows: the ranges of both sides overlap too far.
    OverlappingRanges {
        /// Names of the rows.
        rows: Vec<String>,
    },
    /// lkp would divide by almost nothing: the baseline's mean is 0.
    ZeroMeans {
        /// Names of the rows.
        rows: Vec<String>,
    },
    /// lkp would list these rows: the ranges do not overlap.
    SeparateRanges {
        /// Names of the rows.
        rows: Vec<String>,
    },
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct LkpRow {
    /// `workload.metric`, with the case's parameters before.
    pub name: String,
    /// Mean, and standard deviation in percent of it where there is one.
    pub baseline: Option<(f64, Option<f64>)>,
    /// The same of the candidate.
    pub candidate: Option<(f64, Option<f64>)>,
    /// Change of the mean in percent, absent from a mean of zero; the difference where the metric is a share itself.
    pub change: Option<f64>,
    /// The change is a difference.
    pub absolute: bool,
    /// It has a unit, so that two decimals may say nothing of it: a time in seconds.
    pub has_unit: bool,
    /// perflab's test sees a change.
    pub changed: bool,
}

/// The tables of a comparison, one a candidate.
#[must_use]
pub fn lkp_tables(comparison: &Comparison) -> Vec<LkpTable> {
    comparison.candidates.iter().map(|candidate| lkp_table(comparison, candidate)).collect()
}

fn lkp_table(comparison: &Comparison, candidate: &str) -> LkpTable {
    let limit = 1.0 - comparison.confidence;
    let rows: Vec<&VerdictRow> =
        comparison.rows.iter().filter(|row| row.candidate_name == candidate).collect();
    let changed = |row: &VerdictRow| row.q.is_some_and(|q| q < limit);
    let shown = |row: &&&VerdictRow| row.primary || changed(row) || row.change.is_none();
    let (mut more, mut less) = (Vec::new(), Vec::new());
    for row in &rows {
        match (changed(row), would_lkp_list(row)) {
            (true, Some(false)) => more.push(lkp_row_name(row)),
            (false, Some(true)) => less.push(lkp_row_name(row)),
            _ => {}
        }
    }
    let nothing = |row: &&&VerdictRow| {
        lkp_side_values(&row.baseline).iter().sum::<f64>() == 0.0 && row.change.is_some()
    };
    let empty: Vec<String> = rows.iter().filter(nothing).map(|row| lkp_row_name(row)).collect();
    let mut notes = vec![LkpNote::ListedRows { limit }];
    notes.extend((!more.is_empty()).then_some(LkpNote::OverlappingRanges { rows: more }));
    notes.extend((!empty.is_empty()).then_some(LkpNote::ZeroMeans { rows: empty }));
    notes.extend((!less.is_empty()).then_some(LkpNote::SeparateRanges { rows: less }));
    LkpTable {
        baseline: comparison.baseline.clone(),
        candidate: candidate.into(),
        left_out: rows.len() - rows.iter().filter(shown).count(),
        rows: rows.iter().filter(shown).map(|row| lkp_row(row, changed(row))).collect(),
        notes,
    }
}

fn lkp_row_name(row: &VerdictRow) -> String {
    let point: String = row.point.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    format!("{point}{}.{}", row.workload, row.metric)
}

fn lkp_side_values(side: &Option<SideSummary>) -> Vec<f64> {
    side.iter().flat_map(|summary| summary.values.iter()).map(|point| point.value).collect()
}

fn lkp_row(row: &VerdictRow, changed: bool) -> LkpRow {
    let of = |side: &Option<SideSummary>| {
        let values = lkp_side_values(side);
        let centre = mean(&values).ok()?;
        // lkp divides by n where others divide by n - 1.
        let share = ((values.len() as f64 - 1.0) / values.len() as f64).sqrt();
        let spread = sd(&values).ok().filter(|_| centre != 0.0).map(|sd| 100.0 * sd * share / centre.abs());
        Some((centre, spread))
    };
    let (baseline, candidate) = (of(&row.baseline), of(&row.candidate));
    let absolute = row.metric.ends_with('%') || row.workload == "perf-profile";
    let change = baseline.zip(candidate).and_then(|(base, new)| match absolute {
        true => Some(new.0 - base.0),
        false => (base.0 > 0.0).then(|| 100.0 * (new.0 - base.0) / base.0),
    });
    let has_unit = row.unit.0 != *"1";
    LkpRow { name: lkp_row_name(row), baseline, candidate, change, absolute, has_unit, changed }
}

/// lkp's default rule: one side's smallest value lies above the other's mean and its mean above the other's largest, or
/// the gap between the ranges is more than half the difference of the means.
fn would_lkp_list(row: &VerdictRow) -> Option<bool> {
    let (a, b) = (lkp_side_values(&row.baseline), lkp_side_values(&row.candidate));
    let ends = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some((low, mean(values).ok()?, high))
    };
    let ((min_a, mean_a, max_a), (min_b, mean_b, max_b)) = (ends(&a)?, ends(&b)?);
    let apart = |low: (f64, f64), high: (f64, f64)| high.0 > low.0 && high.1 > low.1;
    let beyond = apart((mean_a, max_a), (min_b, mean_b)) || apart((mean_b, max_b), (min_a, mean_a));
    let gap = (min_b - max_a).max(min_a - max_b);
    Some(beyond || gap > (mean_b - mean_a).abs() / 2.0)
}
