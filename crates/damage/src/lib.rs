//! Damaged files for tests: bits, numbers, truncation and splices in bytes; other values in texts.
//!
//! The attacks of `xtask` feed them to perflab, the tests of `fuzz-decoders` to each decoder.

mod mutation;

pub use mutation::{MutationRandom, damage_bytes, mutate_bytes};
