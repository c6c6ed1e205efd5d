//! Uprobes on all threads of a process, and of those that it will start, on every CPU; their records in order of
//! time.
//!
//! The kernel reads a uprobe's path anew, from the memory of whichever process starts a thread, when it hands an
//! event on to that thread: inherited events of this kind make a program's threads fail. So points are watched in
//! every process that runs the file, and the records of others are dropped; page faults and context switches are
//! asked for by thread, and inherited.
//!
//! A thread that changes its CPU has its records in two rings. They are put in order by one rule: what is older
//! than the round before cannot be preceded by anything that is yet to come.

#![expect(unsafe_code, reason = "there is no safe perf_event_open")]

use std::collections::HashMap;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use perf_event_open_sys::{bindings as sys, ioctls};

use crate::clock::monotonic_now;
use crate::little_endian::read_u64_at;
use crate::perf_event::{self, PerfRing, switch_event};
use crate::probes::error::ProbeError;
use crate::probes::points::{ProbePoint, ProbeSite};
use crate::probes::uprobe_events::{self, DefinedProbe, UprobeEvents};
use crate::processes::list_threads;
use crate::profiler::online_cpus;
use crate::root::Root;

/// Buffer pages of a CPU, tried from the largest.
const PAGES: [usize; 4] = [2048, 512, 128, 8];

/// The same, of what is emptied as soon as something was reported.
const FEW_PAGES: [usize; 1] = [8];

/// Threads that close events in parallel.
const CLOSERS: usize = 32;

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
    /// events of points that were reported, of whatever process
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
    /// Puts events on points for all threads of a process; they report nothing before [`ProbeRecorder::start`].
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

    /// Puts events on points of this very process; what the kernel does besides is not reported, and what they report must be taken
    /// out often.
    pub(crate) fn attach_to_self(root: &Root, places: &[ProbePoint]) -> Result<ProbeRecorder, ProbeError> {
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
        // By point and site, the probe of the kernel's list.
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
                        (Some(defined), Some(condition)) => open_defined_probe(defined, &condition.text, cpu)
                            .map_err(|error| probe_refused_error(&place.path, site.offset, error))?,
                        _ => uprobes.open_uprobe(&place.path, *site, cpu)?,
                    };
                    attached.add_event((&mut ring, pages), fd, ProbeEventKind::Place(number), cpu)?;
                }
            }
            for task in tasks {
                // A thread that has ended in the meantime reports nothing.
                if let Ok(fd) = open_thread_events(*task, cpu) {
                    attached.add_event((&mut ring, pages), fd, ProbeEventKind::Fault, cpu)?;
                }
            }
            attached.rings.extend(ring);
        }
        Ok(attached)
    }

    /// The first event of a CPU brings its ring; the others write to it.
    fn add_event(
        &mut self,
        (ring, pages): (&mut Option<PerfRing>, &[usize]),
        fd: OwnedFd,
        what: ProbeEventKind,
        cpu: u32,
    ) -> Result<(), ProbeError> {
        let wrong = |source| ProbeError::Ring { cpu, source };
        self.kinds_by_event_id.insert(read_event_id(&fd).map_err(wrong)?, what);
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

    /// How often threads hit points with a condition, those included that did not meet it and are not reported.
    pub fn condition_hits(&self) -> u64 {
        uprobe_events::count_probe_hits(&self.defined)
    }

    /// Takes out what was reported since the last time; what may yet be preceded by something is held until the next.
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

    /// Events so far that were not reported. What the kernel had no room for it reports with the next event only, so events of
    /// points are counted as well: while they go on, those that are under way count too.
    fn lost_events(&self) -> u64 {
        // The first event of a CPU is a point's.
        let rings = self.rings.iter().map(PerfRing::fd).filter(|_| !self.kinds_by_event_id.is_empty());
        let others = self.other_events.iter().filter(|(what, _)| matches!(what, ProbeEventKind::Place(_)));
        let counted =
            rings.chain(others.map(|(_, fd)| fd)).map(|fd| read_event_count(fd).unwrap_or(0)).sum::<u64>();
        self.other_records.lost.max(counted.saturating_sub(self.reported_events))
    }

    /// Events that the kernel reported as lost.
    pub fn reported_lost_events(&self) -> u64 {
        self.other_records.lost
    }

    fn drain_rings(&mut self) {
        for ring in &self.rings {
            self.bytes.clear();
            ring.drain(&mut self.bytes);
            let mut reported = 0;
            let besides = read_probe_records(&self.bytes, self.pid, &self.kinds_by_event_id, |seen| {
                reported += u64::from(matches!(seen.kind, ProbeEventKind::Place(_)));
                self.order.add(seen);
            });
            self.other_records.lost += besides.lost;
            self.other_records.others += besides.others;
            self.reported_events += reported + besides.others;
        }
    }
}

