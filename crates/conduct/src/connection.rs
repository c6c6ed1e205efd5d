//! A byte stream to an agent: a pipe pair, a Unix or TCP socket, the host's end of a virtio-serial port.
//!
//! Bytes go in and out without blocking, and an allowance bounds how much may come. Who is at the other end is the
//! [launcher](crate::launcher)'s matter, what the bytes mean the [protocol](crate::protocol)'s. A connection is
//! closed by dropping it.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::{fmt, io};

use perflab_model::Nanos;
use rustix::io::Errno;

use crate::protocol::{AgentOrder, AgentReport, FrameDecoder, GreetingParser, encode_frame, greeting_line};

/// Both directions of a stream, and what people call the one at its end.
pub struct Connection {
    /// `guest1`, in messages.
    pub name: String,
    /// What the agent says.
    pub reading: OwnedFd,
    /// What the agent hears.
    pub writing: OwnedFd,
}

impl Connection {
    /// A stream with a descriptor for each direction: the pipes of a child.
    pub fn new(name: impl Into<String>, reading: impl Into<OwnedFd>, writing: impl Into<OwnedFd>) -> Self {
        Connection { name: name.into(), reading: reading.into(), writing: writing.into() }
    }

    /// A stream with one descriptor for both directions: a socket, a character device.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn duplex(name: impl Into<String>, stream: impl Into<OwnedFd>) -> io::Result<Self> {
        let reading = stream.into();
        let writing = reading.as_fd().try_clone_to_owned()?;
        Ok(Connection { name: name.into(), reading, writing })
    }

    /// A socket file: what QEMU makes of `-chardev socket,path=…,server=on`.
    ///
    /// # Errors
    /// Nobody listens there yet, or we may not.
    pub fn connect_unix(name: impl Into<String>, path: &Path) -> io::Result<Self> {
        Connection::duplex(name, UnixStream::connect(path)?)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What an agent may send in a second, in bytes: ten times what all monitors give at their fastest.
pub(crate) const ALLOWANCE_RATE: u64 = 16 << 20;

/// What it may send at once: the output of a talkative workload.
pub(crate) const ALLOWANCE_BURST: u64 = 64 << 20;

const _: () = assert!(ALLOWANCE_BURST >= BYTES_PER_READ as u64, "nobody would ever be heard");

/// What is read at a time, so that no connection keeps the others waiting.
pub(crate) const BYTES_PER_READ: usize = 1 << 18;

/// Orders are small and few: more than this unsent means that they are not read.
const MAX_UNSENT_BYTES: usize = 16 << 20;

/// What is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PollInterest {
    Read = 0,
    Write = 1,
}

#[derive(Debug)]
pub(crate) struct FramedConnection {
    pub(crate) reading: OwnedFd,
    pub(crate) writing: OwnedFd,
    pub(crate) waits_to_write: bool,
    greeter: Option<GreetingParser>,
    decoder: FrameDecoder<AgentReport>,
    unsent: Vec<u8>,
    allowance: u64,
    counted: Nanos,
}

/// The error of a stream without another end.
const STREAM_ENDED: &str = "its stream ended";

/// Whoever dies with something unread resets the stream, and one who is written to then has a broken pipe: it ended.
fn broken_reason(errno: Errno) -> String {
    match errno {
        Errno::CONNRESET | Errno::PIPE => STREAM_ENDED.into(),
        errno => format!("its stream broke: {errno}"),
    }
}

impl FramedConnection {
    pub(crate) fn new(channel: Connection) -> io::Result<Self> {
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

    pub(crate) fn queue(&mut self, order: &AgentOrder) -> Result<(), String> {
        self.unsent.extend(encode_frame(order).map_err(|error| error.to_string())?);
        if self.unsent.len() > MAX_UNSENT_BYTES { Err("it takes no orders any more".into()) } else { Ok(()) }
    }

    /// Writes what can be written; says whether something is left.
    pub(crate) fn write(&mut self) -> Result<bool, String> {
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

    /// Reads one allowance: the reports in it, and the reason why there will be no more, if so.
    pub(crate) fn read(&mut self, now: Nanos, buffer: &mut [u8]) -> (Vec<AgentReport>, Option<String>) {
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
    pub(crate) fn may_read(&mut self, now: Nanos) -> bool {
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
