//! Tables in memory: typed columns over Arrow's arrays, found by the constants that declare them.
//!
//! Texts are held once a table, as a dictionary and an index a row, however often they repeat. A [`Table`] has the columns
//! that somebody says it has; as a [`TypedTable`] it was checked once against a [`RowSchema`], and its columns are had by
//! their [`ColumnRef`], with their type.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
    StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use indexmap::IndexSet;

use crate::column::{
    ColumnRef, ColumnSpec, ColumnType, ColumnValue, DeclaredColumn, RowSchema, TableCell, stored_columns,
};

/// A table's columns are not what is asked of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    /// There is no such column.
    #[error("column `{column}` is not there")]
    NoColumn {
        /// its name
        column: String,
    },
    /// It holds something else.
    #[error("column `{column}` is stored as {found}, not as {expected}")]
    OtherType {
        /// its name
        column: String,
        /// the type that is asked for
        expected: DataType,
        /// the type that it has
        found: DataType,
    },
    /// A row lacks a value that every row has.
    #[error("column `{column}` has rows without a value")]
    Missing {
        /// its name
        column: String,
    },
    /// Its columns are not of one length.
    #[error("column `{column}` has {cells} cells in {rows} rows")]
    OtherLength {
        /// the column
        column: String,
        /// its cells
        cells: usize,
        /// the table's rows
        rows: usize,
    },
}

impl ColumnType {
    /// The type of its array.
    pub fn data_type(self) -> DataType {
        match self {
            ColumnType::Int => DataType::Int64,
            ColumnType::Int32 => DataType::Int32,
            ColumnType::Float => DataType::Float64,
            ColumnType::Text => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            ColumnType::Boolean => DataType::Boolean,
        }
    }
}

/// The key of a column's unit in its field's metadata.
const UNIT: &str = "unit";

/// The key of its kind.
const KIND: &str = "kind";

/// The key of its meaning.
const MEANING: &str = "meaning";

impl ColumnSpec {
    /// The field of a schema of Arrow's, with unit, kind and meaning in its metadata.
    pub fn to_field(&self) -> Field {
        let about =
            [(UNIT, self.unit.0.as_str()), (KIND, self.kind.name()), (MEANING, self.meaning.as_str())];
        let about = about.into_iter().filter(|(_, text)| !text.is_empty());
        let about = about.map(|(key, text)| (key.to_owned(), text.to_owned()));
        Field::new(&self.name, self.stored.data_type(), self.nullable)
            .with_metadata(about.collect::<HashMap<_, _>>())
    }
}

/// Rows, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    columns: Arc<[ColumnSpec]>,
    arrays: Vec<ArrayRef>,
    rows: usize,
}

impl Table {
    /// Without a row.
    #[must_use]
    pub fn empty(columns: Arc<[ColumnSpec]>) -> Self {
        TableBuilder::new(columns).finish()
    }

    /// From arrays, one a column.
    ///
    /// # Errors
    /// An array is of another type or length than its column, or lacks values that its column has in every row.
    pub fn new(
        columns: Arc<[ColumnSpec]>,
        arrays: Vec<ArrayRef>,
        rows: usize,
    ) -> Result<Self, SchemaMismatch> {
        for (index, spec) in columns.iter().enumerate() {
            let column = || spec.name.clone();
            let array = arrays.get(index).ok_or_else(|| SchemaMismatch::NoColumn { column: column() })?;
            let (expected, found) = (spec.stored.data_type(), array.data_type().clone());
            if expected != found {
                return Err(SchemaMismatch::OtherType { column: column(), expected, found });
            }
            if array.len() != rows {
                return Err(SchemaMismatch::OtherLength { column: column(), cells: array.len(), rows });
            }
            if !spec.nullable && array.null_count() > 0 {
                return Err(SchemaMismatch::Missing { column: column() });
            }
        }
        Ok(Table { columns, arrays, rows })
    }

    /// What its columns are.
    pub fn columns(&self) -> &Arc<[ColumnSpec]> {
        &self.columns
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// As Arrow's.
    ///
    /// # Errors
    /// As [`RecordBatch::try_new`].
    pub fn to_record_batch(&self) -> Result<RecordBatch, ArrowError> {
        let fields: Vec<Field> = self.columns.iter().map(ColumnSpec::to_field).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        RecordBatch::try_new_with_options(Schema::new(fields).into(), self.arrays.clone(), &options)
    }

    /// The column of that name, where there is one and it holds `T`: for columns that are found in what was read.
    pub fn column<T: ArrayValue + ?Sized>(&self, name: &str) -> Option<TypedColumn<'_, T>> {
        let index = self.columns.iter().position(|column| column.name == name)?;
        self.column_at(index)
    }

