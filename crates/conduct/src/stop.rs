//! The wish to stop, shared between the signal handler and whoever works.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, by ^C or a failing consumer; read between and inside iterations.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A wish not yet expressed.
    pub fn new() -> Self {
        Stop::default()
    }

    /// Asks for a clean stop: data kept, settings undone.
    pub fn ask(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether somebody asked.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// The flag itself, for signal handlers and process runners.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}
