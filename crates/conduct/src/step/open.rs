//! The iteration that is going on: what its targets tell of it is held until all have come, because a loss on the way
//! decides whether it counts.

use std::collections::HashSet;

use perflab_model::profile::{Frame, Node, StackSample};
use perflab_model::{Event, Name, Nanos, Outcome, Slot, What};

/// What all targets of an open iteration together may make this side hold, in bytes of memory,
const HELD_BY_ALL: usize = 1 << 30;
/// and each of them: many guests get less, but always enough for an honest iteration.
const HELD_BY_EACH: std::ops::RangeInclusive<usize> = 16 << 20..=256 << 20;

/// A slot that some targets are at.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) index: u32,
    pub(super) slot: Slot,
    who: Vec<usize>,
    /// What each target told, in the order of `who`.
    told: Vec<Told>,
    /// Why it does not count in anybody, if it does not: the target that was lost on the way, and what is said of it.
    spoilt: Option<(usize, String)>,
    /// Why it is not begun at all, if it is not.
    lacking: Option<String>,
    released: Option<Nanos>,
}

/// What a target told of the slot so far.
#[derive(Debug, Default)]
struct Told {
    /// The last is its iteration's end, if it came to that.
    events: Vec<Event>,
    metrics: HashSet<Name>,
    ended: bool,
    /// What the events take of memory.
    bytes: usize,
}

impl Open {
    pub(super) fn new(index: u32, slot: Slot, who: Vec<usize>) -> Self {
        let told = who.iter().map(|_| Told::default()).collect();
        Open { index, slot, who, told, spoilt: None, lacking: None, released: None }
    }

    /// As [`Open::new`], of a slot whose level cannot be met any more: it is told as failed everywhere, and not begun.
    pub(super) fn lacking(index: u32, slot: Slot, who: Vec<usize>, why: String) -> Self {
        Open { lacking: Some(why), ..Open::new(index, slot, who) }
    }

    pub(super) fn is_lacking(&self) -> bool {
        self.lacking.is_some()
    }

    pub(super) fn has(&self, target: usize) -> bool {
        self.who.contains(&target)
    }

    pub(super) fn released(&mut self, at: Nanos) {
        self.released = Some(at);
    }

    fn of(&self, target: usize) -> Option<&Told> {
        let place = self.who.iter().position(|one| *one == target)?;
        self.told.get(place)
    }

    /// Whether the target has told of that metric.
    pub(super) fn has_told(&self, target: usize, metric: &str) -> bool {
        self.of(target).is_some_and(|told| told.metrics.contains(metric))
    }

    pub(super) fn ended(&self, target: usize) -> bool {
        self.of(target).is_some_and(|told| told.ended)
    }

    /// Keeps what a target told until the slot is over.
    ///
    /// # Errors
    /// It told more than this side will hold; why is for people.
    pub(super) fn hold(&mut self, target: usize, event: Event) -> Result<(), String> {
        let most = (HELD_BY_ALL / self.who.len().max(1)).clamp(*HELD_BY_EACH.start(), *HELD_BY_EACH.end());
        let place = self.who.iter().position(|one| *one == target);
        let Some(told) = place.and_then(|place| self.told.get_mut(place)) else { return Ok(()) };
        told.bytes = told.bytes.saturating_add(memory_of(&event));
        if told.bytes > most {
            let (index, most) = (self.index, perflab_model::Bytes(most as u64));
            return Err(format!(
                "it told more of iteration {index} than is held of a target ({most} of memory)"
            ));
        }
        match &event.what {
            What::Sample(sample) => drop(told.metrics.insert(sample.metric.clone())),
            What::IterationEnded { .. } => told.ended = true,
            _ => {}
        }
        told.events.push(event);
        Ok(())
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
            let (spoilt, told) = (self.lacking.clone().or(spoilt), told.events);
            let end = Ending { slot: self.index, target: *target, released, now };
            let (mine, fine) = end.of(told, spoilt);
            good &= fine;
            events.extend(mine);
        }
        (events, good)
    }
}

/// What an event takes of memory, at the least: small things that come in their thousands count as they are held, not as
/// they were sent.
pub(super) fn memory_of(event: &Event) -> usize {
    let text = |text: &String| size_of::<String>() + text.len();
    let own = match &event.what {
        What::Output { name, text, .. } => name.len() + text.len(),
        What::Stacks(batch) => {
            let frame = |frame: &Frame| {
                let texts = [Some(&frame.name), frame.raw.as_ref(), frame.module.as_ref()];
                size_of::<Frame>() + texts.into_iter().flatten().map(String::len).sum::<usize>()
            };
            batch.frames.iter().map(frame).sum::<usize>()
                + batch.nodes.len() * size_of::<Node>()
                + batch.comms.iter().map(text).sum::<usize>()
                + batch.samples.len() * size_of::<StackSample>()
        }
        What::Profiled(about) => {
            let anchors = about.anchors.iter().map(|anchor| size_of_val(anchor) + anchor.name.len());
            about.hides.as_ref().map_or(0, String::len) + anchors.sum::<usize>()
        }
        What::Rows { rows, .. } => {
            rows.iter().map(|row| size_of_val(row) + size_of_val(row.as_slice())).sum()
        }
        What::Warning { message, advice } => message.len() + advice.len(),
        What::IterationEnded { outcome: Outcome::Failed { reason }, .. } => reason.len(),
        _ => 0,
    };
    size_of::<Event>() + own
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
