//! Tables as Parquet files: Arrow's arrays in memory, the typed columns of the crate `parquet` below.
//!
//! What the columns are (unit, kind, meaning) stands in each file as `perflab.columns` in its key-value metadata, a list in
//! JSON. Texts are dictionaries in memory and in the file. Our reader decodes their pages itself (see `text_pages`): the crate
//! makes a value of each cell.
//!
//! The part of `parquet` that knows Arrow is not used: it brings six megabytes of code for types that no table has, and every
//! guest carries the program (docs/decisions/columnar-tables.md).

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use arrow_array::builder::BooleanBuilder;
use arrow_array::types::{ArrowPrimitiveType, Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::column::reader::get_typed_column_reader;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{
    BoolType, ByteArray, DataType, DoubleType, Int32Type as StoredInt32, Int64Type as StoredInt64,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use perflab_model::column::{ColumnKind, ColumnType};
use perflab_model::table::{ArrayValue, CellColumn, TypedColumn};
use perflab_model::{
    ColumnSpec, FORMAT_VERSION, RowSchema, SchemaMismatch, Table, TypedTable, TypedTableBuilder, Unit,
};
use serde::{Deserialize, Serialize};

use crate::checksums::open_verified;
use crate::error::ArchiveError;
use crate::fresh_file::create_fresh_file;
use crate::text_pages::read_text_column;

/// The key of the columns in a file's metadata.
const COLUMNS_KEY: &str = "perflab.columns";

/// The key of the format version.
const FORMAT_KEY: &str = "perflab.format";

/// Cells of a row group: about 5 MB, however many columns there are.
const CELLS: usize = 512 * 1024;

/// Rows of a row group at most. A file that says more of one is damaged: what is read of it is in memory at once.
const ROWS: usize = 64 * 1024;

/// How a column is stored, as `perflab.columns` calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StorageType {
    Int32,
    Int64,
    Double,
    Text,
    Boolean,
}

impl From<ColumnType> for StorageType {
    fn from(stored: ColumnType) -> Self {
        match stored {
            ColumnType::Int32 => StorageType::Int32,
            ColumnType::Int => StorageType::Int64,
            ColumnType::Float => StorageType::Double,
            ColumnType::Text => StorageType::Text,
            ColumnType::Boolean => StorageType::Boolean,
        }
    }
}

impl From<StorageType> for ColumnType {
    fn from(stored: StorageType) -> Self {
        match stored {
            StorageType::Int32 => ColumnType::Int32,
            StorageType::Int64 => ColumnType::Int,
            StorageType::Double => ColumnType::Float,
            StorageType::Text => ColumnType::Text,
            StorageType::Boolean => ColumnType::Boolean,
        }
    }
}

/// One column: an element of `perflab.columns`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredColumn {
    name: String,
    #[serde(rename = "type")]
    stored: StorageType,
    /// `ns`, `bytes`, `1` for a bare count or a name.
    unit: String,
    /// `key`, `counter`, `gauge`; `value` where none of them fits.
    kind: String,
    /// Whether cells may be missing.
    optional: bool,
    meaning: String,
}

impl From<&ColumnSpec> for StoredColumn {
    fn from(column: &ColumnSpec) -> Self {
        StoredColumn {
            name: column.name.clone(),
            stored: column.stored.into(),
            unit: column.unit.to_string(),
            kind: column.kind.name().into(),
            optional: column.nullable,
            meaning: column.meaning.clone(),
        }
    }
}

impl From<StoredColumn> for ColumnSpec {
    fn from(column: StoredColumn) -> Self {
        ColumnSpec {
            name: column.name,
            unit: Unit::new(&column.unit),
            kind: ColumnKind::from_name(&column.kind),
            stored: column.stored.into(),
            nullable: column.optional,
            meaning: column.meaning,
        }
    }
}

/// The Parquet schema of a table.
fn parquet_schema(columns: &[ColumnSpec]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(parquet_type).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("row").with_fields(fields).build().map(Arc::new)
}

fn parquet_type(column: &ColumnSpec) -> Result<TypePtr, ParquetError> {
    let logical = matches!(column.stored, ColumnType::Text).then_some(LogicalType::String);
    let repetition = if column.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    let builder = Type::primitive_type_builder(&column.name, physical_type(column.stored));
    builder.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
}

