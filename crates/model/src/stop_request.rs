//! A request to end a run, shared by everything that could delay it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// How often who waits looks whether a stop was requested.
const LOOK: Duration = Duration::from_millis(200);

/// Set once, by ^C or a failing consumer; read between and inside iterations. Beside it the request to end well, by whatever
/// watches the run; read between slots.
#[derive(Debug, Clone, Default)]
pub struct StopRequest(Arc<AtomicBool>, Arc<AtomicU8>);

/// Why a run ends well before it has measured all that was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// what was to be reached is reached
    GoalReached,
    /// the time that it was given is over
    TimeOver,
    /// nothing but failures came of it, from its first iteration on
    AlwaysFails,
}

impl StopRequest {
    /// Nothing is requested yet.
    pub fn new() -> Self {
        StopRequest::default()
    }

    /// Asks for a clean stop: data kept, settings undone.
    pub fn request_stop(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Waits so long, or until a stop is requested.
    pub fn wait_for(&self, time: Duration) {
        let begun = Instant::now();
        while let Some(left) = time.checked_sub(begun.elapsed()).filter(|_| !self.is_requested()) {
            std::thread::sleep(left.min(LOOK));
        }
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Says that there is enough: the run ends well before its next block, and one that always fails before its next slot.
    pub fn request_end(&self, reason: EndReason) {
        let number = match reason {
            EndReason::GoalReached => 1,
            EndReason::TimeOver => 2,
            EndReason::AlwaysFails => 3,
        };
        self.1.store(number, Ordering::SeqCst);
    }

    /// Why there is enough, if there is.
    pub fn end_reason(&self) -> Option<EndReason> {
        match self.1.load(Ordering::SeqCst) {
            1 => Some(EndReason::GoalReached),
            2 => Some(EndReason::TimeOver),
            3 => Some(EndReason::AlwaysFails),
            _ => None,
        }
    }

    /// Takes the request back: the next iteration of an agent whose last one was ended.
    pub fn withdraw(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// The flag itself, for signal handlers and process runners.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
