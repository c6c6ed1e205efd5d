//! A trace of time stamps that others took: probes in a program that knows nothing of optrace.
//!
//! Begins and ends are paired thread by thread. An end that did not come is never guessed: the operation is
//! flagged.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::{ClockKind, ClockPair};
use crate::disk_room::{TraceFileSpace, create_owned_file};
use crate::error::OptraceError;
use crate::layout::{
    FLAG_UNBALANCED, InnerOccurrence, RecordingCost, StampCost, ThreadEventKind, TraceHeader,
};
use crate::record_builder::{EntryCounts, OWN, RecordBuilder};
use crate::vocabulary::Vocabulary;
use crate::writer::{TraceRecordingSummary, TraceWriter};

/// Words of a block, about.
const BLOCK: usize = 8192;

/// What a time stamp means. Numbers are indices into [`Vocabulary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeMark {
    /// An operation begins. Inside another one it is not an operation of its own, and the outer one is flagged.
    Begin(u8),
    /// The operation ends.
    End(u8),
    /// A span begins.
    Enter(u8),
    /// A span ends. One that ends around others ends them too, and the operation is flagged.
    Leave(u8),
    /// The thread was preempted.
    Preempted,
    /// The thread left the CPU to wait.
    Waited,
    /// The thread is on the CPU again.
    Resumed,
    /// A page was not there.
    Fault,
}

/// Where on which stack a time stamp was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackPosition {
    /// The stack pointer, where a begin and its end have the same: what lies deeper when an end comes, or as deep when a
    /// begin comes, was left some other way. Without it the innermost begin is ended.
    pub stack: Option<u64>,
    /// The goroutine, in programs whose stacks move and whose routines change threads: then only an equal stack pointer
    /// says that something was left.
    pub routine: Option<u64>,
}

/// A trace file of time stamps that others took.
pub struct ProbeTrace {
    path: PathBuf,
    space: Arc<TraceFileSpace>,
    header: TraceHeader,
    names: String,
    writer: TraceWriter,
    threads: HashMap<i32, ProbedThread>,
    summary: TraceRecordingSummary,
    operations: Vec<EntryCounts>,
    spans: Vec<EntryCounts>,
}

