//! Events on all threads of a process, and of those that it will start, on every CPU.
//!
//! The kernel reads a uprobe's path anew, from the memory of whoever starts a thread, when it hands an event on to that
//! thread: inherited events of this kind make a program's threads fail. So places are watched in every process that runs
//! the file, and the records of others are dropped; page faults and context switches are asked for threads, and handed on.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::event::{self, Uprobes};
use super::order::Order;
use super::record::{self, Seen, What};
use super::{ProbeError, Site};
use crate::profile::event::cpus;
use crate::profile::processes::threads;
use crate::profile::ring::{Ring, switch};
use crate::{Root, monotonic_now};

/// Buffer pages of a CPU, tried from the largest.
const PAGES: [usize; 4] = [2048, 512, 128, 8];

/// A process that is watched. Nothing is left in it when this is dropped.
#[derive(Debug)]
pub struct Attached {
    pid: i32,
    rings: Vec<Ring>,
    others: Vec<OwnedFd>,
    places: HashMap<u64, What>,
    order: Order,
    bytes: Vec<u8>,
    lost: u64,
}

impl Attached {
    /// Puts events on places of a file for all threads of a process; they tell nothing before [`Attached::start`].
    ///
    /// # Errors
    /// [`ProbeError`] with what to change.
    pub fn to(root: &Root, pid: i32, path: &Path, places: &[Vec<Site>]) -> Result<Attached, ProbeError> {
        let uprobes = Uprobes::find(root)?;
        let tasks = threads(root, pid);
        if tasks.is_empty() {
            return Err(ProbeError::NoProcess { pid });
        }
        let mut attached = Attached {
            pid,
            rings: Vec::new(),
            others: Vec::new(),
            places: HashMap::new(),
            order: Order::default(),
            bytes: Vec::new(),
            lost: 0,
        };
        for cpu in cpus(root) {
            let mut ring = None;
            for (number, sites) in places.iter().enumerate() {
                for place in sites {
                    let fd = uprobes.open(path, *place, cpu)?;
                    attached.add(&mut ring, fd, What::Place(number), cpu)?;
                }
            }
            for task in &tasks {
                // A thread that ended meanwhile tells nothing.
                if let Ok(fd) = event::open_kernel(*task, cpu) {
                    attached.add(&mut ring, fd, What::Fault, cpu)?;
                }
            }
            attached.rings.extend(ring);
        }
        Ok(attached)
    }

    /// The first event of a CPU brings its ring; the others tell into it.
    fn add(&mut self, ring: &mut Option<Ring>, fd: OwnedFd, what: What, cpu: u32) -> Result<(), ProbeError> {
        let wrong = |source| ProbeError::Ring { cpu, source };
        self.places.insert(event::number(&fd).map_err(wrong)?, what);
        match ring {
            Some(ring) => {
                ring.takes(&fd).map_err(wrong)?;
                self.others.push(fd);
            }
            None => *ring = Some(mapped(fd).map_err(wrong)?),
        }
        Ok(())
    }

    /// From now on.
    pub fn start(&self) {
        self.switch(true);
    }

    fn switch(&self, on: bool) {
        for fd in self.rings.iter().map(Ring::fd).chain(&self.others) {
            let _ = switch(fd, on);
        }
    }

    /// Takes out what was told since the last time; what may yet be preceded by something is held until the next.
    pub fn take(&mut self, mut take: impl FnMut(Seen)) {
        let now = monotonic_now().0;
        self.drain();
        self.order.round(now, &mut take);
    }

    /// Ends it, takes out what is left, and says how many events were lost.
    pub fn stop(mut self, mut take: impl FnMut(Seen)) -> u64 {
        self.switch(false);
        self.drain();
        self.order.rest(&mut take);
        self.lost
    }

    fn drain(&mut self) {
        for ring in &self.rings {
            self.bytes.clear();
            ring.drain(&mut self.bytes);
            self.lost += record::read(&self.bytes, self.pid, &self.places, |seen| self.order.add(seen));
        }
    }
}

fn mapped(fd: OwnedFd) -> std::io::Result<Ring> {
    let mut last = (fd, std::io::Error::other("no size was tried"));
    for pages in PAGES {
        match Ring::map(last.0, pages) {
            Ok(ring) => return Ok(ring),
            Err(failed) => last = failed,
        }
    }
    Err(last.1)
}
