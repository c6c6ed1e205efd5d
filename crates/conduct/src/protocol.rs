//! What host and agent exchange: a greeting line, then frames of JSON (four bytes of length, little-endian, then as
//! many bytes).
//!
//! `docs/agent-protocol.md` is the description for people; this module is its only implementation. The greeting
//! names the version before anything depends on it, and what comes before it (a login's greeting over ssh, a
//! kernel's last lines on a port) is skipped. After it the host orders and the agent reports. An agent may lie:
//! reports are checked in `report_validation`.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::io_trace::IO_TRACER;
use perflab_model::{Bytes, Manifest, Nanos, RunEvent, Scalar, Slot};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::barrier::BarrierPoint;

/// Why what was received cannot be understood. The stream is of no further use then.
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
    /// The other side is not a perflab, or something else writes to the same stream.
    #[error("no agent greets there: {bytes} bytes came without a greeting, beginning with {beginning:?}")]
    NoGreeting {
        /// how many
        bytes: usize,
        /// the first of them
        beginning: String,
    },
    /// More than an honest frame holds.
    #[error("a frame of {size} bytes was announced; at most {MAX_FRAME_BYTES} are allowed")]
    TooLarge {
        /// the announced size
        size: usize,
    },
    /// The frame is not a message that this version knows.
    #[error("a frame of {size} bytes is not understood: {reason}")]
    Garbled {
        /// its size
        size: usize,
        /// the parser's message
        reason: String,
    },
}

impl Classify for ProtocolError {
    fn class(&self) -> ErrorClass {
        match self {
            ProtocolError::Version { .. }
            | ProtocolError::NoGreeting { .. }
            | ProtocolError::TooLarge { .. }
            | ProtocolError::Garbled { .. } => ErrorClass::Unexpected,
        }
    }
}

/// The largest frame, in bytes. Whoever has more to say says it in parts.
pub const MAX_FRAME_BYTES: usize = 4 << 20;

const HEAD: usize = 4;

/// A message as bytes.
///
/// # Errors
/// It is larger than [`MAX_FRAME_BYTES`], or no JSON can be made of it.
pub fn encode_frame<T: Serialize>(message: &T) -> Result<Vec<u8>, ProtocolError> {
    let mut bytes = vec![0; HEAD];
    serde_json::to_writer(&mut bytes, message)
        .map_err(|error| ProtocolError::Garbled { size: 0, reason: error.to_string() })?;
    // Slurm passes what a program prints on line by line: without its end, a message would lie there.
    bytes.push(b'\n');
    let size = bytes.len() - HEAD;
    let length = u32::try_from(size).ok().filter(|_| size <= MAX_FRAME_BYTES);
    let length = length.ok_or(ProtocolError::TooLarge { size })?;
    bytes.splice(..HEAD, length.to_le_bytes());
    Ok(bytes)
}

/// Takes messages of one kind out of a stream. Never holds more than one frame and what was given last.
#[derive(Debug)]
pub struct FrameDecoder<T> {
    held: Vec<u8>,
    taken: usize,
    kind: PhantomData<T>,
}

impl<T> Default for FrameDecoder<T> {
    fn default() -> Self {
        FrameDecoder { held: Vec::new(), taken: 0, kind: PhantomData }
    }
}

impl<T: DeserializeOwned> FrameDecoder<T> {
    /// Takes what came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.held.drain(..self.taken);
        self.taken = 0;
        self.held.extend_from_slice(bytes);
    }

    /// The next whole message, if there is one.
    ///
    /// # Errors
    /// A frame that is too large or not understood: nothing after it can be trusted.
    pub fn next_message(&mut self) -> Result<Option<T>, ProtocolError> {
        let waiting = self.held.get(self.taken..).unwrap_or_default();
        let Some((head, rest)) = waiting.split_first_chunk::<HEAD>() else { return Ok(None) };
        let size = u32::from_le_bytes(*head) as usize;
        if size > MAX_FRAME_BYTES {
            return Err(ProtocolError::TooLarge { size });
        }
        let Some(body) = rest.get(..size) else { return Ok(None) };
        let message = serde_json::from_slice(body)
            .map_err(|error| ProtocolError::Garbled { size, reason: error.to_string() })?;
        self.taken += HEAD + size;
        Ok(Some(message))
    }
}

/// Version of the protocol. Both sides must have the same: they are the same binary.
pub const PROTOCOL_VERSION: u32 = 2;

const GREETING_START: &[u8] = b"\nperflab-agent/";

/// What may come before a greeting.
const MAX_BYTES_BEFORE_GREETING: usize = 64 << 10;

