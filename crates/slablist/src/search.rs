//! Searches in sorted arrays: strided, and near where a key probably lies.
//!
//! Keys are mapped to numbers, and a position is interpolated between them. A guess is only a position to look at
//! first; but that keys fill the room between two others without a gap is certain knowledge.

use castaway::match_type;

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
