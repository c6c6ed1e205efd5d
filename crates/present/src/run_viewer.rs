//! What the viewers of iterations and timelines read of a run.
//!
//! `web/src/data.ts` mirrors the JSON. Cases, iterations and samples are on one clock: microseconds since the run's
//! first moment. Long columns are delta coded, see `packed_column`. Series are tracks, one line of a chart per subject
//! and column; where there are too many ticks, the smallest and the largest value of each bucket of time are kept,
//! never a mean, which would hide exactly the spikes that a timeline is read for.

use indexmap::IndexMap;
use perflab_analyze::derive_row_runs;
use perflab_model::column::ColumnKind;
use perflab_model::series::{RowRuns, Series};
use perflab_model::table::{CellColumn, TypedColumn};
use perflab_model::{IterationRecord, Nanos, RunData, RunRecord, Sample};
use serde::Serialize;

use crate::packed_column::{PackedColumn, embed_json};
use crate::section::{
    ReportData, Section, SectionBlock, SectionError, SectionViewer, ViewerData, no_conclusions,
};

/// Every iteration as a dot.
pub(crate) const ITERATIONS: Section = Section {
    id: "iterations",
    title: "Every iteration",
    conclusions: no_conclusions,
    blocks: iteration_blocks,
};

/// What the monitors recorded, over time.
pub(crate) const TIMELINES: Section =
    Section { id: "timelines", title: "Timelines", conclusions: no_conclusions, blocks: timeline_blocks };

/// The data of both viewers.
const DATA_ID: &str = "data";

fn iteration_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    if data.records().all(|record| record.samples.is_empty()) {
        return Ok(Vec::new());
    }
    let without_script =
        "The dots need JavaScript. Medians and numbers of iterations stand in the table of verdicts.";
    Ok(vec![run_data_viewer("iterations", without_script)])
}

fn timeline_blocks(data: &ReportData) -> Result<Vec<SectionBlock>, SectionError> {
    let mut is_empty = true;
    for run in &data.runs {
        is_empty &= run.series()?.is_empty() && run.record().gaps.is_empty();
    }
    if is_empty {
        return Ok(Vec::new());
    }
    let without_script = "The timelines need JavaScript. The archive holds every series as a table.";
    Ok(vec![run_data_viewer("timelines", without_script)])
}

fn run_data_viewer(name: &'static str, without_script: &'static str) -> SectionBlock {
    let data = ViewerData::Shared(run_viewer_data);
    SectionBlock::Viewer(SectionViewer { name, data_id: DATA_ID.into(), data, without_script, still: None })
}

fn run_viewer_data(data: &ReportData) -> Result<String, SectionError> {
    let runs = data.runs.iter().map(|run| viewer_run(run.as_ref())).collect::<Result<_, _>>()?;
    Ok(embed_json(&RunViewerData { runs })?)
}

/// Everything in `<script id="data">`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunViewerData {
    /// The runs, as given.
    pub runs: Vec<ViewerRun>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerRun {
    /// Label, or short id.
    pub name: String,
    /// When it began, milliseconds since 1970; 0 where nobody knows.
    pub start: u64,
    /// Microseconds from first to last thing recorded.
    pub length: i64,
    /// The plan's cases.
    pub cases: Vec<ViewerCase>,
    /// Iterations that began, in order of time.
    pub iterations: Vec<ViewerIteration>,
    /// Samples, one entry a metric.
    pub metrics: Vec<ViewerMetric>,
    /// Monitors, one entry each.
    pub monitors: Vec<ViewerMonitor>,
}

/// One case of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerCase {
    /// The whole case in one line.
    pub label: String,
    /// Workload and point, without factors.
    pub subject: String,
    /// Factor -> level.
    pub levels: IndexMap<String, String>,
}

/// One iteration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerIteration {
    /// Index into [`ViewerRun::cases`].
    pub case: u32,
    /// Which of its case, from 0.
    pub iteration: u32,
    /// Run, but not measured.
    pub warmup: bool,
    /// Why it gave no sample; left out where it went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// When it began.
    pub start: i64,
    /// When it ended.
    pub end: i64,
}

/// The samples of one metric of one run, column by column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerMetric {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// "higher", "lower" or "neither".
    pub direction: String,
    /// Whether it decides.
    pub primary: bool,
    /// Case of each sample.
    pub case: Vec<u32>,
    /// Iteration of each sample.
    pub iteration: Vec<u32>,
    /// When its iteration began.
    pub start: Vec<i64>,
    /// The values, in the unit.
    pub value: Vec<f64>,
}

