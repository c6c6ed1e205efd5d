//! How profiles are shown: tables, the viewer's page and the static flame graph.
//!
//! No share is without its denominator; what a difference is worth, `analyze::flame` says.

pub(crate) mod compared_shares;
mod differential_scene;
mod function_differences;
pub(crate) mod grids;
pub(crate) mod scenes;
pub(crate) mod section;
#[cfg(test)]
mod tests;
pub(crate) mod viewer;

pub use crate::report::render_flame_page;
pub use compared_shares::{
    compared_share_grid as compared_shares_grid, compared_share_sentences as compared_shares_lines,
};
pub use differential_scene::{DifferentialGraph, differential_flame_svg};
pub use function_differences::{
    function_difference_grid as function_differences_grid,
    function_difference_sentences as function_differences_lines,
};
pub use grids::{
    function_grid as functions_grid, profile_source_text, sample_account, sample_part_grid as parts_grid,
    share_grid as shares_grid, share_sentences as shares_lines,
};
pub use scenes::{FlameGraph, flame_graph_svg};
pub use section::{
    ProfiledSide, colour_categories, draw_sides, measured_tree_options, share_commands, side_profiles,
};
pub use viewer::{FlameCategories, FlameCategory, FlameViewerData, flame_viewer_data};
