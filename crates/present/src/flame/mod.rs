//! How profiles are seen.
//!
//! Owns the tables of functions, of shares and of what became of the samples, the viewer's page and the static flame
//! graph. Refuses a share without its denominator, and to judge: `analyze::flame` says what a difference is worth.

pub(crate) mod grids;
pub(crate) mod scenes;
#[cfg(test)]
mod tests;
pub(crate) mod viewer;

pub use crate::report::render_flame_page;
pub use grids::{
    function_grid as functions_grid, profile_source_text, sample_account, sample_part_grid as parts_grid,
    share_grid as shares_grid, share_sentences as shares_lines,
};
pub use scenes::{FlameGraph, flame_graph_svg};
pub use viewer::{FlameCategories, FlameCategory, FlameViewerData, flame_viewer_data};
