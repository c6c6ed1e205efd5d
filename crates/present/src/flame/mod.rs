//! How profiles are seen.
//!
//! Owns the tables of functions, of shares and of what became of the samples. Refuses a share without its denominator.

mod functions;
mod parts;
mod shares;

pub use functions::grid as functions_grid;
pub use parts::{account, grid as parts_grid};
pub use shares::{grid as shares_grid, lines as shares_lines};
