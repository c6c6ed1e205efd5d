//! Searches in sorted arrays: strided, and near where a key probably lies.
//!
//! Keys are mapped to numbers, and a position is interpolated between them. A guess is only a position to look at
//! first; but that keys fill the room between two others without a gap is certain knowledge.

use castaway::match_type;

use crate::cache_prefetch::prefetch_slice;
use crate::comparator::Comparator;

/// The number that a key is: two keys have it in common only if they are equal, and it rises as keys do. `None` for
/// types that have none, which is known when the program is compiled.
#[inline]
fn exact_number<K: Copy>(key: &K) -> Option<u64> {
    match_type!(*key, {
        u64 as key => Some(key),
        u32 as key => Some(key.into()),
        u16 as key => Some(key.into()),
        u8 as key => Some(key.into()),
        usize as key => Some(key as u64),
        i64 as key => Some(order_preserving_u64(key)),
        i32 as key => Some(order_preserving_u64(key.into())),
        i16 as key => Some(order_preserving_u64(key.into())),
        i8 as key => Some(order_preserving_u64(key.into())),
        isize as key => Some(order_preserving_u64(key as i64)),
        [u8; 8] as key => Some(u64::from_be_bytes(key)),
        [u8; 4] as key => Some(u32::from_be_bytes(key).into()),
        _ => None,
    })
}

/// The number that a key is mapped to: it never falls where keys rise.
#[inline]
fn ordering_number<K: Copy>(key: &K) -> Option<u64> {
    match_type!(*key, {
        u128 as key => Some((key >> 64) as u64),
        [u8; 16] as key => Some((u128::from_be_bytes(key) >> 64) as u64),
        key => exact_number(&key),
    })
}

/// Whether `len` keys that differ, above `above` and not above `upto`, leave no number between these out.
#[inline]
pub(crate) fn is_dense_span<K: Copy, C: Comparator<K>>(len: usize, above: &K, upto: &K) -> bool {
    C::IS_NATURAL
        && matches!((exact_number(above), exact_number(upto)), (Some(above), Some(upto)) if upto.wrapping_sub(above) == len as u64)
}

/// How many numbers lie between two keys that are numbers.
#[inline]
pub(crate) fn numbers_between<K: Copy, C: Comparator<K>>(above: &K, key: &K) -> Option<usize> {
    if !C::IS_NATURAL {
        return None;
    }
    Some(exact_number(key)?.wrapping_sub(exact_number(above)?).wrapping_sub(1) as usize)
}

/// Signed numbers in their order, from 0.
#[inline]
fn order_preserving_u64(number: i64) -> u64 {
    number.cast_unsigned() ^ (1 << 63)
}

/// Whether guesses have been good lately. Keys in clumps make bad ones, each of which takes longer than none.
#[derive(Debug)]
pub(crate) struct GuessTrust(u8);

impl GuessTrust {
    /// What a bad guess costs of it, and what there must be of it for a guess: where keys lie evenly, every hundredth
    /// guess is bad.
    const BAD: u8 = 32;

    pub fn full() -> Self {
        Self(4 * Self::BAD)
    }

    /// Whether to guess. Each time that the answer is no brings nearer the time at which it is tried again.
    #[inline]
    pub fn should_guess(&mut self) -> bool {
        let is = self.0 >= Self::BAD;
        self.0 += u8::from(!is);
        is
    }

    #[inline]
    pub fn learn(&mut self, was_good: bool) {
        self.0 = if was_good { (self.0 + 1).min(Self::full().0) } else { self.0.saturating_sub(Self::BAD) };
    }
}

/// How many of `len` keys from `low` to `high` are below `key` if they lie evenly. `None` where keys have no numbers, or are in
/// another order than these.
#[inline]
pub(crate) fn interpolate_slot<K: Copy, C: Comparator<K>>(
    len: usize,
    low: &K,
    key: &K,
    high: &K,
) -> Option<usize> {
    if !C::IS_NATURAL {
        return None;
    }
    let (low, key, high) = (ordering_number(low)?, ordering_number(key)?, ordering_number(high)?);
    // Halved, for it is signed numbers that the processor makes floats of at once.
    let above_low = |number: u64| (number.saturating_sub(low) >> 1).cast_signed() as f64;
    Some((above_low(key) / above_low(high).max(1.0) * len as f64) as u32 as usize)
}

