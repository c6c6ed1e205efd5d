//! A recording of page-cache and disk events: of our children, of everybody, or of a process that runs already.
//!
//! It has two trace instances and a thread that empties their buffers; records are made into events afterwards, so
//! that nothing is interpreted while something is measured. Pages are traced in an instance that follows only the
//! process tree of the calling thread; disk requests in one that follows nobody, because the kernel often sends and
//! always completes them in another process's name.
//!
//! Of a process that was started elsewhere, what it and its descendants bring into the page cache is recorded.
//! Buffers take tens of milliseconds to make, so they are made ready beforehand, and the recording begins within a
//! millisecond while the process is held.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use perflab_model::Nanos;
use perflab_model::io_trace::{DeviceNumber, IoEvent, IoEventKind, IoRecording, IoTraceSummary};

use crate::io::error::IoTraceError;
use crate::io::trace_records::{self, TraceEventFormat};
use crate::io::tracefs::{TraceFs, TraceInstance};
use crate::little_endian::read_u16_at;

/// Which processes' I/O is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoTraceScope {
    /// of the processes that the calling thread starts from now on, and of theirs
    Children,
    /// that of all processes
    All,
}

/// An event of the kernel, and what it becomes.
struct IoTracePoint {
    kind: IoEventKind,
    system: &'static str,
    pub(crate) name: &'static str,
    /// since which kernel; what is not seen without
    since: &'static str,
    without: &'static str,
    role: TraceInstanceRole,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TraceInstanceRole {
    Pages,
    Disks,
}

const fn trace_point(
    kind: IoEventKind,
    (system, name): (&'static str, &'static str),
    since: &'static str,
    without: &'static str,
    role: TraceInstanceRole,
) -> IoTracePoint {
    IoTracePoint { kind, system, name, since, without, role }
}

pub(crate) const PAGES: &str = "mm_filemap_add_to_page_cache";

const NEEDED: &str = "which pages were needed and which were only read around them";

const EVENTS: [IoTracePoint; 8] = [
    trace_point(IoEventKind::Added, ("filemap", PAGES), "3.11", "everything", TraceInstanceRole::Pages),
    trace_point(
        IoEventKind::Fault,
        ("filemap", "mm_filemap_fault"),
        "6.12",
        NEEDED,
        TraceInstanceRole::Pages,
    ),
    trace_point(
        IoEventKind::Read,
        ("filemap", "mm_filemap_get_pages"),
        "6.12",
        NEEDED,
        TraceInstanceRole::Pages,
    ),
    trace_point(
        IoEventKind::Mapped,
        ("filemap", "mm_filemap_map_pages"),
        "6.12",
        "which pages were mapped along",
        TraceInstanceRole::Pages,
    ),
    trace_point(
        IoEventKind::Issued,
        ("block", "block_rq_issue"),
        "2.6.31",
        "disk requests",
        TraceInstanceRole::Disks,
    ),
    trace_point(
        IoEventKind::Completed,
        ("block", "block_rq_complete"),
        "2.6.31",
        "when disks answered",
        TraceInstanceRole::Disks,
    ),
    trace_point(
        IoEventKind::Exec,
        ("sched", "sched_process_exec"),
        "3.4",
        "which programs were started",
        TraceInstanceRole::Pages,
    ),
    trace_point(
        IoEventKind::Exit,
        ("sched", "sched_process_exit"),
        "2.6.31",
        "when processes ended",
        TraceInstanceRole::Pages,
    ),
];

/// Room for each CPU; emptied fifty times a second, that is for more than a million events a second.
const ROOM_KIB: u32 = 8192;

const EVERY: Duration = Duration::from_millis(20);

const SUBBUFFER: usize = 4096;

/// Whether I/O can be traced here.
///
/// # Errors
/// Why not, with what to do.
pub fn check_io_tracing() -> Result<(), IoTraceError> {
    let tracefs = TraceFs::find()?;
    let (description, _) = read_event_formats(&tracefs)?;
    drop(description);
    tracefs.create_instance("check").map(drop)
}

type DescribedTracePoints = Vec<(&'static IoTracePoint, TraceEventFormat)>;

/// The events that this kernel has, and a line for each that it has not.
fn read_event_formats(tracefs: &TraceFs) -> Result<(DescribedTracePoints, Vec<String>), IoTraceError> {
    let (mut have, mut missing) = (Vec::new(), Vec::new());
    for event in &EVENTS {
        let path = tracefs.path(&format!("events/{}/{}/format", event.system, event.name));
        match fs::read_to_string(&path) {
            Ok(text) => have.push((event, TraceEventFormat::parse(&path.display().to_string(), &text)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && event.name == PAGES => {
                return Err(IoTraceError::NoEvent { event: PAGES, since: event.since });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => missing.push(format!(
                "{}:{} (Linux {}): {} cannot be seen",
                event.system, event.name, event.since, event.without
            )),
            Err(error) => return Err(IoTraceError::from_tracefs(&path, error)),
        }
    }
    Ok((have, missing))
}

/// A recording that goes on.
#[derive(Debug)]
pub struct IoTracer {
    pages: TraceInstance,
    disks: TraceInstance,
    reader: TraceReader,
    decoder: IoRecordDecoder,
    summary: IoTraceSummary,
}

/// From records to events.
#[derive(Debug)]
struct IoRecordDecoder {
    event_formats: Vec<(u16, IoEventKind, TraceEventFormat)>,
    /// The tracing thread itself, whose own pages are not part of the recording.
    own_process: Option<i32>,
}

impl IoTracer {
    /// Begins to trace. With [`IoTraceScope::Children`] the calling thread must be the one that starts the processes.
    ///
    /// # Errors
    /// Why not, with what to do.
    pub fn start(scope: IoTraceScope) -> Result<Self, IoTraceError> {
        let tracefs = TraceFs::find()?;
        let (described, missing) = read_event_formats(&tracefs)?;
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let pages = create_trace_instance(&tracefs, "pages", TraceInstanceRole::Pages, &described)?;
        if scope == IoTraceScope::Children {
            // The option first: a child must not slip away between the two.
            pages.set("options/event-fork", "1")?;
            pages.set("set_event_pid", &own.to_string())?;
        }
        let disks = create_trace_instance(&tracefs, "disks", TraceInstanceRole::Disks, &described)?;
        let reader = TraceReader::start(&[&pages, &disks], None)?;
        let begun = crate::clock::monotonic_now();
        for one in [&disks, &pages] {
            one.set("tracing_on", "1")?;
        }
        let tree = scope == IoTraceScope::Children;
        let decoder = IoRecordDecoder::new(described, tree.then_some(own));
        let summary = IoTraceSummary { begun, missing, tree, ..IoTraceSummary::default() };
        Ok(IoTracer { pages, disks, reader, decoder, summary })
    }

    /// Ends tracing, and returns what was seen, in the order of time. Files are not looked up yet: see
    /// [`identify`](crate::io::file_lookup::resolve_files).
    ///
    /// # Errors
    /// A reader that died.
    pub fn stop(mut self) -> Result<IoRecording, IoTraceError> {
        for one in [&self.pages, &self.disks] {
            one.set("tracing_on", "0")?;
        }
        self.summary.ended = crate::clock::monotonic_now();
        let (pages, cost) = self.reader.stop()?;
        self.summary.cost = cost;
        self.summary.lost = self.pages.lost_events() + self.disks.lost_events();
        Ok(IoRecording {
            events: self.decoder.decode_pages(&pages),
            files: Vec::new(),
            summary: self.summary,
        })
    }
}

impl IoRecordDecoder {
    pub(crate) fn new(described: DescribedTracePoints, own: Option<i32>) -> Self {
        let event = |(point, format): (&IoTracePoint, TraceEventFormat)| (format.id, point.kind, format);
        IoRecordDecoder { event_formats: described.into_iter().map(event).collect(), own_process: own }
    }

    /// Everything in pages of the buffers, in order of time.
    fn decode_pages(&self, pages: &[u8]) -> Vec<IoEvent> {
        let mut events = Vec::new();
        for page in pages.chunks(SUBBUFFER) {
            trace_records::for_each_ring_record(page, |time, record| {
                events.extend(self.decode_record(time, record))
            });
        }
        events.sort_by_key(|event: &IoEvent| event.at);
        events
    }

    fn decode_record(&self, time: u64, record: &[u8]) -> Option<IoEvent> {
        let id = read_u16_at(record, 0)?;
        let (_, kind, format) = self.event_formats.iter().find(|(known, ..)| *known == id)?;
        let event = decode_io_event(*kind, format, time, record)?;
        let is_request = matches!(kind, IoEventKind::Issued | IoEventKind::Completed);
        (is_request || self.own_process != Some(event.pid)).then_some(event)
    }
}

fn create_trace_instance(
    tracefs: &TraceFs,
    name: &str,
    role: TraceInstanceRole,
    described: &[(&'static IoTracePoint, TraceEventFormat)],
) -> Result<TraceInstance, IoTraceError> {
    let instance = tracefs.create_instance(name)?;
    instance.set("tracing_on", "0")?;
    instance.set("trace_clock", "mono")?;
    instance.set("options/overwrite", "0")?;
    instance.set("buffer_size_kb", &ROOM_KIB.to_string())?;
    for (event, _) in described.iter().filter(|(event, _)| event.role == role) {
        instance.set(&format!("events/{}/{}/enable", event.system, event.name), "1")?;
    }
    Ok(instance)
}

fn decode_io_event(
    kind: IoEventKind,
    format: &TraceEventFormat,
    time: u64,
    record: &[u8],
) -> Option<IoEvent> {
    let number = |name: &str| format.read_number(name, record);
    let pid = number("common_pid")? as u32 as i32;
    let event = |device: u64, inode, first, count, name| IoEvent {
        at: Nanos(time),
        pid,
        kind,
        device: DeviceNumber(device as u32),
        inode,
        first,
        count,
        name,
    };
    Some(match kind {
        IoEventKind::Added => {
            let order = if format.has_field("order") { number("order")? } else { 0 };
            event(number("s_dev")?, number("i_ino")?, number("index")?, 1 << order.min(20), None)
        }
        IoEventKind::Fault => event(number("s_dev")?, number("i_ino")?, number("index")?, 1, None),
        IoEventKind::Read | IoEventKind::Mapped => {
            let (first, last) = (number("index")?, number("last_index")?);
            event(number("s_dev")?, number("i_ino")?, first, last.saturating_sub(first) + 1, None)
        }
        IoEventKind::Queued | IoEventKind::Issued | IoEventKind::Completed => {
            let flags = format.read_text("rwbs", record);
            event(number("dev")?, 0, number("sector")?, number("nr_sector")?, flags)
        }
        IoEventKind::Exec => event(0, 0, 0, 0, format.read_text("filename", record)),
        IoEventKind::Exit => event(0, 0, 0, 0, format.read_text("comm", record)),
    })
}

/// The thread that empties the buffers of all CPUs.
#[derive(Debug)]
struct TraceReader {
    done: Arc<AtomicBool>,
    thread: JoinHandle<(Vec<u8>, Nanos)>,
}

impl TraceReader {
    /// `most` bytes are kept, all where left out.
    pub(crate) fn start(instances: &[&TraceInstance], most: Option<usize>) -> Result<Self, IoTraceError> {
        let mut files = Vec::new();
        for instance in instances {
            let path = instance.path("per_cpu");
            let cpus = fs::read_dir(&path).map_err(|source| IoTraceError::from_tracefs(&path, source))?;
            for cpu in cpus.flatten() {
                let path = cpu.path().join("trace_pipe_raw");
                let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
                let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
                files.push(file.map_err(|source| IoTraceError::from_tracefs(&path, source))?);
            }
        }
        let done = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let done = Arc::clone(&done);
            move || drain_until_done(&done, files, most.unwrap_or(usize::MAX))
        });
        Ok(TraceReader { done, thread })
    }

    pub(crate) fn stop(self) -> Result<(Vec<u8>, Nanos), IoTraceError> {
        self.done.store(true, Ordering::Release);
        self.thread.join().map_err(|_| IoTraceError::Reader)
    }
}

/// Reads what there is, again and again; once more after the end was asked for.
fn drain_until_done(done: &AtomicBool, mut files: Vec<File>, most: usize) -> (Vec<u8>, Nanos) {
    let mut pages = Vec::new();
    loop {
        let last = done.load(Ordering::Acquire);
        files.iter_mut().for_each(|file| drain_file(file, &mut pages));
        pages.truncate(most);
        if last {
            return (pages, crate::overhead::thread_cpu_time());
        }
        std::thread::sleep(EVERY);
    }
}

fn drain_file(file: &mut File, pages: &mut Vec<u8>) {
    let mut page = [0; SUBBUFFER];
    while let Ok(length) = file.read(&mut page) {
        if length == 0 {
            return;
        }
        page.iter_mut().skip(length).for_each(|byte| *byte = 0);
        pages.extend_from_slice(&page);
    }
}

/// Raw bytes that are kept of a recording, enough for 300,000 ranges of files; what comes later is left out.
const MOST: usize = 16 << 20;

/// Buffers that wait for a process.
#[derive(Debug)]
pub struct ProcessIoTracer {
    pages: TraceInstance,
    decoder: IoRecordDecoder,
    missing: Vec<String>,
}

impl ProcessIoTracer {
    /// Makes buffers, which wait.
    ///
    /// # Errors
    /// Why nothing can be traced, with what to do.
    pub fn new() -> Result<Self, IoTraceError> {
        let tracefs = TraceFs::find()?;
        let (mut described, missing) = read_event_formats(&tracefs)?;
        described.retain(|(event, _)| event.name == PAGES);
        let pages = create_trace_instance(&tracefs, "follow", TraceInstanceRole::Pages, &described)?;
        pages.set("options/event-fork", "1")?;
        Ok(ProcessIoTracer { pages, decoder: IoRecordDecoder::new(described, None), missing })
    }

    /// Begins to record what this process brings, and those that it makes.
    ///
    /// # Errors
    /// A process that is gone.
    pub fn start(self, process: u32) -> Result<ProcessIoRecording, IoTraceError> {
        self.pages.set("set_event_pid", &process.to_string())?;
        let begun = crate::clock::monotonic_now();
        self.pages.set("tracing_on", "1")?;
        let reader = TraceReader::start(&[&self.pages], Some(MOST))?;
        let summary =
            IoTraceSummary { begun, missing: self.missing, tree: true, ..IoTraceSummary::default() };
        Ok(ProcessIoRecording { pages: self.pages, decoder: self.decoder, reader, summary })
    }
}

/// A recording that goes on.
#[derive(Debug)]
pub struct ProcessIoRecording {
    pages: TraceInstance,
    decoder: IoRecordDecoder,
    reader: TraceReader,
    summary: IoTraceSummary,
}

impl ProcessIoRecording {
    /// Waits until every process that was followed has ended, or `most` is over, or `given_up` says so.
    pub fn wait_for_exit(&self, most: Duration, given_up: impl Fn() -> bool) {
        const GLANCE: Duration = Duration::from_millis(50);
        let begun = std::time::Instant::now();
        let lives = || self.pages.read("set_event_pid").is_ok_and(|pids| !pids.trim().is_empty());
        while begun.elapsed() < most && !given_up() && lives() {
            std::thread::sleep(GLANCE);
        }
    }

    /// Ends it, and returns what was seen. Files are not looked up yet: see [`identify`](crate::io::file_lookup::resolve_files).
    ///
    /// # Errors
    /// A reader that died.
    pub fn stop(mut self) -> Result<IoRecording, IoTraceError> {
        self.pages.set("tracing_on", "0")?;
        self.summary.ended = crate::clock::monotonic_now();
        let (pages, cost) = self.reader.stop()?;
        self.summary.cost = cost;
        self.summary.lost = self.pages.lost_events();
        Ok(IoRecording {
            events: self.decoder.decode_pages(&pages),
            files: Vec::new(),
            summary: self.summary,
        })
    }
}
