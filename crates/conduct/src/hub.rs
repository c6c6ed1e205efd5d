//! All agents of a run, spoken to by one thread: nobody's silence keeps the others waiting.
//!
//! Owns streams, frames on their way, and what an agent may send in how much time. It refuses to know what is said:
//! whoever waits here gets reports with the time at which they came, and decides.

mod link;

use std::collections::BTreeSet;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use perflab_model::Nanos;
use perflab_observe::monotonic_now;
use rustix::event::{Timespec, epoll};

use crate::Channel;
use crate::protocol::{Order, Report};
use link::{Interest, Link, TURN};

/// How soon an agent that has sent too much is listened to again.
const PAUSE: Nanos = Nanos(20_000_000);

/// Something that came from an agent.
#[derive(Debug)]
pub struct Heard {
    /// Which agent, by the order in which they were added.
    pub link: usize,
    /// Our CLOCK_MONOTONIC when it came.
    pub at: Nanos,
    /// What it says, or why it will never say anything again.
    pub said: Result<Report, String>,
}

/// All agents.
#[derive(Debug)]
pub struct Hub {
    epoll: OwnedFd,
    /// Those that are gone keep their place.
    links: Vec<Option<Link>>,
    buffer: Vec<u8>,
    paused: BTreeSet<usize>,
    dying: Vec<Heard>,
}

impl Hub {
    /// Nobody yet.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Hub {
            epoll,
            links: Vec::new(),
            buffer: vec![0; TURN],
            paused: BTreeSet::new(),
            dying: Vec::new(),
        })
    }

    /// One more agent, which is greeted. Gives its index.
    ///
    /// # Errors
    /// The stream cannot be waited for.
    pub fn add(&mut self, channel: Channel) -> io::Result<usize> {
        let index = self.links.len();
        let link = Link::new(channel)?;
        epoll::add(&self.epoll, &link.reading, data(index, Interest::Read), epoll::EventFlags::IN)?;
        self.links.push(Some(link));
        self.flush(index);
        Ok(index)
    }

    /// How many were added, those that are gone included.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether nobody was added.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Sends an order, without waiting for it to be taken. What cannot be sent is heard of by the next wait.
    pub fn send(&mut self, index: usize, order: &Order) {
        let Some(link) = self.links.get_mut(index).and_then(Option::as_mut) else { return };
        match link.queue(order) {
            Ok(()) => self.flush(index),
            Err(reason) => self.bury(index, reason),
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

    /// Waits until somebody says something, at most until `until`; gives all that came.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn wait(&mut self, until: Nanos) -> io::Result<Vec<Heard>> {
        self.resume();
        let mut heard = std::mem::take(&mut self.dying);
        let mut ready = [const { MaybeUninit::<epoll::Event>::uninit() }; 256];
        let most = if self.paused.is_empty() { u64::MAX } else { PAUSE.0 };
        let left = if heard.is_empty() { until.since(monotonic_now()).0.min(most) } else { 0 };
        let timeout = Timespec::try_from(Duration::from_nanos(left)).ok();
        let (ready, _) = match epoll::wait(&self.epoll, &mut ready, timeout.as_ref()) {
            Ok(ready) => ready,
            Err(rustix::io::Errno::INTR) => return Ok(heard),
            Err(errno) => return Err(errno.into()),
        };
        let ready: Vec<u64> = ready.iter().map(|event| event.data.u64()).collect();
        for data in ready {
            let index = (data >> 1) as usize;
            if data & 1 == Interest::Write as u64 { self.flush(index) } else { self.read(index, &mut heard) }
        }
        heard.append(&mut self.dying);
        Ok(heard)
    }

    fn read(&mut self, index: usize, heard: &mut Vec<Heard>) {
        let Some(link) = self.links.get_mut(index).and_then(Option::as_mut) else { return };
        let now = monotonic_now();
        let (reports, end) = link.read(now, &mut self.buffer);
        heard.extend(reports.into_iter().map(|report| Heard { link: index, at: now, said: Ok(report) }));
        match end {
            Some(reason) => self.bury(index, reason),
            None if link.allowance(now) == 0 => {
                let _ = epoll::delete(&self.epoll, &link.reading);
                self.paused.insert(index);
            }
            None => {}
        }
    }

    /// Listens again to those that had sent too much, and may send again.
    fn resume(&mut self) {
        let now = monotonic_now();
        for index in std::mem::take(&mut self.paused) {
            let Some(link) = self.links.get_mut(index).and_then(Option::as_mut) else { continue };
            if link.allowance(now) == 0 {
                self.paused.insert(index);
            } else {
                let wanted = data(index, Interest::Read);
                let _ = epoll::add(&self.epoll, &link.reading, wanted, epoll::EventFlags::IN);
            }
        }
    }

    fn flush(&mut self, index: usize) {
        let Some(link) = self.links.get_mut(index).and_then(Option::as_mut) else { return };
        let (was, written) = (link.waits_to_write, link.write());
        match written {
            Err(reason) => return self.bury(index, reason),
            Ok(left) => link.waits_to_write = left,
        }
        let (wanted, writing) = (data(index, Interest::Write), &link.writing);
        let _ = match (was, link.waits_to_write) {
            (false, true) => epoll::add(&self.epoll, writing, wanted, epoll::EventFlags::OUT),
            (true, false) => epoll::delete(&self.epoll, writing),
            _ => Ok(()),
        };
    }

    fn bury(&mut self, index: usize, reason: String) {
        self.close(index);
        self.dying.push(Heard { link: index, at: monotonic_now(), said: Err(reason) });
    }
}

fn data(index: usize, interest: Interest) -> epoll::EventData {
    epoll::EventData::new_u64((index as u64) << 1 | interest as u64)
}
