//! Owns how a comparison of slab bytes is shown. It refuses verdicts: analysis gave them.

use perflab_analyze::Verdict;
use perflab_analyze::slab::{BytesChange, CacheChange, SlabComparison};

use super::cells;
use crate::chart::{AxisUnit, BarChart, ChartBar, Scene};
use crate::table::{Grid, GridCell, GridColumn};

/// One row a cache; those that did not change only where `all` is wanted.
#[must_use]
pub fn slab_comparison_grid(comparison: &SlabComparison, all: bool) -> Grid {
    let named = NamedColumns::from_comparison(comparison);
    let mut left = vec!["cache"];
    left.extend(named.cases.then_some("case"));
    left.extend(named.candidates.then_some("candidate"));
    let right = ["before", "after", "change", "interval", "peak", "end", "noise floor"];
    let mut columns: Vec<GridColumn> = left.into_iter().map(GridColumn::left).collect();
    columns.extend(right.map(GridColumn::right));
    columns.extend(["verdict", "other names"].map(GridColumn::left));
    let mut grid = Grid::new(columns);
    for (index, change) in comparison.caches.iter().enumerate() {
        if all || index == 0 || has_news(change) {
            grid.add_row(cache_change_cells(change, named));
        }
    }
    grid
}

/// What must be named in each row, because there are several.
#[derive(Debug, Clone, Copy)]
struct NamedColumns {
    cases: bool,
    candidates: bool,
}

impl NamedColumns {
    fn from_comparison(comparison: &SlabComparison) -> Self {
        let differ = |of: fn(&CacheChange) -> &str| {
            let first = comparison.caches.first().map(of);
            comparison.caches.iter().any(|change| Some(of(change)) != first)
        };
        NamedColumns {
            cases: differ(|change| &change.subject),
            candidates: differ(|change| &change.candidate_name),
        }
    }
}

/// Whether anything is to be said of a cache beyond "as before".
fn has_news(change: &CacheChange) -> bool {
    let moved = change.bytes.is_some_and(|bytes| bytes.value.abs() > change.floor);
    moved || matches!(change.verdict, Verdict::Better | Verdict::Worse)
}

fn cache_change_cells(change: &CacheChange, named: NamedColumns) -> Vec<GridCell> {
    let median = |row: &perflab_analyze::VerdictRow, after: bool| {
        let summary = if after { row.candidate.as_ref() } else { row.baseline.as_ref() };
        summary.map(|summary| summary.median)
    };
    let size = |value: Option<f64>| value.map_or_else(GridCell::missing, cells::mean_bytes_cell);
    let difference = |row: &Option<perflab_analyze::VerdictRow>| {
        let row = row.as_ref()?;
        Some(median(row, true)? - median(row, false)?)
    };
    let mut cells = vec![GridCell::from(change.cache.as_str())];
    cells.extend(named.cases.then(|| change.subject.as_str().into()));
    cells.extend(named.candidates.then(|| change.candidate_name.as_str().into()));
    cells.extend([
        size(median(&change.mean, false)),
        size(median(&change.mean, true)),
        signed_cell(change.bytes.map(|bytes| bytes.value)),
        change_interval_cell(change.bytes),
        signed_cell(difference(&change.peak)),
        signed_cell(difference(&change.end)),
        cells::mean_bytes_cell(change.floor),
        verdict_cell(change),
        cells::other_names_cell(&change.members, &change.cache),
    ]);
    cells
}

/// A change: with its sign.
fn signed_cell(value: Option<f64>) -> GridCell {
    let Some(value) = value else { return GridCell::missing() };
    let cell = cells::mean_bytes_cell(value);
    if value.round() > 0.0 { GridCell::with_text(format!("+{}", cell.text()), value.round()) } else { cell }
}

fn change_interval_cell(change: Option<BytesChange>) -> GridCell {
    let ends = change.and_then(|change| change.low.zip(change.high));
    ends.map_or_else(GridCell::missing, |(low, high)| {
        let text = format!("{} … {}", signed_cell(Some(low)).text(), signed_cell(Some(high)).text());
        GridCell::with_text(text, vec![low, high])
    })
}

/// More bytes are worse; what is within the noise floor is the same.
fn verdict_cell(change: &CacheChange) -> GridCell {
    let word = change.verdict.word();
    if change.within_floor {
        GridCell::with_text(format!("{word} (within the floor)"), word)
    } else {
        word.into()
    }
}

/// The largest changes in bytes, with their intervals.
#[must_use]
pub fn slab_change_chart(comparison: &SlabComparison, top: usize) -> Scene {
    let named = NamedColumns::from_comparison(comparison);
    let bar = |change: &CacheChange| {
        let bytes = change.bytes?;
        let interval = bytes.low.zip(bytes.high);
        let name = match named.candidates {
            true => format!("{} ({})", change.cache, change.candidate_name),
            false => change.cache.clone(),
        };
        (bytes.value != 0.0).then(|| ChartBar { name, parts: vec![bytes.value], interval })
    };
    let names = (comparison.mean.baseline.as_str(), comparison.mean.candidates.join(", "));
    BarChart {
        title: format!("Slab bytes: {} against {}", names.1, names.0),
        note: "change of the mean over time, with its interval; more is worse".into(),
        unit: AxisUnit::Bytes,
        parts: Vec::new(),
        bars: comparison.caches.iter().filter_map(bar).take(top).collect(),
    }
    .render()
}
