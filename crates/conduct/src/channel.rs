//! A byte stream to an agent: a pipe pair, a Unix or TCP socket, the host's end of a virtio-serial port.
//!
//! Owns two descriptors and a name, and nothing else: who is at the other end, how it was started and how
//! it is ended is its [`crate::place`]'s; what is said is [`crate::protocol`]'s. Closing is dropping.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::{fmt, io};

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
