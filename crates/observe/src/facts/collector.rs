//! Files made into facts: whole, scaled, a switch, a marked choice. A file that is not there makes no fact.

use perflab_formats::kernel::small_values::{parse_marked_choice, parse_scalar};
use perflab_model::fact_table::FactKey;
use perflab_model::{Facts, Scalar};

use crate::root::Root;

/// Bytes of the longest file that is read: `/proc/cpuinfo` has some 1.5 KB for each CPU.
const LONGEST_FILE: u64 = 16 << 20;

/// Bytes of the longest file that is a value: files of sysfs have a page at most.
const LONGEST_VALUE: u64 = 64 << 10;

/// Facts so far, and where to read more.
pub(crate) struct FactCollector<'a> {
    pub(crate) root: &'a Root,
    pub(crate) facts: Facts,
}

impl<'a> FactCollector<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        FactCollector { root, facts: Facts::default() }
    }

    /// The text of a file, unless it cannot be read, is empty or is longer than [`LONGEST_FILE`].
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        self.root.read_at_most(path, LONGEST_FILE).ok().filter(|text| !text.is_empty())
    }

    /// The same of a file that holds one value.
    fn read_value(&self, path: &str) -> Option<String> {
        self.root.read_at_most(path, LONGEST_VALUE).ok().filter(|text| !text.is_empty())
    }

    pub(crate) fn add(&mut self, key: FactKey, value: impl Into<Scalar>, source: &str) {
        self.facts.add(key, value, source);
    }

    /// A fact that need not be known.
    pub(crate) fn add_optional(&mut self, key: FactKey, value: Option<impl Into<Scalar>>, source: &str) {
        if let Some(value) = value {
            self.add(key, value, source);
        }
    }

    /// The whole file: a whole number where it is one, else its text on one line.
    pub(crate) fn add_file(&mut self, key: FactKey, path: &str) {
        let value = self.read_value(path).map(|text| parse_scalar(&text));
        self.add_optional(key, value, path);
    }

    /// The whole file as text, though it may look like a number: a version, a list.
    pub(crate) fn add_text(&mut self, key: FactKey, path: &str) {
        let words = self.read_value(path).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
        self.add_optional(key, words.map(Scalar::Text), path);
    }

    /// A file with a number, times `scale`.
    pub(crate) fn add_scaled(&mut self, key: FactKey, path: &str, scale: i64) {
        let number = self.read_value(path).and_then(|text| text.parse::<i64>().ok()?.checked_mul(scale));
        self.add_optional(key, number, path);
    }

    /// A file with 0 or 1; `on` is the text that means yes.
    pub(crate) fn add_flag(&mut self, key: FactKey, path: &str, on: &str) {
        let value = self.read_value(path).map(|text| Scalar::Bool(text == on));
        self.add_optional(key, value, path);
    }

    /// A file that marks its choice: `always [madvise] never`.
    pub(crate) fn add_choice(&mut self, key: FactKey, path: &str) {
        let value = self.read_value(path).map(|text| Scalar::from(parse_marked_choice(&text)));
        self.add_optional(key, value, path);
    }
}
