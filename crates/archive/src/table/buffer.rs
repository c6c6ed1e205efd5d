//! The cells of one column of the row group that is being filled.

use std::collections::HashMap;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;

use super::{Declaration, Stored};

/// One cell on its way into a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item<'a> {
    Int(i64),
    Float(f64),
    Text(&'a str),
    Flag(bool),
    Missing,
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
    Text(Vec<ByteArray>, HashMap<String, ByteArray>),
    Boolean(Vec<bool>),
}

impl Buffer {
    pub(crate) fn new(column: &Declaration) -> Self {
        let values = match column.stored {
            Stored::Int32 => Values::Int32(Vec::new()),
            Stored::Int64 => Values::Int64(Vec::new()),
            Stored::Double => Values::Double(Vec::new()),
            Stored::Text => Values::Text(Vec::new(), HashMap::new()),
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

    /// Writes the cells out and forgets them.
    pub(crate) fn flush(&mut self, writer: &mut SerializedColumnWriter) -> Result<(), ParquetError> {
        let levels = self.optional.then_some(self.levels.as_slice());
        match &mut self.values {
            Values::Int32(values) => write::<Int32Type>(writer, values, levels)?,
            Values::Int64(values) => write::<Int64Type>(writer, values, levels)?,
            Values::Double(values) => write::<DoubleType>(writer, values, levels)?,
            Values::Text(values, _) => write::<ByteArrayType>(writer, values, levels)?,
            Values::Boolean(values) => write::<BoolType>(writer, values, levels)?,
        }
        if let Values::Text(_, known) = &mut self.values {
            known.clear();
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
            (Values::Text(values, known), Item::Text(text)) => {
                let held = shared(values.last(), known, text);
                values.push(held);
            }
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
            Values::Text(values, _) => values.push(ByteArray::from("")),
            Values::Boolean(values) => values.push(false),
        }
    }
}

fn saturated(n: i64) -> i32 {
    i32::try_from(n).unwrap_or(if n < 0 { i32::MIN } else { i32::MAX })
}

/// Texts repeat from row to row; each is held once.
fn shared(last: Option<&ByteArray>, known: &mut HashMap<String, ByteArray>, text: &str) -> ByteArray {
    let same = last.filter(|last| last.data() == text.as_bytes());
    if let Some(held) = same.or_else(|| known.get(text)) {
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