    /// The same, by its number among the columns.
    pub fn column_at<T: ArrayValue + ?Sized>(&self, index: usize) -> Option<TypedColumn<'_, T>> {
        let array = self.arrays.get(index)?.as_any().downcast_ref::<T::Array>()?;
        Some(TypedColumn { array: Some(array) })
    }

    /// All columns, whatever they hold.
    pub fn cell_columns(&self) -> Vec<CellColumn<'_>> {
        (0..self.columns.len()).filter_map(|index| self.cell_column(index)).collect()
    }

    /// The column of that number, whatever it holds.
    pub fn cell_column(&self, index: usize) -> Option<CellColumn<'_>> {
        match self.columns.get(index)?.stored {
            ColumnType::Int => self.column_at(index).map(CellColumn::Int),
            ColumnType::Int32 => self.column_at(index).map(CellColumn::Int32),
            ColumnType::Float => self.column_at(index).map(CellColumn::Float),
            ColumnType::Text => self.column_at(index).map(CellColumn::Text),
            ColumnType::Boolean => self.column_at(index).map(CellColumn::Boolean),
        }
    }

    /// With these columns only, which are found by their names.
    ///
    /// # Errors
    /// A column is not there, or of another type.
    pub fn select(&self, columns: Arc<[ColumnSpec]>) -> Result<Self, SchemaMismatch> {
        let find = |wanted: &ColumnSpec| {
            let found = self.columns.iter().zip(&self.arrays).find(|(column, _)| column.name == wanted.name);
            let array = found.map(|(_, array)| Arc::clone(array));
            array.ok_or_else(|| SchemaMismatch::NoColumn { column: wanted.name.clone() })
        };
        let arrays = columns.iter().map(find).collect::<Result<_, _>>()?;
        Table::new(columns, arrays, self.rows)
    }

    /// With further columns of fractions at its end, each as long as the table.
    ///
    /// # Errors
    /// A column has another length.
    pub fn with_floats(&self, added: &[(ColumnSpec, Vec<Option<f64>>)]) -> Result<Self, SchemaMismatch> {
        let columns = self.columns.iter().chain(added.iter().map(|(column, _)| column)).cloned().collect();
        let array = |values: &Vec<Option<f64>>| -> ArrayRef {
            Arc::new(values.iter().copied().collect::<PrimitiveArray<Float64Type>>())
        };
        let added = added.iter().map(|(_, values)| array(values));
        Table::new(columns, self.arrays.iter().cloned().chain(added).collect(), self.rows)
    }

    /// These rows, in that order; one may come several times.
    #[must_use]
    pub fn take_rows(&self, rows: impl Iterator<Item = usize> + Clone) -> Self {
        let count = rows.clone().count();
        let take = |column: &CellColumn<'_>| -> ArrayRef {
            let rows = rows.clone();
            match *column {
                CellColumn::Int(cells) => {
                    Arc::new(rows.map(|row| cells.get(row)).collect::<PrimitiveArray<Int64Type>>())
                }
                CellColumn::Int32(cells) => {
                    Arc::new(rows.map(|row| cells.get(row)).collect::<PrimitiveArray<Int32Type>>())
                }
                CellColumn::Float(cells) => {
                    Arc::new(rows.map(|row| cells.get(row)).collect::<PrimitiveArray<Float64Type>>())
                }
                CellColumn::Boolean(cells) => {
                    Arc::new(rows.map(|row| cells.get(row)).collect::<BooleanArray>())
                }
                CellColumn::Text(cells) => {
                    let number = |row| cells.text_number(row).and_then(|number| i32::try_from(number).ok());
                    let keys = rows.map(number).collect::<PrimitiveArray<Int32Type>>();
                    let texts = StringArray::from_iter_values(cells.texts());
                    Arc::new(DictionaryArray::new(keys, Arc::new(texts)))
                }
            }
        };
        let arrays = self.cell_columns().iter().map(take).collect();
        Table { columns: Arc::clone(&self.columns), arrays, rows: count }
    }

    /// A cell: of which row, and of the column of that number.
    pub fn cell(&self, row: usize, column: usize) -> TableCell {
        let value = self.cell_column(column).and_then(|column| column.get(row));
        value.map_or(TableCell::Missing, StoredValue::to_cell)
    }
}

