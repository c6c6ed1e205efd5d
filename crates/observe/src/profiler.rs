//! Sampling call stacks: the event chosen and why others were refused, the recording from start to stop.
//!
//! It uses perf_event_open and nothing else, so that it works inside a bare guest. A profile without the kernel is
//! not taken: where that part is not allowed, or its names are hidden, it is an error that names the setting.
//! Frames are named by `perflab-stacks`, after the measured time.

#![expect(unsafe_code, reason = "attributes of an event as bytes")]

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use perf_event_open_sys::bindings as sys;
use perflab_formats::kernel::small_values::parse_cpu_list;
use perflab_model::Nanos;
use perflab_model::error_class::{Classify, ErrorClass};
use perflab_stacks::{KernelSymbols, PerfRecording};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;

use crate::facts::memory::read_available_memory;
use crate::perf_event::{self, PerfRing, open_perf_event};
use crate::root::Root;
use crate::{overhead, processes};

/// Which processes' stacks are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingScope {
    /// those of all processes, on every CPU
    System,
    /// this thread's, and of whatever it starts from now on
    Children,
    /// a process's, and of whatever it starts from now on
    Process(i32),
}

/// Buffer pages of a CPU, tried from the largest: what may be locked is limited for users.
const PAGES: [usize; 4] = [512, 128, 32, 8];

/// The longest that the reader waits for a buffer to fill, and hence for the request to stop.
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
    fn start_with_limit(
        root: &Root,
        scope: SamplingScope,
        frequency: u64,
        room: usize,
    ) -> Result<StackSampler, ProfileError> {
        let chosen = choose_sampling_event(root, scope, frequency)?;
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
        for cpu in online_cpus(root) {
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
        let Ok(fd) = open_perf_event(attr, *task, Some(cpu), None) else { continue };
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
        perf_event::switch_event(fd, true).map_err(|_| ProfileError::Reader)?;
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
        let _ = perf_event::switch_event(fd, false);
    }
    kept.drain_rings(rings);
    ProfileBuffers { kept, cost: overhead::thread_cpu_time() }
}

/// The kernel's symbols.
///
/// # Errors
/// [`ProfileError::Names`] where they are hidden.
pub fn read_kernel_symbols(root: &Root) -> Result<KernelSymbols, ProfileError> {
    let text = std::fs::read_to_string(root.path("/proc/kallsyms")).unwrap_or_default();
    Ok(KernelSymbols::parse(text)?)
}

/// An event that could be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SamplingEvent {
    /// `cycles:P`, `cycles`, `cpu-clock`.
    pub name: &'static str,
    /// The unit of its periods.
    pub unit: &'static str,
    kind: u32,
    config: u64,
    precise: u64,
}

const CYCLES: u64 = sys::PERF_COUNT_HW_CPU_CYCLES as u64;

const CLOCK: u64 = sys::PERF_COUNT_SW_CPU_CLOCK as u64;

/// Best first: the counter of cycles, as precise as the machine can; without it the clock.
const CANDIDATE_EVENTS: [SamplingEvent; 4] = [
    SamplingEvent {
        name: "cycles:P",
        unit: "cycles",
        kind: sys::PERF_TYPE_HARDWARE,
        config: CYCLES,
        precise: 2,
    },
    SamplingEvent {
        name: "cycles:p",
        unit: "cycles",
        kind: sys::PERF_TYPE_HARDWARE,
        config: CYCLES,
        precise: 1,
    },
    SamplingEvent {
        name: "cycles",
        unit: "cycles",
        kind: sys::PERF_TYPE_HARDWARE,
        config: CYCLES,
        precise: 0,
    },
    SamplingEvent { name: "cpu-clock", unit: "ns", kind: sys::PERF_TYPE_SOFTWARE, config: CLOCK, precise: 0 },
];

impl SamplingEvent {
    /// What it cannot see.
    pub fn blind_spot(&self) -> Option<String> {
        perflab_stacks::imported_profile::hidden_from_event(self.name, false)
    }

