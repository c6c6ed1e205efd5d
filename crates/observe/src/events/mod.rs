//! Tracepoints that the kernel counts where they happen, by BPF: how often, how much, how long from one to another.
//!
//! | module | what a reader finds |
//! |---|---|
//! | [`run_events`] | what a study's `[events]` count in a run, and why something is not counted |
//! | `loaded_event` | one event: programs loaded and attached, what their maps hold |
//! | `event_program` | an event of a study resolved: tracepoints, fields, the program's configuration |
//! | `event_filter`, `event_field` | a filter as steps; where a field lies, and how its value is shown |
//! | `value_buckets` | buckets of values, and the quantiles that follow |

pub(crate) mod event_field;
pub(crate) mod event_filter;
pub(crate) mod event_program;
pub(crate) mod loaded_event;
pub mod run_events;
pub(crate) mod value_buckets;
