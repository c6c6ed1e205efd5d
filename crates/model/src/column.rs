//! Columns declared once, by the type of the rows that have them, and the cells of such rows.
//!
//! A row that is known when the program is built is a type that implements [`RowSchema`]; a column of it is a constant of
//! that type, a [`ColumnRef`], which carries the type of its values. Nothing else knows where a column stands: a name that
//! is not declared, or a value of another type, does not build.

use std::fmt;
use std::marker::PhantomData;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::metric::Unit;

/// What a column's numbers do over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// names the row's subject (a cache, a CPU, a device); text
    Key,
    /// only grows; its rate means something
    Counter,
    /// goes up and down; its value means something
    Gauge,
    /// none of these: what was measured, or said
    Value,
}

impl ColumnKind {
    /// As it is stored.
    pub fn name(self) -> &'static str {
        match self {
            ColumnKind::Key => "key",
            ColumnKind::Counter => "counter",
            ColumnKind::Gauge => "gauge",
            ColumnKind::Value => "value",
        }
    }

    /// The reverse of [`ColumnKind::name`]; what is not known is a value.
    pub fn from_name(name: &str) -> Self {
        let all = [ColumnKind::Key, ColumnKind::Counter, ColumnKind::Gauge];
        all.into_iter().find(|kind| kind.name() == name).unwrap_or(ColumnKind::Value)
    }
}

/// The stored type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnType {
    /// signed 64-bit
    Int,
    /// signed 32-bit: indices
    Int32,
    /// 64-bit float
    Float,
    /// UTF-8
    Text,
    /// true or false
    Boolean,
}

/// One column of a table, as it travels with its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnSpec {
    /// The kernel's own name where it has one.
    pub name: String,
    /// The unit of its numbers; `1` for keys and bare counts.
    pub unit: Unit,
    /// Whether it counts, gauges or names.
    pub kind: ColumnKind,
    /// How it is stored.
    #[serde(rename = "type")]
    pub stored: ColumnType,
    /// Whether values may be missing.
    #[serde(default = "is_nullable_unless_said", skip_serializing_if = "Clone::clone")]
    pub nullable: bool,
    /// What its values say, where its name and kind do not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub meaning: String,
}

fn is_nullable_unless_said() -> bool {
    true
}

impl ColumnSpec {
    /// A text column that names the row's subject.
    pub fn key(name: &str) -> Self {
        ColumnSpec::new(name, "1", ColumnKind::Key, ColumnType::Text)
    }

    /// An integer that only grows.
    pub fn counter(name: &str, unit: &str) -> Self {
        ColumnSpec::new(name, unit, ColumnKind::Counter, ColumnType::Int)
    }

    /// An integer that goes up and down.
    pub fn gauge(name: &str, unit: &str) -> Self {
        ColumnSpec::new(name, unit, ColumnKind::Gauge, ColumnType::Int)
    }

    /// A float that goes up and down.
    pub fn float_gauge(name: &str, unit: &str) -> Self {
        ColumnSpec::new(name, unit, ColumnKind::Gauge, ColumnType::Float)
    }

    fn new(name: &str, unit: &str, kind: ColumnKind, stored: ColumnType) -> Self {
        ColumnSpec {
            name: name.into(),
            unit: Unit::new(unit),
            kind,
            stored,
            nullable: true,
            meaning: String::new(),
        }
    }
}

/// One column as a program declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeclaredColumn {
    /// The kernel's own name where it has one.
    pub name: &'static str,
    /// The unit of the recorded number.
    pub unit: &'static str,
    /// Whether it counts, gauges or names.
    pub kind: ColumnKind,
    /// How it is stored.
    pub stored: ColumnType,
    /// What the kernel's number is multiplied by to be in `unit`.
    pub scale: u64,
    /// Whether values may be missing.
    pub nullable: bool,
    /// What its values say, where its name and kind do not.
    pub meaning: &'static str,
}

impl DeclaredColumn {
    /// A text that names the row's subject.
    pub const fn key(name: &'static str) -> Self {
        DeclaredColumn::optional(name, ColumnType::Text, "1", ColumnKind::Key, "")
    }

    /// A whole number that only grows.
    pub const fn counter(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn::optional(name, ColumnType::Int, unit, ColumnKind::Counter, "")
    }

    /// A whole number that goes up and down.
    pub const fn gauge(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn::optional(name, ColumnType::Int, unit, ColumnKind::Gauge, "")
    }

    /// A fraction that goes up and down.
    pub const fn float(name: &'static str, unit: &'static str) -> Self {
        DeclaredColumn::optional(name, ColumnType::Float, unit, ColumnKind::Gauge, "")
    }

    /// A column whose values may be missing.
    pub const fn optional(
        name: &'static str,
        stored: ColumnType,
        unit: &'static str,
        kind: ColumnKind,
        meaning: &'static str,
    ) -> Self {
        DeclaredColumn { name, unit, kind, stored, scale: 1, nullable: true, meaning }
    }