impl Drop for ProbeRecorder {
    /// Closing an event on a point waits until no thread can be there any more, a tenth of a second; threads that wait
    /// in parallel wait once.
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

const DEVICE: &str = "/sys/bus/event_source/devices/uprobe";

/// What every record begins or ends with: the event it is of, the thread, the time.
const SAMPLE_FIELDS: u32 = sys::PERF_SAMPLE_IDENTIFIER | sys::PERF_SAMPLE_TID | sys::PERF_SAMPLE_TIME;

/// The stack pointer, and where Go has the goroutine: the registers that a record of a point ends with, in this order.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 7 | 1 << 22;

#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 31 | 1 << 28;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: u64 = 1;

/// How this kernel wants its uprobes: bits of `config`, as sysfs says them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UprobeSupport {
    kind: u32,
    semaphore_shift: Option<u32>,
}

impl UprobeSupport {
    pub(crate) fn find(root: &Root) -> Result<UprobeSupport, ProbeError> {
        let read = |name: &str| root.read(&format!("{DEVICE}/{name}")).ok();
        let kind = read("type").and_then(|text| text.trim().parse().ok()).ok_or(ProbeError::NoUprobes)?;
        let bit = |name: &str| {
            let text = read(&format!("format/{name}"))?;
            let bits = text.trim().strip_prefix("config:")?.to_owned();
            bits.split('-').next()?.parse::<u32>().ok()
        };
        Ok(UprobeSupport { kind, semaphore_shift: bit("ref_ctr_offset") })
    }

    /// Opens an event on a point of a file, for any process that hits it on a CPU, switched off.
    fn open_uprobe(self, path: &Path, site: ProbeSite, cpu: u32) -> Result<OwnedFd, ProbeError> {
        let name = CString::new(path.as_os_str().as_bytes())
            .map_err(|error| probe_refused_error(path, site.offset, error.into()))?;
        let mut attr = probe_event_attributes(self.kind);
        // Never the bit `retprobe`: the kernel would put its own return address on the program's stack, where Go, and
        // whoever throws through it, finds it.
        set_sample_fields(&mut attr);
        if let (Some(semaphore), Some(shift)) = (site.semaphore, self.semaphore_shift) {
            attr.config |= semaphore << shift;
        }
        attr.__bindgen_anon_3.uprobe_path = name.as_ptr() as u64;
        attr.__bindgen_anon_4.probe_offset = site.offset;
        perf_event::open_perf_event(&attr, -1, Some(cpu), None)
            .map_err(|error| probe_refused_error(path, site.offset, error))
    }
}

