//! A trace made of time stamps that somebody else took: of probes in a program that knows nothing of this. Owns the pairing
//! of begins and ends, thread by thread; refuses to guess an end that did not come: the operation is flagged.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::{ClockKind, Pair};
use crate::format::{Cost, EventKind, FLAG_UNBALANCED, Header, Inside};
use crate::record::{OWN, State};
use crate::room::{Room, create_own};
use crate::trace::Summary;
use crate::writer::Writer;
use crate::{Error, Words};

/// Words of a block, about.
const BLOCK: usize = 8192;

/// What a time stamp means. Numbers are indices into [`Words`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// An operation begins. Inside another one it is not an operation of its own, and the outer one is flagged.
    Begin(u8),
    /// The operation ends.
    End(u8),
    /// A span begins.
    Enter(u8),
    /// A span ends. One that ends around others ends them too, and the operation is flagged.
    Leave(u8),
    /// The thread was taken off the CPU while it wanted to run.
    Preempted,
    /// The thread left the CPU to wait.
    Waited,
    /// The thread is on the CPU again.
    Resumed,
    /// A page was not there.
    Fault,
}

/// What taking the stamps costs, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StampCost {
    /// Between the stamps of a begin and an end with nothing between.
    pub between: f64,
    /// A begin and an end in all: what they lengthen the operation around them by.
    pub pair: f64,
}

impl StampCost {
    /// As a line of a header has it, behind its list.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (between, pair) = text.split_once(' ')?;
        let number = |text: &str| text.parse().ok().filter(|value: &f64| value.is_finite());
        Some(Self { between: number(between)?, pair: number(pair)? })
    }

    fn dearest(of: &[Self]) -> Self {
        let greater =
            |a: Self, b: &Self| Self { between: a.between.max(b.between), pair: a.pair.max(b.pair) };
        of.iter().fold(Self::default(), greater)
    }
}

/// Where on which stack a time stamp was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spot {
    /// The stack pointer, where a begin and its end have the same: what lies deeper when an end comes, or as deep when a
    /// begin comes, was left some other way. Without it the innermost begin is ended.
    pub stack: Option<u64>,
    /// The goroutine, in programs whose stacks move and whose routines change threads: then only an equal stack pointer
    /// says that something was left.
    pub routine: Option<u64>,
}

/// What became of the begins of one kind of operation, or of span. All but `entered` and `unbegun` add up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entries {
    /// Begins.
    pub entered: u64,
    /// Ended as they should: these are in the trace.
    pub ended: u64,
    /// Left without an end: by longjmp, an exception, a panic.
    pub abandoned: u64,
    /// Operations inside one that was open: part of its time.
    pub nested: u64,
    /// Spans outside of any operation.
    pub outside: u64,
    /// Their end was lost, or came on another thread.
    pub lost: u64,
    /// Still open when watching ended.
    pub open: u64,
    /// Ends without a begin, which are no entries: what was open when watching began, or a begin that not all come by.
    pub unbegun: u64,
}

/// A trace file of somebody else's time stamps.
pub struct Stamps {
    path: PathBuf,
    room: Arc<Room>,
    header: Header,
    names: String,
    writer: Writer,
    threads: HashMap<i32, Thread>,
    summary: Summary,
    operations: Vec<Entries>,
    spans: Vec<Entries>,
}

/// Something that is open on a thread.
#[derive(Debug, Clone, Copy)]
struct Frame {
    what: Opened,
    stack: Option<u64>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Ended,
    Abandoned,
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opened {
    Operation(u8),
    /// an operation inside the one that is open
    Nested(u8),
    Span(u8),
}

struct Thread {
    /// of its lane in the file
    number: u32,
    state: State,
    /// what is open, the innermost last
    frames: Vec<Frame>,
    /// what lay in the operation that is open, and how often: the stamps of these are part of its time
    inside: BTreeMap<Inside, u32>,
    routine: Option<u64>,
    events: Vec<u64>,
    last: u64,
}

impl Stamps {
    /// Begins a trace in a new file, of stamps in nanoseconds of CLOCK_MONOTONIC. The costs are those of the kinds of
    /// operation and of span, in the order of the words.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(
        path: &Path,
        words: &Words,
        process: u32,
        (operations, spans): (&[StampCost], &[StampCost]),
    ) -> Result<Self, Error> {
        let file = create_own(path).map_err(Error::io("create", path))?;
        let mut header = Header {
            clock: ClockKind::Monotonic,
            process: u64::from(process),
            start: ClockKind::Monotonic.pair(),
            ns_per_tick: 1.0,
            cost: Cost::default(),
            refused: 0,
            words: String::new(),
        };
        let names = words.text();
        put_costs(&mut header, &names, (operations, spans));
        let room = Arc::new(Room::begin(file, &header).map_err(Error::io("write", path))?);
        let writer = Writer::new(room.clone());
        Ok(Self {
            path: path.into(),
            room,
            header,
            names,
            writer,
            threads: HashMap::new(),
            summary: Summary::default(),
            operations: Vec::new(),
            spans: Vec::new(),
        })
    }

