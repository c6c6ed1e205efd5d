//! Owns how a comparison of slab bytes is shown. It refuses verdicts: analysis gave them.

use perflab_analyze::Verdict;
use perflab_analyze::slab::{CacheChange, ChangeInBytes, SlabComparison};

use super::cells;
use crate::chart::{Bar, Bars, Scene, Unit};
use crate::table::{Cell, Column, Grid};

/// One row a cache; those that did not change only where `all` is wanted.
#[must_use]
pub fn grid(comparison: &SlabComparison, all: bool) -> Grid {
    let named = Named::of(comparison);
    let mut left = vec!["cache"];
    left.extend(named.cases.then_some("case"));
    left.extend(named.candidates.then_some("candidate"));
    let right = ["before", "after", "change", "interval", "peak", "end", "noise floor"];
    let mut columns: Vec<Column> = left.into_iter().map(Column::left).collect();
    columns.extend(right.map(Column::right));
    columns.extend(["verdict", "other names"].map(Column::left));
    let mut grid = Grid::new(columns);
    for (index, change) in comparison.caches.iter().enumerate() {
        if all || index == 0 || is_told(change) {
            grid.add(row(change, named));
        }
    }
    grid
}

/// What must be named in each row, because there are several.
#[derive(Debug, Clone, Copy)]
struct Named {
    cases: bool,
    candidates: bool,
}

impl Named {
    fn of(comparison: &SlabComparison) -> Self {
        let differ = |of: fn(&CacheChange) -> &str| {
            let first = comparison.caches.first().map(of);
            comparison.caches.iter().any(|change| Some(of(change)) != first)
        };
        Named { cases: differ(|change| &change.subject), candidates: differ(|change| &change.candidate_name) }
    }
}

/// Whether anything is to be said of a cache beyond "as before".
fn is_told(change: &CacheChange) -> bool {
    let moved = change.bytes.is_some_and(|bytes| bytes.value.abs() > change.floor);
    moved || matches!(change.verdict, Verdict::Better | Verdict::Worse)
}

fn row(change: &CacheChange, named: Named) -> Vec<Cell> {
    let median = |row: &perflab_analyze::Row, after: bool| {
        let summary = if after { row.candidate.as_ref() } else { row.baseline.as_ref() };
        summary.map(|summary| summary.median)
    };
    let size = |value: Option<f64>| value.map_or_else(Cell::missing, cells::mean_bytes);
    let difference = |row: &Option<perflab_analyze::Row>| {
        let row = row.as_ref()?;
        Some(median(row, true)? - median(row, false)?)
    };
    let mut cells = vec![Cell::from(change.cache.as_str())];
    cells.extend(named.cases.then(|| change.subject.as_str().into()));
    cells.extend(named.candidates.then(|| change.candidate_name.as_str().into()));
    cells.extend([
        size(median(&change.mean, false)),
        size(median(&change.mean, true)),
        signed(change.bytes.map(|bytes| bytes.value)),
        interval(change.bytes),
        signed(difference(&change.peak)),
        signed(difference(&change.end)),
        cells::mean_bytes(change.floor),
        verdict(change),
        cells::others(&change.members, &change.cache),
    ]);
    cells
}

/// A change: with its sign.
fn signed(value: Option<f64>) -> Cell {
    let Some(value) = value else { return Cell::missing() };
    let cell = cells::mean_bytes(value);
    if value.round() > 0.0 { Cell::shown(format!("+{}", cell.text()), value.round()) } else { cell }
}

fn interval(change: Option<ChangeInBytes>) -> Cell {
    let ends = change.and_then(|change| change.low.zip(change.high));
    ends.map_or_else(Cell::missing, |(low, high)| {
        let text = format!("{} … {}", signed(Some(low)).text(), signed(Some(high)).text());
        Cell::shown(text, vec![low, high])
    })
}

/// More bytes are worse; what is within the noise floor is the same.
fn verdict(change: &CacheChange) -> Cell {
    let word = change.verdict.word();
    if change.within_floor { Cell::shown(format!("{word} (within the floor)"), word) } else { word.into() }
}

/// The largest changes in bytes, with their intervals.
#[must_use]
pub fn figure(comparison: &SlabComparison, top: usize) -> Scene {
    let named = Named::of(comparison);
    let bar = |change: &CacheChange| {
        let bytes = change.bytes?;
        let interval = bytes.low.zip(bytes.high);
        let name = match named.candidates {
            true => format!("{} ({})", change.cache, change.candidate_name),
            false => change.cache.clone(),
        };
        (bytes.value != 0.0).then(|| Bar { name, parts: vec![bytes.value], interval })
    };
    let names = (comparison.mean.baseline.as_str(), comparison.mean.candidates.join(", "));
    Bars {
        title: format!("Slab bytes: {} against {}", names.1, names.0),
        note: "change of the mean over time, with its interval; more is worse".into(),
        unit: Unit::Bytes,
        parts: Vec::new(),
        bars: comparison.caches.iter().filter_map(bar).take(top).collect(),
    }
    .scene()
}
