//! The keys, the same for the same seed.

use super::Plan;
use crate::load::order::Random;

pub(super) fn integers(plan: &Plan) -> Vec<u64> {
    let mut random = Random::new(plan.seed);
    std::iter::repeat_with(|| random.next()).take(plan.elements).collect()
}

/// Eight printable letters each, six random bits a letter.
pub(super) fn texts(plan: &Plan) -> Vec<[u8; 8]> {
    let letters = |number: u64| std::array::from_fn(|at| b'0' + (number >> (at * 8) & 63) as u8);
    integers(plan).into_iter().map(letters).collect()
}
