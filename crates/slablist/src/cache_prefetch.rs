//! Asking for memory before it is needed.
//!
//! This is the crate's only `unsafe`: an instruction that changes nothing but what the caches hold. When it is
//! worth calling is decided where it is called.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for so many cache lines from the first of `elements` on, be they fewer or not: to count them would cost more.
/// Unlike a load it never waits, and so delays nothing behind it.
#[inline]
pub(crate) fn prefetch_slice<const LINES: usize, T>(elements: &[T]) {
    let from = elements.as_ptr().cast::<u8>();
    (0..LINES).for_each(|line| prefetch_line(from.wrapping_add(line * LINE)));
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "the processor's prefetch takes a pointer")]
#[inline]
fn prefetch_line(at: *const u8) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: it reads nothing that the program could see and cannot fault, whatever address it is given.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline]
fn prefetch_line(_: *const u8) {}
