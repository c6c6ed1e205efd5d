//! Series as tracks: one line of a chart per subject and column, thinned where there are too many ticks.
//!
//! Thinning keeps the smallest and the largest value of each bucket of time, never a mean: a mean hides
//! exactly the spikes that a timeline is read for.

mod pack;
mod thin;

use indexmap::IndexMap;
use perflab_model::series::{ColumnData, ColumnKind, RowRuns, Series};

use super::data::{self, TrackKind};
use super::input::ReportRun;
use super::run::RunClock;

/// Numbers (ticks x tracks) that one monitor may bring along; beyond it, its ticks are thinned.
const CELLS: usize = 400_000;
/// Ticks that are always kept: a desktop screen cannot show more than two in a pixel.
const FEWEST_TICKS: usize = 600;
/// More ticks than anyone can zoom into usefully.
const MOST_TICKS: usize = 6_000;

/// All monitors of a run that recorded something or that have a gap to tell of.
pub(super) fn viewer_monitors(input: &ReportRun, clock: RunClock) -> Vec<data::ViewerMonitor> {
    let mut monitors: Vec<data::ViewerMonitor> =
        input.series.iter().map(|spans| viewer_monitor(spans, input, clock)).collect();
    for gap in &input.record.gaps {
        if !monitors.iter().any(|monitor| monitor.name == gap.monitor) {
            monitors.push(monitor_without_rows(&gap.monitor, input, clock));
        }
    }
    monitors
}

fn viewer_monitor(spans: &RowRuns, input: &ReportRun, clock: RunClock) -> data::ViewerMonitor {
    let series = &spans.series;
    let subjects = rows_by_subject(series);
    let tracks: Vec<TrackSource> = track_sources(series, &subjects).collect();
    let limit = (CELLS / tracks.len().max(1)).clamp(FEWEST_TICKS, MOST_TICKS);
    let thinned = spans.ticks.len() > limit;
    let at: Vec<i64> = spans.ticks.iter().map(|tick| clock.micros_at(*tick)).collect();
    // One track after the other: all of them at all ticks would not fit into memory.
    let tracks = tracks.iter().map(|place| {
        let track = place.values_by_tick(spans);
        if thinned { track.thinned_track(&at, limit) } else { track.whole_track() }
    });
    data::ViewerMonitor {
        name: series.schema.monitor.clone(),
        source: series.schema.source.clone(),
        interval: i64::try_from(series.schema.interval.0 / 1000).unwrap_or(0),
        thinned,
        tracks: tracks.collect(),
        gaps: viewer_gaps(&series.schema.monitor, input, clock),
        at: pack::pack_integers(
            if thinned { thin::bucket_times(&at, limit) } else { at }.into_iter().map(Some),
        ),
    }
}

fn monitor_without_rows(name: &str, input: &ReportRun, clock: RunClock) -> data::ViewerMonitor {
    data::ViewerMonitor {
        name: name.into(),
        source: String::new(),
        interval: 0,
        at: pack::pack_integers(std::iter::empty()),
        thinned: false,
        tracks: Vec::new(),
        gaps: viewer_gaps(name, input, clock),
    }
}

fn viewer_gaps(monitor: &str, input: &ReportRun, clock: RunClock) -> Vec<data::ViewerGap> {
    let ours = input.record.gaps.iter().filter(|gap| gap.monitor == monitor);
    let gap = |gap: &perflab_model::series::SeriesGap| data::ViewerGap {
        from: clock.micros_at(gap.from).max(0),
        to: gap.to.map_or(clock.length_in_micros(), |to| clock.micros_at(to)),
        reason: gap.reason.clone(),
    };
    ours.map(gap).collect()
}

/// One subject's column, and the rows that tell of it.
struct TrackSource<'a> {
    key: &'a str,
    column: &'a perflab_model::ColumnSpec,
    stored: &'a ColumnData,
    rows: &'a [usize],
}

/// One subject's column over all ticks.
struct TrackValues<'a> {
    key: String,
    column: &'a perflab_model::ColumnSpec,
    cells: TrackCells,
}

enum TrackCells {
    Int(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
}

/// The rows of each subject.
fn rows_by_subject(series: &Series) -> IndexMap<String, Vec<usize>> {
    let mut subjects: IndexMap<String, Vec<usize>> = IndexMap::new();
    for row in 0..series.at.len() {
        subjects.entry(subject_key(series, row)).or_default().push(row);
    }
    subjects
}

/// The columns of numbers, each with each subject that has any.
fn track_sources<'a>(
    series: &'a Series,
    subjects: &'a IndexMap<String, Vec<usize>>,
) -> impl Iterator<Item = TrackSource<'a>> {
    let columns = series.schema.columns.iter().zip(&series.columns);
    let numbers = columns.filter(|(column, _)| column.kind != ColumnKind::Key);
    let pairs = numbers.flat_map(move |column| subjects.iter().map(move |subject| (column, subject)));
    let places = pairs.map(|((column, stored), (key, rows))| TrackSource { key, column, stored, rows });
    places.filter(TrackSource::has_numbers)
}

