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

use super::window::WindowWatch;
use super::{ReadinessCondition, StartupError};
use crate::leftovers::TemporaryFolder;

/// How often something is tried that nobody tells of.
const TRY: Duration = Duration::from_millis(1);
/// As much of the output as is kept.
const KEPT: usize = 64 << 10;
/// How long a pipe may stay open behind a process that has ended: what it inherited may still write there.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A sign, and when it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadinessSignal {
    Wanted,
    Exit,
    /// a pipe of its was closed: nothing more will be said there
    Silence,
}

/// What was seen first.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadinessOutcome {
    pub(super) at: Nanos,
    sign: Option<ReadinessSignal>,
}

impl ReadinessOutcome {
    /// Why it does not count as started.
    pub(super) fn failure(
        self,
        until: &ReadinessCondition,
        limit: Nanos,
        child: &mut Child,
    ) -> Option<String> {
        match (self.sign, until) {
            (Some(ReadinessSignal::Wanted), _) => None,
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
pub(super) struct ReadinessWatch {
    until: ReadinessCondition,
    tell: Sender<(ReadinessSignal, Nanos)>,
    signs: Receiver<(ReadinessSignal, Nanos)>,
    folder: Option<TemporaryFolder>,
    notify: Option<UnixDatagram>,
    inotify: Option<rustix::fd::OwnedFd>,
    windows: Option<WindowWatch>,
    output: Arc<Mutex<String>>,
    /// pipes of the process that are still read
    open: usize,
}

impl ReadinessWatch {
    /// Everything that must be there before the process is.
    pub(super) fn prepare(until: &ReadinessCondition) -> Result<Self, StartupError> {
        let failed = || StartupError::watch_error("cannot make a socket for sd_notify");
        let boot_id = perflab_observe::read_boot_id(&perflab_observe::Root::host());
        let made = || TemporaryFolder::create(&own_directories::state_directory(), &boot_id);
        let folder = matches!(until, ReadinessCondition::Notify).then(made).transpose();
        let folder = folder.map_err(|error| failed()(io::Error::other(error.with_causes())))?;
        let notify = folder.as_ref().map(|folder| UnixDatagram::bind(folder.path().join("notify")));
        let notify = notify.transpose().map_err(failed())?;
        let (mut inotify, mut windows) = (None, None);
        match until {
            ReadinessCondition::File(path) => {
                let what = format!("cannot watch the folder of {}", path.display());
                inotify = Some(watch_folder(path).map_err(StartupError::watch_error(&what))?);
            }
            ReadinessCondition::Window(window) => windows = Some(WindowWatch::listen(window)?),
            _ => {}
        }
        let (tell, signs) = channel();
        let (until, output) = (until.clone(), Arc::default());
        Ok(ReadinessWatch { until, tell, signs, folder, notify, inotify, windows, output, open: 0 })
    }

    /// What the process is to find in its environment.
    pub(super) fn environment_variable(&self) -> Option<(&'static str, PathBuf)> {
        self.folder.as_ref().map(|folder| ("NOTIFY_SOCKET", folder.path().join("notify")))
    }

    /// Watches a process that has just been started.
    pub(super) fn watch_process(&mut self, child: &mut Child) {
        let pid = Pid::from_child(child);
        self.spawn_watcher(move |tell| {
            let ended = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            if ended.is_ok() {
                tell(ReadinessSignal::Exit);
            }
        });
        let wanted = match &self.until {
            ReadinessCondition::Line(text) => Some(text.clone()),
            _ => None,
        };
        if let Some(stdout) = child.stdout.take() {
            self.read_output(stdout, wanted);
        }
        if let Some(stderr) = child.stderr.take() {
            self.read_output(stderr, None);
        }
        self.begin_condition();
    }

    fn begin_condition(&mut self) {
        match self.until.clone() {
            ReadinessCondition::Exit | ReadinessCondition::Line(_) => {}
            ReadinessCondition::File(path) => {
                let Some(inotify) = self.inotify.take() else { return };
                self.spawn_watcher(move |tell| {
                    if wait_for_file(&inotify, &path) {
                        tell(ReadinessSignal::Wanted);
                    }
                });
            }
            ReadinessCondition::Notify => {
                let Some(socket) = self.notify.take() else { return };
                self.spawn_watcher(move |tell| {
                    if wait_for_sd_notify(&socket) {
                        tell(ReadinessSignal::Wanted);
                    }
                });
            }
            ReadinessCondition::Window(_) => {
                let Some(windows) = self.windows.take() else { return };
                self.spawn_watcher(move |tell| {
                    if windows.wait_for_window() {
                        tell(ReadinessSignal::Wanted);
                    }
                });
            }
            ReadinessCondition::Port(port) => {
                self.poll_until(move || TcpStream::connect(("127.0.0.1", port)).is_ok())
            }
            ReadinessCondition::Socket(path) => self.poll_until(move || UnixStream::connect(&path).is_ok()),
        }
    }

    /// The first sign that decides, or none in `limit`.
    pub(super) fn wait(&mut self, limit: Nanos) -> ReadinessOutcome {
        let end = perflab_observe::monotonic_now().0.saturating_add(limit.0);
        loop {
            let left = Duration::from_nanos(end.saturating_sub(perflab_observe::monotonic_now().0));
            match self.signs.recv_timeout(left) {
                Ok((ReadinessSignal::Silence, _)) => self.open -= 1,
                // A line may have been written right before the end, and be read right after it.
                Ok((ReadinessSignal::Exit, at)) if matches!(self.until, ReadinessCondition::Line(_)) => {
                    return self.outcome_after_exit(at);
                }
                Ok((sign, at)) => return ReadinessOutcome { at, sign: Some(sign) },
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return ReadinessOutcome { at: perflab_observe::monotonic_now(), sign: None };
                }
            }
        }
    }

    fn outcome_after_exit(&mut self, exit: Nanos) -> ReadinessOutcome {
        let wanted =
            self.wait_for_output_end().map(|at| ReadinessOutcome { at, sign: Some(ReadinessSignal::Wanted) });
        wanted.unwrap_or(ReadinessOutcome { at: exit, sign: Some(ReadinessSignal::Exit) })
    }

    /// Waits until everything is read that an ended process has printed; when the sign came after all.
    fn wait_for_output_end(&mut self) -> Option<Nanos> {
        while self.open > 0 {
            match self.signs.recv_timeout(LAST_WORDS).ok()? {
                (ReadinessSignal::Wanted, at) => return Some(at),
                (ReadinessSignal::Silence, _) => self.open -= 1,
                (ReadinessSignal::Exit, _) => {}
            }
        }
        None
    }

    /// What it printed, all of it if it has ended.
    pub(super) fn output(mut self) -> String {
        self.wait_for_output_end();
        self.output.lock().map_or_else(|_| String::new(), |output| output.clone())
    }

    fn spawn_watcher(&self, watch: impl FnOnce(&dyn Fn(ReadinessSignal)) + Send + 'static) {
        let to = self.tell.clone();
        // A thread whose sign nobody waits for any more ends with the process, or with perflab.
        std::thread::spawn(move || {
            watch(&|sign| {
                // Nobody listens any more: it has started, or has not.
                let _ = to.send((sign, perflab_observe::monotonic_now()));
            });
        });
    }

    fn poll_until(&self, succeeds: impl Fn() -> bool + Send + 'static) {
        self.spawn_watcher(move |tell| {
            while !succeeds() {
                std::thread::sleep(TRY);
            }
            tell(ReadinessSignal::Wanted);
        });
    }

    fn read_output(&mut self, from: impl Read + Send + 'static, wanted: Option<String>) {
        self.open += 1;
        let output = Arc::clone(&self.output);
        self.spawn_watcher(move |tell| {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if wanted.as_ref().is_some_and(|wanted| line.contains(wanted)) {
                    tell(ReadinessSignal::Wanted);
                }
                if let Some(mut output) = output.lock().ok().filter(|output| output.len() < KEPT) {
                    output.push_str(&line);
                    output.push('\n');
                }
            }
            tell(ReadinessSignal::Silence);
        });
    }
}

/// The folder of a file, watched from before the process is started.
fn watch_folder(path: &Path) -> io::Result<rustix::fd::OwnedFd> {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let events =
        inotify::WatchFlags::CREATE | inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::CLOSE_WRITE;
    inotify::add_watch(&watch, folder, events)?;
    Ok(watch)
}

/// Waits until something of this name was made or written. What was there before does not count.
fn wait_for_file(watch: &rustix::fd::OwnedFd, path: &Path) -> bool {
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

fn wait_for_sd_notify(socket: &UnixDatagram) -> bool {
    let mut buffer = [0; 4096];
    loop {
        let Ok(length) = socket.recv(&mut buffer) else { return false };
        let text = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default()).into_owned();
        if text.lines().any(|line| line == "READY=1") {
            return true;
        }
    }
}
