//! The measured path: begin, end, enter, leave, number.
//!
//! From `begin` to `end` there are only time stamps and one store for each, into memory that is there. What may
//! wait or make a system call happens before `begin` takes its time stamp.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::chunks::{RecorderChunks, ThreadChunks};
use crate::clock::ClockKind;
use crate::stamp_words::{ABANDONED, CLOSED, StampWriter, tag};
use crate::thread_events::ThreadEventRing;

/// Words that suffice for most operations: this many are free when one begins, so that it need not wait inside.
const USUAL: usize = 64;

/// Records the operations of the thread that made it. All methods cost some nanoseconds and a time stamp each.
///
/// It stays on its thread, since the kernel's events are asked for that thread; everything takes `&self`, so that a
/// program and a probe inside its data structure can share one.
pub struct Recorder<'t> {
    writer: UnsafeCell<StampWriter>,
    chunks: Option<(Arc<ThreadChunks>, &'t RecorderChunks)>,
    /// Keeps the recorder on its thread.
    _thread: PhantomData<*mut ()>,
}

impl<'t> Recorder<'t> {
    /// Records nothing: all methods return at once.
    #[must_use]
    pub fn off() -> Self {
        let pen = StampWriter::new(ClockKind::Monotonic);
        Self { writer: UnsafeCell::new(pen), chunks: None, _thread: PhantomData }
    }

    pub(crate) fn on(shared: &'t RecorderChunks) -> Self {
        if shared.is_forked_child() {
            return Self::off();
        }
        let lane = shared.open_thread_chunks();
        let mut pen = StampWriter::new(shared.clock);
        pen.enter_chunk(&lane, 0);
        let kernel = shared.kernel.then(|| ThreadEventRing::open().ok()).flatten();
        shared.add_thread(&lane, kernel);
        Self { writer: UnsafeCell::new(pen), chunks: Some((lane, shared)), _thread: PhantomData }
    }

