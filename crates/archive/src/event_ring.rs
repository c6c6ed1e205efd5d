//! The last events of a stream in memory: as many as fit into a time and a size, whichever is less.
//!
//! What is let go of is not lost for what follows: the ring knows every monitor's whole tick before its first event, its schema,
//! gaps that are open, the first warnings and what machines said about themselves, so that what it holds is a stream of its own ([`RingReplay`]).

use std::collections::{HashMap, VecDeque};

use indexmap::IndexMap;
use perflab_model::series::SeriesGap;
use perflab_model::{Bytes, CellRow, LatestTicks, Nanos, RunEvent, RunEventKind, TableCell};

/// Warnings of before its first event that are kept: they hold for all that follows.
const WARNINGS: usize = 20;

/// What an allocation costs beside its contents: malloc's header and rounding.
const ALLOCATION: u64 = 16;

/// A series of a stream: its target and monitor.
type SeriesKey = (Option<u32>, String);

/// The last events of a stream.
#[derive(Debug)]
pub struct EventRing {
    keep: Nanos,
    limit: Bytes,
    /// Oldest first, each with its size.
    events: VecDeque<(RunEvent, u64)>,
    event_bytes: u64,
    /// The tick of each monitor before its first event here.
    base: LatestTicks,
    base_bytes: HashMap<SeriesKey, u64>,
    openings: IndexMap<SeriesKey, RunEvent>,
    open_gaps: Vec<(RunEvent, SeriesGap)>,
    warnings: Vec<RunEvent>,
    /// What machines said about themselves, which comes once and is never too old.
    documents: Vec<RunEvent>,
    /// The time of the latest event.
    newest: Nanos,
    /// The time from which nothing was let go of for want of room.
    cut: Option<Nanos>,
}

impl EventRing {
    /// For the events of the last `keep`, in at most `limit` of memory.
    #[must_use]
    pub fn new(keep: Nanos, limit: Bytes) -> Self {
        EventRing {
            keep,
            limit,
            events: VecDeque::new(),
            event_bytes: 0,
            base: LatestTicks::default(),
            base_bytes: HashMap::new(),
            openings: IndexMap::new(),
            open_gaps: Vec::new(),
            warnings: Vec::new(),
            documents: Vec::new(),
            newest: Nanos(0),
            cut: None,
        }
    }

    /// Takes the next event of the stream, and lets go of what is too old or does not fit.
    pub fn push(&mut self, event: RunEvent) {
        self.newest = self.newest.max(event.at);
        if matches!(event.what, RunEventKind::Document(_)) {
            self.documents.push(event);
            return;
        }
        let bytes = event_bytes(&event);
        self.event_bytes += bytes;
        self.events.push_back((event, bytes));
        while let Some((oldest, _)) = self.events.front() {
            let is_old = self.newest.since(oldest.at) > self.keep;
            if !is_old && self.bytes() <= self.limit {
                break;
            }
            if !is_old {
                self.cut = Some(oldest.at);
            }
            self.let_go_of_oldest();
        }
    }

    /// How far back it reaches: the time between its first event and the latest.
    #[must_use]
    pub fn span(&self) -> Nanos {
        self.newest.since(self.begin())
    }

    /// The time of its first event; of the latest, where it holds none.
    #[must_use]
    pub fn begin(&self) -> Nanos {
        self.events.front().map_or(self.newest, |(event, _)| event.at)
    }

    /// The memory that its events take, as their cells and texts have it.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(self.event_bytes + self.base_bytes.values().sum::<u64>())
    }

    /// How many events it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Whether it holds less than it is to, for want of room: something was let go of that is not too old yet.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.cut.is_some_and(|cut| self.newest.since(cut) <= self.keep)
    }

    fn let_go_of_oldest(&mut self) {
        let Some((event, bytes)) = self.events.pop_front() else { return };
        self.event_bytes -= bytes;
        match &event.what {
            RunEventKind::Rows { monitor, .. } => {
                let key = (event.target, monitor.clone());
                self.base_bytes.insert(key, bytes);
                self.base.apply(event);
            }
            RunEventKind::Changed { .. } => {
                self.base.apply(event);
            }
            RunEventKind::SeriesOpened(schema) => {
                self.openings.insert((event.target, schema.monitor.clone()), event);
            }
            RunEventKind::Gap(gap) => self.note_gap(gap.clone(), event),
            RunEventKind::Warning { .. } if self.warnings.len() < WARNINGS => self.warnings.push(event),
            _ => {}
        }
    }

    /// A gap that has ended before the first event is of no interest any more.
    fn note_gap(&mut self, gap: SeriesGap, event: RunEvent) {
        self.open_gaps.retain(|(known, open)| known.target != event.target || !gap.is_end_of(open));
        if gap.to.is_none() {
            self.open_gaps.push((event, gap));
        }
    }
}