    /// The attributes of an event at `frequency` Hz. Kernel and user stacks, and what distinguishes processes.
    fn perf_attributes(&self, frequency: u64, inherit: bool) -> sys::perf_event_attr {
        let mut attr = sys::perf_event_attr {
            type_: self.kind,
            size: size_of::<sys::perf_event_attr>() as u32,
            config: self.config,
            ..Default::default()
        };
        attr.__bindgen_anon_1.sample_freq = frequency;
        attr.sample_type = u64::from(
            sys::PERF_SAMPLE_IP
                | sys::PERF_SAMPLE_TID
                | sys::PERF_SAMPLE_TIME
                | sys::PERF_SAMPLE_CPU
                | sys::PERF_SAMPLE_PERIOD
                | sys::PERF_SAMPLE_CALLCHAIN,
        );
        attr.set_freq(1);
        attr.set_disabled(1);
        attr.set_inherit(u64::from(inherit));
        attr.set_precise_ip(self.precise);
        attr.set_mmap(1);
        attr.set_mmap2(1);
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_task(1);
        attr.set_sample_id_all(1);
        // The clock of everything else in a run.
        attr.set_use_clockid(1);
        attr.clockid = libc::CLOCK_MONOTONIC;
        attr.set_watermark(1);
        attr
    }
}

/// The best event that can be opened; tried on this thread or the system, and closed at once.
fn choose_sampling_event(
    root: &Root,
    scope: SamplingScope,
    frequency: u64,
) -> Result<SamplingEvent, ProfileError> {
    let task = if scope == SamplingScope::System { -1 } else { 0 };
    let mut tried = Vec::new();
    for one in CANDIDATE_EVENTS {
        match open_perf_event(&one.perf_attributes(frequency, false), task, Some(find_first_cpu(root)), None)
        {
            Ok(_) => return Ok(one),
            Err(error) if is_permission_refusal(&error) => {
                return Err(profile_refused_error(root, scope, error));
            }
            Err(error)
                if error.raw_os_error() == Some(libc::EINVAL) && one.config == CLOCK && one.unit == "ns" =>
            {
                tried.push(format!("{}: {error}; {}", one.name, frequency_limit_hint(root, frequency)));
            }
            Err(error) => tried.push(format!("{}: {error}", one.name)),
        }
    }
    Err(ProfileError::NoEvent { tried: tried.join("; ") })
}

fn find_first_cpu(root: &Root) -> u32 {
    online_cpus(root).first().copied().unwrap_or(0)
}

/// The CPUs that are online.
pub(crate) fn online_cpus(root: &Root) -> Vec<u32> {
    let text = root.read("/sys/devices/system/cpu/online").unwrap_or_else(|_| "0".into());
    parse_cpu_list(&text)
}

fn is_permission_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::ENOSYS))
}

fn frequency_limit_hint(root: &Root, frequency: u64) -> String {
    let most = root.read("/proc/sys/kernel/perf_event_max_sample_rate").unwrap_or_default();
    format!("{frequency} Hz may be too often: kernel.perf_event_max_sample_rate is {most}")
}

/// What to change: the setting if it forbids this, else whatever else may forbid it.
fn profile_refused_error(root: &Root, scope: SamplingScope, source: io::Error) -> ProfileError {
    let (what, allowed) = match scope {
        SamplingScope::System => ("the whole system, kernel included", 0),
        _ => ("a process with its time in the kernel", 1),
    };
    let level =
        root.read("/proc/sys/kernel/perf_event_paranoid").ok().and_then(|text| text.parse::<i32>().ok());
    let advice = match level {
        None => "/proc/sys/kernel/perf_event_paranoid is not there: the kernel has no perf events".into(),
        Some(level) if level > allowed => format!(
            "kernel.perf_event_paranoid is {level} and may be {allowed} at most: `sysctl \
             kernel.perf_event_paranoid={}`, or run as root or with CAP_PERFMON",
            allowed - 1
        ),
        Some(level) => format!(
            "kernel.perf_event_paranoid is {level} and allows it, so something else forbids it: in a container \
             mostly its seccomp filter; give it CAP_PERFMON, or record on the host with `perf record -a -g` and \
             `perflab flame import perf.data`"
        ),
    };
    ProfileError::Refused { what, source, advice }
}