/// Digits of a version.
const DIGITS: usize = 9;

/// The line itself. It begins with a line end, so that it is a line of its own whatever was printed before.
pub fn greeting_line() -> Vec<u8> {
    format!("\nperflab-agent/{PROTOCOL_VERSION}\n").into_bytes()
}

/// Looks for the other side's greeting.
#[derive(Debug, Default)]
pub struct GreetingParser {
    seen: Vec<u8>,
}

impl GreetingParser {
    /// Takes what came. Once the greeting was in it: what came after it, which belongs to the frames.
    ///
    /// # Errors
    /// Another version, or too much without a greeting.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, ProtocolError> {
        self.seen.extend_from_slice(bytes);
        let begin = self.seen.windows(GREETING_START.len()).position(|window| window == GREETING_START);
        let version = begin.and_then(|begin| self.seen.get(begin + GREETING_START.len()..));
        let end = version.and_then(|text| text.iter().position(|byte| *byte == b'\n'));
        match version.zip(end) {
            Some((text, end)) => self.check_version(text.get(..end), text.get(end + 1..)).map(Some),
            None if self.seen.len() > MAX_BYTES_BEFORE_GREETING => Err(self.no_greeting_error()),
            None => Ok(None),
        }
    }

    fn check_version(&self, version: Option<&[u8]>, rest: Option<&[u8]>) -> Result<Vec<u8>, ProtocolError> {
        let text =
            version.filter(|text| text.len() <= DIGITS).and_then(|text| std::str::from_utf8(text).ok());
        match text.and_then(|text| text.parse().ok()) {
            Some(PROTOCOL_VERSION) => Ok(rest.unwrap_or_default().to_vec()),
            Some(theirs) => Err(ProtocolError::Version { theirs }),
            None => Err(self.no_greeting_error()),
        }
    }

    fn no_greeting_error(&self) -> ProtocolError {
        let beginning = self.seen.get(..self.seen.len().min(80)).unwrap_or_default();
        let beginning = String::from_utf8_lossy(beginning).into_owned();
        ProtocolError::NoGreeting { bytes: self.seen.len(), beginning }
    }
}

/// What the host wants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentOrder {
    /// What time is it there? Answered at once, even while a workload runs.
    Ping {
        /// comes back in the pong
        id: u64,
    },
    /// This is the run: check, prepare, start the monitors, and reach [`BarrierPoint::First`].
    Configure(Box<AgentRunConfig>),
    /// Bring the settings to what this slot's case wants, make everything ready, and reach [`BarrierPoint::Before`].
    Prepare {
        /// index into the plan's slots
        index: u32,
        /// the slot
        slot: Slot,
    },
    /// Start the workload at that instant, and reach [`BarrierPoint::After`] when it is over.
    Start {
        /// index into the plan's slots
        index: u32,
        /// CLOCK_MONOTONIC of the agent
        at: Nanos,
    },
    /// End the iteration that runs, at once; it counts as interrupted.
    Cancel,
    /// Undo every setting, and reach [`BarrierPoint::Last`].
    Undo,
    /// Stop the monitors, and reach [`BarrierPoint::End`]. The agent is as it was before it was configured.
    Leave,
    /// As [`AgentOrder::Start`], but nothing is started: answered with [`AgentReport::Woke`].
    Rehearse {
        /// CLOCK_MONOTONIC of the agent
        at: Nanos,
    },
}

/// What an agent has to know of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentRunConfig {
    /// The run; without its slots and the text of its study, as slots come one by one.
    pub manifest: Manifest,
    /// Files and texts of the definitions that the plan uses: the agent's own catalogue may be another.
    pub definitions: Vec<(String, String)>,
    /// Names that templates may use here, beside the facts of the machine: the targets of the run with their addresses.
    pub names: BTreeMap<String, Scalar>,
}

/// What an agent says of itself, first of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentHello {
    /// `perflab 0.1.0`
    pub program: String,
    /// The kernel that it runs on: `6.1.0-56-cloud-amd64`.
    pub kernel: String,
    /// Distinguishes boots; empty where unknown.
    pub boot_id: String,
    /// CPUs that it may use.
    pub cpus: u32,
}

/// A part of the file that a tracer wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFilePart {
    /// Index into the plan's slots.
    pub slot: u32,
    /// Who wrote it: `optrace`, `io`.
    pub tracer: String,
    /// Bytes of the file, in base64.
    pub bytes: String,
    /// Whether nothing follows.
    pub last: bool,
}