/// Elements compared at a distance before their neighbourhood is: one cache line of eight-byte keys. Measured
/// against 16 and 32: a third less time per insertion and lookup.
const STRIDE: usize = 8;

/// The number of leading elements below `key`.
///
/// First counts over every eighth element, then within one stride: the loads of a stage do not depend on each
/// other, so their cache misses overlap, while those of a binary search queue up.
#[inline]
pub(crate) fn lower_bound<K, C: Comparator<K>>(keys: &[K], key: &K, order: C) -> usize {
    let strides: usize = keys
        .chunks_exact(STRIDE)
        .map(|c| usize::from(c.last().is_some_and(|k| order.is_below(k, key))))
        .sum();
    let start = strides * STRIDE;
    let rest = keys.get(start..).unwrap_or_default();
    let rest = rest.get(..STRIDE).unwrap_or(rest);
    start + rest.iter().map(|k| usize::from(order.is_below(k, key))).sum::<usize>()
}

/// As [`lower_bound`], of keys that end up at an end, as those do that rise or fall.
#[inline]
pub(crate) fn bound_at_ends<K, C: Comparator<K>>(keys: &[K], key: &K, order: C) -> Option<usize> {
    match keys {
        [.., last] if order.is_below(last, key) => Some(keys.len()),
        [first, ..] if order.is_upto(key, first) => Some(0),
        _ => None,
    }
}

/// Keys looked at around a guess: 99 in a hundred keys that lie evenly in a slab of 160 are this near to theirs.
pub(crate) const NEAR: usize = 4 * STRIDE;

/// Separators looked at around a guess. Between even keys they are a slab apart, give or take how full slabs are, and so
/// much nearer to theirs than keys are.
const NEAR_SEPS: usize = 2 * STRIDE;

/// The number of leading elements below `key`, which is probably about `guess`.
///
/// The cache lines of `WINDOW` keys are loaded at once instead of a slab's twenty, so that the index stays in the cache; and
/// few enough instructions follow for the processor to begin the next lookup at the same time.
#[inline]
fn lower_bound_near<const WINDOW: usize, K, C: Comparator<K>>(
    keys: &[K],
    key: &K,
    guess: usize,
    order: C,
) -> usize {
    let from = guess.saturating_sub(WINDOW / 2).min(keys.len().saturating_sub(WINDOW));
    let Some((before, rest)) = keys.split_at_checked(from) else { return lower_bound_far(keys, key, order) };
    let Some((near, after)) = rest.split_first_chunk::<WINDOW>() else {
        return lower_bound_far(keys, key, order);
    };
    let (strides, _) = near.as_chunks::<STRIDE>();
    let passed =
        strides.iter().map(|stride| usize::from(order.is_below(&stride[STRIDE - 1], key))).sum::<usize>();
    let Some(stride) = strides.get(passed) else { return from + WINDOW + lower_bound_far(after, key, order) };
    match passed * STRIDE + bound_in_stride(stride, key, order) {
        0 => lower_bound_far(before, key, order),
        below => from + below,
    }
}

/// The number of leading elements of a slab below `key`, which is probably about `guess`.
#[inline]
pub(crate) fn slot_near<K, C: Comparator<K>>(slab: &[K], key: &K, guess: usize, order: C) -> usize {
    lower_bound_near::<NEAR, _, _>(slab, key, guess, order)
}

/// The guess was bad: kept out of the way of the good ones.
#[cold]
#[inline(never)]
fn lower_bound_far<K, C: Comparator<K>>(keys: &[K], key: &K, order: C) -> usize {
    lower_bound(keys, key, order)
}

/// The number of leading elements below `key`, which the last is not.
#[inline]
fn bound_in_stride<K, C: Comparator<K>>(stride: &[K; STRIDE], key: &K, order: C) -> usize {
    let fourth = 4 * usize::from(order.is_below(&stride[3], key));
    let second = fourth + 2 * usize::from(order.is_below(&stride[fourth + 1], key));
    second + usize::from(order.is_below(&stride[second], key))
}

