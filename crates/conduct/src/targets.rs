//! The connected targets of a run: launch, connection, clock, liveness, and what each has reported so far.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::channel;

use perflab_model::event::{TargetState, TargetStatus};
use perflab_model::{ClockOffset, FactDocument, Facts, Nanos, StopRequest, TargetRecord};
use perflab_observe::monotonic_now;

use crate::clock_offset::{ClockOffsetEstimator, RoundTrip};
use crate::error::ConductError;
use crate::launcher::agent_handle::{AgentHandle, LaunchedAgent};
use crate::launcher::launch::{LaunchableTarget, launch_target};
use crate::multiplexer::{Multiplexer, ReceivedReport};
use crate::protocol::{AgentHello, AgentOrder, AgentReport};
use crate::run_context::LocalMachine;

/// Round trips before each release.
const ROUNDS: u32 = 8;

/// How long one of them is waited for,
const TRIP: Nanos = Nanos(20_000_000);

/// and all of all targets together: clocks that were compared a second ago will do.
const ALL: Nanos = Nanos(200_000_000);

/// The targets.
#[derive(Debug)]
pub(crate) struct ConnectedTargets {
    multiplexer: Multiplexer,
    pub(crate) sessions: Vec<TargetSession>,
    /// What came while something else was waited for.
    backlog: VecDeque<ReceivedReport>,
}

fn starting_status(name: &str) -> TargetStatus {
    TargetStatus { name: name.into(), state: TargetState::Starts, since: monotonic_now() }
}

impl ConnectedTargets {
    /// No target. `waker` ends a wait when this host has something to say.
    pub(crate) fn none(waker: OwnedFd) -> Result<Self, ConductError> {
        let mut multiplexer = Multiplexer::new().map_err(|source| ConductError::Speak { source })?;
        multiplexer.set_waker(waker).map_err(|source| ConductError::Speak { source })?;
        Ok(ConnectedTargets { multiplexer, sessions: Vec::new(), backlog: VecDeque::new() })
    }

    /// Starts every target of the plan, all at the same time; `show` is called whenever one more is there. Also gives those that
    /// could not be started, with the reason: each keeps its index among the sessions.
    pub(crate) fn launch_all(
        planned: &[LaunchableTarget],
        machine: &LocalMachine,
        waker: OwnedFd,
        stop: &StopRequest,
        show: &dyn Fn(Vec<TargetStatus>) -> Result<(), ConductError>,
    ) -> Result<(Self, Vec<(usize, ConductError)>), ConductError> {
        let (done, started) = channel();
        let mut all: Vec<(usize, Result<LaunchedAgent, ConductError>)> = Vec::new();
        let mut statuses: Vec<TargetStatus> =
            planned.iter().map(|target| starting_status(target.name())).collect();
        let mut shown = show(statuses.clone());
        std::thread::scope(|scope| {
            for (index, target) in planned.iter().enumerate() {
                let done = done.clone();
                scope.spawn(move || drop(done.send((index, launch_target(target, machine, stop)))));
            }
            drop(done);
            for (index, one) in started {
                if let Some(status) = statuses.get_mut(index) {
                    status.state = if one.is_ok() { TargetState::Ready } else { TargetState::Lost };
                }
                all.push((index, one));
                if shown.is_ok() {
                    shown = show(statuses.clone());
                }
            }
        });
        shown?;
        all.sort_by_key(|(index, _)| *index);
        let mut targets = ConnectedTargets::none(waker)?;
        let mut failed = Vec::new();
        for (target, (index, started)) in planned.iter().zip(all) {
            let handle = match started {
                Ok(started) => {
                    targets
                        .multiplexer
                        .add(started.connection)
                        .map_err(|source| ConductError::Speak { source })?;
                    Some(started.handle)
                }
                Err(error) => {
                    targets.multiplexer.add_absent();
                    failed.push((index, error));
                    None
                }
            };
            targets.sessions.push(TargetSession::new(
                target.name().into(),
                target.kind().to_string(),
                handle,
            ));
        }
        Ok((targets, failed))
    }

    /// Notes what these targets are doing.
    pub(crate) fn set_activity(&mut self, who: &[usize], what: TargetState) {
        who.iter().for_each(|target| {
            self.sessions.get_mut(*target).into_iter().for_each(|session| session.set_activity(what))
        });
    }

    /// Notes what all are doing.
    pub(crate) fn set_all_activity(&mut self, what: TargetState) {
        self.sessions.iter_mut().for_each(|session| session.set_activity(what));
    }

    pub(crate) fn send(&mut self, target: usize, order: &AgentOrder) {
        self.multiplexer.send(target, order);
    }

    /// Gives a target up: its stream is closed, and it is ended. Gives what it printed beside the stream.
    pub(crate) fn drop_target(&mut self, target: usize, reason: &str) -> String {
        self.multiplexer.close(target);
        let Some(session) = self.sessions.get_mut(target) else { return String::new() };
        session.lost = Some(reason.to_owned());
        session.handle.take().map(|mut handle| handle.end()).unwrap_or_default()
    }

