//! A list in a study: written out, or an expression over host facts that gives one: `threads = "powers(1, 2 * cpus)"`.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Values or levels. An expression has no elements until the study is settled on a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum StudyList<T> {
    /// `[1, 2, 4]`
    Elements(Vec<T>),
    /// `"powers(1, 2 * cpus)"`
    Expression(String),
}

impl<T> StudyList<T> {
    /// The expression, where it is one.
    pub fn expression(&self) -> Option<&str> {
        match self {
            StudyList::Elements(_) => None,
            StudyList::Expression(text) => Some(text),
        }
    }

    /// Whether it may hold more than one element.
    pub fn may_have_several(&self) -> bool {
        self.expression().is_some() || self.len() > 1
    }

    /// Leaves out all but the first element.
    pub fn keep_first(&mut self) {
        match self {
            StudyList::Elements(elements) => elements.truncate(1),
            StudyList::Expression(text) => *text = format!("({text})|first"),
        }
    }

    /// Leaves out the elements for which `keep` is false.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        if let StudyList::Elements(elements) = self {
            elements.retain(keep);
        }
    }
}

impl<T> Deref for StudyList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            StudyList::Elements(elements) => elements,
            StudyList::Expression(_) => &[],
        }
    }
}

impl<'a, T> IntoIterator for &'a StudyList<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> From<Vec<T>> for StudyList<T> {
    fn from(elements: Vec<T>) -> Self {
        StudyList::Elements(elements)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for StudyList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StudyListVisitor(PhantomData))
    }
}

/// Written by hand, because an untagged enum would answer every slip with "did not match any variant".
struct StudyListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for StudyListVisitor<T> {
    type Value = StudyList<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list, or an expression that gives one: \"powers(1, 2 * cpus)\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<StudyList<T>, E> {
        Ok(StudyList::Expression(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<StudyList<T>, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            elements.push(element);
        }
        Ok(StudyList::Elements(elements))
    }
}

impl<T: JsonSchema> JsonSchema for StudyList<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("ListOf{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A list, or an expression over host facts that gives one.",
            "anyOf": [{ "type": "array", "items": generator.subschema_for::<T>() }, { "type": "string" }],
        })
    }
}