    /// Whether anything is recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.chunks.is_some()
    }

    /// An operation of this kind (an index into [`Vocabulary::operations`](crate::Vocabulary)) begins now.
    ///
    /// Inside an operation it does nothing but flag it: operations do not nest.
    #[inline]
    pub fn begin(&self, kind: u8) {
        self.write_stamp(USUAL, tag::BEGIN, kind);
    }

    /// The operation ends now; spans that are still open end with it.
    #[inline]
    pub fn end(&self) {
        self.write_stamp(1, tag::END, 0);
    }

    /// The operation ends, and one of `kind` begins, with one time stamp for both: half the cost for a program that
    /// does nothing between its operations.
    #[inline]
    pub fn next(&self, kind: u8) {
        if self.stamp_writer().free_words() < USUAL {
            self.end();
            return self.begin(kind);
        }
        self.stamp_writer().stamp(tag::NEXT, kind);
    }

    /// An operation begins, and inside it, with the same time stamp, a span: for one that is divided into spans from its
    /// first moment on, which [`switch`](Self::switch) goes through. Inside an operation it is flagged as [`begin`](Self::begin)
    /// is, and only the span begins.
    #[inline]
    pub fn begin_in(&self, kind: u8, span: u8) {
        let pen = self.stamp_writer();
        if pen.free_words() >= USUAL || self.next_chunk(pen) {
            pen.stamp_with_span(tag::BEGIN, kind, span);
        }
    }

    /// The operation ends with its open spans, one of `kind` begins, and inside it a span: one time stamp for all.
    #[inline]
    pub fn next_in(&self, kind: u8, span: u8) {
        if self.stamp_writer().free_words() < USUAL {
            self.end();
            return self.begin_in(kind, span);
        }
        self.stamp_writer().stamp_with_span(tag::NEXT, kind, span);
    }

    /// A span of this kind (an index into [`Vocabulary::spans`](crate::Vocabulary)) begins now, inside the operation and inside
    /// the spans that are open.
    #[inline]
    pub fn enter(&self, span: u8) {
        self.write_stamp(1, tag::ENTER, span);
    }

    /// The innermost span ends now.
    #[inline]
    pub fn leave(&self) {
        self.write_stamp(1, tag::LEAVE, 0);
    }

    /// The innermost span ends and one of another kind begins, with one time stamp for both.
    #[inline]
    pub fn switch(&self, span: u8) {
        self.write_stamp(1, tag::SWITCH, span);
    }

    /// A number of this kind (an index into [`Vocabulary::numbers`](crate::Vocabulary)) of the operation: up to 55 bits and a
    /// sign; larger ones are stored as the largest. Of two, the last one counts.
    #[inline]
    pub fn number(&self, kind: u8, value: i64) {
        let pen = self.stamp_writer();
        if pen.free_words() > 0 || self.next_chunk(pen) {
            pen.write_number(kind, value);
        }
    }

    /// The operation that is open is forgotten, and counted as abandoned: for who comes out of it by an error or a `longjmp`.
    /// Outside of operations it does nothing.
    #[inline]
    pub fn abandon(&self) {
        self.write_stamp(1, tag::AWAY, ABANDONED);
    }

    /// An operation around `work`; where that panics, it is [abandoned](Self::abandon).
    #[inline]
    pub fn operation<T>(&self, kind: u8, work: impl FnOnce() -> T) -> T {
        struct AbandonOnUnwind<'r, 't>(&'r Recorder<'t>);
        impl Drop for AbandonOnUnwind<'_, '_> {
            fn drop(&mut self) {
                self.0.abandon();
            }
        }
        self.begin(kind);
        let unwound = AbandonOnUnwind(self);
        let result = work();
        std::mem::forget(unwound);
        self.end();
        result
    }

    /// A span around `work`.
    #[inline]
    pub fn span<T>(&self, kind: u8, work: impl FnOnce() -> T) -> T {
        self.enter(kind);
        let result = work();
        self.leave();
        result
    }

    #[inline(always)]
    fn write_stamp(&self, room: usize, tag: u64, kind: u8) {
        let pen = self.stamp_writer();
        if pen.free_words() >= room || self.next_chunk(pen) {
            pen.stamp(tag, kind);
        }
    }

    #[expect(unsafe_code, reason = "shared by the program and its probes, and too hot for a counted borrow")]
    #[expect(clippy::mut_from_ref, reason = "see SAFETY")]
    #[inline(always)]
    fn stamp_writer(&self) -> &mut StampWriter {
        // SAFETY: the recorder cannot leave its thread, no method uses a reference after taking another, and none of them
        // calls foreign code while it holds one.
        unsafe { &mut *self.writer.get() }
    }

    /// Hands the full chunk over and takes the next one, waiting for the writer where it is behind; inside an operation,
    /// which only very many spans bring about, that time is taken out of it. Not inlined: once in thousands of
    /// operations. `false` for a recorder that is off.
    #[cold]
    fn next_chunk(&self, pen: &mut StampWriter) -> bool {
        let Some((lane, shared)) = &self.chunks else { return false };
        if shared.is_forked_child() {
            pen.leave_chunk();
            return false;
        }
        let left = pen.clock.now();
        lane.submit_chunk(pen.chunk, pen.used_words(), pen.clock.read_pair());
        shared.wake_writer();
        let next = (pen.chunk + 1) % lane.chunk_count();
        shared.wait_for_chunk(lane, next);
        pen.enter_chunk(lane, next);
        pen.stamp_absence(left);
        true
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        // A child of the process that made it has no part in the trace.
        if self.chunks.as_ref().is_none_or(|(_, shared)| shared.is_forked_child()) {
            return;
        }
        self.write_stamp(1, tag::AWAY, CLOSED);
        let pen = self.stamp_writer();
        if let Some((lane, shared)) = &self.chunks {
            lane.submit_chunk(pen.chunk, pen.used_words(), pen.clock.read_pair());
            lane.closed.store(true, Ordering::Release);
            shared.wake_writer();
        }
    }
}
