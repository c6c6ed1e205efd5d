//! The latency of every operation of a program, and of the spans inside it.
//!
//! A program declares its [`Vocabulary`] once (what its operations, spans and numbers are called), makes a
//! [`Trace`], and gives each thread a [`Recorder`]. [`Recorder::begin`] and [`Recorder::end`] enclose an operation,
//! [`Recorder::enter`] and [`Recorder::leave`] a span inside it; spans nest, and each span's time is *exclusive*:
//! what an inner one took is not counted in the outer one. [`Recorder::number`] attaches the program's state.
//!
//! On the way from `begin` to `end` nothing allocates, no system call is made and nothing is lost: a record goes
//! into memory that was touched beforehand; when a chunk of it is full, it is handed to a thread that writes the
//! file, and if that thread is behind, the recorder waits *between* two operations, which is counted and disturbs
//! no figure. Context switches and page faults of each recording thread come from the kernel, with their times, and
//! are joined when the file is read ([`TraceFile`]): so the time on CPU of each operation is known without a system
//! call.
//!
//! The memory is pages of the trace file, where the file system lets them be allocated beforehand (ext4, XFS,
//! tmpfs): so a program that aborts, is killed or leaves by `_exit` leaves its last operations there. A forked
//! child has no part in its parent's trace: what it records and closes is dropped. An operation that is left by
//! `longjmp` or an unwinding is [abandoned](Recorder::abandon); what became of every begin is counted
//! ([`TraceFileSummary::entries`]).
//!
//! ```
//! use optrace::{Trace, TraceFile, TraceOptions, Vocabulary};
//!
//! const INSERT: u8 = 0;
//! const SPLIT: u8 = 0;
//! const ELEMENTS: u8 = 0;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("tree.optrace");
//! let vocabulary = Vocabulary::new(&["insert"], &["split"], &["elements"])?;
//! let trace = Trace::create(&path, &vocabulary, TraceOptions::default())?;
//! let recorder = trace.recorder();
//! for elements in 0..1000 {
//!     recorder.begin(INSERT);
//!     recorder.number(ELEMENTS, elements);
//!     if elements % 100 == 99 {
//!         recorder.enter(SPLIT);
//!         recorder.leave();
//!     }
//!     recorder.end();
//! }
//! drop(recorder);
//! trace.finish()?;
//!
//! let mut splits = 0;
//! let summary = TraceFile::open(&path)?.read_operations(|operation| splits += operation.spans.len())?;
//! assert_eq!((summary.operations, summary.lost, splits), (1000, 0, 10));
//! # Ok(())
//! # }
//! ```
//!
//! | module | what a reader finds |
//! |---|---|
//! | `vocabulary` | names of operations, spans and numbers, and how many there may be |
//! | `clock` | time stamps: the time-stamp counter where it is steady, else CLOCK_MONOTONIC |
//! | `recorder`, `stamp_words` | the measured path: a word for each time stamp |
//! | `record_builder` | on the writer's thread: from those words to records |
//! | `chunks`, `living_trace` | chunks of memory that go round between the recorder and the writer; that memory inside the trace file |
//! | `thread_events` | context switches and page faults of one thread, by perf events |
//! | `trace`, `writer`, `disk_room` | a trace being made, its options and own cost; its writing thread; who has which room in its file |
//! | `layout` | the bytes of a trace file |
//! | `trace_file`, `operation` | reading one, operation by operation, with what the kernel did in each |
//! | `probe_trace` | a trace of time stamps that others took: begins and ends of probes, paired |
//! | `c_interface` | the interface for C (`include/optrace.h`) |
//! | `error` | why a trace cannot be made or read, naming the path |

mod c_interface;
mod chunks;
mod clock;
mod disk_room;
mod error;
mod layout;
mod living_trace;
mod operation;
mod probe_trace;
mod record_builder;
mod recorder;
mod stamp_words;
mod thread_events;
mod trace;
mod trace_file;
mod vocabulary;
mod writer;

pub use clock::ClockKind;
pub use error::OptraceError;
pub use layout::{StampCost, VERSION};
pub use operation::{Operation, SpanTime, TraceFileSummary};
pub use probe_trace::{ProbeMark, ProbeTrace, StackPosition};
pub use record_builder::EntryCounts;
pub use recorder::Recorder;
pub use trace::{ENVIRONMENT, Trace, TraceOptions};
pub use trace_file::TraceFile;
pub use vocabulary::{MOST_DEPTH, MOST_NUMBERS, MOST_OPERATIONS, MOST_SPANS, Vocabulary};
pub use writer::TraceRecordingSummary;

/// The README's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct OptraceReadmeExamples;
