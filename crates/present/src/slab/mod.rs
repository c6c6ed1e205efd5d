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

pub use comparison::{figure as comparison_figure, grid as comparison_grid};
pub use growth::{figure as growth_figure, grid as growth_grid};
pub use histogram::{figure as histogram_figure, grid as histogram_grid, rows_figure};
pub(crate) use report::{SlabSection, sections};
pub use show::{Width, figure as show_figure, grid as show_grid, names};
pub use stack::figure as stack_figure;
pub use timeline::{efficiency_figure, grid as timeline_grid, mean_figure, waste_figure};
pub use what_if::{Row as WhatIfRow, grid as what_if_grid};
