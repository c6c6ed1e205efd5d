//! The latency of every operation of a program, and of the spans inside it.
//!
//! A program declares its [`Vocabulary`] once (what its operations, spans and numbers are called), makes a [`Trace`], and
//! gives each thread a [`Recorder`]. Around an operation stand [`Recorder::begin`] and [`Recorder::end`], around a
//! span inside it [`Recorder::enter`] and [`Recorder::leave`]; spans nest, and each span's time is *exclusive*: what
//! an inner one took is not counted in the outer one. [`Recorder::number`] attaches the program's state.
//!
//! On the way from `begin` to `end` nothing allocates, no system call is made and nothing is lost: a record goes into
//! memory that was touched beforehand; when a chunk of it is full, it is handed to a thread that writes the file, and
//! if that thread is behind, the recorder waits *between* two operations, which is counted and disturbs no figure.
//! Context switches and page faults of each recording thread come from the kernel meanwhile, with their times, and are
//! joined when the file is read ([`TraceFile`]): so the time on CPU of each operation is known without a system call.
//!
//! The memory is pages of the trace file, where the file system lets them be allocated beforehand (ext4, XFS, tmpfs): so a
//! program that aborts, is killed or leaves by `_exit` leaves its last operations there. A forked child has no part in
//! its parent's trace: what it records and closes is nobody's. An operation that is left by `longjmp` or an unwinding is
//! [abandoned](Recorder::abandon); what became of every begin is counted ([`Told::entries`]).
//!
//! ```
//! use optrace::{Options, Trace, Words};
//!
//! const INSERT: u8 = 0;
//! const SPLIT: u8 = 0;
//! const ELEMENTS: u8 = 0;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("tree.optrace");
//! let words = Words::new(&["insert"], &["split"], &["elements"])?;
//! let trace = Trace::create(&path, &words, Options::default())?;
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
//! let told = optrace::File::open(&path)?.read(|operation| splits += operation.spans.len())?;
//! assert_eq!((told.operations, told.lost, splits), (1000, 0, 10));
//! # Ok(())
//! # }
//! ```
//!
//! | module | owns |
//! |---|---|
//! | `words` | names of operations, spans and numbers, and how many there may be |
//! | `clock` | time stamps: the time-stamp counter where it is steady, else CLOCK_MONOTONIC |
//! | `recorder`, `pen` | the measured path: a word for each time stamp |
//! | `replay`, `record` | on the writer's thread: from those words to records |
//! | `lane`, `live` | one thread's chunks, between the recorder and the writer; their memory, which is in the file |
//! | `kernel` | context switches and page faults of one thread, by perf events |
//! | `calibrate` | what recording itself costs |
//! | `trace`, `writer`, `room` | a trace being made, its options, its writing thread, who has which room in its file |
//! | `format` | the bytes of a trace file |
//! | `file`, `join` | reading one, operation by operation, with what the kernel did meanwhile |
//! | `stamps` | a trace of time stamps that somebody else took: begins and ends of probes, paired |
//! | `c` | the interface for C (`include/optrace.h`) |

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
pub use layout::VERSION;
pub use operation::{Operation, SpanTime};
pub use probe_trace::{EntryCounts, ProbeMark, ProbeTrace, StackPosition, StampCost};
pub use recorder::Recorder;
pub use trace::{ENVIRONMENT, Trace, TraceOptions, TraceRecordingSummary};
pub use trace_file::{TraceFile, TraceFileSummary};
pub use vocabulary::{MOST_DEPTH, MOST_NUMBERS, MOST_OPERATIONS, MOST_SPANS, Vocabulary};