/// Something that is open on a thread.
#[derive(Debug, Clone, Copy)]
struct OpenFrame {
    kind: OpenFrameKind,
    stack: Option<u64>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameFate {
    Ended,
    Abandoned,
    Lost,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenFrameKind {
    Operation(u8),
    /// an operation inside the one that is open
    Nested(u8),
    Span(u8),
}

struct ProbedThread {
    /// of its lane in the file
    number: u32,
    builder: RecordBuilder,
    /// what is open, the innermost last
    frames: Vec<OpenFrame>,
    /// what lay in the operation that is open, and how often: the stamps of these are part of its time
    inside: BTreeMap<InnerOccurrence, u32>,
    routine: Option<u64>,
    events: Vec<u64>,
    last: u64,
}

impl ProbeTrace {
    /// Begins a trace in a new file, of stamps in nanoseconds of CLOCK_MONOTONIC. The costs are those of the kinds of
    /// operation and of span, in the order of the vocabulary.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(
        path: &Path,
        words: &Vocabulary,
        process: u32,
        (operations, spans): (&[StampCost], &[StampCost]),
    ) -> Result<Self, OptraceError> {
        let file = create_owned_file(path).map_err(OptraceError::from_io("create", path))?;
        let mut header = TraceHeader {
            clock: ClockKind::Monotonic,
            process: u64::from(process),
            start: ClockKind::Monotonic.read_pair(),
            ns_per_tick: 1.0,
            cost: RecordingCost::default(),
            refused: 0,
            words: String::new(),
        };
        let names = words.to_text();
        write_costs(&mut header, &names, (operations, spans));
        let room =
            Arc::new(TraceFileSpace::create(file, &header).map_err(OptraceError::from_io("write", path))?);
        let writer = TraceWriter::new(room.clone());
        Ok(Self {
            path: path.into(),
            space: room,
            header,
            names,
            writer,
            threads: HashMap::new(),
            summary: TraceRecordingSummary::default(),
            operations: Vec::new(),
            spans: Vec::new(),
        })
    }

    /// What taking the stamps cost, now that it is known better: of as many kinds as when the trace was created.
    pub fn set_costs(&mut self, costs: (&[StampCost], &[StampCost])) {
        write_costs(&mut self.header, &self.names, costs);
    }

    /// One time stamp of a thread; each thread's come in the order of time.
    pub fn record_mark(&mut self, thread: i32, ns: u64, mark: ProbeMark) {
        self.record_mark_at(thread, ns, mark, StackPosition::default());
    }

    /// The same, with where it was taken.
    pub fn record_mark_at(&mut self, thread: i32, ns: u64, mark: ProbeMark, stack_position: StackPosition) {
        let place = matches!(
            mark,
            ProbeMark::Begin(_) | ProbeMark::End(_) | ProbeMark::Enter(_) | ProbeMark::Leave(_)
        );
        if place && stack_position.routine.is_some() {
            self.drop_moved_routine(thread, stack_position.routine);
        }
        let number = self.threads.len() as u32;
        let lossy = self.summary.events_lost > 0;
        let writer = &mut self.writer;
        let lane = self.threads.entry(thread).or_insert_with(|| {
            writer.write_thread_start(number, thread, None);
            ProbedThread::new(number)
        });
        lane.last = ns;
        match mark {
            ProbeMark::Begin(_) | ProbeMark::Enter(_) => {
                let left = lane.first_stale_frame(stack_position);
                let lost = lossy || lane.routine != stack_position.routine;
                let fate = if lost { FrameFate::Lost } else { FrameFate::Abandoned };
                lane.routine = stack_position.routine;
                for frame in lane.close_frames(left, ns) {
                    count_fate(&mut self.operations, &mut self.spans, frame, fate);
                }
            }
            ProbeMark::End(_) | ProbeMark::Leave(_) if lane.routine != stack_position.routine => return,
            _ => {}
        }
        match mark {
            ProbeMark::Begin(kind) => {
                let nested = lane.begin_operation(writer, ns, kind, stack_position.stack);
                let entries = entry_counts_of_kind(&mut self.operations, kind);
                entries.entered += 1;
                entries.nested += u64::from(nested);
            }
            ProbeMark::Enter(span) => {
                let inside = lane.enter_span(ns, span, stack_position.stack);
                let entries = entry_counts_of_kind(&mut self.spans, span);
                entries.entered += 1;
                entries.outside += u64::from(!inside);
            }
            ProbeMark::End(_) | ProbeMark::Leave(_) => {
                let ended = lane.end_frame(ns, mark, stack_position);
                match mark {
                    ProbeMark::End(kind) if ended.is_none() => {
                        entry_counts_of_kind(&mut self.operations, kind).unbegun += 1
                    }
                    _ => {}
                }
                for (frame, fate) in ended.unwrap_or_default() {
                    let fate = if fate == FrameFate::Abandoned && lossy { FrameFate::Lost } else { fate };
                    count_fate(&mut self.operations, &mut self.spans, frame, fate);
                }
            }
            ProbeMark::Preempted => lane.events.extend([ns, ThreadEventKind::Preempted as u64]),
            ProbeMark::Waited => lane.events.extend([ns, ThreadEventKind::Waited as u64]),
            ProbeMark::Resumed => lane.events.extend([ns, ThreadEventKind::Resumed as u64]),
            ProbeMark::Fault => lane.events.extend([ns, ThreadEventKind::Fault as u64]),
        }
    }

    /// A routine that now runs on one thread has nothing open on another: what it began there is lost.
    fn drop_moved_routine(&mut self, thread: i32, routine: Option<u64>) {
        for (_, lane) in
            self.threads.iter_mut().filter(|(other, lane)| **other != thread && lane.routine == routine)
        {
            let last = lane.last;
            for frame in lane.close_frames(0, last) {
                count_fate(&mut self.operations, &mut self.spans, frame, FrameFate::Lost);
            }
        }
    }

    /// What became of every begin so far: of each kind of operation, and of span, by its number.
    pub fn entry_counts(&self) -> (Vec<EntryCounts>, Vec<EntryCounts>) {
        let (mut operations, mut spans) = (self.operations.clone(), self.spans.clone());
        for frame in self.threads.values().flat_map(|lane| &lane.frames) {
            match frame.kind {
                OpenFrameKind::Operation(kind) => entry_counts_of_kind(&mut operations, kind).open += 1,
                OpenFrameKind::Span(span) => entry_counts_of_kind(&mut spans, span).open += 1,
                OpenFrameKind::Nested(_) => {}
            }
        }
        (operations, spans)
    }

    /// Nothing is watched from now on, for a time: what is open is counted as open, and its end is not an end of anything.
    pub fn pause(&mut self) {
        self.close_all_frames(|entries| &mut entries.open);
    }

    /// The process became another program: what was open is left.
    pub fn record_exec(&mut self) {
        self.close_all_frames(|entries| &mut entries.abandoned);
    }

    fn close_all_frames(&mut self, fate: impl Fn(&mut EntryCounts) -> &mut u64) {
        for lane in self.threads.values_mut() {
            let last = lane.last;
            for frame in lane.close_frames(0, last) {
                match frame.kind {
                    OpenFrameKind::Operation(kind) => {
                        *fate(entry_counts_of_kind(&mut self.operations, kind)) += 1
                    }
                    OpenFrameKind::Span(span) => *fate(entry_counts_of_kind(&mut self.spans, span)) += 1,
                    OpenFrameKind::Nested(_) => {}
                }
            }
        }
    }

    /// Time stamps that were lost before they came here: operations around them are not reliable.
    pub fn add_lost(&mut self, stamps: u64) {
        self.summary.events_lost += stamps;
    }

    /// Writes what is left and ends the file. Operations that are still open did not end, and are left out.
    ///
    /// # Errors
    /// The file could not be written as a whole.
    pub fn finish(mut self) -> Result<TraceRecordingSummary, OptraceError> {
        let mut threads: Vec<ProbedThread> = self.threads.into_values().collect();
        threads.sort_by_key(|thread| thread.number);
        threads.iter_mut().for_each(|thread| thread.flush(&mut self.writer));
        self.space.set_header(&self.header).map_err(OptraceError::from_io("write", &self.path))?;
        self.writer.write_last_block(self.summary).map_err(OptraceError::from_io("write", &self.path))
    }
}

/// Puts costs into a header, as one that is as long whatever they are.
fn write_costs(header: &mut TraceHeader, names: &str, (operations, spans): (&[StampCost], &[StampCost])) {
    let operation = StampCost::largest(operations);
    let span = if spans.is_empty() { operation } else { StampCost::largest(spans) };
    let around = (span.pair - span.between).max(0.0);
    let line =
        |list: char, cost: &StampCost| format!("c {list} {:018.3} {:018.3}\n", cost.between, cost.pair);
    let costs = operations.iter().map(|cost| line('o', cost)).chain(spans.iter().map(|cost| line('s', cost)));
    header.cost = RecordingCost { operation: operation.between, around, span: span.between };
    header.words = names.to_owned() + &costs.collect::<String>();
}

fn entry_counts_of_kind(of: &mut Vec<EntryCounts>, number: u8) -> &mut EntryCounts {
    let number = usize::from(number);
    if of.len() <= number {
        of.resize(number + 1, EntryCounts::default());
    }
    &mut of[number]
}

/// What was left without its end. Nested operations were counted when they began.
fn count_fate(
    operations: &mut Vec<EntryCounts>,
    spans: &mut Vec<EntryCounts>,
    frame: OpenFrame,
    fate: FrameFate,
) {
    let entries = match frame.kind {
        OpenFrameKind::Operation(kind) => entry_counts_of_kind(operations, kind),
        OpenFrameKind::Span(span) => entry_counts_of_kind(spans, span),
        OpenFrameKind::Nested(_) => return,
    };
    match fate {
        FrameFate::Ended => entries.ended += 1,
        FrameFate::Abandoned => entries.abandoned += 1,
        FrameFate::Lost => entries.lost += 1,
    }
}

impl ProbedThread {
    fn new(number: u32) -> Self {
        Self {
            number,
            builder: RecordBuilder::new(),
            frames: Vec::new(),
            inside: BTreeMap::new(),
            routine: None,
            events: Vec::new(),
            last: 0,
        }
    }