/// The largest file of a tracer that is sent, in bytes. Recordings of I/O are read into memory as a whole.
pub fn largest_trace(tracer: &str) -> Bytes {
    Bytes(if tracer == IO_TRACER { 256 << 20 } else { 4 << 30 })
}

/// What the agent has to say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentReport {
    /// Right after the greeting.
    Hello(AgentHello),
    /// The answer to a ping.
    Pong {
        /// the ping's
        id: u64,
        /// CLOCK_MONOTONIC of the agent
        at: Nanos,
    },
    /// The point is reached; whatever belongs before it was sent before.
    Reached(BarrierPoint),
    /// Something happened; times are the agent's.
    Event(RunEvent),
    /// A part of the file that a tracer wrote in the iteration that is going on; the parts follow one another.
    TraceFile(TraceFilePart),
    /// A part of what is needed of its kernel's symbols to sample it from outside; before [`BarrierPoint::First`].
    KernelSymbols {
        /// lines of its /proc/kallsyms
        text: String,
        /// whether nothing follows
        last: bool,
    },
    /// The answer to a rehearsal: when the waiting ended.
    Woke {
        /// CLOCK_MONOTONIC of the agent
        at: Nanos,
    },
    /// The run, or what is left of it, cannot be carried out here: each reason in one line. Everything is undone.
    Refused(Vec<String>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_found_behind_a_logins_noise_and_the_rest_belongs_to_the_frames() {
        let mut greeter = GreetingParser::default();
        let mut said = b"Welcome to Debian\nLast login: today".to_vec();
        said.extend(greeting_line());
        said.extend([7, 8]);
        for byte in &said[..said.len() - 3] {
            assert_eq!(greeter.feed(&[*byte]), Ok(None));
        }
        assert_eq!(greeter.feed(&said[said.len() - 3..]), Ok(Some(vec![7, 8])));
    }

    #[test]
    fn another_version_is_refused_by_its_number() {
        let refused = GreetingParser::default().feed(b"\nperflab-agent/3\n").unwrap_err();
        assert_eq!(refused, ProtocolError::Version { theirs: 3 });
        insta::assert_snapshot!(refused, @"it speaks version 3 of the agent protocol, and this perflab version 2; use the same perflab on both sides");
    }

    #[test]
    fn noise_without_a_greeting_has_an_end() {
        let mut greeter = GreetingParser::default();
        let said = (0..100).map(|_| greeter.feed(&[b'x'; 1000])).find(Result::is_err).unwrap();
        assert!(matches!(said, Err(ProtocolError::NoGreeting { bytes: 66_000, .. })), "{said:?}");
        let mut greeter = GreetingParser::default();
        assert!(matches!(greeter.feed(b"\nperflab-agent/one\n"), Err(ProtocolError::NoGreeting { .. })));
    }

    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_cut() {
        let orders = [
            AgentOrder::Ping { id: 1 },
            AgentOrder::Cancel,
            AgentOrder::Rehearse { at: perflab_model::Nanos(3) },
        ];
        let bytes: Vec<u8> = orders.iter().flat_map(|order| encode_frame(order).unwrap()).collect();
        for cut in 1..bytes.len() {
            let mut decoder = FrameDecoder::default();
            let mut heard: Vec<AgentOrder> = Vec::new();
            for part in bytes.chunks(cut) {
                decoder.push(part);
                while let Some(order) = decoder.next_message().unwrap() {
                    heard.push(order);
                }
            }
            assert_eq!(heard, orders, "in parts of {cut}");
        }
    }

    #[test]
    fn a_frame_too_large_is_refused_before_it_comes_and_garbage_is_named() {
        let mut decoder: FrameDecoder<AgentOrder> = FrameDecoder::default();
        decoder.push(&u32::MAX.to_le_bytes());
        assert_eq!(decoder.next_message(), Err(ProtocolError::TooLarge { size: u32::MAX as usize }));
        let mut decoder: FrameDecoder<AgentOrder> = FrameDecoder::default();
        decoder.push(&[2, 0, 0, 0, b'h', b'i']);
        assert!(matches!(decoder.next_message(), Err(ProtocolError::Garbled { size: 2, .. })));
        assert!(matches!(encode_frame(&"x".repeat(MAX_FRAME_BYTES)), Err(ProtocolError::TooLarge { .. })));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_bytes_never_panic_and_never_pile_up(parts: Vec<Vec<u8>>) {
            let (mut greeter, mut decoder) = (GreetingParser::default(), FrameDecoder::<AgentReport>::default());
            for part in parts {
                let _ = greeter.feed(&part);
                decoder.push(&part);
                while let Ok(Some(_)) = decoder.next_message() {}
            }
        }
    }
}
