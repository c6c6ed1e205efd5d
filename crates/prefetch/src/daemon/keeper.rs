//! Everything that can wait: adding up what processes used, judging programs, saving, following mounts. It is the daemon's first
//! thread; the others answer.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime};

use perflab_model::Nanos;
use perflab_model::io::PAGE;
use perflab_observe::Root;
use perflab_observe::io::{Follower, Mount, Mounts, mounts};
use perflab_observe::taskstats::{TaskStats, Used, accounts_for_delays};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::begin::saved_text;
use super::exec_guard::ExecGuard;
use super::program::{Measured, Standing};
use super::settings::DaemonError;
use super::shared::{Shared, locked};
use super::trees::{Given, Trees, Watch};
use super::{notify, work};
use crate::is_refused;

/// How often it looks around.
const GLANCE: Duration = Duration::from_secs(1);
/// How long ends are gathered.
const TOGETHER: Duration = Duration::from_millis(20);
/// How often it writes what changed; traces are written at once.
const SAVES: Duration = Duration::from_secs(300);
/// And how soon it tries again what could not be written.
const RETRIES: Duration = Duration::from_secs(5);
/// Where it writes it, in the folder of the traces.
pub(super) const PROGRAMS: &str = "programs.json";

/// The first thread.
pub(super) struct Keeper {
    shared: Arc<Shared>,
    ends: Option<TaskStats>,
    alive: TaskStats,
    watches: Receiver<Watch>,
    trees: Trees,
    mounts: File,
    saved: Instant,
    list: Option<SystemTime>,
    guard: Option<ExecGuard>,
}

impl Keeper {
    pub(super) fn new(
        shared: Arc<Shared>,
        ends: Option<TaskStats>,
        alive: TaskStats,
        watches: Receiver<Watch>,
    ) -> Result<Self, DaemonError> {
        let mounts =
            File::open("/proc/self/mountinfo").map_err(DaemonError::system("read /proc/self/mountinfo"))?;
        let (trees, saved) = (Trees::default(), Instant::now());
        Ok(Keeper { shared, ends, alive, watches, trees, mounts, saved, list: None, guard: None })
    }

    /// Starts who answers execs while the daemon does not, and says what it cannot do.
    pub(super) fn start_guard(&mut self) -> Result<(), DaemonError> {
        let shared = &self.shared;
        let guard = ExecGuard::start(&shared.settings.perflab, &*shared.door);
        let guard = guard.map_err(|source| DaemonError::Guard { source })?;
        *locked(&shared.guard_line) = Some(guard.line().map_err(|source| DaemonError::Guard { source })?);
        for lack in &guard.status().lacks {
            shared.say(&format!("process {} guards execs from this daemon, but {lack}", guard.status().pid));
        }
        *locked(&shared.guard) = guard.status().clone();
        self.guard = Some(guard);
        Ok(())
    }

    /// Starts the guard again where it was killed, or is stopped. Where it cannot be, the daemon ends, and nobody waits for it.
    fn look_after_guard(&mut self) -> Result<(), DaemonError> {
        let Some(guard) = &mut self.guard else { return Ok(()) };
        if !guard.is_alive() {
            let shared = &self.shared;
            let replaced = guard.replace(&*shared.door).and_then(|()| guard.line());
            let line = replaced.map_err(|source| DaemonError::Guard { source })?;
            *locked(&shared.guard_line) = Some(line);
            shared.say(&format!("the guard did not answer: process {} is it now", guard.status().pid));
        }
        *locked(&self.shared.guard) = guard.status().clone();
        Ok(())
    }

    /// Until `stop`, or until nobody guards execs any more.
    pub(super) fn keep(&mut self, stop: &AtomicBool) -> Result<(), DaemonError> {
        let (rhythm, mut looked) = (notify::rhythm(), None::<Instant>);
        while !stop.load(Ordering::Relaxed) {
            let moved = self.wait(rhythm);
            if let Err(error) = self.look_after_guard() {
                self.save();
                return Err(error);
            }
            self.add_up(self.shared.delays());
            if moved {
                self.tell_trouble(self.watch_all());
            }
            if looked.is_none_or(|looked| looked.elapsed() >= GLANCE) {
                self.look_around();
                looked = Some(Instant::now());
            }
            if rhythm.is_some() && self.shared.deadline.is_alive() {
                notify::tell("WATCHDOG=1");
            }
        }
        self.save();
        notify::tell("STOPPING=1");
        Ok(())
    }

