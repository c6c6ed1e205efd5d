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

mod arguments;
mod attached;
mod cost;
mod error;
mod event;
mod function;
mod note;
mod order;
mod program;
mod record;
mod uprobe_events;

pub use arguments::ArgumentFilter;
pub use attached::{ProbeCondition, ProbePoint, ProbeRecorder, ProbeRecordingEnd};
pub use cost::{ProbeCost, ProbeCostMeter};
pub use error::ProbeError;
pub use program::{ProbeSite, ProbedFunction, ProbedProgram};
pub use record::{ProbeEvent, ProbeEventKind};

#[cfg(test)]
mod tests;
