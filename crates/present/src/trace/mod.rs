//! Traces of single operations as tables and pictures. Owns how causes, outliers and changes are laid out; refuses to
//! decide what is one.

mod bins;
mod grids;
mod picture;
mod scale;
mod section;
mod zoom;

pub use grids::{causes_grid, changes_grid, slowest_grid};
pub use picture::{OperationSceneOptions, common_time_range, operation_scene};
pub use scale::{ScaleKind, TimeScale};
pub use section::TraceSection;
pub use zoom::{MOST_BYTES, operation_viewer_data};

#[cfg(test)]
mod tests;
