//! The thread that is asked about execs, and the one that looks at files that were never seen. The first touches no disk, takes
//! no lock that is held for long, and says nothing: whatever it does, every process that starts a program waits for.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perflab_observe::taskstats::{TaskStats, Used};
use rustix::event::{PollFd, PollFlags, poll};

use super::door::Held;
use super::programs::{ProgramKey, Purpose};
use super::scout::{self, Place, Sight};
use super::shared::{Shared, locked};
use super::trees::{Given, Watch, of_process};
use super::who::Who;
use super::work;
use crate::learn::now;

/// Execs that wait at once, from which on none is looked at: it is a storm.
const STORM: usize = 64;
/// Files that wait to be looked at; of more, the exec goes on.
const SCOUTED: usize = 64;
/// Processes of which is remembered that they were seen.
const SEEN: usize = 4096;

/// Answers for ever. Returns where the kernel asks no more.
pub(super) fn answer(shared: &Arc<Shared>) -> io::Error {
    let (send, found) = sync_channel(SCOUTED);
    let own = Arc::clone(shared);
    if let Err(error) = std::thread::Builder::new().name("scout".into()).spawn(move || scout(&own, &found)) {
        return error;
    }
    let asked = Asked::new(Arc::clone(shared));
    loop {
        let mut waits = [PollFd::new(&shared.door, PollFlags::IN)];
        if let Err(error) = poll(&mut waits, None)
            && error != rustix::io::Errno::INTR
        {
            return error.into();
        }
        shared.deadline.works();
        match shared.door.held() {
            Ok(held) => asked.about(held, &send),
            // The kernel refuses an exec for which it can open no file: there must never be too many of ours.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
                shared.counts.lost.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => return error,
        }
        shared.deadline.rests();
    }
}

fn scout(shared: &Arc<Shared>, found: &Receiver<(Arc<Held>, Place)>) {
    let asked = Asked::new(Arc::clone(shared));
    for (held, place) in found {
        let sight = held.opened().map_or(Sight::Nameless, |file| scout::look(&file));
        if let (Sight::Program(path) | Sight::Script(path, _), Some(who)) = (&sight, starter(&held)) {
            let key = ProgramKey { path: path.clone(), user: who.user() };
            let has_trace = shared.settings.store.of_user(key.user).path(path).exists();
            locked(&shared.programs).meet(&key, place.1, has_trace);
        }
        let sight = shared.saw(place, sight);
        asked.known(held, place, &sight);
    }
}

/// One of the two threads.
struct Asked {
    shared: Arc<Shared>,
    own: u32,
    alive: Option<TaskStats>,
}

impl Asked {
    fn new(shared: Arc<Shared>) -> Self {
        Asked { shared, own: std::process::id(), alive: TaskStats::open().ok() }
    }

    fn about(&self, held: Vec<Held>, scouts: &SyncSender<(Arc<Held>, Place)>) {
        let counts = &self.shared.counts;
        counts.asked.fetch_add(held.len() as u64, Ordering::Relaxed);
        if held.len() >= STORM {
            counts.unseen.fetch_add(held.len() as u64, Ordering::Relaxed);
            return;
        }
        for one in held.into_iter().filter(|one| one.process() != self.own) {
            let Some(place) = one.file().and_then(scout::place) else { continue };
            let one = Arc::new(one);
            match self.shared.sight(&place) {
                Some(sight) => self.known(one, place, &sight),
                None => {
                    self.shared.deadline.set(&one, Instant::now() + self.shared.settings.decide);
                    let sent = scouts.try_send((one, place)).is_ok();
                    self.shared.counts.unseen.fetch_add(u64::from(!sent), Ordering::Relaxed);
                }
            }
        }
    }

    /// An exec of a file that was looked at once.
    fn known(&self, held: Arc<Held>, place: Place, sight: &Sight) {
        let process = held.process();
        let is_part = locked(&self.shared.expected).remove(&process) == Some(place);
        match sight {
            Sight::Script(_, Some(next)) => {
                bounded(&mut locked(&self.shared.expected)).insert(process, *next);
            }
            Sight::Loader => held.file().into_iter().for_each(|file| self.shared.door.ignore(file)),
            _ => {}
        }
        if let (Sight::Program(path) | Sight::Script(path, _), false) = (sight, is_part) {
            let Some(who) = starter(&held) else { return };
            let key = ProgramKey { path: path.clone(), user: who.user() };
            if self.shared.learning.load(Ordering::Relaxed) > 0 {
                bounded(&mut locked(&self.shared.starters)).insert(process, key.user);
            }
            let refused = locked(&self.shared.lists).refuse(path);
            let purpose = locked(&self.shared.programs).start(&key, place.1, now(), refused);
            self.begin(held, (key, who), purpose);
        }
    }

    fn begin(&self, held: Arc<Held>, (key, who): (ProgramKey, Who), purpose: Purpose) {
        if purpose == Purpose::Nothing {
            return;
        }
        let help = Arc::<Mutex<Given>>::default();
        let process = held.process();
        let watch = Watch {
            process,
            program: key.clone(),
            until: Instant::now() + self.shared.settings.window,
            before: self.used_before(process),
            help: Arc::clone(&help),
        };
        // Before the answer, so that it is known when the end is told. The other side goes only with the daemon.
        let _ = locked(&self.shared.watches).send(watch);
        match purpose {
            Purpose::Learn { anew } => work::learn(&self.shared, held, &key, anew),
            Purpose::ReadAhead { learn } => work::read_ahead(&self.shared, held, (&key, who), help, learn),
            Purpose::Watch | Purpose::Nothing => {}
        }
    }

    /// A process that runs one program after the other has used something before.
    fn used_before(&self, process: u32) -> Used {
        let again = bounded(&mut locked(&self.shared.seen)).insert(process, ()).is_some();
        match (again, &self.alive) {
            (true, Some(alive)) => of_process(process, alive),
            _ => Used::default(),
        }
    }
}

/// Who starts a program; none where the exec may have gone on already, and the process be another user now.
fn starter(held: &Held) -> Option<Who> {
    Who::of(held.process()).filter(|_| held.is_waiting())
}

/// Room for one more; what was remembered longest may be wrong by now, and is not missed.
fn bounded<T>(all: &mut HashMap<u32, T>) -> &mut HashMap<u32, T> {
    if all.len() >= SEEN {
        all.clear();
    }
    all
}
