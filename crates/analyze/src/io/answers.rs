//! Reads as disks were asked for them and answered. A disk that is full up gives a request back, and it is sent again: that is
//! one read, and is told once.

use std::collections::HashMap;

use perflab_model::io::{Device, IoEvent, IoKind, IoRecording, SECTOR};

/// Bytes of reads as disks were asked for them and answered: counted from the answers, apart from the classes of coverage, so
/// that one is a check on the other. `asked + early == delivered + under_way` holds where no event was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Answers {
    /// bytes that disks were asked for
    pub asked: u64,
    /// bytes that they delivered
    pub delivered: u64,
    /// of these, asked for before tracing began
    pub early: u64,
    /// asked for, and not delivered when tracing ended
    pub under_way: u64,
    /// sent again before they were delivered, and counted once
    pub again: u64,
}

impl Answers {
    /// By how many bytes the sum of the classes and the answers contradict each other: 0 unless events were lost.
    #[must_use]
    pub fn contradiction(&self, sum: u64) -> u64 {
        (sum + self.early).abs_diff(self.delivered + self.under_way)
    }
}

/// Every read once, and how they were answered.
pub(super) fn reads(recording: &IoRecording) -> (Vec<IoEvent>, Answers) {
    let mut course = Course::default();
    for event in &recording.events {
        match event.kind {
            IoKind::Issued if event.reads() => course.sent(event),
            IoKind::Completed if event.reads() => course.answered(event),
            _ => {}
        }
    }
    course.answers.under_way = course.waiting.values().sum::<u64>() * SECTOR;
    (course.reads, course.answers)
}

/// What goes to disks and comes back.
#[derive(Default)]
struct Course {
    reads: Vec<IoEvent>,
    answers: Answers,
    /// by disk and first sector, how many sectors are waited for
    waiting: HashMap<(Device, u64), u64>,
}

impl Course {
    fn sent(&mut self, event: &IoEvent) {
        let known = self.waiting.get(&(event.device, event.first)).copied().unwrap_or(0);
        self.answers.again += known.min(event.count) * SECTOR;
        // Sent again, it may have grown by others that follow it on the disk.
        let new = event.count.saturating_sub(known);
        if new > 0 {
            self.waiting.insert((event.device, event.first), event.count);
            self.answers.asked += new * SECTOR;
            self.reads.push(IoEvent { first: event.first + known, count: new, ..event.clone() });
        }
    }

    fn answered(&mut self, event: &IoEvent) {
        let asked = self.waiting.remove(&(event.device, event.first)).unwrap_or(0);
        self.answers.delivered += event.count * SECTOR;
        self.answers.early += event.count.saturating_sub(asked) * SECTOR;
        // A disk may answer in parts.
        if asked > event.count {
            self.waiting.insert((event.device, event.first + event.count), asked - event.count);
        }
    }
}
