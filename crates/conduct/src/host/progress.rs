//! How far the run is, and how long it will still take.

use perflab_model::{Nanos, RunEventKind};

/// Counts slots done and the time that they took.
#[derive(Debug)]
pub(crate) struct SlotProgress {
    begun: Nanos,
    done: u32,
    total: u32,
}

impl SlotProgress {
    pub(crate) fn new(total: u32) -> Self {
        SlotProgress { begun: perflab_observe::monotonic_now(), done: 0, total }
    }

    /// One more slot is done.
    pub(crate) fn count_slot(&mut self) {
        self.done += 1;
    }

    /// The event that says so.
    pub(crate) fn progress_event(&self) -> RunEventKind {
        RunEventKind::Progress { done: self.done, total: self.total, remaining: self.remaining_time() }
    }

    /// Blocks mix all cases, so the mean of the slots so far foretells the rest.
    fn remaining_time(&self) -> Option<Nanos> {
        let spent = perflab_observe::monotonic_now().since(self.begun);
        let left = u64::from(self.total - self.done.min(self.total));
        (self.done > 0).then(|| Nanos(spent.0 / u64::from(self.done) * left))
    }
}
