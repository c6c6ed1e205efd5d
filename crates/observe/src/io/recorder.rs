//! A recording of I/O, from start to stop: two trace instances, a thread that empties their buffers, and the records made
//! into events afterwards, so that nothing is interpreted while something is measured.
//!
//! Pages are traced in an instance that follows only the process tree of the calling thread; disk requests in one that
//! follows nobody, because the kernel often sends and always completes them in somebody else's name.

use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use perflab_model::Nanos;
use perflab_model::io::{Device, IoEvent, IoKind, IoRecording, IoTold};

use super::IoError;
use super::format::Format;
use super::ring;
use super::tracefs::{Instance, TraceFs};
use crate::words::u16_at;

/// Whose I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// of the processes that the calling thread starts from now on, and of theirs
    Children,
    /// everybody's
    All,
}

/// An event of the kernel, and what it becomes.
pub(super) struct Wanted {
    kind: IoKind,
    system: &'static str,
    pub(super) name: &'static str,
    /// since which kernel; what is not seen without
    since: &'static str,
    without: &'static str,
    role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Pages,
    Disks,
}

const fn wanted(
    kind: IoKind,
    (system, name): (&'static str, &'static str),
    since: &'static str,
    without: &'static str,
    role: Role,
) -> Wanted {
    Wanted { kind, system, name, since, without, role }
}

pub(super) const PAGES: &str = "mm_filemap_add_to_page_cache";
const NEEDED: &str = "which pages were needed, and which only read around them";
const EVENTS: [Wanted; 8] = [
    wanted(IoKind::Added, ("filemap", PAGES), "3.11", "everything", Role::Pages),
    wanted(IoKind::Fault, ("filemap", "mm_filemap_fault"), "6.12", NEEDED, Role::Pages),
    wanted(IoKind::Read, ("filemap", "mm_filemap_get_pages"), "6.12", NEEDED, Role::Pages),
    wanted(
        IoKind::Mapped,
        ("filemap", "mm_filemap_map_pages"),
        "6.12",
        "which pages were mapped along",
        Role::Pages,
    ),
    wanted(IoKind::Issued, ("block", "block_rq_issue"), "2.6.31", "disk requests", Role::Disks),
    wanted(IoKind::Completed, ("block", "block_rq_complete"), "2.6.31", "when disks answered", Role::Disks),
    wanted(IoKind::Exec, ("sched", "sched_process_exec"), "3.4", "which programs were started", Role::Pages),
    wanted(IoKind::Exit, ("sched", "sched_process_exit"), "2.6.31", "when processes ended", Role::Pages),
];

/// Room for each CPU; emptied fifty times a second, that is for more than a million events a second.
const ROOM_KIB: u32 = 8192;
const EVERY: Duration = Duration::from_millis(20);
const SUBBUFFER: usize = 4096;

/// Whether I/O can be traced here.
///
/// # Errors
/// Why not, with what to do.
pub fn check() -> Result<(), IoError> {
    let tracefs = TraceFs::find()?;
    let (description, _) = describe(&tracefs)?;
    drop(description);
    tracefs.instance("check").map(drop)
}

