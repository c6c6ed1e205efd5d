//! All targets of a run, and the one thread that listens to them.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::channel;

use perflab_model::Nanos;
use perflab_model::event::{TargetState, TargetStatus};
use perflab_model::study::Study;
use perflab_observe::monotonic_now;

use super::mate::TargetSession;
use crate::hub::{Multiplexer, ReceivedReport};
use crate::place::{self, LaunchedAgent};
use crate::protocol::{AgentOrder, AgentReport};
use crate::{ConductError, LocalMachine, StopRequest};

/// Round trips before each release.
const ROUNDS: u32 = 8;
/// How long one of them is waited for,
const TRIP: Nanos = Nanos(20_000_000);
/// and all of all targets together: clocks that were compared a second ago will do.
const ALL: Nanos = Nanos(200_000_000);

/// The targets.
#[derive(Debug)]
pub(super) struct ConnectedTargets {
    hub: Multiplexer,
    pub(super) sessions: Vec<TargetSession>,
    /// What came while something else was waited for.
    backlog: VecDeque<ReceivedReport>,
}

/// The names of a study's targets with what each is, in order.
pub(super) fn expand_target_names(study: &Study) -> Vec<(String, &perflab_model::study::TargetSpec)> {
    let each = |(name, target): (&String, _)| -> Vec<(String, _)> {
        let target: &perflab_model::study::TargetSpec = target;
        match target.count {
            1 => vec![(name.clone(), target)],
            count => (1..=count).map(|number| (format!("{name}{number}"), target)).collect(),
        }
    };
    study.target.iter().flat_map(each).collect()
}

fn starting_status(name: &str) -> TargetStatus {
    TargetStatus { name: name.into(), doing: TargetState::Starts, since: monotonic_now() }
}

impl ConnectedTargets {
    /// Starts every target of the study, all at the same time; `show` is told whenever one more is there. Also gives those that
    /// could not be started, with the reason: each has its place among the mates.
    pub(super) fn launch_all(
        study: &Study,
        host: &LocalMachine,
        stop: &StopRequest,
        show: &dyn Fn(Vec<TargetStatus>) -> Result<(), ConductError>,
    ) -> Result<(Self, Vec<(usize, ConductError)>), ConductError> {
        let names = expand_target_names(study);
        let (done, started) = channel();
        let mut all: Vec<(usize, Result<LaunchedAgent, ConductError>)> = Vec::new();
        let mut standing: Vec<TargetStatus> = names.iter().map(|(name, _)| starting_status(name)).collect();
        let mut shown = show(standing.clone());
        std::thread::scope(|scope| {
            for (index, (name, target)) in names.iter().enumerate() {
                let done = done.clone();
                scope.spawn(move || drop(done.send((index, place::launch_target(name, target, host, stop)))));
            }
            drop(done);
            for (index, one) in started {
                if let Some(here) = standing.get_mut(index) {
                    here.doing = if one.is_ok() { TargetState::Ready } else { TargetState::Lost };
                }
                all.push((index, one));
                if shown.is_ok() {
                    shown = show(standing.clone());
                }
            }
        });
        shown?;
        all.sort_by_key(|(index, _)| *index);
        let mut crew = ConnectedTargets {
            hub: Multiplexer::new().map_err(|source| ConductError::Speak { source })?,
            sessions: Vec::new(),
            backlog: VecDeque::new(),
        };
        let mut failed = Vec::new();
        for ((name, target), (index, started)) in names.into_iter().zip(all) {
            let place = match started {
                Ok(started) => {
                    crew.hub.add(started.connection).map_err(|source| ConductError::Speak { source })?;
                    Some(started.handle)
                }
                Err(error) => {
                    crew.hub.add_absent();
                    failed.push((index, error));
                    None
                }
            };
            crew.sessions.push(TargetSession::new(name, target.kind.to_string(), place));
        }
        Ok((crew, failed))
    }

    /// Notes what these targets are doing.
    pub(super) fn set_activity(&mut self, who: &[usize], what: TargetState) {
        who.iter().for_each(|target| {
            self.sessions.get_mut(*target).into_iter().for_each(|mate| mate.set_activity(what))
        });
    }

