//! What a file of /proc or /sys holds: one value, or `always [madvise] never`, of which the word in brackets is in force.
//!
//! Kernels read back what they made of a value, in their own spelling: `0x10` is 16 afterwards, `1` is `Y`, a mask has leading
//! zeros. What is one value here is one value to the kernel.

use std::fs;
use std::path::Path;

use crate::ConductError;

/// The content of a setting's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingContent {
    /// What is in force.
    pub value: String,
    /// The words that the file offers; empty where it offers none.
    pub offered: Vec<String>,
}

impl SettingContent {
    /// Reads a setting's file.
    pub fn read(path: &Path) -> Result<Self, ConductError> {
        let text = fs::read_to_string(path);
        let text =
            text.map_err(|source| ConductError::Setting { action: "read", path: path.into(), source })?;
        Ok(SettingContent::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let bracketed = |word: &&str| word.len() > 2 && word.starts_with('[') && word.ends_with(']');
        let chosen: Vec<&str> = words.iter().copied().filter(bracketed).collect();
        // Two words in brackets are not a choice of one.
        let [chosen] = chosen[..] else {
            return SettingContent { value: text.trim().to_owned(), offered: Vec::new() };
        };
        let bare = |word: &&str| word.trim_start_matches('[').trim_end_matches(']').to_owned();
        SettingContent { value: bare(&chosen), offered: words.iter().map(bare).collect() }
    }
}

/// Whether two spellings are one value to the kernel.
pub(crate) fn is_same_value(a: &str, b: &str) -> bool {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split_whitespace().collect(), b.split_whitespace().collect());
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| is_same_word(a, b))
}

fn is_same_word(a: &str, b: &str) -> bool {
    let numbers = parse_number(a).zip(parse_number(b));
    a == b
        || numbers.is_some_and(|(a, b)| a == b)
        || parse_switch(a).zip(parse_switch(b)).is_some_and(|(a, b)| a == b)
        || is_same_mask(a, b)
}

/// A number as the kernel reads it: in tens, `0x` in sixteens, a leading 0 in eights.
pub(crate) fn parse_number(word: &str) -> Option<i128> {
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => (16, digits),
        (None, Some(digits)) if !digits.is_empty() => (8, digits),
        _ => (10, lower.as_str()),
    };
    let plain = digits.chars().all(|digit| digit.is_digit(base));
    i128::from_str_radix(digits, base).ok().filter(|_| plain).map(|number| sign * number)
}

/// What `kstrtobool` makes of a word, where one of the two spellings is a letter.
fn parse_switch(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "1" | "y" | "yes" | "t" | "on" => Some(true),
        "0" | "n" | "no" | "f" | "off" => Some(false),
        _ => None,
    }
}

/// Masks of processors are read with leading zeros, in groups of eight digits: `3` is `0000,00000003`.
fn is_same_mask(a: &str, b: &str) -> bool {
    let bare = |mask: &str| {
        let digits: String = mask.chars().filter(|character| *character != ',').collect();
        digits
            .chars()
            .all(|digit| digit.is_ascii_hexdigit())
            .then(|| digits.trim_start_matches('0').to_ascii_lowercase())
    };
    let padded = |mask: &str| mask.starts_with("00") || mask.contains(',') && mask.len() > 8;
    (padded(a) != padded(b)) && bare(a).is_some() && bare(a) == bare(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_brackets_is_in_force_and_all_are_offered() {
        let content = SettingContent::parse("always [madvise] never\n");
        assert_eq!((content.value.as_str(), content.offered.len()), ("madvise", 3));
        assert_eq!(SettingContent::parse("[none]\n").offered, ["none"]);
        for plain in ["60", "a [b] c [d]", "[] a", "32768\t60999"] {
            let content = SettingContent::parse(&format!("{plain}\n"));
            assert_eq!((content.value.as_str(), content.offered.len()), (plain, 0));
        }
    }

    #[test]
    fn spellings_of_one_value_are_one() {
        for (a, b) in [
            ("32768 60999", "32768\t60999"),
            ("0x10", "16"),
            ("010", "8"),
            ("1", "Y"),
            ("off", "N"),
            ("3", "00000003"),
            ("FF", "0000,000000ff"),
            ("-1", "-1"),
            ("0", "0x0"),
        ] {
            assert!(is_same_value(a, b) && is_same_value(b, a), "{a} {b}");
        }
        for (a, b) in [("1", "10"), ("10", "010"), ("4 4", "4"), ("never", "always"), ("1", "-1"), ("a", "b")]
        {
            assert!(!is_same_value(a, b), "{a} {b}");
        }
    }
}