pub(super) type Described = Vec<(&'static Wanted, Format)>;

/// The events that this kernel has, and a line for each that it has not.
pub(super) fn describe(tracefs: &TraceFs) -> Result<(Described, Vec<String>), IoError> {
    let (mut have, mut missing) = (Vec::new(), Vec::new());
    for event in &EVENTS {
        let path = tracefs.path(&format!("events/{}/{}/format", event.system, event.name));
        match fs::read_to_string(&path) {
            Ok(text) => have.push((event, Format::parse(&path.display().to_string(), &text)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && event.name == PAGES => {
                return Err(IoError::NoEvent { event: PAGES, since: event.since });
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => missing.push(format!(
                "{}:{} (Linux {}): {} cannot be seen",
                event.system, event.name, event.since, event.without
            )),
            Err(error) => return Err(IoError::tracing(&path, error)),
        }
    }
    Ok((have, missing))
}

/// A recording that goes on.
#[derive(Debug)]
pub struct IoTracer {
    pages: Instance,
    disks: Instance,
    reader: Reader,
    decoder: Decoder,
    told: IoTold,
}

/// From records to events.
#[derive(Debug)]
pub(super) struct Decoder {
    known: Vec<(u16, IoKind, Format)>,
    /// The tracing thread itself, whose own pages nobody asked for.
    own: Option<i32>,
}

impl IoTracer {
    /// Begins to trace. With [`Whose::Children`] the calling thread must be the one that starts the processes.
    ///
    /// # Errors
    /// Why not, with what to do.
    pub fn start(whose: Whose) -> Result<Self, IoError> {
        let tracefs = TraceFs::find()?;
        let (described, missing) = describe(&tracefs)?;
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let pages = instance(&tracefs, "pages", Role::Pages, &described)?;
        if whose == Whose::Children {
            // The option first: a child must not slip away between the two.
            pages.set("options/event-fork", "1")?;
            pages.set("set_event_pid", &own.to_string())?;
        }
        let disks = instance(&tracefs, "disks", Role::Disks, &described)?;
        let reader = Reader::start(&[&pages, &disks], None)?;
        let begun = crate::monotonic_now();
        for one in [&disks, &pages] {
            one.set("tracing_on", "1")?;
        }
        let tree = whose == Whose::Children;
        let decoder = Decoder::of(described, tree.then_some(own));
        let told = IoTold { begun, missing, tree, ..IoTold::default() };
        Ok(IoTracer { pages, disks, reader, decoder, told })
    }

    /// Ends tracing, and returns what was seen, in the order of time. Files are not looked up yet: see
    /// [`identify`](super::identify).
    ///
    /// # Errors
    /// A reader that died.
    pub fn stop(mut self) -> Result<IoRecording, IoError> {
        for one in [&self.pages, &self.disks] {
            one.set("tracing_on", "0")?;
        }
        self.told.ended = crate::monotonic_now();
        let (pages, cost) = self.reader.stop()?;
        self.told.cost = cost;
        self.told.lost = self.pages.lost() + self.disks.lost();
        Ok(IoRecording { events: self.decoder.events(&pages), files: Vec::new(), told: self.told })
    }
}

impl Decoder {
    pub(super) fn of(described: Described, own: Option<i32>) -> Self {
        let event = |(wanted, format): (&Wanted, Format)| (format.id, wanted.kind, format);
        Decoder { known: described.into_iter().map(event).collect(), own }
    }

    /// Everything that stands in pages of the buffers, in the order of time.
    pub(super) fn events(&self, pages: &[u8]) -> Vec<IoEvent> {
        let mut events = Vec::new();
        for page in pages.chunks(SUBBUFFER) {
            ring::records(page, |time, record| events.extend(self.event(time, record)));
        }
        events.sort_by_key(|event: &IoEvent| event.at);
        events
    }

    fn event(&self, time: u64, record: &[u8]) -> Option<IoEvent> {
        let id = u16_at(record, 0)?;
        let (_, kind, format) = self.known.iter().find(|(known, ..)| *known == id)?;
        let event = decode(*kind, format, time, record)?;
        let is_request = matches!(kind, IoKind::Issued | IoKind::Completed);
        (is_request || self.own != Some(event.pid)).then_some(event)
    }
}

pub(super) fn instance(
    tracefs: &TraceFs,
    name: &str,
    role: Role,
    described: &[(&'static Wanted, Format)],
) -> Result<Instance, IoError> {
    let instance = tracefs.instance(name)?;
    instance.set("tracing_on", "0")?;
    instance.set("trace_clock", "mono")?;
    instance.set("options/overwrite", "0")?;
    instance.set("buffer_size_kb", &ROOM_KIB.to_string())?;
    for (event, _) in described.iter().filter(|(event, _)| event.role == role) {
        instance.set(&format!("events/{}/{}/enable", event.system, event.name), "1")?;
    }
    Ok(instance)
}

fn decode(kind: IoKind, format: &Format, time: u64, record: &[u8]) -> Option<IoEvent> {
    let number = |name: &str| format.number(name, record);
    let pid = number("common_pid")? as u32 as i32;
    let event = |device: u64, inode, first, count, name| IoEvent {
        at: Nanos(time),
        pid,
        kind,
        device: Device(device as u32),
        inode,
        first,
        count,
        name,
    };
    Some(match kind {
        IoKind::Added => {
            let order = if format.has("order") { number("order")? } else { 0 };
            event(number("s_dev")?, number("i_ino")?, number("index")?, 1 << order.min(20), None)
        }
        IoKind::Fault => event(number("s_dev")?, number("i_ino")?, number("index")?, 1, None),
        IoKind::Read | IoKind::Mapped => {
            let (first, last) = (number("index")?, number("last_index")?);
            event(number("s_dev")?, number("i_ino")?, first, last.saturating_sub(first) + 1, None)
        }
        IoKind::Queued | IoKind::Issued | IoKind::Completed => {
            let flags = format.text("rwbs", record);
            event(number("dev")?, 0, number("sector")?, number("nr_sector")?, flags)
        }
        IoKind::Exec => event(0, 0, 0, 0, format.text("filename", record)),
        IoKind::Exit => event(0, 0, 0, 0, format.text("comm", record)),
    })
}

/// The thread that empties the buffers of all CPUs.
#[derive(Debug)]
pub(super) struct Reader {
    done: Arc<AtomicBool>,
    thread: JoinHandle<(Vec<u8>, Nanos)>,
}

impl Reader {
    /// `most` bytes are kept, all where left out.
    pub(super) fn start(instances: &[&Instance], most: Option<usize>) -> Result<Self, IoError> {
        let mut files = Vec::new();
        for instance in instances {
            let path = instance.path("per_cpu");
            let cpus = fs::read_dir(&path).map_err(|source| IoError::tracing(&path, source))?;
            for cpu in cpus.flatten() {
                let path = cpu.path().join("trace_pipe_raw");
                let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
                let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
                files.push(file.map_err(|source| IoError::tracing(&path, source))?);
            }
        }
        let done = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let done = Arc::clone(&done);
            move || read_until(&done, files, most.unwrap_or(usize::MAX))
        });
        Ok(Reader { done, thread })
    }

    pub(super) fn stop(self) -> Result<(Vec<u8>, Nanos), IoError> {
        self.done.store(true, Ordering::Release);
        self.thread.join().map_err(|_| IoError::Reader)
    }
}

/// Reads what there is, again and again; once more after the end was asked for.
fn read_until(done: &AtomicBool, mut files: Vec<File>, most: usize) -> (Vec<u8>, Nanos) {
    let mut pages = Vec::new();
    loop {
        let last = done.load(Ordering::Acquire);
        files.iter_mut().for_each(|file| read_all(file, &mut pages));
        pages.truncate(most);
        if last {
            return (pages, crate::usage::own_thread());
        }
        std::thread::sleep(EVERY);
    }
}

fn read_all(file: &mut File, pages: &mut Vec<u8>) {
    let mut page = [0; SUBBUFFER];
    while let Ok(length) = file.read(&mut page) {
        if length == 0 {
            return;
        }
        page.iter_mut().skip(length).for_each(|byte| *byte = 0);
        pages.extend_from_slice(&page);
    }
}
