//! Everything that can wait: judging, saving, mounts, systemd's watchdog.
//!
//! It is the daemon's first thread; the others answer. What processes used is added up here, programs are judged,
//! their state is saved. systemd hears (`sd_notify`) that the daemon watches and, again and again, that it is
//! alive: a daemon that was stopped cannot answer; systemd kills one that is silent, and with it goes what waits.

use std::fs::{self, File};
use std::os::fd::AsFd as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime};

use perflab_model::Nanos;
use perflab_model::io_trace::PAGE;
use perflab_observe::Root;
use perflab_observe::io::{MountEntry, MountTable, ProcessIoTracer};
use perflab_observe::taskstats::{TaskstatsSocket, ThreadUsage, is_delay_accounting_on};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::daemon::exec_guard::ExecGuard;
use crate::daemon::options::DaemonError;
use crate::daemon::process_tree::{PrefetchHelp, ProcessTrees, WatchedStartup};
use crate::daemon::programs::{MeasuredStartup, ProgramState};
use crate::daemon::saved_programs::{format_saved_programs, write_programs_file};
use crate::daemon::shared_state::{DaemonState, lock_mutex};
use crate::daemon::workers;
use crate::trace_builder::is_skipped_file_system;

/// How often it looks around.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How long ends are gathered.
const COLLECT_DELAY: Duration = Duration::from_millis(20);

/// How often it writes what changed; traces are written at once.
const SAVE_INTERVAL: Duration = Duration::from_secs(300);

/// And how soon it tries again what could not be written.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// The first thread.
pub(crate) struct Housekeeper {
    shared: Arc<DaemonState>,
    ends: Option<TaskstatsSocket>,
    alive: TaskstatsSocket,
    watches: Receiver<WatchedStartup>,
    trees: ProcessTrees,
    mounts: File,
    saved: Instant,
    list: Option<SystemTime>,
    guard: Option<ExecGuard>,
}

impl Housekeeper {
    pub(crate) fn new(
        shared: Arc<DaemonState>,
        ends: Option<TaskstatsSocket>,
        alive: TaskstatsSocket,
        watches: Receiver<WatchedStartup>,
    ) -> Result<Self, DaemonError> {
        let mounts = File::open("/proc/self/mountinfo")
            .map_err(DaemonError::system_error("read /proc/self/mountinfo"))?;
        let (trees, saved) = (ProcessTrees::default(), Instant::now());
        Ok(Housekeeper { shared, ends, alive, watches, trees, mounts, saved, list: None, guard: None })
    }

    /// Starts who answers execs while the daemon does not, and says what it cannot do.
    pub(crate) fn start_guard(&mut self) -> Result<(), DaemonError> {
        let shared = &self.shared;
        let guard = ExecGuard::start(&shared.settings.perflab, &*shared.gate);
        let guard = guard.map_err(|source| DaemonError::Guard { source })?;
        *lock_mutex(&shared.guard_line) =
            Some(guard.clone_line().map_err(|source| DaemonError::Guard { source })?);
        for lack in &guard.status().lacks {
            shared.log(&format!("process {} guards execs from this daemon, but {lack}", guard.status().pid));
        }
        *lock_mutex(&shared.guard) = guard.status().clone();
        self.guard = Some(guard);
        Ok(())
    }

    /// Starts the guard again where it was killed, or is stopped. Where it cannot be, the daemon ends, and no exec waits for it.
    fn ensure_guard(&mut self) -> Result<(), DaemonError> {
        let Some(guard) = &mut self.guard else { return Ok(()) };
        if !guard.is_alive() {
            let shared = &self.shared;
            let replaced = guard.replace(&*shared.gate).and_then(|()| guard.clone_line());
            let line = replaced.map_err(|source| DaemonError::Guard { source })?;
            *lock_mutex(&shared.guard_line) = Some(line);
            shared.log(&format!("the guard did not answer: process {} is it now", guard.status().pid));
        }
        *lock_mutex(&self.shared.guard) = guard.status().clone();
        Ok(())
    }

    /// Until `stop`, or until execs are not guarded any more.
    pub(crate) fn run(&mut self, stop: &AtomicBool) -> Result<(), DaemonError> {
        let (rhythm, mut looked) = (watchdog_interval(), None::<Instant>);
        while !stop.load(Ordering::Relaxed) {
            let moved = self.wait_for_work(rhythm);
            if let Err(error) = self.ensure_guard() {
                self.save_all();
                return Err(error);
            }
            self.collect_exits(self.shared.has_delay_accounting());
            if moved {
                self.report_trouble(self.watch_file_systems());
            }
            if looked.is_none_or(|looked| looked.elapsed() >= CHECK_INTERVAL) {
                self.run_periodic_checks();
                looked = Some(Instant::now());
            }
            if rhythm.is_some() && self.shared.deadline.is_alive() {
                notify_systemd("WATCHDOG=1");
            }
        }
        self.save_all();
        notify_systemd("STOPPING=1");
        Ok(())
    }