fn subject_key(series: &Series, row: usize) -> String {
    let texts = series.schema.columns.iter().zip(&series.columns).filter_map(|(column, stored)| {
        let ColumnData::Text(texts) = stored else { return None };
        (column.kind == ColumnKind::Key).then(|| texts.get(row)?.as_deref())?
    });
    texts.collect::<Vec<_>>().join(" ")
}

impl<'a> TrackSource<'a> {
    /// Whether there is a number at all; a text is none.
    fn has_numbers(&self) -> bool {
        self.rows.iter().any(|row| match self.stored {
            ColumnData::Int(values) => values.get(*row).is_some_and(Option::is_some),
            ColumnData::Float(values) => values.get(*row).is_some_and(Option::is_some),
            ColumnData::Text(_) => false,
        })
    }

    fn values_by_tick(&self, spans: &RowRuns) -> TrackValues<'a> {
        let cells = match self.stored {
            ColumnData::Int(values) => TrackCells::Int(value_at_ticks(values, self.rows, spans)),
            ColumnData::Float(values) => TrackCells::Float(value_at_ticks(values, self.rows, spans)),
            ColumnData::Text(_) => TrackCells::Int(Vec::new()),
        };
        TrackValues { key: self.key.to_owned(), column: self.column, cells }
    }
}

/// The number of each tick.
fn value_at_ticks<T: Copy>(values: &[Option<T>], rows: &[usize], spans: &RowRuns) -> Vec<Option<T>> {
    let mut picked = vec![None; spans.ticks.len()];
    for row in rows {
        let ticks = picked.get_mut(spans.ticks_of_row(*row)).unwrap_or_default();
        ticks.fill(values.get(*row).copied().flatten());
    }
    picked
}

impl TrackValues<'_> {
    fn whole_track(self) -> data::MonitorTrack {
        let counts = self.column.kind == ColumnKind::Counter;
        let kind = if counts { TrackKind::Growth } else { TrackKind::Gauge };
        let (values, liveliness) = match self.cells {
            TrackCells::Int(cells) => {
                let cells = if counts { counter_steps(&cells, i64::checked_sub) } else { cells };
                let lively = thin::variability(cells.iter().flatten().map(|cell| *cell as f64));
                (pack::pack_integers(cells.into_iter()), lively)
            }
            TrackCells::Float(cells) => {
                let cells = if counts { counter_steps(&cells, |a, b| Some(a - b)) } else { cells };
                (pack::pack_floats(&cells), thin::variability(cells.iter().flatten().copied()))
            }
        };
        make_track(self.key, self.column, kind, values, liveliness)
    }

    fn thinned_track(self, at: &[i64], limit: usize) -> data::MonitorTrack {
        let counts = self.column.kind == ColumnKind::Counter;
        let kind = if counts { TrackKind::Rate } else { TrackKind::Gauge };
        let cells = match self.cells {
            TrackCells::Int(cells) if counts => {
                thin::counter_rates(at, &counter_steps(&cells, i64::checked_sub))
            }
            TrackCells::Int(cells) => cells.into_iter().map(|cell| cell.map(|n| n as f64)).collect(),
            TrackCells::Float(cells) if counts => {
                let grown = counter_steps(&cells, |a, b| Some(a - b));
                grown.iter().zip(thin::tick_lengths(at)).map(|(cell, step)| Some((*cell)? / step?)).collect()
            }
            TrackCells::Float(cells) => cells,
        };
        let kept = thin::bucket_extremes(&cells, limit);
        let lively = thin::variability(kept.iter().flatten().copied());
        make_track(self.key, self.column, kind, pack::pack_floats(&kept), lively)
    }
}

fn make_track(
    key: String,
    column: &perflab_model::ColumnSpec,
    kind: TrackKind,
    values: data::PackedColumn,
    liveliness: f64,
) -> data::MonitorTrack {
    let (name, unit) = (column.name.clone(), column.unit.to_string());
    data::MonitorTrack { key, column: name, unit, kind, values, liveliness }
}

/// Growth since the tick before; missing where the counter went back (a reset) or was not read.
fn counter_steps<T: Copy + PartialOrd + Default>(
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