/// A column of a table, for what asks for columns by what they are and not by name.
#[derive(Clone, Copy)]
pub enum CellColumn<'a> {
    /// whole numbers
    Int(TypedColumn<'a, i64>),
    /// indices
    Int32(TypedColumn<'a, i32>),
    /// fractions
    Float(TypedColumn<'a, f64>),
    /// texts
    Text(TypedColumn<'a, str>),
    /// true or false
    Boolean(TypedColumn<'a, bool>),
}

impl<'a> CellColumn<'a> {
    /// The value in a row; nothing where it is missing.
    pub fn get(self, row: usize) -> Option<StoredValue<'a>> {
        match self {
            CellColumn::Int(cells) => cells.get(row).map(StoredValue::Int),
            CellColumn::Int32(cells) => cells.get(row).map(StoredValue::from),
            CellColumn::Float(cells) => cells.get(row).map(StoredValue::Float),
            CellColumn::Text(cells) => cells.get(row).map(StoredValue::Text),
            CellColumn::Boolean(cells) => cells.get(row).map(StoredValue::Flag),
        }
    }

    /// The number in a row; nothing where it is missing, or no number.
    pub fn number(self, row: usize) -> Option<f64> {
        match self.get(row)? {
            StoredValue::Int(number) => Some(number as f64),
            StoredValue::Float(number) => Some(number),
            StoredValue::Text(_) | StoredValue::Flag(_) => None,
        }
    }
}

/// What an array holds.
pub trait ArrayValue: ColumnValue {
    /// The array.
    type Array: Array + 'static;

    /// The value in a row that has one.
    fn value(array: &Self::Array, row: usize) -> Self::Value<'_>;
}

impl ArrayValue for i64 {
    type Array = PrimitiveArray<Int64Type>;

    fn value(array: &Self::Array, row: usize) -> i64 {
        array.value(row)
    }
}

impl ArrayValue for i32 {
    type Array = PrimitiveArray<Int32Type>;

    fn value(array: &Self::Array, row: usize) -> i32 {
        array.value(row)
    }
}

impl ArrayValue for f64 {
    type Array = PrimitiveArray<Float64Type>;

    fn value(array: &Self::Array, row: usize) -> f64 {
        array.value(row)
    }
}

impl ArrayValue for bool {
    type Array = BooleanArray;

    fn value(array: &Self::Array, row: usize) -> bool {
        array.value(row)
    }
}

impl ArrayValue for str {
    type Array = DictionaryArray<Int32Type>;

    fn value(array: &Self::Array, row: usize) -> &str {
        let texts = array.values().as_string::<i32>();
        array.key(row).map_or("", |key| texts.value(key))
    }
}

/// A column of a table, with the type of its values. One that the table lacks has no value in any row.
pub struct TypedColumn<'a, T: ArrayValue + ?Sized> {
    array: Option<&'a T::Array>,
}

impl<T: ArrayValue + ?Sized> Clone for TypedColumn<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ArrayValue + ?Sized> Copy for TypedColumn<'_, T> {}

impl<'a, T: ArrayValue + ?Sized> TypedColumn<'a, T> {
    /// Of a table without the column.
    pub fn absent() -> Self {
        TypedColumn { array: None }
    }

    /// The value in a row; nothing where it is missing.
    pub fn get(self, row: usize) -> Option<T::Value<'a>> {
        let array = self.array.filter(|array| row < array.len() && array.is_valid(row))?;
        Some(T::value(array, row))
    }

    /// The values of all rows, in their order; none where the table lacks the column.
    pub fn iter(self) -> impl Iterator<Item = Option<T::Value<'a>>> {
        (0..self.array.map_or(0, Array::len)).map(move |row| self.get(row))
    }

    /// The rows that have a value, with it.
    pub fn present(self) -> impl Iterator<Item = (usize, T::Value<'a>)> {
        self.array.into_iter().flat_map(|array| {
            let missing = array.nulls().map(|nulls| nulls.valid_indices());
            let all = if missing.is_none() { 0..array.len() } else { 0..0 };
            let rows = missing.into_iter().flatten().chain(all);
            rows.map(move |row| (row, T::value(array, row)))
        })
    }

    /// Whether each row has a value.
    pub fn is_present(self) -> impl Iterator<Item = bool> {
        self.array.into_iter().flat_map(|array| (0..array.len()).map(move |row| array.is_valid(row)))
    }

    /// Whether some row has none.
    pub fn has_missing(self) -> bool {
        self.array.is_none_or(|array| array.null_count() > 0)
    }

    /// Whether no row has a value.
    pub fn is_empty(self) -> bool {
        self.array.is_none_or(|array| array.null_count() == array.len())
    }
}

