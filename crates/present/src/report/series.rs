//! Series as tracks: one line of a chart per subject and column, thinned where there are too many ticks.
//!
//! Thinning keeps the smallest and the largest value of each bucket of time, never a mean: a mean hides
//! exactly the spikes that a timeline is read for.

mod pack;
mod thin;

use indexmap::IndexMap;
use perflab_model::Nanos;
use perflab_model::series::{ColumnData, ColumnKind, Series};

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
        input.series.iter().map(|series| monitor(series, input, clock)).collect();
    for gap in &input.record.gaps {
        if !monitors.iter().any(|monitor| monitor.name == gap.monitor) {
            monitors.push(silent(&gap.monitor, input, clock));
        }
    }
    monitors
}

fn monitor(series: &Series, input: &RunInput, clock: Clock) -> data::Monitor {
    let (ticks, rows) = ticks(&series.at);
    let wide = tracks(series, &rows, ticks.len());
    let limit = (CELLS / wide.len().max(1)).clamp(FEWEST_TICKS, MOST_TICKS);
    let thinned = ticks.len() > limit;
    let at: Vec<i64> = ticks.iter().map(|tick| clock.micros(*tick)).collect();
    let tracks = wide.into_iter().map(|track| if thinned { track.thin(&at, limit) } else { track.whole() });
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

/// The distinct times, and for each row the index of its time.
fn ticks(at: &[Nanos]) -> (Vec<Nanos>, Vec<usize>) {
    let mut ticks: Vec<Nanos> = Vec::new();
    let mut rows = Vec::with_capacity(at.len());
    for time in at {
        if ticks.last() != Some(time) {
            ticks.push(*time);
        }
        rows.push(ticks.len() - 1);
    }
    (ticks, rows)
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

fn tracks<'a>(series: &'a Series, rows: &[usize], ticks: usize) -> Vec<Wide<'a>> {
    let mut subjects: IndexMap<String, Vec<(usize, usize)>> = IndexMap::new();
    for (row, tick) in rows.iter().enumerate() {
        subjects.entry(key(series, row)).or_default().push((row, *tick));
    }
    let columns = || series.schema.columns.iter().zip(&series.columns);
    let numbers = columns().filter(|(column, _)| column.kind != ColumnKind::Key);
    let pairs = numbers.flat_map(|column| subjects.iter().map(move |subject| (column, subject)));
    pairs
        .filter_map(|((column, stored), (key, places))| {
            Some(Wide { key: key.clone(), column, cells: gather(stored, places, ticks)? })
        })
        .collect()
}

fn key(series: &Series, row: usize) -> String {
    let texts = series.schema.columns.iter().zip(&series.columns).filter_map(|(column, stored)| {
        let ColumnData::Text(texts) = stored else { return None };
        (column.kind == ColumnKind::Key).then(|| texts.get(row)?.as_deref())?
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// One subject's cells; none where the column is text or never has a value.
fn gather(stored: &ColumnData, places: &[(usize, usize)], ticks: usize) -> Option<Cells> {
    match stored {
        ColumnData::Int(values) => pick(values, places, ticks).map(Cells::Int),
        ColumnData::Float(values) => pick(values, places, ticks).map(Cells::Float),
        ColumnData::Text(_) => None,
    }
}

fn pick<T: Copy>(values: &[Option<T>], places: &[(usize, usize)], ticks: usize) -> Option<Vec<Option<T>>> {
    let mut picked = vec![None; ticks];
    for (row, tick) in places {
        if let (Some(slot), Some(value)) = (picked.get_mut(*tick), values.get(*row)) {
            *slot = *value;
        }
    }
    picked.iter().any(Option::is_some).then_some(picked)
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
    let (name, unit) = (column.name.clone(), column.unit.0.clone());
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
