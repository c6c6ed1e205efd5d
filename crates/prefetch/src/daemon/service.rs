//! How the daemon begins, and its status over a socket.
//!
//! What is missing is found before anything is held, and the threads that answer are there before the kernel asks.
//! The status is JSON over a socket that only its user can open.

use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use perflab_model::Nanos;
use perflab_observe::Root;
use perflab_observe::taskstats::{TaskstatsSocket, is_delay_accounting_on};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

use crate::daemon::exec_gate::ExecGate;
use crate::daemon::exec_guard::{GuardStatus, lock_memory};
use crate::daemon::exec_loop;
use crate::daemon::housekeeper::{self, Housekeeper};
use crate::daemon::options::{DaemonError, DaemonOptions};
use crate::daemon::programs::{KnownPrograms, LearnThreshold, ProgramKey, ProgramRecord};
use crate::daemon::saved_programs::{ProgramStatus, read_programs_file};
use crate::daemon::shared_state::{DaemonLog, DaemonState, lock_mutex};

/// Watches, learns and reads ahead until `stop`.
///
/// # Errors
/// What is missing, with what to do about it. Nothing was held then.
pub fn run_daemon(settings: DaemonOptions, stop: &AtomicBool, say: DaemonLog) -> Result<(), DaemonError> {
    raise_file_limit();
    // What is swapped out answers late, and what the kernel was handing over then, nothing else can answer. A guard remains in any case.
    // Its threads become users: a limit would be theirs then, whatever the daemon may.
    if rustix::process::getrlimit(Resource::Memlock).current.is_none() {
        let _ = lock_memory();
    }
    perflab_observe::io::check_io_tracing()?;
    let named = !settings.lists.only.is_empty();
    let ends = match TaskstatsSocket::listen() {
        Ok(ends) => Some(ends),
        Err(error) if named => {
            say(&format!("{error}: programs that are listed with `only` are learnt at their first start"));
            None
        }
        Err(error) => return Err(error.into()),
    };
    let gate = ExecGate::open().map_err(|source| DaemonError::Door { source })?;
    let (send, watches) = channel();
    let before = read_programs_file(&settings.store, &say)
        .into_iter()
        .map(|known| (known.key, known.program))
        .collect();
    let programs = KnownPrograms::new(before, ends.is_some());
    let shared = Arc::new(DaemonState::new(settings, (gate, ends.is_some()), programs, send, say));
    let alive = TaskstatsSocket::open()?;
    let mut housekeeper = Housekeeper::new(Arc::clone(&shared), ends, alive, watches)?;
    housekeeper.reload_lists()?;
    shared.delays.store(is_delay_accounting_on(&Root::host()), Ordering::Relaxed);
    let socket = claim_socket(&shared.settings.socket)?;
    // Before anything is marked: no exec waits without a guard.
    housekeeper.start_guard()?;
    start_answering(&shared)?;
    housekeeper.watch_file_systems()?;
    serve_status(socket, &shared)?;
    housekeeper::notify_systemd("READY=1");
    let ended = housekeeper.run(stop);
    let _ = fs::remove_file(&shared.settings.socket);
    ended
}

/// The threads that answer must be there before anything is asked. A panic of any ends them all: the kernel lets everything
/// through then.
fn start_answering(shared: &Arc<DaemonState>) -> Result<(), DaemonError> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        hook(panic);
        std::process::abort();
    }));
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    let own = Arc::clone(shared);
    thread("clock")
        .spawn(move || own.deadline.run(|| own.signal_guard()))
        .map_err(DaemonError::system_error("start a thread"))?;
    let own = Arc::clone(shared);
    let asked = thread("asked").spawn(move || {
        let error = exec_loop::answer_execs(&own);
        own.log(&format!(
            "execs cannot be answered any more: {error}; the daemon ends, and nothing waits for it"
        ));
        std::process::abort();
    });
    asked.map(drop).map_err(DaemonError::system_error("start a thread"))
}

/// Every exec that waits is an open file, and every file that is read ahead another one.
fn raise_file_limit() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

/// How long who asks may take to listen.
const PATIENCE: Duration = Duration::from_secs(5);

