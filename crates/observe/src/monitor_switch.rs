//! Whether monitors are read at all right now: off for a while, where a study asks what they cost.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A switch that the run's executor turns and the monitors' threads obey; on at first.
#[derive(Debug, Clone)]
pub struct MonitorSwitch(Arc<(Mutex<bool>, Condvar)>);

impl Default for MonitorSwitch {
    fn default() -> Self {
        MonitorSwitch(Arc::new((Mutex::new(true), Condvar::new())))
    }
}

/// Off for longer than this, a thread looks once whether it is to end.
const LOOK: Duration = Duration::from_secs(1);

impl MonitorSwitch {
    /// Turns it.
    pub fn set(&self, is_on: bool) {
        let (state, bell) = &*self.0;
        *state.lock().unwrap_or_else(PoisonError::into_inner) = is_on;
        bell.notify_all();
    }

    /// Whether monitors are read.
    pub fn is_on(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever waits, so that it looks whether it is to end.
    pub(crate) fn wake(&self) {
        self.0.1.notify_all();
    }

    /// Waits until it is on, or until whoever waits should look around.
    pub(crate) fn wait(&self) {
        let (state, bell) = &*self.0;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = bell.wait_timeout_while(state, LOOK, |is_on| !*is_on);
    }
}
