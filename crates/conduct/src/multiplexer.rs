//! One thread that serves all connections to agents: the silence of one keeps no other waiting.
//!
//! It bounds what an agent may send in how much time. What reports mean is not its matter: they are handed on with
//! the time at which they came.

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use perflab_model::Nanos;
use perflab_observe::monotonic_now;
use rustix::event::{Timespec, epoll};

use crate::connection::{BYTES_PER_READ, Connection, FramedConnection, PollInterest};
use crate::protocol::{AgentOrder, AgentReport};

/// How soon an agent that has sent too much is listened to again.
const PAUSE: Nanos = Nanos(20_000_000);

/// What stands for the waker among the events of epoll.
const WAKER: u64 = u64::MAX;

/// Something that came from an agent.
#[derive(Debug)]
pub struct ReceivedReport {
    /// Which agent, by the order in which they were added.
    pub index: usize,
    /// Our CLOCK_MONOTONIC when it came.
    pub at: Nanos,
    /// What it says, or why it will never say anything again.
    pub report: Result<AgentReport, String>,
}

/// All agents.
#[derive(Debug)]
pub struct Multiplexer {
    epoll: OwnedFd,
    waker: Option<OwnedFd>,
    /// Those that are gone keep their index.
    links: Vec<Option<FramedConnection>>,
    buffer: Vec<u8>,
    paused: BTreeSet<usize>,
    dying: Vec<ReceivedReport>,
}

impl Multiplexer {
    /// Nobody yet.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Multiplexer {
            epoll,
            waker: None,
            links: Vec::new(),
            buffer: vec![0; BYTES_PER_READ],
            paused: BTreeSet::new(),
            dying: Vec::new(),
        })
    }

    /// One more agent, which is greeted. Gives its index.
    ///
    /// # Errors
    /// The stream cannot be waited for.
    pub fn add(&mut self, channel: Connection) -> io::Result<usize> {
        let index = self.links.len();
        let link = FramedConnection::new(channel)?;
        epoll::add(&self.epoll, &link.reading, epoll_data(index, PollInterest::Read), epoll::EventFlags::IN)?;
        self.links.push(Some(link));
        self.flush_connection(index);
        Ok(index)
    }

    /// An index for an agent that never came: nothing is received from it, and what is sent to it is dropped.
    pub fn add_absent(&mut self) {
        self.links.push(None);
    }

    /// An eventfd that ends a wait when somebody inside this process has something to say.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn set_waker(&mut self, waker: OwnedFd) -> io::Result<()> {
        epoll::add(&self.epoll, &waker, epoll::EventData::new_u64(WAKER), epoll::EventFlags::IN)?;
        self.waker = Some(waker);
        Ok(())
    }

    /// How many were added, those that are gone included.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether no connection was added.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Sends an order, without waiting for it to be taken. What cannot be sent is heard of by the next wait.
    pub fn send(&mut self, index: usize, order: &AgentOrder) {
        let Some(link) = self.links.get_mut(index).and_then(Option::as_mut) else { return };
        match link.queue(order) {
            Ok(()) => self.flush_connection(index),
            Err(reason) => self.close_with_reason(index, reason),
        }
    }

    /// Closes the stream: the agent ends. Nothing more is heard of it.
    pub fn close(&mut self, index: usize) {
        self.paused.remove(&index);
        if let Some(link) = self.links.get_mut(index).and_then(Option::take) {
            // Not left to the closing: a copy of the descriptor may live on in a child.
            let _ = epoll::delete(&self.epoll, &link.reading);
            let _ = epoll::delete(&self.epoll, &link.writing);
        }
    }

    /// Waits until something is received or the waker is used, at most until `until`; gives all that came.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn receive(&mut self, until: Nanos) -> io::Result<Vec<ReceivedReport>> {
        self.receive_by_clock(&monotonic_now, until)
    }

    /// As [`Multiplexer::receive`], by a clock that tests turn.
    fn receive_by_clock(
        &mut self,
        clock: &dyn Fn() -> Nanos,
        until: Nanos,
    ) -> io::Result<Vec<ReceivedReport>> {
        self.resume_paused(clock());
        let mut heard = std::mem::take(&mut self.dying);
        let mut ready = [const { MaybeUninit::<epoll::Event>::uninit() }; 256];
        let most = if self.paused.is_empty() { u64::MAX } else { PAUSE.0 };
        let left = if heard.is_empty() { until.since(clock()).0.min(most) } else { 0 };
        let timeout = Timespec::try_from(Duration::from_nanos(left)).ok();
        let (ready, _) = match epoll::wait(&self.epoll, &mut ready, timeout.as_ref()) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => return Ok(heard),
            Err(errno) => return Err(errno.into()),
        };
        let ready: Vec<u64> = ready.iter().map(|event| event.data.u64()).collect();
        for data in ready {
            let index = (data >> 1) as usize;
            if data == WAKER {
                // What was said is found by whoever called.
                self.waker.as_ref().map(|waker| rustix::io::read(waker, &mut [0; 8]));
            } else if data & 1 == PollInterest::Write as u64 {
                self.flush_connection(index)
            } else {
                self.read_connection(index, clock(), &mut heard)
            }
        }
        heard.append(&mut self.dying);
        Ok(heard)
    }

    fn read_connection(&mut self, index: usize, now: Nanos, heard: &mut Vec<ReceivedReport>) {
        let Some(link) = self.links.get_mut(index).and_then(Option::as_mut) else { return };
        let (reports, end) = link.read(now, &mut self.buffer);
        heard.extend(reports.into_iter().map(|report| ReceivedReport { index, at: now, report: Ok(report) }));
        match end {
            Some(reason) => self.close_with_reason(index, reason),
            None if !link.may_read(now) => {
                let _ = epoll::delete(&self.epoll, &link.reading);
                self.paused.insert(index);
            }
            None => {}
        }
    }

    /// Listens again to those that had sent too much, and may send again.
    fn resume_paused(&mut self, now: Nanos) {
        for index in std::mem::take(&mut self.paused) {
            let Some(link) = self.links.get_mut(index).and_then(Option::as_mut) else { continue };
            if link.may_read(now) {
                let events = epoll_data(index, PollInterest::Read);
                let _ = epoll::add(&self.epoll, &link.reading, events, epoll::EventFlags::IN);
            } else {
                self.paused.insert(index);
            }
        }
    }

    fn flush_connection(&mut self, index: usize) {
        let Some(link) = self.links.get_mut(index).and_then(Option::as_mut) else { return };
        let (was, written) = (link.waits_to_write, link.write());
        match written {
            Err(reason) => return self.close_with_reason(index, reason),
            Ok(left) => link.waits_to_write = left,
        }
        let (events, writing) = (epoll_data(index, PollInterest::Write), &link.writing);
        let _ = match (was, link.waits_to_write) {
            (false, true) => epoll::add(&self.epoll, writing, events, epoll::EventFlags::OUT),
            (true, false) => epoll::delete(&self.epoll, writing),
            _ => Ok(()),
        };
    }

    fn close_with_reason(&mut self, index: usize, reason: String) {
        self.close(index);
        self.dying.push(ReceivedReport { index, at: monotonic_now(), report: Err(reason) });
    }
}

