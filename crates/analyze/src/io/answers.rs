//! Reads as disks were asked for them and answered. A disk that is full up gives a request back, and it is sent again: that is
//! one read, and is told once.

use std::collections::HashMap;

use perflab_model::io::{DeviceNumber, IoEvent, IoEventKind, IoRecording, SECTOR};

/// Bytes of reads as disks were asked for them and answered: counted from the answers, apart from the classes of coverage, so
/// that one is a check on the other. `asked + early == delivered + under_way` holds where no event was lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskReadBytes {
    /// bytes that disks were asked for
    pub requested: u64,
    /// bytes that they delivered
    pub completed: u64,
    /// of these, asked for before tracing began
    pub before_start: u64,
    /// asked for, and not delivered when tracing ended
    pub in_flight: u64,
    /// sent again before they were delivered, and counted once
    pub resubmitted: u64,
}

impl DiskReadBytes {
    /// By how many bytes the sum of the classes and the answers contradict each other: 0 unless events were lost.
    #[must_use]
    pub fn contradiction(&self, sum: u64) -> u64 {
        (sum + self.before_start).abs_diff(self.completed + self.in_flight)
    }
}

/// Every read once, and how they were answered.
pub(super) fn completed_reads(recording: &IoRecording) -> (Vec<IoEvent>, DiskReadBytes) {
    let mut course = ReadProgress::default();
    for event in &recording.events {
        match event.kind {
            IoEventKind::Issued if event.is_read_request() => course.add_issued(event),
            IoEventKind::Completed if event.is_read_request() => course.add_completed(event),
            _ => {}
        }
    }
    course.answers.in_flight = course.waiting.values().sum::<u64>() * SECTOR;
    (course.reads, course.answers)
}

/// What goes to disks and comes back.
#[derive(Default)]
struct ReadProgress {
    reads: Vec<IoEvent>,
    answers: DiskReadBytes,
    /// by disk and first sector, how many sectors are waited for
    waiting: HashMap<(DeviceNumber, u64), u64>,
}

impl ReadProgress {
    fn add_issued(&mut self, event: &IoEvent) {
        let known = self.waiting.get(&(event.device, event.first)).copied().unwrap_or(0);
        self.answers.resubmitted += known.min(event.count) * SECTOR;
        // Sent again, it may have grown by others that follow it on the disk.
        let new = event.count.saturating_sub(known);
        if new > 0 {
            self.waiting.insert((event.device, event.first), event.count);
            self.answers.requested += new * SECTOR;
            self.reads.push(IoEvent { first: event.first + known, count: new, ..event.clone() });
        }
    }

    fn add_completed(&mut self, event: &IoEvent) {
        let asked = self.waiting.remove(&(event.device, event.first)).unwrap_or(0);
        self.answers.completed += event.count * SECTOR;
        self.answers.before_start += event.count.saturating_sub(asked) * SECTOR;
        // A disk may answer in parts.
        if asked > event.count {
            self.waiting.insert((event.device, event.first + event.count), asked - event.count);
        }
    }
}
