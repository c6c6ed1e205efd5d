//! Counts each read once where disks are stacked: on the highest disk that had requests of its own, which is the one
//! with the file system, and not again on those below.

use perflab_model::io_trace::{DeviceNumber, IoEvent, IoEventKind, IoRecording, SECTOR, SectorRange};

/// A recording without the requests that other requests caused below, and how many bytes of reads these were.
///
/// A device without any request of its own (RAID and most of device mapper pass theirs on) leaves those below as they are.
#[must_use]
pub fn remove_stacked_requests(mut recording: IoRecording) -> (IoRecording, u64) {
    let has_own = |device: DeviceNumber| {
        recording.events.iter().any(|event| event.kind == IoEventKind::Issued && event.device == device)
    };
    let stacks = recording.summary.stacks.iter().filter(|stack| has_own(stack.device));
    let mut below: Vec<SectorRange> = stacks.flat_map(|stack| stack.below.iter().copied()).collect();
    if below.is_empty() {
        return (recording, 0);
    }
    below.sort_by_key(|range| (range.disk, range.first));
    let mut caused = 0;
    let events = std::mem::take(&mut recording.events);
    for event in events {
        // A request without sectors, a flush, lies nowhere.
        if !matches!(event.kind, IoEventKind::Issued | IoEventKind::Completed) || event.count == 0 {
            recording.events.push(event);
            continue;
        }
        let kept = parts_outside(&event, &below);
        let left: u64 = kept.iter().map(|part| part.count).sum();
        caused += if event.is_disk_read() { (event.count - left) * SECTOR } else { 0 };
        recording.events.extend(kept);
    }
    (recording, caused)
}

/// The parts of a request that lie in none of some ranges, which are in order.
fn parts_outside(event: &IoEvent, ranges: &[SectorRange]) -> Vec<IoEvent> {
    let (mut at, end) = (event.first, event.first.saturating_add(event.count));
    let mut parts = Vec::new();
    for range in ranges.iter().filter(|range| range.disk == event.device) {
        let (from, to) = (range.first, range.first.saturating_add(range.sectors));
        if to <= at || end <= from {
            continue;
        }
        if at < from {
            parts.push(IoEvent { first: at, count: from - at, ..event.clone() });
        }
        at = to.min(end);
    }
    if at < end {
        parts.push(IoEvent { first: at, count: end - at, ..event.clone() });
    }
    parts
}
