//! One log as a queue of ticks with their times in the run. Looks two ticks ahead, so that the times of all
//! logs can be put in one order and the interval is known before the first tick is told.

use std::collections::VecDeque;

use perflab_model::series::Gap;
use perflab_model::{Cell, Column, Nanos, Row, SeriesSchema};

use super::column;
use super::format::{Tick, Ticks};
use super::took::Took;
use crate::ArchiveError;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;
/// Intervals without a dump that are a hole. lkp's monitors sleep a second and stamp whole ones, so that two are usual.
const HOLE: u64 = 3;

/// A log on its way into a run.
pub(crate) struct Feed {
    ticks: Box<dyn Ticks>,
    ahead: VecDeque<Tick>,
    timed: bool,
    given: u64,
    last: Option<Nanos>,
    displaced: u64,
    interval: Nanos,
}

impl Feed {
    /// Reads the first two ticks.
    pub(crate) fn open(ticks: Box<dyn Ticks>) -> Result<Self, ArchiveError> {
        let ahead = VecDeque::new();
        let mut feed =
            Feed { ticks, ahead, timed: false, given: 0, last: None, displaced: 0, interval: Nanos(SECOND) };
        feed.fill()?;
        feed.timed = feed.ahead.iter().any(|tick| tick.time.is_some());
        feed.interval = feed.measured().unwrap_or(feed.interval);
        feed.say_how_it_is_timed();
        Ok(feed)
    }

    /// Rows that are known at once and belong to the beginning.
    pub(crate) fn fixed(
        series: &'static str,
        source: &'static str,
        columns: Vec<Column>,
        rows: Vec<Row>,
        took: Took,
    ) -> Self {
        let ticks = Box::new(Fixed { series, source, columns, took });
        let ahead = VecDeque::from([Tick { time: None, rows }]);
        Feed { ticks, ahead, timed: false, given: 0, last: None, displaced: 0, interval: Nanos(SECOND) }
    }

    fn fill(&mut self) -> Result<(), ArchiveError> {
        while self.ahead.len() < 2
            && let Some(tick) = self.ticks.next_tick()?
        {
            self.ahead.push_back(tick);
        }
        Ok(())
    }

    fn say_how_it_is_timed(&mut self) {
        let note = match (self.ahead.len(), self.timed) {
            (0, _) => "it is empty: there is no dump in it",
            (2.., false) => "its dumps carry no `time:`: they stand at 0, 1, 2 ... s, which is their number",
            (1, false) => "its dump carries no `time:`",
            _ => return,
        };
        self.ticks.took().note(note);
    }

    /// Whether there is no dump in it.
    pub(crate) fn is_over(&self) -> bool {
        self.ahead.is_empty()
    }

    /// The first time that it gives, since 1970.
    pub(crate) fn first_time(&self) -> Option<Nanos> {
        let back = |tick: &Tick| tick.time.map(|time| Nanos(time.0.saturating_sub(SECOND)));
        match (self.ahead.front(), self.ahead.get(1)) {
            (Some(first), Some(second)) => first.time.or_else(|| back(second)),
            (first, _) => first.and_then(|tick| tick.time),
        }
    }

    /// A cell of the first tick's only row.
    pub(crate) fn first_cell(&self, column: &str) -> Option<&Cell> {
        let place = self.ticks.columns().iter().position(|known| known.name == column)?;
        self.ahead.front()?.rows.first()?.get(place)
    }

    /// The texts of a column in the first tick.
    pub(crate) fn first_texts(&self, column: &str) -> Vec<&str> {
        let columns = self.ticks.columns();
        let Some(place) = columns.iter().position(|known| known.name == column) else { return Vec::new() };
        let rows = self.ahead.front().map_or(&[][..], |tick| &tick.rows);
        rows.iter().filter_map(|row| row.get(place).and_then(text)).collect()
    }

    /// The page size that its first dump fits.
    pub(crate) fn page_size(&self) -> Option<u64> {
        self.ticks.page_size()
    }

    /// What its rows are.
    pub(crate) fn schema(&self) -> SeriesSchema {
        let schema = column::schema(self.ticks.series(), self.ticks.source(), self.ticks.columns());
        SeriesSchema { interval: self.interval, ..schema }
    }

    fn measured(&self) -> Option<Nanos> {
        let (first, second) = (self.ahead.front()?.time?, self.ahead.get(1)?.time?);
        (second > first).then(|| second.since(first))
    }

    /// When its next tick was, from `anchor` on.
    pub(crate) fn next_at(&self, anchor: Nanos) -> Option<Nanos> {
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

    /// The stretch between its last tick and the next one, where that is much longer than the first.
    pub(crate) fn hole(&self, anchor: Nanos) -> Option<Gap> {
        let (interval, from, to) = (self.interval, self.last?, self.next_at(anchor)?);
        let reason = || format!("the log has no dump for {}", to.since(from));
        let long = to.since(from).0 > interval.0.saturating_mul(HOLE);
        long.then(|| Gap { monitor: self.series().into(), from, to: Some(to), reason: reason() })
    }

    /// Takes the next tick.
    pub(crate) fn pop(&mut self, anchor: Nanos) -> Result<Option<(Nanos, Vec<Row>)>, ArchiveError> {
        let Some(at) = self.next_at(anchor) else { return Ok(None) };
        let Some(tick) = self.ahead.pop_front() else { return Ok(None) };
        let wanted = tick.time.map(|time| time.since(anchor));
        self.displaced += u64::from(self.timed && wanted != Some(at));
        (self.last, self.given) = (Some(at), self.given + 1);
        self.fill()?;
        Ok(Some((at, tick.rows)))
    }

    /// What was taken of it; complete once it is over.
    pub(crate) fn took(&self) -> Took {
        let mut took = self.ticks.took_so_far().clone();
        if self.displaced > 0 {
            took.note(format!(
                "dumps without a time of their own, or with one that is not after the dump before: {}; they stand \
                 1 ms after it (1 s before the next at the beginning)",
                self.displaced
            ));
        }
        took
    }

    /// The name of its series.
    pub(crate) fn series(&self) -> &'static str {
        self.ticks.series()
    }
}

fn text(cell: &Cell) -> Option<&str> {
    if let Cell::Text(text) = cell { Some(text) } else { None }
}

/// Ticks that were all given already.
struct Fixed {
    series: &'static str,
    source: &'static str,
    columns: Vec<Column>,
    took: Took,
}

impl Ticks for Fixed {
    fn series(&self) -> &'static str {
        self.series
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn columns(&self) -> Vec<Column> {
        self.columns.clone()
    }

    fn page_size(&self) -> Option<u64> {
        None
    }

    fn next_tick(&mut self) -> Result<Option<Tick>, ArchiveError> {
        Ok(None)
    }

    fn took(&mut self) -> &mut Took {
        &mut self.took
    }

    fn took_so_far(&self) -> &Took {
        &self.took
    }
}
