//! Events on all threads of a process, and of those that it will start, on every CPU.
//!
//! The kernel reads a uprobe's path anew, from the memory of whoever starts a thread, when it hands an event on to that
//! thread: inherited events of this kind make a program's threads fail. So places are watched in every process that runs
//! the file, and the records of others are dropped; page faults and context switches are asked for threads, and handed on.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::event::{self, Uprobes};
use super::order::Order;
use super::record::{self, Besides, Seen, What};
use super::uprobe_events::{self, DefinedProbe, UprobeEvents};
use super::{ProbeError, Site};
use crate::profile::event::cpus;
use crate::profile::processes::threads;
use crate::profile::ring::{Ring, switch};
use crate::{Root, monotonic_now};

/// Buffer pages of a CPU, tried from the largest.
const PAGES: [usize; 4] = [2048, 512, 128, 8];
/// The same, of what is emptied as soon as something was told.
const FEW_PAGES: [usize; 1] = [8];
/// Threads that close events beside one another.
const CLOSERS: usize = 32;

/// Where something is, in a file, that threads come by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbedPlace {
    /// The file.
    pub path: PathBuf,
    /// All sites of it.
    pub sites: Vec<Site>,
    /// What must be so for a thread to count, and what is to be fetched for that at each of the sites.
    pub condition: Option<PlaceCondition>,
}

/// A condition as the kernel evaluates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceCondition {
    /// `arg2 == "f"`
    pub(super) text: String,
    /// of each site: `arg2=+0(%r12):string`
    pub(super) fetched: Vec<String>,
}

/// A process that is watched. Nothing is left in it when this is dropped.
#[derive(Debug)]
pub struct Attached {
    pid: i32,
    rings: Vec<Ring>,
    others: Vec<(What, OwnedFd)>,
    /// dropped behind the events on them
    defined: Vec<DefinedProbe>,
    places: HashMap<u64, What>,
    order: Order,
    bytes: Vec<u8>,
    besides: Besides,
    /// events of places that were told of, of whatever process
    told: u64,
}

/// What there is to say when watching ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttachedEnd {
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// Events of other processes that run the same files: they paid for them, too.
    pub others: u64,
}

impl Attached {
    /// Puts events on places for all threads of a process; they tell nothing before [`Attached::start`].
    ///
    /// # Errors
    /// [`ProbeError`] with what to change.
    pub fn to(root: &Root, pid: i32, places: &[ProbedPlace]) -> Result<Attached, ProbeError> {
        let tasks = threads(root, pid);
        if tasks.is_empty() {
            Uprobes::find(root)?;
            return Err(ProbeError::NoProcess { pid });
        }
        Self::opened(root, pid, &tasks, places, &PAGES)
    }

