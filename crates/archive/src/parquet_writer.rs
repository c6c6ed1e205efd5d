//! Parquet tables: columns declared once with unit and meaning, rows pushed cell by cell, at most one row group in
//! memory.
//!
//! Parquet keeps a column's unit only in a schema of Arrow's, which would cost this project the Arrow crates. So each
//! file carries `perflab.columns` in its key-value metadata: the declarations, as JSON. The Parquet schema and that
//! metadata both come from one declaration.
//!
//! Columns of texts as they repeat are a text and how often it follows itself, which is how Parquet stores them (a
//! dictionary, and its indices run by run). They bypass the crate's own reader and writer, which handle each cell
//! alone: names of metrics and units, the same in hundreds of thousands of rows, were half of the cost of reading a run
//! and a sixth of writing one. Texts that hardly repeat go through the crate's writer, which packs them better; cells
//! of such a column must not be missing.
//!
//! Source: the Parquet format's description of the encodings PLAIN and RLE.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexSet;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, KeyValue};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::{
    SerializedColumnWriter, SerializedFileWriter, SerializedPageWriter, SerializedRowGroupWriter,
    TrackedWrite,
};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, Type, TypePtr};
use perflab_model::{FORMAT_VERSION, SharedStr};
use serde::{Deserialize, Serialize};

use crate::error::ArchiveError;
use crate::fresh_file::create_fresh_file;

/// The key of the declarations in a file's metadata.
pub(crate) const COLUMNS_KEY: &str = "perflab.columns";

/// The key of the format version.
const FORMAT_KEY: &str = "perflab.format";

/// How a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StorageType {
    Int32,
    Int64,
    Double,
    Text,
    Boolean,
}

/// One column: an element of `perflab.columns`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredColumn {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) stored: StorageType,
    /// `ns`, `bytes`, `1` for a bare count or a name.
    pub(crate) unit: String,
    /// `key`, `counter`, `gauge`; `value` where none of them fits.
    pub(crate) kind: String,
    /// Whether cells may be missing.
    pub(crate) optional: bool,
    pub(crate) meaning: String,
}

impl StoredColumn {
    /// A column without missing cells.
    pub(crate) fn new(name: &str, stored: StorageType, unit: &str, kind: &str, meaning: &str) -> Self {
        let [name, unit, kind, meaning] = [name, unit, kind, meaning].map(String::from);
        StoredColumn { name, stored, unit, kind, optional: false, meaning }
    }

    /// The same, with cells that may be missing.
    pub(crate) fn optional(self) -> Self {
        StoredColumn { optional: true, ..self }
    }

    fn parquet_type(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self.stored {
            StorageType::Int32 => (Physical::INT32, None),
            StorageType::Int64 => (Physical::INT64, None),
            StorageType::Double => (Physical::DOUBLE, None),
            StorageType::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            StorageType::Boolean => (Physical::BOOLEAN, None),
        };
        let repetition = if self.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let builder = Type::primitive_type_builder(&self.name, physical);
        builder.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    }
}

/// Columns of events, from their name, type, unit, whether cells may be missing, and meaning.
pub(crate) fn event_columns(columns: &[(&str, StorageType, &str, bool, &str)]) -> Vec<StoredColumn> {
    let column = |(name, stored, unit, optional, meaning): &(&str, StorageType, &str, bool, &str)| {
        let kind = if *stored == StorageType::Int64 { "value" } else { "key" };
        let column = StoredColumn::new(name, *stored, unit, kind, meaning);
        if *optional { column.optional() } else { column }
    };
    columns.iter().map(column).collect()
}

/// The Parquet schema of a table.
fn parquet_schema(columns: &[StoredColumn]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(StoredColumn::parquet_type).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("row").with_fields(fields).build().map(Arc::new)
}

/// One cell on its way into a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StoredCell<'a> {
    Int(i64),
    Float(f64),
    Text(&'a str),
    Flag(bool),
    Missing,
}