/// Whether a profile with the kernel's part and its names can be taken, and by which event.
///
/// # Errors
/// [`ProfileError`] with the setting to change.
pub fn check_stack_sampling(
    root: &Root,
    scope: SamplingScope,
    frequency: u64,
) -> Result<SamplingEvent, ProfileError> {
    let chosen = choose_sampling_event(root, scope, frequency)?;
    read_kernel_symbols(root)?;
    Ok(chosen)
}

/// Why a profile cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The kernel does not allow it.
    #[error("the kernel refuses to sample {what}: {source}; {advice}")]
    Refused {
        /// `the whole system, kernel included`
        what: &'static str,
        /// the system's error
        source: io::Error,
        /// what to change
        advice: String,
    },
    /// The kernel's functions would have no names.
    #[error("kernel functions would have no names: /proc/kallsyms: {0}")]
    Names(#[from] perflab_stacks::KernelSymbolsError),
    /// No event could be opened, for other reasons.
    #[error("no event can be sampled: {tried}")]
    NoEvent {
        /// each event with its error
        tried: String,
    },
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// its number
        pid: i32,
    },
    /// A buffer could not be had.
    #[error("no ring buffer of {bytes} bytes for CPU {cpu}: {source}; raise kernel.perf_event_mlock_kb")]
    Ring {
        /// the CPU
        cpu: u32,
        /// the size that was tried last
        bytes: usize,
        /// the system's error
        source: io::Error,
    },
    /// The reader's thread died.
    #[error("the thread that reads samples ended before its time")]
    Reader,
}

