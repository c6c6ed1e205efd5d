//! Asking for memory before it is needed. Owns the crate's only `unsafe`: an instruction that changes nothing but what
//! the caches hold. What it is worth to call it for is decided where it is called.
#![expect(unsafe_code, reason = "the processor's prefetch takes a pointer")]

/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks for the first `lines` cache lines of `elements`. Unlike a load it never waits, and so holds up nothing behind it.
#[inline]
pub(crate) fn load_ahead<T>(elements: &[T], lines: usize) {
    let step = (LINE / size_of::<T>().max(1)).max(1);
    elements.iter().step_by(step).take(lines).for_each(prefetch);
}

#[inline]
fn prefetch<T>(element: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it reads nothing and cannot fault, whatever it is given, and this is an element that is there.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = element;
}
