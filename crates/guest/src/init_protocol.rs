//! What a host orders from a guest's first process, and the frames between them.
//!
//! The orders are an [`InitConfig`], a file of the initramfs. What becomes of them is reported over the control
//! port, while no agent is (or ever will be) there: frames of a kind, a length and bytes, so that what a command
//! prints and how it ended arrive in order.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::remove_control_characters;
use serde::{Deserialize, Serialize};

use crate::guest_network::GuestAddresses;

/// Name of the port over which a guest reports its state.
pub const CONTROL_PORT: &str = "perflab.control";

/// Name of the port over which its agent takes orders.
pub const AGENT_PORT: &str = "perflab.agent";

/// What the first process is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitConfig {
    /// The guest's name, which becomes its host name.
    pub name: String,
    /// Modules in the order of loading.
    pub modules: Vec<String>,
    /// What `/` is.
    pub root: GuestRoot,
    /// What for.
    pub work: GuestWork,
    /// The host's port that the agent calls over vsock; a port of virtio-serial where there is none.
    pub vsock: Option<u32>,
    /// Its network cards, and who is where.
    pub network: GuestAddresses,
}

/// What `/` is in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestRoot {
    /// The initramfs itself.
    Bare,
    /// The host's, read-only, under an overlay in memory.
    Shared {
        /// `9p` or `virtiofs`
        filesystem: String,
        /// the name under which QEMU offers it
        tag: String,
    },
    /// A partition of a disk image.
    Disk {
        /// `/dev/vda1`
        device: PathBuf,
    },
}

/// What a guest is booted for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestWork {
    /// To take orders.
    Agent,
    /// One command; the guest ends with it.
    Command(GuestCommand),
    /// A shell on the virtual console; the guest ends with it.
    Shell(GuestCommand),
    /// A shell on the virtual console, and another one when it ends: the guest is ended from outside.
    Shells(GuestCommand),
}

/// A command and its surroundings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where it starts; `/` where the guest has no such folder.
    pub directory: PathBuf,
    /// Its whole environment.
    pub environment: Vec<(String, String)>,
}

/// Why a guest could not get to work.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The kernel refuses something.
    #[error("cannot {action} {what}: {source}")]
    Refused {
        /// "mount", "load", "open"
        action: &'static str,
        /// what
        what: String,
        /// the kernel's reason
        source: std::io::Error,
    },
    /// A program of the host's is not in the guest.
    #[error("cannot start {what}: {source}; a guest has a /tmp of its own, so put it elsewhere")]
    Hidden {
        /// which
        what: String,
        /// the kernel's reason
        source: std::io::Error,
    },
    /// A device did not come.
    #[error("{what} did not appear within {seconds} s")]
    Missing {
        /// which
        what: String,
        /// how long it was waited for
        seconds: u64,
    },
    /// The orders cannot be read.
    #[error("cannot read the orders: {0}")]
    Orders(#[from] serde_json::Error),
}

impl Classify for InitError {
    fn class(&self) -> ErrorClass {
        match self {
            InitError::Refused { .. }
            | InitError::Hidden { .. }
            | InitError::Missing { .. }
            | InitError::Orders(_) => ErrorClass::Unexpected,
        }
    }
}

impl InitError {
    pub(crate) fn system_error<E: Into<std::io::Error>>(
        action: &'static str,
        what: impl Into<String>,
    ) -> impl FnOnce(E) -> InitError {
        let what = what.into();
        move |source| InitError::Refused { action, what, source: source.into() }
    }
}

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
    /// The stream broke, or what comes is not a frame.
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

/// The control port.
#[derive(Debug, Clone)]
pub(crate) struct ControlPort(Arc<Mutex<File>>);

impl ControlPort {
    pub(crate) fn new(port: File) -> Self {
        ControlPort(Arc::new(Mutex::new(port)))
    }

    /// Sends to the host. One that no longer listens ends the guest by other means.
    pub(crate) fn send(&self, message: &GuestMessage) {
        let mut port = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = message.write(&mut *port);
    }

    /// For hearing what the host says.
    pub(crate) fn reader(&self) -> io::Result<File> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).try_clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::init::is_guest_init;

    fn guest_messages() -> impl Strategy<Value = GuestMessage> {
        let bytes = proptest::collection::vec(any::<u8>(), 0..100);
        prop_oneof![
            Just(GuestMessage::Ready),
            bytes.clone().prop_map(GuestMessage::Output),
            bytes.prop_map(GuestMessage::Errors),
            any::<i32>().prop_map(GuestMessage::Exited),
            any::<i32>().prop_map(GuestMessage::Killed),
            "[a-z ]{0,50}".prop_map(GuestMessage::Failed),
        ]
    }

    proptest! {
        #[test]
        fn what_is_said_is_heard(all in proptest::collection::vec(guest_messages(), 0..20)) {
            let mut stream = Vec::new();
            all.iter().for_each(|one| one.write(&mut stream).unwrap());
            let mut stream = Cursor::new(stream);
            let mut heard = Vec::new();
            while let Some(one) = GuestMessage::read(&mut stream).unwrap() {
                heard.push(one);
            }
            prop_assert_eq!(heard, all);
        }

        #[test]
        fn garbage_is_refused_and_never_takes_much_memory(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut stream = Cursor::new(bytes);
            while let Ok(Some(one)) = GuestMessage::read(&mut stream) {
                prop_assert!(one.to_parts().1.len() <= MAX_CONTROL_FRAME_BYTES);
            }
        }
    }

    #[test]
    fn a_frame_that_announces_too_much_is_refused() {
        let mut frame = vec![1];
        frame.extend_from_slice(&(MAX_CONTROL_FRAME_BYTES as u32 + 1).to_le_bytes());
        let error = GuestMessage::read(&mut Cursor::new(frame)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_failure_is_told_in_text_that_steers_no_terminal() {
        let mut stream = Vec::new();
        GuestMessage::Failed("no \x1b]0;evil\x07root".into()).write(&mut stream).unwrap();
        let heard = GuestMessage::read(&mut Cursor::new(stream)).unwrap();
        assert_eq!(heard, Some(GuestMessage::Failed("no \u{fffd}]0;evil\u{fffd}root".into())));
    }

    #[test]
    fn this_process_is_no_guests_first_one() {
        assert!(!is_guest_init());
    }
}