impl<'a> TypedColumn<'a, i64> {
    /// The number in a row as a count; nothing where it is missing or below zero.
    pub fn count(self, row: usize) -> Option<u64> {
        self.get(row).and_then(|number| u64::try_from(number).ok())
    }

    /// The numbers of all rows; of a row without one, any.
    pub fn values(self) -> &'a [i64] {
        self.array.map_or(&[], |array| array.values())
    }
}

impl<'a> TypedColumn<'a, i32> {
    /// The numbers of all rows; of a row without one, any.
    pub fn values(self) -> &'a [i32] {
        self.array.map_or(&[], |array| array.values())
    }
}

impl<'a> TypedColumn<'a, f64> {
    /// The numbers of all rows; of a row without one, any.
    pub fn values(self) -> &'a [f64] {
        self.array.map_or(&[], |array| array.values())
    }
}

impl<'a> TypedColumn<'a, str> {
    /// Each text that occurs, once; some that do not occur may be among them.
    pub fn texts(self) -> impl Iterator<Item = &'a str> {
        let texts = self.array.map(|array| array.values().as_string::<i32>());
        texts.into_iter().flat_map(|texts| texts.iter().flatten())
    }

    /// The number of the row's text among [`TypedColumn::texts`]; nothing where it is missing.
    pub fn text_number(self, row: usize) -> Option<usize> {
        self.array.filter(|array| row < array.len())?.key(row)
    }

    /// What each text is made into, once for as often as it occurs; nothing where it is missing.
    pub fn map_texts<U: Clone>(self, make: impl FnMut(&'a str) -> U) -> impl Iterator<Item = Option<U>> {
        let made: Vec<U> = self.texts().map(make).collect();
        let keys = self.array.map(|array| array.keys().iter());
        keys.into_iter().flatten().map(move |key| made.get(usize::try_from(key?).ok()?).cloned())
    }
}

/// A table that has the columns of `R`, each of its type.
#[derive(Debug, Clone, PartialEq)]
pub struct TypedTable<R> {
    table: Table,
    /// Where each column of `R` stands; nothing for one that the table lacks.
    indices: Vec<Option<usize>>,
    of: PhantomData<fn() -> R>,
}

impl<R: RowSchema> TypedTable<R> {
    /// Checks a table. One that lacks a column whose values may be missing lacks all of them.
    ///
    /// # Errors
    /// A column is not there, or of another type, or lacks values that it has in every row of `R`.
    pub fn new(table: Table) -> Result<Self, SchemaMismatch> {
        TypedTable::select(table, |_| true)
    }

    /// The same with some of the columns of `R`, by their names: of the others no row has a value.
    ///
    /// # Errors
    /// As [`TypedTable::new`], of the columns that are selected.
    pub fn select(table: Table, is_selected: impl Fn(&str) -> bool) -> Result<Self, SchemaMismatch> {
        let find = |declared: &DeclaredColumn| {
            if !is_selected(declared.name) {
                return Ok(None);
            }
            let column = || declared.name.to_owned();
            let index = table.columns.iter().position(|column| column.name == declared.name);
            let Some((index, array)) = index.and_then(|index| Some((index, table.arrays.get(index)?))) else {
                let missing = SchemaMismatch::NoColumn { column: column() };
                return if declared.nullable { Ok(None) } else { Err(missing) };
            };
            let (expected, found) = (declared.stored.data_type(), array.data_type().clone());
            if expected != found {
                return Err(SchemaMismatch::OtherType { column: column(), expected, found });
            }
            if !declared.nullable && array.null_count() > 0 {
                return Err(SchemaMismatch::Missing { column: column() });
            }
            Ok(Some(index))
        };
        let indices = R::COLUMNS.iter().map(find).collect::<Result<_, _>>()?;
        Ok(TypedTable { table, indices, of: PhantomData })
    }

    /// A column.
    pub fn column<T: ArrayValue + ?Sized>(&self, column: ColumnRef<R, T>) -> TypedColumn<'_, T> {
        let index = self.indices.get(column.index()).copied().flatten();
        index.and_then(|index| self.table.column_at(index)).unwrap_or_else(TypedColumn::absent)
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.table.rows
    }

    /// With all its columns.
    pub fn table(&self) -> &Table {
        &self.table
    }
}

/// Texts, each held once and numbered in the order of first sight.
#[derive(Debug, Clone, Default)]
struct TextDictionary {
    texts: IndexSet<Box<str>>,
    /// The number that followed each number when it was last seen.
    next: Vec<usize>,
    last: usize,
}

