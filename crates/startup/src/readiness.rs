//! What ends a startup, parsed from text and watched for, windows too.
//!
//! Each condition has a thread that reports when it saw it; the end of the process is always watched, too, so that
//! nobody waits for one that died. Under X11 the condition is the first top-level window that is large enough and
//! was mapped, or grew so large, after the watch began, seen over a connection of its own. Titles are not looked
//! at, as programs set them later; splash screens and menus do not count.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read};
use std::net::TcpStream;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::str::FromStr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use perflab_model::error_class::{Classify, ErrorClass};
use perflab_model::{Nanos, describe_error_chain};
use perflab_observe::own_directories;
use perflab_settings::TemporaryFolder;
use rustix::fs::inotify;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use x11rb::connection::Connection as _;
use x11rb::errors::{ReplyError, ReplyOrIdError};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, MapState, WindowClass,
};
use x11rb::rust_connection::RustConnection;

/// When a program counts as started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadinessCondition {
    /// it has ended, well
    Exit,
    /// it has printed a line that holds this text; any line where it is empty
    Line(String),
    /// this file is there, or was written anew
    File(PathBuf),
    /// it has said READY=1 as sd_notify does
    Notify,
    /// something accepts connections there: a port of this machine
    Port(u16),
    /// the same: a socket's path
    Socket(PathBuf),
    /// it has a window under X11
    Window(WindowCondition),
}

impl ReadinessCondition {
    /// Whether it can be watched for here.
    ///
    /// # Errors
    /// An X server that does not answer, a folder that is not there.
    pub fn check(&self) -> Result<(), StartupError> {
        ReadinessWatch::prepare(self).map(drop)
    }
}

/// What is not an end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` does not say when a program counts as started; exit, line, line:TEXT, file:PATH, notify, listen:PORT, \
     listen:PATH, window, window:WxH or window:CLASS do"
)]
pub struct ReadinessConditionError(String);

impl Classify for ReadinessConditionError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Usage
    }
}

impl FromStr for ReadinessCondition {
    type Err = ReadinessConditionError;

    fn from_str(text: &str) -> Result<Self, ReadinessConditionError> {
        let wrong = || ReadinessConditionError(text.into());
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        match (word, rest) {
            ("exit", None) => Ok(ReadinessCondition::Exit),
            ("notify", None) => Ok(ReadinessCondition::Notify),
            ("line", rest) => Ok(ReadinessCondition::Line(rest.unwrap_or_default().into())),
            ("file", Some(path)) if !path.is_empty() => Ok(ReadinessCondition::File(path.into())),
            ("window", None) => Ok(ReadinessCondition::Window(WindowCondition::default())),
            ("window", Some(text)) => {
                WindowCondition::parse(text).map(ReadinessCondition::Window).ok_or_else(wrong)
            }
            ("listen", Some(path)) if path.starts_with('/') => Ok(ReadinessCondition::Socket(path.into())),
            ("listen", Some(port)) => port.parse().map(ReadinessCondition::Port).map_err(|_| wrong()),
            _ => Err(wrong()),
        }
    }
}

impl ReadinessCondition {
    /// As it is written behind `--ready-when`.
    #[must_use]
    pub fn to_option_text(&self) -> String {
        match self {
            ReadinessCondition::Exit => "exit".into(),
            ReadinessCondition::Line(text) if text.is_empty() => "line".into(),
            ReadinessCondition::Line(text) => format!("line:{text}"),
            ReadinessCondition::File(path) => format!("file:{}", path.display()),
            ReadinessCondition::Notify => "notify".into(),
            ReadinessCondition::Port(port) => format!("listen:{port}"),
            ReadinessCondition::Socket(path) => format!("listen:{}", path.display()),
            ReadinessCondition::Window(window) => window.to_option_text(),
        }
    }
}

impl fmt::Display for ReadinessCondition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadinessCondition::Exit => write!(to, "its end"),
            ReadinessCondition::Line(text) if text.is_empty() => write!(to, "a line"),
            ReadinessCondition::Line(text) => write!(to, "a line with `{text}`"),
            ReadinessCondition::File(path) => write!(to, "the file {}", path.display()),
            ReadinessCondition::Notify => write!(to, "READY=1"),
            ReadinessCondition::Port(port) => write!(to, "a connection to port {port}"),
            ReadinessCondition::Socket(path) => write!(to, "a connection to {}", path.display()),
            ReadinessCondition::Window(window) => write!(to, "{window}"),
        }
    }
}

/// How often something is tried that has no notification.
const TRY: Duration = Duration::from_millis(1);

/// As much of the output as is kept.
const KEPT: usize = 64 << 10;

