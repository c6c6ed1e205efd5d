//! From the bytes of a ring to what was seen. Owns the layout of the few kinds of record that these events make.

use std::collections::HashMap;

use perf_event_open_sys::bindings as sys;

use crate::words::read_u64_at;

/// What a thread did, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProbeEvent {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub time: u64,
    /// The thread, as the kernel counts.
    pub thread: i32,
    /// The stack pointer at a place; 0 elsewhere, and where the kernel did not tell.
    pub stack: u64,
    /// The register in which Go has the goroutine, at a place.
    pub routine: u64,
    /// What.
    pub kind: ProbeEventKind,
}

/// What a thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeEventKind {
    /// It came by the place with this number, in the order in which places were given.
    Place(usize),
    /// It was taken off the CPU while it wanted to run.
    Preempted,
    /// It left the CPU to wait.
    Waited,
    /// It is on the CPU again.
    Resumed,
    /// A page was not there.
    Fault,
    /// The process is another program from now on.
    Exec,
}

const COMM: u32 = sys::PERF_RECORD_COMM;
const SAMPLE: u32 = sys::PERF_RECORD_SAMPLE;
const LOST: u32 = sys::PERF_RECORD_LOST;
const SWITCH: u32 = sys::PERF_RECORD_SWITCH;
const THROTTLE: u32 = sys::PERF_RECORD_THROTTLE;

/// What of a ring was no event of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OtherRingRecords {
    /// the ring had no room for them
    pub lost: u64,
    /// other processes came by the places
    pub others: u64,
}

/// Gives `take` what whole records say of one process; returns what else there was.
pub(super) fn read_probe_records(
    mut bytes: &[u8],
    pid: i32,
    places: &HashMap<u64, ProbeEventKind>,
    mut take: impl FnMut(ProbeEvent),
) -> OtherRingRecords {
    let (mut lost, mut others) = (0, 0);
    while let Some(record) = ProbeRecord::parse_first(bytes) {
        match record.kind {
            // Event, process and thread, time.
            SAMPLE if record.word_at(1) as i32 == pid => {
                if let Some(what) = places.get(&record.word_at(0)) {
                    // Behind them, of a place: the width of its registers (0: none), and the registers.
                    let told = matches!(what, ProbeEventKind::Place(_)) && record.word_at(3) != 0;
                    let (stack, routine) = stack_and_goroutine(record.word_at(4), record.word_at(5))
                        .filter(|_| told)
                        .unwrap_or_default();
                    let thread = (record.word_at(1) >> 32) as i32;
                    take(ProbeEvent { time: record.word_at(2), thread, stack, routine, kind: *what });
                }
            }
            // Process and thread, time, event.
            SWITCH => take(ProbeEvent {
                time: record.word_at(1),
                thread: (record.word_at(0) >> 32) as i32,
                stack: 0,
                routine: 0,
                kind: context_switch_kind(record.misc),
            }),
            SAMPLE if matches!(places.get(&record.word_at(0)), Some(ProbeEventKind::Place(_))) => others += 1,
            // Process and thread, the name, and as behind every record: process and thread, time, event.
            COMM if record.misc & sys::PERF_RECORD_MISC_COMM_EXEC != 0 && record.word_at(0) as i32 == pid => {
                let time = record.word_at((record.body.len() / 8).saturating_sub(2));
                let thread = (record.word_at(0) >> 32) as i32;
                take(ProbeEvent { time, thread, stack: 0, routine: 0, kind: ProbeEventKind::Exec });
            }
            LOST => lost += record.word_at(1),
            THROTTLE => lost += 1,
            _ => {}
        }
        bytes = bytes.get(record.size..).unwrap_or_default();
    }
    OtherRingRecords { lost, others }
}

/// The stack pointer and the goroutine, of two registers in the order of their numbers.
fn stack_and_goroutine(first: u64, second: u64) -> Option<(u64, u64)> {
    match () {
        () if cfg!(target_arch = "x86_64") => Some((first, second)),
        () if cfg!(target_arch = "aarch64") => Some((second, first)),
        () => None,
    }
}

struct ProbeRecord<'a> {
    kind: u32,
    misc: u32,
    size: usize,
    body: &'a [u8],
}

impl<'a> ProbeRecord<'a> {
    fn parse_first(bytes: &'a [u8]) -> Option<ProbeRecord<'a>> {
        let head = read_u64_at(bytes, 0)?;
        let size = (head >> 48) as usize;
        let body = bytes.get(8..size)?;
        Some(ProbeRecord { kind: head as u32, misc: (head >> 32) as u32 & 0xffff, size, body })
    }

    /// A word of its body; 0 behind its end.
    fn word_at(&self, at: usize) -> u64 {
        read_u64_at(self.body, at * 8).unwrap_or(0)
    }
}

fn context_switch_kind(misc: u32) -> ProbeEventKind {
    match (misc & sys::PERF_RECORD_MISC_SWITCH_OUT != 0, misc & sys::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0)
    {
        (true, true) => ProbeEventKind::Preempted,
        (true, false) => ProbeEventKind::Waited,
        _ => ProbeEventKind::Resumed,
    }
}
