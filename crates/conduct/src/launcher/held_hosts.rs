//! The hosts of an inventory that a run holds: all of them or none, from before its first iteration until all is undone.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perflab_model::{Nanos, Refusal, StopRequest};

use crate::launcher::host_lock::HostHolder;
use crate::launcher::reached_host::{HeldBy, ReachedHost};
use crate::launcher::ssh::SshDestination;

/// Between two attempts to have all hosts; longer by up to as much, so that two runs that want the same do not keep meeting.
const PAUSE: Duration = Duration::from_millis(1000);

const LOOK: Duration = Duration::from_millis(50);

/// What to do about a host that another study has.
const WAIT_HINT: &str = "`--wait` waits for it";

/// The hosts of a run, by name.
#[derive(Debug)]
pub(crate) struct HeldHosts {
    holder: HostHolder,
    perflab: PathBuf,
    hosts: BTreeMap<String, Mutex<RunHost>>,
}

/// A host of the run.
#[derive(Debug)]
struct RunHost {
    destination: SshDestination,
    /// None while it is not reached.
    reached: Option<ReachedHost>,
    /// Whether it was let go of meanwhile without having been booted.
    was_lost: bool,
}

/// Why a run does not have its hosts.
#[derive(Debug)]
pub(crate) enum HoldError {
    /// It was stopped meanwhile.
    Stopped,
    /// Each host that it cannot have.
    Refused(Vec<Refusal>),
}

