//! Answers that are given when their time has come: one thread, a heap by time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A sleep ends late by about this much: the rest is waited for awake.
const AWAKE: Duration = Duration::from_micros(60);

/// What is done at a time.
type DelayedReply = Box<dyn FnOnce() + Send>;

struct QueuedReply {
    at: Instant,
    number: u64,
    answer: DelayedReply,
}

impl PartialEq for QueuedReply {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl Eq for QueuedReply {}

impl PartialOrd for QueuedReply {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedReply {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[derive(Default)]
struct ReplyQueue {
    waiting: BinaryHeap<Reverse<QueuedReply>>,
    taken: u64,
    is_closed: bool,
    is_hurried: bool,
}

/// Answers that wait.
#[derive(Clone, Default)]
pub(super) struct DelayedReplies {
    shared: Arc<(Mutex<ReplyQueue>, Condvar)>,
}

impl fmt::Debug for DelayedReplies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Answers")
    }
}

impl DelayedReplies {
    /// Begins the thread that gives them.
    pub(super) fn start() -> std::io::Result<DelayedReplies> {
        let answers = DelayedReplies::default();
        let given = answers.clone();
        thread::Builder::new().name("disk-answers".into()).spawn(move || given.deliver_replies())?;
        Ok(answers)
    }

    /// Does something at a time, or at once where that is past.
    pub(super) fn schedule(&self, at: Instant, answer: DelayedReply) {
        let (queue, changed) = &*self.shared;
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.taken += 1;
        let number = queue.taken;
        queue.waiting.push(Reverse(QueuedReply { at, number, answer }));
        changed.notify_one();
    }

    /// Gives every answer at once from now on, those that wait too.
    pub(super) fn end_delays(&self) {
        let (queue, changed) = &*self.shared;
        queue.lock().unwrap_or_else(PoisonError::into_inner).is_hurried = true;
        changed.notify_one();
    }

    /// Lets the thread end once nothing waits.
    pub(super) fn close(&self) {
        let (queue, changed) = &*self.shared;
        queue.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        changed.notify_one();
    }

    fn deliver_replies(&self) {
        while let Some(answer) = self.next_due() {
            answer();
        }
    }

    /// The next answer, at its time; `None` at the end.
    fn next_due(&self) -> Option<DelayedReply> {
        let (queue, changed) = &*self.shared;
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let Some(first) = queue.waiting.peek().map(|Reverse(first)| first.at) else {
                if queue.is_closed {
                    return None;
                }
                queue = changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = first.saturating_duration_since(Instant::now());
            if left.is_zero() || queue.is_hurried {
                return queue.waiting.pop().map(|Reverse(first)| first.answer);
            }
            if left > AWAKE {
                queue = changed.wait_timeout(queue, left - AWAKE).unwrap_or_else(PoisonError::into_inner).0;
            } else {
                drop(queue);
                thread::yield_now();
                queue = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_their_times_and_never_early() {
        let answers = DelayedReplies::start().unwrap();
        let (said, heard) = std::sync::mpsc::channel();
        let begin = Instant::now();
        for millis in [30, 10, 20, 0] {
            let (said, at) = (said.clone(), begin + Duration::from_millis(millis));
            answers.schedule(at, Box::new(move || said.send((millis, Instant::now() >= at)).unwrap()));
        }
        drop(said);
        answers.close();
        assert_eq!(heard.iter().collect::<Vec<_>>(), [(0, true), (10, true), (20, true), (30, true)]);
    }

    #[test]
    fn a_disk_that_hurries_lets_nobody_wait() {
        let answers = DelayedReplies::start().unwrap();
        let (said, heard) = std::sync::mpsc::channel();
        let never = Instant::now() + Duration::from_secs(1 << 20);
        for number in 0..2 {
            let said = said.clone();
            answers.schedule(never, Box::new(move || said.send(number).unwrap()));
            answers.end_delays();
            assert_eq!(heard.recv(), Ok(number));
        }
    }
}
