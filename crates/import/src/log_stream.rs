//! Several logs in one order of time.
//!
//! One log is a queue of ticks with their times in the run. It reads two ticks ahead, so that the times of all logs can
//! be put in one order and the interval is known before the first tick is passed on.

use std::collections::VecDeque;

use indexmap::IndexMap;
use perflab_model::series::SeriesGap;
use perflab_model::{CellRow, ColumnSpec, Nanos, SeriesSchema, TableCell};

use crate::dump_log::{FixedReadings, LoggedReading, ReadingSource};
use crate::error::ImportError;
use crate::import_report::FileReport;

const SECOND: u64 = 1_000_000_000;

const MILLISECOND: u64 = 1_000_000;

/// Intervals without a dump that are a hole. lkp's monitors sleep a second and stamp whole ones, so that two are usual.
const HOLE: u64 = 3;

/// A log on its way into a run.
pub(crate) struct LogStream {
    ticks: Box<dyn ReadingSource>,
    ahead: VecDeque<LoggedReading>,
    timed: bool,
    given: u64,
    last: Option<Nanos>,
    displaced: u64,
    interval: Nanos,
    order: Option<ColumnOrder>,
}

/// The columns of a series that several logs are of, and where each stands in the rows of one of them.
struct ColumnOrder {
    columns: Vec<ColumnSpec>,
    places: Vec<Option<usize>>,
}

/// Gives logs of one series the columns of all of them; what a log lacks is missing in its rows.
pub(crate) fn unify_columns(streams: &mut [LogStream]) {
    let mut series: IndexMap<&'static str, Vec<ColumnSpec>> = IndexMap::new();
    for stream in streams.iter().filter(|stream| !stream.is_finished()) {
        let columns = series.entry(stream.series_name()).or_default();
        let new =
            stream.ticks.columns().into_iter().filter(|column| !columns.contains(column)).collect::<Vec<_>>();
        columns.extend(new);
    }
    for stream in streams.iter_mut().filter(|stream| !stream.is_finished()) {
        let own = stream.ticks.columns();
        let columns = series.get(stream.series_name()).cloned().unwrap_or_default();
        if own != columns {
            let places = columns.iter().map(|column| own.iter().position(|one| one == column)).collect();
            stream.order = Some(ColumnOrder { columns, places });
        }
    }
}

impl ColumnOrder {
    fn reorder(&self, mut row: CellRow) -> CellRow {
        let mut cell = |place: &Option<usize>| {
            let cell = place.and_then(|place| row.get_mut(place));
            cell.map_or(TableCell::Missing, |cell| std::mem::replace(cell, TableCell::Missing))
        };
        self.places.iter().map(&mut cell).collect()
    }
}

impl LogStream {
    /// Reads the first two ticks.
    pub(crate) fn from_source(ticks: Box<dyn ReadingSource>) -> Result<Self, ImportError> {
        let mut stream = LogStream::new(ticks, VecDeque::new());
        stream.read_ahead()?;
        stream.timed = stream.ahead.iter().any(|tick| tick.time.is_some());
        stream.interval = stream.measured_interval().unwrap_or(stream.interval);
        stream.note_timing();
        Ok(stream)
    }

    /// Rows that are known at once and belong to the beginning.
    pub(crate) fn from_rows(
        series: &'static str,
        source: &'static str,
        columns: Vec<ColumnSpec>,
        rows: Vec<CellRow>,
        report: FileReport,
    ) -> Self {
        let ticks = Box::new(FixedReadings::exhausted(series, source, columns, report));
        LogStream::new(ticks, VecDeque::from([LoggedReading { time: None, rows }]))
    }

    /// A stream of which `ahead` was read.
    fn new(ticks: Box<dyn ReadingSource>, ahead: VecDeque<LoggedReading>) -> Self {
        LogStream {
            ticks,
            ahead,
            timed: false,
            given: 0,
            last: None,
            displaced: 0,
            interval: Nanos(SECOND),
            order: None,
        }
    }

    fn read_ahead(&mut self) -> Result<(), ImportError> {
        while self.ahead.len() < 2
            && let Some(tick) = self.ticks.next_reading()?
        {
            self.ahead.push_back(tick);
        }
        Ok(())
    }

    fn note_timing(&mut self) {
        let note = match (self.ahead.len(), self.timed) {
            (0, _) if self.ticks.report_mut().refused.is_some() => return,
            (0, _) => "it is empty: there is no dump in it",
            (2.., false) => "its dumps carry no `time:`: they stand at 0, 1, 2 ... s, which is their number",
            (1, false) => "its dump carries no `time:`",
            _ => return,
        };
        self.ticks.report_mut().add_note(note);
    }

    /// Whether there is no dump in it.
    pub(crate) fn is_finished(&self) -> bool {
        self.ahead.is_empty()
    }

