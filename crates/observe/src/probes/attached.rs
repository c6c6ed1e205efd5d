//! Events on all threads of a process, and of those that it will start, on every CPU.
//!
//! The kernel reads a uprobe's path anew, from the memory of whoever starts a thread, when it hands an event on to that
//! thread: inherited events of this kind make a program's threads fail. So places are watched in every process that runs
//! the file, and the records of others are dropped; page faults and context switches are asked for threads, and handed on.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::event::{self, UprobeSupport};
use super::order::TimeOrderBuffer;
use super::record::{self, OtherRingRecords, ProbeEvent, ProbeEventKind};
use super::uprobe_events::{self, DefinedProbe, UprobeEvents};
use super::{ProbeError, ProbeSite};
use crate::profile::event::online_cpus;
use crate::profile::processes::list_threads;
use crate::profile::ring::{PerfRing, switch_event};
use crate::{Root, monotonic_now};

/// Buffer pages of a CPU, tried from the largest.
const PAGES: [usize; 4] = [2048, 512, 128, 8];
/// The same, of what is emptied as soon as something was told.
const FEW_PAGES: [usize; 1] = [8];
/// Threads that close events beside one another.
const CLOSERS: usize = 32;

/// Where something is, in a file, that threads come by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePoint {
    /// The file.
    pub path: PathBuf,
    /// All sites of it.
    pub sites: Vec<ProbeSite>,
    /// What must be so for a thread to count, and what is to be fetched for that at each of the sites.
    pub condition: Option<ProbeCondition>,
}

/// A condition as the kernel evaluates it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeCondition {
    /// `arg2 == "f"`
    pub(super) text: String,
    /// of each site: `arg2=+0(%r12):string`
    pub(super) fetched: Vec<String>,
}

/// A process that is watched. Nothing is left in it when this is dropped.
#[derive(Debug)]
pub struct ProbeRecorder {
    pid: i32,
    rings: Vec<PerfRing>,
    other_events: Vec<(ProbeEventKind, OwnedFd)>,
    /// dropped behind the events on them
    defined: Vec<DefinedProbe>,
    kinds_by_event_id: HashMap<u64, ProbeEventKind>,
    order: TimeOrderBuffer,
    bytes: Vec<u8>,
    other_records: OtherRingRecords,
    /// events of places that were told of, of whatever process
    reported_events: u64,
}

/// What there is to say when watching ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProbeRecordingEnd {
    /// Events that the kernel had no room for.
    pub lost: u64,
    /// Events of other processes that run the same files: they paid for them, too.
    pub others: u64,
}

impl ProbeRecorder {
    /// Puts events on places for all threads of a process; they tell nothing before [`ProbeRecorder::start_shell_loop`].
    ///
    /// # Errors
    /// [`ProbeError`] with what to change.
    pub fn attach(root: &Root, pid: i32, places: &[ProbePoint]) -> Result<ProbeRecorder, ProbeError> {
        let tasks = list_threads(root, pid);
        if tasks.is_empty() {
            UprobeSupport::find(root)?;
            return Err(ProbeError::NoProcess { pid });
        }
        Self::open_events(root, pid, &tasks, places, &PAGES)
    }

    /// Puts events on places of this very process; what the kernel does beside is not told, and what they tell must be taken
    /// out often.
    pub(super) fn attach_to_self(root: &Root, places: &[ProbePoint]) -> Result<ProbeRecorder, ProbeError> {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        Self::open_events(root, own, &[], places, &FEW_PAGES)
    }

