//! Columns of texts as they repeat: a text and how often it follows itself, which is how Parquet stores them (a dictionary,
//! and its indices run by run). Owns both ways past the crate's own reader and writer, which handle each cell alone: names
//! of metrics and units, the same in hundreds of thousands of rows, were half of the cost of reading a run and a sixth of
//! writing one. Refuses cells that may be missing.
//!
//! Source: the Parquet format's description of the encodings PLAIN and RLE.

mod read;
mod write;

pub(super) use read::read_text_runs;
pub(super) use write::{is_worth_runs, write_text_runs};

#[cfg(test)]
mod tests;