/// Opens an event on a probe of the kernel's own list, for whoever comes there on a CPU and meets the condition.
fn open_defined_probe(defined: &DefinedProbe, condition: &str, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = probe_event_attributes(sys::PERF_TYPE_TRACEPOINT);
    attr.config = defined.id;
    set_sample_fields(&mut attr);
    let fd = perf_event::open_perf_event(&attr, -1, Some(cpu), None)?;
    let condition = CString::new(condition)?;
    // SAFETY: the descriptor is an open perf event, and the text ends with a zero and lives until the call is over.
    let done = unsafe { ioctls::SET_FILTER(fd.as_raw_fd(), condition.as_ptr().cast_mut()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(fd) }
}

/// What a record of a point holds besides what all hold.
fn set_sample_fields(attr: &mut sys::perf_event_attr) {
    attr.sample_type |= u64::from(sys::PERF_SAMPLE_REGS_USER);
    attr.sample_regs_user = REGISTERS;
    attr.__bindgen_anon_1.sample_period = 1;
}

/// Page faults, context switches and execs of the same thread.
fn open_thread_events(task: i32, cpu: u32) -> io::Result<OwnedFd> {
    let mut attr = probe_event_attributes(sys::PERF_TYPE_SOFTWARE);
    attr.config = u64::from(sys::PERF_COUNT_SW_PAGE_FAULTS);
    attr.__bindgen_anon_1.sample_period = 1;
    attr.set_context_switch(1);
    attr.set_comm(1);
    attr.set_comm_exec(1);
    attr.set_inherit(1);
    perf_event::open_perf_event(&attr, task, Some(cpu), None)
}

fn probe_event_attributes(kind: u32) -> sys::perf_event_attr {
    let mut attr = sys::perf_event_attr {
        type_: kind,
        size: size_of::<sys::perf_event_attr>() as u32,
        sample_type: u64::from(SAMPLE_FIELDS),
        ..Default::default()
    };
    attr.set_disabled(1);
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr.clockid = libc::CLOCK_MONOTONIC;
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = 64 * 1024;
    attr
}

/// The number that records of an event carry.
fn read_event_id(fd: &OwnedFd) -> io::Result<u64> {
    let mut number = 0;
    // SAFETY: the descriptor is an open perf event, and the number lives until the call is over.
    let done = unsafe { ioctls::ID(fd.as_raw_fd(), &raw mut number) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(number) }
}

/// How often an event came, whether or not it was reported.
fn read_event_count(fd: &OwnedFd) -> io::Result<u64> {
    let mut count = [0; 8];
    match rustix::io::read(fd, &mut count)? {
        8 => Ok(u64::from_ne_bytes(count)),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn probe_refused_error(path: &Path, offset: u64, source: io::Error) -> ProbeError {
    let advice = match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            "uprobes need root, or CAP_PERFMON (kernel.perf_event_paranoid does not open them to others); in a container \
             its seccomp filter may forbid perf_event_open too"
        }
        Some(libc::EINVAL) => {
            "the place is no beginning of an instruction, or the file's system cannot be probed"
        }
        Some(libc::EMFILE | libc::ENFILE) => {
            "raise the number of open files (`ulimit -n`): each place needs one a CPU"
        }
        _ => "the kernel's log may say more",
    };
    ProbeError::Refused { place: format!("{}+{offset:#x}", path.display()), source, advice: advice.into() }
}

/// What a thread did, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeEvent {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
    /// The thread, as the kernel counts.
    pub thread: i32,
    /// The stack pointer at a point; 0 elsewhere, and where the kernel did not report it.
    pub stack: u64,
    /// The register in which Go has the goroutine, at a point.
    pub routine: u64,
    /// What.
    pub kind: ProbeEventKind,
}

/// What a thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeEventKind {
    /// It hit the point with this index, in the order in which points were given.
    Place(usize),
    /// It was preempted.
    Preempted,
    /// It left the CPU to wait.
    Waited,
    /// It is on the CPU again.
    Resumed,
    /// A page was not there.
    Fault,
    /// The process is another program from now on.
    Exec,
}

const COMM: u32 = sys::PERF_RECORD_COMM;

const SAMPLE: u32 = sys::PERF_RECORD_SAMPLE;

const LOST: u32 = sys::PERF_RECORD_LOST;

const SWITCH: u32 = sys::PERF_RECORD_SWITCH;