fn physical_type(stored: ColumnType) -> Physical {
    match stored {
        ColumnType::Int32 => Physical::INT32,
        ColumnType::Int => Physical::INT64,
        ColumnType::Float => Physical::DOUBLE,
        ColumnType::Text => Physical::BYTE_ARRAY,
        ColumnType::Boolean => Physical::BOOLEAN,
    }
}

/// A table of rows `R` that is being written, at most one row group of it in memory.
pub(crate) struct ParquetWriter<R> {
    path: PathBuf,
    writer: SerializedFileWriter<File>,
    rows: TypedTableBuilder<R>,
    limit: usize,
}

impl<R: RowSchema> ParquetWriter<R> {
    /// Creates the file; `metadata` joins the columns in it.
    pub(crate) fn create(
        path: &Path,
        columns: Vec<ColumnSpec>,
        metadata: &[(&str, String)],
    ) -> Result<Self, ArchiveError> {
        let file = create_fresh_file(path).map_err(ArchiveError::io("create", path))?;
        let limit = (CELLS / columns.len().max(1)).clamp(1, ROWS);
        let properties = writer_properties(&columns, metadata).map_err(ArchiveError::damaged(path))?;
        let schema = parquet_schema(&columns).map_err(|error| write_error(path, error))?;
        let writer = SerializedFileWriter::new(file, schema, Arc::new(properties));
        Ok(ParquetWriter {
            path: path.into(),
            writer: writer.map_err(|error| write_error(path, error))?,
            rows: TypedTableBuilder::with_columns(columns.into()),
            limit,
        })
    }

    /// The row that is not ended yet.
    pub(crate) fn row(&mut self) -> &mut TypedTableBuilder<R> {
        &mut self.rows
    }

    /// Ends the row.
    pub(crate) fn end_row(&mut self) -> Result<(), ArchiveError> {
        self.rows.rows().end_row();
        if self.rows.rows().row_count() >= self.limit { self.end_row_group() } else { Ok(()) }
    }

    /// Ends the row group: a reader can take what comes next for itself.
    pub(crate) fn end_row_group(&mut self) -> Result<(), ArchiveError> {
        let table = self.rows.rows().finish();
        if table.row_count() == 0 {
            return Ok(());
        }
        self.write_row_group(&table).map_err(|error| write_error(&self.path, error))
    }

    fn write_row_group(&mut self, table: &Table) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (cells, spec) in table.cell_columns().into_iter().zip(table.columns().iter()) {
            if let Some(mut column) = group.next_column()? {
                write_cells(&mut column, cells, spec.nullable)?;
                column.close()?;
            }
        }
        group.close().map(drop)
    }

    /// Adds to the file's metadata what is only known at the end.
    pub(crate) fn add_metadata(&mut self, key: &str, value: String) {
        self.writer.append_key_value_metadata(KeyValue::new(key.into(), value));
    }

    /// Writes what is held and the footer, and syncs the file.
    pub(crate) fn close(mut self) -> Result<(), ArchiveError> {
        self.end_row_group()?;
        let file = self.writer.into_inner().map_err(|error| write_error(&self.path, error))?;
        file.sync_all().map_err(ArchiveError::io("sync", &self.path))
    }
}

/// Writes a column: its values without the missing ones, and for each row whether it has one, where some may not.
fn write_cells(
    writer: &mut SerializedColumnWriter<'_>,
    cells: CellColumn<'_>,
    nullable: bool,
) -> Result<(), ParquetError> {
    let levels = nullable.then(|| definition_levels(cells));
    let levels = levels.as_deref();
    let written = match (writer.untyped(), cells) {
        (ColumnWriter::Int64ColumnWriter(to), CellColumn::Int(cells)) => {
            to.write_batch(&present_values(cells, cells.values()), levels, None)
        }
        (ColumnWriter::Int32ColumnWriter(to), CellColumn::Int32(cells)) => {
            to.write_batch(&present_values(cells, cells.values()), levels, None)
        }
        (ColumnWriter::DoubleColumnWriter(to), CellColumn::Float(cells)) => {
            to.write_batch(&present_values(cells, cells.values()), levels, None)
        }
        (ColumnWriter::BoolColumnWriter(to), CellColumn::Boolean(cells)) => {
            to.write_batch(&cells.present().map(|(_, flag)| flag).collect::<Vec<_>>(), levels, None)
        }
        (ColumnWriter::ByteArrayColumnWriter(to), CellColumn::Text(cells)) => {
            to.write_batch(&cells.map_texts(ByteArray::from).flatten().collect::<Vec<_>>(), levels, None)
        }
        _ => return Err(ParquetError::General("a column is of another type than its schema".into())),
    };
    written.map(drop)
}

