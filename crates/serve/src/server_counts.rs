//! What the server did since it began, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;

/// Classes of statuses, as `code` has them.
pub(crate) const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counts of one server.
#[derive(Debug)]
pub(crate) struct ServerCounts {
    /// seconds since 1970
    pub(crate) begun: f64,
    /// by the class of their status
    answers: [AtomicU64; STATUS_CLASSES.len()],
    /// clients that are connected
    clients: AtomicU64,
    /// clients whose place a new one got
    sent_away: AtomicU64,
}

impl ServerCounts {
    pub(crate) fn new() -> Self {
        let begun = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ServerCounts {
            begun: begun.as_secs_f64(),
            answers: Default::default(),
            clients: AtomicU64::new(0),
            sent_away: AtomicU64::new(0),
        }
    }

    pub(crate) fn count_answer(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.answers.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn count_sent_away(&self) {
        self.sent_away.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn set_clients(&self, clients: usize) {
        self.clients.store(clients as u64, Ordering::Relaxed);
    }

    /// Answers with the class of their status.
    pub(crate) fn answers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        STATUS_CLASSES.into_iter().zip(self.answers.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    pub(crate) fn clients(&self) -> u64 {
        self.clients.load(Ordering::Relaxed)
    }

    pub(crate) fn sent_away(&self) -> u64 {
        self.sent_away.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_counted_by_class() {
        let counts = ServerCounts::new();
        for status in [StatusCode::OK, StatusCode::SEE_OTHER, StatusCode::OK, StatusCode::NOT_FOUND] {
            counts.count_answer(status);
        }
        let found: Vec<(&str, u64)> = counts.answers().collect();
        assert_eq!(found, [("1xx", 0), ("2xx", 2), ("3xx", 1), ("4xx", 1), ("5xx", 0)]);
    }
}
