//! Watching for the moment in which a program counts as started. Each sign has a thread that tells when it saw it; the end of
//! the process is always watched, too, so that one that dies is not waited for.

use std::io::{self, BufRead as _, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use perflab_model::Nanos;
use perflab_observe::own_directories;
use rustix::fs::inotify;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::window::Windows;
use super::{ReadinessCondition, StartError};
use crate::leftovers::TemporaryFolder;

/// How often something is tried that nobody tells of.
const TRY: Duration = Duration::from_millis(1);
/// As much of the output as is kept.
const KEPT: usize = 64 << 10;
/// How long a pipe may stay open behind a process that has ended: what it inherited may still write there.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A sign, and when it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Wanted,
    Exit,
    /// a pipe of its was closed: nothing more will be said there
    Silence,
}

/// What was seen first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) at: Nanos,
    sign: Option<Sign>,
}

impl Seen {
    /// Why it does not count as started.
    pub(super) fn failure(
        self,
        until: &ReadinessCondition,
        limit: Nanos,
        child: &mut Child,
    ) -> Option<String> {
        match (self.sign, until) {
            (Some(Sign::Wanted), _) => None,
            (Some(_), ReadinessCondition::Exit) => {
                let status = child.wait().ok()?;
                (!status.success()).then(|| format!("it ended with {status}"))
            }
            (Some(_), _) => {
                let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                Some(format!("it ended with {status} before {until}"))
            }
            (None, _) => Some(format!("{until} did not come within {limit}")),
        }
    }
}

/// What is watched.
pub(super) struct Watch {
    until: ReadinessCondition,
    tell: Sender<(Sign, Nanos)>,
    signs: Receiver<(Sign, Nanos)>,
    folder: Option<TemporaryFolder>,
    notify: Option<UnixDatagram>,
    inotify: Option<rustix::fd::OwnedFd>,
    windows: Option<Windows>,
    output: Arc<Mutex<String>>,
    /// pipes of the process that are still read
    open: usize,
}

impl Watch {
    /// Everything that must be there before the process is.
    pub(super) fn prepare(until: &ReadinessCondition) -> Result<Self, StartError> {
        let failed = || StartError::watch("cannot make a socket for sd_notify");
        let boot_id = perflab_observe::boot_id(&perflab_observe::Root::host());
        let made = || TemporaryFolder::make(&own_directories::state(), &boot_id);
        let folder = matches!(until, ReadinessCondition::Notify).then(made).transpose();
        let folder = folder.map_err(|error| failed()(io::Error::other(error.with_causes())))?;
        let notify = folder.as_ref().map(|folder| UnixDatagram::bind(folder.path().join("notify")));
        let notify = notify.transpose().map_err(failed())?;
        let (mut inotify, mut windows) = (None, None);
        match until {
            ReadinessCondition::File(path) => {
                let what = format!("cannot watch the folder of {}", path.display());
                inotify = Some(watched(path).map_err(StartError::watch(&what))?);
            }
            ReadinessCondition::Window(window) => windows = Some(Windows::listen(window)?),
            _ => {}
        }
        let (tell, signs) = channel();
        let (until, output) = (until.clone(), Arc::default());
        Ok(Watch { until, tell, signs, folder, notify, inotify, windows, output, open: 0 })
    }

    /// What the process is to find in its environment.
    pub(super) fn variables(&self) -> Option<(&'static str, PathBuf)> {
        self.folder.as_ref().map(|folder| ("NOTIFY_SOCKET", folder.path().join("notify")))
    }

    /// Watches a process that has just been started.
    pub(super) fn begin(&mut self, child: &mut Child) {
        let pid = Pid::from_child(child);
        self.tell(move |tell| {
            let ended = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            if ended.is_ok() {
                tell(Sign::Exit);
            }
        });
        let wanted = match &self.until {
            ReadinessCondition::Line(text) => Some(text.clone()),
            _ => None,
        };
        if let Some(stdout) = child.stdout.take() {
            self.read(stdout, wanted);
        }
        if let Some(stderr) = child.stderr.take() {
            self.read(stderr, None);
        }
        self.begin_sign();
    }