const THROTTLE: u32 = sys::PERF_RECORD_THROTTLE;

/// What of a ring was not an event of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OtherRingRecords {
    /// the ring had no room for them
    pub lost: u64,
    /// other processes hit the points
    pub others: u64,
}

/// Gives `take` what whole records say of one process; returns what else there was.
fn read_probe_records(
    mut bytes: &[u8],
    pid: i32,
    places: &HashMap<u64, ProbeEventKind>,
    mut take: impl FnMut(ProbeEvent),
) -> OtherRingRecords {
    let (mut lost, mut others) = (0, 0);
    while let Some(record) = ProbeRecord::parse_first(bytes) {
        match record.kind {
            // Event, process and thread, time.
            SAMPLE if record.word_at(1) as i32 == pid => {
                if let Some(what) = places.get(&record.word_at(0)) {
                    // Behind them, of a point: the width of its registers (0: none), and the registers.
                    let reported = matches!(what, ProbeEventKind::Place(_)) && record.word_at(3) != 0;
                    let (stack, routine) = stack_and_goroutine(record.word_at(4), record.word_at(5))
                        .filter(|_| reported)
                        .unwrap_or_default();
                    let thread = (record.word_at(1) >> 32) as i32;
                    take(ProbeEvent { time: record.word_at(2), thread, stack, routine, kind: *what });
                }
            }
            // Process and thread, time, event.
            SWITCH => take(ProbeEvent {
                time: record.word_at(1),
                thread: (record.word_at(0) >> 32) as i32,
                stack: 0,
                routine: 0,
                kind: context_switch_kind(record.misc),
            }),
            SAMPLE if matches!(places.get(&record.word_at(0)), Some(ProbeEventKind::Place(_))) => others += 1,
            // Process and thread, the name, and as behind every record: process and thread, time, event.
            COMM if record.misc & sys::PERF_RECORD_MISC_COMM_EXEC != 0 && record.word_at(0) as i32 == pid => {
                let time = record.word_at((record.body.len() / 8).saturating_sub(2));
                let thread = (record.word_at(0) >> 32) as i32;
                take(ProbeEvent { time, thread, stack: 0, routine: 0, kind: ProbeEventKind::Exec });
            }
            LOST => lost += record.word_at(1),
            THROTTLE => lost += 1,
            _ => {}
        }
        bytes = bytes.get(record.size..).unwrap_or_default();
    }
    OtherRingRecords { lost, others }
}

/// The stack pointer and the goroutine, of two registers in the order of their numbers.
fn stack_and_goroutine(first: u64, second: u64) -> Option<(u64, u64)> {
    match () {
        () if cfg!(target_arch = "x86_64") => Some((first, second)),
        () if cfg!(target_arch = "aarch64") => Some((second, first)),
        () => None,
    }
}

struct ProbeRecord<'a> {
    kind: u32,
    misc: u32,
    size: usize,
    body: &'a [u8],
}

impl<'a> ProbeRecord<'a> {
    fn parse_first(bytes: &'a [u8]) -> Option<ProbeRecord<'a>> {
        let head = read_u64_at(bytes, 0)?;
        let size = (head >> 48) as usize;
        let body = bytes.get(8..size)?;
        Some(ProbeRecord { kind: head as u32, misc: (head >> 32) as u32 & 0xffff, size, body })
    }

    /// A word of its body; 0 behind its end.
    fn word_at(&self, at: usize) -> u64 {
        read_u64_at(self.body, at * 8).unwrap_or(0)
    }
}

fn context_switch_kind(misc: u32) -> ProbeEventKind {
    match (misc & sys::PERF_RECORD_MISC_SWITCH_OUT != 0, misc & sys::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0)
    {
        (true, true) => ProbeEventKind::Preempted,
        (true, false) => ProbeEventKind::Waited,
        _ => ProbeEventKind::Resumed,
    }
}

#[derive(Debug, Default)]
struct TimeOrderBuffer {
    events: Vec<ProbeEvent>,
    /// when the round before began
    before: u64,
}

impl TimeOrderBuffer {
    pub(crate) fn add(&mut self, seen: ProbeEvent) {
        self.events.push(seen);
    }

