//! What a column is, declared once: the Parquet schema and the metadata both come from here.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::{Type, TypePtr};
use serde::{Deserialize, Serialize};

/// How a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stored {
    Int32,
    Int64,
    Double,
    Text,
    Boolean,
}

/// One column: an element of `perflab.columns`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) stored: Stored,
    /// `ns`, `bytes`, `1` for a bare count or a name.
    pub(crate) unit: String,
    /// `key`, `counter`, `gauge`; `value` where none of them fits.
    pub(crate) kind: String,
    /// Whether cells may be missing.
    pub(crate) optional: bool,
    pub(crate) meaning: String,
}

impl Declaration {
    /// A column without missing cells.
    pub(crate) fn new(name: &str, stored: Stored, unit: &str, kind: &str, meaning: &str) -> Self {
        let [name, unit, kind, meaning] = [name, unit, kind, meaning].map(String::from);
        Declaration { name, stored, unit, kind, optional: false, meaning }
    }

    /// The same, with cells that may be missing.
    pub(crate) fn optional(self) -> Self {
        Declaration { optional: true, ..self }
    }

    fn parquet(&self) -> Result<TypePtr, ParquetError> {
        let (physical, logical) = match self.stored {
            Stored::Int32 => (Physical::INT32, None),
            Stored::Int64 => (Physical::INT64, None),
            Stored::Double => (Physical::DOUBLE, None),
            Stored::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Stored::Boolean => (Physical::BOOLEAN, None),
        };
        let repetition = if self.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let builder = Type::primitive_type_builder(&self.name, physical);
        builder.with_logical_type(logical).with_repetition(repetition).build().map(Arc::new)
    }
}

/// Columns of events, from their name, type, unit, whether cells may be missing, and meaning.
pub(crate) fn events(columns: &[(&str, Stored, &str, bool, &str)]) -> Vec<Declaration> {
    let column = |(name, stored, unit, optional, meaning): &(&str, Stored, &str, bool, &str)| {
        let kind = if *stored == Stored::Int64 { "value" } else { "key" };
        let column = Declaration::new(name, *stored, unit, kind, meaning);
        if *optional { column.optional() } else { column }
    };
    columns.iter().map(column).collect()
}

/// The Parquet schema of a table.
pub(crate) fn schema(columns: &[Declaration]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(Declaration::parquet).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("row").with_fields(fields).build().map(Arc::new)
}