    fn open_events(
        root: &Root,
        pid: i32,
        tasks: &[i32],
        places: &[ProbePoint],
        pages: &[usize],
    ) -> Result<ProbeRecorder, ProbeError> {
        let uprobes = UprobeSupport::find(root)?;
        let mut attached = ProbeRecorder {
            pid,
            rings: Vec::new(),
            other_events: Vec::new(),
            defined: Vec::new(),
            kinds_by_event_id: HashMap::new(),
            order: TimeOrderBuffer::default(),
            bytes: Vec::new(),
            other_records: OtherRingRecords::default(),
            reported_events: 0,
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
        for cpu in online_cpus(root) {
            let mut ring = None;
            for (number, place) in places.iter().enumerate() {
                for (at, site) in place.sites.iter().enumerate() {
                    let defined = listed.get(&(number, at)).and_then(|at| attached.defined.get(*at));
                    let fd = match (defined, &place.condition) {
                        (Some(defined), Some(condition)) => {
                            event::open_defined_probe(defined, &condition.text, cpu).map_err(|error| {
                                event::probe_refused_error(&place.path, site.offset, error)
                            })?
                        }
                        _ => uprobes.open_uprobe(&place.path, *site, cpu)?,
                    };
                    attached.add_event((&mut ring, pages), fd, ProbeEventKind::Place(number), cpu)?;
                }
            }
            for task in tasks {
                // A thread that ended meanwhile tells nothing.
                if let Ok(fd) = event::open_thread_events(*task, cpu) {
                    attached.add_event((&mut ring, pages), fd, ProbeEventKind::Fault, cpu)?;
                }
            }
            attached.rings.extend(ring);
        }
        Ok(attached)
    }

    /// The first event of a CPU brings its ring; the others tell into it.
    fn add_event(
        &mut self,
        (ring, pages): (&mut Option<PerfRing>, &[usize]),
        fd: OwnedFd,
        what: ProbeEventKind,
        cpu: u32,
    ) -> Result<(), ProbeError> {
        let wrong = |source| ProbeError::Ring { cpu, source };
        self.kinds_by_event_id.insert(event::read_event_id(&fd).map_err(wrong)?, what);
        match ring {
            Some(ring) => {
                ring.redirect_output_of(&fd).map_err(wrong)?;
                self.other_events.push((what, fd));
            }
            None => *ring = Some(map_fitting_ring(fd, pages).map_err(wrong)?),
        }
        Ok(())
    }

    /// From now on.
    pub fn start(&self) {
        self.switch_events(true);
    }

    fn switch_events(&self, on: bool) {
        for fd in self.rings.iter().map(PerfRing::fd).chain(self.other_events.iter().map(|(_, fd)| fd)) {
            let _ = switch_event(fd, on);
        }
    }

    /// How often threads came by places with a condition, those included that did not meet it and are not told of.
    pub fn condition_hits(&self) -> u64 {
        uprobe_events::count_probe_hits(&self.defined)
    }

    /// Takes out what was told since the last time; what may yet be preceded by something is held until the next.
    pub fn drain_events(&mut self, mut take: impl FnMut(ProbeEvent)) {
        let now = monotonic_now().0;
        self.drain_rings();
        self.order.release_before(now, &mut take);
    }

    /// Ends it, takes out what is left, and says what else there was.
    pub fn stop(mut self, mut take: impl FnMut(ProbeEvent)) -> ProbeRecordingEnd {
        self.switch_events(false);
        self.drain_rings();
        self.order.release_all(&mut take);
        ProbeRecordingEnd { lost: self.lost_events(), others: self.other_records.others }
    }

    /// Events so far that were not told of. What the kernel had no room for it says with the next event only, so events of
    /// places are counted as well: while they go on, those that are under way count too.
    fn lost_events(&self) -> u64 {
        // The first event of a CPU is a place's.
        let rings = self.rings.iter().map(PerfRing::fd).filter(|_| !self.kinds_by_event_id.is_empty());
        let others = self.other_events.iter().filter(|(what, _)| matches!(what, ProbeEventKind::Place(_)));
        let counted = rings
            .chain(others.map(|(_, fd)| fd))
            .map(|fd| event::read_event_count(fd).unwrap_or(0))
            .sum::<u64>();
        self.other_records.lost.max(counted.saturating_sub(self.reported_events))
    }

    /// Events that the kernel said it had no room for.
    pub fn reported_lost_events(&self) -> u64 {
        self.other_records.lost
    }

    fn drain_rings(&mut self) {
        for ring in &self.rings {
            self.bytes.clear();
            ring.drain(&mut self.bytes);
            let mut told = 0;
            let besides =
                record::read_probe_records(&self.bytes, self.pid, &self.kinds_by_event_id, |seen| {
                    told += u64::from(matches!(seen.kind, ProbeEventKind::Place(_)));
                    self.order.add(seen);
                });
            self.other_records.lost += besides.lost;
            self.other_records.others += besides.others;
            self.reported_events += told + besides.others;
        }
    }
}

impl Drop for ProbeRecorder {
    /// Closing an event on a place waits until no thread can be there any more, a tenth of a second; threads that wait
    /// beside one another wait once.
    fn drop(&mut self) {
        let rings = std::mem::take(&mut self.rings).into_iter().map(EventToClose::Ring);
        let others =
            std::mem::take(&mut self.other_events).into_iter().map(|(_, fd)| EventToClose::Event(fd));
        let mut all: Vec<EventToClose> = others.chain(rings).collect();
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
enum EventToClose {
    Event(OwnedFd),
    Ring(PerfRing),
}

fn map_fitting_ring(fd: OwnedFd, sizes: &[usize]) -> std::io::Result<PerfRing> {
    let mut last = (fd, std::io::Error::other("no size was tried"));
    for pages in sizes {
        match PerfRing::map(last.0, *pages) {
            Ok(ring) => return Ok(ring),
            Err(failed) => last = failed,
        }
    }
    Err(last.1)
}
