//! Owns the few colours of tables. It refuses to carry meaning: whatever has a colour has a symbol and a word too.

use perflab_analyze::{Verdict, VerdictRow};

const BOLD: &str = "1";
const DIM: &str = "2";

fn style_text(text: &str, code: &str, colour: bool) -> String {
    if colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
}

/// Text that stands out, where colour is on.
pub(super) fn bold_text(text: &str, colour: bool) -> String {
    style_text(text, BOLD, colour)
}

/// Text that stands back, where colour is on.
pub(super) fn dim_text(text: &str, colour: bool) -> String {
    style_text(text, DIM, colour)
}

/// The verdict in its colour: green, red, grey, yellow; bold where the change is beyond the margin.
pub(super) fn colour_verdict(row: &VerdictRow, text: &str, colour: bool) -> String {
    let beyond = row.relative_change().is_some_and(|change| change.abs() > row.margin);
    let code = match (row.verdict, beyond) {
        (Verdict::Better, true) => "1;32",
        (Verdict::Better, false) => "32",
        (Verdict::Worse, true) => "1;31",
        (Verdict::Worse, false) => "31",
        (Verdict::Same, _) => DIM,
        (Verdict::Unclear, _) => "33",
    };
    style_text(text, code, colour)
}