/// What a ring holds as a stream of its own, and what comes after it: every monitor's ticks begin with a whole one.
#[derive(Debug, Default)]
pub struct RingReplay {
    /// Of each series that has begun: the step of its whole tick.
    begun: HashMap<SeriesKey, u32>,
}

impl RingReplay {
    /// Gives `take` all that a ring holds, in order: documents, schemas, open gaps and warnings of before first, at the time of its first
    /// event.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn replay<E>(
        &mut self,
        ring: &EventRing,
        mut take: impl FnMut(&RunEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = ring.begin();
        let gaps = ring.open_gaps.iter().map(|(event, _)| event);
        for before in ring.documents.iter().chain(ring.openings.values()).chain(gaps).chain(&ring.warnings) {
            take(&RunEvent { at: begin, ..before.clone() })?;
        }
        ring.events.iter().try_for_each(|(event, _)| self.pass(ring, event, &mut take))
    }

    /// Gives `take` an event that follows on what a ring holds, before the ring gets it.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn pass<E>(
        &mut self,
        ring: &EventRing,
        event: &RunEvent,
        mut take: impl FnMut(&RunEvent) -> Result<(), E>,
    ) -> Result<(), E> {
        match &event.what {
            RunEventKind::Rows { monitor, .. } => {
                self.begun.insert((event.target, monitor.clone()), 0);
                take(event)
            }
            RunEventKind::Changed { monitor, step, rows, took } => {
                let key = (event.target, monitor.clone());
                let (step, took, monitor) = (*step, *took, monitor.clone());
                let what = match self.begun.get(&key) {
                    Some(0) => return take(event),
                    Some(whole) => {
                        RunEventKind::Changed { monitor, step: step - whole, rows: rows.clone(), took }
                    }
                    None => {
                        let base = ring.base.find(event.target, &monitor);
                        let Some(rows) = base.and_then(|base| complete_tick(base, (step, rows))) else {
                            // What it changes was lost on the way: the next whole tick has all.
                            return Ok(());
                        };
                        self.begun.insert(key, step);
                        RunEventKind::Rows { monitor, rows, took }
                    }
                };
                take(&RunEvent { what, ..*event })
            }
            _ => take(event),
        }
    }
}

/// All rows of a tick that is changes to the one before; none where it does not follow.
fn complete_tick(
    (before, rows): (u32, &[CellRow]),
    (step, changes): (u32, &[(u32, CellRow)]),
) -> Option<Vec<CellRow>> {
    if before.checked_add(1) != Some(step) {
        return None;
    }
    let mut rows = rows.to_vec();
    for (place, row) in changes {
        *rows.get_mut(*place as usize)? = row.clone();
    }
    Some(rows)
}

/// The memory that an event takes: itself, its rows and texts.
fn event_bytes(event: &RunEvent) -> u64 {
    let own = size_of::<RunEvent>() as u64;
    let text = |text: &String| text.capacity() as u64 + ALLOCATION;
    let inner = match &event.what {
        RunEventKind::Rows { monitor, rows, .. } => {
            text(monitor) + rows.iter().map(|row| size_of::<CellRow>() as u64 + row_bytes(row)).sum::<u64>()
        }
        RunEventKind::Changed { monitor, rows, .. } => {
            let entry = size_of::<(u32, CellRow)>() as u64;
            text(monitor) + rows.iter().map(|(_, row)| entry + row_bytes(row)).sum::<u64>()
        }
        RunEventKind::Output { name, text: output, .. } => text(name) + text(output),
        RunEventKind::Warning { message, advice } => text(message) + text(advice),
        RunEventKind::Gap(gap) => text(&gap.monitor) + text(&gap.reason),
        RunEventKind::SeriesOpened(schema) => schema.columns.len() as u64 * 160,
        _ => 0,
    };
    own + inner
}

