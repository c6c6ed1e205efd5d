//! Sentences on a page, made of the fragments of which diagnostics and answers consist.

/// `1 case`, `2 cases`
#[must_use]
pub fn count_text(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// With a capital letter and a full stop, as a fragment needs to stand alone.
pub(crate) fn format_sentence(fragment: &str) -> String {
    let mut rest = fragment.trim_end_matches('.').chars();
    let capital = rest.next().into_iter().flat_map(char::to_uppercase);
    let text: String = capital.chain(rest).collect();
    if text.is_empty() { text } else { text + "." }
}
