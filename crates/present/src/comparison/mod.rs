//! Comparisons as tables for people, JSON, CSV or Markdown, in perflab's form and in those of other tools.
//!
//! What a number means was decided by `perflab-analyze`. The terminal is never asked: width and colour are arguments.
//!
//! ```
//! use perflab_present::comparison::{Grid, GridCell, GridColumn, OutputFormat};
//! let mut grid = Grid::new([GridColumn::left("run"), GridColumn::right("samples")]);
//! grid.add_row([GridCell::from("01JD"), GridCell::from(120_u64)]);
//! let text = grid.render(OutputFormat::Csv, None, false)?;
//! assert_eq!(text, "run,samples\n01JD,120\n");
//! # Ok::<(), perflab_present::comparison::GridError>(())
//! ```

pub(crate) mod answer;
pub(crate) mod benchstat;
pub(crate) mod document;
pub(crate) mod grids;
pub(crate) mod interval_axis;
mod kernel_log_table;
pub(crate) mod lkp;
pub mod mail;
pub mod mmtests;
pub(crate) mod row_text;
pub(crate) mod section;
mod shift_chart;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod verdict_table;

pub use crate::grid::{ColumnAlign, Grid, GridCell, GridColumn, GridError, OutputFormat};
pub use benchstat::render_benchstat;
pub use document::{ComparisonDocument, SlabComparisonDocument, comparison_schema};
pub use grids::{render_gains, render_interactions, render_statistics};
pub use lkp::render_lkp;
pub use mail::{StudyComparison, StudyComparisons, recipe_text, short_lines, studies_mail};
pub use row_text::format_change;
pub use table::{render_comparison, render_comparisons, studies_markdown};
