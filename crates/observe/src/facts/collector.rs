//! Files made into facts: whole, scaled, a switch, a marked choice. A file that is not there makes no fact.

use perflab_model::{Facts, Scalar};

use crate::root::Root;

/// Facts so far, and where to read more.
pub(crate) struct FactCollector<'a> {
    pub(crate) root: &'a Root,
    pub(crate) facts: Facts,
}

impl<'a> FactCollector<'a> {
    pub(crate) fn new(root: &'a Root) -> Self {
        FactCollector { root, facts: Facts::default() }
    }

    /// The text of a file, unless it cannot be read or is empty.
    pub(crate) fn read(&self, path: &str) -> Option<String> {
        self.root.read(path).ok().filter(|text| !text.is_empty())
    }

    pub(crate) fn add(&mut self, key: &str, value: impl Into<Scalar>, source: &str) {
        self.facts.add(key, value, source);
    }

    /// A fact that need not be known.
    pub(crate) fn add_optional(&mut self, key: &str, value: Option<impl Into<Scalar>>, source: &str) {
        if let Some(value) = value {
            self.add(key, value, source);
        }
    }

    /// The whole file: a whole number where it is one, else its text on one line.
    pub(crate) fn add_file(&mut self, key: &str, path: &str) {
        let value = self.read(path).map(|text| parse_scalar(&text));
        self.add_optional(key, value, path);
    }

    /// A file with a number, times `scale`.
    pub(crate) fn add_scaled(&mut self, key: &str, path: &str, scale: i64) {
        let number = self.read(path).and_then(|text| text.parse::<i64>().ok()?.checked_mul(scale));
        self.add_optional(key, number, path);
    }

    /// A file with 0 or 1; `on` is the text that means yes.
    pub(crate) fn add_flag(&mut self, key: &str, path: &str, on: &str) {
        let value = self.read(path).map(|text| Scalar::Bool(text == on));
        self.add_optional(key, value, path);
    }

    /// A file that marks its choice: `always [madvise] never`.
    pub(crate) fn add_choice(&mut self, key: &str, path: &str) {
        let value = self.read(path).map(|text| Scalar::from(parse_marked_choice(&text)));
        self.add_optional(key, value, path);
    }
}

/// A whole number where the text is one, else the text with its white space made single.
fn parse_scalar(text: &str) -> Scalar {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    text.parse().map_or_else(|_| Scalar::Text(text), Scalar::Int)
}

fn parse_marked_choice(text: &str) -> &str {
    let marked = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0));
    marked.unwrap_or(text.trim())
}

/// The number of members of a list of the kernel (`0-3,8`), and the members themselves; empty where it is none.
pub(crate) fn parse_cpu_list(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?.min(65_535))
    };
    list.split(',').filter_map(range).flatten().collect()
}

/// The value of `key` in lines of `key : value` or `key=value`.
pub(crate) fn find_field<'t>(text: &'t str, separator: char, key: &str) -> Option<&'t str> {
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
        assert_eq!(parse_cpu_list("0-2,8"), [0, 1, 2, 8]);
        assert!(parse_cpu_list("").is_empty() && parse_cpu_list("none").is_empty());
        assert_eq!(parse_marked_choice("always [madvise] never"), "madvise");
        assert_eq!(parse_marked_choice("none"), "none");
    }

    #[test]
    fn fields_and_scalars() {
        assert_eq!(find_field("a\t: 1\nmodel name : X Y", ':', "model name"), Some("X Y"));
        assert_eq!(parse_scalar("4096\t87380"), Scalar::Text("4096 87380".into()));
        assert_eq!(parse_scalar(" 60"), Scalar::Int(60));
    }
}
