//! One agent's stream: bytes in and out without blocking, and a measure of how much may come.

use std::io;
use std::os::fd::OwnedFd;

use perflab_model::Nanos;
use rustix::io::Errno;

use crate::Connection;
use crate::protocol::{AgentOrder, AgentReport, FrameDecoder, GreetingParser, encode_frame, greeting_line};

/// What an agent may send in a second, in bytes: ten times what all monitors give at their fastest.
pub(super) const ALLOWANCE_RATE: u64 = 16 << 20;
/// What it may send at once: the output of a talkative workload.
pub(super) const ALLOWANCE_BURST: u64 = 64 << 20;
const _: () = assert!(ALLOWANCE_BURST >= BYTES_PER_READ as u64, "nobody would ever be heard");
/// What is read at a time, so that nobody keeps the others waiting.
pub(super) const BYTES_PER_READ: usize = 1 << 18;
/// Orders are small and few: more than this unsent means that nobody takes them.
const MAX_UNSENT_BYTES: usize = 16 << 20;

/// What is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) enum PollInterest {
    Read = 0,
    Write = 1,
}

#[derive(Debug)]
pub(super) struct FramedConnection {
    pub(super) reading: OwnedFd,
    pub(super) writing: OwnedFd,
    pub(super) waits_to_write: bool,
    greeter: Option<GreetingParser>,
    decoder: FrameDecoder<AgentReport>,
    unsent: Vec<u8>,
    allowance: u64,
    counted: Nanos,
}

/// What is said of a stream without another end.
const STREAM_ENDED: &str = "its stream ended";

/// Whoever dies with something unread resets the stream, and one who is written to then has a broken pipe: it ended.
fn broken_reason(errno: Errno) -> String {
    match errno {
        Errno::CONNRESET | Errno::PIPE => STREAM_ENDED.into(),
        errno => format!("its stream broke: {errno}"),
    }
}

impl FramedConnection {
    pub(super) fn new(channel: Connection) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&channel.reading, true)?;
        rustix::io::ioctl_fionbio(&channel.writing, true)?;
        Ok(FramedConnection {
            reading: channel.reading,
            writing: channel.writing,
            waits_to_write: false,
            greeter: Some(GreetingParser::default()),
            decoder: FrameDecoder::default(),
            unsent: greeting_line(),
            allowance: ALLOWANCE_BURST,
            counted: Nanos(0),
        })
    }

    pub(super) fn queue(&mut self, order: &AgentOrder) -> Result<(), String> {
        self.unsent.extend(encode_frame(order).map_err(|error| error.to_string())?);
        if self.unsent.len() > MAX_UNSENT_BYTES { Err("it takes no orders any more".into()) } else { Ok(()) }
    }

    /// Writes what can be written; says whether something is left.
    pub(super) fn write(&mut self) -> Result<bool, String> {
        while !self.unsent.is_empty() {
            match rustix::io::write(&self.writing, &self.unsent) {
                Ok(length) => drop(self.unsent.drain(..length)),
                Err(Errno::AGAIN) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(broken_reason(errno)),
            }
        }
        Ok(false)
    }

    /// Reads one turn: the reports in it, and the reason why there will be no more, if so.
    pub(super) fn read(&mut self, now: Nanos, buffer: &mut [u8]) -> (Vec<AgentReport>, Option<String>) {
        match rustix::io::read(&self.reading, &mut *buffer) {
            Ok(0) => (Vec::new(), Some(STREAM_ENDED.into())),
            Ok(length) => {
                self.earn_allowance(now);
                // Never below nothing: who may be heard has a whole turn, and more is not read.
                self.allowance = self.allowance.saturating_sub(length as u64);
                self.decode(buffer.get(..length).unwrap_or_default())
            }
            Err(Errno::AGAIN | Errno::INTR) => (Vec::new(), None),
            Err(errno) => (Vec::new(), Some(broken_reason(errno))),
        }
    }

    fn decode(&mut self, bytes: &[u8]) -> (Vec<AgentReport>, Option<String>) {
        match self.greeter.as_mut().map(|greeter| greeter.feed(bytes)) {
            Some(Ok(None)) => return (Vec::new(), None),
            Some(Err(error)) => return (Vec::new(), Some(error.to_string())),
            Some(Ok(Some(rest))) => {
                self.greeter = None;
                self.decoder.push(&rest);
            }
            None => self.decoder.push(bytes),
        }
        let mut reports = Vec::new();
        loop {
            match self.decoder.next_message() {
                Ok(Some(report)) => reports.push(report),
                Ok(None) => return (reports, None),
                Err(error) => return (reports, Some(error.to_string())),
            }
        }
    }

    /// Whether it may be heard now: only with a whole turn to spend, so that what is read is always paid for.
    pub(super) fn may_read(&mut self, now: Nanos) -> bool {
        self.earn_allowance(now);
        self.allowance >= BYTES_PER_READ as u64
    }

    fn earn_allowance(&mut self, now: Nanos) {
        let earned = u128::from(now.since(self.counted).0) * u128::from(ALLOWANCE_RATE) / 1_000_000_000;
        if earned > 0 {
            let earned = u64::try_from(earned).unwrap_or(u64::MAX);
            self.allowance = self.allowance.saturating_add(earned).min(ALLOWANCE_BURST);
            self.counted = now;
        }
    }
}
