//! What a column is, declared once: the Parquet schema and the metadata both come from here.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};
use serde::{Deserialize, Serialize};

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
pub(crate) fn parquet_schema(columns: &[StoredColumn]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(StoredColumn::parquet_type).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("row").with_fields(fields).build().map(Arc::new)
}
