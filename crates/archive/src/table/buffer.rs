//! The cells of one column of the row group that is being filled.

use std::collections::HashMap;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;

use super::{Declaration, Stored};

/// Texts that are handed to the Parquet writer at once.
const BLOCK: usize = 1024;

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
        match (&mut self.values, cells) {
            (Values::Text(texts), Cells::Same(Item::Text(text))) => {
                texts.push(text, rows);
                self.levels.extend(self.optional.then(|| std::iter::repeat_n(1, rows)).into_iter().flatten());
            }
            (_, Cells::Same(item)) => (0..rows).for_each(|_| self.push(item)),
            (_, Cells::Ints(numbers)) => numbers.iter().for_each(|number| self.push(Item::Int(*number))),
            (_, Cells::Floats(numbers)) => numbers.iter().for_each(|number| self.push(Item::Float(*number))),
        }
    }

    /// Writes the cells out and forgets them.
    pub(crate) fn flush(&mut self, writer: &mut SerializedColumnWriter) -> Result<(), ParquetError> {
        if let (Values::Text(texts), false) = (&mut self.values, self.optional) {
            return texts.write(writer);
        }
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
    runs: Vec<(ByteArray, usize)>,
    known: HashMap<String, ByteArray>,
}

impl Texts {
    fn push(&mut self, text: &str, more: usize) {
        match self.runs.last_mut().filter(|(last, _)| last.data() == text.as_bytes()) {
            Some((_, times)) => *times += more,
            None => self.runs.push((shared(&mut self.known, text), more)),
        }
    }

    /// Writes all texts of a column without missing ones; none is left. What follows itself is written from one block.
    fn write(&mut self, writer: &mut SerializedColumnWriter) -> Result<(), ParquetError> {
        self.known.clear();
        let mut block = Vec::with_capacity(2 * BLOCK);
        for (text, mut times) in self.runs.drain(..) {
            if times > BLOCK {
                write::<ByteArrayType>(writer, &mut block, None)?;
                block.resize(BLOCK, text.clone());
                while times > BLOCK {
                    writer.typed::<ByteArrayType>().write_batch(&block, None, None)?;
                    times -= BLOCK;
                }
                block.clear();
            }
            block.extend(std::iter::repeat_n(text, times));
            if block.len() > BLOCK {
                write::<ByteArrayType>(writer, &mut block, None)?;
            }
        }
        write::<ByteArrayType>(writer, &mut block, None)
    }

    /// All texts in order; none is left.
    fn take(&mut self) -> Vec<ByteArray> {
        self.known.clear();
        let mut texts = Vec::with_capacity(self.runs.iter().map(|(_, times)| times).sum());
        for (text, times) in self.runs.drain(..) {
            texts.extend(std::iter::repeat_n(text, times));
        }
        texts
    }
}

fn shared(known: &mut HashMap<String, ByteArray>, text: &str) -> ByteArray {
    if let Some(held) = known.get(text) {
        return held.clone();
    }
    let held = ByteArray::from(text);
    known.insert(text.into(), held.clone());
    held
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
