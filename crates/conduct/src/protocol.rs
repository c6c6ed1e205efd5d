//! What host and agent say to each other: a greeting line, then frames of JSON. `docs/agent-protocol.md` is the
//! description for people; this module is its only implementation.
//!
//! Owns versions, sizes and spellings. It refuses to wait, to send and to believe: an agent may lie, and what a report
//! means for a run is checked where it is used.

mod frame;
mod greeting;
mod message;

pub use frame::{FrameDecoder, MAX_FRAME_BYTES, encode_frame};
pub use greeting::{GreetingParser, PROTOCOL_VERSION, greeting_line};
pub use message::{AgentHello, AgentOrder, AgentReport, AgentRunConfig};

/// Why what was said cannot be understood. The stream has no further use then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// The other side is a perflab with another protocol.
    #[error(
        "it speaks version {theirs} of the agent protocol, and this perflab version {PROTOCOL_VERSION}; use the same perflab on \
         both sides"
    )]
    Version {
        /// its version
        theirs: u32,
    },
    /// The other side is no perflab, or something else writes to the same stream.
    #[error("no agent greets there: {bytes} bytes came without a greeting, beginning with {beginning:?}")]
    NoGreeting {
        /// how many
        bytes: usize,
        /// the first of them
        beginning: String,
    },
    /// More than an honest frame holds.
    #[error("a frame of {size} bytes is announced, and {MAX_FRAME_BYTES} are allowed")]
    TooLarge {
        /// the announced size
        size: usize,
    },
    /// The frame is no message that this version knows.
    #[error("a frame of {size} bytes is not understood: {reason}")]
    Garbled {
        /// its size
        size: usize,
        /// the parser's words
        reason: String,
    },
}

#[cfg(test)]
mod tests;
