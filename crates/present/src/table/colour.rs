//! Owns the few colours of tables. It refuses to carry meaning: whatever has a colour has a symbol and a word too.

use perflab_analyze::{Row, Verdict};

const BOLD: &str = "1";
const DIM: &str = "2";

fn styled(text: &str, code: &str, colour: bool) -> String {
    if colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.into() }
}

/// Text that stands out, where colour is on.
pub(super) fn bold(text: &str, colour: bool) -> String {
    styled(text, BOLD, colour)
}

/// Text that stands back, where colour is on.
pub(super) fn dim(text: &str, colour: bool) -> String {
    styled(text, DIM, colour)
}

/// The verdict in its colour: green, red, grey, yellow; bold where the change is beyond the margin.
pub(super) fn verdict(row: &Row, text: &str, colour: bool) -> String {
    let beyond = row.relative_change().is_some_and(|change| change.abs() > row.margin);
    let code = match (row.verdict, beyond) {
        (Verdict::Better, true) => "1;32",
        (Verdict::Better, false) => "32",
        (Verdict::Worse, true) => "1;31",
        (Verdict::Worse, false) => "31",
        (Verdict::Same, _) => DIM,
        (Verdict::Unclear, _) => "33",
    };
    styled(text, code, colour)
}
