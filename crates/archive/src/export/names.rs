//! Names as other formats allow them.

use perflab_model::Case;

/// A name of letters, digits and underscores that does not begin with a digit: a metric or label of OpenMetrics.
pub(super) fn to_identifier(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = text.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() { format!("_{name}") } else { name }
}

/// A word without blanks.
pub(super) fn to_blankless_word(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect()
}

/// Point and levels of a case as `name`, `value`.
pub(super) fn case_coordinates(case: &Case) -> Vec<(String, String)> {
    let point = case.point.iter().map(|(name, value)| (name.clone(), value.to_string()));
    point.chain(case.levels.iter().map(|(name, level)| (name.clone(), level.clone()))).collect()
}

/// A text with the characters that XML gives a meaning written as entities; those that it forbids are left out.
pub(super) fn clean_xml_text(text: &str) -> String {
    let allowed = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let mut out = String::new();
    for c in text.chars().filter(allowed) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            _ => out.push(c),
        }
    }
    out
}