    /// A round that began at `now` is over: gives out what is older than the round before it.
    fn release_before(&mut self, now: u64, take: &mut impl FnMut(ProbeEvent)) {
        let limit = std::mem::replace(&mut self.before, now);
        self.events.sort_by_key(|seen| seen.time);
        let ready = self.events.partition_point(|seen| seen.time < limit);
        self.events.drain(..ready).for_each(take);
    }

    /// All that is left.
    fn release_all(&mut self, take: &mut impl FnMut(ProbeEvent)) {
        self.events.sort_by_key(|seen| seen.time);
        self.events.drain(..).for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::Path;

    use proptest::prelude::*;

    use super::{
        OtherRingRecords, ProbeEvent, ProbeEventKind, ProbePoint, ProbeRecorder, TimeOrderBuffer,
        read_probe_records,
    };
    use crate::probes::cost::ProbeCostMeter;
    use crate::probes::error::ProbeError;
    use crate::probes::points::{ProbedProgram, UsdtNote};
    use crate::root::Root;

    // Notes, records and their order from recorded bytes; points of this very test, and its own threads where the kernel
    // allows it.

    fn build_note_description(words: [u64; 3], texts: &[u8]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).chain(texts.iter().copied()).collect()
    }

    #[test]
    fn a_note_is_read_and_a_short_one_is_not() {
        let bytes = build_note_description([0x1234, 0x2000, 0x3002], b"slablist\0reaped\08@%rax\0");
        let wanted = UsdtNote {
            address: 0x1234,
            base: 0x2000,
            semaphore: 0x3002,
            provider: "slablist".into(),
            name: "reaped".into(),
            arguments: "8@%rax".into(),
        };
        assert_eq!(UsdtNote::parse(&bytes), Some(wanted));
        for length in 0..25 {
            assert_eq!(UsdtNote::parse(&bytes[..length]), None, "{length}");
        }
    }

    /// A record as the kernel writes it.
    fn build_perf_record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let size = 8 + words.len() as u64 * 8;
        let head = u64::from(kind) | u64::from(misc) << 32 | size << 48;
        std::iter::once(&head).chain(words).flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn records_become_what_was_seen() {
        let places = HashMap::from([
            (7, ProbeEventKind::Place(0)),
            (8, ProbeEventKind::Place(1)),
            (9, ProbeEventKind::Fault),
        ]);
        let thread = 42_u64 << 32 | 40;
        let bytes = [
            build_perf_record(9, 2, &[7, thread, 1000]),
            build_perf_record(9, 2, &[9, thread, 1100]),
            build_perf_record(14, 1 << 13 | 1 << 14, &[thread, 1200, 9]),
            build_perf_record(14, 0, &[thread, 1300, 9]),
            build_perf_record(14, 1 << 13, &[thread, 1400, 9]),
            build_perf_record(2, 0, &[7, 5, thread, 1500, 7]),
            build_perf_record(9, 2, &[8, thread, 1600]),
            build_perf_record(9, 2, &[99, thread, 1700]),
            build_perf_record(9, 2, &[8, 42 << 32 | 41, 1800]),
            // Its name was changed; then it became another program.
            build_perf_record(3, 0, &[thread, u64::from_le_bytes(*b"renamed\0"), thread, 1850, 9]),
            build_perf_record(3, 1 << 13, &[thread, u64::from_le_bytes(*b"another-"), 0, thread, 1900, 9]),
        ]
        .concat();
        let mut seen = Vec::new();
        assert_eq!(
            read_probe_records(&bytes, 40, &places, |one| seen.push((one.time, one.thread, one.kind))),
            OtherRingRecords { lost: 5, others: 1 }
        );
        let wanted = [
            (1000, 42, ProbeEventKind::Place(0)),
            (1100, 42, ProbeEventKind::Fault),
            (1200, 42, ProbeEventKind::Preempted),
            (1300, 42, ProbeEventKind::Resumed),
            (1400, 42, ProbeEventKind::Waited),
            (1600, 42, ProbeEventKind::Place(1)),
            (1900, 42, ProbeEventKind::Exec),
        ];
        assert_eq!(seen, wanted);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_bad(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            read_probe_records(&bytes, 0, &HashMap::from([(0, ProbeEventKind::Fault)]), |_| {});
            let _ = UsdtNote::parse(&bytes);
            let _ = ProbedProgram::parse(Path::new("x"), &bytes);
        }

        #[test]
        fn two_rings_become_one_order(mut times in proptest::collection::vec((0_u64..1000, any::<bool>()), 1..200), at in 0_usize..200) {
            times.sort_unstable();
            let (early, late) = times.split_at(at.min(times.len()));
            let mut order = TimeOrderBuffer::default();
            let mut out = Vec::new();
            for (part, now) in [(early, early.last().map_or(0, |last| last.0)), (late, 1001), (&[][..], 1002)] {
                for ring in [true, false] {
                    let reported = part.iter().filter(|(_, which)| *which == ring);
                    reported.for_each(|(time, _)| order.add(ProbeEvent { time: *time, thread: 1, stack: 0, routine: 0, kind: ProbeEventKind::Fault }));
                }
                order.release_before(now, &mut |seen| out.push(seen.time));
            }
            order.release_all(&mut |seen| out.push(seen.time));
            prop_assert_eq!(out, times.iter().map(|(time, _)| *time).collect::<Vec<_>>());
        }
    }

