//! What a guest and its host say to each other while the guest is not (or never) spoken to by an agent: frames of a
//! kind, a length and bytes, so that what a command prints and how it ended come in order.

use std::io::{self, Read, Write};

use crate::inert::remove_control_characters;

/// More than this no frame holds: a guest is not trusted with the host's memory.
pub const MAX_CONTROL_FRAME_BYTES: usize = 64 << 10;

/// What the guest says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestMessage {
    /// The root is there; the work begins.
    Ready,
    /// The command printed this.
    Output(Vec<u8>),
    /// The command complained.
    Errors(Vec<u8>),
    /// The work ended with this code.
    Exited(i32),
    /// The work was killed by this signal.
    Killed(i32),
    /// The guest could not get to work.
    Failed(String),
}

/// What the host says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostMessage {
    /// Standard input of the command.
    Input(Vec<u8>),
    /// There is no more of it.
    EndOfInput,
}

/// One direction of the conversation, or both.
pub trait ControlFrame: Sized {
    /// Kind and content.
    fn to_parts(&self) -> (u8, Vec<u8>);

    /// The message of that kind; none where there is no such kind.
    fn from_parts(kind: u8, content: Vec<u8>) -> Option<Self>;

    /// Sends one frame.
    ///
    /// # Errors
    /// The stream broke.
    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (kind, content) = self.to_parts();
        let mut frame = vec![kind];
        frame.extend_from_slice(&(content.len() as u32).to_le_bytes());
        frame.extend_from_slice(&content);
        to.write_all(&frame)?;
        to.flush()
    }

    /// Waits for one frame; none at the end of the stream.
    ///
    /// # Errors
    /// The stream broke, or what comes is no frame.
    fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = [0; 5];
        match from.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        let garbage =
            || io::Error::new(io::ErrorKind::InvalidData, "the guest sends something that is no frame");
        if length > MAX_CONTROL_FRAME_BYTES {
            return Err(garbage());
        }
        let mut content = vec![0; length];
        from.read_exact(&mut content)?;
        Self::from_parts(kind, content).map(Some).ok_or_else(garbage)
    }
}

impl ControlFrame for GuestMessage {
    fn to_parts(&self) -> (u8, Vec<u8>) {
        match self {
            GuestMessage::Ready => (0, Vec::new()),
            GuestMessage::Output(bytes) => (1, bytes.clone()),
            GuestMessage::Errors(bytes) => (2, bytes.clone()),
            GuestMessage::Exited(code) => (3, code.to_le_bytes().to_vec()),
            GuestMessage::Killed(signal) => (4, signal.to_le_bytes().to_vec()),
            GuestMessage::Failed(reason) => (5, reason.clone().into_bytes()),
        }
    }

    fn from_parts(kind: u8, content: Vec<u8>) -> Option<GuestMessage> {
        let number = |bytes: &[u8]| bytes.try_into().ok().map(i32::from_le_bytes);
        match kind {
            0 => Some(GuestMessage::Ready),
            1 => Some(GuestMessage::Output(content)),
            2 => Some(GuestMessage::Errors(content)),
            3 => number(&content).map(GuestMessage::Exited),
            4 => number(&content).map(GuestMessage::Killed),
            // It is shown to people: nothing in it steers their terminal.
            5 => Some(GuestMessage::Failed(remove_control_characters(&String::from_utf8_lossy(&content)))),
            _ => None,
        }
    }
}

impl ControlFrame for HostMessage {
    fn to_parts(&self) -> (u8, Vec<u8>) {
        match self {
            HostMessage::Input(bytes) => (0, bytes.clone()),
            HostMessage::EndOfInput => (1, Vec::new()),
        }
    }

    fn from_parts(kind: u8, content: Vec<u8>) -> Option<HostMessage> {
        match kind {
            0 => Some(HostMessage::Input(content)),
            1 => Some(HostMessage::EndOfInput),
            _ => None,
        }
    }
}