    /// The outermost frame that cannot be open any more, now that something begins there.
    fn first_stale_frame(&self, stack_position: StackPosition) -> usize {
        if self.routine != stack_position.routine {
            return 0;
        }
        let Some(now) = stack_position.stack else { return self.frames.len() };
        let left = |frame: &OpenFrame| {
            frame
                .stack
                .is_some_and(|then| if stack_position.routine.is_some() { then == now } else { then <= now })
        };
        self.frames.iter().position(left).unwrap_or(self.frames.len())
    }

    /// Takes out all frames from one on. An operation among them is forgotten; spans of one that goes on end here.
    fn close_frames(&mut self, from: usize, ns: u64) -> Vec<OpenFrame> {
        let frames = self.frames.split_off(from.min(self.frames.len()));
        if frames.iter().any(|frame| matches!(frame.kind, OpenFrameKind::Operation(_))) {
            self.inside.clear();
            self.builder.abandon_record();
        } else {
            for _ in frames.iter().filter(|frame| matches!(frame.kind, OpenFrameKind::Span(_))) {
                self.builder.flags |= FLAG_UNBALANCED;
                self.builder.leave_span(ns);
            }
        }
        frames
    }

    /// An operation or a span ends: what was open in it is left. None where none of that kind is open.
    fn end_frame(
        &mut self,
        ns: u64,
        mark: ProbeMark,
        stack_position: StackPosition,
    ) -> Option<Vec<(OpenFrame, FrameFate)>> {
        let fits = |what: OpenFrameKind| match (mark, what) {
            (ProbeMark::End(kind), OpenFrameKind::Operation(open) | OpenFrameKind::Nested(open)) => {
                kind == open
            }
            (ProbeMark::Leave(span), OpenFrameKind::Span(open)) => span == open,
            _ => false,
        };
        let Some(at) = self.find_matching_frame(stack_position, fits) else {
            if matches!(mark, ProbeMark::Leave(_)) {
                self.builder.flags |= FLAG_UNBALANCED;
            }
            return None;
        };
        let ended = self.frames.get(at).copied()?;
        self.count_inside(at, ended.kind);
        // Without a stack pointer it is only a count: what is open in it may be the outer one's.
        if stack_position.stack.is_none() && matches!(ended.kind, OpenFrameKind::Nested(_)) {
            self.frames.remove(at);
            return Some(Vec::new());
        }
        let inner = self.close_frames(at + 1, ns);
        if !inner.is_empty() {
            self.builder.flags |= FLAG_UNBALANCED;
        }
        self.frames.truncate(at);
        // A span's end does not say that operations without a stack pointer ended: their ends are yet to come.
        if matches!(ended.kind, OpenFrameKind::Span(_)) {
            let counts =
                |frame: &&OpenFrame| matches!(frame.kind, OpenFrameKind::Nested(_)) && frame.stack.is_none();
            self.frames.extend(inner.iter().filter(counts));
        }
        match ended.kind {
            OpenFrameKind::Operation(_) => {
                self.builder.add_inner_occurrences(std::mem::take(&mut self.inside).into_iter());
                self.builder.close_record(ns);
            }
            OpenFrameKind::Span(_) => self.builder.leave_span(ns),
            OpenFrameKind::Nested(_) => {}
        }
        let inner = inner.into_iter().map(|frame| (frame, FrameFate::Abandoned));
        Some(inner.chain([(ended, FrameFate::Ended)]).collect())
    }