    /// The first time that it gives, since 1970.
    pub(crate) fn first_time(&self) -> Option<Nanos> {
        let back = |tick: &LoggedReading| tick.time.map(|time| Nanos(time.0.saturating_sub(SECOND)));
        match (self.ahead.front(), self.ahead.get(1)) {
            (Some(first), Some(second)) => first.time.or_else(|| back(second)),
            (first, _) => first.and_then(|tick| tick.time),
        }
    }

    /// A cell of the first tick's only row.
    pub(crate) fn first_cell(&self, column: &str) -> Option<&TableCell> {
        let place = self.ticks.columns().iter().position(|known| known.name == column)?;
        self.ahead.front()?.rows.first()?.get(place)
    }

    /// The texts of a column in the first tick.
    pub(crate) fn first_texts(&self, column: &str) -> Vec<&str> {
        let columns = self.ticks.columns();
        let Some(place) = columns.iter().position(|known| known.name == column) else { return Vec::new() };
        let rows = self.ahead.front().map_or(&[][..], |tick| &tick.rows);
        rows.iter().filter_map(|row| row.get(place).and_then(cell_text)).collect()
    }

    /// The page size that its first dump fits.
    pub(crate) fn page_size(&self) -> Option<u64> {
        self.ticks.page_size()
    }

    /// What its rows are.
    pub(crate) fn series_schema(&self) -> SeriesSchema {
        let columns = self.order.as_ref().map_or_else(|| self.ticks.columns(), |order| order.columns.clone());
        SeriesSchema {
            stored: perflab_model::series::StoredRows::Every,
            monitor: self.ticks.series_name().into(),
            source: self.ticks.source().into(),
            interval: self.interval,
            columns,
        }
    }

    fn measured_interval(&self) -> Option<Nanos> {
        let (first, second) = (self.ahead.front()?.time?, self.ahead.get(1)?.time?);
        (second > first).then(|| second.since(first))
    }

    /// When its next tick was, from `anchor` on.
    pub(crate) fn next_time(&self, anchor: Nanos) -> Option<Nanos> {
        let tick = self.ahead.front()?;
        let second = || self.ahead.get(1).and_then(|tick| tick.time);
        let at = match (tick.time, self.last) {
            (Some(time), _) => time.since(anchor),
            (None, _) if !self.timed => Nanos(self.given.saturating_mul(SECOND)),
            (None, Some(last)) => last,
            (None, None) => Nanos(second().unwrap_or(anchor).since(anchor).0.saturating_sub(SECOND)),
        };
        let after = self.last.map_or(Nanos(0), |last| Nanos(last.0.saturating_add(MILLISECOND)));
        Some(if self.last.is_some_and(|last| at <= last) { after } else { at })
    }

    /// The range before its next tick, where that is much longer than an interval: since its own last one, or since
    /// `before`, the last one of an earlier log of the same series.
    pub(crate) fn gap_before_next(&self, anchor: Nanos, before: Option<Nanos>) -> Option<SeriesGap> {
        let (from, to) = (self.last.or(before)?, self.next_time(anchor)?);
        let reason = match self.last {
            Some(_) => format!("the log has no dump for {}", to.since(from)),
            None => format!("no log of it was written for {}", to.since(from)),
        };
        let long = to.since(from).0 > self.interval.0.saturating_mul(HOLE);
        long.then(|| SeriesGap { monitor: self.series_name().into(), from, to: Some(to), reason })
    }

    /// Takes the next tick.
    pub(crate) fn next_reading(
        &mut self,
        anchor: Nanos,
    ) -> Result<Option<(Nanos, Vec<CellRow>)>, ImportError> {
        let Some(at) = self.next_time(anchor) else { return Ok(None) };
        let Some(tick) = self.ahead.pop_front() else { return Ok(None) };
        let requested = tick.time.map(|time| time.since(anchor));
        self.displaced += u64::from(self.timed && requested != Some(at));
        (self.last, self.given) = (Some(at), self.given + 1);
        self.read_ahead()?;
        let rows = match &self.order {
            Some(order) => tick.rows.into_iter().map(|row| order.reorder(row)).collect(),
            None => tick.rows,
        };
        Ok(Some((at, rows)))
    }

    /// What was taken of it; complete once it is over.
    pub(crate) fn file_report(&self) -> FileReport {
        let mut report = self.ticks.file_report().clone();
        if self.displaced > 0 {
            report.add_note(format!(
                "dumps without a time of their own, or with one that is not after the dump before: {}; they stand \
                 1 ms after it (1 s before the next at the beginning)",
                self.displaced
            ));
        }
        report
    }

    /// The name of its series.
    pub(crate) fn series_name(&self) -> &'static str {
        self.ticks.series_name()
    }
}

fn cell_text(cell: &TableCell) -> Option<&str> {
    if let TableCell::Text(text) = cell { Some(text) } else { None }
}
