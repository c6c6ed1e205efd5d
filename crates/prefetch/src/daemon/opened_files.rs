//! Which files a startup opened of those that were read ahead for it.
//!
//! The kernel reports every file that is opened on the file systems of such a startup while it is watched
//! (fanotify, `FAN_OPEN`); nobody waits for that, and nothing is reported before the exec goes on. By whom a file
//! is opened is not asked: what others use is in memory anyway.
//!
//! Where it is not certain that all was seen (messages were lost, or even the program's own file was not seen to be
//! opened, as below another mount), there is no result.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::fanotify::{EventFFlags, Fanotify, FanotifyEvent, InitFlags, MarkFlags, MaskFlags};

use crate::replay_plan::ReplayPlan;

/// After its watch was over, a startup that is not asked about is forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// What starts open.
#[derive(Debug)]
pub(crate) struct OpenedFiles {
    gate: Fanotify,
    observed: Mutex<ObservedStartups>,
}

#[derive(Debug, Default)]
struct ObservedStartups {
    starts: Vec<ObservedStartup>,
    serial: u64,
}

/// A startup that is seen to open files.
#[derive(Debug)]
struct ObservedStartup {
    number: u64,
    process: u32,
    until: Instant,
    /// Files that were asked for and not opened yet, by their numbers: two of different disks may have the same.
    unopened: HashMap<u64, Vec<RequestedFile>>,
    opened: Vec<RequestedFile>,
    /// Whether its own exec was seen: then what it opens is.
    is_seen: bool,
    has_lost: bool,
}

/// A file that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RequestedFile {
    path: String,
    pages: u64,
}

/// What a startup opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StartupFileUse {
    /// by path
    pub(crate) opened: BTreeSet<String>,
    /// by path
    pub(crate) unopened: BTreeSet<String>,
    /// pages that were asked for, of all of them
    pub(crate) asked: u64,
    /// of them, those of files that it opened
    pub(crate) used: u64,
}

impl OpenedFiles {
    /// Nothing is reported yet.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_CLOEXEC | InitFlags::FAN_NONBLOCK;
        // A lease is not waited for.
        let events = EventFFlags::O_RDONLY
            | EventFFlags::O_LARGEFILE
            | EventFFlags::O_CLOEXEC
            | EventFFlags::O_NONBLOCK
            | EventFFlags::O_NOATIME;
        Ok(OpenedFiles { gate: Fanotify::init(flags, events)?, observed: Mutex::default() })
    }

    /// A thread that panicked ends the daemon.
    fn lock_observed(&self) -> MutexGuard<'_, ObservedStartups> {
        self.observed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on what is opened of a plan is seen, for the process that is about to run `program`. Its number; none where the kernel does not
    /// tell.
    pub(crate) fn observe(
        &self,
        process: u32,
        program: &File,
        plan: &ReplayPlan<'_>,
        until: Instant,
    ) -> Option<u64> {
        let inherited = list_open_files(process);
        let mut start = ObservedStartup {
            number: 0,
            process,
            until,
            unopened: HashMap::new(),
            opened: Vec::new(),
            is_seen: false,
            has_lost: false,
        };
        let mut asked: HashMap<(u64, &str), u64> = HashMap::new();
        for step in &plan.steps {
            *asked.entry((step.file.inode, &step.file.path)).or_default() += step.pages.page_count();
        }
        for ((inode, path), pages) in asked {
            let file = RequestedFile { path: path.into(), pages };
            if inherited.contains(path) {
                start.opened.push(file);
            } else {
                start.unopened.entry(inode).or_default().push(file);
            }
        }
        let mut observed = self.lock_observed();
        observed.serial += 1;
        start.number = observed.serial;
        let number = start.number;
        observed.starts.push(start);
        let used: BTreeSet<usize> = plan.steps.iter().map(|step| step.file.system).collect();
        let systems = used.into_iter().filter_map(|at| plan.start.systems.get(at));
        let flags = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
        let mark =
            |place: Option<&Path>, at: BorrowedFd<'_>| self.gate.mark(flags, MaskFlags::FAN_OPEN, at, place);
        let marked = mark(None, program.as_fd()).is_ok()
            && systems
                .map(|system| Path::new(&system.place))
                .all(|place| mark(Some(place), rustix::fs::CWD).is_ok());
        if !marked {
            observed.starts.retain(|start| start.number != number);
            self.stop_if_unobserved(&observed);
            return None;
        }
        Some(number)
    }

    /// What a startup opened, which is seen no more; none where it is not certain.
    pub(crate) fn finish(&self, number: u64) -> Option<StartupFileUse> {
        self.read_events();
        let mut observed = self.lock_observed();
        let at = observed.starts.iter().position(|start| start.number == number)?;
        let start = observed.starts.swap_remove(at);
        self.stop_if_unobserved(&observed);
        (start.is_seen && !start.has_lost).then(|| start.into_file_use())
    }

    /// Whether any start is seen now.
    pub(crate) fn is_observing(&self) -> bool {
        !self.lock_observed().starts.is_empty()
    }

    /// Reads what the kernel has reported.
    pub(crate) fn read_events(&self) {
        let mut observed = self.lock_observed();
        let own = std::process::id();
        // The kernel's own bound of what waits is 16,384 by default: this ends.
        for _ in 0..1024 {
            let Ok(events) = self.gate.read_events() else { break };
            if events.is_empty() {
                break;
            }
            for event in events {
                observed.note_event(&event, own);
            }
        }
        let before = observed.starts.len();
        let now = Instant::now();
        observed.starts.retain(|start| start.until + FORGOTTEN > now);
        if observed.starts.len() != before {
            self.stop_if_unobserved(&observed);
        }
    }

    /// Where no startup is watched any more, no opened files are reported.
    fn stop_if_unobserved(&self, observed: &ObservedStartups) {
        if observed.starts.is_empty() {
            let flags = MarkFlags::FAN_MARK_FLUSH | MarkFlags::FAN_MARK_FILESYSTEM;
            let _ = self.gate.mark(flags, MaskFlags::empty(), rustix::fs::CWD, None::<&Path>);
        }
    }
}