/// One monitor's series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerMonitor {
    /// Its name.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// Wanted time between ticks, microseconds.
    pub interval: i64,
    /// Tick times, microseconds, shared by all tracks.
    pub at: PackedColumn,
    /// Whether ticks were thinned to the extremes of each bucket of time.
    pub thinned: bool,
    /// One line of the chart each.
    pub tracks: Vec<MonitorTrack>,
    /// Ranges without rows.
    pub gaps: Vec<ViewerGap>,
}

/// One column of one subject (a cache, a CPU, a device).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MonitorTrack {
    /// The subject; empty where the monitor has only one.
    pub key: String,
    /// The column's name.
    pub column: String,
    /// The column's unit, without `/s` for counters.
    pub unit: String,
    /// What [`MonitorTrack::values`] are.
    pub kind: TrackKind,
    /// The numbers.
    pub values: PackedColumn,
    /// How much it varies, from 0 (not at all); the picker's order.
    pub liveliness: f64,
}

/// What a track's numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TrackKind {
    /// Values.
    Gauge,
    /// Growth since the tick before; divided by the time between them it is a rate.
    Growth,
    /// Rates, in the unit per second.
    Rate,
}

/// A range without rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViewerGap {
    /// Since when.
    pub from: i64,
    /// Until when; the run's end where it never came back.
    pub to: i64,
    /// Why.
    pub reason: String,
}

/// Microseconds since the run's first moment.
#[derive(Debug, Clone, Copy)]
struct RunClock {
    origin: Nanos,
    end: Nanos,
}

impl RunClock {
    /// The clock of a run: from the first to the last thing that it recorded.
    fn from_run(record: &RunRecord, series: &[RowRuns]) -> Self {
        let iterations = record.iterations.iter().flat_map(|one| [one.start, one.end]);
        let ticks = series.iter().flat_map(|one| [one.ticks.first(), one.ticks.last()]).flatten().copied();
        let (origin, end) = iterations
            .chain(ticks)
            .fold((Nanos(u64::MAX), Nanos(0)), |(first, last), at| (first.min(at), last.max(at)));
        RunClock { origin: origin.min(end), end }
    }

    /// A moment, in microseconds; negative before the first.
    fn micros_at(self, at: Nanos) -> i64 {
        let difference = i128::from(at.0) - i128::from(self.origin.0);
        i64::try_from(difference.div_euclid(1000)).unwrap_or(0)
    }

    /// The run's length in microseconds.
    fn length_in_micros(self) -> i64 {
        self.micros_at(self.end)
    }
}

/// The whole run.
fn viewer_run(run: &dyn RunData) -> Result<ViewerRun, SectionError> {
    let (record, series) = (run.record(), run.series()?);
    let clock = RunClock::from_run(record, series);
    let warmups: Vec<bool> = record.manifest.plan.slots.iter().map(|slot| slot.warmup).collect();
    Ok(ViewerRun {
        name: run_display_name(record),
        start: record.manifest.anchor.realtime.0 / 1_000_000,
        length: clock.length_in_micros(),
        cases: record.manifest.plan.cases.iter().map(viewer_case).collect(),
        iterations: record
            .iterations
            .iter()
            .filter_map(|one| viewer_iteration(record, one, &warmups, clock))
            .collect(),
        metrics: viewer_metrics(&record.samples, clock),
        monitors: viewer_monitors(record, series, clock),
    })
}

/// What a run is called on the page: its label, or the beginning of its id, by which the command line finds it.
pub(crate) fn run_display_name(record: &RunRecord) -> String {
    let id = &record.manifest.id;
    record.manifest.label.clone().unwrap_or_else(|| id.get(..10).unwrap_or(id).to_owned())
}

/// What a target of a run is called on the page.
pub(crate) fn target_display_name(record: &RunRecord, target: Option<u32>) -> String {
    let Some(index) = target else { return "this host".into() };
    let named = record.manifest.targets.get(index as usize);
    named.map_or_else(|| format!("target {index}"), |target| target.name.clone())
}

fn viewer_case(case: &perflab_model::Case) -> ViewerCase {
    ViewerCase { label: case.label(), subject: case.label_without_levels(), levels: case.levels.clone() }
}

