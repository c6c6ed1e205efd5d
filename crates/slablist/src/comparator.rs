//! Which of two keys comes first: the order of the type, or one of the user's.

use std::cmp::Ordering;

/// The order of a [`SlabSet`](crate::SlabSet)'s keys: total, and the same at each call. One that is neither loses keys; it does no
/// other harm.
///
/// A comparator is copied into each search, so it is small: a type without fields, a function, a closure, or a reference to
/// what it needs.
pub trait Comparator<K>: Copy {
    /// Whether order and numbers of keys rise together, so that a guess by number is good. True of [`NaturalOrder`] alone.
    #[doc(hidden)]
    const IS_NATURAL: bool = false;

    /// How `a` stands to `b`. Keys that are equal here are one key to the set.
    fn compare(&self, a: &K, b: &K) -> Ordering;

    /// Whether `a` comes before `b`.
    #[inline]
    fn is_below(&self, a: &K, b: &K) -> bool {
        self.compare(a, b).is_lt()
    }

    /// Whether `a` comes before `b` or is equal to it.
    #[inline]
    fn is_upto(&self, a: &K, b: &K) -> bool {
        self.compare(a, b).is_le()
    }
}

/// The order of the keys' type, [`Ord`]: what a set has unless said otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct NaturalOrder;

impl<K: Ord> Comparator<K> for NaturalOrder {
    const IS_NATURAL: bool = true;

    #[inline]
    fn compare(&self, a: &K, b: &K) -> Ordering {
        a.cmp(b)
    }

    #[inline]
    fn is_below(&self, a: &K, b: &K) -> bool {
        a < b
    }

    #[inline]
    fn is_upto(&self, a: &K, b: &K) -> bool {
        a <= b
    }
}

impl<K, F: Fn(&K, &K) -> Ordering + Copy> Comparator<K> for F {
    #[inline]
    fn compare(&self, a: &K, b: &K) -> Ordering {
        self(a, b)
    }
}
