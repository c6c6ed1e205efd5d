//! A profile being taken: events on every CPU, and one thread that empties their buffers.
#![expect(unsafe_code, reason = "there is no safe perf_event_open, and its buffer is a mapping")]

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use perf_event_open_sys::bindings as sys;
use perflab_model::Nanos;
use perflab_stacks::{KernelSymbols, PerfRecording};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::event::{self, SamplingEvent};
use super::ring::{self, PerfRing};
use super::{ProfileError, SamplingScope, processes};
use crate::facts::read_available_memory;
use crate::{Root, usage};

/// Buffer pages of a CPU, tried from the largest: what may be locked is limited for users.
const PAGES: [usize; 4] = [512, 128, 32, 8];
/// The longest that the reader waits for a buffer to fill, and hence for the word to stop.
const PATIENCE: Duration = Duration::from_millis(100);
/// Records are kept up to this part of the memory that is available: naming them takes several times as much.
const PART_OF_AVAILABLE: u64 = 8;
/// And up to so many bytes, some millions of samples: beyond that, naming takes minutes.
const MOST_KEPT: u64 = 1 << 30;

/// A profile being taken. Dropped without [`StackSampler::stop`], it is thrown away.
#[derive(Debug)]
pub struct StackSampler {
    chosen: SamplingEvent,
    recording: PerfRecording,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<ProfileBuffers>>,
}

/// What the reader brings back.
#[derive(Debug, Default)]
struct ProfileBuffers {
    kept: KeptRecords,
    cost: Nanos,
}

/// The records of every ring, as many as there is room for.
#[derive(Debug, Default)]
struct KeptRecords {
    buffers: Vec<Vec<u8>>,
    /// bytes that may still be kept; none once something was not
    room: usize,
    /// samples that were not kept
    lost: u64,
}

impl KeptRecords {
    /// Takes what is in the rings. From the first time on that it is more than there is room for, samples are counted instead:
    /// their beginning is kept, without gaps.
    fn drain_rings(&mut self, rings: &[PerfRing]) {
        let mut fresh = Vec::new();
        for (ring, buffer) in rings.iter().zip(&mut self.buffers) {
            fresh.clear();
            ring.drain(&mut fresh);
            if fresh.len() > self.room {
                self.room = 0;
                self.lost += count_samples(&fresh);
            } else {
                self.room -= fresh.len();
                buffer.extend_from_slice(&fresh);
            }
        }
    }
}

/// How many samples there are among whole records, with those that the kernel says it lost.
fn count_samples(mut records: &[u8]) -> u64 {
    let mut count = 0_u64;
    while let Some((head, rest)) = records.split_first_chunk::<8>() {
        let [a, b, c, d, _, _, low, high] = *head;
        let length = usize::from(u16::from_ne_bytes([low, high])).saturating_sub(head.len());
        let (body, rest) = rest.split_at(length.min(rest.len()));
        count = count.saturating_add(match u32::from_ne_bytes([a, b, c, d]) {
            sys::PERF_RECORD_SAMPLE => 1,
            // A record of what was lost has a number of the event, and the count.
            sys::PERF_RECORD_LOST => body
                .get(8..16)
                .map_or(0, |count| count.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))),
            _ => 0,
        });
        records = rest;
    }
    count
}

impl StackSampler {
    /// Begins to sample at `frequency` Hz on every CPU. Records take a part of the memory that is available at most.
    ///
    /// # Errors
    /// [`ProfileError`] with the setting to change.
    pub fn start(root: &Root, scope: SamplingScope, frequency: u64) -> Result<StackSampler, ProfileError> {
        let available = read_available_memory(root).unwrap_or(u64::MAX);
        let room = usize::try_from((available / PART_OF_AVAILABLE).min(MOST_KEPT)).unwrap_or(usize::MAX);
        Self::start_with_limit(root, scope, frequency, room)
    }

    /// Begins to sample, and keeps so many bytes of records at most.
    pub(super) fn start_with_limit(
        root: &Root,
        scope: SamplingScope,
        frequency: u64,
        room: usize,
    ) -> Result<StackSampler, ProfileError> {
        let chosen = event::choose_sampling_event(root, scope, frequency)?;
        let mut attr = chosen.perf_attributes(frequency, scope != SamplingScope::System);
        attr.__bindgen_anon_2.wakeup_watermark = 64 * 1024;
        let tasks = match scope {
            SamplingScope::System => vec![-1],
            SamplingScope::Children => vec![0],
            SamplingScope::Process(pid) => processes::list_threads(root, pid),
        };
        if let (SamplingScope::Process(pid), true) = (scope, tasks.is_empty()) {
            return Err(ProfileError::NoProcess { pid });
        }
        let mut rings = Vec::new();
        let mut others = Vec::new();
        for cpu in event::online_cpus(root) {
            let ring = open_cpu_events(&attr, &tasks, cpu, &mut others)?;
            rings.extend(ring);
        }
        let only = match scope {
            SamplingScope::System => None,
            SamplingScope::Children => Some(rustix::process::getpid().as_raw_nonzero().get()),
            SamplingScope::Process(pid) => Some(pid),
        };
        let recording = PerfRecording {
            attributes: attributes_as_bytes(&attr),
            processes: processes::list_processes(root, only),
            recorder: only.filter(|_| scope == SamplingScope::Children),
            ..PerfRecording::default()
        };
        let stop = Arc::new(AtomicBool::new(false));
        let reader = spawn_ring_reader(rings, others, Arc::clone(&stop), room)?;
        Ok(StackSampler { chosen, recording, stop, reader: Some(reader) })
    }

