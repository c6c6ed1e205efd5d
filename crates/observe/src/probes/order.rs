//! What several rings told, in the order of time: a thread that changes its CPU has its records in two rings. Owns the
//! rule: what is older than the round before cannot be preceded by anything that is yet to come.

use super::record::ProbeEvent;

#[derive(Debug, Default)]
pub(super) struct TimeOrderBuffer {
    events: Vec<ProbeEvent>,
    /// when the round before began
    before: u64,
}

impl TimeOrderBuffer {
    pub(super) fn add(&mut self, seen: ProbeEvent) {
        self.events.push(seen);
    }

    /// A round that began at `now` is over: gives out what is older than the round before it.
    pub(super) fn release_before(&mut self, now: u64, take: &mut impl FnMut(ProbeEvent)) {
        let limit = std::mem::replace(&mut self.before, now);
        self.events.sort_by_key(|seen| seen.time);
        let ready = self.events.partition_point(|seen| seen.time < limit);
        self.events.drain(..ready).for_each(take);
    }

    /// All that is left.
    pub(super) fn release_all(&mut self, take: &mut impl FnMut(ProbeEvent)) {
        self.events.sort_by_key(|seen| seen.time);
        self.events.drain(..).for_each(take);
    }
}