impl TextDictionary {
    /// The number of a text: a guess from what followed the one before, hashed only where that is wrong. Texts repeat, or come in
    /// the same order at every tick.
    fn intern(&mut self, text: &str) -> usize {
        let is_it = |number: &usize| self.texts.get_index(*number).is_some_and(|known| **known == *text);
        let guess = self.next.get(self.last).copied().filter(is_it);
        let number = guess.or_else(|| self.texts.get_index_of(text)).unwrap_or_else(|| {
            self.next.push(self.texts.len());
            self.texts.insert_full(text.into()).0
        });
        if let Some(next) = self.next.get_mut(self.last) {
            *next = number;
        }
        self.last = number;
        number
    }

    fn finish(&mut self) -> StringArray {
        (self.next, self.last) = (Vec::new(), 0);
        StringArray::from_iter_values(self.texts.drain(..))
    }
}

/// One column of rows that are being gathered.
#[derive(Debug)]
enum ArrayBuilder {
    Int(PrimitiveBuilder<Int64Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Float(PrimitiveBuilder<Float64Type>),
    Text(PrimitiveBuilder<Int32Type>, TextDictionary),
    Boolean(BooleanBuilder),
}

impl ArrayBuilder {
    fn new(stored: ColumnType) -> Self {
        match stored {
            ColumnType::Int => ArrayBuilder::Int(PrimitiveBuilder::new()),
            ColumnType::Int32 => ArrayBuilder::Int32(PrimitiveBuilder::new()),
            ColumnType::Float => ArrayBuilder::Float(PrimitiveBuilder::new()),
            ColumnType::Text => ArrayBuilder::Text(PrimitiveBuilder::new(), TextDictionary::default()),
            ColumnType::Boolean => ArrayBuilder::Boolean(BooleanBuilder::new()),
        }
    }

    fn len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder as _;
        match self {
            ArrayBuilder::Int(cells) => cells.len(),
            ArrayBuilder::Int32(cells) | ArrayBuilder::Text(cells, _) => cells.len(),
            ArrayBuilder::Float(cells) => cells.len(),
            ArrayBuilder::Boolean(cells) => cells.len(),
        }
    }

    /// The value in a row so far; nothing where it is missing.
    fn get(&self, row: usize) -> Option<StoredValue<'_>> {
        let is_set = |validity: Option<&[u8]>| {
            validity.is_none_or(|bits| bits.get(row / 8).is_some_and(|byte| byte >> (row % 8) & 1 == 1))
        };
        match self {
            _ if row >= self.len() => None,
            ArrayBuilder::Int(cells) if is_set(cells.validity_slice()) => {
                cells.values_slice().get(row).copied().map(StoredValue::Int)
            }
            ArrayBuilder::Int32(cells) if is_set(cells.validity_slice()) => {
                cells.values_slice().get(row).copied().map(StoredValue::from)
            }
            ArrayBuilder::Float(cells) if is_set(cells.validity_slice()) => {
                cells.values_slice().get(row).copied().map(StoredValue::Float)
            }
            ArrayBuilder::Text(keys, known) if is_set(keys.validity_slice()) => {
                let key = usize::try_from(*keys.values_slice().get(row)?).ok()?;
                known.texts.get_index(key).map(|text| StoredValue::Text(text))
            }
            ArrayBuilder::Boolean(cells) if is_set(cells.validity_slice()) => {
                let byte = cells.values_slice().get(row / 8)?;
                Some(StoredValue::Flag(byte >> (row % 8) & 1 == 1))
            }
            _ => None,
        }
    }

    /// Takes a value; whether it fits.
    fn push(&mut self, value: StoredValue<'_>) -> bool {
        match (self, value) {
            (ArrayBuilder::Int(cells), StoredValue::Int(number)) => cells.append_value(number),
            (ArrayBuilder::Int32(cells), StoredValue::Int(number)) => {
                cells.append_value(saturate_to_i32(number))
            }
            (ArrayBuilder::Float(cells), StoredValue::Float(number)) => cells.append_value(number),
            (ArrayBuilder::Float(cells), StoredValue::Int(number)) => cells.append_value(number as f64),
            (ArrayBuilder::Boolean(cells), StoredValue::Flag(flag)) => cells.append_value(flag),
            (ArrayBuilder::Text(keys, known), StoredValue::Text(text)) => {
                keys.append_value(i32::try_from(known.intern(text)).unwrap_or(i32::MAX));
            }
            _ => return false,
        }
        true
    }

    /// Appends so many rows without a value.
    fn push_missing(&mut self, rows: usize) {
        match self {
            ArrayBuilder::Int(cells) => cells.append_nulls(rows),
            ArrayBuilder::Int32(cells) | ArrayBuilder::Text(cells, _) => cells.append_nulls(rows),
            ArrayBuilder::Float(cells) => cells.append_nulls(rows),
            ArrayBuilder::Boolean(cells) => cells.append_nulls(rows),
        }
    }

    /// Fills up to so many rows with zeros.
    fn fill_zeros(&mut self, rows: usize) {
        while self.len() < rows {
            self.push(match self {
                ArrayBuilder::Text(..) => StoredValue::Text(""),
                ArrayBuilder::Boolean(_) => StoredValue::Flag(false),
                _ => StoredValue::Int(0),
            });
        }
    }

    /// The rows so far as an array; none is left, and as many can follow before more memory is asked for.
    fn finish(&mut self) -> ArrayRef {
        let rows = self.len();
        match self {
            ArrayBuilder::Int(cells) => {
                Arc::new(std::mem::replace(cells, PrimitiveBuilder::with_capacity(rows)).finish())
            }
            ArrayBuilder::Int32(cells) => {
                Arc::new(std::mem::replace(cells, PrimitiveBuilder::with_capacity(rows)).finish())
            }
            ArrayBuilder::Float(cells) => {
                Arc::new(std::mem::replace(cells, PrimitiveBuilder::with_capacity(rows)).finish())
            }
            ArrayBuilder::Boolean(cells) => Arc::new(cells.finish()),
            ArrayBuilder::Text(keys, known) => {
                let keys = std::mem::replace(keys, PrimitiveBuilder::with_capacity(rows)).finish();
                Arc::new(DictionaryArray::new(keys, Arc::new(known.finish())))
            }
        }
    }
}

