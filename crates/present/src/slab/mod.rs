//! How slab efficiency is seen: tables of caches, time and comparison, and their figures.
//!
//! Owns titles, columns and the choice of what is drawn. It refuses formulas: every number comes from
//! `perflab_analyze::slab`. In JSON and CSV shares are fractions and sizes are bytes; people see per cent and binary
//! units.

mod cells;
mod comparison;
mod growth;
mod histogram;
pub mod notebook;
mod report;
mod show;
mod stack;
mod timeline;
mod what_if;

pub use comparison::{slab_change_chart as comparison_figure, slab_comparison_grid as comparison_grid};
pub use growth::{growth_chart as growth_figure, growth_grid};
pub use histogram::{
    efficiency_histogram_chart as histogram_figure, efficiency_histogram_grid as histogram_grid,
    row_histogram_chart,
};
pub(crate) use report::{SlabSection, slab_sections};
pub use show::{GridWidth, cache_grid as show_grid, notebook_column_names, waste_chart as show_figure};
pub use stack::slab_bytes_chart as stack_figure;
pub use timeline::{efficiency_timeline_chart, mean_efficiency_chart, timeline_grid, waste_timeline_chart};
pub use what_if::{WhatIfRow, what_if_grid};
