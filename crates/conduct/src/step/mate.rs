//! One target during a run: its clock, its life, what it has told so far.

use std::collections::HashMap;

use perflab_model::event::{TargetState, TargetStatus};
use perflab_model::{ClockOffset, Facts, Nanos, TargetRecord};

use perflab_observe::monotonic_now;

use crate::offset::{ClockOffsetEstimator, RoundTrip};
use crate::place::AgentHandle;
use crate::protocol::AgentHello;

/// How often a target is asked for the time.
const EVERY: Nanos = Nanos(1_000_000_000);

/// Warnings of a target that are passed on, from its start to its end; the others are counted.
pub(super) const MAX_WARNINGS: u64 = 100;
/// What it may print outside of iterations, in bytes; the rest is counted.
pub(super) const MAX_PRINTED_BYTES: u64 = 4 << 20;
/// Gaps of its monitors that are passed on,
pub(super) const MAX_GAPS: u64 = 1_000;
/// and settings that it brought about or put back: as many as a run of many thousand iterations has.
pub(super) const MAX_CHANGES: u64 = 100_000;

/// A target.
#[derive(Debug)]
pub(super) struct TargetSession {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) handle: Option<Box<dyn AgentHandle>>,
    pub(super) hello: Option<AgentHello>,
    pub(super) facts: Facts,
    pub(super) offset: ClockOffsetEstimator,
    /// Each monitor that it has opened: its columns, and the rows of the last tick that was told whole.
    pub(super) series: HashMap<String, (usize, usize)>,
    pub(super) lost: Option<String>,
    warnings: u64,
    printed: u64,
    gaps: u64,
    changes: u64,
    /// What it told before the run began, in bytes of memory.
    pub(super) early_bytes: usize,
    /// The last question for the time: its number, when it was sent, whether it was answered.
    last_question: Option<ClockQuestion>,
    pub(super) longest: Nanos,
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
    /// `place` is missing of one that could not be started.
    pub(super) fn new(name: String, kind: String, place: Option<Box<dyn AgentHandle>>) -> Self {
        TargetSession {
            name,
            kind,
            handle: place,
            hello: None,
            facts: Facts::default(),
            offset: ClockOffsetEstimator::default(),
            series: HashMap::new(),
            lost: None,
            warnings: 0,
            printed: 0,
            gaps: 0,
            changes: 0,
            early_bytes: 0,
            last_question: None,
            longest: Nanos(0),
            activity: (TargetState::Starts, monotonic_now()),
        }
    }

    /// Notes what it is doing from now on.
    pub(super) fn set_activity(&mut self, what: TargetState) {
        if self.activity.0 != what {
            self.activity = (what, monotonic_now());
        }
    }

    /// Counts a warning; says whether it is passed on.
    pub(super) fn may_warn(&mut self) -> bool {
        self.warnings += 1;
        self.warnings <= MAX_WARNINGS
    }

    /// Counts what it prints outside of an iteration; says whether it is passed on.
    pub(super) fn may_print(&mut self, length: usize) -> bool {
        self.printed = self.printed.saturating_add(length as u64);
        self.printed <= MAX_PRINTED_BYTES
    }

    /// Counts a gap of a monitor; says whether it is passed on.
    pub(super) fn may_report_gap(&mut self) -> bool {
        self.gaps += 1;
        self.gaps <= MAX_GAPS
    }

    /// Counts a setting that it brought about or put back; says whether it is passed on.
    pub(super) fn may_report_change(&mut self) -> bool {
        self.changes += 1;
        self.changes <= MAX_CHANGES
    }

    /// What was dropped of what it said, in a sentence of its own; asked once, at its end.
    pub(super) fn dropped_summary(&self) -> Option<String> {
        let counted = [
            (self.warnings.saturating_sub(MAX_WARNINGS), "further warnings"),
            (self.gaps.saturating_sub(MAX_GAPS), "further gaps"),
            (self.changes.saturating_sub(MAX_CHANGES), "further changes of settings"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let mut said: Vec<String> = counted.map(|(count, what)| format!("{count} {what}")).collect();
        if self.printed > MAX_PRINTED_BYTES {
            said.push("some of what it printed outside of iterations".into());
        }
        let said = said.join(", ");
        (!said.is_empty()).then(|| format!("{}: {said} were dropped, for there were too many", self.name))
    }

    /// For those who watch.
    pub(super) fn status(&self) -> TargetStatus {
        let doing = if self.lost.is_some() { TargetState::Lost } else { self.activity.0 };
        TargetStatus { name: self.name.clone(), doing, since: self.activity.1 }
    }

    /// The number of a new question, if it is time for one.
    pub(super) fn is_ping_due(&self, now: Nanos) -> bool {
        self.lost.is_none()
            && self.last_question.is_none_or(|asked| asked.answered && now.since(asked.sent) >= EVERY)
    }

    /// Notes a question that is about to be sent.
    pub(super) fn begin_ping(&mut self, now: Nanos) -> u64 {
        let id = self.last_question.map_or(0, |asked| asked.id + 1);
        self.last_question = Some(ClockQuestion { id, sent: now, answered: false });
        id
    }

    /// Takes an answer; says whether it was the one that is waited for.
    ///
    /// # Errors
    /// It is the time of no machine; why is for people.
    pub(super) fn accept_pong(&mut self, id: u64, theirs: Nanos, back: Nanos) -> Result<bool, String> {
        let Some(asked) = self.last_question.as_mut().filter(|asked| asked.id == id && !asked.answered)
        else {
            return Ok(false);
        };
        asked.answered = true;
        let trip = RoundTrip { sent: asked.sent, theirs, back };
        self.longest = trip.duration();
        self.offset.add_trip(trip).map(|()| true)
    }

    /// Whether the last question is answered.
    pub(super) fn has_answered(&self) -> bool {
        self.last_question.is_none_or(|asked| asked.answered)
    }

    /// How long it has been silent.
    pub(super) fn silence(&self, now: Nanos) -> Nanos {
        let waiting = self.last_question.filter(|asked| !asked.answered && self.lost.is_none());
        waiting.map_or(Nanos(0), |asked| now.since(asked.sent))
    }

    pub(super) fn clock(&self, now: Nanos) -> ClockOffset {
        self.offset.clock(now).unwrap_or_default()
    }

    /// Its entry in the run's manifest.
    pub(super) fn target_record(&self, now: Nanos) -> TargetRecord {
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