    fn begin_sign(&mut self) {
        match self.until.clone() {
            ReadinessCondition::Exit | ReadinessCondition::Line(_) => {}
            ReadinessCondition::File(path) => {
                let Some(inotify) = self.inotify.take() else { return };
                self.tell(move |tell| {
                    if appeared(&inotify, &path) {
                        tell(Sign::Wanted);
                    }
                });
            }
            ReadinessCondition::Notify => {
                let Some(socket) = self.notify.take() else { return };
                self.tell(move |tell| {
                    if said_ready(&socket) {
                        tell(Sign::Wanted);
                    }
                });
            }
            ReadinessCondition::Window(_) => {
                let Some(windows) = self.windows.take() else { return };
                self.tell(move |tell| {
                    if windows.appeared() {
                        tell(Sign::Wanted);
                    }
                });
            }
            ReadinessCondition::Port(port) => {
                self.attempt(move || TcpStream::connect(("127.0.0.1", port)).is_ok())
            }
            ReadinessCondition::Socket(path) => self.attempt(move || UnixStream::connect(&path).is_ok()),
        }
    }

    /// The first sign that decides, or none in `limit`.
    pub(super) fn wait(&mut self, limit: Nanos) -> Seen {
        let end = perflab_observe::monotonic_now().0.saturating_add(limit.0);
        loop {
            let left = Duration::from_nanos(end.saturating_sub(perflab_observe::monotonic_now().0));
            match self.signs.recv_timeout(left) {
                Ok((Sign::Silence, _)) => self.open -= 1,
                // A line may have been written right before the end, and be read right after it.
                Ok((Sign::Exit, at)) if matches!(self.until, ReadinessCondition::Line(_)) => {
                    return self.last_words(at);
                }
                Ok((sign, at)) => return Seen { at, sign: Some(sign) },
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Seen { at: perflab_observe::monotonic_now(), sign: None };
                }
            }
        }
    }

    fn last_words(&mut self, exit: Nanos) -> Seen {
        let wanted = self.until_silence().map(|at| Seen { at, sign: Some(Sign::Wanted) });
        wanted.unwrap_or(Seen { at: exit, sign: Some(Sign::Exit) })
    }

    /// Waits until everything is read that an ended process has printed; when the sign came after all.
    fn until_silence(&mut self) -> Option<Nanos> {
        while self.open > 0 {
            match self.signs.recv_timeout(LAST_WORDS).ok()? {
                (Sign::Wanted, at) => return Some(at),
                (Sign::Silence, _) => self.open -= 1,
                (Sign::Exit, _) => {}
            }
        }
        None
    }

    /// What it printed, all of it if it has ended.
    pub(super) fn output(mut self) -> String {
        self.until_silence();
        self.output.lock().map_or_else(|_| String::new(), |output| output.clone())
    }

    fn tell(&self, watch: impl FnOnce(&dyn Fn(Sign)) + Send + 'static) {
        let to = self.tell.clone();
        // A thread whose sign nobody waits for any more ends with the process, or with perflab.
        std::thread::spawn(move || {
            watch(&|sign| {
                // Nobody listens any more: it has started, or has not.
                let _ = to.send((sign, perflab_observe::monotonic_now()));
            });
        });
    }

    fn attempt(&self, succeeds: impl Fn() -> bool + Send + 'static) {
        self.tell(move |tell| {
            while !succeeds() {
                std::thread::sleep(TRY);
            }
            tell(Sign::Wanted);
        });
    }

    fn read(&mut self, from: impl Read + Send + 'static, wanted: Option<String>) {
        self.open += 1;
        let output = Arc::clone(&self.output);
        self.tell(move |tell| {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if wanted.as_ref().is_some_and(|wanted| line.contains(wanted)) {
                    tell(Sign::Wanted);
                }
                if let Some(mut output) = output.lock().ok().filter(|output| output.len() < KEPT) {
                    output.push_str(&line);
                    output.push('\n');
                }
            }
            tell(Sign::Silence);
        });
    }
}

/// The folder of a file, watched from before the process is started.
fn watched(path: &Path) -> io::Result<rustix::fd::OwnedFd> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let events =
        inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::CLOSE_WRITE;
    inotify::add_watch(&watch, folder, events)?;
    Ok(watch)
}

/// Waits until something of this name was made or written. What was there before does not count.
fn appeared(watch: &rustix::fd::OwnedFd, path: &Path) -> bool {
    let begun = SystemTime::now();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watch, &mut buffer);
    loop {
        match events.next() {
            Ok(event) => {
                let name = event.file_name().map(|name| name.to_bytes().to_vec());
                if name.as_deref() == path.file_name().map(|name| name.as_encoded_bytes()) {
                    return true;
                }
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return path.metadata().and_then(|found| found.modified()).is_ok_and(|at| at >= begun),
        }
    }
}

fn said_ready(socket: &UnixDatagram) -> bool {
    let mut buffer = [0; 4096];
    loop {
        let Ok(length) = socket.recv(&mut buffer) else { return false };
        let text = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned();
        if text.lines().any(|line| line == "READY=1") {
            return true;
        }
    }
}
