//! One target during a run: its clock, its life, what it has told so far.

use std::collections::HashMap;

use perflab_model::event::{Doing, Standing};
use perflab_model::{Clock, Facts, Nanos, TargetRecord};

use perflab_observe::monotonic_now;

use crate::offset::{Offset, Trip};
use crate::place::Place;
use crate::protocol::Hello;

/// How often a target is asked for the time.
const EVERY: Nanos = Nanos(1_000_000_000);

/// Warnings of a target that are passed on, from its start to its end; the others are counted.
pub(super) const WARNINGS: u64 = 100;
/// What it may print outside of iterations, in bytes; the rest is counted.
pub(super) const PRINTED: u64 = 4 << 20;
/// Gaps of its monitors that are passed on,
pub(super) const GAPS: u64 = 1_000;
/// and settings that it brought about or put back: as many as a run of many thousand iterations has.
pub(super) const CHANGES: u64 = 100_000;

/// A target.
#[derive(Debug)]
pub(super) struct Mate {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) place: Option<Box<dyn Place>>,
    pub(super) hello: Option<Hello>,
    pub(super) facts: Facts,
    pub(super) offset: Offset,
    /// Each monitor that it has opened: its columns, and the rows of the last tick that was told whole.
    pub(super) series: HashMap<String, (usize, usize)>,
    pub(super) lost: Option<String>,
    warnings: u64,
    printed: u64,
    gaps: u64,
    changes: u64,
    /// What it told before the run began, in bytes of memory.
    pub(super) early: usize,
    /// The last question for the time: its number, when it was sent, whether it was answered.
    asked: Option<Question>,
    pub(super) longest: Nanos,
    /// What it is doing, and since when.
    doing: (Doing, Nanos),
}

#[derive(Debug, Clone, Copy)]
struct Question {
    id: u64,
    sent: Nanos,
    answered: bool,
}

impl Mate {
    /// `place` is missing of one that could not be started.
    pub(super) fn new(name: String, kind: String, place: Option<Box<dyn Place>>) -> Self {
        Mate {
            name,
            kind,
            place,
            hello: None,
            facts: Facts::default(),
            offset: Offset::default(),
            series: HashMap::new(),
            lost: None,
            warnings: 0,
            printed: 0,
            gaps: 0,
            changes: 0,
            early: 0,
            asked: None,
            longest: Nanos(0),
            doing: (Doing::Starts, monotonic_now()),
        }
    }

    /// Notes what it is doing from now on.
    pub(super) fn does(&mut self, what: Doing) {
        if self.doing.0 != what {
            self.doing = (what, monotonic_now());
        }
    }

    /// Counts a warning; says whether it is passed on.
    pub(super) fn may_warn(&mut self) -> bool {
        self.warnings += 1;
        self.warnings <= WARNINGS
    }

    /// Counts what it prints outside of an iteration; says whether it is passed on.
    pub(super) fn may_print(&mut self, length: usize) -> bool {
        self.printed = self.printed.saturating_add(length as u64);
        self.printed <= PRINTED
    }

    /// Counts a gap of a monitor; says whether it is passed on.
    pub(super) fn may_gap(&mut self) -> bool {
        self.gaps += 1;
        self.gaps <= GAPS
    }

    /// Counts a setting that it brought about or put back; says whether it is passed on.
    pub(super) fn may_change(&mut self) -> bool {
        self.changes += 1;
        self.changes <= CHANGES
    }

    /// What was dropped of what it said, in a sentence of its own; asked once, at its end.
    pub(super) fn dropped(&self) -> Option<String> {
        let counted = [
            (self.warnings.saturating_sub(WARNINGS), "further warnings"),
            (self.gaps.saturating_sub(GAPS), "further gaps"),
            (self.changes.saturating_sub(CHANGES), "further changes of settings"),
        ];
        let counted = counted.into_iter().filter(|(count, _)| *count > 0);
        let mut said: Vec<String> = counted.map(|(count, what)| format!("{count} {what}")).collect();
        if self.printed > PRINTED {
            said.push("some of what it printed outside of iterations".into());
        }
        let said = said.join(", ");
        (!said.is_empty()).then(|| format!("{}: {said} were dropped, for there were too many", self.name))
    }

    /// For those who watch.
    pub(super) fn standing(&self) -> Standing {
        let doing = if self.lost.is_some() { Doing::Lost } else { self.doing.0 };
        Standing { name: self.name.clone(), doing, since: self.doing.1 }
    }

    /// The number of a new question, if it is time for one.
    pub(super) fn due(&self, now: Nanos) -> bool {
        self.lost.is_none() && self.asked.is_none_or(|asked| asked.answered && now.since(asked.sent) >= EVERY)
    }

    /// Notes a question that is about to be sent.
    pub(super) fn ask(&mut self, now: Nanos) -> u64 {
        let id = self.asked.map_or(0, |asked| asked.id + 1);
        self.asked = Some(Question { id, sent: now, answered: false });
        id
    }

    /// Takes an answer; says whether it was the one that is waited for.
    ///
    /// # Errors
    /// It is the time of no machine; why is for people.
    pub(super) fn answered(&mut self, id: u64, theirs: Nanos, back: Nanos) -> Result<bool, String> {
        let Some(asked) = self.asked.as_mut().filter(|asked| asked.id == id && !asked.answered) else {
            return Ok(false);
        };
        asked.answered = true;
        let trip = Trip { sent: asked.sent, theirs, back };
        self.longest = trip.time();
        self.offset.add(trip).map(|()| true)
    }

    /// Whether the last question is answered.
    pub(super) fn has_answered(&self) -> bool {
        self.asked.is_none_or(|asked| asked.answered)
    }

    /// How long it has been silent.
    pub(super) fn silent(&self, now: Nanos) -> Nanos {
        let waiting = self.asked.filter(|asked| !asked.answered && self.lost.is_none());
        waiting.map_or(Nanos(0), |asked| now.since(asked.sent))
    }

    pub(super) fn clock(&self, now: Nanos) -> Clock {
        self.offset.clock(now).unwrap_or_default()
    }

    /// Its entry in the run's manifest.
    pub(super) fn record(&self, now: Nanos) -> TargetRecord {
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