    fn look_around(&mut self) {
        self.shared.delays.store(accounts_for_delays(&Root::host()), Ordering::Relaxed);
        let read = self.read_list();
        self.tell_trouble(read);
        self.make_ready();
        let gone = locked(&self.shared.programs).gone();
        work::forget(&self.shared, &gone);
        let waits = if locked(&self.shared.unsaved).is_empty() { SAVES } else { RETRIES };
        if self.saved.elapsed() > waits {
            self.save();
        }
    }

    fn tell_trouble(&self, done: Result<(), DaemonError>) {
        if let Err(error) = done {
            self.shared.trouble(&error.to_string());
        }
    }

    /// Waits for an end where some program is watched, for a mount, or for a second. Whether mounts changed.
    fn wait(&self, rhythm: Option<Duration>) -> bool {
        let until = self.trees.next().map(|at| at.saturating_duration_since(Instant::now()));
        let most = until.unwrap_or(GLANCE).min(GLANCE).min(rhythm.unwrap_or(GLANCE));
        let most = Timespec::try_from(most).unwrap_or_default();
        let mut waits = vec![PollFd::new(&self.mounts, PollFlags::PRI)];
        let ends = self.ends.as_ref().filter(|_| until.is_some());
        waits.extend(ends.map(|ends| PollFd::from_borrowed_fd(ends.as_fd(), PollFlags::IN)));
        let opened = self.shared.opened.iter().filter(|opened| opened.is_observing());
        waits.extend(opened.map(|opened| PollFd::new(opened, PollFlags::IN)));
        waits.extend(self.guard.iter().map(|guard| PollFd::new(guard, PollFlags::empty())));
        let _ = poll(&mut waits, Some(&most));
        let moved =
            waits.first().is_some_and(|mounts| mounts.revents().intersects(PollFlags::PRI | PollFlags::ERR));
        // Where many end, they are told of together.
        std::thread::sleep(TOGETHER);
        moved
    }