/// The cells of one column in some rows that follow one another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StoredCells<'a> {
    /// The same in all of them.
    Same(StoredCell<'a>),
    Ints(&'a [i64]),
    Floats(&'a [f64]),
}

/// Values without the missing ones, and a definition level (0 missing, 1 there) for each row.
struct ColumnBuffer {
    values: ColumnValues,
    levels: Vec<i16>,
    optional: bool,
}

enum ColumnValues {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Text(DictionaryTexts),
    Boolean(Vec<bool>),
}

impl ColumnBuffer {
    pub(crate) fn new(column: &StoredColumn) -> Self {
        let values = match column.stored {
            StorageType::Int32 => ColumnValues::Int32(Vec::new()),
            StorageType::Int64 => ColumnValues::Int64(Vec::new()),
            StorageType::Double => ColumnValues::Double(Vec::new()),
            StorageType::Text => ColumnValues::Text(DictionaryTexts::default()),
            StorageType::Boolean => ColumnValues::Boolean(Vec::new()),
        };
        ColumnBuffer { values, levels: Vec::new(), optional: column.optional }
    }

    /// Takes a cell; one that does not fit the column's type counts as missing, and in a column that
    /// has no missing cells as zero.
    pub(crate) fn push(&mut self, item: StoredCell) {
        let fits = self.values.push(item);
        if !fits && !self.optional {
            self.values.push_zero();
        }
        if self.optional {
            self.levels.push(i16::from(fits));
        }
    }

    /// Takes the cells of so many rows.
    pub(crate) fn extend(&mut self, rows: usize, cells: StoredCells) {
        let fits = self.values.extend(rows, cells);
        if !fits && !self.optional {
            (0..rows).for_each(|_| self.values.push_zero());
        }
        if self.optional {
            self.levels.resize(self.levels.len() + rows, i16::from(fits));
        }
    }

    /// The texts and how often each follows itself, where they have no missing ones among them and repeat enough.
    pub(crate) fn text_runs(&self) -> Option<impl Iterator<Item = (&str, usize)>> {
        let ColumnValues::Text(texts) = &self.values else { return None };
        let rows = texts.runs.iter().map(|(_, times)| times).sum();
        let all = texts.runs.iter().map(|(text, times)| (text.as_str(), *times));
        (!self.optional && is_worth_runs(texts.runs.len(), rows)).then_some(all)
    }

    /// Forgets the cells.
    pub(crate) fn clear(&mut self) {
        if let ColumnValues::Text(texts) = &mut self.values {
            texts.runs.clear();
            texts.known.clear();
        }
    }

    /// Writes the cells out and forgets them.
    pub(crate) fn flush(&mut self, writer: &mut SerializedColumnWriter) -> Result<(), ParquetError> {
        let levels = self.optional.then_some(self.levels.as_slice());
        match &mut self.values {
            ColumnValues::Int32(values) => write_values::<Int32Type>(writer, values, levels)?,
            ColumnValues::Int64(values) => write_values::<Int64Type>(writer, values, levels)?,
            ColumnValues::Double(values) => write_values::<DoubleType>(writer, values, levels)?,
            ColumnValues::Text(texts) => {
                write_values::<ByteArrayType>(writer, &mut texts.drain_texts(), levels)?
            }
            ColumnValues::Boolean(values) => write_values::<BoolType>(writer, values, levels)?,
        }
        self.levels.clear();
        Ok(())
    }
}

impl ColumnValues {
    fn push(&mut self, item: StoredCell) -> bool {
        match (self, item) {
            (ColumnValues::Int32(values), StoredCell::Int(n)) => values.push(saturate_to_i32(n)),
            (ColumnValues::Int64(values), StoredCell::Int(n)) => values.push(n),
            (ColumnValues::Double(values), StoredCell::Int(n)) => values.push(n as f64),
            (ColumnValues::Double(values), StoredCell::Float(n)) => values.push(n),
            (ColumnValues::Text(texts), StoredCell::Text(text)) => texts.push(text, 1),
            (ColumnValues::Boolean(values), StoredCell::Flag(flag)) => values.push(flag),
            _ => return false,
        }
        true
    }

    /// Takes the cells of so many rows; whether they fit.
    fn extend(&mut self, rows: usize, cells: StoredCells) -> bool {
        match (self, cells) {
            (ColumnValues::Text(texts), StoredCells::Same(StoredCell::Text(text))) => texts.push(text, rows),
            (ColumnValues::Boolean(values), StoredCells::Same(StoredCell::Flag(flag))) => {
                values.resize(values.len() + rows, flag);
            }
            (ColumnValues::Int32(values), StoredCells::Ints(numbers)) => {
                values.extend(numbers.iter().copied().map(saturate_to_i32))
            }
            (ColumnValues::Int64(values), StoredCells::Ints(numbers)) => values.extend(numbers),
            (ColumnValues::Double(values), StoredCells::Floats(numbers)) => values.extend(numbers),
            (values, StoredCells::Same(item)) => return (0..rows).all(|_| values.push(item)),
            _ => return false,
        }
        true
    }

    fn push_zero(&mut self) {
        match self {
            ColumnValues::Int32(values) => values.push(0),
            ColumnValues::Int64(values) => values.push(0),
            ColumnValues::Double(values) => values.push(0.0),
            ColumnValues::Text(texts) => texts.push("", 1),
            ColumnValues::Boolean(values) => values.push(false),
        }
    }
}

fn saturate_to_i32(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(if n < 0 { i32::MIN } else { i32::MAX })
}

/// Texts repeat from row to row: each is held once, and how often it follows itself is counted.
#[derive(Default)]
struct DictionaryTexts {
    runs: Vec<(SharedStr, usize)>,
    known: HashSet<SharedStr>,
}

impl DictionaryTexts {
    fn push(&mut self, text: &str, more: usize) {
        if let Some((_, times)) = self.runs.last_mut().filter(|(last, _)| last == text) {
            *times += more;
            return;
        }
        let known = self.known.get(text).cloned().unwrap_or_else(|| SharedStr::from(text));
        self.known.insert(known.clone());
        self.runs.push((known, more));
    }

    /// All texts in order; none is left.
    fn drain_texts(&mut self) -> Vec<ByteArray> {
        let made: HashMap<SharedStr, ByteArray> =
            self.known.drain().map(|text| (text.clone(), ByteArray::from(text.as_str()))).collect();
        let mut texts = Vec::with_capacity(self.runs.iter().map(|(_, times)| times).sum());
        for (text, times) in self.runs.drain(..) {
            let text = made.get(&text).cloned().unwrap_or_default();
            texts.extend(std::iter::repeat_n(text, times));
        }
        texts
    }
}

fn write_values<T: DataType>(
    writer: &mut SerializedColumnWriter,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    writer.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
    Ok(())
}

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
            let repeats =
                buffer.text_runs().map(|runs| write_text_runs(&mut group, column, runs)).transpose()?;
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

/// Cells a run on average, from which on runs are what is written.
const LONG: usize = 16;

/// Whether so many runs are few for so many rows.
fn is_worth_runs(runs: usize, rows: usize) -> bool {
    runs.saturating_mul(LONG) <= rows
}

/// Writes the next column of a row group: texts, each as often as it follows itself.
fn write_text_runs<'a, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    column: ColumnDescPtr,
    runs: impl Iterator<Item = (&'a str, usize)>,
) -> Result<(), ParquetError> {
    let (chunk, data, rows) = dictionary_pages(runs)?;
    let length = i64::try_from(chunk.len())?;
    let metadata = ColumnChunkMetaData::builder(column)
        .set_compression(Compression::UNCOMPRESSED)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_total_compressed_size(length)
        .set_total_uncompressed_size(length)
        .set_num_values(i64::from(rows))
        .set_dictionary_page_offset(Some(0))
        .set_data_page_offset(i64::try_from(data)?)
        .build()?;
    let close = ColumnCloseResult {
        bytes_written: chunk.len() as u64,
        rows_written: u64::from(rows),
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    group.append_column(&chunk, close)
}

/// Both pages, where the second begins, and how many cells it holds.
fn dictionary_pages<'a>(
    runs: impl Iterator<Item = (&'a str, usize)>,
) -> Result<(Bytes, u64, u32), ParquetError> {
    let (known, runs, rows) = index_texts(runs);
    let num_values = u32::try_from(rows)?;
    let mut chunk = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut chunk);
    let (buf, size) = with_length(encode_dictionary(&known)?);
    let (texts, encoding) = (u32::try_from(known.len())?, Encoding::PLAIN);
    let page = Page::DictionaryPage { buf, num_values: texts, encoding, is_sorted: false };
    pages.write_page(CompressedPage::new(page, size))?;
    let (buf, size) = with_length(encode_indices(known.len(), &runs));
    let (encoding, levels) = (Encoding::RLE_DICTIONARY, Encoding::RLE);
    let page = Page::DataPage {
        buf,
        num_values,
        encoding,
        def_level_encoding: levels,
        rep_level_encoding: levels,
        statistics: None,
    };
    let data = pages.write_page(CompressedPage::new(page, size))?.offset;
    Ok((chunk.into_inner()?.into(), data, num_values))
}

fn with_length(bytes: Vec<u8>) -> (Bytes, usize) {
    let size = bytes.len();
    (bytes.into(), size)
}

/// The texts, each once, the runs by their places, and how many cells they are.
fn index_texts<'a>(
    runs: impl Iterator<Item = (&'a str, usize)>,
) -> (IndexSet<&'a str>, Vec<(usize, usize)>, usize) {
    let (mut known, mut rows) = (IndexSet::new(), 0);
    let mut index = |(text, times)| {
        rows += times;
        (known.insert_full(text).0, times)
    };
    let runs = runs.map(&mut index).collect();
    (known, runs, rows)
}

fn encode_dictionary(known: &IndexSet<&str>) -> Result<Vec<u8>, ParquetError> {
    let mut bytes = Vec::new();
    for text in known {
        bytes.extend(u32::try_from(text.len())?.to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    Ok(bytes)
}

/// The width of an index in bits (some readers take none for a mistake), then each run: twice how often, and its index.
fn encode_indices(known: usize, runs: &[(usize, usize)]) -> Vec<u8> {
    let width = known.saturating_sub(1).checked_ilog2().unwrap_or(0) + 1;
    let bytes_each = width.div_ceil(8) as usize;
    let mut bytes = vec![width as u8];
    for (index, times) in runs {
        append_varint(&mut bytes, *times << 1);
        bytes.extend(index.to_le_bytes().iter().take(bytes_each));
    }
    bytes
}

/// In groups of seven bits, the lowest first.
fn append_varint(bytes: &mut Vec<u8>, mut number: usize) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