impl AsFd for OpenedFiles {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.gate.as_fd()
    }
}

impl ObservedStartups {
    fn note_event(&mut self, event: &FanotifyEvent, own: u32) {
        if event.mask().contains(MaskFlags::FAN_Q_OVERFLOW) {
            self.starts.iter_mut().for_each(|start| start.has_lost = true);
            return;
        }
        let process = event.pid().unsigned_abs();
        // The daemon opens them all, to read them ahead.
        if process == own {
            return;
        }
        let inode = event.fd().and_then(|file| rustix::fs::fstat(file).ok()).map(|about| about.st_ino);
        for start in &mut self.starts {
            start.is_seen |= start.process == process;
            let found = inode.and_then(|inode| start.unopened.remove(&inode));
            start.opened.extend(found.into_iter().flatten());
        }
    }
}

impl ObservedStartup {
    fn into_file_use(self) -> StartupFileUse {
        let pages = |files: &[RequestedFile]| files.iter().map(|file| file.pages).sum::<u64>();
        let unopened: Vec<RequestedFile> = self.unopened.into_values().flatten().collect();
        let used = pages(&self.opened);
        let asked = used + pages(&unopened);
        let paths = |files: Vec<RequestedFile>| files.into_iter().map(|file| file.path).collect();
        StartupFileUse { opened: paths(self.opened), unopened: paths(unopened), asked, used }
    }
}

/// Files that a process has open already, by name: it may read them without opening any. None is touched.
fn list_open_files(process: u32) -> BTreeSet<String> {
    let entries = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let paths = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    paths.filter_map(|path| path.into_os_string().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use perflab_model::io_trace::DeviceNumber;

    use super::*;
    use crate::startup_trace::{StartupTrace, TraceSource, TracedFile, TracedFileSystem};

    #[test]
    fn what_is_opened_of_a_plan_is_seen_and_the_rest_is_not() {
        let test = "what_is_opened_of_a_plan_is_seen_and_the_rest_is_not";
        let Some(opened) = OpenedFiles::open().ok().filter(|_| rustix::process::geteuid().is_root()) else {
            assert!(std::env::var_os("PERFLAB_REQUIRE_ALL").is_none());
            return eprintln!("SKIP {test}: it needs root");
        };
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            fs::write(&path, [7; 5000]).unwrap();
            TracedFile {
                system: 0,
                inode: std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).unwrap()),
                generation: None,
                size: 5000,
                changed: 0,
                path: path.to_str().unwrap().into(),
                pages: [(0, 2)].into_iter().collect(),
                turn: 0,
                place: None,
                marks: Vec::new(),
            }
        };
        let files = ["used", "unused", "inherited"].map(file).to_vec();
        let place = folder.path().to_str().unwrap().into();
        let system = TracedFileSystem {
            uuid: None,
            kind: String::new(),
            device: DeviceNumber(0),
            place,
            metadata: [].into_iter().collect(),
        };
        let start = StartupTrace { when: 0, source: TraceSource::Traced, systems: vec![system], files };
        let plan = crate::replay_plan::plan_replay(&start, crate::replay_plan::ReadOrder::Access, u64::MAX);
        // A shell that waits for a line stands in for the process whose exec is held.
        let path = |name: &str| folder.path().join(name).display().to_string();
        let script = format!("read line; exec cat {}", path("used"));
        let mut child = std::process::Command::new("sh")
            .args(["-c", &script])
            .stdin(std::process::Stdio::piped())
            .stdout(File::options().append(true).open(path("inherited")).unwrap())
            .spawn()
            .unwrap();
        let cat = File::open("/bin/cat").unwrap();
        let number = opened.observe(child.id(), &cat, &plan, Instant::now() + FORGOTTEN).unwrap();
        assert!(opened.is_observing());
        drop(fs::read(path("unused")).unwrap());
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        let found = opened.finish(number).unwrap();
        let set = |names: &[&str]| names.iter().map(|name| path(name)).collect::<BTreeSet<_>>();
        assert_eq!(found.opened, set(&["inherited", "used"]), "this process stands in for the daemon");
        assert_eq!((found.unopened, found.asked, found.used), (set(&["unused"]), 6, 4));
        assert!(!opened.is_observing());
        let unseen = opened.observe(std::process::id(), &cat, &plan, Instant::now()).unwrap();
        assert_eq!(opened.finish(unseen), None, "it ran nothing");
    }
}
