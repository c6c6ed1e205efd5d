//! How profiles are seen.
//!
//! Owns the tables of functions and of what became of the samples. Refuses a share without its denominator.

mod functions;
mod parts;

pub use functions::grid as functions_grid;
pub use parts::{account, grid as parts_grid};
