//! The iteration that is going on: what its targets tell of it is held until all have come, because a loss on the way
//! decides whether it counts.

use perflab_model::{Event, Nanos, Outcome, Slot, What};

/// A slot that some targets are at.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) index: u32,
    pub(super) slot: Slot,
    who: Vec<usize>,
    /// Each target's events, in the order of `who`; the last is its iteration's end, if it came to that.
    told: Vec<Vec<Event>>,
    /// The first target that was lost on the way, and why.
    spoilt: Option<(usize, String)>,
    released: Option<Nanos>,
}

impl Open {
    pub(super) fn new(index: u32, slot: Slot, who: Vec<usize>) -> Self {
        let told = vec![Vec::new(); who.len()];
        Open { index, slot, who, told, spoilt: None, released: None }
    }

    pub(super) fn has(&self, target: usize) -> bool {
        self.who.contains(&target)
    }

    pub(super) fn released(&mut self, at: Nanos) {
        self.released = Some(at);
    }

    pub(super) fn told(&self, target: usize) -> &[Event] {
        let place = self.who.iter().position(|one| *one == target);
        place.and_then(|place| self.told.get(place)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn ended(&self, target: usize) -> bool {
        self.told(target).iter().any(|event| matches!(event.what, What::IterationEnded { .. }))
    }

    pub(super) fn hold(&mut self, target: usize, event: Event) {
        let place = self.who.iter().position(|one| *one == target);
        if let Some(told) = place.and_then(|place| self.told.get_mut(place)) {
            told.push(event);
        }
    }

    /// A target was lost while the slot was open.
    pub(super) fn lose(&mut self, target: usize, reason: &str) {
        if self.has(target) {
            self.spoilt.get_or_insert_with(|| (target, reason.to_owned()));
        }
    }

    /// Everything that is to be told of it, and whether it went well. One that began and was not in step to its end
    /// gives no samples: its targets had less company than the case says.
    pub(super) fn close(self, now: Nanos, names: &[String]) -> (Vec<Event>, bool) {
        let Some(released) = self.released else { return (Vec::new(), self.spoilt.is_none()) };
        let (mut events, mut good) = (Vec::new(), true);
        for (target, told) in self.who.iter().zip(self.told) {
            let spoilt = self.spoilt.as_ref().map(|(lost, reason)| {
                let name = names.get(*lost).map_or("a target", String::as_str);
                if lost == target { reason.clone() } else { format!("{name} was lost meanwhile: {reason}") }
            });
            let end = Ending { slot: self.index, target: *target, released, now };
            let (mine, fine) = end.of(told, spoilt);
            good &= fine;
            events.extend(mine);
        }
        (events, good)
    }
}

/// The end of one target's iteration.
struct Ending {
    slot: u32,
    target: usize,
    released: Nanos,
    now: Nanos,
}

impl Ending {
    fn of(&self, told: Vec<Event>, spoilt: Option<String>) -> (Vec<Event>, bool) {
        let mut events = told;
        if let Some(reason) = spoilt {
            events.retain(|event| !matches!(event.what, What::Sample(_)));
            let failed = Outcome::Failed { reason };
            match events.iter_mut().find_map(|event| outcome(&mut event.what)) {
                Some(outcome) => *outcome = failed,
                None => events.push(self.event(failed)),
            }
        } else if !events.iter_mut().any(|event| outcome(&mut event.what).is_some()) {
            events.push(self.event(Outcome::Interrupted));
        }
        let good =
            events.iter_mut().all(|event| outcome(&mut event.what).is_none_or(|how| *how == Outcome::Ok));
        (events, good)
    }

    fn event(&self, outcome: Outcome) -> Event {
        let what = What::IterationEnded {
            slot: self.slot,
            outcome,
            start: self.released.min(self.now),
            end: self.now,
        };
        Event { at: self.now, target: u32::try_from(self.target).ok(), what }
    }
}

fn outcome(what: &mut What) -> Option<&mut Outcome> {
    match what {
        What::IterationEnded { outcome, .. } => Some(outcome),
        _ => None,
    }
}
