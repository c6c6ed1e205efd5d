//! Whole columns of a stored table, typed, without rows in between.
//!
//! Columns of repeated texts are decoded here, past the crate's own reader (see `parquet_writer`); pages that
//! contradict themselves are refused.

use std::fs::File;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageReader};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use perflab_model::SharedStr;
use perflab_model::operation::SparseColumn;

use crate::checksums::open_verified;
use crate::error::ArchiveError;
use crate::parquet_writer::{COLUMNS_KEY, StoredColumn};

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
                read_text_runs(pages.as_mut(), &mut take)
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

/// Indices that are packed together where they do not repeat.
const PACKED: usize = 8;

/// The widest index in bits.
const WIDEST: usize = 32;

/// Hands over all texts of a column chunk in order, each with how often it follows itself.
fn read_text_runs(
    pages: &mut dyn PageReader,
    take: &mut dyn FnMut(&SharedStr, usize),
) -> Result<(), ParquetError> {
    let mut dictionary = Vec::new();
    while let Some(page) = pages.get_next_page()? {
        let rows = page.num_values() as usize;
        match (&page, page.encoding()) {
            (Page::DictionaryPage { buf, .. }, _) => dictionary = parse_dictionary(buf, rows)?,
            (_, Encoding::PLAIN) => {
                parse_dictionary(page_values(&page)?, rows)?.iter().for_each(|text| take(text, 1))
            }
            (_, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY) => {
                let read = DictionaryIndices::parse(page_values(&page)?)
                    .and_then(|read| read.expand(rows, &dictionary, take));
                read.ok_or_else(|| broken_page_error("its indices"))?;
            }
            (_, encoding) => return Err(broken_page_error(&format!("its encoding {encoding}"))),
        }
    }
    Ok(())
}

/// The two pages of a text column by themselves: a dictionary of so many texts, and indices of so many rows; gives the rows
/// that were read.
#[cfg(feature = "fuzzing")]
pub fn decode_text_pages(dictionary: &[u8], texts: usize, indices: &[u8], rows: usize) -> Option<usize> {
    let known = parse_dictionary(dictionary, texts).ok()?;
    let mut read = 0;
    DictionaryIndices::parse(indices)?.expand(rows, &known, &mut |_, times| read += times)?;
    Some(read)
}

fn broken_page_error(what: &str) -> ParquetError {
    ParquetError::General(format!("{what} cannot be read"))
}

/// What a data page holds behind its levels; a column without missing cells has none in the first version of pages.
fn page_values(page: &Page) -> Result<&[u8], ParquetError> {
    let levels = match page {
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            (*def_levels_byte_len as usize).saturating_add(*rep_levels_byte_len as usize)
        }
        _ => 0,
    };
    page.buffer().get(levels..).ok_or_else(|| broken_page_error("a page that is shorter than its levels"))
}

/// Texts one after the other, each behind its length.
fn parse_dictionary(mut bytes: &[u8], count: usize) -> Result<Vec<SharedStr>, ParquetError> {
    let mut next = || {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (text, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        bytes = rest;
        str::from_utf8(text).ok().map(SharedStr::from)
    };
    let read: Vec<SharedStr> = (0..count).map_while(|_| next()).collect();
    if read.len() == count { Ok(read) } else { Err(broken_page_error("a text that is cut off or no UTF-8")) }
}

/// Indices into a dictionary, run by run.
struct DictionaryIndices<'a> {
    /// Of each index, in bits.
    width: usize,
    bytes: &'a [u8],
}