    /// What taking the stamps cost, now that it is known better: of as many kinds as when the trace was created.
    pub fn set_costs(&mut self, costs: (&[StampCost], &[StampCost])) {
        put_costs(&mut self.header, &self.names, costs);
    }

    /// One time stamp of a thread; each thread's come in the order of time.
    pub fn mark(&mut self, thread: i32, ns: u64, mark: Mark) {
        self.mark_at(thread, ns, mark, Spot::default());
    }

    /// The same, with where it was taken.
    pub fn mark_at(&mut self, thread: i32, ns: u64, mark: Mark, spot: Spot) {
        let place = matches!(mark, Mark::Begin(_) | Mark::End(_) | Mark::Enter(_) | Mark::Leave(_));
        if place && spot.routine.is_some() {
            self.moved(thread, spot.routine);
        }
        let number = self.threads.len() as u32;
        let lossy = self.summary.events_lost > 0;
        let writer = &mut self.writer;
        let lane = self.threads.entry(thread).or_insert_with(|| {
            writer.opened(number, thread, None);
            Thread::new(number)
        });
        lane.last = ns;
        match mark {
            Mark::Begin(_) | Mark::Enter(_) => {
                let left = lane.left_before(spot);
                let lost = lossy || lane.routine != spot.routine;
                let fate = if lost { Fate::Lost } else { Fate::Abandoned };
                lane.routine = spot.routine;
                for frame in lane.close(left, ns) {
                    count(&mut self.operations, &mut self.spans, frame, fate);
                }
            }
            Mark::End(_) | Mark::Leave(_) if lane.routine != spot.routine => return,
            _ => {}
        }
        match mark {
            Mark::Begin(kind) => {
                let nested = lane.begin(writer, ns, kind, spot.stack);
                let entries = entries(&mut self.operations, kind);
                entries.entered += 1;
                entries.nested += u64::from(nested);
            }
            Mark::Enter(span) => {
                let inside = lane.enter(ns, span, spot.stack);
                let entries = entries(&mut self.spans, span);
                entries.entered += 1;
                entries.outside += u64::from(!inside);
            }
            Mark::End(_) | Mark::Leave(_) => {
                let ended = lane.end(ns, mark, spot);
                match mark {
                    Mark::End(kind) if ended.is_none() => entries(&mut self.operations, kind).unbegun += 1,
                    _ => {}
                }
                for (frame, fate) in ended.unwrap_or_default() {
                    let fate = if fate == Fate::Abandoned && lossy { Fate::Lost } else { fate };
                    count(&mut self.operations, &mut self.spans, frame, fate);
                }
            }
            Mark::Preempted => lane.events.extend([ns, EventKind::Preempted as u64]),
            Mark::Waited => lane.events.extend([ns, EventKind::Waited as u64]),
            Mark::Resumed => lane.events.extend([ns, EventKind::Resumed as u64]),
            Mark::Fault => lane.events.extend([ns, EventKind::Fault as u64]),
        }
    }

    /// A routine that now runs on one thread has nothing open on another: what it began there is lost.
    fn moved(&mut self, thread: i32, routine: Option<u64>) {
        for (_, lane) in
            self.threads.iter_mut().filter(|(other, lane)| **other != thread && lane.routine == routine)
        {
            let last = lane.last;
            for frame in lane.close(0, last) {
                count(&mut self.operations, &mut self.spans, frame, Fate::Lost);
            }
        }
    }

    /// What became of every begin so far: of each kind of operation, and of span, by its number.
    pub fn entries(&self) -> (Vec<Entries>, Vec<Entries>) {
        let (mut operations, mut spans) = (self.operations.clone(), self.spans.clone());
        for frame in self.threads.values().flat_map(|lane| &lane.frames) {
            match frame.what {
                Opened::Operation(kind) => entries(&mut operations, kind).open += 1,
                Opened::Span(span) => entries(&mut spans, span).open += 1,
                Opened::Nested(_) => {}
            }
        }
        (operations, spans)
    }