impl Classify for ProfileError {
    fn class(&self) -> ErrorClass {
        match self {
            ProfileError::Refused { .. } | ProfileError::NoEvent { .. } | ProfileError::Ring { .. } => {
                ErrorClass::Environment
            }
            ProfileError::NoProcess { .. } => ErrorClass::Usage,
            ProfileError::Reader => ErrorClass::Unexpected,
            ProfileError::Names(error) => error.class(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, Instant};

    use perflab_model::{FrameKind, Nanos};
    use perflab_stacks::LiveProfile;

    use super::*;
    use crate::root::Root;

    /// This very process.
    fn own_process_scope() -> SamplingScope {
        SamplingScope::Process(std::process::id().try_into().unwrap())
    }

    /// Enters the kernel over and over for a while.
    fn keep_kernel_busy() {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(300) {
            let _ = fs::read("/proc/self/stat");
        }
    }

    /// The same in a child, which is ended.
    fn run_busy_child() {
        let command = "timeout 0.3 sh -c 'while :; do :; done'";
        std::process::Command::new("sh").args(["-c", command]).status().unwrap();
    }

    #[test]
    fn own_work_is_seen_with_its_time_in_the_kernel() {
        let root = Root::host();
        let chosen = match check_stack_sampling(&root, own_process_scope(), 999) {
            Ok(chosen) => chosen,
            Err(error) => {
                assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{error}");
                eprintln!("SKIP own_work_is_seen: {error}");
                return;
            }
        };
        let recorder = StackSampler::start(&root, own_process_scope(), 999).unwrap();
        assert_eq!(recorder.event(), chosen);
        keep_kernel_busy();
        let (recording, cost) = recorder.stop().unwrap();
        let mut live = LiveProfile::new(&[]).unwrap();
        let (batch, about) = live.convert(&recording, 0);
        assert!(about.lost == 0 && cost < Nanos(300_000_000), "{about:?} {cost}");
        let own = i32::try_from(std::process::id()).unwrap();
        // Threads of other tests are this process's, too, and so are their children.
        let of_own = batch.samples.iter().filter(|one| one.pid == Some(own)).count();
        assert!(of_own > 20, "{of_own} of {}", batch.samples.len());
        let kinds: Vec<FrameKind> = batch.frames.iter().map(|frame| frame.kind).collect();
        assert!(kinds.contains(&FrameKind::Kernel) && kinds.contains(&FrameKind::User));
        assert!(batch.frames.iter().any(|frame| frame.name == "vfs_read"), "{:?}", batch.frames);
        assert!(batch.samples.is_sorted_by_key(|one| one.at));
    }

    #[test]
    fn who_records_is_not_among_its_children() {
        let root = Root::host();
        if let Err(error) = check_stack_sampling(&root, SamplingScope::Children, 999) {
            assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{error}");
            eprintln!("SKIP who_records_is_not_among_its_children: {error}");
            return;
        }
        let recorder = StackSampler::start(&root, SamplingScope::Children, 999).unwrap();
        keep_kernel_busy();
        run_busy_child();
        keep_kernel_busy();
        let (recording, _) = recorder.stop().unwrap();
        let (batch, _) = LiveProfile::new(&[]).unwrap().convert(&recording, 0);
        assert!(batch.samples.len() > 20, "{}", batch.samples.len());
        let comms: std::collections::BTreeSet<&str> =
            batch.samples.iter().map(|one| batch.comms[one.comm.0 as usize].as_str()).collect();
        assert!(comms.iter().all(|comm| ["sh", "timeout"].contains(comm)), "{comms:?}");
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let root = Root::host();
        if let Err(error) = check_stack_sampling(&root, SamplingScope::Children, 4999) {
            assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none(), "{error}");
            eprintln!("SKIP what_there_is_no_room_for: {error}");
            return;
        }
        const ROOM: usize = 10_000;
        let recorder = StackSampler::start_with_limit(&root, SamplingScope::Children, 4999, ROOM).unwrap();
        run_busy_child();
        run_busy_child();
        let (recording, _) = recorder.stop().unwrap();
        let kept: usize = recording.buffers.iter().map(Vec::len).sum();
        assert!(kept <= ROOM && recording.lost > 0, "{kept} bytes, {} lost", recording.lost);
        let (batch, about) = LiveProfile::new(&[]).unwrap().convert(&recording, 0);
        assert!(about.lost >= recording.lost);
        // 4999 a second of CPU, of 0.6 s at most.
        let all = batch.samples.len() as u64 + about.lost;
        assert!((20..4999).contains(&all), "{} kept, {} lost", batch.samples.len(), about.lost);
    }

    #[test]
    fn a_process_that_is_not_there_is_named() {
        let error = StackSampler::start(&Root::host(), SamplingScope::Process(i32::MAX - 1), 99).map(drop);
        // Who may not sample at all hears of that first.
        let is_named = |error: &ProfileError| {
            matches!(error, ProfileError::NoProcess { pid: 2_147_483_646 } | ProfileError::Refused { .. })
        };
        assert!(error.as_ref().is_err_and(is_named), "{error:?}");
    }

    #[test]
    fn online_cpus_are_ranges() {
        let tree = tempfile::tempdir().unwrap();
        let folder = tree.path().join("sys/devices/system/cpu");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("online"), "0-2,5\n").unwrap();
        assert_eq!(super::online_cpus(&Root(tree.path().into())), [0, 1, 2, 5]);
    }

    #[test]
    fn hidden_names_are_refused_with_the_setting() {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("proc")).unwrap();
        fs::write(tree.path().join("proc/kallsyms"), "0000000000000000 T _stext\n").unwrap();
        let error = super::read_kernel_symbols(&Root(tree.path().into())).unwrap_err();
        assert!(matches!(error, ProfileError::Names(perflab_stacks::KernelSymbolsError::Hidden)), "{error}");
    }
}