fn epoll_data(index: usize, interest: PollInterest) -> epoll::EventData {
    epoll::EventData::new_u64((index as u64) << 1 | interest as u64)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use perflab_model::{RunEvent, RunEventKind};

    use super::*;
    use crate::protocol::{encode_frame, greeting_line};

    /// What is heard of a target that always has more to say, in so many seconds of a clock that goes on by a
    /// millisecond with each wait; in bytes.
    fn reports_heard_in(seconds: u64) -> u64 {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let text = "x".repeat(60_000);
        let output = RunEventKind::Output { slot: None, name: "out".into(), text };
        let frame = encode_frame(&AgentReport::Event(RunEvent::new(Nanos(0), output))).unwrap();
        let mut sent = greeting_line();
        let mut multiplexer = Multiplexer::new().unwrap();
        multiplexer.add(Connection::duplex("endless", ours).unwrap()).unwrap();
        let clock = Cell::new(Nanos(1_000_000_000));
        let mut bytes = 0;
        for _ in 0..seconds * 1000 {
            loop {
                match theirs.write(&sent) {
                    Ok(length) => drop(sent.drain(..length)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                }
                if sent.is_empty() {
                    sent.extend_from_slice(&frame);
                }
            }
            let now = clock.get();
            let heard = multiplexer.receive_by_clock(&|| now, now).unwrap();
            bytes +=
                heard.iter().map(|one| one.report.as_ref().map(|_| frame.len() as u64).unwrap()).sum::<u64>();
            clock.set(Nanos(now.0 + 1_000_000));
        }
        bytes
    }

    #[test]
    fn the_waker_ends_a_wait_once() {
        use rustix::event::{EventfdFlags, eventfd};
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        let mut multiplexer = Multiplexer::new().unwrap();
        multiplexer.set_waker(wake.try_clone().unwrap()).unwrap();
        rustix::io::write(&wake, &2_u64.to_ne_bytes()).unwrap();
        let waited = |multiplexer: &mut Multiplexer, length: u64| {
            let begun = monotonic_now();
            assert!(multiplexer.receive(Nanos(begun.0 + length)).unwrap().is_empty());
            monotonic_now().since(begun)
        };
        assert!(waited(&mut multiplexer, 60_000_000_000) < Nanos(30_000_000_000));
        assert!(waited(&mut multiplexer, 20_000_000) >= Nanos(20_000_000));
    }

    #[test]
    fn who_sends_endlessly_is_heard_at_the_promised_rate() {
        let (four, ten) = (reports_heard_in(4), reports_heard_in(10));
        // All of it may come at once, and then what is earned.
        let most = crate::connection::ALLOWANCE_BURST + 10 * crate::connection::ALLOWANCE_RATE;
        assert!(ten <= most, "{ten} bytes in 10 s, and at most {most} are promised");
        let (six, earned) = (ten - four, 6 * crate::connection::ALLOWANCE_RATE);
        assert!(six <= earned + BYTES_PER_READ as u64 && six > earned / 2, "{six} bytes in 6 s");
    }
}
