//! The keys, the same for the same seed.

use super::InsertionPlan;
use crate::load::order::Xorshift64;

pub(super) fn random_integers(plan: &InsertionPlan) -> Vec<u64> {
    let mut random = Xorshift64::new(plan.seed);
    std::iter::repeat_with(|| random.next()).take(plan.elements).collect()
}

/// Eight printable letters each, six random bits a letter.
pub(super) fn random_texts(plan: &InsertionPlan) -> Vec<[u8; 8]> {
    let letters = |number: u64| std::array::from_fn(|at| b'0' + (number >> (at * 8) & 63) as u8);
    random_integers(plan).into_iter().map(letters).collect()
}
