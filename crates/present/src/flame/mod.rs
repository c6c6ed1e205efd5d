//! How profiles are seen.
//!
//! Owns the tables of functions, of shares and of what became of the samples, the viewer's page and the static flame
//! graph. Refuses a share without its denominator, and to judge: `analyze::flame` says what a difference is worth.

mod functions;
mod hue;
mod page;
mod parts;
mod shares;
mod svg;

pub use functions::function_grid as functions_grid;
pub use page::data::{FlameCategory, FlameViewerData};
pub use page::{FlameCategories, flame_viewer_data, render_flame_page};
pub use parts::{profile_source_text, sample_account, sample_part_grid as parts_grid};
pub use shares::{share_grid as shares_grid, share_sentences as shares_lines};
pub use svg::{FlameGraph, flame_graph_svg};

#[cfg(test)]
mod tests;
