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

use super::door::Door;
use super::exec_guard::lock_memory;
use super::keeper::{Keeper, PROGRAMS};
use super::program::Program;
use super::programs::Programs;
use super::settings::{DaemonError, Settings};
use super::shared::{Say, Shared};
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
    let programs = Programs::new(saved(&settings.store).into_iter().collect());
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

/// What the last daemon knew of programs; nothing where it is damaged, because traces lie elsewhere and are found again.
pub fn saved(store: &Store) -> BTreeMap<PathBuf, Program> {
    let text = fs::read(store.folder().join(PROGRAMS));
    text.ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}
