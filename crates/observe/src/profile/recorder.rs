//! A profile being taken: events on every CPU, and one thread that empties their buffers.
#![expect(unsafe_code, reason = "there is no safe perf_event_open, and its buffer is a mapping")]

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use perflab_model::Nanos;
use perflab_stacks::{KernelSymbols, Recording};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use super::event::{self, Chosen};
use super::ring::{self, Ring};
use super::{ProfileError, Scope, processes};
use crate::{Root, usage};

/// Buffer pages of a CPU, tried from the largest: what may be locked is limited for users.
const PAGES: [usize; 4] = [512, 128, 32, 8];
/// The longest that the reader waits for a buffer to fill, and hence for the word to stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// A profile being taken. Dropped without [`Recorder::stop`], it is thrown away.
#[derive(Debug)]
pub struct Recorder {
    chosen: Chosen,
    recording: Recording,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<Read>>,
}

/// What the reader brings back.
#[derive(Debug, Default)]
struct Read {
    buffers: Vec<Vec<u8>>,
    cost: Nanos,
}

impl Recorder {
    /// Begins to sample at `frequency` Hz on every CPU.
    ///
    /// # Errors
    /// [`ProfileError`] with the setting to change.
    pub fn start(root: &Root, scope: Scope, frequency: u64) -> Result<Recorder, ProfileError> {
        let chosen = event::choose(root, scope, frequency)?;
        let mut attr = chosen.attributes(frequency, scope != Scope::System);
        attr.__bindgen_anon_2.wakeup_watermark = 64 * 1024;
        let tasks = match scope {
            Scope::System => vec![-1],
            Scope::Children => vec![0],
            Scope::Process(pid) => processes::threads(root, pid),
        };
        if let (Scope::Process(pid), true) = (scope, tasks.is_empty()) {
            return Err(ProfileError::NoProcess { pid });
        }
        let mut rings = Vec::new();
        let mut others = Vec::new();
        for cpu in event::cpus(root) {
            let ring = open_cpu(&attr, &tasks, cpu, &mut others)?;
            rings.extend(ring);
        }
        let only = match scope {
            Scope::System => None,
            Scope::Children => Some(rustix::process::getpid().as_raw_nonzero().get()),
            Scope::Process(pid) => Some(pid),
        };
        let recording = Recording {
            attributes: bytes(&attr),
            processes: processes::processes(root, only),
            ..Recording::default()
        };
        let stop = Arc::new(AtomicBool::new(false));
        let reader = spawn(rings, others, Arc::clone(&stop))?;
        Ok(Recorder { chosen, recording, stop, reader: Some(reader) })
    }

    /// The event that is counted.
    pub fn event(&self) -> Chosen {
        self.chosen
    }

    /// Ends sampling, and gives what was recorded with the CPU time that reading it took.
    ///
    /// # Errors
    /// [`ProfileError::Reader`].
    pub fn stop(mut self) -> Result<(Recording, Nanos), ProfileError> {
        self.stop.store(true, Ordering::Relaxed);
        let reader = self.reader.take().ok_or(ProfileError::Reader)?;
        let read = reader.join().map_err(|_| ProfileError::Reader)?;
        Ok((Recording { buffers: read.buffers, ..std::mem::take(&mut self.recording) }, read.cost))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// The events of all tasks on a CPU, with one buffer. A CPU that went offline, or a task that ended, has none.
fn open_cpu(
    attr: &perf_event_open_sys::bindings::perf_event_attr,
    tasks: &[i32],
    cpu: u32,
    others: &mut Vec<OwnedFd>,
) -> Result<Option<Ring>, ProfileError> {
    let mut ring: Option<Ring> = None;
    for task in tasks {
        let Ok(fd) = event::open(attr, *task, cpu) else { continue };
        match &ring {
            None => ring = Some(mapped(fd, cpu)?),
            Some(ring) => {
                if ring.takes(&fd).is_ok() {
                    others.push(fd);
                }
            }
        }
    }
    Ok(ring)
}

fn mapped(fd: OwnedFd, cpu: u32) -> Result<Ring, ProfileError> {
    let mut last = (fd, std::io::Error::other("no size was tried"));
    for pages in PAGES {
        match Ring::map(last.0, pages) {
            Ok(ring) => return Ok(ring),
            Err(failed) => last = failed,
        }
    }
    let bytes = PAGES.last().copied().unwrap_or(0) * rustix::param::page_size();
    Err(ProfileError::Ring { cpu, bytes, source: last.1 })
}

/// The attributes as the kernel has them, for the reader of records.
fn bytes(attr: &perf_event_open_sys::bindings::perf_event_attr) -> Vec<u8> {
    let begin: *const u8 = std::ptr::from_ref(attr).cast();
    // SAFETY: a plain structure of numbers without padding, read for as long as it is.
    unsafe { std::slice::from_raw_parts(begin, size_of_val(attr)) }.to_vec()
}

/// Everything is switched on by the reader, so that no buffer fills before it is there.
fn spawn(
    rings: Vec<Ring>,
    others: Vec<OwnedFd>,
    stop: Arc<AtomicBool>,
) -> Result<JoinHandle<Read>, ProfileError> {
    let all = || rings.iter().map(Ring::fd).chain(&others);
    for fd in all() {
        ring::switch(fd, true).map_err(|_| ProfileError::Reader)?;
    }
    let thread = std::thread::Builder::new().name("profile".into());
    thread.spawn(move || read(&rings, &others, &stop)).map_err(|_| ProfileError::Reader)
}

fn read(rings: &[Ring], others: &[OwnedFd], stop: &AtomicBool) -> Read {
    let mut buffers = vec![Vec::new(); rings.len()];
    let mut drain = || rings.iter().zip(&mut buffers).for_each(|(ring, buffer)| ring.drain(buffer));
    let patience = Timespec::try_from(PATIENCE).ok();
    while !stop.load(Ordering::Relaxed) {
        let mut fds: Vec<PollFd<'_>> =
            rings.iter().map(|ring| PollFd::new(ring.fd(), PollFlags::IN)).collect();
        // Woken early, by a signal or by a task that ended, there is less to take.
        let _ = poll(&mut fds, patience.as_ref());
        if fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP)) {
            std::thread::sleep(PATIENCE);
        }
        drain();
    }
    for fd in rings.iter().map(Ring::fd).chain(others) {
        let _ = ring::switch(fd, false);
    }
    drain();
    Read { buffers, cost: usage::own_thread() }
}

/// The kernel's symbols.
///
/// # Errors
/// [`ProfileError::Names`] where they are hidden.
pub(super) fn kernel(root: &Root) -> Result<KernelSymbols, ProfileError> {
    let text = std::fs::read_to_string(root.path("/proc/kallsyms")).unwrap_or_default();
    Ok(KernelSymbols::parse(text)?)
}
