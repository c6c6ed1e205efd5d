//! All targets of a run, and the one thread that listens to them.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::channel;

use perflab_model::Nanos;
use perflab_model::event::{Doing, Standing};
use perflab_model::study::Study;
use perflab_observe::monotonic_now;

use super::mate::Mate;
use crate::hub::{Heard, Hub};
use crate::place::{self, Started};
use crate::protocol::{Order, Report};
use crate::{ConductError, Host, Stop};

/// Round trips before each release.
const ROUNDS: u32 = 8;
/// How long one of them is waited for,
const TRIP: Nanos = Nanos(20_000_000);
/// and all of all targets together: clocks that were compared a second ago will do.
const ALL: Nanos = Nanos(200_000_000);

/// The targets.
#[derive(Debug)]
pub(super) struct Crew {
    hub: Hub,
    pub(super) mates: Vec<Mate>,
    /// What came while something else was waited for.
    backlog: VecDeque<Heard>,
}

/// The names of a study's targets with what each is, in order.
pub(super) fn names(study: &Study) -> Vec<(String, &perflab_model::study::TargetUse)> {
    let each = |(name, target): (&String, _)| -> Vec<(String, _)> {
        let target: &perflab_model::study::TargetUse = target;
        match target.count {
            1 => vec![(name.clone(), target)],
            count => (1..=count).map(|number| (format!("{name}{number}"), target)).collect(),
        }
    };
    study.target.iter().flat_map(each).collect()
}

fn starting(name: &str) -> Standing {
    Standing { name: name.into(), doing: Doing::Starts, since: monotonic_now() }
}

impl Crew {
    /// Starts every target of the study, all at the same time; `show` is told whenever one more is there. Also gives those that
    /// could not be started, with the reason: each has its place among the mates.
    pub(super) fn start(
        study: &Study,
        host: &Host,
        stop: &Stop,
        show: &dyn Fn(Vec<Standing>) -> Result<(), ConductError>,
    ) -> Result<(Self, Vec<(usize, ConductError)>), ConductError> {
        let names = names(study);
        let (done, started) = channel();
        let mut all: Vec<(usize, Result<Started, ConductError>)> = Vec::new();
        let mut standing: Vec<Standing> = names.iter().map(|(name, _)| starting(name)).collect();
        let mut shown = show(standing.clone());
        std::thread::scope(|scope| {
            for (index, (name, target)) in names.iter().enumerate() {
                let done = done.clone();
                scope.spawn(move || drop(done.send((index, place::start(name, target, host, stop)))));
            }
            drop(done);
            for (index, one) in started {
                if let Some(here) = standing.get_mut(index) {
                    here.doing = if one.is_ok() { Doing::Ready } else { Doing::Lost };
                }
                all.push((index, one));
                if shown.is_ok() {
                    shown = show(standing.clone());
                }
            }
        });
        shown?;
        all.sort_by_key(|(index, _)| *index);
        let mut crew = Crew {
            hub: Hub::new().map_err(|source| ConductError::Speak { source })?,
            mates: Vec::new(),
            backlog: VecDeque::new(),
        };
        let mut failed = Vec::new();
        for ((name, target), (index, started)) in names.into_iter().zip(all) {
            let place = match started {
                Ok(started) => {
                    crew.hub.add(started.channel).map_err(|source| ConductError::Speak { source })?;
                    Some(started.place)
                }
                Err(error) => {
                    crew.hub.add_nobody();
                    failed.push((index, error));
                    None
                }
            };
            crew.mates.push(Mate::new(name, target.kind.to_string(), place));
        }
        Ok((crew, failed))
    }

    /// Notes what these targets are doing.
    pub(super) fn does(&mut self, who: &[usize], what: Doing) {
        who.iter()
            .for_each(|target| self.mates.get_mut(*target).into_iter().for_each(|mate| mate.does(what)));
    }