    /// Something that ended lay in what is open: of what was left without its end the cost of its stamps is unknown.
    fn count_inside(&mut self, at: usize, what: OpenFrameKind) {
        let span =
            |frame: &OpenFrame| if let OpenFrameKind::Span(span) = frame.kind { Some(span) } else { None };
        let around = self.frames.get(..at).into_iter().flatten().rev().find_map(span);
        let inside = match (what, around) {
            (OpenFrameKind::Nested(kind), _) => {
                InnerOccurrence { is_operation: true, span: around.unwrap_or(OWN), kind }
            }
            // What lies in no other span is counted by its number.
            (OpenFrameKind::Span(kind), Some(span)) => InnerOccurrence { is_operation: false, span, kind },
            _ => return,
        };
        *self.inside.entry(inside).or_default() += 1;
    }

    /// The frame that ends now. A stack that moved has other addresses: then it is the innermost, and all move with it.
    fn find_matching_frame(
        &mut self,
        stack_position: StackPosition,
        fits: impl Fn(OpenFrameKind) -> bool,
    ) -> Option<usize> {
        let Some(now) = stack_position.stack else {
            return self.frames.iter().rposition(|frame| fits(frame.kind));
        };
        let equal = self.frames.iter().rposition(|frame| fits(frame.kind) && frame.stack == Some(now));
        if equal.is_some() || stack_position.routine.is_none() {
            return equal;
        }
        let at = self.frames.iter().rposition(|frame| fits(frame.kind))?;
        let moved = now.wrapping_sub(self.frames.get(at)?.stack?);
        for frame in &mut self.frames {
            frame.stack = frame.stack.map(|stack| stack.wrapping_add(moved));
        }
        Some(at)
    }

    /// Whether it lies in one that is open.
    fn begin_operation(&mut self, writer: &mut TraceWriter, ns: u64, kind: u8, stack: Option<u64>) -> bool {
        if self.builder.open {
            self.builder.flags |= FLAG_UNBALANCED;
            self.frames.push(OpenFrame { kind: OpenFrameKind::Nested(kind), stack });
            return true;
        }
        if self.builder.words.len() > BLOCK {
            self.flush(writer);
        }
        self.builder.open_record(ns, kind);
        self.frames.push(OpenFrame { kind: OpenFrameKind::Operation(kind), stack });
        false
    }

    /// Whether it lies in an operation.
    fn enter_span(&mut self, ns: u64, span: u8, stack: Option<u64>) -> bool {
        if self.builder.open {
            self.frames.push(OpenFrame { kind: OpenFrameKind::Span(span), stack });
            self.builder.enter_span(ns, span);
        }
        self.builder.open
    }

    /// Writes whole operations and the kernel's events so far. Between two operations, or at the end.
    fn flush(&mut self, writer: &mut TraceWriter) {
        let closed = ClockPair { ticks: self.last, ns: self.last };
        writer.write_operations(self.number, &mut self.builder, closed);
        writer.write_events(self.number, &self.events);
        self.events.clear();
    }
}
