//! Requests under way: always so many that the disk has something to do, and never so many that the kernel's own sorting of
//! what waits undoes the order in which it was asked for.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use perflab_model::io::{PAGE, PageSet};

use crate::kernel::request_readahead;

/// Pages of a request: the kernel reads no more than a device's window at once, which is seldom smaller.
const REQUEST: u64 = (128 << 10) / PAGE;
/// Pages that are asked for before they are waited for: 6 MiB, a tenth of a second of a disk that turns. With less of them
/// a program's own reads come next and move the arm to and fro, instead of being met in the sweep.
const WINDOW: u64 = 1536;
/// Requests that all threads wait for, each of which may hold a file open: well below the usual limit of 1024.
const REQUESTS: usize = 256;
/// The part of either that is waited for at a time: by its last request, as a disk answers about in the order of asking, and
/// looking after each takes the processor as long as asking.
const PART: u64 = 8;

/// Asks for runs in requests of the size that the kernel makes; `go_on` hears of the pages of each.
pub(super) fn request_pages(
    file: &Rc<File>,
    pages: &PageSet,
    coming: &mut InFlightRequests<'_>,
    go_on: &mut dyn FnMut(u64) -> bool,
) {
    for (first, count) in pages.iter() {
        let (mut at, end) = (first, first + count);
        while at < end {
            let pages = REQUEST.min(end - at);
            // What cannot be read ahead will be read by the program, which knows better what to do about it.
            let _ = request_readahead(file, at * PAGE, pages * PAGE);
            at += pages;
            coming.add_request(Rc::clone(file), at - 1, pages);
            if !go_on(pages) {
                return;
            }
        }
    }
}

/// Its file, its last page, and how many it has.
type ReadRequest = (Rc<File>, u64, u64);

/// What was asked for and may not have come, in the order of asking.
pub(super) struct InFlightRequests<'a> {
    requests: VecDeque<ReadRequest>,
    pages: u64,
    /// how many requests it may be
    most: usize,
    stop: &'a AtomicBool,
}

impl<'a> InFlightRequests<'a> {
    /// For one of so many threads.
    pub(super) fn new(threads: usize, stop: &'a AtomicBool) -> Self {
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

    pub(super) fn wait_for_all(&mut self) {
        for request in std::mem::take(&mut self.requests) {
            self.wait_for(&request);
        }
        self.pages = 0;
    }

    /// Reads a byte of the request's last page; not once nobody needs it.
    fn wait_for(&self, (file, last, _): &ReadRequest) {
        if !self.stop.load(Ordering::Relaxed) {
            let _ = file.read_at(&mut [0], last * PAGE);
        }
    }
}
