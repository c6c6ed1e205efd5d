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

pub use functions::grid as functions_grid;
pub use page::data::{Category, Picture};
pub use page::{Categories, page, picture};
pub use parts::{account, grid as parts_grid, source};
pub use shares::{grid as shares_grid, lines as shares_lines};
pub use svg::{FlameSvg, svg};

#[cfg(test)]
mod tests;