    fn run_periodic_checks(&mut self) {
        self.shared.delays.store(is_delay_accounting_on(&Root::host()), Ordering::Relaxed);
        let read = self.reload_lists();
        self.report_trouble(read);
        self.prepare_follower();
        let gone = lock_mutex(&self.shared.programs).take_removed();
        workers::forget_programs(&self.shared, &gone);
        let waits = if lock_mutex(&self.shared.unsaved).is_empty() { SAVE_INTERVAL } else { RETRY_INTERVAL };
        if self.saved.elapsed() > waits {
            self.save_all();
        }
    }

    fn report_trouble(&self, done: Result<(), DaemonError>) {
        if let Err(error) = done {
            self.shared.report_trouble(&error.to_string());
        }
    }

    /// Waits for an end where some program is watched, for a mount, or for a second. Whether mounts changed.
    fn wait_for_work(&self, rhythm: Option<Duration>) -> bool {
        let until = self.trees.next_due().map(|at| at.saturating_duration_since(Instant::now()));
        let most = until.unwrap_or(CHECK_INTERVAL).min(CHECK_INTERVAL).min(rhythm.unwrap_or(CHECK_INTERVAL));
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
        // Where many end, they are reported together.
        std::thread::sleep(COLLECT_DELAY);
        moved
    }

    /// What ended, and what was watched for long enough.
    fn collect_exits(&mut self, delays: bool) {
        self.shared.opened.iter().for_each(crate::daemon::opened_files::OpenedFiles::read_events);
        let mut exits = Vec::new();
        let drained = self.ends.as_ref().map(|ends| ends.drain_exits(|exit| exits.push(exit)));
        if !matches!(drained, None | Some(Ok(true))) {
            self.shared.counts.lost.fetch_add(1, Ordering::Relaxed);
        }
        // After the ends were read: who ended was announced before.
        self.watches.try_iter().for_each(|watch| self.trees.watch(watch));
        for exit in exits {
            if exit.last {
                let reading = lock_mutex(&self.shared.readings).remove(&exit.process);
                reading.into_iter().for_each(|stop| stop.store(true, Ordering::Relaxed));
            }
            let ended = self.trees.record_exit(exit);
            ended.iter().for_each(|(watch, used)| self.judge_startup(watch, *used, delays));
        }
        let due = self.trees.take_due(Instant::now(), &self.alive);
        due.iter().for_each(|(watch, used)| self.judge_startup(watch, *used, delays));
    }

    fn judge_startup(&self, watch: &WatchedStartup, used: ThreadUsage, delays: bool) {
        let worth = &self.shared.settings.worth;
        let is_worth = worth.is_reached(used, delays);
        let help = *lock_mutex(&watch.help);
        match help {
            PrefetchHelp::Nothing => {
                // Whoever reads that a program is worth it may start it next: then its buffers are there.
                let state = lock_mutex(&self.shared.programs).get(&watch.program).map(|one| one.state);
                if is_worth && state == Some(ProgramState::Watched) {
                    self.make_buffers();
                }
                self.shared
                    .update_program(&watch.program, |program| program.record_plain(used, worth, delays));
            }
            PrefetchHelp::ReadAhead { held, observed } => {
                self.judge_read_ahead(watch, MeasuredStartup { used, held }, observed);
            }
            PrefetchHelp::Reading { since, observed } => {
                let bound = self.shared.settings.bound;
                if since.elapsed() >= bound {
                    self.judge_read_ahead(
                        watch,
                        MeasuredStartup { used, held: Nanos::from(bound) },
                        observed,
                    );
                } else {
                    // Killed while it waited: it was not a startup.
                    self.shared.opened.as_ref().zip(observed).map(|(all, number)| all.finish(number));
                }
            }
            PrefetchHelp::Warm => {}
        }
        if is_worth {
            self.prepare_follower();
        }
    }