    /// A column that has a value in every row.
    pub const fn required(
        name: &'static str,
        stored: ColumnType,
        unit: &'static str,
        kind: ColumnKind,
        meaning: &'static str,
    ) -> Self {
        DeclaredColumn { name, unit, kind, stored, scale: 1, nullable: false, meaning }
    }

    /// The same, of a number that is multiplied by `scale`.
    #[must_use]
    pub const fn scaled(self, scale: u64) -> Self {
        DeclaredColumn { scale, ..self }
    }

    /// The column as it travels with its rows.
    pub fn column(&self) -> ColumnSpec {
        ColumnSpec {
            name: self.name.into(),
            unit: Unit::new(self.unit),
            kind: self.kind,
            stored: self.stored,
            nullable: self.nullable,
            meaning: self.meaning.into(),
        }
    }
}

/// The columns as they travel with their rows.
pub fn stored_columns(columns: &[DeclaredColumn]) -> Vec<ColumnSpec> {
    columns.iter().map(DeclaredColumn::column).collect()
}

/// A row whose columns are known when the program is built.
pub trait RowSchema {
    /// What its table is called: `slabinfo`.
    const NAME: &'static str;
    /// Its columns, in their order.
    const COLUMNS: &'static [DeclaredColumn];

    /// A row without a value.
    fn missing_row() -> CellRow {
        vec![TableCell::Missing; Self::COLUMNS.len()]
    }
}

/// What the cells of a column hold.
pub trait ColumnValue: 'static {
    /// How such a column is stored.
    const STORED: ColumnType;

    /// A cell's value.
    type Value<'a>: Copy;

    /// The value of a cell; nothing where it is missing, or of another type.
    fn from_cell(cell: &TableCell) -> Option<Self::Value<'_>>;

    /// The cell of a value.
    fn to_cell(value: Self::Value<'_>) -> TableCell;
}

impl ColumnValue for i64 {
    const STORED: ColumnType = ColumnType::Int;

    type Value<'a> = i64;

    fn from_cell(cell: &TableCell) -> Option<i64> {
        if let TableCell::Int(number) = cell { Some(*number) } else { None }
    }

    fn to_cell(value: i64) -> TableCell {
        TableCell::Int(value)
    }
}

impl ColumnValue for f64 {
    const STORED: ColumnType = ColumnType::Float;

    type Value<'a> = f64;

    fn from_cell(cell: &TableCell) -> Option<f64> {
        if let TableCell::Float(number) = cell { Some(*number) } else { None }
    }

    fn to_cell(value: f64) -> TableCell {
        TableCell::Float(value)
    }
}

impl ColumnValue for str {
    const STORED: ColumnType = ColumnType::Text;

    type Value<'a> = &'a str;

    fn from_cell(cell: &TableCell) -> Option<&str> {
        if let TableCell::Text(text) = cell { Some(text) } else { None }
    }

    fn to_cell(value: &str) -> TableCell {
        TableCell::Text(value.into())
    }
}

impl ColumnValue for i32 {
    const STORED: ColumnType = ColumnType::Int32;

    type Value<'a> = i32;

    fn from_cell(cell: &TableCell) -> Option<i32> {
        if let TableCell::Int(number) = cell { i32::try_from(*number).ok() } else { None }
    }

    fn to_cell(value: i32) -> TableCell {
        TableCell::Int(value.into())
    }
}

impl ColumnValue for bool {
    const STORED: ColumnType = ColumnType::Boolean;

    type Value<'a> = bool;

    fn from_cell(cell: &TableCell) -> Option<bool> {
        if let TableCell::Int(number) = cell { Some(*number != 0) } else { None }
    }

    fn to_cell(value: bool) -> TableCell {
        TableCell::Int(value.into())
    }
}

/// A column of the rows `R`, whose values are `T`: `i64`, `i32`, `f64`, `bool` or `str`.
pub struct ColumnRef<R, T: ?Sized> {
    index: usize,
    of: PhantomData<fn(&R, &T)>,
}

impl<R, T: ?Sized> Clone for ColumnRef<R, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R, T: ?Sized> Copy for ColumnRef<R, T> {}

impl<R: RowSchema, T: ColumnValue + ?Sized> ColumnRef<R, T> {
    /// The column of that name, for a constant: one that `R` does not declare, or declares of another type, does not build.
    ///
    /// # Panics
    /// There is no such column.
    pub const fn named(name: &str) -> Self {
        let mut index = 0;
        while index < R::COLUMNS.len() {
            let column = &R::COLUMNS[index];
            if is_same_text(column.name.as_bytes(), name.as_bytes()) {
                assert!(column.stored as u8 == T::STORED as u8, "the column has values of another type");
                return ColumnRef { index, of: PhantomData };
            }
            index += 1;
        }
        panic!("there is no such column")
    }

