//! The call of an agent: a TCP connection to this host, beside the standard streams that it was started with.
//!
//! What passes standard streams on over a network may hold small messages back: `srun` waits for the other side's word that one came
//! before it sends the next (Nagle's algorithm), for 40 ms at each. So an agent calls, and says over its standard output whether it
//! could: if not, the standard streams have to do. The caller is known by a secret that it was given over its standard input.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use data_encoding::HEXLOWER;
use perflab_model::StopRequest;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How long an agent tries to call.
const CALL: Duration = Duration::from_secs(2);

/// How long it may take until the agent says whether it called: the whole start of a program on a busy node.
const ANSWER: Duration = Duration::from_secs(60);

/// How long a caller may take to show the secret.
const GREETING: Duration = Duration::from_secs(1);

const LOOK: Duration = Duration::from_millis(50);

const SECRET_BYTES: usize = 16;

/// What an agent says on a line of its own: it called,
const CALLED: &str = "perflab-agent-call: made";

/// or it could not, and speaks over its standard streams.
const NOT_CALLED: &str = "perflab-agent-call: failed";

/// Bytes of such a line, and of what a login may print before it.
const MOST: usize = 64 << 10;

/// Where an agent calls.
#[derive(Debug)]
pub(crate) struct AgentCallPort {
    listener: TcpListener,
    /// Its number, on every address of this host.
    pub(crate) port: u16,
    /// What the agent is to show, as a line of text.
    pub(crate) secret: String,
}

impl AgentCallPort {
    /// A port of this host's choice.
    ///
    /// # Errors
    /// There is no network, or nothing random.
    pub(crate) fn open() -> io::Result<Self> {
        // The first of them takes calls to addresses of both kinds.
        let listener = TcpListener::bind("[::]:0").or_else(|_| TcpListener::bind("0.0.0.0:0"))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let mut secret = [0; SECRET_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut secret)?;
        Ok(AgentCallPort { listener, port, secret: HEXLOWER.encode(&secret) })
    }

    /// The agent's call, if it says on `stdout` that it made one; none where its standard streams have to do.
    ///
    /// # Errors
    /// It ends, or says nothing in time.
    pub(crate) fn take_call(
        &self,
        stdout: &mut (impl io::Read + AsFd),
        stop: &StopRequest,
    ) -> io::Result<Option<TcpStream>> {
        let begun = Instant::now();
        let (mut line, mut bytes) = (Vec::new(), 0);
        loop {
            if stop.is_requested() {
                return Err(io::Error::other("stopped before it had called"));
            }
            if begun.elapsed() > ANSWER || bytes > MOST {
                return Err(io::Error::other("it did not say how it is spoken to"));
            }
            let look = Timespec { tv_sec: 0, tv_nsec: LOOK.as_nanos() as _ };
            if poll(&mut [PollFd::new(&*stdout, PollFlags::IN)], Some(&look))? == 0 {
                continue;
            }
            // No byte more: what follows belongs to the stream.
            let mut byte = [0];
            if stdout.read(&mut byte)? == 0 {
                return Err(io::Error::other("it ended before it had said how it is spoken to"));
            }
            bytes += 1;
            if byte != *b"\n" {
                line.extend(byte);
                continue;
            }
            match line.as_slice() {
                said if said == CALLED.as_bytes() => return self.accept_call().map(Some),
                said if said == NOT_CALLED.as_bytes() => return Ok(None),
                _ => line.clear(),
            }
        }
    }

    /// The call that shows the secret; all others are hung up on.
    fn accept_call(&self) -> io::Result<TcpStream> {
        let begun = Instant::now();
        while begun.elapsed() < CALL {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    if self.is_ours(&stream).unwrap_or(false) {
                        stream.set_read_timeout(None)?;
                        return Ok(stream);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(LOOK / 10),
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("it says that it called, and nobody did who knows its secret"))
    }

    fn is_ours(&self, mut stream: &TcpStream) -> io::Result<bool> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(GREETING))?;
        let mut shown = vec![0; self.secret.len() + 1];
        stream.read_exact(&mut shown)?;
        Ok(shown.strip_suffix(b"\n") == Some(self.secret.as_bytes()))
    }
}

/// The agent's side: reads the secret from its standard input, calls `address` (`HOST:PORT`), and says whether it could. The connection
/// ends with the standard input, too: whoever started the agent is gone then.
///
/// # Errors
/// The standard streams are broken.
pub fn call_host(address: &str) -> io::Result<Option<TcpStream>> {
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut secret = Vec::new();
    let mut byte = [0];
    // No byte more: what follows belongs to the stream.
    while !secret.ends_with(b"\n") {
        if secret.len() > MOST || stdin.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        secret.extend(byte);
    }
    let called = connect_host(address, &secret);
    let said = if called.is_ok() { CALLED } else { NOT_CALLED };
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    stdout.write_all(format!("\n{said}\n").as_bytes())?;
    let Ok(stream) = called else { return Ok(None) };
    let ends_with_input = stream.try_clone()?;
    std::thread::Builder::new().name("input".into()).spawn(move || {
        let _ = io::copy(&mut stdin, &mut io::sink());
        let _ = ends_with_input.shutdown(Shutdown::Both);
    })?;
    Ok(Some(stream))
}

fn connect_host(address: &str, secret: &[u8]) -> io::Result<TcpStream> {
    let (host, port) = address.rsplit_once(':').ok_or(io::ErrorKind::InvalidInput)?;
    let port: u16 = port.parse().map_err(io::Error::other)?;
    let mut last = io::ErrorKind::AddrNotAvailable.into();
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CALL) {
            Ok(mut stream) => {
                // Frames are small and awaited: none may wait for company.
                stream.set_nodelay(true)?;
                stream.write_all(secret)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn the_call_that_shows_the_secret_is_taken_and_no_other() {
        let port = AgentCallPort::open().unwrap();
        let address = format!("127.0.0.1:{}", port.port);
        let stranger = connect_host(&address, b"let me in\n").unwrap();
        drop(stranger);
        let mut ours = connect_host(&address, format!("{}\n", port.secret).as_bytes()).unwrap();
        let (mut said, mut heard) = UnixStream::pair().unwrap();
        said.write_all(format!("Welcome to n1\n\n{CALLED}\n").as_bytes()).unwrap();
        let mut call = port.take_call(&mut heard, &StopRequest::new()).unwrap().unwrap();
        ours.write_all(b"hello").unwrap();
        let mut told = [0; 5];
        call.read_exact(&mut told).unwrap();
        assert_eq!(&told, b"hello");
    }

    #[test]
    fn who_cannot_call_is_spoken_to_over_its_standard_streams() {
        let port = AgentCallPort::open().unwrap();
        let (mut said, mut heard) = UnixStream::pair().unwrap();
        said.write_all(format!("\n{NOT_CALLED}\nrest").as_bytes()).unwrap();
        assert!(port.take_call(&mut heard, &StopRequest::new()).unwrap().is_none());
        let mut rest = [0; 4];
        heard.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"rest");
        drop(said);
        assert!(port.take_call(&mut heard, &StopRequest::new()).is_err());
    }
}
