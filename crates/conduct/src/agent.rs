//! perflab inside a target, taking orders over a byte stream.
//!
//! Owns both ends of one thread that listens and one that works: a ping is answered while a workload runs, and an end
//! of the stream ends the workload. It needs nothing installed, has no shell, runs what the run's definitions say and
//! nothing else, and refuses a host that speaks another version. Where the stream comes from is its caller's to say.

mod hello;
mod run;
mod serve;
mod voice;
mod wait;
mod watch;

pub use serve::{AgentError, serve_agent};