    /// Ends all that are left; gives what each printed beside its stream.
    pub(crate) fn shut_down(&mut self) -> Vec<(usize, String)> {
        for target in 0..self.sessions.len() {
            self.multiplexer.close(target);
        }
        let handles =
            self.sessions.iter_mut().enumerate().map(|(target, session)| (target, session.handle.take()));
        let left: Vec<_> = handles.filter_map(|(target, handle)| Some((target, handle?))).collect();
        std::thread::scope(|scope| {
            let end = |(target, mut handle): (usize, Box<dyn AgentHandle>)| {
                scope.spawn(move || (target, handle.end()))
            };
            let ending: Vec<_> = left.into_iter().map(end).collect();
            ending.into_iter().filter_map(|one| one.join().ok()).collect()
        })
    }

    /// Asks every target for the time that has not been asked for a second.
    pub(crate) fn send_due_pings(&mut self) {
        let now = monotonic_now();
        for (target, session) in
            self.sessions.iter_mut().enumerate().filter(|(_, session)| session.is_ping_due(now))
        {
            let id = session.begin_ping(now);
            self.multiplexer.send(target, &AgentOrder::Ping { id });
        }
    }

    /// What came until `until`, pongs left out: they have done their work.
    pub(crate) fn receive(&mut self, until: Nanos) -> io::Result<Vec<ReceivedReport>> {
        let heard = if self.backlog.is_empty() { self.receive_all(until)? } else { Vec::new() };
        self.backlog.extend(heard);
        Ok(self.backlog.drain(..).collect())
    }

    fn receive_all(&mut self, until: Nanos) -> io::Result<Vec<ReceivedReport>> {
        let heard = self.multiplexer.receive(until)?;
        Ok(heard.into_iter().filter_map(|heard| self.consume_pong(heard)).collect())
    }

    /// What is not an answer that was waited for; one that cannot be believed is a reason to give its target up.
    fn consume_pong(&mut self, heard: ReceivedReport) -> Option<ReceivedReport> {
        let Ok(AgentReport::Pong { id, at }) = heard.report else { return Some(heard) };
        let Some(session) = self.sessions.get_mut(heard.index) else { return Some(heard) };
        match session.accept_pong(id, at, heard.at) {
            Ok(true) => None,
            Ok(false) => Some(heard),
            Err(reason) => Some(ReceivedReport { report: Err(reason), ..heard }),
        }
    }

