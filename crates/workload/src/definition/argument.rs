//! One element of `argv`: a template, or several under a condition.

use std::fmt;

use perflab_model::Value;
use perflab_model::expression::{ExpressionError, Scope};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// One element of `argv`. An element that renders empty is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Argument {
    /// `"--time={{ duration }}"`
    Plain(String),
    /// `{ when = "mode == 'thread'", args = ["--threads"] }`
    When {
        /// an expression over the parameters and the host
        when: String,
        /// templates
        args: Vec<String>,
    },
}

impl Argument {
    /// All its texts that are templates.
    pub fn templates(&self) -> &[String] {
        match self {
            Argument::Plain(template) => std::slice::from_ref(template),
            Argument::When { args, .. } => args,
        }
    }

    /// What it becomes: none, one or several arguments.
    pub fn render(&self, scope: &Scope) -> Result<Vec<String>, ExpressionError> {
        if let Argument::When { when, .. } = self
            && scope.evaluate(when)? != Value::Bool(true)
        {
            return Ok(Vec::new());
        }
        let rendered: Result<Vec<String>, _> =
            self.templates().iter().map(|template| scope.render(template)).collect();
        Ok(rendered?.into_iter().filter(|argument| !argument.is_empty()).collect())
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct WhenTable {
    when: String,
    args: Vec<String>,
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentVisitor)
    }
}

/// By hand, because an untagged enum would answer every slip with "did not match any variant".
struct ArgumentVisitor;

impl<'de> Visitor<'de> for ArgumentVisitor {
    type Value = Argument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument: a text, or a table with `when` and `args`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Argument, E> {
        Ok(Argument::Plain(text.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Argument, A::Error> {
        let table = WhenTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(Argument::When { when: table.when, args: table.args })
    }
}