/// Which of the slabs between `seps` holds `key` if they lie evenly. Where that one and its neighbours are kept is asked for
/// before it is known which it is: two misses that would wait for each other become one.
#[inline]
pub(crate) fn prefetch_guessed_slab<K: Copy, C: Comparator<K>>(
    seps: &[K],
    slabs: &[Vec<K>],
    key: &K,
) -> Option<usize> {
    let [low, .., high] = seps else { return None };
    let guess = interpolate_slot::<K, C>(seps.len(), low, key, high)?;
    for at in [guess.saturating_sub(3), guess, guess.saturating_add(3)] {
        prefetch_slice::<1, _>(slabs.get(at..).unwrap_or_default());
    }
    Some(guess)
}

/// The slab that `key` belongs into, for lookups.
#[inline]
pub(crate) fn slab_near<K: Copy, C: Comparator<K>>(seps: &[K], slabs: &[Vec<K>], key: &K, order: C) -> usize {
    match prefetch_guessed_slab::<K, C>(seps, slabs, key) {
        Some(guess) => lower_bound_near::<NEAR_SEPS, _, _>(seps, key, guess, order),
        None => seps.partition_point(|sep| order.is_below(sep, key)),
    }
}

#[cfg(test)]
mod tests {
    use super::GuessTrust;
    use crate::comparator::NaturalOrder;

    fn interpolate_slot<K: Copy + Ord>(len: usize, low: &K, key: &K, high: &K) -> Option<usize> {
        super::interpolate_slot::<K, NaturalOrder>(len, low, key, high)
    }

    fn is_dense_span<K: Copy + Ord>(len: usize, above: &K, upto: &K) -> bool {
        super::is_dense_span::<K, NaturalOrder>(len, above, upto)
    }

    fn numbers_between<K: Copy + Ord>(above: &K, key: &K) -> Option<usize> {
        super::numbers_between::<K, NaturalOrder>(above, key)
    }

    #[test]
    fn even_keys_are_where_they_are_guessed() {
        for at in 0..100_usize {
            assert!(interpolate_slot(100, &0_u64, &(at as u64 * 1000), &100_000).unwrap().abs_diff(at) <= 2);
            assert!(interpolate_slot(100, &-50_i32, &(at as i32 - 50), &50).unwrap().abs_diff(at) <= 2);
            let bytes = |n: usize| ((n as u128) << 90).to_be_bytes();
            assert!(interpolate_slot(100, &bytes(0), &bytes(at), &bytes(100)).unwrap().abs_diff(at) <= 2);
        }
    }

    #[test]
    fn the_whole_width_of_a_type_is_measured() {
        assert_eq!(interpolate_slot(100, &0, &(u64::MAX / 2), &u64::MAX), Some(50));
        assert_eq!(interpolate_slot(100, &i64::MIN, &0, &i64::MAX), Some(50));
        assert_eq!(interpolate_slot(100, &5_u64, &5, &5), Some(0));
    }

    #[test]
    fn a_span_is_full_when_no_number_is_left_out() {
        assert!(
            is_dense_span(5, &10_u64, &15)
                && !is_dense_span(4, &10_u64, &15)
                && !is_dense_span(6, &10_u64, &15)
        );
        assert!(
            is_dense_span(3, &-2_i64, &1)
                && is_dense_span(255, &i8::MIN, &i8::MAX)
                && is_dense_span(1, &[0_u8; 4], &[0, 0, 0, 1])
        );
        assert_eq!(numbers_between(&-2_i32, &1), Some(2));
    }

    #[test]
    fn guesses_that_go_wrong_are_given_up_and_tried_again() {
        let mut trust = GuessTrust::full();
        for turn in 0..1000 {
            assert!(trust.should_guess());
            trust.learn(turn % 100 > 0);
        }
        let guesses = (0..1000).filter(|_| {
            let guesses = trust.should_guess();
            if guesses {
                trust.learn(false);
            }
            guesses
        });
        assert!((20..40).contains(&guesses.count()));
    }

    #[test]
    fn truncated_numbers_fill_nothing() {
        assert!(!is_dense_span(1, &(1_u128 << 64), &(2 << 64)) && !is_dense_span(0, &[1_u8; 16], &[1; 16]));
        assert!(!is_dense_span(1, &"a", &"b") && numbers_between(&0_u128, &1).is_none());
    }

    #[test]
    fn keys_without_numbers_have_no_guess() {
        assert_eq!(interpolate_slot(100, &"a", &"b", &"c"), None);
        assert_eq!(interpolate_slot(100, &(1_u64, 2), &(3, 4), &(5, 6)), None);
    }
}
