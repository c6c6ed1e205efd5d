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

pub(crate) mod benchstat;
pub(crate) mod grids;
pub(crate) mod lkp;
pub mod mmtests;
pub(crate) mod row_text;
pub(crate) mod section;
pub(crate) mod table;
#[cfg(test)]
mod tests;

pub use crate::grid::{
    ColumnAlign, Grid, GridCell, GridColumn, GridError, OutputFormat, UnknownOutputFormat,
};
pub use benchstat::render_benchstat;
pub use grids::{render_gains, render_interactions, render_statistics};
pub use lkp::render_lkp;
pub use row_text::format_change;
pub use table::{render_comparison, render_comparisons};
