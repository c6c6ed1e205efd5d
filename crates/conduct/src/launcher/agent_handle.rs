//! The handle of a launched agent: what it is spoken to by, and what ends it.

use std::fmt::Debug;

use perflab_guest::SampledGuest;

use crate::connection::Connection;

/// An agent's home. Dropping it ends the agent as well.
pub trait AgentHandle: Send + Debug {
    /// Ends the agent and all that was started for it, within a few seconds, however it resists; gives what was printed
    /// beside the stream: standard error, a console.
    fn end(&mut self) -> String;

    /// What a sampler from outside needs of it; none where it is no guest that runs here.
    fn sampled_guest(&self) -> Option<SampledGuest> {
        None
    }
}

/// An agent that was started, and has not been heard yet.
#[derive(Debug)]
pub struct LaunchedAgent {
    /// Where it is spoken to.
    pub connection: Connection,
    /// Where it lives.
    pub handle: Box<dyn AgentHandle>,
}
