//! The listening thread: greets, answers pings at once, hands every other order to the working one.

use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use perflab_observe::monotonic_now;

use super::hello::hello;
use super::run::Duty;
use super::voice::Voice;

use crate::protocol::{Decoder, Greeter, Order, ProtocolError, Report};
use crate::{Channel, Host, Stop};

/// How long a port that nobody has connected yet is left alone between two looks.
const NOBODY_YET: Duration = Duration::from_millis(10);

/// Why an agent ended before it was told to.
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

/// Serves one host until the stream ends. With `patient`, an end of the stream before the host's greeting only means
/// that nobody has connected yet, as at a virtio-serial port.
///
/// # Errors
/// A host of another version, garbage, a stream that breaks.
pub fn serve(stream: Channel, patient: bool, host: Host) -> Result<(), AgentError> {
    let voice = Voice::new(File::from(stream.writing));
    let mut reading = File::from(stream.reading);
    let rest = greeted(&mut reading, patient, &voice)?;
    voice.say(&Report::Hello(hello(&host.root)))?;
    let (stop, gone) = (Stop::new(), AtomicBool::new(false));
    let (orders, todo) = channel();
    std::thread::scope(|scope| {
        let worker = {
            let duty = Duty { voice: voice.clone(), todo, stop: stop.clone(), gone: &gone };
            scope.spawn(move || duty.work(host))
        };
        let heard = listen(&mut reading, &rest, &voice, &orders, &stop);
        // Whatever ended the stream ends the work as well.
        gone.store(true, Ordering::SeqCst);
        stop.ask();
        drop(orders);
        let worked = worker.join().unwrap_or_else(|_| Err(io::Error::other("the working thread panicked")));
        heard?;
        Ok(worked?)
    })
}

/// Says our greeting, waits for the host's, and gives what came after it.
fn greeted(reading: &mut File, patient: bool, voice: &Voice) -> Result<Vec<u8>, AgentError> {
    voice.greet()?;
    let mut greeter = Greeter::default();
    let mut buffer = [0; 4096];
    loop {
        match reading.read(&mut buffer)? {
            0 if patient => std::thread::sleep(NOBODY_YET),
            0 => return Err(AgentError::Stream(io::ErrorKind::UnexpectedEof.into())),
            length => {
                if let Some(rest) = greeter.take(buffer.get(..length).unwrap_or_default())? {
                    return Ok(rest);
                }
            }
        }
    }
}

/// Takes orders until the stream ends.
fn listen(
    reading: &mut File,
    rest: &[u8],
    voice: &Voice,
    orders: &Sender<Order>,
    stop: &Stop,
) -> Result<(), AgentError> {
    let mut decoder = Decoder::default();
    let mut buffer = [0; 1 << 16];
    decoder.push(rest);
    loop {
        while let Some(order) = decoder.take()? {
            match order {
                Order::Ping { id } => voice.say(&Report::Pong { id, at: monotonic_now() })?,
                Order::Cancel => stop.ask(),
                order => drop(orders.send(order)),
            }
        }
        match reading.read(&mut buffer)? {
            0 => return Ok(()),
            length => decoder.push(buffer.get(..length).unwrap_or_default()),
        }
    }
}