    /// Puts events on places of this very process; what the kernel does beside is not told, and what they tell must be taken
    /// out often.
    pub(super) fn to_self(root: &Root, places: &[ProbedPlace]) -> Result<Attached, ProbeError> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        Self::opened(root, own, &[], places, &FEW_PAGES)
    }

    fn opened(
        root: &Root,
        pid: i32,
        tasks: &[i32],
        places: &[ProbedPlace],
        pages: &[usize],
    ) -> Result<Attached, ProbeError> {
        let uprobes = Uprobes::find(root)?;
        let mut attached = Attached {
            pid,
            rings: Vec::new(),
            others: Vec::new(),
            defined: Vec::new(),
            places: HashMap::new(),
            order: Order::default(),
            bytes: Vec::new(),
            besides: Besides::default(),
            told: 0,
        };
        // By place and site, the probe of the kernel's list.
        let mut listed = HashMap::new();
        for (number, place) in places.iter().enumerate() {
            let Some(condition) = &place.condition else { continue };
            let events = UprobeEvents::find()?;
            for (at, (site, fetched)) in place.sites.iter().zip(&condition.fetched).enumerate() {
                listed.insert((number, at), attached.defined.len());
                attached.defined.push(events.define(&place.path, *site, fetched)?);
            }
        }
        for cpu in cpus(root) {
            let mut ring = None;
            for (number, place) in places.iter().enumerate() {
                for (at, site) in place.sites.iter().enumerate() {
                    let defined = listed.get(&(number, at)).and_then(|at| attached.defined.get(*at));
                    let fd = match (defined, &place.condition) {
                        (Some(defined), Some(condition)) => {
                            event::open_defined(defined, &condition.text, cpu)
                                .map_err(|error| event::refused(&place.path, site.offset, error))?
                        }
                        _ => uprobes.open(&place.path, *site, cpu)?,
                    };
                    attached.add((&mut ring, pages), fd, What::Place(number), cpu)?;
                }
            }
            for task in tasks {
                // A thread that ended meanwhile tells nothing.
                if let Ok(fd) = event::open_kernel(*task, cpu) {
                    attached.add((&mut ring, pages), fd, What::Fault, cpu)?;
                }
            }
            attached.rings.extend(ring);
        }
        Ok(attached)
    }

    /// The first event of a CPU brings its ring; the others tell into it.
    fn add(
        &mut self,
        (ring, pages): (&mut Option<Ring>, &[usize]),
        fd: OwnedFd,
        what: What,
        cpu: u32,
    ) -> Result<(), ProbeError> {
        let wrong = |source| ProbeError::Ring { cpu, source };
        self.places.insert(event::number(&fd).map_err(wrong)?, what);
        match ring {
            Some(ring) => {
                ring.takes(&fd).map_err(wrong)?;
                self.others.push((what, fd));
            }
            None => *ring = Some(mapped(fd, pages).map_err(wrong)?),
        }
        Ok(())
    }

    /// From now on.
    pub fn start(&self) {
        self.switch(true);
    }

    fn switch(&self, on: bool) {
        for fd in self.rings.iter().map(Ring::fd).chain(self.others.iter().map(|(_, fd)| fd)) {
            let _ = switch(fd, on);
        }
    }

    /// How often threads came by places with a condition, those included that did not meet it and are not told of.
    pub fn condition_hits(&self) -> u64 {
        uprobe_events::hits(&self.defined)
    }

    /// Takes out what was told since the last time; what may yet be preceded by something is held until the next.
    pub fn take(&mut self, mut take: impl FnMut(Seen)) {
        let now = monotonic_now().0;
        self.drain();
        self.order.round(now, &mut take);
    }

    /// Ends it, takes out what is left, and says what else there was.
    pub fn stop(mut self, mut take: impl FnMut(Seen)) -> AttachedEnd {
        self.switch(false);
        self.drain();
        self.order.rest(&mut take);
        AttachedEnd { lost: self.lost(), others: self.besides.others }
    }

    /// Events so far that were not told of. What the kernel had no room for it says with the next event only, so events of
    /// places are counted as well: while they go on, those that are under way count too.
    fn lost(&self) -> u64 {
        // The first event of a CPU is a place's.
        let rings = self.rings.iter().map(Ring::fd).filter(|_| !self.places.is_empty());
        let others = self.others.iter().filter(|(what, _)| matches!(what, What::Place(_)));
        let counted =
            rings.chain(others.map(|(_, fd)| fd)).map(|fd| event::count(fd).unwrap_or(0)).sum::<u64>();
        self.besides.lost.max(counted.saturating_sub(self.told))
    }

    /// Events that the kernel said it had no room for.
    pub fn lost_so_far(&self) -> u64 {
        self.besides.lost
    }

    fn drain(&mut self) {
        for ring in &self.rings {
            self.bytes.clear();
            ring.drain(&mut self.bytes);
            let mut told = 0;
            let besides = record::read(&self.bytes, self.pid, &self.places, |seen| {
                told += u64::from(matches!(seen.what, What::Place(_)));
                self.order.add(seen);
            });
            self.besides.lost += besides.lost;
            self.besides.others += besides.others;
            self.told += told + besides.others;
        }
    }
}

impl Drop for Attached {
    /// Closing an event on a place waits until no thread can be there any more, a tenth of a second; threads that wait
    /// beside one another wait once.
    fn drop(&mut self) {
        let rings = std::mem::take(&mut self.rings).into_iter().map(Closing::Ring);
        let others = std::mem::take(&mut self.others).into_iter().map(|(_, fd)| Closing::Event(fd));
        let mut all: Vec<Closing> = others.chain(rings).collect();
        let share = all.len().div_ceil(CLOSERS).max(1);
        std::thread::scope(|scope| {
            while !all.is_empty() {
                let part = all.split_off(all.len().saturating_sub(share));
                // Where there can be no thread, what it would have closed is closed here.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || drop(part));
            }
        });
    }
}

/// What is closed.
#[expect(dead_code, reason = "held to be dropped")]
enum Closing {
    Event(OwnedFd),
    Ring(Ring),
}

fn mapped(fd: OwnedFd, sizes: &[usize]) -> std::io::Result<Ring> {
    let mut last = (fd, std::io::Error::other("no size was tried"));
    for pages in sizes {
        match Ring::map(last.0, *pages) {
            Ok(ring) => return Ok(ring),
            Err(failed) => last = failed,
        }
    }
    Err(last.1)
}