/// Everything that can be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonStatus {
    /// the daemon
    pub pid: u32,
    /// since when, in seconds since 1970
    pub since: u64,
    /// by what starts are judged
    pub judged_by: String,
    /// whether that is the time that they waited
    pub delays: bool,
    /// mount points of the file systems that are watched
    pub watched: Vec<PathBuf>,
    /// files that were to be run, loaders and interpreters with them
    pub asked: u64,
    /// of them, those that went on without a look, in a storm
    pub unseen: u64,
    /// how long an exec may wait, in ns
    #[serde(default)]
    pub bound: Nanos,
    /// execs that went on before what they waited for was done
    pub overdue: u64,
    /// times that the kernel lost what it had to report
    pub lost: u64,
    /// CPU time of the daemon in ns
    pub cpu: u64,
    /// its largest memory so far, in bytes
    pub peak_rss: u64,
    /// who lets execs through while the daemon does not answer
    #[serde(default)]
    pub guard: GuardStatus,
    /// what does not work now
    pub troubles: Vec<String>,
    /// programs, by path and user
    pub programs: Vec<ProgramStatus>,
}

impl DaemonStatus {
    /// What is known of a program as a user starts it.
    pub fn program(&self, path: &Path, user: u32) -> Option<&ProgramRecord> {
        let is = |key: &ProgramKey| key.path == path && key.user == user;
        self.programs.iter().find(|one| is(&one.key)).map(|one| &one.program)
    }
}

/// Asks the daemon that listens there.
///
/// # Errors
/// There is no daemon, or this user may not ask it.
pub fn read_status(socket: &Path) -> io::Result<DaemonStatus> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn current_status(shared: &DaemonState) -> DaemonStatus {
    let known = |(key, program): (&ProgramKey, &ProgramRecord)| ProgramStatus {
        key: key.clone(),
        program: program.clone(),
    };
    let mut programs: Vec<ProgramStatus> = lock_mutex(&shared.programs).all().iter().map(known).collect();
    programs.sort_by(|one, other| one.key.cmp(&other.key));
    let own = perflab_observe::process_usage();
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    DaemonStatus {
        pid: std::process::id(),
        since: shared.begun,
        judged_by: LearnThreshold::measure_name(shared.has_delay_accounting()).into(),
        delays: shared.has_delay_accounting(),
        watched: lock_mutex(&shared.watched).clone(),
        asked: count(&shared.counts.asked),
        unseen: count(&shared.counts.unseen),
        bound: shared.settings.bound.into(),
        overdue: count(&shared.deadline.overdue),
        lost: count(&shared.counts.lost),
        cpu: own.cpu.0,
        peak_rss: own.peak_rss,
        guard: lock_mutex(&shared.guard).clone(),
        troubles: shared.troubles(),
        programs,
    }
}

/// Takes the daemon's socket. A client in the meantime waits until [`serve_status`] answers.
fn claim_socket(path: &Path) -> Result<UnixListener, DaemonError> {
    if UnixStream::connect(path).is_ok() {
        return Err(DaemonError::Already(path.into()));
    }
    bind_socket(path).map_err(|source| DaemonError::Socket { path: path.into(), source })
}

/// Answers on a thread of its own: once everything that is reported is there.
fn serve_status(listener: UnixListener, shared: &Arc<DaemonState>) -> Result<(), DaemonError> {
    let own = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("status".into());
    let thread =
        thread.spawn(move || listener.incoming().flatten().for_each(|asker| drop(write_status(&own, asker))));
    thread.map(drop).map_err(DaemonError::system_error("start a thread"))
}

fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        fs::create_dir_all(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Whoever came in before the socket was closed to others is asked for a name.
fn write_status(shared: &DaemonState, mut asker: UnixStream) -> io::Result<()> {
    if rustix::net::sockopt::socket_peercred(&asker)?.uid != rustix::process::geteuid() {
        return Ok(());
    }
    asker.set_write_timeout(Some(PATIENCE))?;
    asker.write_all(&serde_json::to_vec(&current_status(shared))?)
}
