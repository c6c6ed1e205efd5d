//! The notebook that families write into: files become facts, and files that are not there do not.

use perflab_model::{Facts, Value};

use crate::Root;

/// Facts so far, and where to read more.
pub(super) struct Notes<'a> {
    pub(super) root: &'a Root,
    pub(super) facts: Facts,
}

impl<'a> Notes<'a> {
    pub(super) fn new(root: &'a Root) -> Self {
        Notes { root, facts: Facts::default() }
    }

    /// The text of a file, unless it cannot be read or is empty.
    pub(super) fn read(&self, path: &str) -> Option<String> {
        self.root.read(path).ok().filter(|text| !text.is_empty())
    }

    pub(super) fn add(&mut self, key: &str, value: impl Into<Value>, source: &str) {
        self.facts.add(key, value, source);
    }

    /// A fact that may not be known.
    pub(super) fn add_known(&mut self, key: &str, value: Option<impl Into<Value>>, source: &str) {
        if let Some(value) = value {
            self.add(key, value, source);
        }
    }

    /// The whole file: a whole number where it is one, else its text on one line.
    pub(super) fn file(&mut self, key: &str, path: &str) {
        let value = self.read(path).map(|text| scalar(&text));
        self.add_known(key, value, path);
    }

    /// A file with a number, times `scale`.
    pub(super) fn scaled(&mut self, key: &str, path: &str, scale: i64) {
        let number = self.read(path).and_then(|text| text.parse::<i64>().ok()?.checked_mul(scale));
        self.add_known(key, number, path);
    }

    /// A file with 0 or 1; `on` is the text that means yes.
    pub(super) fn switch(&mut self, key: &str, path: &str, on: &str) {
        let value = self.read(path).map(|text| Value::Bool(text == on));
        self.add_known(key, value, path);
    }

    /// A file that marks its choice: `always [madvise] never`.
    pub(super) fn choice(&mut self, key: &str, path: &str) {
        let value = self.read(path).map(|text| Value::from(chosen(&text)));
        self.add_known(key, value, path);
    }
}

/// A whole number where the text is one, else the text with its white space made single.
pub(super) fn scalar(text: &str) -> Value {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    text.parse().map_or_else(|_| Value::Text(text), Value::Int)
}

fn chosen(text: &str) -> &str {
    let marked = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    marked.unwrap_or(text.trim())
}

/// The number of members of a list of the kernel (`0-3,8`), and the members themselves; empty where it is none.
pub(super) fn members(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?.min(65_535))
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// The value of `key` in lines of `key : value` or `key=value`.
pub(super) fn field<'t>(text: &'t str, separator: char, key: &str) -> Option<&'t str> {
    let halves = text.lines().filter_map(|line| line.split_once(separator));
    halves
        .map(|(name, value)| (name.trim(), value.trim()))
        .find(|(name, _)| *name == key)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_choices_of_the_kernel() {
        assert_eq!(members("0-2,8"), [0, 1, 2, 8]);
        assert!(members("").is_empty() && members("none").is_empty());
        assert_eq!(chosen("always [madvise] never"), "madvise");
        assert_eq!(chosen("none"), "none");
    }

    #[test]
    fn fields_and_scalars() {
        assert_eq!(field("a\t: 1\nmodel name : X Y", ':', "model name"), Some("X Y"));
        assert_eq!(scalar("4096\t87380"), Value::Text("4096 87380".into()));
        assert_eq!(scalar(" 60"), Value::Int(60));
    }
}
