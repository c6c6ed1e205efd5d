//! Owns the tails of Student's t for the rest of the crate. It refuses to decide when t is fit: its callers do.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The t that leaves `tail` above it, for a tail in (0, 1); infinite where the freedom is no number above zero.
pub(crate) fn t_quantile_above(tail: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |student| -student.inverse_cdf(tail))
}

/// P(T > t); 1/2 where the freedom is no number above zero.
pub(crate) fn t_tail_above(t: f64, freedom: f64) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(0.5, |student| student.sf(t))
}

/// Both tails beyond ± t, at most 1.
pub(crate) fn t_two_sided(t: f64, freedom: f64) -> f64 {
    (2.0 * t_tail_above(t.abs(), freedom)).min(1.0)
}