/// How long a pipe may stay open behind a process that has ended: what it inherited may still write there.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// A signal, and when it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadinessSignal {
    Wanted,
    Exit,
    /// a pipe of its was closed: nothing more will come there
    Silence,
}

/// What was seen first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadinessOutcome {
    pub(crate) at: Nanos,
    signal: Option<ReadinessSignal>,
}

impl ReadinessOutcome {
    /// Why it does not count as started.
    pub(crate) fn failure(
        self,
        condition: &ReadinessCondition,
        limit: Nanos,
        child: &mut Child,
    ) -> Option<String> {
        match (self.signal, condition) {
            (Some(ReadinessSignal::Wanted), _) => None,
            (Some(_), ReadinessCondition::Exit) => {
                let status = child.wait().ok()?;
                (!status.success()).then(|| format!("it ended with {status}"))
            }
            (Some(_), _) => {
                let status = child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
                Some(format!("it ended with {status} before {condition}"))
            }
            (None, _) => Some(format!("{condition} did not come within {limit}")),
        }
    }
}

/// What is watched.
pub(crate) struct ReadinessWatch {
    condition: ReadinessCondition,
    tell: Sender<(ReadinessSignal, Nanos)>,
    signals: Receiver<(ReadinessSignal, Nanos)>,
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
    pub(crate) fn prepare(condition: &ReadinessCondition) -> Result<Self, StartupError> {
        let failed = || StartupError::watch_error("cannot make a socket for sd_notify");
        let boot_id = perflab_observe::read_boot_id(&perflab_observe::Root::host());
        let made = || TemporaryFolder::create(&own_directories::state_directory(), &boot_id);
        let folder = matches!(condition, ReadinessCondition::Notify).then(made).transpose();
        let folder = folder.map_err(|error| failed()(io::Error::other(describe_error_chain(&error))))?;
        let notify = folder.as_ref().map(|folder| UnixDatagram::bind(folder.path().join("notify")));
        let notify = notify.transpose().map_err(failed())?;
        let (mut inotify, mut windows) = (None, None);
        match condition {
            ReadinessCondition::File(path) => {
                let what = format!("cannot watch the folder of {}", path.display());
                inotify = Some(watch_folder(path).map_err(StartupError::watch_error(&what))?);
            }
            ReadinessCondition::Window(window) => windows = Some(WindowWatch::listen(window)?),
            _ => {}
        }
        let (tell, signals) = channel();
        let (condition, output) = (condition.clone(), Arc::default());
        Ok(ReadinessWatch { condition, tell, signals, folder, notify, inotify, windows, output, open: 0 })
    }

    /// What the process is to find in its environment.
    pub(crate) fn environment_variable(&self) -> Option<(&'static str, PathBuf)> {
        self.folder.as_ref().map(|folder| ("NOTIFY_SOCKET", folder.path().join("notify")))
    }

    /// Watches a process that has just been started.
    pub(crate) fn watch_process(&mut self, child: &mut Child) {
        let pid = Pid::from_child(child);
        self.spawn_watcher(move |tell| {
            let ended = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            if ended.is_ok() {
                tell(ReadinessSignal::Exit);
            }
        });
        let expected = match &self.condition {
            ReadinessCondition::Line(text) => Some(text.clone()),
            _ => None,
        };
        if let Some(stdout) = child.stdout.take() {
            self.read_output(stdout, expected);
        }
        if let Some(stderr) = child.stderr.take() {
            self.read_output(stderr, None);
        }
        self.begin_condition();
    }

