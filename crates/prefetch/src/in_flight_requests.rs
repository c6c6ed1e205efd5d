//! Requests that were made and are not answered yet; the rate limit; `readahead(2)`.
//!
//! There are always so many in flight that the disk has something to do, and never so many that the kernel's own
//! sorting of its queue undoes the order in which they were made.

#![expect(
    unsafe_code,
    reason = "readahead has no safe wrapper, and nix asks for a promise about descriptors"
)]

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::fanotify::Fanotify;
use perflab_model::PageSet;
use perflab_model::io_trace::PAGE;

/// Pages of a request: the kernel reads no more than a device's window at once, which is seldom smaller.
const REQUEST: u64 = (128 << 10) / PAGE;

/// Pages that are asked for before they are waited for: 6 MiB, a tenth of a second of a rotational disk. With less of them
/// a program's own reads come next and move the arm to and fro, instead of being met in the sweep.
const WINDOW: u64 = 1536;

/// Requests that all threads wait for, each of which may hold a file open: well below the usual limit of 1024.
const REQUESTS: usize = 256;

/// The part of either that is waited for at a time: by its last request, as a disk answers about in the order of asking, and
/// looking after each takes the processor as long as asking.
const PART: u64 = 8;

/// Asks for runs in requests of the size that the kernel makes; `go_on` hears of the pages of each.
pub(crate) fn request_pages(
    file: &Rc<File>,
    pages: &PageSet,
    in_flight: &mut InFlightRequests<'_>,
    go_on: &mut dyn FnMut(u64) -> bool,
) {
    for (first, count) in pages.iter() {
        let (mut at, end) = (first, first + count);
        while at < end {
            let pages = REQUEST.min(end - at);
            // What cannot be read ahead will be read by the program, which knows better what to do about it.
            let _ = request_readahead(file, at * PAGE, pages * PAGE);
            at += pages;
            in_flight.add_request(Rc::clone(file), at - 1, pages);
            if !go_on(pages) {
                return;
            }
        }
    }
}

/// Its file, its last page, and how many it has.
type ReadRequest = (Rc<File>, u64, u64);

/// What was asked for and may not have come, in the order of asking.
pub(crate) struct InFlightRequests<'a> {
    requests: VecDeque<ReadRequest>,
    pages: u64,
    /// how many requests it may be
    most: usize,
    stop: &'a AtomicBool,
}

impl<'a> InFlightRequests<'a> {
    /// For one of so many threads.
    pub(crate) fn new(threads: usize, stop: &'a AtomicBool) -> Self {
        InFlightRequests { requests: VecDeque::new(), pages: 0, most: REQUESTS / threads.max(1), stop }
    }

    fn add_request(&mut self, file: Rc<File>, last: u64, pages: u64) {
        self.pages += pages;
        self.requests.push_back((file, last, pages));
        if self.pages > WINDOW || self.requests.len() > self.most {
            self.wait_for_some();
        }
    }

    /// Waits for the last one of those that were asked for first.
    fn wait_for_some(&mut self) {
        let (pages, requests) = (WINDOW - WINDOW / PART, self.most - self.most / PART as usize);
        let mut waited_for = None;
        while self.pages > pages || self.requests.len() > requests {
            let Some(first) = self.requests.pop_front() else { break };
            self.pages -= first.2;
            waited_for = Some(first);
        }
        if let Some(request) = waited_for {
            self.wait_for(&request);
        }
    }

    pub(crate) fn wait_for_all(&mut self) {
        for request in std::mem::take(&mut self.requests) {
            self.wait_for(&request);
        }
        self.pages = 0;
    }

    /// Reads a byte of the request's last page; not once it is no longer needed.
    fn wait_for(&self, (file, last, _): &ReadRequest) {
        if !self.stop.load(Ordering::Relaxed) {
            let _ = file.read_at(&mut [0], last * PAGE);
        }
    }
}

/// Keeps to a number of bytes a second.
pub(crate) struct RateLimit {
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

/// A fanotify group that another process has opened. What is none gives errors when it is read.
pub(crate) fn open_exec_group(descriptor: OwnedFd) -> Fanotify {
    // SAFETY: the descriptor is owned and goes over; of another kind of file, reads fail or give no events with descriptors,
    // as only perflab itself hands one over.
    unsafe { Fanotify::from_owned_fd(descriptor) }
}

/// Asks for a range of a file to be read into memory, and does not wait for it. May wait for the file's own map, and
/// for room in the disk's queue. The kernel reads at most the device's window at once: ask in parts.
fn request_readahead(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    let (Ok(offset), Ok(bytes)) = (i64::try_from(offset), usize::try_from(bytes)) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // SAFETY: numbers and an open descriptor; no memory of ours is involved.
    let done = unsafe { libc::readahead(file.as_raw_fd(), offset, bytes) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