fn viewer_iteration(
    record: &RunRecord,
    one: &IterationRecord,
    warmups: &[bool],
    clock: RunClock,
) -> Option<ViewerIteration> {
    let slot = record.manifest.plan.slots.get(one.slot as usize)?;
    Some(ViewerIteration {
        case: slot.case,
        iteration: slot.iteration,
        warmup: warmups.get(one.slot as usize).copied().unwrap_or(false),
        failure: one.outcome.failure_reason(),
        start: clock.micros_at(one.start),
        end: clock.micros_at(one.end),
    })
}

fn viewer_metrics(samples: &[Sample], clock: RunClock) -> Vec<ViewerMetric> {
    let mut found: IndexMap<(&str, &str), ViewerMetric> = IndexMap::new();
    for sample in samples {
        let metric = found.entry((&sample.metric, &sample.unit.0)).or_insert_with(|| empty_metric(sample));
        metric.case.push(sample.case);
        metric.iteration.push(sample.iteration);
        metric.start.push(clock.micros_at(sample.start));
        metric.value.push(sample.value);
    }
    let mut metrics: Vec<ViewerMetric> = found.into_values().collect();
    metrics.sort_by_key(|metric| !metric.primary);
    metrics
}

fn empty_metric(sample: &Sample) -> ViewerMetric {
    ViewerMetric {
        name: String::from(&sample.metric),
        unit: sample.unit.to_string(),
        direction: sample.direction.to_string(),
        primary: sample.primary,
        case: Vec::new(),
        iteration: Vec::new(),
        start: Vec::new(),
        value: Vec::new(),
    }
}

/// Numbers (ticks x tracks) that one monitor may bring along; beyond it, its ticks are thinned.
const CELLS: usize = 400_000;

/// Ticks that are always kept: a desktop screen cannot show more than two in a pixel.
const FEWEST_TICKS: usize = 600;

/// More ticks than anyone can zoom into usefully.
const MOST_TICKS: usize = 6_000;

/// All monitors of a run that recorded something or that have a gap to tell of.
fn viewer_monitors(record: &RunRecord, series: &[RowRuns], clock: RunClock) -> Vec<ViewerMonitor> {
    let mut monitors: Vec<ViewerMonitor> =
        series.iter().map(|spans| viewer_monitor(spans, record, clock)).collect();
    for gap in &record.gaps {
        if !monitors.iter().any(|monitor| monitor.name == gap.monitor) {
            monitors.push(monitor_without_rows(&gap.monitor, record, clock));
        }
    }
    monitors
}

fn viewer_monitor(spans: &RowRuns, record: &RunRecord, clock: RunClock) -> ViewerMonitor {
    let spans = &*derive_row_runs(spans);
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
    ViewerMonitor {
        name: series.schema.monitor.clone(),
        source: series.schema.source.clone(),
        interval: i64::try_from(series.schema.interval.0 / 1000).unwrap_or(0),
        thinned,
        tracks: tracks.collect(),
        gaps: viewer_gaps(&series.schema.monitor, record, clock),
        at: crate::packed_column::pack_integers(
            if thinned { crate::chart::thinning::bucket_times(&at, limit) } else { at }.into_iter().map(Some),
        ),
    }
}

fn monitor_without_rows(name: &str, record: &RunRecord, clock: RunClock) -> ViewerMonitor {
    ViewerMonitor {
        name: name.into(),
        source: String::new(),
        interval: 0,
        at: crate::packed_column::pack_integers(std::iter::empty()),
        thinned: false,
        tracks: Vec::new(),
        gaps: viewer_gaps(name, record, clock),
    }
}

fn viewer_gaps(monitor: &str, record: &RunRecord, clock: RunClock) -> Vec<ViewerGap> {
    let ours = record.gaps.iter().filter(|gap| gap.monitor == monitor);
    let gap = |gap: &perflab_model::series::SeriesGap| ViewerGap {
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
    stored: CellColumn<'a>,
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
    let columns = series.schema.columns.iter().zip(series.table.cell_columns());
    let keys: Vec<TypedColumn<'_, str>> = columns
        .filter_map(|(column, stored)| match stored {
            CellColumn::Text(texts) if column.kind == ColumnKind::Key => Some(texts),
            _ => None,
        })
        .collect();
    for row in 0..series.at.len() {
        subjects.entry(subject_key(&keys, row)).or_default().push(row);
    }
    subjects
}

/// The columns of numbers, each with each subject that has any.
fn track_sources<'a>(
    series: &'a Series,
    subjects: &'a IndexMap<String, Vec<usize>>,
) -> impl Iterator<Item = TrackSource<'a>> {
    let columns = series.schema.columns.iter().zip(series.table.cell_columns());
    let numbers = columns.filter(|(column, _)| column.kind != ColumnKind::Key);
    let pairs = numbers.flat_map(move |column| subjects.iter().map(move |subject| (column, subject)));
    let places = pairs.map(|((column, stored), (key, rows))| TrackSource { key, column, stored, rows });
    places.filter(TrackSource::has_numbers)
}