    fn begin_condition(&mut self) {
        match self.condition.clone() {
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

    /// The first signal that decides, or none in `limit`.
    pub(crate) fn wait(&mut self, limit: Nanos) -> ReadinessOutcome {
        let end = perflab_observe::monotonic_now().0.saturating_add(limit.0);
        loop {
            let left = Duration::from_nanos(end.saturating_sub(perflab_observe::monotonic_now().0));
            match self.signals.recv_timeout(left) {
                Ok((ReadinessSignal::Silence, _)) => self.open -= 1,
                // A line may have been written right before the end, and be read right after it.
                Ok((ReadinessSignal::Exit, at)) if matches!(self.condition, ReadinessCondition::Line(_)) => {
                    return self.outcome_after_exit(at);
                }
                Ok((signal, at)) => return ReadinessOutcome { at, signal: Some(signal) },
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return ReadinessOutcome { at: perflab_observe::monotonic_now(), signal: None };
                }
            }
        }
    }

    fn outcome_after_exit(&mut self, exit: Nanos) -> ReadinessOutcome {
        let expected = self
            .wait_for_output_end()
            .map(|at| ReadinessOutcome { at, signal: Some(ReadinessSignal::Wanted) });
        expected.unwrap_or(ReadinessOutcome { at: exit, signal: Some(ReadinessSignal::Exit) })
    }

    /// Waits until everything is read that an ended process has printed; when the signal came after all.
    fn wait_for_output_end(&mut self) -> Option<Nanos> {
        while self.open > 0 {
            match self.signals.recv_timeout(LAST_WORDS).ok()? {
                (ReadinessSignal::Wanted, at) => return Some(at),
                (ReadinessSignal::Silence, _) => self.open -= 1,
                (ReadinessSignal::Exit, _) => {}
            }
        }
        None
    }

    /// What it printed, all of it if it has ended.
    pub(crate) fn output(mut self) -> String {
        self.wait_for_output_end();
        self.output.lock().map_or_else(|_| String::new(), |output| output.clone())
    }

    fn spawn_watcher(&self, watch: impl FnOnce(&dyn Fn(ReadinessSignal)) + Send + 'static) {
        let to = self.tell.clone();
        // A thread whose signal is not waited for any more ends with the process, or with perflab.
        std::thread::spawn(move || {
            watch(&|signal| {
                // The wait is over: it has started, or has not.
                let _ = to.send((signal, perflab_observe::monotonic_now()));
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

    fn read_output(&mut self, from: impl Read + Send + 'static, expected: Option<String>) {
        self.open += 1;
        let output = Arc::clone(&self.output);
        self.spawn_watcher(move |tell| {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if expected.as_ref().is_some_and(|expected| line.contains(expected)) {
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

/// Pixels of a window that is neither a dialogue's button nor a splash screen, where nothing else is requested.
const USUAL: (u16, u16) = (300, 200);

/// Which window is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowCondition {
    /// pixels across at least
    pub width: u16,
    /// pixels down at least
    pub height: u16,
    /// its class, or the name of its instance (default: any; `xprop WM_CLASS` prints both)
    pub class: Option<String>,
}

impl Default for WindowCondition {
    fn default() -> Self {
        WindowCondition { width: USUAL.0, height: USUAL.1, class: None }
    }
}

impl WindowCondition {
    /// From `640x480`, or from a class.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let size = text
            .split_once('x')
            .and_then(|(width, height)| Some((width.parse::<u16>().ok()?, height.parse::<u16>().ok()?)));
        match size {
            Some((width, height)) => Some(WindowCondition { width, height, class: None }),
            None if text.is_empty() => None,
            None => Some(WindowCondition { class: Some(text.into()), ..WindowCondition::default() }),
        }
    }

    fn to_option_text(&self) -> String {
        match &self.class {
            Some(class) => format!("window:{class}"),
            None if *self == WindowCondition::default() => "window".into(),
            None => format!("window:{}x{}", self.width, self.height),
        }
    }
}

impl fmt::Display for WindowCondition {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "a window of at least {}x{} pixels", self.width, self.height)?;
        self.class.as_ref().map_or(Ok(()), |class| write!(to, " and of class {class}"))
    }
}

/// A connection that hears of every top-level window.
struct WindowWatch {
    connection: RustConnection,
    expected: WindowCondition,
    kind: Atom,
    splash: Atom,
}

impl WindowWatch {
    /// Listens, from now on, to the server that DISPLAY names.
    pub(crate) fn listen(expected: &WindowCondition) -> Result<Self, StartupError> {
        let display = std::env::var("DISPLAY").unwrap_or_default();
        let refused = |reason: String| StartupError::Display { display: display.clone(), reason };
        let (connection, _) = x11rb::connect(None).map_err(|error| refused(error.to_string()))?;
        let (kind, splash) = subscribe_windows(&connection).map_err(|error| refused(error.to_string()))?;
        Ok(WindowWatch { connection, expected: expected.clone(), kind, splash })
    }

    /// Waits until it is there; `false` where the server went away before.
    fn wait_for_window(&self) -> bool {
        while let Ok(event) = self.connection.wait_for_event() {
            let window = match event {
                Event::MapNotify(mapped) => mapped.window,
                Event::ConfigureNotify(configured) => configured.window,
                _ => continue,
            };
            // A window that is gone again was not a startup.
            if self.is_wanted(window).unwrap_or(false) {
                return true;
            }
        }
        false
    }

    fn is_wanted(&self, window: u32) -> Result<bool, ReplyError> {
        let (attributes, size) =
            (self.connection.get_window_attributes(window)?, self.connection.get_geometry(window)?);
        let kind = self.connection.get_property(false, window, self.kind, AtomEnum::ATOM, 0, 32)?.reply()?;
        let (attributes, size) = (attributes.reply()?, size.reply()?);
        let is_shown = attributes.map_state == MapState::VIEWABLE
            && attributes.class == WindowClass::INPUT_OUTPUT
            && !attributes.override_redirect;
        let is_splash = kind.value32().is_some_and(|mut kinds| kinds.any(|kind| kind == self.splash));
        let is_large = size.width >= self.expected.width && size.height >= self.expected.height;
        Ok(is_shown && is_large && !is_splash && self.has_class(window)?)
    }

    /// Whether the window, or the one that a window manager's frame holds, has the requested class.
    fn has_class(&self, window: u32) -> Result<bool, ReplyError> {
        let Some(expected) = &self.expected.class else { return Ok(true) };
        let inner = self.connection.query_tree(window)?.reply()?.children;
        for window in std::iter::once(window).chain(inner) {
            let asked =
                self.connection.get_property(false, window, AtomEnum::WM_CLASS, AtomEnum::STRING, 0, 256)?;
            let names = asked.reply()?.value;
            if names.split(|byte| *byte == 0).any(|name| name == expected.as_bytes()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Asks for events of windows on every screen; returns the atoms by which a splash screen is known.
fn subscribe_windows(connection: &RustConnection) -> Result<(Atom, Atom), ReplyOrIdError> {
    let listen = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
    for screen in &connection.setup().roots {
        connection.change_window_attributes(screen.root, &listen)?.check()?;
    }
    let atom = |name: &[u8]| Ok::<_, ReplyOrIdError>(connection.intern_atom(false, name)?.reply()?.atom);
    Ok((atom(b"_NET_WM_WINDOW_TYPE")?, atom(b"_NET_WM_WINDOW_TYPE_SPLASH")?))
}

/// Why a startup cannot be measured at all; a program that never starts is not an error, but a result.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// There is no window to be waited for.
    #[error(
        "no window can be waited for: the X server `{display}` that DISPLAY names does not answer ({reason}); start one \
         (`Xvfb :7 &`) and name it (`DISPLAY=:7`)"
    )]
    Display {
        /// what DISPLAY says
        display: String,
        /// what went wrong
        reason: String,
    },
    /// The command cannot be started.
    #[error("cannot start {program}: {source}")]
    Command {
        /// its first word
        program: String,
        /// the system's error
        source: io::Error,
    },
    /// The signal of a startup cannot be watched for, or the process not be ended.
    #[error("{what}: {source}")]
    Watch {
        /// what was tried
        what: String,
        /// the system's error
        source: io::Error,
    },
}

impl Classify for StartupError {
    fn class(&self) -> ErrorClass {
        match self {
            StartupError::Display { .. } | StartupError::Watch { .. } => ErrorClass::Environment,
            StartupError::Command { .. } => ErrorClass::Usage,
        }
    }
}

impl StartupError {
    pub(crate) fn watch_error(what: &str) -> impl FnOnce(io::Error) -> Self {
        move |source| StartupError::Watch { what: what.into(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_read_and_others_refused() {
        let read = |text: &str| text.parse::<ReadinessCondition>();
        assert_eq!(read("exit"), Ok(ReadinessCondition::Exit));
        assert_eq!(read("line"), Ok(ReadinessCondition::Line(String::new())));
        assert_eq!(read("line:ready: 1"), Ok(ReadinessCondition::Line("ready: 1".into())));
        assert_eq!(read("file:/tmp/x"), Ok(ReadinessCondition::File("/tmp/x".into())));
        assert_eq!(read("listen:80"), Ok(ReadinessCondition::Port(80)));
        assert_eq!(read("listen:/run/s"), Ok(ReadinessCondition::Socket("/run/s".into())));
        assert_eq!(read("window"), Ok(ReadinessCondition::Window(WindowCondition::default())));
        let large = WindowCondition { width: 640, height: 480, class: None };
        assert_eq!(read("window:640x480"), Ok(ReadinessCondition::Window(large)));
        let xterm = WindowCondition { class: Some("xterm".into()), ..WindowCondition::default() };
        assert_eq!(read("window:xterm"), Ok(ReadinessCondition::Window(xterm.clone())));
        assert_eq!(xterm.to_string(), "a window of at least 300x200 pixels and of class xterm");
        let all =
            ["exit", "line", "line:a b", "file:/a", "notify", "listen:1", "listen:/s", "window", "window:x"];
        for text in all.into_iter().chain(["window:640x480"]) {
            assert_eq!(read(text).unwrap().to_option_text(), text);
        }
        for wrong in ["", "file", "file:", "listen:x", "listen:99999", "exit:1", "window:", "screen"] {
            assert_eq!(read(wrong), Err(ReadinessConditionError(wrong.into())));
        }
    }
}
