//! The figures of Go's benchstat for a comparison.
//!
//! Medians with the width of their interval, the change where Mann-Whitney's test sees one, geometric means; of values that are
//! assumed exact the most frequent one, its range, and any change. Benchstat
//! does not know boots: a note says where perflab's own verdict is weaker for that reason.
//!
//! Formulas: golang.org/x/perf, `benchmath` (`AssumeNothing`, `AssumeExact`) and `cmd/benchstat`, at 22c9c6c9.

use indexmap::{IndexMap, IndexSet};
use perflab_stats::{geometric_mean, mann_whitney, median, median_with_interval};

use crate::RowFlag;
use crate::compare::comparison::{Comparison, SideSummary, VerdictRow};

/// Changes with a p of this or below are shown.
const ALPHA: f64 = 0.05;

/// All rows of one unit.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchstatTable {
    /// The unit of the rows.
    pub unit: String,
    /// Names of the sides, the baseline first.
    pub sides: Vec<String>,
    /// One row a case and metric.
    pub rows: Vec<BenchstatRow>,
    /// Geometric means over the rows that every side has; absent where there is none.
    pub geometric: Vec<Option<f64>>,
    /// What was left out, and where perflab says something else.
    pub notes: Vec<BenchstatNote>,
}

/// What to know of a table, and where perflab says something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BenchstatNote {
    /// Rows that the geometric mean lacks: no median above zero on every side.
    GeomeanWithout {
        /// Names of the rows.
        rows: Vec<String>,
    },
    /// There is one boot a side.
    OneBoot,
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchstatRow {
    /// Case, and metric where a case has several of this unit.
    pub name: String,
    /// The sides, the baseline first; absent where one has no value.
    pub cells: Vec<Option<BenchstatMedian>>,
    /// From the baseline to each candidate.
    pub changes: Vec<Option<BenchstatDelta>>,
}

/// A median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BenchstatMedian {
    /// In the unit of the table.
    pub median: f64,
    /// How far the limits of its 95 % interval are.
    pub width: BenchstatWidth,
    /// Values.
    pub n: usize,
    /// Values that are assumed exact are not: the smallest and the largest.
    pub differing: Option<(f64, f64)>,
}

/// How far the limits of an interval are from its median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BenchstatWidth {
    /// The larger distance, as a fraction of the median.
    Share(f64),
    /// A limit has another sign than the median, of which it is no fraction then; zero has a sign of its own.
    OtherSign,
    /// There are fewer than six values.
    Unbounded,
}

impl BenchstatWidth {
    /// benchmath's `PctRangeString`.
    fn of_limits(centre: f64, low: f64, high: f64) -> Self {
        let sign = |value: f64| if value == 0.0 { 0.0 } else { value.signum() };
        if sign(low) != sign(centre) || sign(high) != sign(centre) {
            return BenchstatWidth::OtherSign;
        }
        if centre == 0.0 {
            return BenchstatWidth::Share(0.0);
        }
        BenchstatWidth::Share((high / centre - 1.0).max(1.0 - low / centre))
    }
}

/// A change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BenchstatDelta {
    /// Whether the test sees one; of exact values, always.
    pub is_significant: bool,
    /// Ratio of the medians minus 1, of equal ones 0; absent where the test sees no change, or the baseline's median is zero.
    pub change: Option<f64>,
    /// Two-sided p of Mann and Whitney.
    pub p: f64,
    /// Values on both sides.
    pub n: (usize, usize),
    /// All values of both sides are equal.
    pub all_equal: bool,
    /// The values are assumed exact: no test was made, and any difference is a change.
    pub exact: bool,
}

/// The tables of a comparison, one a unit.
#[must_use]
pub fn benchstat_tables(comparison: &Comparison) -> Vec<BenchstatTable> {
    let mut units: IndexMap<&str, IndexMap<(&str, &str), Vec<&VerdictRow>>> = IndexMap::new();
    for row in &comparison.rows {
        let rows = units.entry(&row.unit.0).or_default();
        rows.entry((&row.subject, &row.metric)).or_default().push(row);
    }
    units.into_iter().map(|(unit, rows)| benchstat_table(unit, &rows, comparison)).collect()
}

fn benchstat_table(
    unit: &str,
    rows: &IndexMap<(&str, &str), Vec<&VerdictRow>>,
    comparison: &Comparison,
) -> BenchstatTable {
    let sides: Vec<String> =
        std::iter::once(&comparison.baseline).chain(&comparison.candidates).cloned().collect();
    let metrics: IndexSet<&str> = rows.keys().map(|(_, metric)| *metric).collect();
    let name = |(subject, metric): (&str, &str)| {
        if metrics.len() > 1 { format!("{subject}/{metric}") } else { subject.to_owned() }
    };
    let found: Vec<BenchstatRow> =
        rows.iter().map(|(key, rows)| benchstat_row(name(*key), rows, comparison)).collect();
    let (geometric, left_out) = geometric_means_by_side(&found, sides.len());
    let mut notes = Vec::new();
    if !left_out.is_empty() && left_out.len() < found.len() {
        notes.push(BenchstatNote::GeomeanWithout { rows: left_out });
    }
    let one_boot = rows.values().flatten().any(|row| row.flags.contains(&RowFlag::OneBoot));
    notes.extend(one_boot.then_some(BenchstatNote::OneBoot));
    BenchstatTable { unit: unit.into(), sides, rows: found, geometric, notes }
}

