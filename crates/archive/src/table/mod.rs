//! Parquet tables: columns declared once with unit and meaning, rows pushed cell by cell, columns read
//! back typed. Owns encodings, row groups and the metadata that says what a column is; refuses to know
//! what any table is about.
//!
//! Parquet keeps a column's unit only in a schema of Arrow's, which would cost this project the Arrow
//! crates. So each file carries `perflab.columns` in its key-value metadata: the declarations, as JSON.

mod buffer;
mod declare;
mod read;
mod repeats;
mod write;

pub(crate) use buffer::{StoredCell, StoredCells};
pub(crate) use declare::{StorageType, StoredColumn, event_columns};
pub(crate) use read::ParquetReader;
pub(crate) use write::ParquetWriter;

/// The key of the declarations in a file's metadata.
pub(crate) const COLUMNS_KEY: &str = "perflab.columns";
/// The key of the format version.
pub(crate) const FORMAT_KEY: &str = "perflab.format";

#[cfg(test)]
mod tests;
