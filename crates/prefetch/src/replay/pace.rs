//! Reading at no more than a rate.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Keeps to a number of bytes a second.
pub(super) struct RateLimit {
    begun: Instant,
    rate: Option<u64>,
    /// bytes, from all disks
    asked: AtomicU64,
}

impl RateLimit {
    pub fn new(begun: Instant, rate: Option<u64>) -> Self {
        RateLimit { begun, rate, asked: AtomicU64::new(0) }
    }

    /// Bytes that were asked for.
    pub fn requested_bytes(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Notes that so many bytes more are asked for, and waits as long as they take.
    pub fn throttle(&self, more: u64, stop: &AtomicBool) {
        let bytes = self.asked.fetch_add(more, Ordering::Relaxed) + more;
        let Some(rate) = self.rate.filter(|rate| *rate > 0) else { return };
        let due = Duration::from_secs_f64(bytes as f64 / rate as f64);
        while self.begun.elapsed() < due && !stop.load(Ordering::Relaxed) {
            std::thread::sleep((due - self.begun.elapsed().min(due)).min(Duration::from_millis(20)));
        }
    }
}
