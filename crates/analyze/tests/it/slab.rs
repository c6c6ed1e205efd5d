//! Slab efficiency: definitions, questions, comparisons, and the notebook of 2019.

mod arbitrary;
mod comparison;
mod definitions;
mod log;
mod notebook;
mod questions;
mod table;
