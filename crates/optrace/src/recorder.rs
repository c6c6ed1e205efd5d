//! The measured path: from `begin` to `end` only time stamps and stores into memory that is there. Owns the order of
//! things: whatever may wait or call the system happens before `begin` takes its time stamp.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::clock::ClockKind;
use crate::format::FLAG_UNBALANCED;
use crate::kernel::Kernel;
use crate::lane::Lane;
use crate::record::{LONGEST, State};
use crate::trace::Shared;

/// Records the operations of the thread that made it. All methods cost some nanoseconds and a time stamp each.
///
/// It stays on its thread, since the kernel's events are asked for that thread; everything takes `&self`, so that a
/// program and a probe inside its data structure can share one.
pub struct Recorder<'t> {
    state: UnsafeCell<State>,
    lane: Option<(Arc<Lane>, &'t Shared)>,
    /// Keeps the recorder on its thread.
    _thread: PhantomData<*mut ()>,
}

impl<'t> Recorder<'t> {
    /// Records nothing: all methods return at once.
    #[must_use]
    pub fn off() -> Self {
        let state = State::new(ClockKind::Monotonic);
        Self { state: UnsafeCell::new(state), lane: None, _thread: PhantomData }
    }

    pub(crate) fn on(shared: &'t Shared) -> Self {
        let lane = shared.open_lane();
        let mut state = State::new(shared.clock);
        state.enter_chunk(&lane, 0);
        let kernel = shared.kernel.then(|| Kernel::open().ok()).flatten();
        shared.add_lane(&lane, kernel);
        Self { state: UnsafeCell::new(state), lane: Some((lane, shared)), _thread: PhantomData }
    }

    /// Whether anything is recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.lane.is_some()
    }

    /// An operation of this kind (an index into [`Words::operations`](crate::Words)) begins now.
    ///
    /// Inside an operation it does nothing but flag it: operations do not nest.
    #[inline]
    pub fn begin(&self, kind: u8) {
        let state = self.state();
        if state.open || (state.room() < LONGEST && !self.turn(state)) {
            state.flags |= FLAG_UNBALANCED;
            return;
        }
        state.open_record(kind);
        state.begun = state.clock.now();
        state.last = state.begun;
    }

    /// The operation ends now; spans that are still open end with it.
    #[inline]
    pub fn end(&self) {
        let state = self.state();
        if state.open {
            let now = state.clock.now();
            state.close_record(now);
        }
    }

    /// The operation ends, and one of `kind` begins, with one time stamp for both: half the cost for a program that
    /// does nothing between its operations.
    #[inline]
    pub fn next(&self, kind: u8) {
        let state = self.state();
        if !state.open || state.room() < LONGEST + LONGEST {
            self.end();
            return self.begin(kind);
        }
        let now = state.clock.now();
        state.close_record(now);
        state.open_record(kind);
        (state.begun, state.last) = (now, now);
    }

    /// A span of this kind (an index into [`Words::spans`](crate::Words)) begins now, inside the operation and inside
    /// the spans that are open.
    #[inline]
    pub fn enter(&self, span: u8) {
        let state = self.state();
        if !state.open {
            return;
        }
        let now = state.clock.now();
        state.enter(now, span);
    }

    /// The innermost span ends now.
    #[inline]
    pub fn leave(&self) {
        let state = self.state();
        if !state.open {
            return;
        }
        let now = state.clock.now();
        state.leave(now);
    }

    /// The innermost span ends and one of another kind begins, with one time stamp for both.
    #[inline]
    pub fn switch(&self, span: u8) {
        let state = self.state();
        if !state.open {
            return;
        }
        let now = state.clock.now();
        state.leave(now);
        state.enter(now, span);
    }

    /// A number of this kind (an index into [`Words::numbers`](crate::Words)) of the operation: up to 55 bits and a
    /// sign; larger ones are stored as the largest. Told twice, the last one stands.
    #[inline]
    pub fn number(&self, kind: u8, value: i64) {
        let state = self.state();
        if state.open {
            state.number(kind, value);
        }
    }

    /// An operation around `work`.
    #[inline]
    pub fn operation<T>(&self, kind: u8, work: impl FnOnce() -> T) -> T {
        self.begin(kind);
        let result = work();
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

    #[expect(unsafe_code, reason = "shared by the program and its probes, and too hot for a counted borrow")]
    #[expect(clippy::mut_from_ref, reason = "see SAFETY")]
    #[inline(always)]
    fn state(&self) -> &mut State {
        // SAFETY: the recorder cannot leave its thread, every public method takes the reference once, and none of them
        // calls foreign code while it holds it.
        unsafe { &mut *self.state.get() }
    }

    /// Hands the full chunk over and takes the next one, waiting for the writer where it is behind. Not inlined: once
    /// in thousands of operations. `false` for a recorder that is off.
    #[cold]
    fn turn(&self, state: &mut State) -> bool {
        let Some((lane, shared)) = &self.lane else { return false };
        lane.hand_over(state.chunk, state.used_words(), state.records, state.clock.pair());
        shared.wake();
        let next = (state.chunk + 1) % lane.count();
        shared.wait_for(lane, next);
        state.enter_chunk(lane, next);
        true
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        self.end();
        let state = self.state();
        if let Some((lane, shared)) = &self.lane {
            lane.hand_over(state.chunk, state.used_words(), state.records, state.clock.pair());
            lane.closed.store(true, Ordering::Release);
            shared.wake();
        }
    }
}
