//! How slab efficiency is shown: tables of caches, time and comparison, and their figures.
//!
//! Every number comes from `perflab_analyze::slab`. In JSON and CSV shares are fractions and sizes are bytes; people
//! see per cent and binary units.

pub(crate) mod grids;
pub mod notebook;
pub(crate) mod scenes;
pub(crate) mod section;

pub use grids::{
    GridWidth, WhatIfRow, cache_grid as show_grid, efficiency_histogram_chart as histogram_figure,
    efficiency_histogram_grid as histogram_grid, growth_chart as growth_figure, growth_grid,
    notebook_column_names, slab_change_chart as comparison_figure, slab_comparison_grid as comparison_grid,
    waste_chart as show_figure, what_if_grid,
};
pub use scenes::{
    efficiency_timeline_chart, slab_bytes_chart as stack_figure, timeline_grid, waste_timeline_chart,
};
