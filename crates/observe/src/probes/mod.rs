//! Points in a program, reported each time a thread hits them: uprobes through perf events, without a compiler and
//! without the program's help.
//!
//! Recorded are hits of functions and USDT probes (with their semaphores), page faults and context switches of the
//! same threads, in order of time. Pairing begins and ends into operations is done in `optrace`.
//!
//! | module | what a reader finds |
//! |---|---|
//! | `points` | the points of an ELF file: functions by symbol, USDT probes by note (SystemTap's version 3) |
//! | `function_code` | where a function is entered and left, decoded from its bytes |
//! | `usdt_condition` | conditions on the arguments of USDT probes |
//! | `uprobe_events` | probes in the kernel's own list, for those with a condition |
//! | `recorder` | events on all threads of a process, on every CPU, their records in order of time |
//! | `cost` | what a probe costs each time, measured on perflab itself |
//! | `error` | why a program cannot be probed, with what to change |

pub(crate) mod cost;
pub(crate) mod error;
pub(crate) mod function_code;
pub(crate) mod points;
pub(crate) mod recorder;
pub(crate) mod uprobe_events;
pub(crate) mod usdt_condition;

pub use cost::{ProbeCost, ProbeCostMeter};
pub use error::ProbeError;
pub use points::{ProbeCondition, ProbePoint, ProbeSite, ProbedFunction, ProbedProgram};
pub use recorder::{ProbeEvent, ProbeEventKind, ProbeRecorder, ProbeRecordingEnd};
pub use usdt_condition::ArgumentFilter;
