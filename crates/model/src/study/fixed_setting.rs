//! `[settings]`: what is set for all cases of a study.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};

use crate::Scalar;
use crate::study::factor_side::FactorSide;

/// The level of a preset, and on which side of a study with targets it is set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FixedSetting {
    /// The level.
    pub level: Scalar,
    /// In a study with targets: on this host, where nothing is said, or in the targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<FactorSide>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FixedSettingTable {
    level: Scalar,
    on: Option<FactorSide>,
}

impl<'de> Deserialize<'de> for FixedSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // By way of a value: what a table lacks is then told, and not that nothing fits.
        match serde_json::Value::deserialize(deserializer)? {
            table @ serde_json::Value::Object(_) => {
                let FixedSettingTable { level, on } =
                    serde_json::from_value(table).map_err(D::Error::custom)?;
                Ok(FixedSetting { level, on })
            }
            level => {
                let level = serde_json::from_value(level).map_err(D::Error::custom)?;
                Ok(FixedSetting { level, on: None })
            }
        }
    }
}

impl JsonSchema for FixedSetting {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FixedSetting".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let scalar = json_schema!({ "type": ["string", "number", "integer", "boolean"] });
        let side = generator.subschema_for::<Option<FactorSide>>();
        json_schema!({
            "description": "The level of a preset, or a table with it and the side on which it is set.",
            "anyOf": [scalar.clone(), {
                "type": "object",
                "required": ["level"],
                "additionalProperties": false,
                "properties": { "level": scalar, "on": side },
            }],
        })
    }
}
