//! Series as tracks: one line of a chart per subject and column, thinned where there are too many ticks.
//!
//! Thinning keeps the smallest and the largest value of each bucket of time, never a mean: a mean hides
//! exactly the spikes that a timeline is read for.

mod pack;
mod thin;

use indexmap::IndexMap;
use perflab_model::series::{ColumnData, ColumnKind, Series, Spans};

use super::data::{self, TrackKind};
use super::input::RunInput;
use super::run::Clock;

/// Numbers (ticks x tracks) that one monitor may bring along; beyond it, its ticks are thinned.
const CELLS: usize = 400_000;
/// Ticks that are always kept: a desktop screen cannot show more than two in a pixel.
const FEWEST_TICKS: usize = 600;
/// More ticks than anyone can zoom into usefully.
const MOST_TICKS: usize = 6_000;

/// All monitors of a run that recorded something or that have a gap to tell of.
pub(super) fn monitors(input: &RunInput, clock: Clock) -> Vec<data::Monitor> {
    let mut monitors: Vec<data::Monitor> =
        input.series.iter().map(|spans| monitor(spans, input, clock)).collect();
    for gap in &input.record.gaps {
        if !monitors.iter().any(|monitor| monitor.name == gap.monitor) {
            monitors.push(silent(&gap.monitor, input, clock));
        }
    }
    monitors
}

fn monitor(spans: &Spans, input: &RunInput, clock: Clock) -> data::Monitor {
    let series = &spans.series;
    let subjects = subjects(series);
    let tracks: Vec<Place> = places(series, &subjects).collect();
    let limit = (CELLS / tracks.len().max(1)).clamp(FEWEST_TICKS, MOST_TICKS);
    let thinned = spans.ticks.len() > limit;
    let at: Vec<i64> = spans.ticks.iter().map(|tick| clock.micros(*tick)).collect();
    // One track after the other: all of them at all ticks would not fit into memory.
    let tracks = tracks.iter().map(|place| {
        let track = place.gathered(spans);
        if thinned { track.thin(&at, limit) } else { track.whole() }
    });
    data::Monitor {
        name: series.schema.monitor.clone(),
        source: series.schema.source.clone(),
        interval: i64::try_from(series.schema.interval.0 / 1000).unwrap_or(0),
        thinned,
        tracks: tracks.collect(),
        gaps: gaps(&series.schema.monitor, input, clock),
        at: pack::integers(if thinned { thin::times(&at, limit) } else { at }.into_iter().map(Some)),
    }
}

fn silent(name: &str, input: &RunInput, clock: Clock) -> data::Monitor {
    data::Monitor {
        name: name.into(),
        source: String::new(),
        interval: 0,
        at: pack::integers(std::iter::empty()),
        thinned: false,
        tracks: Vec::new(),
        gaps: gaps(name, input, clock),
    }
}

fn gaps(monitor: &str, input: &RunInput, clock: Clock) -> Vec<data::Gap> {
    let ours = input.record.gaps.iter().filter(|gap| gap.monitor == monitor);
    let gap = |gap: &perflab_model::series::Gap| data::Gap {
        from: clock.micros(gap.from).max(0),
        to: gap.to.map_or(clock.length(), |to| clock.micros(to)),
        reason: gap.reason.clone(),
    };
    ours.map(gap).collect()
}

/// One subject's column, and the rows that tell of it.
struct Place<'a> {
    key: &'a str,
    column: &'a perflab_model::Column,
    stored: &'a ColumnData,
    rows: &'a [usize],
}

/// One subject's column over all ticks.
struct Wide<'a> {
    key: String,
    column: &'a perflab_model::Column,
    cells: Cells,
}

enum Cells {
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
}

/// The rows of each subject.
fn subjects(series: &Series) -> IndexMap<String, Vec<usize>> {
    let mut subjects: IndexMap<String, Vec<usize>> = IndexMap::new();
    for row in 0..series.at.len() {
        subjects.entry(key(series, row)).or_default().push(row);
    }
    subjects
}

/// The columns of numbers, each with each subject that has any.
fn places<'a>(
    series: &'a Series,
    subjects: &'a IndexMap<String, Vec<usize>>,
) -> impl Iterator<Item = Place<'a>> {
    let columns = series.schema.columns.iter().zip(&series.columns);
    let numbers = columns.filter(|(column, _)| column.kind != ColumnKind::Key);
    let pairs = numbers.flat_map(move |column| subjects.iter().map(move |subject| (column, subject)));
    let places = pairs.map(|((column, stored), (key, rows))| Place { key, column, stored, rows });
    places.filter(Place::has_any)
}

