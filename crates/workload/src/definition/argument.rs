//! One element of `argv`: a template, or several under a condition.

use std::fmt;

use perflab_model::Scalar;
use perflab_model::expression::{ExpressionError, ExpressionScope};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};

/// One element of `argv`. An element that renders empty is dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgvElement {
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

impl ArgvElement {
    /// All its texts that are templates.
    pub fn templates(&self) -> &[String] {
        match self {
            ArgvElement::Plain(template) => std::slice::from_ref(template),
            ArgvElement::When { args, .. } => args,
        }
    }

    /// What it becomes: none, one or several arguments.
    pub fn render(&self, scope: &ExpressionScope) -> Result<Vec<String>, ExpressionError> {
        if let ArgvElement::When { when, .. } = self
            && scope.evaluate(when)? != Scalar::Bool(true)
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

impl<'de> Deserialize<'de> for ArgvElement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgvElementVisitor)
    }
}

/// By hand, because an untagged enum would answer every slip with "did not match any variant".
struct ArgvElementVisitor;

impl<'de> Visitor<'de> for ArgvElementVisitor {
    type Value = ArgvElement;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument: a text, or a table with `when` and `args`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ArgvElement, E> {
        Ok(ArgvElement::Plain(text.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ArgvElement, A::Error> {
        let table = WhenTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        Ok(ArgvElement::When { when: table.when, args: table.args })
    }
}
