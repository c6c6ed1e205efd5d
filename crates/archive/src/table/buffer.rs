//! The cells of one column of the row group that is being filled.

use std::collections::{HashMap, HashSet};

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use perflab_model::Name;

use super::{Declaration, Stored, repeats};

/// One cell on its way into a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item<'a> {
    Int(i64),
    Float(f64),
    Text(&'a str),
    Flag(bool),
    Missing,
}

/// The cells of one column in some rows that follow one another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cells<'a> {
    /// The same in all of them.
    Same(Item<'a>),
    Ints(&'a [i64]),
    Floats(&'a [f64]),
}

/// Values without the missing ones, and a definition level (0 missing, 1 there) for each row.
pub(crate) struct Buffer {
    values: Values,
    levels: Vec<i16>,
    optional: bool,
}

enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Text(Texts),
    Boolean(Vec<bool>),
}

impl Buffer {
    pub(crate) fn new(column: &Declaration) -> Self {
        let values = match column.stored {
            Stored::Int32 => Values::Int32(Vec::new()),
            Stored::Int64 => Values::Int64(Vec::new()),
            Stored::Double => Values::Double(Vec::new()),
            Stored::Text => Values::Text(Texts::default()),
            Stored::Boolean => Values::Boolean(Vec::new()),
        };
        Buffer { values, levels: Vec::new(), optional: column.optional }
    }

    /// Takes a cell; one that does not fit the column's type counts as missing, and in a column that
    /// has no missing cells as zero.
    pub(crate) fn push(&mut self, item: Item) {
        let fits = self.values.push(item);
        if !fits && !self.optional {
            self.values.push_zero();
        }
        if self.optional {
            self.levels.push(i16::from(fits));
        }
    }

    /// Takes the cells of so many rows.
    pub(crate) fn extend(&mut self, rows: usize, cells: Cells) {
        let fits = self.values.extend(rows, cells);
        if !fits && !self.optional {
            (0..rows).for_each(|_| self.values.push_zero());
        }
        if self.optional {
            self.levels.resize(self.levels.len() + rows, i16::from(fits));
        }
    }

    /// The texts and how often each follows itself, where they have no missing ones among them and repeat enough.
    pub(crate) fn repeats(&self) -> Option<impl Iterator<Item = (&str, usize)>> {
        let Values::Text(texts) = &self.values else { return None };
        let rows = texts.runs.iter().map(|(_, times)| times).sum();
        let all = texts.runs.iter().map(|(text, times)| (text.as_str(), *times));
        (!self.optional && repeats::are_few(texts.runs.len(), rows)).then_some(all)
    }

    /// Forgets the cells.
    pub(crate) fn clear(&mut self) {
        if let Values::Text(texts) = &mut self.values {
            texts.runs.clear();
            texts.known.clear();
        }
    }

    /// Writes the cells out and forgets them.
    pub(crate) fn flush(&mut self, writer: &mut SerializedColumnWriter) -> Result<(), ParquetError> {
        let levels = self.optional.then_some(self.levels.as_slice());
        match &mut self.values {
            Values::Int32(values) => write::<Int32Type>(writer, values, levels)?,
            Values::Int64(values) => write::<Int64Type>(writer, values, levels)?,
            Values::Double(values) => write::<DoubleType>(writer, values, levels)?,
            Values::Text(texts) => write::<ByteArrayType>(writer, &mut texts.take(), levels)?,
            Values::Boolean(values) => write::<BoolType>(writer, values, levels)?,
        }
        self.levels.clear();
        Ok(())
    }
}

impl Values {
    fn push(&mut self, item: Item) -> bool {
        match (self, item) {
            (Values::Int32(values), Item::Int(n)) => values.push(saturated(n)),
            (Values::Int64(values), Item::Int(n)) => values.push(n),
            (Values::Double(values), Item::Int(n)) => values.push(n as f64),
            (Values::Double(values), Item::Float(n)) => values.push(n),
            (Values::Text(texts), Item::Text(text)) => texts.push(text, 1),
            (Values::Boolean(values), Item::Flag(flag)) => values.push(flag),
            _ => return false,
        }
        true
    }

    /// Takes the cells of so many rows; whether they fit.
    fn extend(&mut self, rows: usize, cells: Cells) -> bool {
        match (self, cells) {
            (Values::Text(texts), Cells::Same(Item::Text(text))) => texts.push(text, rows),
            (Values::Boolean(values), Cells::Same(Item::Flag(flag))) => {
                values.resize(values.len() + rows, flag);
            }
            (Values::Int32(values), Cells::Ints(numbers)) => {
                values.extend(numbers.iter().copied().map(saturated))
            }
            (Values::Int64(values), Cells::Ints(numbers)) => values.extend(numbers),
            (Values::Double(values), Cells::Floats(numbers)) => values.extend(numbers),
            (values, Cells::Same(item)) => return (0..rows).all(|_| values.push(item)),
            _ => return false,
        }
        true
    }

    fn push_zero(&mut self) {
        match self {
            Values::Int32(values) => values.push(0),
            Values::Int64(values) => values.push(0),
            Values::Double(values) => values.push(0.0),
            Values::Text(texts) => texts.push("", 1),
            Values::Boolean(values) => values.push(false),
        }
    }
}

fn saturated(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(if n < 0 { i32::MIN } else { i32::MAX })
}

/// Texts repeat from row to row: each is held once, and how often it follows itself is counted.
#[derive(Default)]
struct Texts {
    runs: Vec<(Name, usize)>,
    known: HashSet<Name>,
}

impl Texts {
    fn push(&mut self, text: &str, more: usize) {
        if let Some((_, times)) = self.runs.last_mut().filter(|(last, _)| last == text) {
            *times += more;
            return;
        }
        let known = self.known.get(text).cloned().unwrap_or_else(|| Name::from(text));
        self.known.insert(known.clone());
        self.runs.push((known, more));
    }

    /// All texts in order; none is left.
    fn take(&mut self) -> Vec<ByteArray> {
        let made: HashMap<Name, ByteArray> =
            self.known.drain().map(|text| (text.clone(), ByteArray::from(text.as_str()))).collect();
        let mut texts = Vec::with_capacity(self.runs.iter().map(|(_, times)| times).sum());
        for (text, times) in self.runs.drain(..) {
            let text = made.get(&text).cloned().unwrap_or_default();
            texts.extend(std::iter::repeat_n(text, times));
        }
        texts
    }
}

fn write<T: DataType>(
    writer: &mut SerializedColumnWriter,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    writer.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
    Ok(())
}
