//! The cells of one column of the row group that is being filled.

use std::collections::{HashMap, HashSet};

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use perflab_model::SharedStr;

use super::{StorageType, StoredColumn, repeats};

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
pub(crate) struct ColumnBuffer {
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
        (!self.optional && repeats::is_worth_runs(texts.runs.len(), rows)).then_some(all)
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
