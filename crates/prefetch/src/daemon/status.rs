//! What the daemon tells about itself, as JSON over a socket that only its user can open.

use std::fs::{self, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use perflab_model::Nanos;
use serde::{Deserialize, Serialize};

use super::exec_guard::GuardStatus;
use super::program::ProgramRecord;
use super::programs::ProgramKey;
use super::settings::DaemonError;
use super::shared::{DaemonState, lock_mutex};
use super::worth::LearnThreshold;

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
    /// times that the kernel lost what it had to tell
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

/// A program as one user starts it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// which, and whose
    #[serde(flatten)]
    pub key: ProgramKey,
    /// what is known of it
    #[serde(flatten)]
    pub program: ProgramRecord,
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
/// Nobody listens, or may not be asked by this user.
pub fn read_status(socket: &Path) -> io::Result<DaemonStatus> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

pub(super) fn current_status(shared: &DaemonState) -> DaemonStatus {
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

/// Takes the daemon's socket. Who asks meanwhile waits until [`serve_status`] answers.
pub(super) fn claim_socket(path: &Path) -> Result<UnixListener, DaemonError> {
    if UnixStream::connect(path).is_ok() {
        return Err(DaemonError::Already(path.into()));
    }
    bind_socket(path).map_err(|source| DaemonError::Socket { path: path.into(), source })
}

/// Answers on a thread of its own: once everything that is told is there.
pub(super) fn serve_status(listener: UnixListener, shared: &Arc<DaemonState>) -> Result<(), DaemonError> {
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