    fn judge_read_ahead(&self, watch: &WatchedStartup, measured: MeasuredStartup, observed: Option<u64>) {
        let (worth, delays) = (&self.shared.settings.worth, self.shared.has_delay_accounting());
        let seen = self.shared.opened.as_ref().zip(observed).and_then(|(all, number)| all.finish(number));
        let is_used = seen.as_ref().is_none_or(|seen| seen.used > 0);
        self.shared.update_program(&watch.program, |program| {
            program.record_prefetched(measured, is_used, worth, delays);
            if let Some(seen) = &seen {
                program.ahead.judged += seen.asked * PAGE;
                program.ahead.used += seen.used * PAGE;
            }
        });
        if let Some(seen) = seen {
            workers::note_file_use(&self.shared, &watch.program, &seen);
        }
    }

    /// Buffers take long to make: those of the next start that is traced wait for it.
    fn prepare_follower(&self) {
        let wanted = lock_mutex(&self.shared.programs).wants_to_learn();
        if wanted {
            self.make_buffers();
        } else {
            drop(lock_mutex(&self.shared.spare).take());
        }
    }

    fn make_buffers(&self) {
        if lock_mutex(&self.shared.spare).is_some() {
            return;
        }
        match ProcessIoTracer::new() {
            Ok(ready) => *lock_mutex(&self.shared.spare) = Some(ready),
            Err(error) => self.shared.report_trouble(&format!("a start cannot be traced: {error}")),
        }
    }

    /// Watches what is mounted now.
    pub(crate) fn watch_file_systems(&self) -> Result<(), DaemonError> {
        let all = MountTable::read();
        let on = &self.shared.settings.on;
        let is_new = lock_mutex(&self.shared.watched).is_empty();
        if let Some(place) =
            on.iter().find(|place| is_new && !all.iter().any(|mount| mount.mount_point == **place))
        {
            return Err(DaemonError::NoMount(place.clone()));
        }
        let mut watched: Vec<PathBuf> = Vec::new();
        for mount in all.iter().filter(|mount| is_watched_mount(on, &all, mount)) {
            match self.shared.gate.watch_file_system(&mount.mount_point) {
                Ok(()) => watched.push(mount.mount_point.clone()),
                Err(error) => {
                    self.shared.report_trouble(&format!(
                        "execs on {} cannot be watched: {error}",
                        mount.mount_point.display()
                    ));
                }
            }
        }
        *lock_mutex(&self.shared.watched) = watched;
        Ok(())
    }

    /// Reads the list where it changed; one that is not understood leaves the one before.
    pub(crate) fn reload_lists(&mut self) -> Result<(), DaemonError> {
        let Some(path) = &self.shared.settings.list else { return Ok(()) };
        let changed = fs::metadata(path).and_then(|about| about.modified()).ok();
        if changed.is_some() && changed == self.list {
            return Ok(());
        }
        self.list = changed;
        let lists = self.shared.settings.lists.with_file(path)?;
        *lock_mutex(&self.shared.lists) = lists;
        Ok(())
    }

    fn save_all(&mut self) {
        const LACKS: &str = "what is known of programs cannot be written";
        self.saved = Instant::now();
        workers::save_traces(&self.shared);
        let text = {
            let mut programs = lock_mutex(&self.shared.programs);
            let text = std::mem::take(&mut programs.changed).then(|| format_saved_programs(&programs));
            text.and_then(Result::ok)
        };
        let Some(text) = text else { return };
        match write_programs_file(&self.shared.settings.store, &text) {
            Ok(()) => self.shared.clear_trouble(LACKS),
            Err(error) => {
                lock_mutex(&self.shared.programs).changed = true;
                self.shared.report_trouble(&format!("{LACKS}: {error}"));
            }
        }
    }
}

/// Disks, and what is made of them, once each; never what is only memory, another machine, or another program.
fn is_watched_mount(on: &[PathBuf], all: &MountTable, mount: &MountEntry) -> bool {
    if !on.is_empty() {
        return on.contains(&mount.mount_point);
    }
    let on_disk = perflab_observe::is_disk_device(mount.device)
        || ["btrfs", "overlay", "bcachefs"].contains(&mount.kind.as_str());
    on_disk && !is_skipped_file_system(&mount.kind) && all.find_by_device(mount.device) == Some(mount)
}

/// Notifies systemd where it listens (`NOTIFY_SOCKET`).
pub fn notify_systemd(what: &str) {
    let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&name),
    };
    let socket = UnixDatagram::unbound();
    if let (Ok(address), Ok(socket)) = (address, socket) {
        // A message that is not read is not needed.
        let _ = socket.set_nonblocking(true);
        let _ = socket.send_to_addr(what.as_bytes(), &address);
    }
}

/// How often a sign of life is expected (`WATCHDOG_USEC`), halved.
pub fn watchdog_interval() -> Option<Duration> {
    let micros: u64 = std::env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    Some(Duration::from_micros(micros / 2))
}
