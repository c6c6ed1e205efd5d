//! What the crate promises, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic, also in its helpers")]

mod chance;
mod comparator;
mod cursors;
mod defects;
mod dense;
mod fuzz;
mod list_model;
mod list_ops;
mod policies;
mod seams;
mod set_model;
mod set_ops;
mod shapes;
#[cfg(all(feature = "usdt", target_os = "linux", not(miri)))]
mod usdt;

/// Fewer and shorter cases below Miri, which is some hundred times slower.
pub fn scale_for_miri(n: usize) -> usize {
    if cfg!(miri) { n.div_ceil(50) } else { n }
}

/// A fixed sequence that looks random: splitmix64.
pub fn random_numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}
