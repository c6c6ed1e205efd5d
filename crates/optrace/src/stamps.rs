//! A trace made of time stamps that somebody else took: of probes in a program that knows nothing of this. Owns the pairing
//! of begins and ends, thread by thread; refuses to guess an end that did not come: the operation is flagged.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::clock::{ClockKind, Pair};
use crate::format::{Cost, EventKind, FLAG_UNBALANCED, Header};
use crate::record::State;
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

/// A trace file of somebody else's time stamps.
pub struct Stamps {
    path: PathBuf,
    writer: Writer,
    threads: HashMap<i32, Thread>,
    summary: Summary,
}

struct Thread {
    /// of its lane in the file
    number: u32,
    state: State,
    /// operations begun inside the one that is open
    nested: u32,
    spans: Vec<u8>,
    events: Vec<u64>,
    last: u64,
}

impl Stamps {
    /// Begins a trace in a new file, of stamps in nanoseconds of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, words: &Words, process: u32, cost: StampCost) -> Result<Self, Error> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        let around = (cost.pair - cost.between).max(0.0);
        let header = Header {
            clock: ClockKind::Monotonic,
            process: u64::from(process),
            start: ClockKind::Monotonic.pair(),
            ns_per_tick: 1.0,
            cost: Cost { operation: cost.between, around, span: cost.between },
            refused: 0,
            words: words.text(),
        };
        let writer = Writer::begin(file, &header).map_err(Error::io("write", path))?;
        Ok(Self { path: path.into(), writer, threads: HashMap::new(), summary: Summary::default() })
    }

    /// One time stamp of a thread; each thread's come in the order of time.
    pub fn mark(&mut self, thread: i32, ns: u64, mark: Mark) {
        let number = self.threads.len() as u32;
        let writer = &mut self.writer;
        let lane = self.threads.entry(thread).or_insert_with(|| {
            writer.opened(number, thread);
            Thread::new(number)
        });
        lane.last = ns;
        match mark {
            Mark::Begin(kind) => lane.begin(writer, ns, kind),
            Mark::End(_) => lane.end(ns),
            Mark::Enter(span) => lane.enter(ns, span),
            Mark::Leave(span) => lane.leave(ns, span),
            Mark::Preempted => lane.events.extend([ns, EventKind::Preempted as u64]),
            Mark::Waited => lane.events.extend([ns, EventKind::Waited as u64]),
            Mark::Resumed => lane.events.extend([ns, EventKind::Resumed as u64]),
            Mark::Fault => lane.events.extend([ns, EventKind::Fault as u64]),
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
        self.writer.close(self.summary).map_err(Error::io("write", &self.path))
    }
}

impl Thread {
    fn new(number: u32) -> Self {
        Self { number, state: State::new(), nested: 0, spans: Vec::new(), events: Vec::new(), last: 0 }
    }

    fn begin(&mut self, writer: &mut Writer, ns: u64, kind: u8) {
        if self.state.open {
            self.state.flags |= FLAG_UNBALANCED;
            self.nested += 1;
            return;
        }
        if self.state.words.len() > BLOCK {
            self.flush(writer);
        }
        self.state.open_record(ns, kind);
        self.spans.clear();
    }

    fn end(&mut self, ns: u64) {
        if self.nested > 0 {
            self.nested -= 1;
        } else if self.state.open {
            if !self.spans.is_empty() {
                self.state.flags |= FLAG_UNBALANCED;
            }
            self.state.close_record(ns);
        }
    }

    fn enter(&mut self, ns: u64, span: u8) {
        if self.state.open {
            self.spans.push(span);
            self.state.enter(ns, span);
        }
    }

    fn leave(&mut self, ns: u64, span: u8) {
        if !self.state.open {
            return;
        }
        let Some(at) = self.spans.iter().rposition(|open| *open == span) else {
            self.state.flags |= FLAG_UNBALANCED;
            return;
        };
        if at + 1 < self.spans.len() {
            self.state.flags |= FLAG_UNBALANCED;
        }
        while self.spans.len() > at {
            self.spans.pop();
            self.state.leave(ns);
        }
    }

    /// Writes whole operations and the kernel's events so far. Between two operations, or at the end.
    fn flush(&mut self, writer: &mut Writer) {
        let closed = Pair { ticks: self.last, ns: self.last };
        writer.operations(self.number, &mut self.state, closed);
        writer.events(self.number, &self.events);
        self.events.clear();
    }
}
