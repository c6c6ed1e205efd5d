//! Traces of single operations as tables and pictures. Owns how causes, outliers and changes are laid out; refuses to
//! decide what is one.

mod grids;
mod picture;
mod scale;
mod section;

pub use grids::{causes_grid, changes_grid, slowest_grid};
pub use picture::{Picture, picture, range};
pub use scale::{Scale, Spread};
pub use section::TraceSection;

#[cfg(test)]
mod tests;