    /// Something to probe, in this test's own binary.
    #[unsafe(no_mangle)]
    #[inline(never)]
    #[expect(unsafe_code, reason = "a symbol that the test finds by its name")]
    extern "C" fn perflab_probed_by_a_test(turns: u64) -> u64 {
        (0..turns).fold(0, |sum, n| sum ^ std::hint::black_box(n))
    }

    #[test]
    fn places_have_names_and_what_is_missing_says_what_there_is() {
        let own = ProbedProgram::read(&std::env::current_exe().unwrap()).unwrap();
        own.function("perflab_probed_by_a_test").unwrap();
        let error = own.function("perflab_probed_by_a_tset").unwrap_err();
        let ProbeError::NoPlace { what, name, hint, .. } = &error else { panic!("{error}") };
        assert_eq!((*what, name.as_str()), ("function", "perflab_probed_by_a_tset"));
        insta::assert_snapshot!(hint, @"did you mean `perflab_probed_by_a_test`?");
        let error = own.probe_point("no:such", None).unwrap_err();
        let ProbeError::NoPlace { what, name, .. } = &error else { panic!("{error}") };
        assert_eq!((*what, name.as_str()), ("USDT probe", "no:such"));
        let error = ProbedProgram::parse(Path::new("/x"), b"nothing of the kind").unwrap_err();
        assert!(matches!(&error, ProbeError::NotElf { path, .. } if path == Path::new("/x")), "{error}");
        let error = ProbedProgram::read(Path::new("/nowhere")).unwrap_err();
        assert!(matches!(&error, ProbeError::Read { path, .. } if path == Path::new("/nowhere")), "{error}");
    }

    #[test]
    fn a_kernel_without_uprobes_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = ProbeRecorder::attach(&Root(folder.path().into()), 1, &[]).unwrap_err();
        assert!(matches!(error, ProbeError::NoUprobes), "{error}");
        insta::assert_snapshot!(error, @"this kernel has no uprobes: /sys/bus/event_source/devices/uprobe is not there; it needs CONFIG_UPROBES and CONFIG_UPROBE_EVENTS");
    }

