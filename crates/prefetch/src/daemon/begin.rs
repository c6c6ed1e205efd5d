//! A daemon's beginning: what is missing is found before anything is held, and who answers is there before anybody is asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use perflab_observe::Root;
use perflab_observe::taskstats::{TaskstatsSocket, is_delay_accounting_on};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

use super::door::ExecGate;
use super::exec_guard::lock_memory;
use super::keeper::{Housekeeper, PROGRAMS_FILE_NAME};
use super::program::ProgramRecord;
use super::programs::{KnownPrograms, ProgramKey};
use super::settings::{DaemonError, DaemonOptions};
use super::shared::{DaemonLog, DaemonState};
use super::status::ProgramStatus;
use super::{notify, receive, status};
use crate::TraceStore;

/// Watches, learns and reads ahead until `stop`.
///
/// # Errors
/// What is missing, with what to do about it. Nothing was held then.
pub fn run_daemon(settings: DaemonOptions, stop: &AtomicBool, say: DaemonLog) -> Result<(), DaemonError> {
    raise_file_limit();
    // What is swapped out answers late, and what the kernel was handing over then, nobody else can answer. A guard remains in any case.
    // Its threads become users: a limit would be theirs then, whatever the daemon may.
    if rustix::process::getrlimit(Resource::Memlock).current.is_none() {
        let _ = lock_memory();
    }
    perflab_observe::io::check_io_tracing()?;
    let named = !settings.lists.only.is_empty();
    let ends = match TaskstatsSocket::listen() {
        Ok(ends) => Some(ends),
        Err(error) if named => {
            say(&format!("{error}: what is named as wanted is learnt at its first start"));
            None
        }
        Err(error) => return Err(error.into()),
    };
    let door = ExecGate::open().map_err(|source| DaemonError::Door { source })?;
    let (send, watches) = channel();
    let before = read_programs_file(&settings.store, &say)
        .into_iter()
        .map(|known| (known.key, known.program))
        .collect();
    let programs = KnownPrograms::new(before, ends.is_some());
    let shared = Arc::new(DaemonState::new(settings, (door, ends.is_some()), programs, send, say));
    let alive = TaskstatsSocket::open()?;
    let mut keeper = Housekeeper::new(Arc::clone(&shared), ends, alive, watches)?;
    keeper.reload_lists()?;
    shared.delays.store(is_delay_accounting_on(&Root::host()), Ordering::Relaxed);
    let socket = status::claim_socket(&shared.settings.socket)?;
    // Before anything is marked: there is nobody who waits without a guard.
    keeper.start_guard()?;
    start_answering(&shared)?;
    keeper.watch_file_systems()?;
    status::serve_status(socket, &shared)?;
    notify::notify_systemd("READY=1");
    let ended = keeper.run(stop);
    let _ = fs::remove_file(&shared.settings.socket);
    ended
}

/// The threads that answer must be there before anything is asked. A panic of any ends them all: the kernel lets everything
/// through then.
fn start_answering(shared: &Arc<DaemonState>) -> Result<(), DaemonError> {
    let said = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        said(panic);
        std::process::abort();
    }));
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    let own = Arc::clone(shared);
    thread("clock")
        .spawn(move || own.deadline.run(|| own.signal_guard()))
        .map_err(DaemonError::system_error("start a thread"))?;
    let own = Arc::clone(shared);
    let asked = thread("asked").spawn(move || {
        let error = receive::answer_execs(&own);
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

/// What a daemon writes of programs, and reads when it begins.
#[derive(Debug, Deserialize)]
struct SavedPrograms {
    programs: Vec<ProgramStatus>,
}

/// The same of what is in memory.
#[derive(Debug, Serialize)]
struct ProgramsToSave<'a> {
    programs: Vec<ProgramToSave<'a>>,
}

#[derive(Debug, Serialize)]
struct ProgramToSave<'a> {
    #[serde(flatten)]
    key: &'a ProgramKey,
    #[serde(flatten)]
    program: &'a ProgramRecord,
}

pub(super) fn format_saved_programs(programs: &KnownPrograms) -> serde_json::Result<Vec<u8>> {
    let programs = programs.all().iter().map(|(key, program)| ProgramToSave { key, program }).collect();
    serde_json::to_vec(&ProgramsToSave { programs })
}

/// What the last daemon knew of programs; nothing where it is damaged, because traces lie elsewhere and are found again. `say` hears
/// where it is of a daemon that did not tell users apart: then whose starts taught what is not known, and all begin anew.
pub fn read_programs_file(store: &TraceStore, say: &dyn Fn(&str)) -> Vec<ProgramStatus> {
    let path = store.folder().join(PROGRAMS_FILE_NAME);
    let Ok(text) = fs::read(&path) else { return Vec::new() };
    match serde_json::from_slice::<SavedPrograms>(&text) {
        Ok(saved) => saved.programs,
        Err(_) => {
            let of_nobody =
                serde_json::from_slice::<BTreeMap<PathBuf, ProgramRecord>>(&text).unwrap_or_default();
            if !of_nobody.is_empty() {
                say(&format!(
                    "{} tells of {} programs, and not whose starts they were: each user's begin anew",
                    path.display(),
                    of_nobody.len()
                ));
            }
            Vec::new()
        }
    }
}