    /// Notes what all are doing.
    pub(super) fn all_do(&mut self, what: Doing) {
        self.mates.iter_mut().for_each(|mate| mate.does(what));
    }

    pub(super) fn send(&mut self, target: usize, order: &Order) {
        self.hub.send(target, order);
    }

    /// Gives a target up: its stream is closed, and it is ended. Gives what it said beside the stream.
    pub(super) fn bury(&mut self, target: usize, reason: &str) -> String {
        self.hub.close(target);
        let Some(mate) = self.mates.get_mut(target) else { return String::new() };
        mate.lost = Some(reason.to_owned());
        mate.place.take().map(|mut place| place.end()).unwrap_or_default()
    }

    /// Ends all that are left; gives what each said beside its stream.
    pub(super) fn dismiss(&mut self) -> Vec<(usize, String)> {
        for target in 0..self.mates.len() {
            self.hub.close(target);
        }
        let places = self.mates.iter_mut().enumerate().map(|(target, mate)| (target, mate.place.take()));
        let left: Vec<_> = places.filter_map(|(target, place)| Some((target, place?))).collect();
        std::thread::scope(|scope| {
            let end = |(target, mut place): (usize, Box<dyn place::Place>)| {
                scope.spawn(move || (target, place.end()))
            };
            let ending: Vec<_> = left.into_iter().map(end).collect();
            ending.into_iter().filter_map(|one| one.join().ok()).collect()
        })
    }

    /// Asks everybody for the time who has not been asked for a second.
    pub(super) fn ask(&mut self) {
        let now = monotonic_now();
        for (target, mate) in self.mates.iter_mut().enumerate().filter(|(_, mate)| mate.due(now)) {
            let id = mate.ask(now);
            self.hub.send(target, &Order::Ping { id });
        }
    }

    /// What came until `until`, pongs left out: they have done their work.
    pub(super) fn hear(&mut self, until: Nanos) -> io::Result<Vec<Heard>> {
        let heard = if self.backlog.is_empty() { self.listen(until)? } else { Vec::new() };
        self.backlog.extend(heard);
        Ok(self.backlog.drain(..).collect())
    }

    fn listen(&mut self, until: Nanos) -> io::Result<Vec<Heard>> {
        let heard = self.hub.wait(until)?;
        Ok(heard.into_iter().filter_map(|heard| self.but_pongs(heard)).collect())
    }

    /// What is no answer that was waited for; one that cannot be believed is a reason to give its target up.
    fn but_pongs(&mut self, heard: Heard) -> Option<Heard> {
        let Ok(Report::Pong { id, at }) = heard.said else { return Some(heard) };
        let Some(mate) = self.mates.get_mut(heard.link) else { return Some(heard) };
        match mate.answered(id, at, heard.at) {
            Ok(true) => None,
            Ok(false) => Some(heard),
            Err(reason) => Some(Heard { said: Err(reason), ..heard }),
        }
    }

    /// Compares the clocks of these targets with ours, one after the other so that none waits for another.
    pub(super) fn synchronise(&mut self, who: &[usize]) -> io::Result<()> {
        let begun = monotonic_now();
        for target in who {
            for _ in 0..ROUNDS {
                let now = monotonic_now();
                let Some(mate) = self.mates.get_mut(*target).filter(|mate| mate.lost.is_none()) else {
                    break;
                };
                if now.since(begun) > ALL || !mate.has_answered() {
                    break;
                }
                let id = mate.ask(now);
                self.hub.send(*target, &Order::Ping { id });
                self.await_answer(*target, Nanos(now.0 + TRIP.0))?;
            }
        }
        Ok(())
    }

    fn await_answer(&mut self, target: usize, until: Nanos) -> io::Result<()> {
        while !self.mates.get(target).is_none_or(Mate::has_answered) && monotonic_now() < until {
            let heard = self.listen(until)?;
            self.backlog.extend(heard);
        }
        Ok(())
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.dismiss();
    }
}
