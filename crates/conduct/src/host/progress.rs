//! How far the run is, and how long it will still take.

use perflab_model::{Nanos, What};

/// Counts slots done and the time that they took.
#[derive(Debug)]
pub(crate) struct Progress {
    begun: Nanos,
    done: u32,
    total: u32,
}

impl Progress {
    pub(crate) fn new(total: u32) -> Self {
        Progress { begun: perflab_observe::monotonic_now(), done: 0, total }
    }

    /// One more slot is done.
    pub(crate) fn step(&mut self) {
        self.done += 1;
    }

    /// The event that says so.
    pub(crate) fn event(&self) -> What {
        What::Progress { done: self.done, total: self.total, remaining: self.remaining() }
    }

    /// Blocks mix all cases, so the mean of the slots so far foretells the rest.
    fn remaining(&self) -> Option<Nanos> {
        let spent = perflab_observe::monotonic_now().since(self.begun);
        let left = u64::from(self.total - self.done.min(self.total));
        (self.done > 0).then(|| Nanos(spent.0 / u64::from(self.done) * left))
    }
}