fn saturate_to_i32(number: i64) -> i32 {
    i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX })
}

/// One value on its way into a column.
#[derive(Debug, Clone, Copy)]
pub enum StoredValue<'a> {
    /// for whole numbers, and for fractions
    Int(i64),
    /// for fractions
    Float(f64),
    /// for texts
    Text(&'a str),
    /// for what is true or false
    Flag(bool),
}

impl<'a> StoredValue<'a> {
    /// That of a cell; nothing where it is missing.
    pub fn from_cell(cell: &'a TableCell) -> Option<Self> {
        match cell {
            TableCell::Int(number) => Some(StoredValue::Int(*number)),
            TableCell::Float(number) => Some(StoredValue::Float(*number)),
            TableCell::Text(text) => Some(StoredValue::Text(text)),
            TableCell::Missing => None,
        }
    }

    /// The cell that holds it.
    pub fn to_cell(self) -> TableCell {
        match self {
            StoredValue::Int(number) => TableCell::Int(number),
            StoredValue::Float(number) => TableCell::Float(number),
            StoredValue::Text(text) => TableCell::Text(text.into()),
            StoredValue::Flag(flag) => TableCell::Int(flag.into()),
        }
    }

    /// Whether both are the same; fractions to the bit, so that what was not a number stays one.
    fn is_same(self, other: StoredValue<'_>) -> bool {
        match (self, other) {
            (StoredValue::Int(one), StoredValue::Int(other)) => one == other,
            (StoredValue::Float(one), StoredValue::Float(other)) => one.to_bits() == other.to_bits(),
            (StoredValue::Text(one), StoredValue::Text(other)) => one == other,
            (StoredValue::Flag(one), StoredValue::Flag(other)) => one == other,
            _ => false,
        }
    }
}

impl From<i64> for StoredValue<'_> {
    fn from(number: i64) -> Self {
        StoredValue::Int(number)
    }
}

impl From<i32> for StoredValue<'_> {
    fn from(number: i32) -> Self {
        StoredValue::Int(number.into())
    }
}

impl From<f64> for StoredValue<'_> {
    fn from(number: f64) -> Self {
        StoredValue::Float(number)
    }
}

impl From<bool> for StoredValue<'_> {
    fn from(flag: bool) -> Self {
        StoredValue::Flag(flag)
    }
}

impl<'a> From<&'a str> for StoredValue<'a> {
    fn from(text: &'a str) -> Self {
        StoredValue::Text(text)
    }
}

/// Rows in, one table out; its memory is kept for the next.
#[derive(Debug)]
pub struct TableBuilder {
    columns: Arc<[ColumnSpec]>,
    /// Those of columns with missing values may be behind: what was not set lately is filled in at once.
    arrays: Vec<ArrayBuilder>,
    /// Columns that have no missing values.
    required: Vec<usize>,
    rows: usize,
}