/// For each row 1 where it has a value, else 0.
fn definition_levels(cells: CellColumn<'_>) -> Vec<i16> {
    match cells {
        CellColumn::Int(cells) => cells.is_present().map(i16::from).collect(),
        CellColumn::Int32(cells) => cells.is_present().map(i16::from).collect(),
        CellColumn::Float(cells) => cells.is_present().map(i16::from).collect(),
        CellColumn::Text(cells) => cells.is_present().map(i16::from).collect(),
        CellColumn::Boolean(cells) => cells.is_present().map(i16::from).collect(),
    }
}

/// The values of the rows that have one: as they are, where all have.
fn present_values<'a, T>(cells: TypedColumn<'a, T>, values: &'a [T]) -> Cow<'a, [T]>
where
    T: for<'v> ArrayValue<Value<'v> = T> + Copy,
{
    match cells.has_missing() {
        true => cells.present().map(|(_, value)| value).collect(),
        false => Cow::Borrowed(values),
    }
}

/// A failure of the Parquet writer is almost always the disk's: keep the system's words.
fn write_error(path: &Path, error: ParquetError) -> ArchiveError {
    let kind = match &error {
        ParquetError::External(cause) => cause.downcast_ref().map(std::io::Error::kind),
        _ => None,
    };
    ArchiveError::io("write", path)(std::io::Error::new(kind.unwrap_or(std::io::ErrorKind::Other), error))
}

