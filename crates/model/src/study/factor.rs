//! `[factor.NAME]`: what is varied, and its levels.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::Scalar;
use crate::study::factor_kind::FactorKind;
use crate::study::factor_side::FactorSide;
use crate::study::study_list::StudyList;
use crate::study::target_key::TargetKey;

/// One factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Factor {
    /// What turning it means.
    pub kind: FactorKind,
    /// parameter, environment: its name, where it is not the factor's. sysctl: `vm.swappiness`.
    /// file: a path under /proc or /sys. setting: a preset, with a part of it where one is meant: `io-scheduler:vda`. disk: `filesystem` or `mount`. target: `kernel`, or `guest.kernel` for `[target.guest]` alone.
    #[serde(default)]
    pub key: Option<String>,
    /// parameter, environment: only for this workload of the study.
    #[serde(default)]
    pub workload: Option<String>,
    /// sysctl, file, setting, drop-caches, commands: which side it is turned on, in a study with targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<FactorSide>,
    /// At least one; the first is the baseline. drop-caches: 0 (none), 1, 2 or 3. A list, or an expression over host facts that
    /// gives one: `levels = "powers(1, 2 * cpus)"`.
    pub levels: StudyList<FactorLevel>,
}

/// One level: a scalar, or a table with a name of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FactorLevel {
    /// Unique within the factor; the value's text where not given.
    pub name: String,
    /// The value that is set; the name where a table gives none.
    pub value: Scalar,
    /// commands: argv that applies the level.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<String>,
    /// commands: argv that undoes it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelTable {
    name: String,
    value: Option<Scalar>,
    #[serde(default)]
    apply: Vec<String>,
    #[serde(default)]
    undo: Vec<String>,
}

impl<'de> Deserialize<'de> for FactorLevel {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LevelVisitor)
    }
}

struct LevelVisitor;

impl<'de> Visitor<'de> for LevelVisitor {
    type Value = FactorLevel;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a level: a text, a number, a boolean, or a table with `name` and `value`")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<FactorLevel, E> {
        Ok(FactorLevel::from_scalar(Scalar::Bool(value)))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<FactorLevel, E> {
        Ok(FactorLevel::from_scalar(Scalar::Int(value)))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<FactorLevel, E> {
        i64::try_from(value).map(|value| FactorLevel::from_scalar(Scalar::Int(value))).map_err(E::custom)
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<FactorLevel, E> {
        Ok(FactorLevel::from_scalar(Scalar::Float(value)))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<FactorLevel, E> {
        Ok(FactorLevel::from_scalar(Scalar::Text(value.into())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FactorLevel, A::Error> {
        let table = LevelTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let value = table.value.unwrap_or_else(|| Scalar::Text(table.name.clone()));
        Ok(FactorLevel { name: table.name, value, apply: table.apply, undo: table.undo })
    }
}

impl FactorLevel {
    /// A value under its own text.
    pub fn from_scalar(value: Scalar) -> Self {
        FactorLevel::named(value.to_string(), value)
    }

    /// A value under a name of its own.
    pub fn named(name: impl Into<String>, value: Scalar) -> Self {
        FactorLevel { name: name.into(), value, apply: Vec::new(), undo: Vec::new() }
    }
}

impl Factor {
    /// Whether its levels are hosts of an inventory.
    pub fn varies_hosts(&self) -> bool {
        let key = self.key.as_deref().map(TargetKey::new);
        self.kind == FactorKind::Target && key.is_some_and(TargetKey::names_host)
    }
}

impl JsonSchema for FactorLevel {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Level".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let argv = || json_schema!({ "type": "array", "items": { "type": "string" } });
        let scalar = json_schema!({ "type": ["string", "number", "integer", "boolean"] });
        json_schema!({
            "description": "A level: a scalar, or a table with a name of its own.",
            "anyOf": [scalar.clone(), {
                "type": "object",
                "required": ["name"],
                "additionalProperties": false,
                "properties": { "name": { "type": "string" }, "value": scalar, "apply": argv(), "undo": argv() },
            }],
        })
    }
}