fn lock_host(host: &Mutex<RunHost>) -> MutexGuard<'_, RunHost> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HeldHosts {
    /// Reaches all hosts at the same time. Those that are not reached are named: whether the run can do without, its caller knows.
    pub(crate) fn reach(
        holder: HostHolder,
        perflab: &Path,
        hosts: BTreeMap<String, SshDestination>,
        stop: &StopRequest,
    ) -> (Self, BTreeMap<String, Refusal>) {
        let reached: Vec<_> = std::thread::scope(|scope| {
            let reach = |(name, destination): (String, SshDestination)| {
                scope.spawn(move || {
                    let reached = ReachedHost::reach(&name, &destination, perflab, stop);
                    (name, destination, reached)
                })
            };
            let reaching: Vec<_> = hosts.into_iter().map(reach).collect();
            reaching.into_iter().filter_map(|one| one.join().ok()).collect()
        });
        let (mut all, mut failed) = (BTreeMap::new(), BTreeMap::new());
        for (name, destination, reached) in reached {
            let reached = reached.map_err(|refusal| failed.insert(name.clone(), refusal)).ok();
            all.insert(name, Mutex::new(RunHost { destination, reached, was_lost: false }));
        }
        (HeldHosts { holder, perflab: perflab.to_owned(), hosts: all }, failed)
    }

    /// Takes all hosts that were reached, or none: who waits for one holds no other, so that no two runs wait for each other. Waits for
    /// so long; `tell` is told once for whom.
    pub(crate) fn take_all(
        &self,
        wait: Option<Duration>,
        stop: &StopRequest,
        tell: &dyn Fn(String),
    ) -> Result<(), HoldError> {
        let begun = Instant::now();
        let mut is_told = false;
        loop {
            let refused = self.try_all(stop)?;
            if refused.is_empty() {
                return Ok(());
            }
            let Some(limit) = wait else { return Err(HoldError::Refused(refused)) };
            if begun.elapsed() > limit {
                let late = |refusal: Refusal| Refusal {
                    what: format!("{}; waited {} for it", refusal.what, Nanos::from(begun.elapsed())),
                    hint: "`--wait=TIME` waits longer".into(),
                };
                return Err(HoldError::Refused(refused.into_iter().map(late).collect()));
            }
            if !is_told {
                let whom: Vec<&str> = refused.iter().map(|refusal| refusal.what.as_str()).collect();
                tell(whom.join("; "));
                is_told = true;
            }
            let pause = PAUSE + PAUSE.mul_f64(rand::random::<f64>());
            let paused = Instant::now();
            while paused.elapsed() < pause {
                if stop.is_requested() {
                    return Err(HoldError::Stopped);
                }
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Takes all; where one is another's, those that were taken are left again, and each that is not free is named.
    fn try_all(&self, stop: &StopRequest) -> Result<Vec<Refusal>, HoldError> {
        let asked: Vec<(&str, Result<Option<HeldBy>, Refusal>)> = std::thread::scope(|scope| {
            let asking: Vec<_> = self
                .hosts
                .iter()
                .map(|(name, host)| {
                    scope.spawn(move || {
                        let holder = self.holder_of(name);
                        let answer =
                            lock_host(host).reached.as_mut().map(|reached| reached.take(&holder, stop));
                        (name.as_str(), answer)
                    })
                })
                .collect();
            let answers = asking.into_iter().filter_map(|one| one.join().ok());
            answers.filter_map(|(name, answer)| Some((name, answer?))).collect()
        });
        if stop.is_requested() {
            return Err(HoldError::Stopped);
        }
        let (mut refused, mut is_waited_for) = (Vec::new(), true);
        for (name, answer) in asked {
            match answer {
                Ok(None) => {}
                Ok(Some(HeldBy(Some(holder)))) if self.is_own(&holder) => {
                    // Whoever else of this run is asked has it.
                    is_waited_for = false;
                    let other = holder.host.unwrap_or_else(|| "another host".into());
                    refused.push(Refusal {
                        what: format!("host {name} is the same machine as {other}, which the study has, too"),
                        hint: "name it once".into(),
                    });
                }
                Ok(Some(held)) => refused.push(describe_held(name, &held)),
                Err(refusal) => {
                    is_waited_for = false;
                    refused.push(refusal);
                }
            }
        }
        if !refused.is_empty() {
            self.hosts
                .values()
                .for_each(|host| lock_host(host).reached.iter().for_each(ReachedHost::release));
        }
        if is_waited_for { Ok(refused) } else { Err(HoldError::Refused(refused)) }
    }

    /// What the run says on a host that it holds.
    fn holder_of(&self, name: &str) -> HostHolder {
        HostHolder { host: Some(name.to_owned()), ..self.holder.clone() }
    }

    fn is_own(&self, holder: &HostHolder) -> bool {
        (&holder.run, &holder.who) == (&self.holder.run, &self.holder.who)
    }

    /// Where perflab lies on a host that the run holds. One that was lost meanwhile, or that the run has booted anew, is reached and
    /// taken again.
    ///
    /// # Errors
    /// It does not answer, or another study has it by now.
    pub(crate) fn folder(
        &self,
        name: &str,
        is_booted: bool,
        stop: &StopRequest,
    ) -> io::Result<Option<String>> {
        let Some(host) = self.hosts.get(name) else { return Ok(None) };
        let mut host = lock_host(host);
        if is_booted {
            // Its ssh may not have noticed yet that the machine it spoke to is gone.
            host.reached.take().into_iter().for_each(ReachedHost::abandon);
        }
        if let Some(reached) = &mut host.reached
            && reached.is_alive()
        {
            return Ok(Some(reached.folder().to_owned()));
        }
        host.was_lost |= host.reached.is_some();
        let refuse = |refusal: Refusal| io::Error::other(refusal.to_string());
        let mut reached = ReachedHost::reach(name, &host.destination, &self.perflab, stop).map_err(refuse)?;
        if let Some(held) = reached.take(&self.holder_of(name), stop).map_err(refuse)? {
            return Err(refuse(describe_held(name, &held)));
        }
        let folder = reached.folder().to_owned();
        host.reached = Some(reached);
        Ok(Some(folder))
    }

    /// The hosts that the run let go of before its end, though it did not boot them: another study may have worked there.
    pub(crate) fn lost_hosts(&self) -> Vec<&str> {
        let is_lost = |host: &Mutex<RunHost>| {
            let mut host = lock_host(host);
            host.was_lost || host.reached.as_mut().is_some_and(|reached| !reached.is_alive())
        };
        self.hosts.iter().filter(|(_, host)| is_lost(host)).map(|(name, _)| name.as_str()).collect()
    }
}

fn describe_held(name: &str, held: &HeldBy) -> Refusal {
    let by = held.0.as_ref().map_or_else(|| "another study".to_owned(), ToString::to_string);
    Refusal { what: format!("host {name} is held by {by}"), hint: WAIT_HINT.into() }
}

impl Drop for HeldHosts {
    fn drop(&mut self) {
        // All end at the same time.
        self.hosts.values().for_each(|host| lock_host(host).reached.iter().for_each(ReachedHost::begin_end));
    }
}