fn benchstat_row(name: String, rows: &[&VerdictRow], comparison: &Comparison) -> BenchstatRow {
    let of = |candidate: &String| rows.iter().find(|row| row.candidate_name == *candidate);
    let base = side_values(rows.iter().find_map(|row| row.baseline.as_ref()));
    let candidates: Vec<Vec<f64>> = comparison
        .candidates
        .iter()
        .map(|name| side_values(of(name).and_then(|row| row.candidate.as_ref())))
        .collect();
    let exact = rows.iter().any(|row| row.exact);
    let sides = std::iter::once(&base).chain(&candidates);
    let cells =
        sides.map(|values| if exact { exact_value(values) } else { median_with_width(values) }).collect();
    let delta = |values: &Vec<f64>| match exact {
        true => exact_delta(&base, values),
        false => mann_whitney_delta(&base, values),
    };
    BenchstatRow { name, cells, changes: candidates.iter().map(delta).collect() }
}

fn side_values(summary: Option<&SideSummary>) -> Vec<f64> {
    summary.map(|summary| summary.values.iter().map(|point| point.value).collect()).unwrap_or_default()
}

fn median_with_width(values: &[f64]) -> Option<BenchstatMedian> {
    let found = median_with_interval(values, 0.95).ok()?;
    let width = found.interval.map_or(BenchstatWidth::Unbounded, |interval| {
        BenchstatWidth::of_limits(found.value, interval.low, interval.high)
    });
    Some(BenchstatMedian { median: found.value, width, n: values.len(), differing: None })
}

/// The most frequent value (of several, the smallest), and how far the others are from it.
fn exact_value(values: &[f64]) -> Option<BenchstatMedian> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = (*sorted.first()?, *sorted.last()?);
    let runs = sorted.chunk_by(|one, next| one == next).rev();
    let mode = *runs.max_by_key(|run| run.len())?.first()?;
    let width = BenchstatWidth::of_limits(mode, least, most);
    let differing = (least < most).then_some((least, most));
    Some(BenchstatMedian { median: mode, width, n: values.len(), differing })
}

/// benchmath's `FormatDelta`.
fn relative_delta(old: f64, new: f64) -> Option<f64> {
    if old == new { Some(0.0) } else { Some(new / old - 1.0).filter(|change| change.is_finite()) }
}

fn exact_delta(base: &[f64], new: &[f64]) -> Option<BenchstatDelta> {
    let change = relative_delta(exact_value(base)?.median, exact_value(new)?.median);
    let n = (base.len(), new.len());
    Some(BenchstatDelta { is_significant: true, change, p: 0.0, n, all_equal: false, exact: true })
}

fn mann_whitney_delta(base: &[f64], new: &[f64]) -> Option<BenchstatDelta> {
    let p = mann_whitney(base, new).ok()?.p;
    let is_significant = p <= ALPHA;
    let change = relative_delta(median(base).ok()?, median(new).ok()?).filter(|_| is_significant);
    let all_equal = base.iter().chain(new).all(|value| base.first() == Some(value));
    Some(BenchstatDelta { is_significant, change, p, n: (base.len(), new.len()), all_equal, exact: false })
}

/// Over the rows that have a median above zero on every side; the names of the others.
fn geometric_means_by_side(rows: &[BenchstatRow], sides: usize) -> (Vec<Option<f64>>, Vec<String>) {
    let whole = |row: &&BenchstatRow| row.cells.iter().all(|cell| cell.is_some_and(|cell| cell.median > 0.0));
    let (members, others): (Vec<&BenchstatRow>, Vec<&BenchstatRow>) = rows.iter().partition(whole);
    let of = |side: usize| {
        let medians: Vec<f64> = members
            .iter()
            .filter_map(|row| row.cells.get(side).copied().flatten())
            .map(|cell| cell.median)
            .collect();
        geometric_mean(&medians).ok()
    };
    ((0..sides).map(of).collect(), others.iter().map(|row| row.name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What benchmath's `PctRangeString` and `FormatDelta` give for medians of zero and intervals across it.
    #[test]
    fn zero_has_a_sign_of_its_own_and_is_no_base_of_a_change() {
        let width = |values: &[f64]| median_with_width(values).unwrap().width;
        assert_eq!(width(&[0.0; 8]), BenchstatWidth::Share(0.0));
        assert_eq!(width(&[0.0, 0.0, 0.0, 0.0, 0.0, 3.0, 3.0, 3.0]), BenchstatWidth::OtherSign);
        assert_eq!(width(&[-1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0]), BenchstatWidth::OtherSign);
        assert_eq!(width(&[1.0; 5]), BenchstatWidth::Unbounded);
        let delta = |old: &[f64], new: &[f64]| {
            let found = mann_whitney_delta(old, new).unwrap();
            (found.is_significant, found.change)
        };
        assert_eq!(delta(&[0.0; 8], &[3.0; 8]), (true, None));
        assert_eq!(delta(&[0.0; 8], &[0.0; 8]), (false, None));
        assert_eq!(delta(&[2.0; 8], &[3.0; 8]), (true, Some(0.5)));
        let exact = exact_delta(&[0.0; 2], &[0.0; 2]).unwrap();
        assert_eq!((exact.change, exact_delta(&[0.0], &[1.0]).unwrap().change), (Some(0.0), None));
    }
}
