//! The JSON Schema of studies, for editors.

use schemars::generate::SchemaSettings;

/// The schema as a JSON document (draft 2020-12).
pub fn study_json_schema() -> serde_json::Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<super::Study>();
    schema.insert("title".into(), "perflab study".into());
    schema.to_value()
}
