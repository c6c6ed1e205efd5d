//! A text that appears in hundreds of thousands of rows, held once and shared.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is cloned without being copied; in files a text like any other.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedStr(Arc<str>);

impl SharedStr {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for SharedStr {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SharedStr {
    fn borrow(&self) -> &str {
        self
    }
}

impl Default for SharedStr {
    fn default() -> Self {
        SharedStr::from("")
    }
}

impl From<&str> for SharedStr {
    fn from(text: &str) -> Self {
        SharedStr(text.into())
    }
}

impl From<&String> for SharedStr {
    fn from(text: &String) -> Self {
        SharedStr(text.as_str().into())
    }
}

impl From<String> for SharedStr {
    fn from(text: String) -> Self {
        SharedStr(text.into())
    }
}

impl From<&SharedStr> for String {
    fn from(name: &SharedStr) -> Self {
        (**name).into()
    }
}

impl From<SharedStr> for String {
    fn from(name: SharedStr) -> Self {
        String::from(&name)
    }
}

impl PartialEq<str> for SharedStr {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for SharedStr {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl PartialEq<String> for SharedStr {
    fn eq(&self, other: &String) -> bool {
        **self == **other
    }
}

impl PartialEq<SharedStr> for String {
    fn eq(&self, other: &SharedStr) -> bool {
        **self == **other
    }
}

impl fmt::Display for SharedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for SharedStr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for SharedStr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for SharedStr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(SharedStr::from)
    }
}

impl schemars::JsonSchema for SharedStr {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_text_in_files_and_a_clone_is_the_same_one() {
        let name = SharedStr::from("MB/s");
        let stored = serde_json::to_string(&name).unwrap();
        assert_eq!(
            (stored.as_str(), &serde_json::from_str::<SharedStr>(&stored).unwrap()),
            ("\"MB/s\"", &name)
        );
        assert!(Arc::ptr_eq(&name.0, &name.clone().0));
        assert_eq!(format!("{name:>6}|{name:?}"), "  MB/s|\"MB/s\"");
    }
}
