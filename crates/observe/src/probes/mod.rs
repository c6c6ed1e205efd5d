//! Places in a program, told each time a thread comes by: uprobes through perf events, without a compiler and without the
//! program's help.
//!
//! Owns which places a program has (functions, and USDT probes with their semaphores), the events on them, on the page
//! faults and context switches of the same threads, and their order in time. Refuses to say what the places mean: pairing
//! begins and ends is `optrace`'s.
//!
//! | module | owns |
//! |---|---|
//! | `program` | the places of an ELF file: functions by symbol, USDT probes by note |
//! | `function` | where a function is entered and left, decoded from its bytes |
//! | `note` | one USDT note (SystemTap's version 3) |
//! | `arguments` | conditions on the arguments of USDT probes |
//! | `uprobe_events` | probes in the kernel's own list, for those with a condition |
//! | `event` | the uprobe events of the kernel, and what a refusal means |
//! | `record` | from the bytes of a ring to what was seen |
//! | `order` | what several rings told, in the order of time |
//! | `attached` | events on all threads of a process, on every CPU |
//! | `cost` | what a place costs each time, measured on perflab itself, as often as is wanted |

pub(crate) mod cost;
pub(crate) mod error;
pub(crate) mod function_code;
pub(crate) mod points;
pub(crate) mod recorder;
pub(crate) mod uprobe_events;
pub(crate) mod usdt_condition;

pub use cost::{ProbeCost, ProbeCostMeter};
pub use error::ProbeError;
pub use points::{ProbeSite, ProbedFunction, ProbedProgram};
pub use recorder::{
    ProbeCondition, ProbeEvent, ProbeEventKind, ProbePoint, ProbeRecorder, ProbeRecordingEnd,
};
pub use usdt_condition::ArgumentFilter;
