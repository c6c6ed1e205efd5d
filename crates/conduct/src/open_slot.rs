//! What targets report of the slot that is being carried out, held until it closes.
//!
//! It is held because a loss on the way decides whether the iteration counts.

use std::collections::HashSet;

use perflab_model::{
    EdgeReading, Nanos, Outcome, RunEvent, RunEventKind, SharedStr, Slot, StackFrame, StackNode, StackSample,
};

/// What all targets of an open iteration together may make this side hold, in bytes of memory,
const MAX_HELD_BYTES: usize = 1 << 30;

/// and each of them: many guests get less, but always enough for an honest iteration.
const MAX_HELD_BYTES_EACH: std::ops::RangeInclusive<usize> = 16 << 20..=256 << 20;

/// A slot that some targets are at.
#[derive(Debug)]
pub(crate) struct OpenSlot {
    pub(crate) index: u32,
    pub(crate) slot: Slot,
    participants: Vec<usize>,
    /// What each target reported, in the order of the participants.
    reports: Vec<HeldReports>,
    /// Why it counts on no target, if it does not: the target that was lost on the way, and why.
    lost_participant: Option<(usize, String)>,
    /// Why it is not begun at all, if it is not.
    lacking: Option<String>,
    released: Option<Nanos>,
}

/// What a target reported of the slot so far.
#[derive(Debug, Default)]
struct HeldReports {
    /// The last is its iteration's end, if it came to that.
    events: Vec<RunEvent>,
    metrics: HashSet<SharedStr>,
    ended: bool,
    /// What the events take of memory.
    bytes: usize,
}

impl OpenSlot {
    pub(crate) fn new(index: u32, slot: Slot, who: Vec<usize>) -> Self {
        let reports = who.iter().map(|_| HeldReports::default()).collect();
        OpenSlot {
            index,
            slot,
            participants: who,
            reports,
            lost_participant: None,
            lacking: None,
            released: None,
        }
    }

    /// As [`OpenSlot::new`], of a slot whose level cannot be met any more: it is reported as failed everywhere, and not begun.
    pub(crate) fn new_lacking(index: u32, slot: Slot, who: Vec<usize>, why: String) -> Self {
        OpenSlot { lacking: Some(why), ..OpenSlot::new(index, slot, who) }
    }

    pub(crate) fn is_lacking(&self) -> bool {
        self.lacking.is_some()
    }

    pub(crate) fn has_target(&self, target: usize) -> bool {
        self.participants.contains(&target)
    }

    pub(crate) fn set_released(&mut self, at: Nanos) {
        self.released = Some(at);
    }

    /// Whether its iteration was begun.
    pub(crate) fn is_released(&self) -> bool {
        self.released.is_some() && self.lacking.is_none()
    }

    fn reports_of(&self, target: usize) -> Option<&HeldReports> {
        let place = self.participants.iter().position(|one| *one == target)?;
        self.reports.get(place)
    }

    /// Whether the target has reported that metric.
    pub(crate) fn has_reported_metric(&self, target: usize, metric: &str) -> bool {
        self.reports_of(target).is_some_and(|reports| reports.metrics.contains(metric))
    }

    pub(crate) fn has_ended(&self, target: usize) -> bool {
        self.reports_of(target).is_some_and(|reports| reports.ended)
    }

    /// Keeps what a target reported until the slot is over.
    ///
    /// # Errors
    /// It reported more than this side will hold; the reason is for people.
    pub(crate) fn hold(&mut self, target: usize, event: RunEvent) -> Result<(), String> {
        let most = (MAX_HELD_BYTES / self.participants.len().max(1))
            .clamp(*MAX_HELD_BYTES_EACH.start(), *MAX_HELD_BYTES_EACH.end());
        let place = self.participants.iter().position(|one| *one == target);
        let Some(reports) = place.and_then(|place| self.reports.get_mut(place)) else { return Ok(()) };
        reports.bytes = reports.bytes.saturating_add(event_memory(&event));
        if reports.bytes > most {
            let (index, most) = (self.index, perflab_model::Bytes(most as u64));
            return Err(format!(
                "it reported more on iteration {index} than is kept for one target ({most} of memory)"
            ));
        }
        match &event.what {
            RunEventKind::Sample(sample) => drop(reports.metrics.insert(sample.metric.clone())),
            RunEventKind::IterationEnded { .. } => reports.ended = true,
            _ => {}
        }
        reports.events.push(event);
        Ok(())
    }

