//! Traces of single operations as tables and pictures: causes, outliers and changes.

pub(crate) mod conclusions;
pub(crate) mod grids;
pub(crate) mod scenes;
pub(crate) mod section;
#[cfg(test)]
mod tests;
pub(crate) mod viewer;

pub use conclusions::{comparison_conclusions, operation_conclusions, probe_conclusions};
pub use grids::{causes_grid, changes_grid, slowest_grid};
pub use scenes::{OperationSceneOptions, ScaleKind, TimeScale, common_time_range, operation_scene};
pub use viewer::{MOST_BYTES, operation_viewer_data};
