//! Owns the search for steps in a history: energy distance with permutations ([`EDivisive`]) and Hunter's t-test on the
//! same candidates ([`Hunter`]). It refuses to say which revision is to blame: the step lies between two values, and a
//! new measurement on both sides decides.

mod e_divisive;
mod energy;
mod hunter;
mod step;

pub use e_divisive::EDivisive;
pub use hunter::{Hunter, HunterRules};
pub use step::ChangePoint;

#[cfg(test)]
mod tests;