fn row_bytes(row: &CellRow) -> u64 {
    let texts = row.iter().map(|cell| match cell {
        TableCell::Text(text) => text.capacity() as u64 + ALLOCATION,
        _ => 0,
    });
    (row.capacity() * size_of::<TableCell>()) as u64 + ALLOCATION + texts.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use perflab_model::{ColumnSpec, FactDocument, SeriesSchema, series::StoredRows};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn row(device: &str, number: i64) -> CellRow {
        vec![TableCell::Text(device.into()), TableCell::Int(number)]
    }

    fn whole_tick(at: u64, rows: Vec<CellRow>) -> RunEvent {
        RunEvent::new(Nanos(at), RunEventKind::Rows { monitor: "disks".into(), rows, took: Nanos(1) })
    }

    fn changed_tick(at: u64, step: u32, rows: Vec<(u32, CellRow)>) -> RunEvent {
        let what = RunEventKind::Changed { monitor: "disks".into(), step, rows, took: Nanos(1) };
        RunEvent::new(Nanos(at), what)
    }

    fn opening() -> RunEvent {
        RunEvent::new(
            Nanos(0),
            RunEventKind::SeriesOpened(SeriesSchema {
                monitor: "disks".into(),
                source: "/proc/diskstats".into(),
                interval: Nanos(SECOND),
                columns: vec![ColumnSpec::key("device"), ColumnSpec::counter("reads", "1")],
                stored: StoredRows::Every,
            }),
        )
    }

    fn replayed(ring: &EventRing) -> Vec<RunEvent> {
        let mut events = Vec::new();
        let taken = RingReplay::default().replay(ring, |event| {
            events.push(event.clone());
            Ok::<(), ()>(())
        });
        taken.unwrap();
        events
    }

    /// All ticks of a stream as whole ones.
    fn whole_ticks(events: &[RunEvent]) -> Vec<(u64, Vec<CellRow>)> {
        let mut latest = LatestTicks::default();
        let tick = |event: &RunEvent| Some((event.at.0, latest.apply(event.clone())?.1.to_vec()));
        events.iter().filter_map(tick).collect()
    }

    /// A stream as a sampler sends it: every hundredth tick whole, the others changes of one row of three.
    fn sampled_stream(ticks: u64) -> Vec<RunEvent> {
        let tick = |tick: u64| {
            let at = tick * SECOND / 10;
            let number = tick as i64;
            if tick.is_multiple_of(100) {
                return whole_tick(at, ["a", "b", "c"].map(|device| row(device, number)).to_vec());
            }
            let place = (tick % 3) as usize;
            let changed = row(["a", "b", "c"][place], number);
            changed_tick(at, (tick % 100) as u32, vec![(place as u32, changed)])
        };
        std::iter::once(opening()).chain((0..ticks).map(tick)).collect()
    }

    #[test]
    fn what_is_held_is_the_end_of_the_stream_with_every_tick_whole() {
        let stream = sampled_stream(1000);
        let all = whole_ticks(&stream);
        for taken in [1, 2, 50, 100, 101, 102, 250, 999, 1001] {
            let mut ring = EventRing::new(Nanos(3 * SECOND), Bytes(1 << 30));
            stream.iter().take(taken).for_each(|event| ring.push(event.clone()));
            let events = replayed(&ring);
            let ticks = whole_ticks(&events);
            let expected = all.get(..taken.saturating_sub(1)).unwrap();
            let expected = expected.get(expected.len().saturating_sub(31)..).unwrap();
            assert_eq!(ticks, expected, "of {taken} events");
            assert!(matches!(events[0].what, RunEventKind::SeriesOpened(_)), "of {taken} events");
            assert_eq!(events[0].at, ring.begin());
        }
    }

    #[test]
    fn what_comes_after_follows_on_what_was_held() {
        let stream = sampled_stream(300);
        let mut ring = EventRing::new(Nanos(2 * SECOND), Bytes(1 << 30));
        let (before, after) = stream.split_at(151);
        before.iter().for_each(|event| ring.push(event.clone()));
        let (mut events, mut replay) = (Vec::new(), RingReplay::default());
        let mut take = |event: &RunEvent| {
            events.push(event.clone());
            Ok::<(), ()>(())
        };
        replay.replay(&ring, &mut take).unwrap();
        for event in after {
            replay.pass(&ring, event, &mut take).unwrap();
            ring.push(event.clone());
        }
        let all = whole_ticks(&stream);
        assert_eq!(whole_ticks(&events), all[all.len() - 171..]);
    }

    #[test]
    fn memory_shortens_what_is_held_and_that_is_said() {
        let stream = sampled_stream(2000);
        let mut ring = EventRing::new(Nanos(60 * SECOND), Bytes(40_000));
        for event in &stream {
            ring.push(event.clone());
            assert!(ring.bytes() <= Bytes(40_000), "{:?}", ring.bytes());
        }
        assert!(ring.is_cut_short());
        let held = ring.span();
        assert!(held > Nanos(SECOND) && held < Nanos(60 * SECOND), "{held}");
        let all = whole_ticks(&stream);
        let ticks = whole_ticks(&replayed(&ring));
        assert_eq!(ticks, all[all.len() - ticks.len()..], "it is the end all the same");
        let mut roomy = EventRing::new(Nanos(60 * SECOND), Bytes(64 << 20));
        stream.iter().for_each(|event| roomy.push(event.clone()));
        assert_eq!((roomy.is_cut_short(), roomy.span()), (false, Nanos(60 * SECOND)));
    }

    #[test]
    fn a_monitor_slower_than_the_ring_begins_with_a_whole_tick_too() {
        let mut ring = EventRing::new(Nanos(SECOND), Bytes(1 << 20));
        ring.push(opening());
        ring.push(whole_tick(0, vec![row("a", 1), row("b", 2)]));
        ring.push(changed_tick(10 * SECOND, 1, vec![(1, row("b", 5))]));
        let warning = RunEventKind::Warning { message: "m".into(), advice: "a".into() };
        ring.push(RunEvent::new(Nanos(30 * SECOND), warning));
        assert_eq!(whole_ticks(&replayed(&ring)), [], "its last tick is older than what is held");
        let (mut events, mut replay) = (Vec::new(), RingReplay::default());
        let next = changed_tick(40 * SECOND, 2, vec![(0, row("a", 7))]);
        let taken = replay.pass(&ring, &next, |event| {
            events.push(event.clone());
            Ok::<(), ()>(())
        });
        taken.unwrap();
        assert_eq!(events, [whole_tick(40 * SECOND, vec![row("a", 7), row("b", 5)])]);
    }

    #[test]
    fn open_gaps_and_warnings_of_before_are_part_of_what_is_held() {
        let gap = |from: u64, to: Option<u64>| {
            let (monitor, reason) = ("disks".to_owned(), "no such file".to_owned());
            RunEvent::new(
                Nanos(to.unwrap_or(from)),
                RunEventKind::Gap(SeriesGap { monitor, from: Nanos(from), to: to.map(Nanos), reason }),
            )
        };
        let mut ring = EventRing::new(Nanos(5), Bytes(1 << 20));
        let warning = RunEventKind::Warning { message: "over its budget".into(), advice: "a".into() };
        [gap(1, None), gap(1, Some(3)), gap(8, None), RunEvent::new(Nanos(9), warning), gap(100, None)]
            .into_iter()
            .for_each(|event| ring.push(event));
        let held = replayed(&ring);
        let kinds: Vec<_> = held
            .iter()
            .map(|event| match &event.what {
                RunEventKind::Gap(gap) => (event.at.0, format!("gap from {}", gap.from.0)),
                other => (event.at.0, format!("{}", matches!(other, RunEventKind::Warning { .. }))),
            })
            .collect();
        assert_eq!(kinds, [(100, "gap from 8".into()), (100, "true".into()), (100, "gap from 100".into())]);
    }

    #[test]
    fn documents_are_held_however_old_and_long_they_are() {
        let text = "vm.swappiness = 60\n".repeat(1000);
        let document = FactDocument { name: FactDocument::SYSCTL.into(), source: "/proc/sys".into(), text };
        let mut ring = EventRing::new(Nanos(SECOND), Bytes(1000));
        let document = RunEvent::new(Nanos(0), RunEventKind::Document(document));
        [document.clone(), opening(), whole_tick(90 * SECOND, vec![row("a", 1)])]
            .into_iter()
            .for_each(|event| ring.push(event));
        assert!(!ring.is_cut_short());
        assert_eq!(replayed(&ring).first(), Some(&RunEvent { at: Nanos(90 * SECOND), ..document }));
    }

    /// Six hours at 10 Hz: memory is what a minute takes, and so is the count of events.
    #[test]
    fn hours_of_events_take_the_memory_of_what_is_kept() {
        let mut ring = EventRing::new(Nanos(60 * SECOND), Bytes(64 << 20));
        let (mut most, mut after_two_minutes) = (Bytes(0), Bytes(0));
        ring.push(opening());
        for tick in 0..6 * 3600 * 10_u64 {
            let step = (tick % 100) as u32;
            let at = tick * SECOND / 10;
            let rows: Vec<CellRow> =
                (0..8).map(|cpu| row(&format!("cpu{cpu}"), (tick * cpu) as i64)).collect();
            ring.push(match step {
                0 => whole_tick(at, rows),
                step => changed_tick(at, step, (0..8).zip(rows).collect()),
            });
            most = most.max(ring.bytes());
            if tick == 1200 {
                after_two_minutes = ring.bytes();
            }
        }
        assert_eq!(ring.len(), 601);
        assert!(most.0 <= after_two_minutes.0 + 4096, "{most:?}, after two minutes {after_two_minutes:?}");
        assert!(!ring.is_cut_short());
    }
}