    /// What ended, and what was watched for long enough.
    fn add_up(&mut self, delays: bool) {
        self.shared.opened.iter().for_each(super::opened::OpenedFiles::read);
        let mut exits = Vec::new();
        let told = self.ends.as_ref().map(|ends| ends.exits(|exit| exits.push(exit)));
        if !matches!(told, None | Some(Ok(true))) {
            self.shared.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
        // After the ends were read: who ended was announced before.
        self.watches.try_iter().for_each(|watch| self.trees.watch(watch));
        for exit in exits {
            if exit.last {
                let reading = locked(&self.shared.readings).remove(&exit.process);
                reading.into_iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
            }
            let ended = self.trees.exit(exit);
            ended.iter().for_each(|(watch, used)| self.judge(watch, *used, delays));
        }
        let due = self.trees.due(Instant::now(), &self.alive);
        due.iter().for_each(|(watch, used)| self.judge(watch, *used, delays));
    }

    fn judge(&self, watch: &Watch, used: Used, delays: bool) {
        let worth = &self.shared.settings.worth;
        let is_worth = worth.is(used, delays);
        let help = *locked(&watch.help);
        match help {
            Given::Nothing => {
                // Whoever reads that a program is worth it may start it next: then its buffers are there.
                let standing = locked(&self.shared.programs).get(&watch.program).map(|one| one.standing);
                if is_worth && standing == Some(Standing::Watched) {
                    self.make_buffers();
                }
                self.shared.with(&watch.program, |program| program.went_without(used, worth, delays));
            }
            Given::ReadAhead { held, observed } => {
                self.judge_read_ahead(watch, Measured { used, held }, observed);
            }
            Given::Reading { since, observed } => {
                let bound = self.shared.settings.bound;
                if since.elapsed() >= bound {
                    self.judge_read_ahead(watch, Measured { used, held: Nanos::from(bound) }, observed);
                } else {
                    // Killed while it waited: it was no start.
                    self.shared.opened.as_ref().zip(observed).map(|(all, number)| all.finish(number));
                }
            }
            Given::Warm => {}
        }
        if is_worth {
            self.make_ready();
        }
    }

    fn judge_read_ahead(&self, watch: &Watch, measured: Measured, observed: Option<u64>) {
        let (worth, delays) = (&self.shared.settings.worth, self.shared.delays());
        let seen = self.shared.opened.as_ref().zip(observed).and_then(|(all, number)| all.finish(number));
        let is_used = seen.as_ref().is_none_or(|seen| seen.used > 0);
        self.shared.with(&watch.program, |program| {
            program.went_with(measured, is_used, worth, delays);
            if let Some(seen) = &seen {
                program.ahead.judged += seen.asked * PAGE;
                program.ahead.used += seen.used * PAGE;
            }
        });
        if let Some(seen) = seen {
            work::note_use(&self.shared, &watch.program, &seen);
        }
    }

    /// Buffers take long to make: those of the next start that is traced wait for it.
    fn make_ready(&self) {
        let wanted = locked(&self.shared.programs).wants_to_learn();
        if wanted {
            self.make_buffers();
        } else {
            drop(locked(&self.shared.spare).take());
        }
    }

    fn make_buffers(&self) {
        if locked(&self.shared.spare).is_some() {
            return;
        }
        match Follower::prepare() {
            Ok(ready) => *locked(&self.shared.spare) = Some(ready),
            Err(error) => self.shared.trouble(&format!("a start cannot be traced: {error}")),
        }
    }

    /// Watches what is mounted now.
    pub(super) fn watch_all(&self) -> Result<(), DaemonError> {
        let all = Mounts::read();
        let on = &self.shared.settings.on;
        let is_new = locked(&self.shared.watched).is_empty();
        if let Some(place) = on.iter().find(|place| is_new && !all.iter().any(|mount| mount.place == **place))
        {
            return Err(DaemonError::NoMount(place.clone()));
        }
        let mut watched: Vec<PathBuf> = Vec::new();
        for mount in all.iter().filter(|mount| is_wanted(on, &all, mount)) {
            match self.shared.door.watch(&mount.place) {
                Ok(()) => watched.push(mount.place.clone()),
                Err(error) => {
                    self.shared
                        .trouble(&format!("execs on {} cannot be watched: {error}", mount.place.display()));
                }
            }
        }
        *locked(&self.shared.watched) = watched;
        Ok(())
    }

    /// Reads the list where it changed; one that is not understood leaves the one before.
    pub(super) fn read_list(&mut self) -> Result<(), DaemonError> {
        let Some(path) = &self.shared.settings.list else { return Ok(()) };
        let changed = fs::metadata(path).and_then(|about| about.modified()).ok();
        if changed.is_some() && changed == self.list {
            return Ok(());
        }
        self.list = changed;
        let lists = self.shared.settings.lists.with(path)?;
        *locked(&self.shared.lists) = lists;
        Ok(())
    }

    fn save(&mut self) {
        const LACKS: &str = "what is known of programs cannot be written";
        self.saved = Instant::now();
        work::save(&self.shared);
        let text = {
            let mut programs = locked(&self.shared.programs);
            let text = std::mem::take(&mut programs.changed).then(|| saved_text(&programs));
            text.and_then(Result::ok)
        };
        let Some(text) = text else { return };
        match self.write(&text) {
            Ok(()) => self.shared.over(LACKS),
            Err(error) => {
                locked(&self.shared.programs).changed = true;
                self.shared.trouble(&format!("{LACKS}: {error}"));
            }
        }
    }

    fn write(&self, text: &[u8]) -> io::Result<()> {
        let store = &self.shared.settings.store;
        store.make().map_err(io::Error::other)?;
        let mut file = tempfile::NamedTempFile::new_in(store.folder())?;
        file.write_all(text)?;
        file.persist(store.folder().join(PROGRAMS)).map(drop).map_err(|error| error.error)
    }
}

/// Disks, and what is made of them, once each; never what is only memory, another machine, or another program.
fn is_wanted(on: &[PathBuf], all: &Mounts, mount: &Mount) -> bool {
    if !on.is_empty() {
        return on.contains(&mount.place);
    }
    let on_disk =
        mounts::is_disk(mount.device) || ["btrfs", "overlay", "bcachefs"].contains(&mount.kind.as_str());
    on_disk && !is_refused(&mount.kind) && all.of(mount.device) == Some(mount)
}
