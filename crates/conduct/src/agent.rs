//! Perflab inside a target, taking orders over a byte stream: greeting, pings, orders handed on.
//!
//! One thread listens and one works, so that a ping is answered while a workload runs, and an end of the stream
//! ends the workload. An agent needs nothing installed, has no shell, runs what the run's definitions say and
//! nothing else, and turns away a host that speaks another version. Where the stream comes from is its caller's
//! choice.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use perflab_model::StopRequest;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_observe::{Root, monotonic_now};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::agent_run::AgentRuns;
use crate::connection::Connection;
use crate::framed_reports::FramedReportWriter;
use crate::protocol::{AgentHello, AgentOrder, AgentReport, FrameDecoder, GreetingParser, ProtocolError};
use crate::run_context::LocalMachine;

/// How long a port that nobody has connected yet is left alone between two looks.
const NOBODY_YET: Duration = Duration::from_millis(10);

/// Why an agent ended before it was ordered to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The host cannot be understood.
    #[error("cannot understand the host: {0}")]
    Protocol(#[from] ProtocolError),
    /// The stream broke.
    #[error("the stream to the host broke: {0}")]
    Stream(#[from] io::Error),
}

impl Classify for AgentError {
    fn class(&self) -> ErrorClass {
        match self {
            AgentError::Protocol(error) => error.class(),
            AgentError::Stream(error) => error.class(),
        }
    }
}

/// Serves one host until the stream ends. With `patient`, an end of the stream before the host's greeting only means
/// that nobody has connected yet, as at a virtio-serial port. What makes `end` readable, where there is one, ends it as well.
///
/// # Errors
/// A host of another version, garbage, a stream that breaks.
pub fn serve_agent(
    stream: Connection,
    patient: bool,
    end: Option<OwnedFd>,
    host: LocalMachine,
) -> Result<(), AgentError> {
    let writer = FramedReportWriter::new(File::from(stream.writing));
    let mut reading = File::from(stream.reading);
    let rest = exchange_greetings(&mut reading, patient, &writer)?;
    writer.write_report(&AgentReport::Hello(own_hello(&host.root)))?;
    let (stop, gone) = (StopRequest::new(), AtomicBool::new(false));
    let (orders, todo) = channel();
    std::thread::scope(|scope| {
        let worker = {
            let runs = AgentRuns { writer: writer.clone(), todo, stop: stop.clone(), gone: &gone };
            scope.spawn(move || runs.serve(host))
        };
        let heard = receive_orders(&mut reading, end.as_ref(), &rest, &writer, &orders, &stop);
        // Whatever ended the stream ends the work as well.
        gone.store(true, Ordering::SeqCst);
        stop.request_stop();
        drop(orders);
        let worked = worker.join().unwrap_or_else(|_| Err(io::Error::other("the working thread panicked")));
        heard?;
        Ok(worked?)
    })
}

/// Says our greeting, waits for the host's, and gives what came after it.
fn exchange_greetings(
    reading: &mut File,
    patient: bool,
    writer: &FramedReportWriter,
) -> Result<Vec<u8>, AgentError> {
    writer.write_greeting()?;
    let mut greeter = GreetingParser::default();
    let mut buffer = [0; 4096];
    loop {
        match reading.read(&mut buffer)? {
            0 if patient => std::thread::sleep(NOBODY_YET),
            0 => return Err(AgentError::Stream(io::ErrorKind::UnexpectedEof.into())),
            length => {
                if let Some(rest) = greeter.feed(buffer.get(..length).unwrap_or_default())? {
                    return Ok(rest);
                }
            }
        }
    }
}

/// Takes orders until the stream ends, or it is to.
fn receive_orders(
    reading: &mut File,
    end: Option<&OwnedFd>,
    rest: &[u8],
    writer: &FramedReportWriter,
    orders: &Sender<AgentOrder>,
    stop: &StopRequest,
) -> Result<(), AgentError> {
    let mut decoder = FrameDecoder::default();
    let mut buffer = [0; 1 << 16];
    decoder.push(rest);
    loop {
        while let Some(order) = decoder.next_message()? {
            match order {
                AgentOrder::Ping { id } => {
                    writer.write_report(&AgentReport::Pong { id, at: monotonic_now() })?
                }
                AgentOrder::Cancel => stop.request_stop(),
                order => drop(orders.send(order)),
            }
        }
        if is_to_end(reading, end)? {
            return Ok(());
        }
        match reading.read(&mut buffer)? {
            0 => return Ok(()),
            length => decoder.push(buffer.get(..length).unwrap_or_default()),
        }
    }
}

/// Waits until there is something to read; says whether it is the end.
fn is_to_end(reading: &File, end: Option<&OwnedFd>) -> io::Result<bool> {
    let Some(end) = end else { return Ok(false) };
    let mut waiting = [PollFd::new(reading, PollFlags::IN), PollFd::new(end, PollFlags::IN)];
    match poll(&mut waiting, None) {
        Ok(_) => Ok(!waiting[1].revents().is_empty()),
        // What interrupted it says so by `end`.
        Err(Errno::INTR) => is_to_end(reading, Some(end)),
        Err(errno) => Err(errno.into()),
    }
}

/// The first report.
fn own_hello(root: &Root) -> AgentHello {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    AgentHello {
        program: format!("perflab {}", env!("CARGO_PKG_VERSION")),
        kernel,
        boot_id: perflab_observe::read_boot_id(root),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
    }
}
