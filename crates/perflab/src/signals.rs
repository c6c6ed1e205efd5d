//! Stop requests: ^C, a closed terminal, or a signal from whoever ends processes.
//!
//! The first one is noted by whoever works, and keeps data and puts settings back. A second one ends the process at
//! once, but not before settings are put back: the process becomes `perflab undo`. Two that come together (a bouncing
//! key, `timeout`, which signals its child and then its group) are one.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::{Handle, Signals};

/// Signals that come closer together are one wish.
const SAME_REQUEST_WINDOW: Duration = Duration::from_millis(250);

/// The archive of this process, in which it may be making a run.
static ARCHIVE: OnceLock<PathBuf> = OnceLock::new();

/// Who is notified of a stop request.
static STOP_FLAGS: Mutex<Vec<Weak<AtomicBool>>> = Mutex::new(Vec::new());

/// Has `stop` set by the first stop request. One that comes when nobody is left to be notified ends the process.
pub fn register_stop_signals(stop: &Arc<AtomicBool>) -> io::Result<()> {
    registered_stop_flags().push(Arc::downgrade(stop));
    end_with_settings_put_back()
}

/// Names the archive that is tidied up should a second wish end the process.
pub fn remember_archive(archive: &Path) {
    // There is one context in a process, and so one archive.
    let _ = ARCHIVE.set(archive.into());
}

/// From here on, a wish that nobody notes ends the process with its settings put back.
pub fn end_with_settings_put_back() -> io::Result<()> {
    static IS_LISTENING: OnceLock<()> = OnceLock::new();
    let mut requested = vec![SIGINT, SIGTERM];
    // `nohup` says that the end of the terminal is not ours.
    requested.extend([SIGHUP, SIGQUIT].into_iter().filter(|signal| !is_signal_ignored(*signal)));
    if IS_LISTENING.set(()).is_err() {
        return Ok(());
    }
    let mut signals = Signals::new(requested)?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut last = None;
        for signal in signals.forever() {
            on_stop_signal(signal, &mut last);
        }
    })?;
    Ok(())
}

/// Lets `work` hear of a wish to stop; whether there was one. A second one ends the process, and so does each one afterwards.
pub fn with_stop_signal<T>(work: impl FnOnce(&AtomicBool) -> T) -> io::Result<(T, bool)> {
    let stop = Arc::new(AtomicBool::new(false));
    register_stop_signals(&stop)?;
    let done = work(&stop);
    Ok((done, stop.swap(true, Ordering::SeqCst)))
}

fn registered_stop_flags() -> MutexGuard<'static, Vec<Weak<AtomicBool>>> {
    STOP_FLAGS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn on_stop_signal(signal: i32, last: &mut Option<Instant>) {
    let living: Vec<Arc<AtomicBool>> = registered_stop_flags().iter().filter_map(Weak::upgrade).collect();
    // Not `any`: all are notified.
    let news = living.iter().filter(|stop| !stop.swap(true, Ordering::SeqCst)).count() > 0;
    let is_echo = last.is_some_and(|last| last.elapsed() < SAME_REQUEST_WINDOW);
    if news {
        *last = Some(Instant::now());
    } else if !is_echo {
        exec_undo(signal);
    }
}

/// What becomes readable at the first wish that this process stops; such wishes do nothing else from then on.
pub fn open_stop_signals() -> io::Result<OwnedFd> {
    let (reading, writing) = UnixStream::pair()?;
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, writing.try_clone()?)?;
    }
    Ok(reading.into())
}

/// The signals by which somebody wishes that this process stops.
fn stop_signals() -> SigSet {
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM].into_iter().collect()
}

/// For what a signal has become: hears again, as wishes were held back until it could.
pub fn unblock_stop_signals() -> io::Result<()> {
    Ok(stop_signals().thread_unblock()?)
}

/// Who hears of SIGUSR1, until it is dropped.
pub struct UserSignalListener {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl UserSignalListener {
    /// Calls `heard` at each SIGUSR1, on a thread of its own.
    ///
    /// # Errors
    /// The handler cannot be set, or the thread not be started.
    pub fn start(mut heard: impl FnMut() + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new([SIGUSR1])?;
        let handle = signals.handle();
        let listen = move || signals.forever().for_each(|_| heard());
        let thread = std::thread::Builder::new().name("user-signal".into()).spawn(listen)?;
        Ok(UserSignalListener { handle, thread: Some(thread) })
    }
}

impl Drop for UserSignalListener {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What this process was doing ends; what it promised to put back is put back.
fn exec_undo(signal: i32) {
    // One more (a closed terminal sends several) would end the other program before it can listen. The mask goes with it.
    let _ = stop_signals().thread_block();
    let own = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    let archive = ARCHIVE.get().map(|archive| ("PERFLAB_ARCHIVE", archive));
    let refused =
        Command::new(own).args(["undo", "--after-signal", &signal.to_string()]).envs(archive).exec();
    let _ = stop_signals().thread_unblock();
    stderr_line!(
        "warning: settings stay changed until the next perflab puts them back: cannot start `perflab undo`: {refused}"
    );
    die_of_signal(signal);
}

/// Ends the process as the signal itself would have.
pub fn die_of_signal(signal: i32) {
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal);
}

fn is_signal_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    mask >> (signal - 1) & 1 == 1
}