impl<'a> DictionaryIndices<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (width, bytes) = bytes.split_first()?;
        Some(DictionaryIndices { width: usize::from(*width), bytes })
            .filter(|indices| indices.width <= WIDEST)
    }

    /// Each run begins with a number: how many, and in its lowest bit, whether they are one index or packed.
    fn expand(
        mut self,
        mut rows: usize,
        known: &[SharedStr],
        take: &mut dyn FnMut(&SharedStr, usize),
    ) -> Option<()> {
        while rows > 0 {
            let head = self.read_varint()?;
            let count = usize::try_from(head >> 1).ok()?;
            let read = match head & 1 {
                0 => self.expand_repeated(count.min(rows), known, take)?,
                _ => self.expand_packed(count, rows, known, take)?,
            };
            rows = rows.checked_sub(read).filter(|_| read > 0)?;
        }
        Some(())
    }

    /// One index that is repeated.
    fn expand_repeated(
        &mut self,
        times: usize,
        known: &[SharedStr],
        take: &mut dyn FnMut(&SharedStr, usize),
    ) -> Option<usize> {
        let index = self.split_bytes(self.width.div_ceil(8))?;
        let index = index.iter().rev().fold(0, |index, byte| index << 8 | usize::from(*byte));
        take(known.get(index)?, times);
        Some(times)
    }

    /// So many times eight indices, the first in the lowest bits.
    fn expand_packed(
        &mut self,
        count: usize,
        rows: usize,
        known: &[SharedStr],
        take: &mut dyn FnMut(&SharedStr, usize),
    ) -> Option<usize> {
        let (width, packed) = (self.width, self.split_bytes(count.checked_mul(self.width)?)?);
        let times = count.checked_mul(PACKED)?.min(rows);
        let bit = |at: usize| packed.get(at / 8).map_or(0, |byte| usize::from(byte >> (at % 8) & 1));
        for at in 0..times {
            let index = (0..width).rev().fold(0, |index, place| index << 1 | bit(at * width + place));
            take(known.get(index)?, 1);
        }
        Some(times)
    }

    /// A number in groups of seven bits, the lowest first.
    fn read_varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = *self.split_bytes(1)?.first()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn split_bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use parquet::column::page::{Page, PageReader};
    use parquet::errors::ParquetError;
    use perflab_model::SharedStr;
    use proptest::prelude::*;

    use super::ParquetReader;

    use crate::parquet_writer::{ParquetWriter, StorageType, StoredCell, StoredCells, StoredColumn};

    #[test]
    fn rows_come_back_as_columns_across_row_groups() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let columns = [
            StoredColumn::new("n", StorageType::Int64, "bytes", "counter", "grows"),
            StoredColumn::new("x", StorageType::Double, "s", "gauge", "wobbles").optional(),
            StoredColumn::new("key", StorageType::Text, "1", "key", "names").optional(),
        ];
        let mut table = ParquetWriter::create(&path, &columns, &[("perflab.monitor", "m".into())]).unwrap();
        let rows = 200_000_i64;
        for n in 0..rows {
            let x = if n % 3 == 0 { StoredCell::Missing } else { StoredCell::Float(n as f64) };
            table
                .push_row([StoredCell::Int(n), x, StoredCell::Text(if n % 2 == 0 { "even" } else { "odd" })])
                .unwrap();
        }
        table.close().unwrap();
        let table = ParquetReader::open(directory.path(), "t.parquet").unwrap();
        assert_eq!(table.columns().unwrap(), columns);
        assert_eq!(table.metadata("perflab.monitor"), Some("m"));
        assert!(table.int64("n").unwrap().into_iter().eq(0..rows));
        assert_eq!(table.optional_double("x").unwrap()[..4], [None, Some(1.0), Some(2.0), None]);
        assert_eq!(table.optional_text("key").unwrap()[199_999].as_deref(), Some("odd"));
    }

    #[test]
    fn a_wrong_type_or_name_is_an_error_that_names_the_column() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let columns = [StoredColumn::new("n", StorageType::Int64, "1", "value", "")];
        ParquetWriter::create(&path, &columns, &[]).unwrap().close().unwrap();
        let table = ParquetReader::open(directory.path(), "t.parquet").unwrap();
        assert!(table.int32("n").unwrap_err().to_string().contains("column `n` is stored as INT64"));
        assert!(table.int64("m").unwrap_err().to_string().contains("column `m` is not there"));
    }

    /// A row of docs/format.md.
    fn document_column(column: &StoredColumn) -> String {
        let optional = if column.optional { ", optional" } else { "" };
        let stored = format!("{:?}", column.stored).to_lowercase();
        format!("| `{}` | {stored}{optional} | {} | {} |", column.name, column.unit, column.meaning)
    }

    #[test]
    fn the_format_page_has_every_column_as_it_is() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");
        let page = std::fs::read_to_string(page).unwrap();
        let factors = indexmap::IndexMap::from([("NAME".to_owned(), Vec::new())]);
        let plan = perflab_model::RunPlan { factors, ..perflab_model::RunPlan::default() };
        let tables = [
            ("samples", crate::tables::samples::sample_columns(&plan, true)),
            ("iterations", crate::tables::samples::iteration_columns(&plan, true)),
            ("stacks/frames", crate::tables::stacks::frame_columns()),
            ("stacks/tree", crate::tables::stacks::tree_columns()),
            ("stacks/CASE", crate::tables::stacks::stack_sample_columns()),
            ("events/io", crate::tables::io::io_columns()),
            ("events/TRACER", crate::tables::operations::documented_operation_columns()),
        ];
        for (table, columns) in tables {
            let section = page.split(&format!("## `{table}.parquet`")).nth(1).unwrap();
            let written: Vec<&str> = section.split("\n## ").next().unwrap().lines().collect();
            let written: Vec<&str> = written.into_iter().filter(|line| line.starts_with("| `")).collect();
            assert_eq!(written, columns.iter().map(document_column).collect::<Vec<_>>(), "{table}");
        }
    }

    /// Writes texts as runs, or cell by cell.
    fn write_text_table(runs: &[(String, usize)], at_once: bool) -> (tempfile::TempDir, ParquetReader) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.parquet");
        let columns = [StoredColumn::new("text", StorageType::Text, "1", "key", "names")];
        let mut writer = ParquetWriter::create(&path, &columns, &[]).unwrap();
        for (text, times) in runs {
            match at_once {
                true => writer.extend_columns(*times, [StoredCells::Same(StoredCell::Text(text))]).unwrap(),
                false => (0..*times).for_each(|_| writer.push_row([StoredCell::Text(text)]).unwrap()),
            }
        }
        writer.close().unwrap();
        let reader = ParquetReader::open(directory.path(), "t.parquet").unwrap();
        (directory, reader)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Long runs go past the crate's writer, short ones through it; all are read past its reader and by it.
        #[test]
        fn what_is_written_is_read(runs in prop::collection::vec(("[a-cé]{0,2}", 1_usize..400), 0..40), at_once: bool) {
            let (_directory, reader) = write_text_table(&runs, at_once);
            let cells: Vec<&str> =
                runs.iter().flat_map(|(text, times)| std::iter::repeat_n(text.as_str(), *times)).collect();
            let ours: Vec<SharedStr> = reader.name_column("text").unwrap().collect();
            prop_assert_eq!(ours.iter().map(SharedStr::as_str).collect::<Vec<_>>(), &cells[..]);
            let theirs = reader.dense_column::<parquet::data_type::ByteArrayType>("text", 0..reader.row_groups().count());
            let theirs: Vec<String> =
                theirs.unwrap().iter().map(|cell| cell.as_utf8().unwrap().to_owned()).collect();
            prop_assert_eq!(theirs, cells);
        }

        /// Pages of any bytes are refused or read, and never more than the rows that they claim.
        #[test]
        fn damaged_pages_are_no_more_than_refused(
            dictionary in prop::collection::vec(any::<u8>(), 0..40),
            indices in prop::collection::vec(any::<u8>(), 0..40),
            texts in 0_u32..6,
            rows in 0_u32..2000,
        ) {
            let mut pages = InMemoryPages::with_dictionary(dictionary, texts, indices, rows);
            let mut read = 0;
            let _ = super::read_text_runs(&mut pages, &mut |_, times| read += times);
            prop_assert!(read <= rows as usize);
        }
    }

    #[test]
    fn hundreds_of_texts_need_wider_indices() {
        let runs: Vec<(String, usize)> =
            (0..700).map(|n| (format!("text {}", n % 600), 20 + n % 3)).collect();
        let (_directory, reader) = write_text_table(&runs, true);
        let cells = runs.iter().flat_map(|(text, times)| std::iter::repeat_n(text.as_str(), *times));
        assert!(reader.name_column("text").unwrap().map(String::from).eq(cells));
    }

    /// Pages that are in memory.
    struct InMemoryPages(std::vec::IntoIter<Page>);

    impl InMemoryPages {
        fn with_dictionary(dictionary: Vec<u8>, texts: u32, indices: Vec<u8>, rows: u32) -> Self {
            use parquet::basic::Encoding::{PLAIN, RLE, RLE_DICTIONARY};
            let first = Page::DictionaryPage {
                buf: dictionary.into(),
                num_values: texts,
                encoding: PLAIN,
                is_sorted: false,
            };
            let second = Page::DataPage {
                buf: indices.into(),
                num_values: rows,
                encoding: RLE_DICTIONARY,
                def_level_encoding: RLE,
                rep_level_encoding: RLE,
                statistics: None,
            };
            InMemoryPages(vec![first, second].into_iter())
        }
    }

    impl Iterator for InMemoryPages {
        type Item = Result<Page, ParquetError>;

        fn next(&mut self) -> Option<Self::Item> {
            self.get_next_page().transpose()
        }
    }

    impl PageReader for InMemoryPages {
        fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
            Ok(self.0.next())
        }

        fn peek_next_page(&mut self) -> Result<Option<parquet::column::page::PageMetadata>, ParquetError> {
            Ok(None)
        }

        fn skip_next_page(&mut self) -> Result<(), ParquetError> {
            Ok(())
        }
    }
}
