//! `answers`: the configurations of MMTests that a study stands for, each with what to say on the command line.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

/// A configuration, or several by a pattern, and how the study is run to answer it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StudyAnswer {
    /// `config-scheduler-hackbench`; `*` stands for any text, also for none.
    pub name: String,
    /// The workload of the study that it is about, where it is one of several.
    pub only: Option<String>,
    /// Levels to keep: `FACTOR=LEVEL`.
    pub set: Vec<String>,
    /// What is varied besides, as `perflab run --vary` takes it.
    pub vary: Vec<String>,
    /// What the configuration does otherwise.
    pub differs: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerTable {
    name: String,
    only: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    #[serde(default)]
    vary: Vec<String>,
    differs: Option<String>,
}

impl<'de> Deserialize<'de> for StudyAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnswerVisitor)
    }
}

struct AnswerVisitor;

impl<'de> Visitor<'de> for AnswerVisitor {
    type Value = StudyAnswer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a configuration, or a table with `name`, `only`, `set`, `vary`, `differs`")
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<StudyAnswer, E> {
        Ok(StudyAnswer { name: value.into(), ..StudyAnswer::default() })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<StudyAnswer, A::Error> {
        let AnswerTable { name, only, set, vary, differs } =
            AnswerTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(StudyAnswer { name, only, set, vary, differs })
    }
}

impl JsonSchema for StudyAnswer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StudyAnswer".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let text = json_schema!({ "type": "string" });
        let texts = json_schema!({ "type": "array", "items": { "type": "string" } });
        json_schema!({
            "description": "The name of a configuration of MMTests (`*` stands for any text), or a table with that and how the study is run to answer it.",
            "anyOf": [text.clone(), {
                "type": "object",
                "required": ["name"],
                "additionalProperties": false,
                "properties": { "name": text.clone(), "only": text.clone(), "set": texts.clone(), "vary": texts, "differs": text },
            }],
        })
    }
}