    /// Its number among the columns that `R` declares.
    pub const fn index(self) -> usize {
        self.index
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        R::COLUMNS[self.index].name
    }

    /// Its value in a row; nothing where it is missing.
    pub fn get(self, row: &[TableCell]) -> Option<T::Value<'_>> {
        row.get(self.index).and_then(T::from_cell)
    }

    /// Puts its value into a row, which has all columns.
    pub fn set<'a>(self, row: &mut [TableCell], value: impl Into<Option<T::Value<'a>>>) {
        if let Some(cell) = row.get_mut(self.index) {
            *cell = value.into().map_or(TableCell::Missing, T::to_cell);
        }
    }
}

const fn is_same_text(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let mut index = 0;
    while index < a.len() {
        if a[index] != b[index] {
            return false;
        }
        index += 1;
    }
    true
}

/// One cell of a row: in JSON a number with or without a point, a text, or null.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum TableCell {
    /// for [`ColumnType::Int`]
    Int(i64),
    /// for [`ColumnType::Float`]
    Float(f64),
    /// for [`ColumnType::Text`]
    Text(String),
    /// the kernel did not give this value in this row
    Missing,
}

/// Written by hand, as the derived one tries a variant after the other and builds an error for each that does not fit: most
/// of the time of closing a run.
impl<'de> Deserialize<'de> for TableCell {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CellVisitor)
    }
}

struct CellVisitor;

impl Visitor<'_> for CellVisitor {
    type Value = TableCell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text or null")
    }

    fn visit_i64<E>(self, number: i64) -> Result<TableCell, E> {
        Ok(TableCell::Int(number))
    }

    /// What is too large for a signed number keeps its size and loses its last digits.
    fn visit_u64<E>(self, number: u64) -> Result<TableCell, E> {
        Ok(i64::try_from(number).map_or(TableCell::Float(number as f64), TableCell::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<TableCell, E> {
        Ok(TableCell::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<TableCell, E> {
        Ok(TableCell::Text(text.into()))
    }

    fn visit_string<E>(self, text: String) -> Result<TableCell, E> {
        Ok(TableCell::Text(text))
    }

    fn visit_unit<E>(self) -> Result<TableCell, E> {
        Ok(TableCell::Missing)
    }

    fn visit_none<E>(self) -> Result<TableCell, E> {
        Ok(TableCell::Missing)
    }
}

/// One row: as many cells as the schema has columns.
pub type CellRow = Vec<TableCell>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_plain_values_of_json() {
        let cells = [
            (TableCell::Int(-3), "-3"),
            (TableCell::Int(i64::MAX), "9223372036854775807"),
            (TableCell::Float(1.5), "1.5"),
            (TableCell::Text("a\"b".into()), "\"a\\\"b\""),
            (TableCell::Missing, "null"),
        ];
        for (cell, text) in cells {
            assert_eq!(serde_json::to_string(&cell).unwrap(), text);
            assert_eq!(serde_json::from_str::<TableCell>(text).unwrap(), cell);
        }
        assert_eq!(
            serde_json::from_str::<TableCell>("18446744073709551615").unwrap(),
            TableCell::Float(u64::MAX as f64)
        );
        assert!(serde_json::from_str::<TableCell>("true").is_err());
        assert!(serde_json::from_str::<TableCell>("[1]").is_err());
    }

    struct DeviceRow;

    impl RowSchema for DeviceRow {
        const NAME: &'static str = "device";
        const COLUMNS: &'static [DeclaredColumn] = &[
            DeclaredColumn::key("device"),
            DeclaredColumn::counter("bytes", "bytes"),
            DeclaredColumn::float("load", "1"),
        ];
    }

    impl DeviceRow {
        const DEVICE: ColumnRef<Self, str> = ColumnRef::named("device");
        const BYTES: ColumnRef<Self, i64> = ColumnRef::named("bytes");
        const LOAD: ColumnRef<Self, f64> = ColumnRef::named("load");
    }

    #[test]
    fn a_column_is_found_by_its_name_and_type() {
        let mut row = DeviceRow::missing_row();
        DeviceRow::DEVICE.set(&mut row, "sda");
        DeviceRow::BYTES.set(&mut row, 512);
        DeviceRow::LOAD.set(&mut row, None);
        assert_eq!(row, [TableCell::Text("sda".into()), TableCell::Int(512), TableCell::Missing]);
        assert_eq!((DeviceRow::DEVICE.get(&row), DeviceRow::BYTES.get(&row)), (Some("sda"), Some(512)));
        assert_eq!((DeviceRow::LOAD.get(&row), DeviceRow::BYTES.get(&[])), (None, None));
        assert_eq!((DeviceRow::BYTES.index(), DeviceRow::BYTES.name()), (1, "bytes"));
    }
}
