//! One operation: recording cost taken off, kernel events joined; the summary of a file.
//!
//! This is the arithmetic from the words of records to operations. Which operations are remarkable is not decided
//! here.

use crate::clock::ClockLine;
use crate::layout::{
    FLAG_BACKWARDS, FLAG_LIMIT, FLAG_UNBALANCED, INSIDE, InnerOccurrence, RecordHeadWord, RecordingKindCosts,
    StampCost, ThreadEventKind, decode_number, decode_span,
};
use crate::record_builder::EntryCounts;
use crate::vocabulary::Vocabulary;

/// One operation, as it was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Operation {
    /// The thread's id as the kernel counts.
    pub thread: i32,
    /// The thread's number in this trace, from 0.
    pub lane: u32,
    /// Index into [`Vocabulary::operations`].
    pub kind: u8,
    /// When it began, nanoseconds of CLOCK_MONOTONIC.
    pub start: u64,
    /// How long it took, in nanoseconds, recording itself taken off.
    pub wall: u64,
    /// Nanoseconds of those that the thread was ready and another one ran.
    pub preempted: u64,
    /// Nanoseconds of those that the thread waited: for a lock, a disk, a timer.
    pub waited: u64,
    /// Nanoseconds that stamps of operations inside it cost, taken off.
    pub inside: u64,
    /// Times it left the CPU.
    pub switches: u32,
    /// Pages that were not there when touched.
    pub faults: u32,
    /// A time stamp was below an earlier one: the times mean nothing.
    pub backwards: bool,
    /// It had more spans or numbers than the limits.
    pub beyond: bool,
    /// `leave` without `enter`, or `begin` inside it.
    pub unbalanced: bool,
    /// Exclusive time of each kind of span that occurred.
    pub spans: Vec<SpanTime>,
    /// Numbers attached: index into [`Vocabulary::numbers`], and the value; the last one of each kind.
    pub numbers: Vec<(u8, i64)>,
}

/// The time of one kind of span within one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanTime {
    /// Index into [`Vocabulary::spans`].
    pub kind: u8,
    /// Nanoseconds, without the spans inside.
    pub ns: u64,
    /// How often it occurred.
    pub count: u32,
}

impl Operation {
    /// Nanoseconds on the CPU.
    #[must_use]
    pub fn on_cpu_ns(&self) -> u64 {
        self.wall.saturating_sub(self.preempted + self.waited)
    }
}

/// What a file says about itself.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct TraceFileSummary {
    /// Operations that were read.
    pub operations: u64,
    /// Operations that the recorder lost (the disk was full); missing in a file that was cut short.
    pub lost: u64,
    /// Why the file ends where it does, where it was cut short or is damaged: all before that was read.
    pub cut: Option<String>,
    /// Operations with a time stamp below an earlier one: their times mean nothing.
    pub backwards: u64,
    /// Operations with more spans or numbers than the limits: some of their time is in the span around.
    pub beyond: u64,
    /// Operations in which `enter` and `leave` did not match.
    pub unbalanced: u64,
    /// How often recorders waited for the writer between operations, and for how many nanoseconds.
    pub waits: u64,
    /// Nanoseconds of those.
    pub waited: u64,
    /// Threads that recorded.
    pub threads: u32,
    /// Events of the kernel, and how many it had no room for.
    pub events: u64,
    /// Those it had no room for.
    pub events_lost: u64,
    /// The errno with which the kernel refused its events, where it did.
    pub refused: Option<i32>,
    /// Nanoseconds that an empty operation measures; subtracted from all.
    pub operation_cost: f64,
    /// Nanoseconds that a span adds to its operation; subtracted for each.
    pub span_cost: f64,
    /// Of each kind of operation, where each has a cost of its own: that is subtracted.
    pub operation_costs: Vec<StampCost>,
    /// The same of spans.
    pub span_costs: Vec<StampCost>,
    /// Of each kind of operation that was read, how many there were and how many nanoseconds the stamps of operations inside
    /// them cost: that is subtracted too.
    pub inside: Vec<(u64, u64)>,
    /// Process that wrote it.
    pub process: u32,
    /// How often it forked during the trace: what its children did is not in the trace.
    pub forks: u64,
    /// What became of the begins of all operations; nothing in a file of before, or of an attached program.
    pub entries: EntryCounts,
    /// Operations that were found in the memory of a process that ended without closing its trace.
    pub rescued: u64,
}

impl TraceFileSummary {
    pub(crate) fn add_nested_operation(&mut self, kind: u8, ns: u64) {
        let kind = usize::from(kind);
        if self.inside.len() <= kind {
            self.inside.resize(kind + 1, (0, 0));
        }
        if let Some((operations, all)) = self.inside.get_mut(kind) {
            *operations += 1;
            *all += ns;
        }
    }
}

/// The kernel's events of one thread, in order of time.
#[derive(Debug, Default)]
pub(crate) struct ThreadEvents {
    off_cpu_intervals: Vec<OffCpuInterval>,
    left: Option<(u64, bool)>,
    faults: Vec<u64>,
}

/// A time off the CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OffCpuInterval {
    from: u64,
    to: u64,
    preempted: bool,
}

impl ThreadEvents {
    pub(crate) fn add_event(&mut self, ns: u64, kind: ThreadEventKind) {
        match kind {
            ThreadEventKind::Preempted | ThreadEventKind::Waited => {
                self.left = Some((ns, kind == ThreadEventKind::Preempted))
            }
            ThreadEventKind::Resumed => {
                let away = self.left.take().map(|(from, preempted)| OffCpuInterval {
                    from,
                    to: ns.max(from),
                    preempted,
                });
                self.off_cpu_intervals.extend(away);
            }
            ThreadEventKind::Fault => self.faults.push(ns),
        }
    }
}