    /// The event that is counted.
    pub fn event(&self) -> SamplingEvent {
        self.chosen
    }

    /// Ends sampling, and gives what was recorded with the CPU time that reading it took.
    ///
    /// # Errors
    /// [`ProfileError::Reader`].
    pub fn stop(mut self) -> Result<(PerfRecording, Nanos), ProfileError> {
        self.stop.store(true, Ordering::Relaxed);
        let reader = self.reader.take().ok_or(ProfileError::Reader)?;
        let read = reader.join().map_err(|_| ProfileError::Reader)?;
        let KeptRecords { buffers, lost, .. } = read.kept;
        Ok((PerfRecording { buffers, lost, ..std::mem::take(&mut self.recording) }, read.cost))
    }
}

impl Drop for StackSampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The events of all tasks on a CPU, with one buffer. A CPU that went offline, or a task that ended, has none.
fn open_cpu_events(
    attr: &sys::perf_event_attr,
    tasks: &[i32],
    cpu: u32,
    others: &mut Vec<OwnedFd>,
) -> Result<Option<PerfRing>, ProfileError> {
    let mut ring: Option<PerfRing> = None;
    for task in tasks {
        let Ok(fd) = event::open_perf_event(attr, *task, cpu) else { continue };
        match &ring {
            None => ring = Some(map_largest_ring(fd, cpu)?),
            Some(ring) => {
                if ring.redirect_output_of(&fd).is_ok() {
                    others.push(fd);
                }
            }
        }
    }
    Ok(ring)
}

fn map_largest_ring(fd: OwnedFd, cpu: u32) -> Result<PerfRing, ProfileError> {
    let mut last = (fd, std::io::Error::other("no size was tried"));
    for pages in PAGES {
        match PerfRing::map(last.0, pages) {
            Ok(ring) => return Ok(ring),
            Err(failed) => last = failed,
        }
    }
    let bytes = PAGES.last().copied().unwrap_or(0) * rustix::param::page_size();
    Err(ProfileError::Ring { cpu, bytes, source: last.1 })
}

/// The attributes as the kernel has them, for the reader of records.
fn attributes_as_bytes(attr: &sys::perf_event_attr) -> Vec<u8> {
    let begin: *const u8 = std::ptr::from_ref(attr).cast();
    // SAFETY: a plain structure of numbers without padding, read for as long as it is.
    unsafe { std::slice::from_raw_parts(begin, size_of_val(attr)) }.to_vec()
}

/// Everything is switched on by the reader, so that no buffer fills before it is there.
fn spawn_ring_reader(
    rings: Vec<PerfRing>,
    others: Vec<OwnedFd>,
    stop: Arc<AtomicBool>,
    room: usize,
) -> Result<JoinHandle<ProfileBuffers>, ProfileError> {
    let all = || rings.iter().map(PerfRing::fd).chain(&others);
    for fd in all() {
        ring::switch_event(fd, true).map_err(|_| ProfileError::Reader)?;
    }
    let thread = std::thread::Builder::new().name("profile".into());
    thread.spawn(move || read_until_stopped(&rings, &others, &stop, room)).map_err(|_| ProfileError::Reader)
}

fn read_until_stopped(
    rings: &[PerfRing],
    others: &[OwnedFd],
    stop: &AtomicBool,
    room: usize,
) -> ProfileBuffers {
    let mut kept = KeptRecords { buffers: vec![Vec::new(); rings.len()], room, lost: 0 };
    let patience = Timespec::try_from(PATIENCE).ok();
    while !stop.load(Ordering::Relaxed) {
        let mut fds: Vec<PollFd<'_>> =
            rings.iter().map(|ring| PollFd::new(ring.fd(), PollFlags::IN)).collect();
        // Woken early, by a signal or by a task that ended, there is less to take.
        let _ = poll(&mut fds, patience.as_ref());
        if fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP)) {
            std::thread::sleep(PATIENCE);
        }
        kept.drain_rings(rings);
    }
    for fd in rings.iter().map(PerfRing::fd).chain(others) {
        let _ = ring::switch_event(fd, false);
    }
    kept.drain_rings(rings);
    ProfileBuffers { kept, cost: usage::thread_cpu_time() }
}

/// The kernel's symbols.
///
/// # Errors
/// [`ProfileError::Names`] where they are hidden.
pub(super) fn read_kernel_symbols(root: &Root) -> Result<KernelSymbols, ProfileError> {
    let text = std::fs::read_to_string(root.path("/proc/kallsyms")).unwrap_or_default();
    Ok(KernelSymbols::parse(text)?)
}
