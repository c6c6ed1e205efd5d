//! One perf event: opened, and its ring buffer of one CPU mapped and drained.

#![expect(unsafe_code, reason = "there is no safe perf_event_open, and its buffer is a mapping")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use perf_event_open_sys::{bindings as sys, ioctls};

/// An event with its buffer. Unmapped and closed when dropped.
#[derive(Debug)]
pub(crate) struct PerfRing {
    fd: OwnedFd,
    base: NonNull<u8>,
    length: usize,
    page: usize,
}

// SAFETY: the mapping belongs to this value alone, and is read by whoever owns the value; the kernel's side is
// synchronised by the head and tail counters.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Maps `pages` pages of buffer (a power of two) for an event.
    pub(crate) fn map(fd: OwnedFd, pages: usize) -> Result<PerfRing, (OwnedFd, io::Error)> {
        let page = rustix::param::page_size();
        let length = (pages + 1) * page;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new shared mapping of a descriptor that we own, at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0)
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(PerfRing { fd, base, length, page }),
            _ => Err((fd, io::Error::last_os_error())),
        }
    }

    /// The event's descriptor, to wait for and to switch on and off.
    pub(crate) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Sends the records of another event of the same CPU here.
    pub(crate) fn redirect_output_of(&self, other: &OwnedFd) -> io::Result<()> {
        // SAFETY: both descriptors are open perf events.
        let done = unsafe { ioctls::SET_OUTPUT(other.as_raw_fd(), self.fd.as_raw_fd()) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// A counter in the first page.
    fn position_counter(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped as long as this value lives, holds a perf_event_mmap_page, and the
        // counters in it are aligned 64-bit numbers that kernel and reader access atomically.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Appends all records that are there, whole and in order, to `out`, and gives their room back.
    pub(crate) fn drain(&self, out: &mut Vec<u8>) {
        let head = self
            .position_counter(std::mem::offset_of!(sys::perf_event_mmap_page, data_head))
            .load(Ordering::Acquire);
        let tail_counter = self.position_counter(std::mem::offset_of!(sys::perf_event_mmap_page, data_tail));
        let tail = tail_counter.load(Ordering::Relaxed);
        let size = self.length - self.page;
        let held = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(size);
        let begin = (tail as usize) & (size - 1);
        let first = held.min(size - begin);
        // SAFETY: the data pages follow the first page; `begin + first` and `held - first` are within their size,
        // and the kernel writes nothing between tail and head until the tail is moved below.
        unsafe {
            let data = self.base.as_ptr().add(self.page);
            out.extend_from_slice(std::slice::from_raw_parts(data.add(begin), first));
            out.extend_from_slice(std::slice::from_raw_parts(data, held - first));
        }
        tail_counter.store(head, Ordering::Release);
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: unmaps what `map` mapped, once.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}

/// Opens an event for a task (-1: all; 0: this thread) on a CPU, or on all that it gets to, together with the events of `group`.
pub(crate) fn open_perf_event(
    attr: &sys::perf_event_attr,
    task: i32,
    cpu: Option<u32>,
    group: Option<BorrowedFd<'_>>,
) -> io::Result<OwnedFd> {
    let mut attr = *attr;
    let cpu = cpu.map_or(Ok(-1), i32::try_from).map_err(io::Error::other)?;
    let group = group.map_or(-1, |leader| leader.as_raw_fd());
    let flags = u64::from(sys::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the attributes are a valid structure of the size that they say, and live until the call is over.
    let fd = unsafe { perf_event_open_sys::perf_event_open(&mut attr, task, cpu, group, flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call gave a fresh descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Has a tracepoint's event count only what the kernel's filter lets through.
pub(crate) fn filter_event(fd: &impl AsRawFd, filter: &std::ffi::CStr) -> io::Result<()> {
    // SAFETY: the descriptor is an open perf event, and the text ends with a zero and outlives the call.
    let done = unsafe { ioctls::SET_FILTER(fd.as_raw_fd(), filter.as_ptr().cast_mut()) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Switches an event on or off.
pub(crate) fn switch_event(fd: &impl AsRawFd, on: bool) -> io::Result<()> {
    // SAFETY: the descriptor is an open perf event.
    let done =
        unsafe { if on { ioctls::ENABLE(fd.as_raw_fd(), 0) } else { ioctls::DISABLE(fd.as_raw_fd(), 0) } };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
