//! A study as text: comments, strings, numbers and tables of TOML, made of what other suites write.

use std::fmt::Write as _;

/// Where a configuration does not say how many.
pub(super) const DEFAULT_ITERATIONS: i64 = 10;

/// The comment that the file begins with, as one paragraph.
pub(super) fn describe_file(text: &str) -> String {
    let comment =
        text.lines().skip_while(|line| line.trim().is_empty()).take_while(|line| line.starts_with('#'));
    let words: Vec<&str> =
        comment.flat_map(|line| line.trim_start_matches(['#', '!']).split_whitespace()).collect();
    let mut description = words.join(" ");
    if let Some((at, _)) = description.char_indices().nth(LONGEST_DESCRIPTION) {
        description.truncate(at);
        description.push_str("...");
    }
    description
}

/// Characters.
const LONGEST_DESCRIPTION: usize = 600;

/// Whether two names differ in no more than two letters in a row: those of one benchmark begin alike, and mean other things.
pub(super) fn is_slip(name: &str, known: &str) -> bool {
    let alike = name.chars().zip(known.chars()).take_while(|(a, b)| a == b).count();
    let rest = name.chars().rev().zip(known.chars().rev()).take_while(|(a, b)| a == b).count();
    alike + rest + 2 >= name.len().max(known.len())
}

/// A path or a sysctl as the name of a factor.
pub(super) fn factor_name(key: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    key.trim_matches('/').chars().map(letter).collect()
}

/// A name for a table of the study.
pub(super) fn workload_name(benchmark: &str) -> String {
    benchmark.replace('_', "-")
}

pub(super) fn write_table(text: &mut String, name: &str, rows: &[(String, String)]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n[{name}]");
    for (key, value) in rows {
        let _ = writeln!(text, "{key} = {value}");
    }
}

pub(super) fn toml_string(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A level of a setting: a number as one, where TOML writes it as the shell did. `09` and `+5` are texts.
pub(super) fn toml_level(level: &str) -> String {
    let is_number = level.parse::<i64>().is_ok_and(|number| number.to_string() == level);
    if is_number { level.to_owned() } else { toml_string(level) }
}

/// Text of several lines as a value.
pub(super) fn toml_multiline_string(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"");
    let plain: String = escaped.chars().filter(|c| !c.is_control() || *c == '\n' || *c == '\t').collect();
    format!("\"\"\"\n{plain}\n\"\"\"")
}

/// Bytes as shells and fio write them: `4096`, `4k`, `1G`, `64m`.
pub(super) fn parse_shell_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        "t" | "tb" | "tib" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// A reason as a comment, on one line.
pub(super) fn shorten_comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_numbers_where_toml_has_them_so() {
        let levels = ["10", "-1", "09", "+5", "0x10", "always"].map(toml_level);
        assert_eq!(levels, ["10", "-1", "\"09\"", "\"+5\"", "\"0x10\"", "\"always\""]);
    }
}
