//! Sampling call stacks, through perf_event_open and nothing else, so that it works inside a bare guest.
//!
//! Owns which event is counted and what to do where it is refused; the rings that the kernel writes samples to and
//! the thread that empties them. Refuses a profile without the kernel: where that part is not allowed, or its names
//! are hidden, it is an error that names the setting. Names come from `perflab-stacks`, after the measured time.
//!
//! | module | owns |
//! |---|---|
//! | `event` | the ladder of events, best first, and what a refusal means |
//! | `ring` | one ring buffer of one CPU |
//! | `processes` | what is mapped where before the first record |
//! | `recorder` | [`StackSampler`]: from start to [`perflab_stacks::Recording`] |

mod error;
pub(crate) mod event;
pub(crate) mod processes;
mod recorder;
pub(crate) mod ring;

pub use error::ProfileError;
pub use event::{SamplingEvent, check_stack_sampling};
pub use recorder::StackSampler;

/// Whose stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingScope {
    /// everybody's, on every CPU
    System,
    /// this thread's, and of whatever it starts from now on
    Children,
    /// a process's, and of whatever it starts from now on
    Process(i32),
}

#[cfg(test)]
mod tests;