fn subject_key(keys: &[TypedColumn<'_, str>], row: usize) -> String {
    keys.iter().filter_map(|column| column.get(row)).collect::<Vec<_>>().join(" ")
}

impl<'a> TrackSource<'a> {
    /// Whether there is a number at all; a text is none.
    fn has_numbers(&self) -> bool {
        self.rows.iter().any(|row| self.stored.number(*row).is_some())
    }

    fn values_by_tick(&self, spans: &RowRuns) -> TrackValues<'a> {
        let cells = match self.stored {
            CellColumn::Int(values) => {
                TrackCells::Int(value_at_ticks(|row| values.get(row), self.rows, spans))
            }
            CellColumn::Float(values) => {
                TrackCells::Float(value_at_ticks(|row| values.get(row), self.rows, spans))
            }
            _ => TrackCells::Int(Vec::new()),
        };
        TrackValues { key: self.key.to_owned(), column: self.column, cells }
    }
}

/// The number of each tick.
fn value_at_ticks<T: Copy>(
    value: impl Fn(usize) -> Option<T>,
    rows: &[usize],
    spans: &RowRuns,
) -> Vec<Option<T>> {
    let mut picked = vec![None; spans.ticks.len()];
    for row in rows {
        let ticks = picked.get_mut(spans.ticks_of_row(*row)).unwrap_or_default();
        ticks.fill(value(*row));
    }
    picked
}

impl TrackValues<'_> {
    fn whole_track(self) -> MonitorTrack {
        let counts = self.column.kind == ColumnKind::Counter;
        let kind = if counts { TrackKind::Growth } else { TrackKind::Gauge };
        let (values, liveliness) = match self.cells {
            TrackCells::Int(cells) => {
                let cells = if counts { counter_steps(&cells, i64::checked_sub) } else { cells };
                let lively =
                    crate::chart::thinning::variability(cells.iter().flatten().map(|cell| *cell as f64));
                (crate::packed_column::pack_integers(cells.into_iter()), lively)
            }
            TrackCells::Float(cells) => {
                let cells = if counts { counter_steps(&cells, |a, b| Some(a - b)) } else { cells };
                (
                    crate::packed_column::pack_floats(&cells),
                    crate::chart::thinning::variability(cells.iter().flatten().copied()),
                )
            }
        };
        make_track(self.key, self.column, kind, values, liveliness)
    }

    fn thinned_track(self, at: &[i64], limit: usize) -> MonitorTrack {
        let counts = self.column.kind == ColumnKind::Counter;
        let kind = if counts { TrackKind::Rate } else { TrackKind::Gauge };
        let cells = match self.cells {
            TrackCells::Int(cells) if counts => {
                crate::chart::thinning::counter_rates(at, &counter_steps(&cells, i64::checked_sub))
            }
            TrackCells::Int(cells) => cells.into_iter().map(|cell| cell.map(|n| n as f64)).collect(),
            TrackCells::Float(cells) if counts => {
                let grown = counter_steps(&cells, |a, b| Some(a - b));
                grown
                    .iter()
                    .zip(crate::chart::thinning::tick_lengths(at))
                    .map(|(cell, step)| Some((*cell)? / step?))
                    .collect()
            }
            TrackCells::Float(cells) => cells,
        };
        let kept = crate::chart::thinning::bucket_extremes(&cells, limit);
        let lively = crate::chart::thinning::variability(kept.iter().flatten().copied());
        make_track(self.key, self.column, kind, crate::packed_column::pack_floats(&kept), lively)
    }
}