    /// Compares the clocks of these targets with ours, one after the other so that none waits for another.
    pub(crate) fn synchronise_clocks(&mut self, who: &[usize]) -> io::Result<()> {
        let begun = monotonic_now();
        for target in who {
            for _ in 0..ROUNDS {
                let now = monotonic_now();
                let Some(session) = self.sessions.get_mut(*target).filter(|session| session.lost.is_none())
                else {
                    break;
                };
                if now.since(begun) > ALL || !session.has_answered() {
                    break;
                }
                let id = session.begin_ping(now);
                self.multiplexer.send(*target, &AgentOrder::Ping { id });
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

/// How often a target is asked for the time.
const EVERY: Nanos = Nanos(1_000_000_000);

/// Warnings of a target that are passed on, from its start to its end; the others are counted.
const MAX_WARNINGS: u64 = 100;

/// What it may print outside of iterations, in bytes; the rest is counted.
const MAX_PRINTED_BYTES: u64 = 4 << 20;

/// Gaps of its monitors that are passed on,
const MAX_GAPS: u64 = 1_000;

/// and settings that it brought about or put back: as many as a run of many thousand iterations has.
const MAX_CHANGES: u64 = 100_000;

/// A target.
#[derive(Debug)]
pub(crate) struct TargetSession {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) handle: Option<Box<dyn AgentHandle>>,
    pub(crate) hello: Option<AgentHello>,
    pub(crate) facts: Facts,
    pub(crate) offset: ClockOffsetEstimator,
    /// Each monitor that it has opened: its columns, and the rows of the last tick that was sent whole.
    pub(crate) series: HashMap<String, (usize, usize)>,
    pub(crate) lost: Option<String>,
    warnings: u64,
    printed: u64,
    /// Names of the documents that it sent.
    documents: Vec<&'static str>,
    gaps: u64,
    changes: u64,
    /// What it reported before the run began, in bytes of memory.
    pub(crate) early_bytes: usize,
    /// The last question for the time: its number, when it was sent, whether it was answered.
    last_question: Option<ClockQuestion>,
    pub(crate) longest: Nanos,
    /// What it is doing, and since when.
    activity: (TargetState, Nanos),
}

#[derive(Debug, Clone, Copy)]
struct ClockQuestion {
    id: u64,
    sent: Nanos,
    answered: bool,
}

impl TargetSession {
    /// `handle` is missing for one that could not be started.
    pub(crate) fn new(name: String, kind: String, handle: Option<Box<dyn AgentHandle>>) -> Self {
        TargetSession {
            name,
            kind,
            handle,
            hello: None,
            facts: Facts::default(),
            offset: ClockOffsetEstimator::default(),
            series: HashMap::new(),
            lost: None,
            warnings: 0,
            printed: 0,
            documents: Vec::new(),
            gaps: 0,
            changes: 0,
            early_bytes: 0,
            last_question: None,
            longest: Nanos(0),
            activity: (TargetState::Starts, monotonic_now()),
        }
    }

    /// Notes what it is doing from now on.
    pub(crate) fn set_activity(&mut self, what: TargetState) {
        if self.activity.0 != what {
            self.activity = (what, monotonic_now());
        }
    }

    /// Counts a warning; says whether it is passed on.
    pub(crate) fn may_warn(&mut self) -> bool {
        self.warnings += 1;
        self.warnings <= MAX_WARNINGS
    }

    /// Counts what it prints outside of an iteration; says whether it is passed on.
    pub(crate) fn may_print(&mut self, length: usize) -> bool {
        self.printed = self.printed.saturating_add(length as u64);
        self.printed <= MAX_PRINTED_BYTES
    }

    /// Notes a document about itself; says whether it is passed on: each that is known once, and of bounded length.
    pub(crate) fn may_send_document(&mut self, document: &FactDocument) -> bool {
        let name = FactDocument::NAMES.into_iter().find(|name| *name == document.name);
        let Some(name) = name.filter(|_| document.text.len() <= FactDocument::LONGEST) else { return false };
        let is_new = !self.documents.contains(&name);
        if is_new {
            self.documents.push(name);
        }
        is_new
    }

    /// Whether it sent this document about itself.
    pub(crate) fn has_sent_document(&self, name: &str) -> bool {
        self.documents.contains(&name)
    }

    /// Counts a gap of a monitor; says whether it is passed on.
    pub(crate) fn may_report_gap(&mut self) -> bool {
        self.gaps += 1;
        self.gaps <= MAX_GAPS
    }

    /// Counts a setting that it brought about or put back; says whether it is passed on.
    pub(crate) fn may_report_change(&mut self) -> bool {
        self.changes += 1;
        self.changes <= MAX_CHANGES
    }

    /// What was dropped of its reports, in a sentence of its own; asked once, at its end.
    pub(crate) fn dropped_summary(&self) -> Option<String> {
        let counted = [
            (self.warnings.saturating_sub(MAX_WARNINGS), "further warnings"),
            (self.gaps.saturating_sub(MAX_GAPS), "further gaps"),
            (self.changes.saturating_sub(MAX_CHANGES), "further changes of settings"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let mut dropped: Vec<String> = counted.map(|(count, what)| format!("{count} {what}")).collect();
        if self.printed > MAX_PRINTED_BYTES {
            dropped.push("some of what it printed outside of iterations".into());
        }
        let dropped = dropped.join(", ");
        (!dropped.is_empty())
            .then(|| format!("{}: {dropped} were dropped, for there were too many", self.name))
    }

    /// For those who watch.
    pub(crate) fn status(&self) -> TargetStatus {
        let state = if self.lost.is_some() { TargetState::Lost } else { self.activity.0 };
        TargetStatus { name: self.name.clone(), state, since: self.activity.1 }
    }

    /// The number of a new question, if it is time for one.
    fn is_ping_due(&self, now: Nanos) -> bool {
        self.lost.is_none()
            && self
                .last_question
                .is_none_or(|question| question.answered && now.since(question.sent) >= EVERY)
    }

    /// Notes a question that is about to be sent.
    fn begin_ping(&mut self, now: Nanos) -> u64 {
        let id = self.last_question.map_or(0, |question| question.id + 1);
        self.last_question = Some(ClockQuestion { id, sent: now, answered: false });
        id
    }

    /// Takes an answer; says whether it was the one that is waited for.
    ///
    /// # Errors
    /// It is the time of no machine; why is for people.
    fn accept_pong(&mut self, id: u64, theirs: Nanos, back: Nanos) -> Result<bool, String> {
        let Some(question) =
            self.last_question.as_mut().filter(|question| question.id == id && !question.answered)
        else {
            return Ok(false);
        };
        question.answered = true;
        let trip = RoundTrip { sent: question.sent, theirs, back };
        self.longest = trip.duration();
        self.offset.add_trip(trip).map(|()| true)
    }

    /// Whether the last question is answered.
    fn has_answered(&self) -> bool {
        self.last_question.is_none_or(|question| question.answered)
    }

    /// How long it has been silent.
    pub(crate) fn silence(&self, now: Nanos) -> Nanos {
        let waiting = self.last_question.filter(|question| !question.answered && self.lost.is_none());
        waiting.map_or(Nanos(0), |question| now.since(question.sent))
    }

    pub(crate) fn clock(&self, now: Nanos) -> ClockOffset {
        self.offset.clock(now).unwrap_or_default()
    }

    /// Its entry in the run's manifest.
    pub(crate) fn target_record(&self, now: Nanos) -> TargetRecord {
        let hello = self.hello.as_ref();
        TargetRecord {
            name: self.name.clone(),
            kind: self.kind.clone(),
            kernel: hello.map(|hello| hello.kernel.clone()).unwrap_or_default(),
            boot_id: hello.map(|hello| hello.boot_id.clone()).unwrap_or_default(),
            clock: self.clock(now),
            facts: self.facts.clone(),
        }
    }
}