    /// Notes what all are doing.
    pub(super) fn set_all_activity(&mut self, what: TargetState) {
        self.sessions.iter_mut().for_each(|mate| mate.set_activity(what));
    }

    pub(super) fn send(&mut self, target: usize, order: &AgentOrder) {
        self.hub.send(target, order);
    }

    /// Gives a target up: its stream is closed, and it is ended. Gives what it said beside the stream.
    pub(super) fn drop_target(&mut self, target: usize, reason: &str) -> String {
        self.hub.close(target);
        let Some(mate) = self.sessions.get_mut(target) else { return String::new() };
        mate.lost = Some(reason.to_owned());
        mate.handle.take().map(|mut place| place.end()).unwrap_or_default()
    }

    /// Ends all that are left; gives what each said beside its stream.
    pub(super) fn shut_down(&mut self) -> Vec<(usize, String)> {
        for target in 0..self.sessions.len() {
            self.hub.close(target);
        }
        let places = self.sessions.iter_mut().enumerate().map(|(target, mate)| (target, mate.handle.take()));
        let left: Vec<_> = places.filter_map(|(target, place)| Some((target, place?))).collect();
        std::thread::scope(|scope| {
            let end = |(target, mut place): (usize, Box<dyn place::AgentHandle>)| {
                scope.spawn(move || (target, place.end()))
            };
            let ending: Vec<_> = left.into_iter().map(end).collect();
            ending.into_iter().filter_map(|one| one.join().ok()).collect()
        })
    }

    /// Asks everybody for the time who has not been asked for a second.
    pub(super) fn send_due_pings(&mut self) {
        let now = monotonic_now();
        for (target, mate) in self.sessions.iter_mut().enumerate().filter(|(_, mate)| mate.is_ping_due(now)) {
            let id = mate.begin_ping(now);
            self.hub.send(target, &AgentOrder::Ping { id });
        }
    }

    /// What came until `until`, pongs left out: they have done their work.
    pub(super) fn receive(&mut self, until: Nanos) -> io::Result<Vec<ReceivedReport>> {
        let heard = if self.backlog.is_empty() { self.receive_all(until)? } else { Vec::new() };
        self.backlog.extend(heard);
        Ok(self.backlog.drain(..).collect())
    }

    fn receive_all(&mut self, until: Nanos) -> io::Result<Vec<ReceivedReport>> {
        let heard = self.hub.receive(until)?;
        Ok(heard.into_iter().filter_map(|heard| self.consume_pong(heard)).collect())
    }

    /// What is no answer that was waited for; one that cannot be believed is a reason to give its target up.
    fn consume_pong(&mut self, heard: ReceivedReport) -> Option<ReceivedReport> {
        let Ok(AgentReport::Pong { id, at }) = heard.report else { return Some(heard) };
        let Some(mate) = self.sessions.get_mut(heard.index) else { return Some(heard) };
        match mate.accept_pong(id, at, heard.at) {
            Ok(true) => None,
            Ok(false) => Some(heard),
            Err(reason) => Some(ReceivedReport { report: Err(reason), ..heard }),
        }
    }

    /// Compares the clocks of these targets with ours, one after the other so that none waits for another.
    pub(super) fn synchronise_clocks(&mut self, who: &[usize]) -> io::Result<()> {
        let begun = monotonic_now();
        for target in who {
            for _ in 0..ROUNDS {
                let now = monotonic_now();
                let Some(mate) = self.sessions.get_mut(*target).filter(|mate| mate.lost.is_none()) else {
                    break;
                };
                if now.since(begun) > ALL || !mate.has_answered() {
                    break;
                }
                let id = mate.begin_ping(now);
                self.hub.send(*target, &AgentOrder::Ping { id });
                self.await_pong(*target, Nanos(now.0 + TRIP.0))?;
            }
        }
        Ok(())
    }

    fn await_pong(&mut self, target: usize, until: Nanos) -> io::Result<()> {
        while !self.sessions.get(target).is_none_or(TargetSession::has_answered) && monotonic_now() < until {
            let heard = self.receive_all(until)?;
            self.backlog.extend(heard);
        }
        Ok(())
    }
}

impl Drop for ConnectedTargets {
    fn drop(&mut self) {
        self.shut_down();
    }
}