    /// Nobody looks from now on, for a time: what is open is counted as open, and its end is no end of anything.
    pub fn pause(&mut self) {
        self.close_all(|entries| &mut entries.open);
    }

    /// The process became another program: what was open is left.
    pub fn replaced(&mut self) {
        self.close_all(|entries| &mut entries.abandoned);
    }

    fn close_all(&mut self, fate: impl Fn(&mut Entries) -> &mut u64) {
        for lane in self.threads.values_mut() {
            let last = lane.last;
            for frame in lane.close(0, last) {
                match frame.what {
                    Opened::Operation(kind) => *fate(entries(&mut self.operations, kind)) += 1,
                    Opened::Span(span) => *fate(entries(&mut self.spans, span)) += 1,
                    Opened::Nested(_) => {}
                }
            }
        }
    }

    /// Time stamps that were lost before they came here: operations around them are not what they seem.
    pub fn lost(&mut self, stamps: u64) {
        self.summary.events_lost += stamps;
    }

    /// Writes what is left and ends the file. Operations that are still open did not end, and are left out.
    ///
    /// # Errors
    /// The file could not be written as a whole.
    pub fn finish(mut self) -> Result<Summary, Error> {
        let mut threads: Vec<Thread> = self.threads.into_values().collect();
        threads.sort_by_key(|thread| thread.number);
        threads.iter_mut().for_each(|thread| thread.flush(&mut self.writer));
        self.room.set_header(&self.header).map_err(Error::io("write", &self.path))?;
        self.writer.close(self.summary).map_err(Error::io("write", &self.path))
    }
}

/// Puts costs into a header, as one that is as long whatever they are.
fn put_costs(header: &mut Header, names: &str, (operations, spans): (&[StampCost], &[StampCost])) {
    let operation = StampCost::dearest(operations);
    let span = if spans.is_empty() { operation } else { StampCost::dearest(spans) };
    let around = (span.pair - span.between).max(0.0);
    let line =
        |list: char, cost: &StampCost| format!("c {list} {:018.3} {:018.3}\n", cost.between, cost.pair);
    let costs = operations.iter().map(|cost| line('o', cost)).chain(spans.iter().map(|cost| line('s', cost)));
    header.cost = Cost { operation: operation.between, around, span: span.between };
    header.words = names.to_owned() + &costs.collect::<String>();
}

fn entries(of: &mut Vec<Entries>, number: u8) -> &mut Entries {
    let number = usize::from(number);
    if of.len() <= number {
        of.resize(number + 1, Entries::default());
    }
    &mut of[number]
}

/// What was left without its end. Nested operations were counted when they began.
fn count(operations: &mut Vec<Entries>, spans: &mut Vec<Entries>, frame: Frame, fate: Fate) {
    let entries = match frame.what {
        Opened::Operation(kind) => entries(operations, kind),
        Opened::Span(span) => entries(spans, span),
        Opened::Nested(_) => return,
    };
    match fate {
        Fate::Ended => entries.ended += 1,
        Fate::Abandoned => entries.abandoned += 1,
        Fate::Lost => entries.lost += 1,
    }
}

impl Thread {
    fn new(number: u32) -> Self {
        Self {
            number,
            state: State::new(),
            frames: Vec::new(),
            inside: BTreeMap::new(),
            routine: None,
            events: Vec::new(),
            last: 0,
        }
    }

    /// The outermost frame that cannot be open any more, now that something begins there.
    fn left_before(&self, spot: Spot) -> usize {
        if self.routine != spot.routine {
            return 0;
        }
        let Some(now) = spot.stack else { return self.frames.len() };
        let left = |frame: &Frame| {
            frame.stack.is_some_and(|then| if spot.routine.is_some() { then == now } else { then <= now })
        };
        self.frames.iter().position(left).unwrap_or(self.frames.len())
    }

    /// Takes out all frames from one on. An operation among them is forgotten; spans of one that goes on end here.
    fn close(&mut self, from: usize, ns: u64) -> Vec<Frame> {
        let frames = self.frames.split_off(from.min(self.frames.len()));
        if frames.iter().any(|frame| matches!(frame.what, Opened::Operation(_))) {
            self.inside.clear();
            self.state.abandon_record();
        } else {
            for _ in frames.iter().filter(|frame| matches!(frame.what, Opened::Span(_))) {
                self.state.flags |= FLAG_UNBALANCED;
                self.state.leave(ns);
            }
        }
        frames
    }

