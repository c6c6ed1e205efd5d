//! The viewer: one HTML file, and the same component inside the report.
//!
//! Owns what the viewer is told (`data`, packed by `pack`) and its page. The viewer itself is TypeScript, in
//! `web/src/flame/`, in the same bundle as the report's front end.

mod categories;
pub(crate) mod data;
mod pack;
mod picture;
mod render;

pub use categories::FlameCategories;
pub use picture::flame_viewer_data;
pub use render::render_flame_page;
