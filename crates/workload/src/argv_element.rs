//! One element of a command in a workload's file: a text, one under a condition, or a text that is split into words.

use std::fmt;

use perflab_model::Scalar;
use perflab_model::expression::{ExpressionError, ExpressionScope};
use serde::Deserialize as _;
use serde::de::{self, MapAccess, Visitor};

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
    /// `{ words = "{{ command }}" }`: a template whose text is split into words as a shell would
    Words(String),
}

impl ArgvElement {
    /// All its texts that are templates.
    pub fn templates(&self) -> &[String] {
        match self {
            ArgvElement::Plain(template) | ArgvElement::Words(template) => std::slice::from_ref(template),
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
        if let ArgvElement::Words(template) = self {
            return split_words(&scope.render(template)?);
        }
        let rendered: Result<Vec<String>, _> =
            self.templates().iter().map(|template| scope.render(template)).collect();
        Ok(rendered?.into_iter().filter(|argument| !argument.is_empty()).collect())
    }
}

/// The words of a text, as a shell would split it.
///
/// # Errors
/// A quotation mark that is not closed, or an escape of nothing.
pub fn split_words(text: &str) -> Result<Vec<String>, ExpressionError> {
    let refuse = || ExpressionError::Failed {
        expression: text.to_owned(),
        reason: "a quotation mark is not closed, or the text ends within an escape".into(),
    };
    shlex::split(text).ok_or_else(refuse)
}

/// A word as a shell takes it. One that it cannot take, with a NUL in it, is as it was.
pub fn quote_word(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |quoted| quoted.into_owned())
}

/// `{ when = …, args = … }` or `{ words = … }`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ArgvTable {
    when: Option<String>,
    args: Option<Vec<String>>,
    words: Option<String>,
}

impl<'de> serde::de::Deserialize<'de> for ArgvElement {
    fn deserialize<D: serde::de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgvElementVisitor)
    }
}

/// Written by hand, because an untagged enum would answer every slip with "did not match any variant".
struct ArgvElementVisitor;

impl<'de> Visitor<'de> for ArgvElementVisitor {
    type Value = ArgvElement;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument: a text, or a table with `when` and `args`, or with `words`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ArgvElement, E> {
        Ok(ArgvElement::Plain(text.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ArgvElement, A::Error> {
        let table = ArgvTable::deserialize(de::value::MapAccessDeserializer::new(map))?;
        match (table.when, table.args, table.words) {
            (None, None, Some(words)) => Ok(ArgvElement::Words(words)),
            (Some(when), Some(args), None) => Ok(ArgvElement::When { when, args }),
            (Some(_), _, None) => Err(de::Error::missing_field("args")),
            (_, _, None) => Err(de::Error::missing_field("when")),
            _ => Err(de::Error::custom("`words` stands alone: it does not go with `when` and `args`")),
        }
    }
}