/// One thread's operations being read.
pub(crate) struct ThreadReader {
    costs: RecordingKindCosts,
    events: ThreadEvents,
    next_off_cpu: usize,
    next_fault: usize,
    last: u64,
    /// of the operation at hand
    inside: Vec<(InnerOccurrence, u32)>,
    operation: Operation,
}

impl ThreadReader {
    pub(crate) fn new(thread: i32, lane: u32, costs: RecordingKindCosts, kernel: ThreadEvents) -> Self {
        let operation = Operation { thread, lane, ..Operation::default() };
        Self { costs, events: kernel, next_off_cpu: 0, next_fault: 0, last: 0, inside: Vec::new(), operation }
    }

    pub(crate) fn thread(&self) -> i32 {
        self.operation.thread
    }

    /// Shows the operations of a block; an error says at which record it is not what it should be.
    pub(crate) fn read_block(
        &mut self,
        words: &[u64],
        records: u32,
        line: ClockLine,
        names: &Vocabulary,
        summary: &mut TraceFileSummary,
        show: &mut impl FnMut(&Operation),
    ) -> Result<(), String> {
        let mut words = words.iter().copied();
        for record in 0..records {
            self.read_record(&mut words, line, names).ok_or_else(|| format!("record {record} is damaged"))?;
            summary.operations += 1;
            summary.backwards += u64::from(self.operation.backwards);
            summary.beyond += u64::from(self.operation.beyond);
            summary.unbalanced += u64::from(self.operation.unbalanced);
            summary.add_nested_operation(self.operation.kind, self.operation.inside);
            show(&self.operation);
        }
        Ok(())
    }

    fn read_record(
        &mut self,
        words: &mut impl Iterator<Item = u64>,
        line: ClockLine,
        names: &Vocabulary,
    ) -> Option<()> {
        let (begun, head) = (words.next()?, RecordHeadWord::decode(words.next()?));
        let operation = &mut self.operation;
        operation.kind = Some(head.kind).filter(|kind| usize::from(*kind) < names.operations.len())?;
        operation.numbers.clear();
        self.inside.clear();
        for _ in 0..head.numbers {
            let (kind, value) = decode_number(words.next()?);
            if kind == INSIDE {
                self.inside.push(InnerOccurrence::decode(value));
                continue;
            }
            operation.numbers.retain(|(other, _)| *other != kind);
            operation.numbers.extend((usize::from(kind) < names.numbers.len()).then_some((kind, value)));
        }
        let mut cost = self.costs.operation_cost(operation.kind);
        operation.spans.clear();
        for _ in 0..head.spans {
            let (kind, ticks, count) = decode_span(words.next()?);
            let (own, all) = self.costs.span_costs(kind);
            let own = f64::from(count) * own;
            cost += f64::from(count) * all;
            let ns = corrected_nanos(ticks, own, line);
            operation.spans.extend((usize::from(kind) < names.spans.len()).then_some(SpanTime {
                kind,
                ns,
                count,
            }));
        }
        let mut operations_inside = 0.0;
        for (inside, count) in &self.inside {
            let (own, all) = self.costs.span_costs(inside.kind);
            let whole =
                if inside.is_operation { self.costs.whole_operation_cost(inside.kind) } else { all - own };
            let ticks = f64::from(*count) * whole;
            // Those of spans are among them already.
            operations_inside += if inside.is_operation { ticks } else { 0.0 };
            if let Some(span) = operation.spans.iter_mut().find(|span| span.kind == inside.span) {
                span.ns = span.ns.saturating_sub((ticks * line.slope()).round() as u64);
            }
        }
        cost += operations_inside;
        operation.inside = (operations_inside * line.slope()).round() as u64;
        operation.wall = corrected_nanos(head.duration, cost, line);
        operation.start = line.nanos_at(begun);
        operation.backwards = head.flags & FLAG_BACKWARDS != 0 || begun < self.last;
        operation.beyond = head.flags & FLAG_LIMIT != 0;
        operation.unbalanced = head.flags & FLAG_UNBALANCED != 0;
        self.last = begun;
        let end = line.nanos_at(begun.saturating_add(head.duration));
        self.join_events(end);
        Some(())
    }

    /// Adds what the kernel did between the operation's begin and its end.
    fn join_events(&mut self, end: u64) {
        let (operation, kernel) = (&mut self.operation, &self.events);
        let start = operation.start;
        (operation.preempted, operation.waited, operation.switches, operation.faults) = (0, 0, 0, 0);
        let gone = |away: &&OffCpuInterval| away.to <= start;
        self.next_off_cpu += kernel.off_cpu_intervals.iter().skip(self.next_off_cpu).take_while(gone).count();
        for away in kernel.off_cpu_intervals.iter().skip(self.next_off_cpu).take_while(|away| away.from < end)
        {
            let inside = away.to.min(end).saturating_sub(away.from.max(start));
            let place = if away.preempted { &mut operation.preempted } else { &mut operation.waited };
            *place += inside;
            operation.switches += 1;
        }
        self.next_fault +=
            kernel.faults.iter().skip(self.next_fault).take_while(|fault| **fault < start).count();
        let faults = kernel.faults.iter().skip(self.next_fault).take_while(|fault| **fault <= end).count();
        operation.faults = faults as u32;
        let away = operation.preempted + operation.waited;
        if away > operation.wall {
            // The two clocks disagree by some tens of nanoseconds.
            operation.wall = away;
        }
    }
}

fn corrected_nanos(ticks: u64, cost: f64, line: ClockLine) -> u64 {
    ((ticks as f64 - cost) * line.slope()).max(0.0).round() as u64
}