    /// Where the kernel refuses, the test has nothing to show.
    fn ok_unless_refused<T>(name: &str, result: Result<T, ProbeError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) if std::env::var_os("PERFLAB_REQUIRE_ALL").is_none() => {
                eprintln!("SKIP {name}: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn every_call_of_every_thread_is_seen_with_its_return() {
        let name = "every_call_of_every_thread_is_seen_with_its_return";
        let own = ProbedProgram::read(&std::env::current_exe().unwrap()).unwrap();
        let site = own.function("perflab_probed_by_a_test").unwrap();
        let place = |sites| ProbePoint { path: own.path().into(), sites, condition: None };
        let places = [place(vec![site.begin]), place(site.ends)];
        let pid = std::process::id() as i32;
        let Some(mut attached) = ok_unless_refused(name, ProbeRecorder::attach(&Root::host(), pid, &places))
        else {
            return;
        };
        attached.start();
        let call = || {
            let mut sum = 0;
            (0..500).for_each(|turns| sum ^= perflab_probed_by_a_test(turns));
            (rustix::thread::gettid().as_raw_nonzero().get(), std::hint::black_box(sum)).0
        };
        let threads: Vec<i32> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..3).map(|_| scope.spawn(call)).collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut seen = Vec::new();
        attached.drain_events(|one| seen.push(one));
        assert_eq!(attached.stop(|one| seen.push(one)).lost, 0);
        assert!(seen.is_sorted_by_key(|one| one.time));
        for thread in threads {
            let calls: Vec<usize> = seen
                .iter()
                .filter(|one| one.thread == thread)
                .filter_map(|one| match one.kind {
                    ProbeEventKind::Place(number) => Some(number),
                    _ => None,
                })
                .collect();
            assert_eq!(calls, [0, 1].repeat(500), "thread {thread}");
        }
    }

    #[test]
    fn an_event_has_a_price_however_often_it_is_asked_for() {
        let name = "an_event_has_a_price_however_often_it_is_asked_for";
        let root = Root::host();
        let meters =
            [ProbeCostMeter::new, ProbeCostMeter::on_own_code].map(|new| ok_unless_refused(name, new(&root)));
        let [Some(mut copied), Some(mut own)] = meters else { return };
        for cost in [
            copied.measure(ProbeCostMeter::FULL_ROUNDS),
            copied.measure(ProbeCostMeter::QUICK_ROUNDS),
            own.measure(ProbeCostMeter::FULL_ROUNDS),
        ] {
            // Each is reported, so each is between its begin and its end.
            let all = [cost.emulated, cost.stepped, cost.returned, cost.between];
            assert!(all.into_iter().all(|cost| cost > 0.0), "{cost:?}");
        }
    }

    /// More calls than the kernel has room for: what it did not report is counted, to the last.
    #[test]
    fn what_the_kernel_had_no_room_for_is_counted() {
        let name = "what_the_kernel_had_no_room_for_is_counted";
        let own = ProbedProgram::read(&std::env::current_exe().unwrap()).unwrap();
        let site = own.function("perflab_probed_by_a_test_too_often").unwrap();
        let places = [ProbePoint { path: own.path().into(), sites: vec![site.begin], condition: None }];
        let Some(attached) = ok_unless_refused(name, ProbeRecorder::attach_to_self(&Root::host(), &places))
        else {
            return;
        };
        attached.start();
        let calls = 20_000;
        let sum: u64 = (0..calls).map(|turns| perflab_probed_by_a_test_too_often(turns)).sum();
        std::hint::black_box(sum);
        let mut reported = 0;
        let end = attached.stop(|_| reported += 1);
        assert!(end.lost > 0 && reported > 0, "{end:?}");
        assert_eq!(end.lost + reported, calls);
    }

    /// The same, for one test alone.
    #[unsafe(no_mangle)]
    #[inline(never)]
    #[expect(unsafe_code, reason = "a symbol that the test finds by its name")]
    extern "C" fn perflab_probed_by_a_test_too_often(turns: u64) -> u64 {
        std::hint::black_box(turns) ^ 1
    }
}