fn writer_properties(
    columns: &[ColumnSpec],
    metadata: &[(&str, String)],
) -> Result<WriterProperties, Box<dyn std::error::Error>> {
    let stored: Vec<StoredColumn> = columns.iter().map(StoredColumn::from).collect();
    let own = [(FORMAT_KEY, FORMAT_VERSION.to_string()), (COLUMNS_KEY, serde_json::to_string(&stored)?)];
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
fn column_properties(builder: WriterPropertiesBuilder, column: &ColumnSpec) -> WriterPropertiesBuilder {
    let path = ColumnPath::new(vec![column.name.clone()]);
    match column.stored {
        ColumnType::Text => builder
            .set_column_dictionary_enabled(path.clone(), true)
            .set_column_statistics_enabled(path, EnabledStatistics::None),
        ColumnType::Int32 | ColumnType::Int => {
            builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
        }
        ColumnType::Float | ColumnType::Boolean => builder,
    }
}

/// A table that is open for reading.
pub(crate) struct ParquetReader {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    columns: Vec<ColumnSpec>,
}

impl ParquetReader {
    /// Opens the table `name` of the run at `run`; one that is not as it was written is refused.
    pub(crate) fn open(run: &Path, name: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        let (file, path) = (open_verified(run, name.as_ref())?, run.join(name));
        ParquetReader::from_file(file, path)
    }

    pub(crate) fn from_file(file: File, path: PathBuf) -> Result<Self, ArchiveError> {
        let reader =
            catch_decoder_panic(|| SerializedFileReader::new(file)).map_err(ArchiveError::damaged(&path))?;
        let mut reader = ParquetReader { path, reader, columns: Vec::new() };
        let columns = reader
            .metadata(COLUMNS_KEY)
            .ok_or_else(|| reader.damage("its metadata lacks perflab.columns"))?;
        let columns: Vec<StoredColumn> =
            serde_json::from_str(columns).map_err(ArchiveError::damaged(&reader.path))?;
        reader.columns = columns.into_iter().map(ColumnSpec::from).collect();
        if let Some(rows) = reader.row_group_sizes().find(|rows| *rows > ROWS as u64) {
            return Err(reader.damage(format!("a row group of {rows} rows, where {ROWS} are the most")));
        }
        Ok(reader)
    }

    /// Rows of each row group.
    fn row_group_sizes(&self) -> impl Iterator<Item = u64> + Clone {
        // A number below zero is one too large.
        self.reader.metadata().row_groups().iter().map(|group| group.num_rows() as u64)
    }

    /// Number of rows.
    pub(crate) fn row_count(&self) -> usize {
        usize::try_from(self.row_group_sizes().sum::<u64>()).unwrap_or(usize::MAX)
    }

    /// A value of the file's metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        let pairs = self.reader.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// What the columns are.
    pub(crate) fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// All row groups.
    pub(crate) fn row_groups(&self) -> Range<usize> {
        0..self.reader.metadata().num_row_groups()
    }

    /// Row groups that hold `rows` rows from row `first` on, where both ends are ends of row groups.
    pub(crate) fn row_group_range(&self, first: u64, rows: u64) -> Range<usize> {
        let ends = self.row_group_sizes().scan(0_u64, |end, rows| {
            *end = end.saturating_add(rows);
            Some(*end)
        });
        let before = |limit: u64| ends.clone().take_while(|end| *end <= limit).count();
        before(first)..before(first.saturating_add(rows))
    }

    /// These row groups one by one, with these of the columns that `R` declares, all of which the file has.
    pub(crate) fn read_rows<R: RowSchema>(
        &self,
        groups: Range<usize>,
        columns: &[&str],
    ) -> Result<impl Iterator<Item = Result<TypedTable<R>, ArchiveError>>, ArchiveError> {
        self.check_columns(columns)?;
        Ok(self.select_rows(self.read_tables(groups, |name| columns.contains(&name)), columns))
    }

    /// The same, with all columns of the file.
    pub(crate) fn read_whole_rows<R: RowSchema>(
        &self,
        groups: Range<usize>,
        columns: &[&str],
    ) -> Result<impl Iterator<Item = Result<TypedTable<R>, ArchiveError>>, ArchiveError> {
        self.check_columns(columns)?;
        Ok(self.select_rows(self.read_tables(groups, |_| true), columns))
    }

    fn check_columns(&self, columns: &[&str]) -> Result<(), ArchiveError> {
        let lacking = columns.iter().find(|name| self.columns.iter().all(|column| column.name != ***name));
        let lacking = lacking.map(|name| SchemaMismatch::NoColumn { column: (*name).to_owned() });
        lacking.map_or(Ok(()), |lacking| Err(self.damage(lacking)))
    }

    fn select_rows<R: RowSchema>(
        &self,
        tables: impl Iterator<Item = Result<Table, ArchiveError>>,
        columns: &[&str],
    ) -> impl Iterator<Item = Result<TypedTable<R>, ArchiveError>> {
        tables.map(|table| {
            TypedTable::select(table?, |name| columns.contains(&name)).map_err(|error| self.damage(error))
        })
    }

    /// These row groups one by one, with the columns of these names.
    pub(crate) fn read_tables(
        &self,
        groups: Range<usize>,
        is_read: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = Result<Table, ArchiveError>> {
        let read: Vec<&ColumnSpec> = self.columns.iter().filter(|column| is_read(&column.name)).collect();
        let columns: Arc<[ColumnSpec]> = read.into_iter().cloned().collect();
        groups.map(move |group| self.read_row_group(group, &columns))
    }

    fn read_row_group(&self, group: usize, columns: &Arc<[ColumnSpec]>) -> Result<Table, ArchiveError> {
        let read = |column: &ColumnSpec| {
            let index = self.column_index(column)?;
            let read = catch_decoder_panic(|| self.read_column_chunk(group, index, column.stored));
            read.map_err(|error| self.damage(format!("column `{}`: {error}", column.name)))
        };
        let arrays = columns.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let rows = self.reader.metadata().row_group(group).num_rows();
        let rows = usize::try_from(rows).map_err(|error| self.damage(error))?;
        Table::new(Arc::clone(columns), arrays, rows).map_err(|error| self.damage(error))
    }

    /// Where a column stands; the type is looked at first because the reader panics on a wrong one.
    fn column_index(&self, column: &ColumnSpec) -> Result<usize, ArchiveError> {
        let name = &column.name;
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let found = schema.columns().iter().enumerate().find(|(_, stored)| stored.name() == name);
        let (index, stored) = found.ok_or_else(|| self.damage(format!("column `{name}` is not there")))?;
        if stored.physical_type() != physical_type(column.stored) {
            return Err(self.damage(format!("column `{name}` is stored as {}", stored.physical_type())));
        }
        match (stored.max_rep_level(), stored.max_def_level()) {
            (0, 0 | 1) => Ok(index),
            _ => Err(self.damage(format!("column `{name}` holds lists"))),
        }
    }

    fn read_column_chunk(
        &self,
        group: usize,
        index: usize,
        stored: ColumnType,
    ) -> Result<ArrayRef, ParquetError> {
        match stored {
            ColumnType::Int => self.read_numbers::<StoredInt64, Int64Type>(group, index),
            ColumnType::Int32 => self.read_numbers::<StoredInt32, Int32Type>(group, index),
            ColumnType::Float => self.read_numbers::<DoubleType, Float64Type>(group, index),
            ColumnType::Boolean => {
                let mut flags = BooleanBuilder::new();
                self.read_values::<BoolType>(group, index)?
                    .into_iter()
                    .for_each(|flag| flags.append_option(flag));
                Ok(Arc::new(flags.finish()))
            }
            ColumnType::Text => {
                let group = self.reader.get_row_group(group)?;
                let rows = usize::try_from(group.metadata().num_rows())?;
                let optional = group.metadata().column(index).column_descr().max_def_level() > 0;
                let mut pages = group.get_column_page_reader(index)?;
                Ok(Arc::new(read_text_column(pages.as_mut(), optional, rows)?))
            }
        }
    }

    fn read_numbers<S: DataType, A: ArrowPrimitiveType<Native = S::T>>(
        &self,
        group: usize,
        index: usize,
    ) -> Result<ArrayRef, ParquetError>
    where
        PrimitiveArray<A>: From<Vec<S::T>>,
    {
        let (values, levels) = self.read_raw_values::<S>(group, index)?;
        if levels.is_empty() {
            return Ok(Arc::new(PrimitiveArray::<A>::from(values)));
        }
        let mut values = values.into_iter();
        let cells = levels.iter().map(|level| if *level > 0 { values.next() } else { None });
        Ok(Arc::new(cells.collect::<PrimitiveArray<A>>()))
    }

    fn read_values<S: DataType>(
        &self,
        group: usize,
        index: usize,
    ) -> Result<Vec<Option<S::T>>, ParquetError> {
        let (values, levels) = self.read_raw_values::<S>(group, index)?;
        if levels.is_empty() {
            return Ok(values.into_iter().map(Some).collect());
        }
        let mut values = values.into_iter();
        Ok(levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect())
    }

    /// Values without the missing ones, and the definition levels, where the column has any.
    fn read_raw_values<S: DataType>(
        &self,
        group: usize,
        index: usize,
    ) -> Result<(Vec<S::T>, Vec<i16>), ParquetError> {
        let group = self.reader.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows())?;
        let optional = group.metadata().column(index).column_descr().max_def_level() > 0;
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let mut column = get_typed_column_reader::<S>(group.get_column_reader(index)?);
        column.read_records(rows, optional.then_some(&mut levels), None, &mut values)?;
        Ok((values, levels))
    }

    /// The error that something of the file is not as it should be.
    pub(crate) fn damage(&self, reason: impl ToString) -> ArchiveError {
        ArchiveError::damaged(&self.path)(reason)
    }
}

thread_local! {
    /// Whether this thread is in the Parquet reader, whose panics become errors.
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the message of a panic that becomes an error from stderr; all others are told as before.
fn silence_decoder_panics() {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_DECODING.get() {
                tell(panic);
            }
        }));
    });
}