    /// A target was lost while the slot was open.
    pub(crate) fn lose_target(&mut self, target: usize, reason: &str) {
        if self.has_target(target) {
            self.lost_participant.get_or_insert_with(|| (target, reason.to_owned()));
        }
    }

    /// All its events, and whether it went well. One that began and was not synchronised to its end
    /// gives no samples: its targets had less company than the case says.
    pub(crate) fn close(self, now: Nanos, names: &[String]) -> (Vec<RunEvent>, bool) {
        let Some(released) = self.released else { return (Vec::new(), self.lost_participant.is_none()) };
        let (mut events, mut good) = (Vec::new(), true);
        for (target, reports) in self.participants.iter().zip(self.reports) {
            let spoilt = self.lost_participant.as_ref().map(|(lost, reason)| {
                let name = names.get(*lost).map_or("a target", String::as_str);
                if lost == target { reason.clone() } else { format!("{name} was lost meanwhile: {reason}") }
            });
            let (spoilt, reports) = (self.lacking.clone().or(spoilt), reports.events);
            let end = TargetEnding { slot: self.index, target: *target, released, now };
            let (mine, fine) = end.end_events(reports, spoilt);
            good &= fine;
            events.extend(mine);
        }
        (events, good)
    }
}

/// What an event takes of memory, at the least: small things that come in their thousands count as they are held, not as
/// they were sent.
pub(crate) fn event_memory(event: &RunEvent) -> usize {
    let text = |text: &String| size_of::<String>() + text.len();
    let own = match &event.what {
        RunEventKind::Output { name, text, .. } => name.len() + text.len(),
        RunEventKind::Document(document) => document.text.len(),
        RunEventKind::Stacks(batch) => {
            let frame = |frame: &StackFrame| {
                let texts = [Some(&frame.name), frame.raw.as_ref(), frame.module.as_ref()];
                size_of::<StackFrame>() + texts.into_iter().flatten().map(String::len).sum::<usize>()
            };
            batch.frames.iter().map(frame).sum::<usize>()
                + batch.nodes.len() * size_of::<StackNode>()
                + batch.comms.iter().map(text).sum::<usize>()
                + batch.samples.len() * size_of::<StackSample>()
        }
        RunEventKind::Profiled(about) => {
            let anchors = about.anchors.iter().map(|anchor| size_of_val(anchor) + anchor.name.len());
            about.hides.as_ref().map_or(0, String::len) + anchors.sum::<usize>()
        }
        RunEventKind::Rows { rows, .. } | RunEventKind::Edge(EdgeReading { rows, .. }) => {
            rows.iter().map(|row| size_of_val(row) + size_of_val(row.as_slice())).sum()
        }
        RunEventKind::Warning { message, advice } => message.len() + advice.len(),
        RunEventKind::SettingOverwritten { setting, file, set, found, by, .. } => {
            let by = by.as_ref().map_or(0, String::len);
            setting.len() + file.len() + set.len() + found.len() + by
        }
        RunEventKind::IterationEnded { outcome: Outcome::Failed { reason }, .. } => reason.len(),
        _ => 0,
    };
    size_of::<RunEvent>() + own
}

/// The end of one target's iteration.
struct TargetEnding {
    slot: u32,
    target: usize,
    released: Nanos,
    now: Nanos,
}

impl TargetEnding {
    fn end_events(&self, reports: Vec<RunEvent>, spoilt: Option<String>) -> (Vec<RunEvent>, bool) {
        let mut events = reports;
        if let Some(reason) = spoilt {
            events.retain(|event| !matches!(event.what, RunEventKind::Sample(_)));
            let failed = Outcome::Failed { reason };
            match events.iter_mut().find_map(|event| outcome_mut(&mut event.what)) {
                Some(outcome) => *outcome = failed,
                None => events.push(self.ended_event(failed)),
            }
        } else if !events.iter_mut().any(|event| outcome_mut(&mut event.what).is_some()) {
            events.push(self.ended_event(Outcome::Interrupted));
        }
        let good =
            events.iter_mut().all(|event| outcome_mut(&mut event.what).is_none_or(|how| *how == Outcome::Ok));
        (events, good)
    }

    fn ended_event(&self, outcome: Outcome) -> RunEvent {
        let what = RunEventKind::IterationEnded {
            slot: self.slot,
            outcome,
            start: self.released.min(self.now),
            end: self.now,
        };
        RunEvent { at: self.now, target: u32::try_from(self.target).ok(), what }
    }
}

fn outcome_mut(what: &mut RunEventKind) -> Option<&mut Outcome> {
    match what {
        RunEventKind::IterationEnded { outcome, .. } => Some(outcome),
        _ => None,
    }
}