impl TableBuilder {
    /// For rows of these columns.
    #[must_use]
    pub fn new(columns: Arc<[ColumnSpec]>) -> Self {
        let arrays = columns.iter().map(|column| ArrayBuilder::new(column.stored)).collect();
        let required = (0..columns.len()).filter(|index| !columns[*index].nullable).collect();
        TableBuilder { columns, arrays, required, rows: 0 }
    }

    /// What its columns are.
    pub fn columns(&self) -> &Arc<[ColumnSpec]> {
        &self.columns
    }

    /// Rows so far.
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// Sets a value of the row that is not ended yet, by the number of its column. One that is set already stays; a value of
    /// another type is none.
    pub fn set(&mut self, column: usize, value: StoredValue<'_>) {
        let Some(array) = self.arrays.get_mut(column) else { return };
        let Some(behind) = self.rows.checked_sub(array.len()) else { return };
        if behind > 0 {
            array.push_missing(behind);
        }
        array.push(value);
    }

    /// Ends a row: what was not set in it is missing, and zero in a column that has no missing values.
    pub fn end_row(&mut self) {
        self.rows += 1;
        for column in &self.required {
            self.arrays[*column].fill_zeros(self.rows);
        }
    }

    /// Appends a row of cells, one a column; what is not of its column's type is missing.
    pub fn push_cells(&mut self, row: &[TableCell]) {
        for (column, cell) in row.iter().enumerate() {
            StoredValue::from_cell(cell).into_iter().for_each(|value| self.set(column, value));
        }
        self.end_row();
    }

    /// Whether a row so far has these values, one a column.
    pub fn is_same_row<'a>(&self, row: usize, values: impl Iterator<Item = Option<StoredValue<'a>>>) -> bool {
        self.arrays.iter().zip(values).all(|(array, value)| match (array.get(row), value) {
            (Some(one), Some(other)) => one.is_same(other),
            (one, other) => one.is_none() && other.is_none(),
        })
    }

    /// The rows so far as a table; none is left.
    pub fn finish(&mut self) -> Table {
        let finish = |array: &mut ArrayBuilder| {
            array.push_missing(self.rows.saturating_sub(array.len()));
            array.finish()
        };
        let arrays = self.arrays.iter_mut().map(finish).collect();
        Table { columns: Arc::clone(&self.columns), arrays, rows: std::mem::take(&mut self.rows) }
    }
}

/// Rows of a known type in, one table out. The table may have more columns than `R` declares, and may lack some.
#[derive(Debug)]
pub struct TypedTableBuilder<R> {
    builder: TableBuilder,
    indices: Vec<Option<usize>>,
    of: PhantomData<fn() -> R>,
}

impl<R: RowSchema> TypedTableBuilder<R> {
    /// For rows of the columns that `R` declares.
    #[must_use]
    pub fn new() -> Self {
        TypedTableBuilder::with_columns(stored_columns(R::COLUMNS).into())
    }

    /// For rows of these columns; what `R` declares is found among them by its name.
    #[must_use]
    pub fn with_columns(columns: Arc<[ColumnSpec]>) -> Self {
        let find = |declared: &DeclaredColumn| {
            columns.iter().position(|column| column.name == declared.name && column.stored == declared.stored)
        };
        let indices = R::COLUMNS.iter().map(find).collect();
        TypedTableBuilder { builder: TableBuilder::new(columns), indices, of: PhantomData }
    }

    /// Sets a value of the row that is not ended yet, once; nothing where it is missing, or the table lacks the column.
    pub fn set<'a, T: ColumnValue + ?Sized>(
        &mut self,
        column: ColumnRef<R, T>,
        value: impl Into<Option<T::Value<'a>>>,
    ) where
        T::Value<'a>: Into<StoredValue<'a>>,
    {
        if let Some((index, value)) = self.indices.get(column.index()).copied().flatten().zip(value.into()) {
            self.builder.set(index, value.into());
        }
    }

    /// The rows, for columns that `R` does not declare.
    pub fn rows(&mut self) -> &mut TableBuilder {
        &mut self.builder
    }
}

impl<R: RowSchema> Default for TypedTableBuilder<R> {
    fn default() -> Self {
        TypedTableBuilder::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct ReadingRow;

    impl RowSchema for ReadingRow {
        const NAME: &'static str = "reading";
        const COLUMNS: &'static [DeclaredColumn] = &[
            DeclaredColumn::key("name"),
            DeclaredColumn::gauge("size", "bytes"),
            DeclaredColumn::float("load", "1"),
        ];
    }