    /// An operation or a span ends: what was open in it is left. None where none of that kind is open.
    fn end(&mut self, ns: u64, mark: Mark, spot: Spot) -> Option<Vec<(Frame, Fate)>> {
        let fits = |what: Opened| match (mark, what) {
            (Mark::End(kind), Opened::Operation(open) | Opened::Nested(open)) => kind == open,
            (Mark::Leave(span), Opened::Span(open)) => span == open,
            _ => false,
        };
        let Some(at) = self.matching(spot, fits) else {
            if matches!(mark, Mark::Leave(_)) {
                self.state.flags |= FLAG_UNBALANCED;
            }
            return None;
        };
        let ended = self.frames.get(at).copied()?;
        self.count_inside(at, ended.what);
        // Without a stack pointer it is only a count: what is open in it may be the outer one's.
        if spot.stack.is_none() && matches!(ended.what, Opened::Nested(_)) {
            self.frames.remove(at);
            return Some(Vec::new());
        }
        let inner = self.close(at + 1, ns);
        if !inner.is_empty() {
            self.state.flags |= FLAG_UNBALANCED;
        }
        self.frames.truncate(at);
        // A span's end does not say that operations without a stack pointer ended: their ends are yet to come.
        if matches!(ended.what, Opened::Span(_)) {
            let counts = |frame: &&Frame| matches!(frame.what, Opened::Nested(_)) && frame.stack.is_none();
            self.frames.extend(inner.iter().filter(counts));
        }
        match ended.what {
            Opened::Operation(_) => {
                self.state.inside(std::mem::take(&mut self.inside).into_iter());
                self.state.close_record(ns);
            }
            Opened::Span(_) => self.state.leave(ns),
            Opened::Nested(_) => {}
        }
        let inner = inner.into_iter().map(|frame| (frame, Fate::Abandoned));
        Some(inner.chain([(ended, Fate::Ended)]).collect())
    }

    /// Something that ended lay in what is open: of what was left without its end nobody knows what its stamps cost.
    fn count_inside(&mut self, at: usize, what: Opened) {
        let span = |frame: &Frame| if let Opened::Span(span) = frame.what { Some(span) } else { None };
        let around = self.frames.get(..at).into_iter().flatten().rev().find_map(span);
        let inside = match (what, around) {
            (Opened::Nested(kind), _) => Inside { is_operation: true, span: around.unwrap_or(OWN), kind },
            // What lies in no other span is told by its number.
            (Opened::Span(kind), Some(span)) => Inside { is_operation: false, span, kind },
            _ => return,
        };
        *self.inside.entry(inside).or_default() += 1;
    }

    /// The frame that ends now. A stack that moved has other addresses: then it is the innermost, and all move with it.
    fn matching(&mut self, spot: Spot, fits: impl Fn(Opened) -> bool) -> Option<usize> {
        let Some(now) = spot.stack else { return self.frames.iter().rposition(|frame| fits(frame.what)) };
        let equal = self.frames.iter().rposition(|frame| fits(frame.what) && frame.stack == Some(now));
        if equal.is_some() || spot.routine.is_none() {
            return equal;
        }
        let at = self.frames.iter().rposition(|frame| fits(frame.what))?;
        let moved = now.wrapping_sub(self.frames.get(at)?.stack?);
        for frame in &mut self.frames {
            frame.stack = frame.stack.map(|stack| stack.wrapping_add(moved));
        }
        Some(at)
    }

    /// Whether it lies in one that is open.
    fn begin(&mut self, writer: &mut Writer, ns: u64, kind: u8, stack: Option<u64>) -> bool {
        if self.state.open {
            self.state.flags |= FLAG_UNBALANCED;
            self.frames.push(Frame { what: Opened::Nested(kind), stack });
            return true;
        }
        if self.state.words.len() > BLOCK {
            self.flush(writer);
        }
        self.state.open_record(ns, kind);
        self.frames.push(Frame { what: Opened::Operation(kind), stack });
        false
    }

    /// Whether it lies in an operation.
    fn enter(&mut self, ns: u64, span: u8, stack: Option<u64>) -> bool {
        if self.state.open {
            self.frames.push(Frame { what: Opened::Span(span), stack });
            self.state.enter(ns, span);
        }
        self.state.open
    }

    /// Writes whole operations and the kernel's events so far. Between two operations, or at the end.
    fn flush(&mut self, writer: &mut Writer) {
        let closed = Pair { ticks: self.last, ns: self.last };
        writer.operations(self.number, &mut self.state, closed);
        writer.events(self.number, &self.events);
        self.events.clear();
    }
}