fn key(series: &Series, row: usize) -> String {
    let texts = series.schema.columns.iter().zip(&series.columns).filter_map(|(column, stored)| {
        let ColumnData::Text(texts) = stored else { return None };
        (column.kind == ColumnKind::Key).then(|| texts.get(row)?.as_deref())?
    });
    texts.collect::<Vec<_>>().join(" ")
}

impl<'a> Place<'a> {
    /// Whether there is a number at all; a text is none.
    fn has_any(&self) -> bool {
        self.rows.iter().any(|row| match self.stored {
            ColumnData::Int(values) => values.get(*row).is_some_and(Option::is_some),
            ColumnData::Float(values) => values.get(*row).is_some_and(Option::is_some),
            ColumnData::Text(_) => false,
        })
    }

    fn gathered(&self, spans: &Spans) -> Wide<'a> {
        let cells = match self.stored {
            ColumnData::Int(values) => Cells::Int(pick(values, self.rows, spans)),
            ColumnData::Float(values) => Cells::Float(pick(values, self.rows, spans)),
            ColumnData::Text(_) => Cells::Int(Vec::new()),
        };
        Wide { key: self.key.to_owned(), column: self.column, cells }
    }
}

/// The number of each tick.
fn pick<T: Copy>(values: &[Option<T>], rows: &[usize], spans: &Spans) -> Vec<Option<T>> {
    let mut picked = vec![None; spans.ticks.len()];
    for row in rows {
        let ticks = picked.get_mut(spans.span(*row)).unwrap_or_default();
        ticks.fill(values.get(*row).copied().flatten());
    }
    picked
}

impl Wide<'_> {
    fn whole(self) -> data::Track {
        let counts = self.column.kind == ColumnKind::Counter;
        let kind = if counts { TrackKind::Growth } else { TrackKind::Gauge };
        let (values, liveliness) = match self.cells {
            Cells::Int(cells) => {
                let cells = if counts { growth(&cells, i64::checked_sub) } else { cells };
                let lively = thin::liveliness(cells.iter().flatten().map(|cell| *cell as f64));
                (pack::integers(cells.into_iter()), lively)
            }
            Cells::Float(cells) => {
                let cells = if counts { growth(&cells, |a, b| Some(a - b)) } else { cells };
                (pack::floats(&cells), thin::liveliness(cells.iter().flatten().copied()))
            }
        };
        describe(self.key, self.column, kind, values, liveliness)
    }

    fn thin(self, at: &[i64], limit: usize) -> data::Track {
        let counts = self.column.kind == ColumnKind::Counter;
        let kind = if counts { TrackKind::Rate } else { TrackKind::Gauge };
        let cells = match self.cells {
            Cells::Int(cells) if counts => thin::rates(at, &growth(&cells, i64::checked_sub)),
            Cells::Int(cells) => cells.into_iter().map(|cell| cell.map(|n| n as f64)).collect(),
            Cells::Float(cells) if counts => {
                let grown = growth(&cells, |a, b| Some(a - b));
                grown.iter().zip(thin::steps(at)).map(|(cell, step)| Some((*cell)? / step?)).collect()
            }
            Cells::Float(cells) => cells,
        };
        let kept = thin::extremes(&cells, limit);
        let lively = thin::liveliness(kept.iter().flatten().copied());
        describe(self.key, self.column, kind, pack::floats(&kept), lively)
    }
}

fn describe(
    key: String,
    column: &perflab_model::Column,
    kind: TrackKind,
    values: data::Packed,
    liveliness: f64,
) -> data::Track {
    let (name, unit) = (column.name.clone(), column.unit.to_string());
    data::Track { key, column: name, unit, kind, values, liveliness }
}

/// Growth since the tick before; missing where the counter went back (a reset) or was not read.
fn growth<T: Copy + PartialOrd + Default>(
    cells: &[Option<T>],
    minus: impl Fn(T, T) -> Option<T>,
) -> Vec<Option<T>> {
    let grown = cells.windows(2).map(|pair| match pair {
        [Some(before), Some(after)] => minus(*after, *before).filter(|more| *more >= T::default()),
        _ => None,
    });
    cells.first().map(|_| None).into_iter().chain(grown).collect()
}

#[cfg(test)]
mod tests;
