//! Floats as keys, in the total order of IEEE 754.

use std::cmp::Ordering;

macro_rules! total {
    ($(#[$doc:meta])* $name:ident, $float:ty) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default)]
        pub struct $name(pub $float);

        impl Ord for $name {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.total_cmp(&other.0)
            }
        }

        impl PartialOrd for $name {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }

        impl Eq for $name {}
    };
}

total! {
    /// An `f64` ordered by [`f64::total_cmp`]: -NaN, -inf, ..., -0, +0, ..., inf, NaN.
    F64, f64
}

total! {
    /// An `f32` ordered by [`f32::total_cmp`].
    F32, f32
}
