//! Writing a table row by row, holding at most one row group in memory.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use perflab_model::FORMAT_VERSION;

use super::buffer::{ColumnBuffer, StoredCell, StoredCells};
use super::declare::{StorageType, StoredColumn, parquet_schema};
use super::{COLUMNS_KEY, FORMAT_KEY, repeats};
use crate::ArchiveError;
use crate::fresh_file::create_fresh_file;

/// Cells that are held before a row group is written: about 5 MB, however many columns there are.
const CELLS: usize = 512 * 1024;
/// Rows of a row group at most.
const ROWS: usize = 64 * 1024;

/// A table that is being written.
pub(crate) struct ParquetWriter {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    buffers: Vec<ColumnBuffer>,
    held: usize,
    limit: usize,
}

impl ParquetWriter {
    /// Creates the file; `metadata` joins the declarations in it.
    pub(crate) fn create(
        path: &Path,
        columns: &[StoredColumn],
        metadata: &[(&str, String)],
    ) -> Result<Self, ArchiveError> {
        let file = create_fresh_file(path).map_err(ArchiveError::io("create", path))?;
        let properties = writer_properties(columns, metadata).map_err(ArchiveError::damaged(path))?;
        let schema = parquet_schema(columns).map_err(|error| parquet_error(path, error))?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties));
        Ok(ParquetWriter {
            path: path.into(),
            writer: writer.map_err(|error| parquet_error(path, error))?,
            buffers: columns.iter().map(ColumnBuffer::new).collect(),
            held: 0,
            limit: (CELLS / columns.len().max(1)).clamp(1, ROWS),
        })
    }

    /// Takes a row: one cell a column, missing ones filled up.
    pub(crate) fn push_row<'a>(
        &mut self,
        row: impl IntoIterator<Item = StoredCell<'a>>,
    ) -> Result<(), ArchiveError> {
        let cells = row.into_iter().chain(std::iter::repeat(StoredCell::Missing));
        self.buffers.iter_mut().zip(cells).for_each(|(buffer, cell)| buffer.push(cell));
        self.held += 1;
        if self.held >= self.limit { self.flush() } else { Ok(()) }
    }

    /// Takes rows at once: the cells of each column, missing ones filled up. Cheaper by far than row by row where columns
    /// stay the same; `rows` are far fewer than a row group has.
    pub(crate) fn extend_columns<'a>(
        &mut self,
        rows: usize,
        columns: impl IntoIterator<Item = StoredCells<'a>>,
    ) -> Result<(), ArchiveError> {
        if self.held + rows > self.limit {
            self.flush()?;
        }
        let cells = columns.into_iter().chain(std::iter::repeat(StoredCells::Same(StoredCell::Missing)));
        self.buffers.iter_mut().zip(cells).for_each(|(buffer, cells)| buffer.extend(rows, cells));
        self.held += rows;
        Ok(())
    }

    /// Ends the row group: a reader can take what comes next for itself.
    pub(crate) fn end_row_group(&mut self) -> Result<(), ArchiveError> {
        self.flush()
    }

    /// Adds to the file's metadata what is only known at the end.
    pub(crate) fn add_metadata(&mut self, key: &str, value: String) {
        self.writer.append_key_value_metadata(KeyValue::new(key.into(), value));
    }

    /// Writes what is held and the footer, and syncs the file.
    pub(crate) fn close(mut self) -> Result<(), ArchiveError> {
        self.flush()?;
        let file = self.writer.into_inner().map_err(|error| parquet_error(&self.path, error))?;
        file.sync_all().map_err(ArchiveError::io("sync", &self.path))
    }

    fn flush(&mut self) -> Result<(), ArchiveError> {
        if self.held == 0 {
            return Ok(());
        }
        self.held = 0;
        self.write_row_group().map_err(|error| parquet_error(&self.path, error))
    }

    fn write_row_group(&mut self) -> Result<(), ParquetError> {
        let columns = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group()?;
        for (buffer, column) in self.buffers.iter_mut().zip(columns) {
            let repeats = buffer
                .text_runs()
                .map(|runs| repeats::write_text_runs(&mut group, column, runs))
                .transpose()?;
            if repeats.is_some() {
                buffer.clear();
            } else if let Some(mut column) = group.next_column()? {
                buffer.flush(&mut column)?;
                column.close()?;
            }
        }
        group.close().map(drop)
    }
}

/// A failure of the Parquet writer is almost always the disk's: keep the system's words.
fn parquet_error(path: &Path, error: ParquetError) -> ArchiveError {
    ArchiveError::io("write", path)(std::io::Error::other(error))
}

fn writer_properties(
    columns: &[StoredColumn],
    metadata: &[(&str, String)],
) -> Result<WriterProperties, Box<dyn std::error::Error>> {
    let declared = serde_json::to_string(columns)?;
    let own = [(FORMAT_KEY, FORMAT_VERSION.to_string()), (COLUMNS_KEY, declared)];
    let pairs = own.iter().chain(metadata).map(|(key, value)| KeyValue::new((*key).into(), value.clone()));
    let builder = WriterProperties::builder()
        .set_created_by(concat!("perflab ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_dictionary_enabled(false)
        .set_key_value_metadata(Some(pairs.collect()));
    Ok(columns.iter().fold(builder, column_properties).build())
}

/// Texts repeat and get a dictionary; their least and greatest, which each row group has nearly all of, say nothing and
/// cost a comparison a cell. Counters and times grow slowly and are stored as differences.
fn column_properties(builder: WriterPropertiesBuilder, column: &StoredColumn) -> WriterPropertiesBuilder {
    let path = ColumnPath::new(vec![column.name.clone()]);
    match column.stored {
        StorageType::Text => builder
            .set_column_dictionary_enabled(path.clone(), true)
            .set_column_statistics_enabled(path, EnabledStatistics::None),
        StorageType::Int32 | StorageType::Int64 => {
            builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
        }
        StorageType::Double | StorageType::Boolean => builder,
    }
}