/// Makes an error of a panic: the Parquet reader panics on some files whose bytes were changed, and one
/// damaged run must not end a program that was asked about many.
fn catch_decoder_panic<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    silence_decoder_panics();
    IS_DECODING.set(true);
    let caught = catch_unwind(AssertUnwindSafe(read));
    IS_DECODING.set(false);
    caught.unwrap_or_else(|_| Err(ParquetError::General("its pages contradict each other".into())))
}

/// A whole file that may be anything: the rows that were read.
///
/// # Panics
/// They are more than the footer says.
#[cfg(feature = "fuzzing")]
pub fn decode_parquet_file(path: &Path) -> Option<usize> {
    let reader = ParquetReader::from_file(File::open(path).ok()?, path.into()).ok()?;
    let tables = reader.read_tables(reader.row_groups(), |_| true).flatten();
    let read = tables.map(|table| table.row_count()).sum();
    assert!(read <= reader.row_count(), "{read} rows of {}", reader.row_count());
    Some(read)
}

#[cfg(test)]
mod tests {
    use perflab_model::table::TypedColumn;
    use perflab_model::{ColumnRef, DeclaredColumn};
    use proptest::prelude::*;

    use super::*;

    struct ProbeRow;

    impl RowSchema for ProbeRow {
        const NAME: &'static str = "probe";
        const COLUMNS: &'static [DeclaredColumn] = &[
            DeclaredColumn::required("n", ColumnType::Int, "bytes", ColumnKind::Counter, "grows"),
            DeclaredColumn::optional("x", ColumnType::Float, "s", ColumnKind::Gauge, "wobbles"),
            DeclaredColumn::optional("key", ColumnType::Text, "1", ColumnKind::Key, "names"),
        ];
    }

    impl ProbeRow {
        const N: ColumnRef<Self, i64> = ColumnRef::named("n");
        const X: ColumnRef<Self, f64> = ColumnRef::named("x");
        const KEY: ColumnRef<Self, str> = ColumnRef::named("key");
    }

    fn probe_columns() -> Vec<ColumnSpec> {
        ProbeRow::COLUMNS.iter().map(DeclaredColumn::column).collect()
    }

    /// Writes rows of the probe, of number, fraction and key.
    fn write_probe<'a>(
        directory: &Path,
        rows: impl Iterator<Item = (i64, Option<f64>, Option<&'a str>)>,
    ) -> ParquetReader {
        let metadata = [("perflab.monitor", "m".to_owned())];
        let path = directory.join("t.parquet");
        let mut table = ParquetWriter::<ProbeRow>::create(&path, probe_columns(), &metadata).unwrap();
        for (n, x, key) in rows {
            table.row().set(ProbeRow::N, n);
            table.row().set(ProbeRow::X, x);
            table.row().set(ProbeRow::KEY, key);
            table.end_row().unwrap();
        }
        table.close().unwrap();
        ParquetReader::open(directory, "t.parquet").unwrap()
    }

    #[test]
    fn rows_come_back_as_columns_across_row_groups() {
        let directory = tempfile::tempdir().unwrap();
        let row =
            |n: i64| (n, (n % 3 != 0).then_some(n as f64), Some(if n % 2 == 0 { "even" } else { "odd" }));
        let reader = write_probe(directory.path(), (0..200_000).map(row));
        assert_eq!((reader.columns(), reader.row_count()), (&probe_columns()[..], 200_000));
        assert_eq!((reader.metadata("perflab.monitor"), reader.row_groups().len()), (Some("m"), 4));
        let mut rows = Vec::new();
        for table in reader.read_rows::<ProbeRow>(reader.row_groups(), &["n", "x", "key"]).unwrap() {
            let table = table.unwrap();
            let key = table.column(ProbeRow::KEY);
            assert_eq!(key.texts().count(), 2);
            let (n, x) = (table.column(ProbeRow::N), table.column(ProbeRow::X));
            rows.extend(
                (0..table.row_count())
                    .map(|row| (n.get(row).unwrap(), x.get(row), key.get(row).map(str::to_owned))),
            );
        }
        let expected = (0..200_000).map(row).map(|(n, x, key)| (n, x, key.map(str::to_owned)));
        assert!(rows.into_iter().eq(expected));
        assert_eq!(reader.row_group_range(65_536, 65_536), 1..2);
    }

    #[test]
    fn a_column_of_another_type_or_name_is_damage() {
        struct OtherRow;
        impl RowSchema for OtherRow {
            const NAME: &'static str = "other";
            const COLUMNS: &'static [DeclaredColumn] =
                &[DeclaredColumn::required("n", ColumnType::Int32, "1", ColumnKind::Key, "")];
        }
        struct LackingRow;
        impl RowSchema for LackingRow {
            const NAME: &'static str = "lacking";
            const COLUMNS: &'static [DeclaredColumn] =
                &[DeclaredColumn::required("m", ColumnType::Int, "1", ColumnKind::Key, "")];
        }
        let directory = tempfile::tempdir().unwrap();
        let reader = write_probe(directory.path(), [(1, None, None)].into_iter());
        let error =
            reader.read_rows::<OtherRow>(0..1, &["n"]).unwrap().next().unwrap().map(drop).unwrap_err();
        assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}");
        let error = reader.read_rows::<LackingRow>(0..1, &["m"]).map(drop).unwrap_err();
        assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}");
    }

    #[test]
    fn a_row_group_that_would_not_fit_in_memory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let mut table = ParquetWriter::<ProbeRow>::create(&path, probe_columns(), &[]).unwrap();
        table.limit = usize::MAX;
        (0..=ROWS).for_each(|_| table.end_row().unwrap());
        table.close().unwrap();
        let error = ParquetReader::open(directory.path(), "t.parquet").map(drop).unwrap_err();
        assert!(matches!(error, ArchiveError::Damaged { .. }), "{error}");
    }

    /// A row of docs/format.md.
    fn document_column(column: &ColumnSpec) -> String {
        let optional = if column.nullable { ", optional" } else { "" };
        let stored = format!("{:?}", StorageType::from(column.stored)).to_lowercase();
        format!("| `{}` | {stored}{optional} | {} | {} |", column.name, column.unit, column.meaning)
    }

    #[test]
    fn the_format_page_has_every_column_as_it_is() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");
        let page = std::fs::read_to_string(page).unwrap();
        let factors = indexmap::IndexMap::from([("NAME".to_owned(), Vec::new())]);
        let layouts = vec![perflab_model::PlannedLayout::AS_BUILT];
        let plan = perflab_model::RunPlan { factors, layouts, ..perflab_model::RunPlan::default() };
        let declared = perflab_model::column::stored_columns;
        let tables = [
            ("samples", crate::tables::samples::sample_columns(&plan, true)),
            ("iterations", crate::tables::samples::iteration_columns(&plan, true)),
            ("series/MONITOR", declared(crate::tables::series::TickRow::COLUMNS)),
            ("edges/MONITOR", declared(crate::tables::edges::EdgeRow::COLUMNS)),
            ("stacks/frames", declared(crate::tables::stacks::FrameRow::COLUMNS)),
            ("stacks/tree", declared(crate::tables::stacks::StackNodeRow::COLUMNS)),
            ("stacks/CASE", declared(crate::tables::stacks::StackSampleRow::COLUMNS)),
            ("events/io", declared(crate::tables::io::IoEventRow::COLUMNS)),
            ("events/TRACER", crate::tables::operations::documented_operation_columns()),
        ];
        for (table, columns) in tables {
            let section = page.split(&format!("## `{table}.parquet`")).nth(1).unwrap();
            let written: Vec<&str> = section.split("\n## ").next().unwrap().lines().collect();
            let written: Vec<&str> = written.into_iter().filter(|line| line.starts_with("| `")).collect();
            assert_eq!(written, columns.iter().map(document_column).collect::<Vec<_>>(), "{table}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Texts that repeat and texts that do not, more of them than a dictionary page holds.
        #[test]
        fn texts_that_are_written_are_read(
            runs in prop::collection::vec((proptest::option::of("[a-cé]{0,2}"), 1_usize..400), 0..40),
            long: bool,
        ) {
            let directory = tempfile::tempdir().unwrap();
            let padding = if long { "x".repeat(100_000) } else { String::new() };
            let cells: Vec<Option<String>> = runs
                .iter()
                .enumerate()
                .flat_map(|(run, (text, times))| {
                    let text = text.as_ref().map(|text| if long { format!("{text}{run}{padding}") } else { text.clone() });
                    std::iter::repeat_n(text, *times)
                })
                .collect();
            let reader = write_probe(directory.path(), cells.iter().map(|cell| (0, None, cell.as_deref())));
            let mut read: Vec<Option<String>> = Vec::new();
            for table in reader.read_rows::<ProbeRow>(reader.row_groups(), &["n", "x", "key"]).unwrap() {
                let table = table.unwrap();
                let keys: TypedColumn<'_, str> = table.column(ProbeRow::KEY);
                read.extend(keys.iter().map(|text| text.map(str::to_owned)));
            }
            prop_assert!(read == cells);
        }

        /// Files of which some bytes were changed are refused or read, and never more than the rows that they claim.
        #[test]
        fn damaged_files_are_no_more_than_refused(damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
            let directory = tempfile::tempdir().unwrap();
            write_probe(directory.path(), (0..3000).map(|n| (n, Some(1.0), Some(if n % 7 == 0 { "a" } else { "b" }))));
            let path = directory.path().join("t.parquet");
            let mut bytes = std::fs::read(&path).unwrap();
            for (at, byte) in damage {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            std::fs::write(&path, bytes).unwrap();
            if let Ok(reader) = ParquetReader::open(directory.path(), "t.parquet") {
                let tables = reader.read_tables(reader.row_groups(), |_| true);
                let rows: usize = tables.flatten().map(|table| table.row_count()).sum();
                prop_assert!(rows <= reader.row_count());
            }
        }
    }
}
