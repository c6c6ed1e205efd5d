//! Reading whole columns of a table, each typed, without rows in between.

use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use perflab_model::SharedStr;
use perflab_model::trace::SparseColumn;

use super::{COLUMNS_KEY, StoredColumn, repeats};
use crate::ArchiveError;
use crate::checksums::open_verified;

/// A table that is open for reading.
pub(crate) struct ParquetReader {
    path: PathBuf,
    reader: Arc<SerializedFileReader<File>>,
    /// The row groups that are read.
    groups: Range<usize>,
}

impl ParquetReader {
    /// Opens the table `name` of the run at `run`; one that is not as it was written is refused.
    pub(crate) fn open(run: &Path, name: impl AsRef<Path>) -> Result<Self, ArchiveError> {
        let (file, path) = (open_verified(run, name.as_ref())?, run.join(name));
        let reader =
            catch_decoder_panic(|| SerializedFileReader::new(file)).map_err(ArchiveError::damaged(&path))?;
        let groups = 0..reader.num_row_groups();
        Ok(ParquetReader { path, reader: Arc::new(reader), groups })
    }

    /// The same table, a row group at a time.
    pub(crate) fn row_groups(&self) -> impl Iterator<Item = ParquetReader> {
        self.groups.clone().map(|group| ParquetReader {
            path: self.path.clone(),
            reader: Arc::clone(&self.reader),
            groups: group..group + 1,
        })
    }

    /// Number of rows.
    pub(crate) fn row_count(&self) -> usize {
        let groups = self.groups.clone().filter_map(|group| self.reader.metadata().row_groups().get(group));
        groups.map(|group| usize::try_from(group.num_rows()).unwrap_or(0)).fold(0, usize::saturating_add)
    }

    /// A value of the file's metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        let pairs = self.reader.metadata().file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    /// What the columns are.
    pub(crate) fn columns(&self) -> Result<Vec<StoredColumn>, ArchiveError> {
        let text = self
            .metadata(COLUMNS_KEY)
            .ok_or_else(|| self.damage_error("its metadata lacks perflab.columns"))?;
        serde_json::from_str(text).map_err(ArchiveError::damaged(&self.path))
    }

    pub(crate) fn int32(&self, name: &str) -> Result<Vec<i32>, ArchiveError> {
        self.required_column::<Int32Type>(name)
    }

    pub(crate) fn int64(&self, name: &str) -> Result<Vec<i64>, ArchiveError> {
        self.required_column::<Int64Type>(name)
    }

