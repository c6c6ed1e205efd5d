//! Traces of single operations as tables and pictures. Owns how causes, outliers and changes are laid out; refuses to
//! decide what is one.

mod bins;
mod grids;
mod picture;
mod scale;
mod section;
mod zoom;

pub use grids::{causes_grid, changes_grid, slowest_grid};
pub use picture::{Picture, picture, range};
pub use scale::{Scale, Spread};
pub use section::TraceSection;
pub use zoom::{MOST_BYTES, zoom};

#[cfg(test)]
mod tests;