fn make_track(
    key: String,
    column: &perflab_model::ColumnSpec,
    kind: TrackKind,
    values: PackedColumn,
    liveliness: f64,
) -> MonitorTrack {
    let (name, unit) = (column.name.clone(), column.unit.to_string());
    MonitorTrack { key, column: name, unit, kind, values, liveliness }
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
mod tests {
    use perflab_model::TableCell;
    use perflab_model::column::ColumnSpec;
    use perflab_model::series::{Series, SeriesSchema};
    use perflab_model::{Nanos, Unit};

    use super::*;
    use crate::chart::thinning;
    use crate::packed_column;
    use crate::packed_column::{PackedColumn, PackedItem};

    fn unpack_numbers(packed: &PackedColumn) -> Vec<Option<f64>> {
        let (mut at, mut all) = (0_i64, Vec::new());
        for item in &packed.items {
            match item {
                PackedItem::Step(step) => {
                    at += step;
                    all.push(Some(at as f64 / packed.scale));
                }
                PackedItem::Repeat([times]) => {
                    all.extend((0..*times).map(|_| Some(at as f64 / packed.scale)))
                }
                PackedItem::Missing(()) => all.push(None),
            }
        }
        all
    }

    #[test]
    fn packed_numbers_come_back_as_they_were() {
        let values = vec![Some(5), Some(5), Some(5), None, Some(5), Some(-2), None, None, Some(0)];
        let packed = packed_column::pack_integers(values.iter().copied());
        assert_eq!(unpack_numbers(&packed), values.iter().map(|v| v.map(|n| n as f64)).collect::<Vec<_>>());
        assert_eq!(serde_json::to_string(&packed.items).unwrap(), "[5,[2],null,0,-7,null,null,2]");
        let floats = vec![Some(0.25), Some(1.5), None, Some(12.125)];
        assert_eq!(unpack_numbers(&packed_column::pack_floats(&floats)), floats);
    }

    #[test]
    fn counters_grow_and_a_reset_is_missing() {
        let cells = [Some(10), Some(15), Some(3), None, Some(4), Some(9)];
        assert_eq!(counter_steps(&cells, i64::checked_sub), [None, Some(5), None, None, None, Some(5)]);
    }

    #[test]
    fn thinning_keeps_the_only_spike() {
        let mut values = vec![Some(1.0); 10_000];
        values[7_777] = Some(99.0);
        let kept = thinning::bucket_extremes(&values, 1_000);
        assert_eq!(kept.len(), 1_000);
        assert!(kept.contains(&Some(99.0)));
        let at: Vec<i64> = (0..10_000).collect();
        assert_eq!(thinning::bucket_times(&at, 1_000).len(), 1_000);
    }

    #[test]
    fn rows_of_one_tick_become_tracks_of_their_subjects() {
        let columns = vec![ColumnSpec::key("cache"), ColumnSpec::gauge("objects", "objects")];
        let schema = SeriesSchema {
            stored: perflab_model::series::StoredRows::Every,
            monitor: "slabinfo".into(),
            source: "/proc/slabinfo".into(),
            interval: Nanos(1),
            columns,
        };
        let row = |at, name: &str, number: Option<i64>| {
            let number = number.map_or(TableCell::Missing, TableCell::Int);
            (Nanos(at), vec![TableCell::Text(name.into()), number])
        };
        let rows = [row(0, "a", Some(1)), row(0, "b", Some(2)), row(9, "a", Some(3)), row(9, "b", None)];
        let series = Series::from_rows(schema, &rows);
        let spans = RowRuns::from_series(&series);
        let subjects = rows_by_subject(&spans.series);
        let tracks: Vec<_> = track_sources(&spans.series, &subjects)
            .map(|place| place.values_by_tick(&spans).whole_track())
            .collect();
        assert_eq!(tracks.len(), 2);
        assert_eq!((tracks[1].key.as_str(), tracks[1].column.as_str()), ("b", "objects"));
        assert_eq!(unpack_numbers(&tracks[1].values), [Some(2.0), None]);
        assert_eq!(tracks[0].unit, Unit::new("objects").0);
    }

    #[test]
    fn what_swings_widely_is_livelier_than_what_flickers() {
        let wide = thinning::variability([200_000.0, 400_000.0, 300_000.0].into_iter());
        let flicker = thinning::variability([0.0, 1.0, 0.0].into_iter());
        assert!(wide > flicker && flicker > thinning::variability([7.0, 7.0].into_iter()));
    }
}