    pub(crate) fn double(&self, name: &str) -> Result<Vec<f64>, ArchiveError> {
        self.required_column::<DoubleType>(name)
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<Vec<bool>, ArchiveError> {
        self.required_column::<BoolType>(name)
    }

    /// A text column; each text is made into `T` from its characters, once for as often as it follows itself.
    pub(crate) fn text_column<T: Clone>(
        &self,
        name: &str,
        make: impl Fn(&str) -> T,
    ) -> Result<Vec<T>, ArchiveError> {
        let repeats = self.text_runs(name)?.into_iter();
        Ok(repeats.flat_map(|(text, times)| std::iter::repeat_n(make(&text), times)).collect())
    }

    /// A text column whose texts repeat: each is made once a row group and shared.
    pub(crate) fn name_column(
        &self,
        name: &str,
    ) -> Result<impl Iterator<Item = SharedStr> + use<>, ArchiveError> {
        let repeats = self.text_runs(name)?.into_iter();
        Ok(repeats.flat_map(|(name, times)| std::iter::repeat_n(name, times)))
    }

    /// The texts of a column without missing cells, and how often each follows itself.
    pub(crate) fn text_runs(&self, name: &str) -> Result<Vec<(SharedStr, usize)>, ArchiveError> {
        let index = self.column_index::<ByteArrayType>(name)?;
        let (mut found, mut rows): (Vec<(SharedStr, usize)>, usize) = (Vec::new(), 0);
        let mut take = |text: &SharedStr, times: usize| {
            rows += times;
            match found.last_mut().filter(|(last, _)| last == text) {
                Some((_, before)) => *before += times,
                None => found.push((text.clone(), times)),
            }
        };
        let read = catch_decoder_panic(|| {
            self.groups.clone().try_for_each(|group| {
                let mut pages = self.reader.get_row_group(group)?.get_column_page_reader(index)?;
                repeats::read_text_runs(pages.as_mut(), &mut take)
            })
        });
        read.map_err(|error| self.damage_error(&format!("column `{name}`: {error}")))?;
        if rows == self.row_count() { Ok(found) } else { Err(self.length_error(name, rows)) }
    }

    pub(crate) fn optional_int32(&self, name: &str) -> Result<Vec<Option<i32>>, ArchiveError> {
        self.optional_column::<Int32Type>(name)
    }

    pub(crate) fn optional_int64(&self, name: &str) -> Result<Vec<Option<i64>>, ArchiveError> {
        self.optional_column::<Int64Type>(name)
    }

    pub(crate) fn optional_double(&self, name: &str) -> Result<Vec<Option<f64>>, ArchiveError> {
        self.optional_column::<DoubleType>(name)
    }

    pub(crate) fn optional_text(&self, name: &str) -> Result<Vec<Option<String>>, ArchiveError> {
        self.optional_text_in_groups(name, self.groups.clone())
    }

    /// A text column of some row groups, with its missing cells.
    pub(crate) fn optional_text_in_groups(
        &self,
        name: &str,
        groups: Range<usize>,
    ) -> Result<Vec<Option<String>>, ArchiveError> {
        let (values, levels) = self.group_values::<ByteArrayType>(name, groups)?;
        let mut values = values.into_iter();
        let text = |bytes: parquet::data_type::ByteArray| {
            bytes.as_utf8().map(String::from).map_err(ArchiveError::damaged(&self.path))
        };
        let cell = |level: &i16| (*level > 0).then(|| values.next()).flatten().map(text).transpose();
        levels.iter().map(cell).collect()
    }

    fn required_column<T: DataType>(&self, name: &str) -> Result<Vec<T::T>, ArchiveError> {
        let (values, _) = self.column_values::<T>(name)?;
        if values.len() == self.row_count() {
            return Ok(values);
        }
        Err(self.length_error(name, values.len()))
    }

    fn length_error(&self, name: &str, cells: usize) -> ArchiveError {
        self.damage_error(&format!("column `{name}` has {cells} cells in {} rows", self.row_count()))
    }

    fn optional_column<T: DataType>(&self, name: &str) -> Result<Vec<Option<T::T>>, ArchiveError> {
        let (values, levels) = self.column_values::<T>(name)?;
        let mut values = values.into_iter();
        Ok(levels.iter().map(|level| if *level > 0 { values.next() } else { None }).collect())
    }

    /// Row groups that hold `rows` rows from row `first` on, where both ends are ends of row groups.
    pub(crate) fn row_group_range(&self, first: u64, rows: u64) -> Range<usize> {
        let ends = self.reader.metadata().row_groups().iter().scan(0, |end, group| {
            *end += u64::try_from(group.num_rows()).unwrap_or(0);
            Some(*end)
        });
        let before = |limit: u64| ends.clone().take_while(|end| *end <= limit).count();
        before(first)..before(first + rows)
    }

    /// The cells of some row groups, with the rows (counted from the first of them) that have one.
    pub(crate) fn sparse_column(
        &self,
        name: &str,
        groups: Range<usize>,
    ) -> Result<SparseColumn, ArchiveError> {
        let (values, levels) = self.group_values::<Int64Type>(name, groups)?;
        let rows = (0_u32..).zip(levels).filter(|(_, level)| *level > 0).map(|(row, _)| row);
        Ok(rows.zip(values).collect())
    }

    /// The cells of some row groups of a column without missing ones.
    pub(crate) fn dense_column<T: DataType>(
        &self,
        name: &str,
        groups: Range<usize>,
    ) -> Result<Vec<T::T>, ArchiveError> {
        Ok(self.group_values::<T>(name, groups)?.0)
    }

    /// Values without the missing ones, and the definition levels.
    fn column_values<T: DataType>(&self, name: &str) -> Result<(Vec<T::T>, Vec<i16>), ArchiveError> {
        self.group_values::<T>(name, self.groups.clone())
    }

    fn group_values<T: DataType>(
        &self,
        name: &str,
        mut groups: Range<usize>,
    ) -> Result<(Vec<T::T>, Vec<i16>), ArchiveError> {
        // Room for a row group at a time: what a damaged footer says may be any number.
        let (mut values, mut levels) = (Vec::with_capacity(self.row_count().min(1 << 16)), Vec::new());
        let index = self.column_index::<T>(name)?;
        let read = catch_decoder_panic(|| {
            groups.try_for_each(|group| self.read_column_chunk::<T>(group, index, &mut values, &mut levels))
        });
        read.map_err(|error| self.damage_error(&format!("column `{name}`: {error}")))?;
        Ok((values, levels))
    }

    fn read_column_chunk<T: DataType>(
        &self,
        group: usize,
        index: usize,
        values: &mut Vec<T::T>,
        levels: &mut Vec<i16>,
    ) -> Result<(), ParquetError> {
        let group = self.reader.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
        let mut column = get_typed_column_reader::<T>(group.get_column_reader(index)?);
        column.read_records(rows, Some(levels), None, values).map(drop)
    }

    /// Where a column stands; the type is looked at first because the reader panics on a wrong one.
    fn column_index<T: DataType>(&self, name: &str) -> Result<usize, ArchiveError> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let named = schema.columns().iter().position(|column| column.name() == name);
        let index = named.ok_or_else(|| self.damage_error(&format!("column `{name}` is not there")))?;
        if schema.column(index).physical_type() == T::get_physical_type() {
            return Ok(index);
        }
        Err(self
            .damage_error(&format!("column `{name}` is stored as {}", schema.column(index).physical_type())))
    }

    fn damage_error(&self, reason: &str) -> ArchiveError {
        ArchiveError::damaged(&self.path)(reason)
    }
}

/// Makes an error of a panic: the Parquet reader panics on some files whose bytes were changed, and one
/// damaged run must not end a program that was asked about many.
fn catch_decoder_panic<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    let caught = catch_unwind(AssertUnwindSafe(read));
    caught.unwrap_or_else(|_| Err(ParquetError::General("its pages contradict each other".into())))
}
