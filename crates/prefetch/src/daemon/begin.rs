//! A daemon's beginning: what is missing is found before anything is held, and who answers is there before anybody is asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use perflab_observe::Root;
use perflab_observe::taskstats::{TaskStats, accounts_for_delays};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};

use super::door::Door;
use super::exec_guard::lock_memory;
use super::keeper::{Keeper, PROGRAMS};
use super::program::Program;
use super::programs::{ProgramKey, Programs};
use super::settings::{DaemonError, Settings};
use super::shared::{Say, Shared};
use super::status::KnownProgram;
use super::{notify, receive, status};
use crate::Store;

/// Watches, learns and reads ahead until `stop`.
///
/// # Errors
/// What is missing, with what to do about it. Nothing was held then.
pub fn run(settings: Settings, stop: &AtomicBool, say: Say) -> Result<(), DaemonError> {
    open_more_files();
    // What is swapped out answers late, and what the kernel was handing over then, nobody else can answer. A guard remains in any case.
    // Its threads become users: a limit would be theirs then, whatever the daemon may.
    if rustix::process::getrlimit(Resource::Memlock).current.is_none() {
        let _ = lock_memory();
    }
    perflab_observe::io::check()?;
    let named = !settings.lists.only.is_empty();
    let ends = match TaskStats::listen() {
        Ok(ends) => Some(ends),
        Err(error) if named => {
            say(&format!("{error}: what is named as wanted is learnt at its first start"));
            None
        }
        Err(error) => return Err(error.into()),
    };
    let door = Door::open().map_err(|source| DaemonError::Door { source })?;
    let (send, watches) = channel();
    let before = saved(&settings.store, &say).into_iter().map(|known| (known.key, known.program)).collect();
    let programs = Programs::new(before, ends.is_some());
    let shared = Arc::new(Shared::new(settings, (door, ends.is_some()), programs, send, say));
    let alive = TaskStats::open()?;
    let mut keeper = Keeper::new(Arc::clone(&shared), ends, alive, watches)?;
    keeper.read_list()?;
    shared.delays.store(accounts_for_delays(&Root::host()), Ordering::Relaxed);
    let socket = status::take_socket(&shared.settings.socket)?;
    // Before anything is marked: there is nobody who waits without a guard.
    keeper.start_guard()?;
    answer(&shared)?;
    keeper.watch_all()?;
    status::serve(socket, &shared)?;
    notify::tell("READY=1");
    let ended = keeper.keep(stop);
    let _ = fs::remove_file(&shared.settings.socket);
    ended
}

/// The threads that answer must be there before anything is asked. A panic of any ends them all: the kernel lets everything
/// through then.
fn answer(shared: &Arc<Shared>) -> Result<(), DaemonError> {
    let said = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        said(panic);
        std::process::abort();
    }));
    let thread = |name: &str| std::thread::Builder::new().name(name.into());
    let own = Arc::clone(shared);
    thread("clock")
        .spawn(move || own.deadline.keep(|| own.tell_guard()))
        .map_err(DaemonError::system("start a thread"))?;
    let own = Arc::clone(shared);
    let asked = thread("asked").spawn(move || {
        let error = receive::answer(&own);
        own.say(&format!(
            "execs cannot be answered any more: {error}; the daemon ends, and nothing waits for it"
        ));
        std::process::abort();
    });
    asked.map(drop).map_err(DaemonError::system("start a thread"))
}

/// Every exec that waits is an open file, and every file that is read ahead another one.
fn open_more_files() {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    let _ = rustix::process::setrlimit(Resource::Nofile, raised);
}

/// What a daemon writes of programs, and reads when it begins.
#[derive(Debug, Deserialize)]
struct SavedPrograms {
    programs: Vec<KnownProgram>,
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
    program: &'a Program,
}

pub(super) fn saved_text(programs: &Programs) -> serde_json::Result<Vec<u8>> {
    let programs = programs.all().iter().map(|(key, program)| ProgramToSave { key, program }).collect();
    serde_json::to_vec(&ProgramsToSave { programs })
}

/// What the last daemon knew of programs; nothing where it is damaged, because traces lie elsewhere and are found again. `say` hears
/// where it is of a daemon that did not tell users apart: then whose starts taught what is not known, and all begin anew.
pub fn saved(store: &Store, say: &dyn Fn(&str)) -> Vec<KnownProgram> {
    let path = store.folder().join(PROGRAMS);
    let Ok(text) = fs::read(&path) else { return Vec::new() };
    match serde_json::from_slice::<SavedPrograms>(&text) {
        Ok(saved) => saved.programs,
        Err(_) => {
            let of_nobody = serde_json::from_slice::<BTreeMap<PathBuf, Program>>(&text).unwrap_or_default();
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