    impl ReadingRow {
        const NAME_COLUMN: ColumnRef<Self, str> = ColumnRef::named("name");
        const SIZE: ColumnRef<Self, i64> = ColumnRef::named("size");
        const LOAD: ColumnRef<Self, f64> = ColumnRef::named("load");
    }

    fn build_table(rows: &[(&str, Option<i64>)]) -> Table {
        let mut builder = TypedTableBuilder::<ReadingRow>::new();
        for (name, size) in rows {
            builder.set(ReadingRow::NAME_COLUMN, *name);
            builder.set(ReadingRow::SIZE, *size);
            builder.rows().end_row();
        }
        builder.rows().finish()
    }

    #[test]
    fn rows_come_back_by_column() {
        let table = build_table(&[("a", Some(1)), ("b", None), ("a", Some(3))]);
        let batch = table.to_record_batch().unwrap();
        assert_eq!((batch.num_rows(), batch.schema().field(1).metadata()["unit"].as_str()), (3, "bytes"));
        let rows = TypedTable::<ReadingRow>::new(table).unwrap();
        let names = rows.column(ReadingRow::NAME_COLUMN);
        assert!(names.iter().eq([Some("a"), Some("b"), Some("a")]));
        assert!(names.texts().eq(["a", "b"]));
        assert!(names.map_texts(str::len).eq([Some(1); 3]));
        assert!(rows.column(ReadingRow::SIZE).iter().eq([Some(1), None, Some(3)]));
        assert_eq!(rows.column(ReadingRow::SIZE).get(3), None);
        assert!(rows.column(ReadingRow::LOAD).is_empty());
        assert_eq!(rows.table().cell(2, 1), TableCell::Int(3));
    }

    #[test]
    fn a_table_is_checked_once_against_the_type_of_its_rows() {
        let table = |column: ColumnSpec| Table::empty(vec![column].into());
        let lacking = TypedTable::<ReadingRow>::new(table(ColumnSpec::gauge("size", "bytes"))).unwrap();
        assert_eq!(lacking.column(ReadingRow::NAME_COLUMN).get(0), None);
        let error = TypedTable::<ReadingRow>::new(table(ColumnSpec::gauge("name", "1"))).unwrap_err();
        assert!(matches!(error, SchemaMismatch::OtherType { column, .. } if column == "name"));
    }

    #[test]
    fn a_column_without_missing_values_is_filled_with_zeros() {
        let required = ColumnSpec { nullable: false, ..ColumnSpec::gauge("size", "bytes") };
        let mut builder = TypedTableBuilder::<ReadingRow>::with_columns(vec![required].into());
        builder.rows().end_row();
        builder.set(ReadingRow::SIZE, 7);
        builder.rows().end_row();
        let table = builder.rows().finish();
        assert!(table.column::<i64>("size").unwrap().iter().eq([Some(0), Some(7)]));
        assert!(builder.rows().finish().column::<i64>("size").unwrap().iter().eq([]));
    }

    #[test]
    fn rows_are_compared_before_the_table_is_finished() {
        let mut builder = TypedTableBuilder::<ReadingRow>::new();
        builder.set(ReadingRow::NAME_COLUMN, "a");
        builder.set(ReadingRow::SIZE, 1);
        builder.rows().end_row();
        builder.set(ReadingRow::NAME_COLUMN, "b");
        builder.rows().end_row();
        let text = |name| Some(StoredValue::Text(name));
        let rows = builder.rows();
        assert!(rows.is_same_row(0, [text("a"), Some(StoredValue::Int(1)), None].into_iter()));
        assert!(rows.is_same_row(1, [text("b"), None, None].into_iter()));
        assert!(!rows.is_same_row(1, [text("b"), Some(StoredValue::Int(1)), None].into_iter()));
        let table = rows.finish();
        let sizes = table.column::<i64>("size").unwrap();
        assert!(sizes.present().eq([(0, 1)]) && sizes.is_present().eq([true, false]) && sizes.has_missing());
        assert!(!table.column::<str>("name").unwrap().has_missing());
        assert!(table.column::<str>("name").unwrap().present().eq([(0, "a"), (1, "b")]));
        assert!(table.column::<f64>("load").unwrap().present().eq([]));
    }

    #[test]
    fn texts_are_numbered_in_the_order_of_first_sight() {
        let mut known = TextDictionary::default();
        let numbers: Vec<usize> =
            ["a", "b", "a", "c", "b", "b", "a", "d"].iter().map(|name| known.intern(name)).collect();
        assert_eq!(numbers, [0, 1, 0, 2, 1, 1, 0, 3]);
        assert!(known.finish().iter().flatten().eq(["a", "b", "c", "d"]));
    }
}
