//! Terminal tables: a comparison, and lists of anything, as a table for people, JSON, CSV or Markdown.
//!
//! Owns columns, numbers for people, footnotes and the wording of warnings. It refuses to decide what a number
//! means (`perflab-analyze` did) and to ask the terminal anything: width and colour are passed in.
//!
//! ```
//! use perflab_present::table::{Cell, Column, Format, Grid};
//! let mut grid = Grid::new([Column::left("run"), Column::right("samples")]);
//! grid.add([Cell::from("01JD"), Cell::from(120_u64)]);
//! let text = grid.render(Format::Csv, None, false)?;
//! assert_eq!(text, "run,samples\n01JD,120\n");
//! # Ok::<(), perflab_present::table::TableError>(())
//! ```

mod advice;
mod benchstat;
mod colour;
mod comparison;
mod csv_rows;
mod format;
mod grid;
mod interactions;
mod lkp;
mod markdown;
pub mod mmtests;
mod number;
mod recap;
mod stacked;
mod statistics;
pub mod targets;
mod wide;
mod words;

#[cfg(test)]
mod tests;

pub use benchstat::render_benchstat;
pub use comparison::{render_comparison, render_comparisons};
pub use format::{GridError, OutputFormat, UnknownOutputFormat};
pub use grid::{ColumnAlign, Grid, GridCell, GridColumn};
pub use interactions::render_interactions;
pub use lkp::render_lkp;
pub use recap::render_gains;
pub use statistics::render_statistics;
pub use words::format_change;
