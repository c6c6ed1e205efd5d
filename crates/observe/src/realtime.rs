//! Real-time priority for moments in which nothing else may come first. What is given to a thread is not inherited by
//! what it starts.

/// The lowest real-time priority, held by the thread that took it until this is dropped.
#[derive(Debug)]
pub struct RealtimeGuard {
    is_raised: bool,
}

impl RealtimeGuard {
    /// Takes it for the calling thread, where it may (root).
    pub fn acquire() -> Self {
        RealtimeGuard { is_raised: set_scheduling_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1) }
    }
}

impl Drop for RealtimeGuard {
    fn drop(&mut self) {
        if self.is_raised {
            set_scheduling_policy(libc::SCHED_OTHER, 0);
        }
    }
}

/// Says whether the calling thread got that policy.
#[expect(unsafe_code, reason = "rustix has no sched_setscheduler")]
pub(crate) fn set_scheduling_policy(policy: i32, priority: i32) -> bool {
    let wanted = libc::sched_param { sched_priority: priority };
    // SAFETY: `wanted` outlives the call, which only reads it; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, policy, &raw const wanted) == 0 }
}
