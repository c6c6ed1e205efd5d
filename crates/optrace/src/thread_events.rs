//! Context switches and page faults of one thread, each with its time on CLOCK_MONOTONIC, by a perf event of that
//! thread.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::layout::ThreadEventKind;

/// Bytes of the ring: what an unprivileged user may lock (`perf_event_mlock_kb`) is 516 KiB.
const RING: usize = 512 * 1024;

const PAGE: usize = 4096;

/// Where the ring's head and tail are in its first page (`struct perf_event_mmap_page`).
const HEAD: usize = 1024;

const TAIL: usize = 1032;

/// `struct perf_event_attr`, version 5 (112 bytes).
#[repr(C)]
#[derive(Default)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branch: u64,
    registers: u64,
    stack: u32,
    clock: i32,
    registers_interrupt: u64,
    aux_watermark: u32,
    max_stack: u16,
    reserved: u16,
}

const SOFTWARE: u32 = 1;

const PAGE_FAULTS: u64 = 2;

const SAMPLE_TIME: u64 = 1 << 2;

const EXCLUDE_KERNEL: u64 = 1 << 5;

const SAMPLE_ID_ALL: u64 = 1 << 18;

const USE_CLOCK: u64 = 1 << 25;

const CONTEXT_SWITCH: u64 = 1 << 26;

const CLOSE_ON_EXEC: u64 = 1 << 3;

const RECORD_LOST: u32 = 2;

const RECORD_THROTTLE: u32 = 5;

const RECORD_SAMPLE: u32 = 9;

const RECORD_SWITCH: u32 = 14;

const SWITCH_OUT: u32 = 1 << 13;

const SWITCH_OUT_PREEMPT: u32 = 1 << 14;

/// The kernel's events of one thread.
pub(crate) struct ThreadEventRing {
    _event: OwnedFd,
    ring: *mut u8,
    tail: u64,
    /// events that the kernel had no room for
    pub lost: u64,
}

#[expect(unsafe_code, reason = "the ring is a mapping of this process, not of a thread")]
// SAFETY: the mapping may be read from any thread, and `Kernel` is its only user.
unsafe impl Send for ThreadEventRing {}

impl ThreadEventRing {
    /// Asks for the events of the calling thread.
    pub(crate) fn open() -> io::Result<Self> {
        // What happens inside system calls needs more rights; without them, page faults of the program itself remain.
        let event = open_thread_event(0).or_else(|_| open_thread_event(EXCLUDE_KERNEL))?;
        let ring = map_ring(&event)?;
        Ok(Self { _event: event, ring, tail: 0, lost: 0 })
    }

    /// Gives `take` every event since the last call, in order of time.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(u64, ThreadEventKind)) {
        let head = self.ring_position(HEAD).load(Ordering::Acquire);
        while self.tail < head {
            let first = self.word_at(self.tail);
            let (kind, misc, size) = (first as u32, (first >> 32) as u32 & 0xffff, first >> 48);
            match kind {
                RECORD_SAMPLE => take(self.word_at(self.tail + 8), ThreadEventKind::Fault),
                RECORD_SWITCH => take(self.word_at(self.tail + 8), context_switch_kind(misc)),
                RECORD_LOST => self.lost += self.word_at(self.tail + 16),
                RECORD_THROTTLE => self.lost += 1,
                _ => {}
            }
            // A size of zero would be the kernel's mistake, and a loop without end ours.
            self.tail += size.max(8);
        }
        self.ring_position(TAIL).store(self.tail, Ordering::Release);
    }

    /// The head or the tail of the ring.
    #[expect(unsafe_code, reason = "shared with the kernel")]
    fn ring_position(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first page of the mapping is as long as `self`, `at` is inside it and aligned to eight bytes, and
        // the kernel treats both words as atomic.
        unsafe { AtomicU64::from_ptr(self.ring.add(at).cast()) }
    }

    /// The word of the ring at a position that only grows.
    #[expect(unsafe_code, reason = "shared with the kernel")]
    fn word_at(&self, at: u64) -> u64 {
        let offset = PAGE + (at as usize & (RING - 1) & !7);
        // SAFETY: the offset is inside the mapping and aligned; the kernel does not write between tail and head.
        unsafe { self.ring.add(offset).cast::<u64>().read_volatile() }
    }
}

fn context_switch_kind(misc: u32) -> ThreadEventKind {
    match (misc & SWITCH_OUT != 0, misc & SWITCH_OUT_PREEMPT != 0) {
        (true, true) => ThreadEventKind::Preempted,
        (true, false) => ThreadEventKind::Waited,
        _ => ThreadEventKind::Resumed,
    }
}

#[expect(unsafe_code, reason = "there is no safe perf_event_open")]
fn open_thread_event(exclude: u64) -> io::Result<OwnedFd> {
    let attributes = PerfEventAttr {
        kind: SOFTWARE,
        size: size_of::<PerfEventAttr>() as u32,
        config: PAGE_FAULTS,
        sample_period: 1,
        sample_type: SAMPLE_TIME,
        flags: SAMPLE_ID_ALL | USE_CLOCK | CONTEXT_SWITCH | exclude,
        clock: libc::CLOCK_MONOTONIC,
        ..PerfEventAttr::default()
    };
    let (this_thread, any_cpu, no_group) = (0, -1, -1);
    // SAFETY: the structure says its own size and outlives the call; the other arguments are numbers.
    let event = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            this_thread,
            any_cpu,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    if event < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave this descriptor to us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(event as i32) })
}

#[expect(unsafe_code, reason = "the ring is a mapping")]
fn map_ring(event: &OwnedFd) -> io::Result<*mut u8> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let ring = unsafe {
        libc::mmap(std::ptr::null_mut(), PAGE + RING, access, libc::MAP_SHARED, event.as_raw_fd(), 0)
    };
    if ring == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(ring.cast()) }
}

impl Drop for ThreadEventRing {
    #[expect(unsafe_code, reason = "the ring is a mapping")]
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this size, and no reference into it is left.
        unsafe { libc::munmap(self.ring.cast(), PAGE + RING) };
    }
}
