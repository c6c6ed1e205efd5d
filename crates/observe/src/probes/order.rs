//! What several rings told, in the order of time: a thread that changes its CPU has its records in two rings. Owns the
//! rule: what is older than the round before cannot be preceded by anything that is yet to come.

use super::record::Seen;

#[derive(Debug, Default)]
pub(super) struct Order {
    held: Vec<Seen>,
    /// when the round before began
    before: u64,
}

impl Order {
    pub(super) fn add(&mut self, seen: Seen) {
        self.held.push(seen);
    }

    /// A round that began at `now` is over: gives out what is older than the round before it.
    pub(super) fn round(&mut self, now: u64, take: &mut impl FnMut(Seen)) {
        let limit = std::mem::replace(&mut self.before, now);
        self.held.sort_by_key(|seen| seen.time);
        let ready = self.held.partition_point(|seen| seen.time < limit);
        self.held.drain(..ready).for_each(take);
    }

    /// All that is left.
    pub(super) fn rest(&mut self, take: &mut impl FnMut(Seen)) {
        self.held.sort_by_key(|seen| seen.time);
        self.held.drain(..).for_each(take);
    }
}
